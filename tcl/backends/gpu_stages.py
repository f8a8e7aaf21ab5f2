"""What kernels take of a GPU, what they ask of it, and how long that takes at least, as text; no
GPU is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tcl.codegen.compiler import GpuCompiler
from tcl.codegen.counters.counts import KernelCounts, count_program
from tcl.codegen.counters.prediction import (
    LAUNCH,
    Prediction,
    needed_in_flight,
    predict,
    roofline,
    share,
)
from tcl.codegen.counters.requests import Memory, Traffic, by_kind
from tcl.codegen.counters.walk import record_of
from tcl.codegen.cuda.emit.module import Launch
from tcl.codegen.cuda.run.compile import Resources, cubin, occupancy, version
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.cost import Cost
from tcl.codegen.schedule.plan import Plan

LABEL = "counted, not measured"
_KINDS = {
    "fma": "FFMA",
    "float": "other float32",
    "double": "float64",
    "mma": "HMMA",
    "wgmma": "HGMMA, as HMMA of the same work",
    "panel": "wavefronts of HGMMA",
    "mufu": "MUFU",
    "convert": "conversions",
    "integer": "integer, about",
    "branch": "branches, about",
    "shuffle": "shuffles",
    "memory": "memory",
    "local": "local memory",
    "barrier": "barriers",
}


def text(name: str, program: ir.Built, cost: Cost, profile: GpuProfile) -> str:
    """The counts of each kernel of a def, and what they come to."""
    counts = count_program(program, profile)
    predictions = [predict(c) for c in counts]
    lines = [f"{name} on {profile.name} ({profile.architecture})"]
    for position, (own, prediction) in enumerate(zip(counts, predictions, strict=True)):
        lines += ["", f"kernel {name}_{position}", *_aligned(list(_count_rows(own, prediction)))]
    total, least = sum(p.seconds for p in predictions), roofline(cost, profile)
    rows = [
        ("predicted", f"{_micro(total)} with {_micro(LAUNCH)} a launch"),
        ("roofline", _micro(least)),
    ]
    if total:  # empty outputs take no time
        rows.append(("share of the roofline", f"{share(cost, predictions, profile):.2f}"))
    return "\n".join((*lines, "", *_aligned(rows)))


def _count_rows(counts: KernelCounts, prediction: Prediction) -> Iterator[tuple[str, str]]:
    profile, blocks = counts.profile, max(1, counts.blocks)
    yield "blocks", f"{counts.blocks:,} of {counts.threads} threads"
    full = counts.occupancy
    limits = " and ".join(full.limits)
    yield "registers", f"{counts.registers} a thread, about"
    yield (
        "occupancy",
        f"{full.blocks} blocks a multiprocessor, {full.share:.0%} of warps, limited by {limits}",
    )
    yield "waves", f"{counts.waves:.2f}, {counts.tail:.0%} of the busiest multiprocessor's work"
    for kind, own in counts.traffic.items():
        if own.requests:
            yield kind.value, _traffic(kind, own)
    yield "from memory", f"{_mega(counts.dram_read)} read, {_mega(counts.dram_written)} written"
    yield (
        "in flight",
        f"{counts.in_flight / 1024:.1f} KiB a multiprocessor; "
        f"{needed_in_flight(profile) / 1024:.1f} keep memory busy",
    )
    found = counts.instructions
    for instruction, title in _KINDS.items():
        if number := found.get(instruction, 0.0):
            yield title, f"{number / blocks:,.0f} warp instructions per block"
    for pipe, seconds in sorted(prediction.pipes.items(), key=lambda item: -item[1]):
        binds = ", which binds" if pipe == prediction.binding else ""
        yield f"pipe: {pipe}", f"{_micro(seconds)}{binds}"
    if counts.last is not None:
        parts, groups = counts.blocks // counts.last.blocks, counts.last.blocks
        yield (
            "parts added up",
            f"{_micro(prediction.last)}, by the last of {parts} blocks, in {groups} groups",
        )


def _traffic(kind: Memory, own: Traffic) -> str:
    units = "sectors" if kind.is_global else "wavefronts"
    most = "" if own.exact else ", about: data decides"
    return f"{own.requests:,} requests of {own.each:.2f} {units}{most}"


Asked = Mapping[str, tuple[int, int]]
"""(requests, sectors or wavefronts) of a kernel, by kind."""


def counted(program: ir.Built, profile: GpuProfile) -> list[Asked]:
    """Of each kernel, as its source has them."""
    walks = (record_of(program, kernel, profile.idle_sums) for kernel in program.kernels)
    found = (by_kind(walk.accesses) for walk in walks)
    return [{kind.value: (t.requests, t.units) for kind, t in own.items()} for own in found]


def compared(counted: Sequence[Asked], seen: Sequence[Asked]) -> list[str]:
    """The requests of each kernel beside those that an emulator saw, as lines."""
    lines = []
    for position, (own, other) in enumerate(zip(counted, seen, strict=True)):
        rows: list[tuple[str, ...]] = [
            (f"kernel {position}", "requests", "emulated", "sectors, wavefronts", "emulated", "")
        ]
        for kind, (requests, units) in own.items():
            if requests or other[kind][0]:
                numbers = requests, other[kind][0], units, other[kind][1]
                rows.append((kind, *(f"{n:,}" for n in numbers), LABEL))
        lines += _columns(rows)
    return lines


def _aligned(rows: Sequence[tuple[str, str]]) -> list[str]:
    """With the label that nothing here is measured."""
    first, second = (max(len(row[k]) for row in rows) for k in (0, 1))
    return [f"  {a.ljust(first)}  {b.ljust(second)}  {LABEL}" for a, b in rows]


def _micro(seconds: float) -> str:
    return f"{1e6 * seconds:.2f} us"


def _mega(count: int) -> str:
    return f"{count / 1e6:.2f} MB"


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
