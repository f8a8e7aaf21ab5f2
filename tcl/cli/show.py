"""``tcl show``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcl.cli.common import (
    choose,
    entry_option,
    file_argument,
    reporting,
    sizes_option,
    tell,
    threads_option,
    without_threads,
)
from tcl.grammar.errors import ArgumentError

if TYPE_CHECKING:
    from tcl.codegen.devices.gpu import GpuProfile

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
    help="What for: cpu, a GPU that need not be here (h200, rtx 4090, sm_80; `tcl devices` lists "
    "them), or one that is (cuda:0).",
)
@threads_option
@reporting
def command(
    file: Path,
    entry: str | None,
    sizes: str | None,
    options: str | None,
    stage: str,
    device: str,
    threads: int | None,
) -> None:
    """Show what becomes of a def, stage by stage."""
    if stage in _OF_TEXT:
        _check(options, device, threads)
    if stage in ("ast", "canonical"):
        click.echo(_without_sizes(file, entry, stage), nl=False)
        return
    from tcl.arrays.annotations import sizes_of
    from tcl.cli.kernels import parse_options
    from tcl.grammar.findings import size, size_findings

    _, checked = choose(file, entry)
    values = sizes_of(checked, sizes)
    sized = size(checked, values)
    tell(checked, size_findings(sized))
    if stage == "ranges":
        from tcl.grammar.ranges_text import ranges_text

        click.echo(ranges_text(sized))
        return
    if stage == "reference":
        from tcl.codegen.reference import compile_reference

        click.echo(compile_reference(sized, jit=False).source)
        return
    from tcl.selection.best_options import DEFAULT

    chosen = parse_options(options) or DEFAULT
    if device == "cpu":
        if stage == "resources":
            raise click.UsageError(
                "--stage resources is what kernels take of a GPU; say of which, as in --device h200"
            )
        from tcl.backends.cpu_stages import cpu_stage

        click.echo(cpu_stage(stage, sized, chosen, threads))
    else:
        from tcl.backends.gpu_stages import gpu_stage

        click.echo(gpu_stage(stage, sized, chosen, _gpu(device, threads)))


def _check(options: str | None, device: str, threads: int | None) -> None:
    """Refuse what is wrong where it makes no difference, too."""
    if options is not None:
        from tcl.cli.kernels import parse_options

        parse_options(options)
    if device != "cpu":
        _gpu(device, threads)
    elif threads is not None:
        from tcl.codegen.cpu.thread_count import thread_count

        thread_count(threads)


def _gpu(device: str, threads: int | None) -> GpuProfile:
    """The GPU to show kernels for."""
    from tcl.backends.targets import EMULATED
    from tcl.codegen.devices.gpu import profile

    without_threads(device, threads)
    if device == EMULATED:
        raise ArgumentError(
            f"{EMULATED} is for tcl run; say which GPU to show kernels for, "
            "as in --device a100, which is the one that it emulates"
        )
    return profile(device)


def _without_sizes(file: Path, entry: str | None, stage: str) -> str:
    from tcl.grammar.canonical import canonical_text
    from tcl.grammar.parser import parse
    from tcl.grammar.printer import to_text

    text, checked = choose(file, entry)
    if stage == "canonical":
        return canonical_text(checked)
    return next(to_text(d) for d in parse(text, str(file)).defs if d.name == checked.name)
