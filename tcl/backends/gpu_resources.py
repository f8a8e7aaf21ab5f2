"""What kernels take of a GPU, as a table; no GPU is needed."""

from __future__ import annotations

from collections.abc import Sequence

from tcl.codegen.compiler import GpuCompiler
from tcl.codegen.cuda.emit.module import Launch
from tcl.codegen.cuda.run.compile import version
from tcl.codegen.cuda.run.cubin_store import cubin
from tcl.codegen.cuda.run.occupancy import Resources, occupancy
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.schedule.plan import Plan

_HEADS = ("kernel", "blocks", "threads", "registers", "shared", "spills", "stack", "occupancy")


def table(name: str, plan: Plan[GpuProfile], program: ir.Built) -> str:
    """A row for each kernel of the def of this name."""
    profile = plan.target
    module = GpuCompiler(profile).module(plan, program)
    found = zip(cubin(module, profile).resources, module.launches, strict=True)
    rows = [_row(each, launch, profile) for each, launch in found]
    major, minor = version()
    title = f"{name} on {profile.name} ({profile.architecture}, NVRTC {major}.{minor})"
    return "\n".join((title, *_columns([_HEADS, *rows])))


def _row(taken: Resources, launch: Launch, profile: GpuProfile) -> tuple[str, ...]:
    full = occupancy(taken, launch, profile)
    limits = " and ".join(full.limits)
    what = f"{full.share:.0%} of warps" + f", limited by {limits}" * (full.share < 1)
    return (
        taken.kernel,
        str(launch.blocks),
        str(launch.threads),
        str(taken.registers),
        _size_text(taken.shared + launch.shared),
        _size_text(taken.spill_stores + taken.spill_loads),
        _size_text(taken.stack),
        what if full.blocks else f"cannot be launched: too much of {limits}",
    )


def _size_text(count: int) -> str:
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
