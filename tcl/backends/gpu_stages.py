"""What becomes of a def on a GPU, stage by stage, as text; no GPU is needed."""

from __future__ import annotations

from collections.abc import Sequence

from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.emit.module import Launch
from tcl.codegen.cuda.run.compile import ptx, version
from tcl.codegen.cuda.run.cubin_store import cubin
from tcl.codegen.cuda.run.occupancy import Resources, occupancy
from tcl.codegen.cuda.run.varying import emitted_for_all
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.gpu import plan, stages
from tcl.codegen.schedule.plan import plan_text
from tcl.executors.size_classes import ForAll
from tcl.grammar.ranges.sized import SizedDef

_HEADS = ("kernel", "blocks", "threads", "registers", "shared", "spills", "stack", "occupancy")


def gpu_stage(stage: str, sized: SizedDef, options: MappingOptions, profile: GpuProfile) -> str:
    """A def on a GPU as ``ir``, ``plan``, ``schedule``, ``source``, ``asm`` or ``resources``."""
    if stage == "plan":
        made = plan(sized, options, profile)
        made.scheduled()  # which refuses what cannot be applied
        return plan_text(made)
    if stage in ("ir", "schedule"):
        programs = [program for _, program in stages(sized, options, profile)]
        return show(programs[0 if stage == "ir" else -1])
    module = emit_module(sized, options, profile)
    if stage == "source":
        return module.source
    if stage == "asm":
        return ptx(module.source, profile)
    found = cubin(module, profile).resources
    rows = [
        _row(each, launch, profile) for each, launch in zip(found, module.launches, strict=True)
    ]
    major, minor = version()
    title = (
        f"{sized.checked.name} on {profile.name} ({profile.architecture}, NVRTC {major}.{minor})"
    )
    return "\n".join((title, *_columns([_HEADS, *rows])))


def gpu_stage_for_all(
    stage: str, all_: ForAll, options: MappingOptions, profile: GpuProfile
) -> str:
    """``gpu_stage`` for all sizes of classes; ``resources`` as for the usual ones."""
    if stage == "resources":
        usual, _ = all_.usual()
        sizes = ", ".join(f"{name}={usual.sizes[name]}" for name in all_.classes)
        return f"as for {sizes} alone\n{gpu_stage(stage, usual, options, profile)}"
    with all_.refusing():
        return emitted_for_all(options, lambda o: gpu_stage(stage, all_.symbolic, o, profile))


def _row(taken: Resources, launch: Launch, profile: GpuProfile) -> tuple[str, ...]:
    full = occupancy(taken, launch, profile)
    limits = " and ".join(full.limits)
    what = f"{full.share:.0%} of warps" + f", limited by {limits}" * (full.share < 1)
    return (
        taken.kernel,
        str(launch.blocks),
        str(launch.threads),
        str(taken.registers),
        _size(taken.shared + launch.shared),
        _size(taken.spill_stores + taken.spill_loads),
        _size(taken.stack),
        what if full.blocks else f"cannot be launched: too much of {limits}",
    )


def _size(count: int) -> str:
    return f"{count / 1024:.3g} KiB" if count >= 1024 else f"{count} B"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with columns one above the other; the first and last to the left, numbers to the
    right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            (row[0].ljust(widths[0]), *map(str.rjust, row[1:-1], widths[1:-1]), row[-1])
        ).rstrip()
        for row in rows
    ]
