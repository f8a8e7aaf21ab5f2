"""What comes from memory and caches, and how long it takes, for the model of a core: what caches
hold, how long a nest waits for what they miss, and what the points of a register tile share where
nothing is reduced.

Without a tile, each vector of results reads all that it needs by itself. In a tile, what several
points read is read once, as by windows that overlap; what lies side by side in memory where lanes
do not is read in pieces of rows, and transposed; and a place that data decides is checked once for
all vectors that lie there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from itertools import pairwise

from tcl.codegen.choose.cpu.access_costs import OperandAccess
from tcl.codegen.choose.cpu.core_model import Core
from tcl.codegen.choose.cpu.costs import (
    CACHE_BYTES_PER_CYCLE,
    CHECK_CYCLES,
    CROSSING,
    HIDDEN_BYTES_PER_CYCLE,
    LOST_LANE_LINE_CYCLES,
    LOST_VECTOR_CYCLES,
    MEMORY_BYTES_PER_CYCLE,
    PIECES_BYTES_PER_CYCLE,
)
from tcl.codegen.devices.cpu import LINE, CpuProfile

_HIDING = 10.0
"""Accumulators that are enough to hide it."""
_BEHIND = 2.0
"""How much longer rows of memory take beside products, divided by how many are read side by side:
set on Zen 4, with 2 to 8 rows."""
_KEPT = 8
"""Times the second cache: results from which on writing them past the caches was measured to pay
even if they are read next."""
_KEPT_BY_L3 = 16 << 20
"""Bytes of results that the last cache, if it is that large, is taken to keep."""


def cached_bytes(device: CpuProfile) -> int:
    """Bytes that caches keep, where that was measured, or are taken to keep."""
    if device.memory is not None:
        return device.memory.cached_bytes
    return max(_KEPT * device.l2_bytes, min(device.l3_bytes, _KEPT_BY_L3))


def memory_rate(device: CpuProfile) -> float:
    """Bytes per cycle that a core reads in order from memory."""
    return MEMORY_BYTES_PER_CYCLE if device.memory is None else device.memory.bytes_per_cycle


def memory_cycles(core: Core, access: OperandAccess, kept: bool = False) -> float:
    """Cycles in which an operand that nothing reads twice comes from memory, or from the last cache
    if that has ``kept`` it."""
    touched = core.touched(access)
    if access.is_window(core.dims) or access.whole * touched <= core.device.l2_bytes:
        return 0.0
    rate = CACHE_BYTES_PER_CYCLE if kept else memory_rate(core.device)
    return access.elements * access.itemsize * touched / rate


def far_row_cycles(core: Core, access: OperandAccess, rows: int) -> float:
    """Cycles in which rows with the lanes along them come from memory, so many side by side, while
    the core multiplies: the fewer there are, the less is on its way."""
    if access.whole <= surely_cached(core.device):
        return 0.0
    return memory_cycles(core, access) * (1.0 + _BEHIND / rows)


def surely_cached(device: CpuProfile) -> int:
    """Bytes that the last cache keeps beside what else is read."""
    return cached_bytes(device) * 2 // 3


def repeated_pass_cycles(
    core: Core, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]
) -> float:
    """Cycles in which rows that the second cache does not hold come from behind it again for each
    column of register tiles, where columns are copied, or for each row of these, where they cannot
    be."""
    if lane is None or core.nest.dim(lane).reduction:
        return 0.0
    if lane in access.strides:
        return _window_pass_cycles(core, access, lane, sizes)
    columns = (a for a in core.reads if lane in a.strides)
    if all(core.near(a, lane) and not core.staged(a, lane, sizes) for a in columns):
        return 0.0
    outside = (d for d in core.nest.dims if not d.reduction and d.name not in sizes)
    times = math.prod(d.extent for d in outside if d.name in access.strides)
    kept, each, type_ = core.device.l2_bytes, access.itemsize, core.nest.point.type
    if access.overlapping:  # rows of an image lie apart, and are made wider beforehand
        kept, each = kept // 2, each * type_.compute.itemsize // type_.itemsize
    if access.elements * each // times <= kept:
        return 0.0
    again = core.again(access, lane, sizes)
    read = access.elements * each * again if again > 1 else 0
    # Few accumulators hide less of it.
    few = max(0.0, _HIDING - math.prod(sizes.values()))
    return read / HIDDEN_BYTES_PER_CYCLE * (1.0 + few)


def _window_pass_cycles(
    core: Core, access: OperandAccess, lane: str, sizes: Mapping[str, int]
) -> float:
    """As ``repeated_pass_cycles``, of an operand that is read through a window, so that pieces of
    it are not copied: loops are in the order of the dimensions."""
    if not access.overlapping:
        return 0.0
    if core.in_turns(access, lane, sizes) <= core.device.l2_bytes // 2:
        return 0.0
    read = access.elements * access.itemsize * (core.again(access, lane, sizes) - 1)
    return read / PIECES_BYTES_PER_CYCLE


def read_cycles(core: Core, lane: str | None, sizes: Mapping[str, int]) -> tuple[float, float]:
    """Cycles to read the operands of one register tile, and to make other types of them."""
    lanes = core.lanes if lane is not None else 1
    seen: set[tuple[str, tuple[tuple[str, int], ...], int]] = set()
    total = converted = 0.0
    checked = set()
    for access, conversion in zip(core.reads, core.conversions, strict=True):
        each = access.in_tile(lane, lanes, sizes)
        if access.is_apart(lane):
            each *= core.filled(lane)
        if access.strides.get(lane or "") == access.itemsize:
            each *= core.halves(lane) * (CROSSING if _crosses(core, access, lane, lanes) else 1.0)
        if access.scattered:
            total += access.vectors(lane, lanes, sizes) * each
            converted += access.vectors(lane, lanes, sizes) * conversion * core.halves(lane)
            if access.checked is not None:
                checked.add(access.checked)
            continue
        strides = tuple(sorted(access.strides.items()))
        places = {(access.tensor, strides, p) for p in _places(access, lane, lanes, sizes)}
        each += LOST_VECTOR_CYCLES if _comes_again(core, access, lane) else 0.0
        each += _lines_again(core, access, lane, sizes)
        new = places - seen
        if new and any(n > 1 and access.transposed(d, lane, lanes) for d, n in sizes.items()):
            new = places  # windows that overlap are transposed one by one
        once = len(new) / core.turns_inside(access.strides, lane, sizes)
        total += once * each
        converted += once * conversion * (core.halves(lane) if lane in access.strides else 1)
        seen |= places
    checks = sum(math.prod(sizes.get(d, 1) for d in dims) for dims in checked)
    return total + CHECK_CYCLES * checks + planes_again(core, lane, sizes), converted


def planes_again(core: Core, lane: str | None, sizes: Mapping[str, int]) -> float:
    """Cycles in which a register tile waits for what a stencil has read before for other points, if
    the second cache has lost it meanwhile: where planes are that large, all but the foremost of
    those that the tile reads come from behind it. On a Cascade Lake, stencils of 7 and 13 points
    in planes of 1 to 2 MB take .77 to .84 and .64 of the time for four planes of results at once,
    and 1.0 for two rows of two planes."""
    lanes = core.lanes if lane is not None else 1
    windows: dict[tuple[str, tuple[tuple[str, int], ...]], list[OperandAccess]] = {}
    for access in core.reads:
        if not access.scattered and access.whole > core.device.l2_bytes:
            key = access.tensor, tuple(sorted(access.strides.items()))
            windows.setdefault(key, []).append(access)
    total = 0.0
    for same in windows.values():
        access = same[0]
        step = access.strides.get(lane or "", access.itemsize)
        if len({a.first for a in same}) == 1 or step != access.itemsize:
            continue
        # What else is touched meanwhile takes room, too.
        touched = _touched_bytes(core) / access.whole
        every = sorted({p for a in same for p in _places(a, lane, lanes, sizes)})
        own = sorted(_places(access, lane, lanes, sizes))
        gaps, least = ([y - x for x, y in pairwise(each)] for each in (every, own))
        far = core.device.l2_bytes / touched
        again = sum(gap > far for gap in gaps) - sum(gap > far for gap in least)
        kept = max(gaps) * touched <= cached_bytes(core.device)
        rate = PIECES_BYTES_PER_CYCLE if kept else memory_rate(core.device)
        total += max(0, again) * sizes.get(lane or "", 1) * lanes * access.itemsize / rate
    return total


def _crosses(core: Core, access: OperandAccess, lane: str | None, lanes: int) -> bool:
    """Whether nearly all vectors of a window lie in two cache lines each, wherever its tensor
    begins: those as long as a line, of rows or places in them that begin anywhere in lines. What is
    read once takes longer to come than to be put together."""
    apart = [access.first, *(step for dim, step in access.strides.items() if dim != lane)]
    if lanes * access.itemsize < LINE or not any(step % LINE for step in apart):
        return False
    same = (a for a in core.reads if (a.tensor, a.strides) == (access.tensor, access.strides))
    return sum(1 for _ in same) > 1


def _comes_again(core: Core, access: OperandAccess, lane: str | None) -> bool:
    """Whether whole rows are read again and again, with more between two times than the first cache
    holds."""
    moving = [d for d in core.nest.dims if d.extent > 1]
    if not moving or moving[-1].name != lane or access.strides.get(lane) != access.itemsize:
        return False
    if all(d.name in access.strides for d in moving):
        return False
    row = sum(a.itemsize for a in (*core.reads, core.target) if lane in a.strides)
    return row * moving[-1].extent > core.device.l1_bytes


def _lines_again(
    core: Core, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]
) -> float:
    """Cycles more for a vector of what is transposed, or a point without lanes, where the first
    cache has lost its lines by the time that what lies beside it in them is read."""
    dims = core.nest.dims
    along = dims[-1].name if lane is None and dims else lane
    for k, dim in enumerate(dims):
        if access.transposed(dim.name, along, core.lanes):
            inside = {d.name: d.extent for d in dims[k + 1 :] if d.name in access.strides}
            if along in inside and math.prod(inside.values()) * LINE > core.device.l1_bytes:
                lines = core.lanes if lane is not None else 1
                return LOST_LANE_LINE_CYCLES * lines / sizes.get(dim.name, 1)
    return 0.0


def _places(
    access: OperandAccess, lane: str | None, lanes: int, sizes: Mapping[str, int]
) -> Iterator[int]:
    """Where the elements, or vectors of them, lie that a register tile reads: bytes."""
    moving = [
        [k * access.strides[d] * (lanes if d == lane else 1) for k in range(size)]
        for d, size in sizes.items()
        if d in access.strides
    ]
    return (access.first + sum(steps) for steps in itertools.product(*moving))


def least_memory_cycles(core: Core) -> float:
    """Cycles that memory takes at least, if caches do not keep what the nest reads and writes."""
    touched = _touched_bytes(core)
    return touched / memory_rate(core.device) if touched > cached_bytes(core.device) else 0.0


def least_far_cycles(core: Core) -> float:
    """Cycles in which what a nest reads and writes comes from behind the second cache at least, if
    that does not keep it."""
    touched = _touched_bytes(core)
    if touched <= 2 * core.device.l2_bytes:
        return 0.0
    return least_memory_cycles(core) or touched / PIECES_BYTES_PER_CYCLE


def _touched_bytes(core: Core) -> int:
    """Of all tensors that the nest reads and writes."""
    return sum({access.tensor: access.whole for access in (*core.reads, core.target)}.values())


def sharing_dims(core: Core, lane: str | None) -> list[str]:
    """The dimensions along which neighbouring points, or vectors of them, can read or compute the
    same, or what lies side by side. What does not change along the lanes LLVM moves out of the
    loop over them."""
    moving = [a for a in core.reads if not a.scattered]
    every = (*moving, core.target)
    windows = {(a.tensor, tuple(sorted(a.strides.items()))) for a in moving}
    overlap = len(windows) < len(moving)
    found = []
    for dim in core.nest.dims:
        if dim.name == lane:
            same = any(a.checked is not None and lane not in a.checked for a in core.reads)
        else:
            same = overlap or any(a.shares(dim.name) for a in core.reads)
            same = same or any(a.transposed(dim.name, lane, core.lanes) for a in every)
            same = same or any(dim.name not in dims for dims in core.arithmetic)
        if same and dim.extent > 1:
            found.append(dim.name)
    return found
