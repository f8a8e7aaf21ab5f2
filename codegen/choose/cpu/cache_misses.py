"""What caches hold, and how long a nest waits for what they miss, for the model of a core."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tcl.codegen.choose.cpu.access_costs import PAGE, OperandAccess
from tcl.codegen.choose.cpu.costs import (
    CACHE_BYTES_PER_CYCLE,
    HIDDEN_BYTES_PER_CYCLE,
    MEMORY_BYTES_PER_CYCLE,
    PIECES_BYTES_PER_CYCLE,
)
from tcl.codegen.devices.cpu import CpuProfile

if TYPE_CHECKING:
    from tcl.codegen.choose.cpu.core_model import Core

_HIDING = 10.0
"""Accumulators that are enough to hide it."""
_KEPT = 8
"""Times the second cache: results from which on writing them past the caches was measured to pay
even if they are read next."""
_KEPT_BY_L3 = 16 << 20
"""Bytes of results that the last cache, if it is that large, is taken to keep."""


def cached_bytes(device: CpuProfile) -> int:
    """Bytes that caches are taken to keep."""
    return max(_KEPT * device.l2_bytes, min(device.l3_bytes, _KEPT_BY_L3))


def keeps_column(
    core: Core, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]
) -> bool:
    """Whether the first cache keeps what a register tile reads of an operand, which has the lanes
    in order, for the next one. The place of a line there is its address modulo ``PAGE``: rows whose
    distance has a large power of two in it lie in a few places, and push each other out."""
    width = sizes.get(lane or "", 1) * core.lanes * access.itemsize
    moving = [d for d in core.nest.dims if d.reduction and d.name in access.strides]
    places = PAGE // math.gcd(PAGE, *(access.strides[d.name] for d in moving))
    room = core.device.l1_bytes * min(PAGE, places * width) // PAGE
    return math.prod(d.extent for d in moving) * width <= room // 2


def memory_cycles(core: Core, access: OperandAccess, kept: bool = False) -> float:
    """Cycles in which an operand that nothing reads twice comes from memory, or from the last cache
    if that has ``kept`` it."""
    points = math.prod(core.nest.dim(name).extent for name in access.strides)
    if points > access.elements or access.whole <= core.device.l2_bytes:
        return 0.0
    rate = CACHE_BYTES_PER_CYCLE if kept else MEMORY_BYTES_PER_CYCLE
    return access.elements * access.itemsize / rate


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
    columns = (a for a in core.reads if a.strides.get(lane) == a.itemsize)
    if all(core.near(a, lane) for a in columns):
        return 0.0
    inside = (d for d in core.nest.dims if d.reduction or d.name in sizes)
    points = math.prod(d.extent for d in inside if d.name in access.strides)
    if points * access.itemsize <= core.device.l2_bytes:
        return 0.0
    read = access.elements * access.itemsize * core.again(access, lane, sizes)
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
    names = [d.name for d in core.nest.dims if not d.reduction and d.extent > 1]
    first = next((k for k, name in enumerate(names) if name not in access.strides), len(names))
    outside = math.prod(core.nest.dim(n).extent for n in names[:first] if n in access.strides)
    if access.elements * access.itemsize // outside <= core.device.l2_bytes // 2:
        return 0.0
    read = access.elements * access.itemsize * (core.again(access, lane, sizes) - 1)
    return read / PIECES_BYTES_PER_CYCLE
