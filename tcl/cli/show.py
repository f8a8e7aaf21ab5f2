"""``tcl show``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcl.arrays.annotations import sizes_of
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
from tcl.codegen.cpu.thread_count import thread_count
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.devices.named import device_named
from tcl.common.errors import ArgumentError
from tcl.common.lazy import Lazy
from tcl.gradients.grad import gradient_text
from tcl.grammar.ranges.findings import size_finding, size_findings
from tcl.grammar.ranges.ranges_text import ranges_text
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.parser import parse
from tcl.grammar.syntax.printer import to_text
from tcl.grammar.tree.canonical import canonical_text
from tcl.grammar.tree.checked import CheckedDef

if TYPE_CHECKING:
    from tcl.backends import stages, targets
    from tcl.cli import kernels
    from tcl.codegen import reference
    from tcl.executors import size_classes
    from tcl.selection import suggested_options
else:  # the stages of a text need no compiler
    stages = Lazy("tcl.backends.stages")
    targets = Lazy("tcl.backends.targets")
    kernels = Lazy("tcl.cli.kernels")
    reference = Lazy("tcl.codegen.reference")
    size_classes = Lazy("tcl.executors.size_classes")
    suggested_options = Lazy("tcl.selection.suggested_options")

_STAGES = (
    "ast",
    "canonical",
    "grad",
    "ranges",
    "ir",
    "plan",
    "schedule",
    "source",
    "asm",
    "counters",
    "resources",
    "reference",
)
_OF_TEXT = ("ast", "canonical", "grad", "ranges", "reference")
"""Those that are the same for all options and devices."""


_OF_A_GPU = {
    "counters": "--stage counters is what kernels ask of a GPU",
    "resources": "--stage resources is what kernels take of a GPU",
}


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
    help="ast: as parsed. canonical: what keys the cache. grad: the def "
    "of its gradients, for all sizes or for those of --sizes. ranges: of every index, and where "
    "they come from, with shapes and first indices. ir: loops before, schedule: after the "
    "options are applied. plan: what each option comes to, and why. source: LLVM IR, or CUDA C++. "
    "asm: assembly, or PTX. counters: what kernels ask of a GPU's memory and pipes, and the time "
    "that takes at least. resources: registers and memory that they take. reference: its "
    "generated Python.",
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
    if varying and stage in ("ast", "canonical", "grad", "reference"):
        raise click.UsageError(f"--varying makes no difference to --stage {stage}; leave it out")
    text, checked = choose(file, entry)
    if stage == "ast":
        ast = next(d for d in parse(text, str(file)).defs if d.name == checked.name)
        click.echo(to_text(ast), nl=False)
        return
    if stage == "canonical":
        click.echo(canonical_text(checked), nl=False)
        return
    if stage == "grad":
        click.echo(gradient_text(checked, sizes=sizes), nl=False)
        return
    check_varying(checked, varying)
    sized = size_finding(checked, sizes_of(checked, sizes))
    if varying:
        profile = _device(device, threads, stage)
        click.echo(_stage_of_class(stage, checked, sized, varying, options, profile))
        return
    tell(checked, size_findings(sized))
    if stage == "ranges":
        click.echo(ranges_text(sized))
    elif stage == "reference":
        click.echo(reference.compile_reference(sized, jit=False).source)
    else:
        chosen = kernels.parse_options(options) or suggested_options.DEFAULT
        click.echo(stages.stage_text(stage, sized, chosen, _device(device, threads, stage)))


def _stage_of_class(
    stage: str,
    checked: CheckedDef,
    sized: SizedDef,
    varying: tuple[str, ...],
    options: str | None,
    profile: CpuProfile | GpuProfile,
) -> str:
    found = size_classes.for_all(checked, sized.sizes, varying, profile)
    if found is None:
        values = ", ".join(f"{name}={sized.sizes[name]}" for name in varying)
        raise ArgumentError(
            f"no kernel of {checked.name} can be for a class of {values}; these sizes have one of "
            "their own, which is shown without --varying"
        )
    if stage == "ranges":
        return f"for all of {found}\n{ranges_text(found.symbolic)}"
    chosen = kernels.parse_options(options)
    return stages.stage_for_all(
        stage, found, chosen or suggested_options.DEFAULT, profile, asked=chosen is not None
    )


def _check(options: str | None, device: str, threads: int | None) -> None:
    """Refuse what is wrong where it makes no difference, too."""
    if options is not None:
        kernels.parse_options(options)
    if device != "cpu":
        _device(device, threads, "")


def _device(name: str, threads: int | None, stage: str) -> CpuProfile | GpuProfile:
    """What to show a stage of kernels for."""

    if name == targets.EMULATED:
        raise ArgumentError(
            f"{targets.EMULATED} is for tcl run; say which GPU to show kernels for, "
            "as in --device a100, which is the one that it emulates"
        )
    found = device_named(name)
    if isinstance(found, CpuProfile):
        if stage in _OF_A_GPU:
            raise click.UsageError(f"{_OF_A_GPU[stage]}; say of which, as in --device h200")
        return replace(found, threads=thread_count(threads, None if name == "cpu" else found.cores))
    without_threads(name, threads)
    return found
