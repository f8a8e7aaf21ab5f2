"""``tcl show``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcl.cli.common import (
    check_varying,
    choose,
    entry_option,
    file_argument,
    reporting,
    sizes_option,
    tell,
    threads_option,
    varying_option,
    without_threads,
)
from tcl.common.errors import ArgumentError

if TYPE_CHECKING:
    from tcl.codegen.devices.cpu import CpuProfile
    from tcl.codegen.devices.gpu import GpuProfile
    from tcl.codegen.options.options import MappingOptions
    from tcl.executors.size_classes import ForAll
    from tcl.grammar.ranges.sized import SizedDef

_STAGES = (
    "ast",
    "canonical",
    "ranges",
    "ir",
    "plan",
    "schedule",
    "source",
    "asm",
    "resources",
    "reference",
)
_OF_TEXT = ("ast", "canonical", "ranges", "reference")
"""Those that are the same for all options and devices."""


_OF_A_GPU = "--stage resources is what kernels take of a GPU; say of which, as in --device h200"


@click.command("show")
@file_argument
@entry_option
@sizes_option
@click.option("--options", "-o", help="Mapping options: a preset's name, JSON or a JSON file.")
@click.option(
    "--stage",
    type=click.Choice(_STAGES),
    default="schedule",
    show_default=True,
    help="ast: as parsed. canonical: what keys the cache. ranges: of every index, and where they "
    "come from, with shapes and first indices. ir: loops before, schedule: after the "
    "options are applied. plan: what each option comes to, and why. source: LLVM IR, or CUDA C++. "
    "asm: assembly, or PTX. resources: what kernels take of a GPU. reference: its generated "
    "Python.",
)
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="What for: cpu or cuda:0, which are here, or a CPU or GPU that need not be (x86-64-v3, "
    "zen 4, graviton3, h200, sm_80; `tcl devices` lists them).",
)
@threads_option
@varying_option
@reporting
def command(
    file: Path,
    entry: str | None,
    sizes: str | None,
    options: str | None,
    stage: str,
    device: str,
    threads: int | None,
    varying: tuple[str, ...],
) -> None:
    """Show what becomes of a def, stage by stage.

    With --varying: for all sizes of a class, in formulas that have these sizes by their names.
    """
    if stage in _OF_TEXT:
        _check(options, device, threads)
    if varying and stage in ("ast", "canonical", "reference"):
        raise click.UsageError(f"--varying makes no difference to --stage {stage}; leave it out")
    if stage in ("ast", "canonical"):
        click.echo(_without_sizes(file, entry, stage), nl=False)
        return
    from tcl.arrays.annotations import sizes_of
    from tcl.grammar.ranges.findings import size, size_findings
    from tcl.grammar.ranges.ranges_text import ranges_text

    _, checked = choose(file, entry)
    check_varying(checked, varying)
    sized = size(checked, sizes_of(checked, sizes))
    if not varying:
        tell(checked, size_findings(sized))
        if stage == "ranges":
            click.echo(ranges_text(sized))
            return
        if stage == "reference":
            from tcl.codegen.reference import compile_reference

            click.echo(compile_reference(sized, jit=False).source)
            return
    from tcl.cli.kernels import parse_options

    chosen = parse_options(options)
    profile = _device(device, threads)
    found = _class(sized, varying, profile) if varying else None
    if found is not None and stage == "ranges":
        click.echo(f"for all of {found}\n{ranges_text(found.symbolic)}")
    else:
        click.echo(_scheduled(stage, sized, found, chosen, profile))


def _class(sized: SizedDef, varying: tuple[str, ...], profile: CpuProfile | GpuProfile) -> ForAll:
    """The class of a def's sizes."""
    from tcl.executors.size_classes import for_all

    checked = sized.checked
    found = for_all(checked, sized.sizes, varying, profile)
    if found is None:
        values = ", ".join(f"{name}={sized.sizes[name]}" for name in varying)
        raise ArgumentError(
            f"no kernel of {checked.name} can be for a class of {values}; these sizes have one of "
            "their own, which is shown without --varying"
        )
    return found


def _scheduled(
    stage: str,
    sized: SizedDef,
    found: ForAll | None,
    asked: MappingOptions | None,
    profile: CpuProfile | GpuProfile,
) -> str:
    """A stage of the kernels for these sizes, or for all of a class."""
    from tcl.codegen.devices.cpu import CpuProfile
    from tcl.selection.best_options import DEFAULT

    chosen = asked or DEFAULT
    if isinstance(profile, CpuProfile):
        if stage == "resources":
            raise click.UsageError(_OF_A_GPU)
        from tcl.backends.cpu_stages import cpu_stage, cpu_stage_for_all

        if found is None:
            return cpu_stage(stage, sized, chosen, profile)
        return cpu_stage_for_all(stage, found, chosen, profile, asked=asked is not None)
    from tcl.backends.gpu_stages import gpu_stage, gpu_stage_for_all

    if found is None:
        return gpu_stage(stage, sized, chosen, profile)
    return gpu_stage_for_all(stage, found, chosen, profile)


def _check(options: str | None, device: str, threads: int | None) -> None:
    """Refuse what is wrong where it makes no difference, too."""
    if options is not None:
        from tcl.cli.kernels import parse_options

        parse_options(options)
    if device != "cpu":
        _device(device, threads)


def _device(name: str, threads: int | None) -> CpuProfile | GpuProfile:
    """What to show kernels for."""
    from tcl.backends.targets import EMULATED
    from tcl.codegen.cpu.thread_count import thread_count
    from tcl.codegen.devices.cpu import CpuProfile
    from tcl.codegen.devices.named import device_named

    if name == EMULATED:
        raise ArgumentError(
            f"{EMULATED} is for tcl run; say which GPU to show kernels for, "
            "as in --device a100, which is the one that it emulates"
        )
    found = device_named(name)
    if isinstance(found, CpuProfile):
        return replace(found, threads=thread_count(threads, None if name == "cpu" else found.cores))
    without_threads(name, threads)
    return found


def _without_sizes(file: Path, entry: str | None, stage: str) -> str:
    from tcl.grammar.syntax.parser import parse
    from tcl.grammar.syntax.printer import to_text
    from tcl.grammar.tree.canonical import canonical_text

    text, checked = choose(file, entry)
    if stage == "canonical":
        return canonical_text(checked)
    return next(to_text(d) for d in parse(text, str(file)).defs if d.name == checked.name)
