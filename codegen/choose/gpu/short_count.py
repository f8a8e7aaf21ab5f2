"""A short count of what binds most products: what ranks their many choices, before the best few are
counted in full."""

from __future__ import annotations

import math

from tcl.codegen.choose.gpu.nest_shape import OptionsDraft, Shape, blocks_of
from tcl.codegen.choose.gpu.predicted import part_sizes
from tcl.codegen.counters import prediction
from tcl.codegen.counters.addresses import MOVED
from tcl.codegen.counters.arithmetic import inside, own_instructions
from tcl.codegen.counters.walk import COPY, FILL, TURN
from tcl.codegen.devices.banks import WARP
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir.walk import loads, walk
from tcl.common.dataclass import dataclass

DEPTH = 16
"""Points of the reductions that a tile has, about."""
VECTOR = 4
"""Words that are read at once, and points of a reduction that are written out."""
_LOOP = 3
"""Instructions of a loop: adding, comparing, branching."""
_REGISTERS = 60
"""Of a thread, beside its results and what it reads of panels."""
RESIDENT = 2
"""Blocks of a multiprocessor, at least: one works while another one waits at a barrier."""


@dataclass(frozen=True, slots=True)
class ShortCount:
    """What binds most products, by a few numbers and the rules of the counters: the products and
    what is issued beside them, wavefronts, what is read of the second cache."""

    shape: Shape
    sides: list[list[int]]
    profile: GpuProfile
    depth: int
    """Points of the reductions."""
    tile: int
    total: int
    """Bytes of the results."""
    parts: tuple[int, ...]
    """Into how many the longest reduction may be split."""
    words: int
    """Of a number, 32 bits each."""
    clock: float
    lanes: int
    computed: tuple[tuple[float, tuple[int, ...]], ...]
    """As ``_computed``: for each of the results that it moves with, of those of a thread, a value
    is computed once."""

    @staticmethod
    def of(shape: Shape, sides: list[list[int]], tile: int, profile: GpuProfile) -> ShortCount:
        longest = max(map(shape.extent, shape.reductions))
        depth = math.prod(map(shape.extent, shape.reductions))
        results = math.prod(map(shape.extent, shape.results))
        type_ = shape.nest.point.type.compute
        parts = (1,) if shape.is_split else tuple(part_sizes(longest, min(DEPTH, longest)))
        of_device = max(1, type_.bits // 32), profile.clock, profile.float32_lanes
        return ShortCount(
            shape,
            sides,
            profile,
            depth,
            tile,
            results * type_.itemsize,
            parts,
            *of_device,
            _computed(shape),
        )

    def seconds(self, made: OptionsDraft, alone: bool = False) -> float:
        """Of a draft, its longest reduction split as is best; infinite where too few blocks fit.
        ``alone``: whether one block is enough where a multiprocessor gets no more of them."""
        shape, profile, words = self.shape, self.profile, self.words
        held = {k: made.register.get(k, 1) for k in shape.results}
        if made.lanes[1] > 1:
            held[made.lanes[0]] = held.get(made.lanes[0], 1) * made.lanes[1]
        results = math.prod(held.values())
        own = sum([math.prod([held[k] for k in side]) for side in self.sides])
        apart = math.prod([made.threads.get(k, 1) for k in shape.reductions])
        all_warps = -(-math.prod(made.threads.values()) // WARP)
        warps = -(-all_warps // apart)
        """That have the same point of the reductions."""
        block = sum([math.prod([made.chunk[k] for k in side]) for side in self.sides])
        fetched = 0 if profile.async_copies else block * self.tile // (WARP * all_warps)
        registers = words * (results + own + fetched) + _REGISTERS
        if fetched and registers > profile.registers_per_thread:
            return math.inf  # what is on its way to panels would have none
        registers = min(profile.registers_per_thread, registers)
        fit = min(32, profile.registers_per_multiprocessor // (registers * WARP * all_warps))
        blocks = blocks_of(shape, made)
        least = min(RESIDENT, -(-blocks // profile.multiprocessors)) if alone else RESIDENT
        if fit < least:
            return math.inf
        products = results * warps * WARP / self.lanes * words
        copies = block * DEPTH * words / VECTOR / (WARP * warps)
        turn = TURN + 2 * FILL + (1 + COPY) * copies
        beside = own * words / VECTOR + turn / DEPTH + (_LOOP + 2 * MOVED) / VECTOR
        beside += sum(n * math.prod([held[k] for k in moving]) for n, moving in self.computed)
        issued = products + warps * beside / prediction.SCHEDULERS
        read = warps * own / VECTOR * 2 * words
        filled = block * 4 / 128 * words
        moved = block * 4 / prediction.L2_BYTES * words
        pipes = issued, read + filled, moved
        longest = max(pipes)
        each = longest + prediction.APART * (sum(pipes) - longest)
        handed = 2 * apart * results * warps * words if apart > 1 else 0
        """Wavefronts in which warps hand over their sums."""
        best, of_block = math.inf, -(-self.total // blocks)
        for parts in self.parts:
            busiest = -(-blocks * parts // profile.multiprocessors)
            share = prediction.hidden(min(fit, busiest) * all_warps)
            seconds = busiest * (each * self.depth / parts + handed) / share / self.clock
            if parts > 1 and seconds < best:
                about = self.total, of_block, WARP * all_warps, profile
                seconds += min(prediction.adding_up_seconds(parts, *about))
            best = min(best, seconds)
        return best


def _computed(shape: Shape) -> tuple[tuple[float, tuple[int, ...]], ...]:
    """What factors are computed by: instructions of a value, and the results that it moves with."""
    point = shape.nest.point
    values = {v: None for value in inside(point.op, point.value) for v in walk(value)}
    found = []
    for value in values:
        if count := sum(own_instructions(value).values()):
            moving = (k for k in shape.results if any(shape.moves(x, k) for x in loads(value)))
            found.append((count, tuple(moving)))
    return tuple(found)
