"""What has to come from memory, and how much of it is on its way at once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from tcl.codegen.counters.accesses import Access, Box, Memory
from tcl.codegen.counters.requests import SECTOR
from tcl.codegen.counters.traffic import Traffic
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.common.dataclass import dataclass

_KEPT = 0.8
"""The share of the second cache that holds what is read again, about."""

_READS = (Memory.GLOBAL_READ, Memory.GLOBAL_COPY)

Asked = Sequence[tuple[Access, Traffic]]


@dataclass(frozen=True, slots=True)
class Loads:
    """Reads of global memory that are begun before any of them is waited for."""

    in_flight: float
    """Bytes of a block."""
    times: int
    """How often one after the other, in a block."""
    bytes: int
    """In all blocks."""


def loads_of(asked: Asked, threads: int) -> tuple[Loads, ...]:
    """The reads of a kernel, by where they are begun."""
    groups: dict[tuple[int, tuple[tuple[str, int], ...]], list[tuple[Access, Traffic]]]
    groups = defaultdict(list)
    for access, own in asked:
        if access.kind in _READS:
            groups[access.phase, tuple(access.outside.loops.items())].append((access, own))
    found = []
    for (_, loops), members in groups.items():
        visits = max(1, math.prod(n for _, n in loops))
        blocks = max(1, math.prod(n for name, n in loops if name.startswith("grid ")))
        moved = sum(own.bytes for _, own in members)
        ahead = max(access.ahead for access, _ in members)
        times = max(1, visits // blocks)
        in_flight = moved / visits * min(ahead, times)
        found.append(Loads(in_flight, -(-times // ahead), moved))
    return tuple(found)


def dram_bytes(
    program: ir.Built, asked: Asked, blocks: int, resident: int, profile: GpuProfile
) -> tuple[int, int]:
    """Bytes that have to come from memory, and those that are written, at least: all that blocks
    read once, and again what the second cache cannot have kept, because too much was read since."""
    by_tensor: dict[str, list[tuple[Access, Traffic]]] = defaultdict(list)
    for access, own in asked:
        if access.kind.is_global and access.box is not None:
            by_tensor[access.tensor].append((access, own))
    room = _KEPT * profile.l2_bytes
    at_once = max(1, min(blocks, resident * profile.multiprocessors))
    layouts = {name: program.tensor(name).layout for name in by_tensor}
    whole = {
        name: max(_bytes(layouts[name], a.box.of_all) for a, _ in members if a.box)
        for name, members in by_tensor.items()
    }
    own_blocks = {
        name: max(_bytes(layouts[name], a.box.of_block) for a, _ in members if a.box)
        for name, members in by_tensor.items()
    }
    kept = sum(whole.values()) <= room
    again = at_once * sum(own_blocks.values()) > room
    read = written = 0
    for name, members in by_tensor.items():
        reads = [(a, t) for a, t in members if a.kind in _READS]
        if len(reads) < len(members):
            written += whole[name]
        if not reads:
            continue
        phases = len({a.phase for a, _ in reads}) if again and not kept else 1
        requested = sum(t.units for _, t in reads) * SECTOR
        once = whole[name]
        if not kept:
            box = max((a.box for a, _ in reads if a.box), key=lambda b: math.prod(b.of_block))
            once = _in_waves(box, reads[0][0], own_blocks[name], once, at_once)
        read += max(min(requested, once * phases), min(requested, whole[name]))
    return read, written


def _in_waves(box: Box, access: Access, own: int, whole: int, at_once: int) -> int:
    """Bytes of a tensor that all waves of blocks read, each of its own at once."""
    loops = [(n, c) for n, c in access.outside.loops.items() if n.startswith("grid ")]
    blocks = math.prod(c for _, c in loops)
    tiles, left = 1, at_once
    for name, count in reversed(loops):
        here = min(count, max(1, left))
        left = -(-left // count)
        if name in box.grid:
            tiles *= here
    waves = -(-blocks // at_once)
    return max(whole, waves * min(whole, tiles * own))


def _bytes(layout: ir.Layout, box: Iterable[int]) -> int:
    """The bytes of a box in whole sectors along the axis where elements are neighbours."""
    total, row = 1, 1
    for reach, stride in zip(box, layout.strides, strict=True):
        if abs(stride) == layout.itemsize and row == 1:
            row = reach
        elif stride:
            total *= reach
    return total * -(-row * layout.itemsize // SECTOR) * SECTOR
