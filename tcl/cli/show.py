"""``tcl show``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcl.arrays.annotations import sizes_of
from tcl.cli import common
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
    "counters": "--stage counters is about the requests of GPU kernels",
    "resources": "--stage resources is about the resources of GPU kernels",
}


@click.command("show")
@common.file_argument
@common.entry_option
@common.sizes_option
@click.option("--options", "-o", help="Mapping options: the name of a preset, JSON or a JSON file.")
@click.option(
    "--stage",
    type=click.Choice(_STAGES),
    default="schedule",
    show_default=True,
    help="ast: the parsed text. canonical: the text in cache keys. grad: the def of the "
    "gradients, for all sizes or for those of --sizes. ranges: the range of every index "
    "and its origin, shapes and first indices. ir: loops before the options are applied; "
    "schedule: after. plan: the value of each option, and the reason. source: LLVM IR or "
    "CUDA C++. asm: assembly or PTX. counters: the requests of GPU kernels to memory and "
    "pipes, and the least time for them. resources: registers and memory of GPU kernels. "
    "reference: the Python that tcl.reference runs.",
)
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="The device: cpu or cuda:0 of this machine, or a CPU or GPU that this machine need not "
    "have (x86-64-v3, zen 4, graviton3, h200, sm_80; `tcl devices` lists them).",
)
@common.threads_option
@common.varying_option
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
    """Show the stages of a def.

    With --varying: for all sizes of a class, in formulas with the names of these sizes.
    """
    if stage in _OF_TEXT:
        _check(options, device, threads)
    if varying and stage in ("ast", "canonical", "grad", "reference"):
        raise click.UsageError(f"--varying does not change --stage {stage}; leave it out")
    text, checked = common.choose(file, entry)
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
    common.check_varying(checked, varying)
    sized = size_finding(checked, sizes_of(checked, sizes))
    if varying:
        profile = _device(device, threads, stage)
        click.echo(_stage_of_class(stage, checked, sized, varying, options, profile))
        return
    common.tell(checked, size_findings(sized))
    if stage == "ranges":
        click.echo(ranges_text(sized))
    elif stage == "reference":
        click.echo(reference.compile_reference(sized, jit=False).explained())
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
    if isinstance(found, str):
        raise ArgumentError(f"{found}; leave out --varying to see the kernel for these sizes")
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
            f"{targets.EMULATED} is for tcl run; name a GPU, such as --device a100, the GPU "
            "that it emulates"
        )
    found = device_named(name)
    if isinstance(found, CpuProfile):
        if stage in _OF_A_GPU:
            raise click.UsageError(f"{_OF_A_GPU[stage]}; name a GPU, such as --device h200")
        return replace(found, threads=thread_count(threads, None if name == "cpu" else found.cores))
    common.without_threads(name, threads)
    return found
