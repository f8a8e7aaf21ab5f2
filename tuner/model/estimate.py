"""The analytic model: what a nest takes with given loops, for many candidates at once.

Instructions of a register tile as in ``tcl.codegen.choose.cpu.tile_cycles``, whose costs of
accesses and operations it asks; and what moves between the caches, from the footprints of the
loops: a cache keeps what the innermost loops touch, as far out as that fits, and all else comes
from behind it. The bandwidths are those of processors of the last ten years; what is learned from
measured times is how far off all this is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcl.codegen.choose.cpu.costs import (
    ACCUMULATOR_LATENCY_CYCLES,
    CACHE_LEVEL_BYTES_PER_CYCLE,
    CLOCK_HERTZ,
    PANEL_LOAD_L1_CYCLES,
    SERIAL_SHARE,
    STORE_LOADS,
)
from tcl.tuner.model.loops import Bools, Floats, LoopColumns, Touched


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of one nest, by candidate (N each), in cycles of one thread unless said otherwise."""

    steps: Floats
    """How many register tiles are computed."""
    arithmetic: Floats
    loads: Floats
    latency: Floats
    stores: Floats
    copies: Floats
    traffic: tuple[Floats, Floats, Floats]
    """Bytes from behind the first, second and third cache."""
    footprints: Floats
    """L x N: bytes that all accesses touch inside of each level of loops."""
    held: Floats
    """Reduction points that are added up between two stores of a result."""
    chunks: Floats
    """How many pieces threads share."""
    waves: Floats
    """Chunks of the thread that has the most of them."""
    cycles: Floats
    """All of it, on all threads."""

    @property
    def seconds(self) -> Floats:
        """What it takes, by a clock of 3 GHz."""
        return self.cycles / CLOCK_HERTZ


def estimate(loops: LoopColumns) -> Estimate:
    """What a nest takes with these loops."""
    subject, device = loops.subject, loops.device
    steps = loops.pieces(loops.unit).prod(axis=1)
    written = np.minimum(loops.vectors, 64).astype(np.float64)
    arithmetic = np.zeros(loops.count)
    for dims, cycles in subject.work:
        arithmetic += cycles * written[:, np.array(dims)].prod(axis=1)
    hardware = np.ceil(loops.width / device.lanes(subject.nest.point.type))
    arithmetic *= steps * hardware
    packed = [loops.stage[:, k] >= 0 for k in range(len(subject.reads))]
    loads = np.zeros(loops.count)
    for touched, panel in zip(subject.reads, packed, strict=True):
        each = np.where(panel, PANEL_LOAD_L1_CYCLES * hardware, _vector_cycles(loops, touched))
        loads += steps * each * written[:, np.array(touched.moves)].prod(axis=1)
    held = _steps_between_stores(loops)
    reduced = np.where(loops.reduced, loops.extents, 1).prod()
    vector = np.where(loops.along_lanes, loops.width[:, None], 1)
    results = np.where(loops.reduced, 1.0, loops.pieces(vector)).prod(axis=1)
    stores = results * (reduced / held) * STORE_LOADS * _vector_cycles(loops, subject.target)
    serial = np.where(loops.reduced & ~loops.along_lanes, written, 1.0).prod(axis=1)
    latency = steps * serial * ACCUMULATOR_LATENCY_CYCLES * float(subject.nest.reduces)
    copies = sum((_copy_cycles(loops, k) for k in range(len(packed))), np.zeros(loops.count))
    footprints, traffic = _traffic(loops, packed)
    chunks = np.ceil(loops.extents / loops.chunk).prod(axis=1)
    waves = np.ceil(chunks / device.threads)
    works = np.stack(
        [
            *(np.maximum(arithmetic, latency), loads + stores + copies),
            *(
                moved / rate
                for moved, rate in zip(traffic, CACHE_LEVEL_BYTES_PER_CYCLE, strict=True)
            ),
        ]
    )
    longest = works.max(axis=0)
    alone = longest + SERIAL_SHARE * (works.sum(axis=0) - longest)
    cycles = alone * waves / chunks
    return Estimate(
        *(steps, arithmetic, loads, latency, stores, copies, traffic, footprints, held, chunks),
        *(waves, np.maximum(cycles, 1.0)),
    )


def _vector_cycles(loops: LoopColumns, touched: Touched) -> Floats:
    """Cycles to read or write one vector of a tensor where it lies."""
    dims, lanes = loops.subject.nest.dims, loops.lanes
    found = [
        touched.access.cycles(dims[lane].name if lane >= 0 else None, width)
        for lane, width in lanes.values
    ]
    return np.array(found)[lanes.codes]


def _steps_between_stores(loops: LoopColumns) -> Floats:
    """Reductions among the innermost loops inside a tile, and lanes: their results stay in
    registers meanwhile."""
    # From the innermost loop outwards, up to the first over results.
    order = loops.point_order[:, ::-1]
    kept = np.logical_and.accumulate(loops.reduced[order], axis=1)
    whole = np.take_along_axis(loops.tile, order, axis=1)
    once = np.take_along_axis(np.minimum(loops.unit, loops.tile), order, axis=1)
    points = np.where(loops.reduced[order], np.where(kept, whole, once), 1)
    found: Floats = points.astype(np.float64).prod(axis=1)
    return found


def _copy_cycles(loops: LoopColumns, operand: int) -> Floats:
    """Cycles to fill the panels of an operand."""
    touched, level = loops.subject.reads[operand], loops.stage[:, operand]
    if not (level >= 0).any():
        return np.zeros(loops.count)
    names = [d.name for d in loops.subject.nest.dims]
    l2 = loops.device.l2_bytes
    known = {lane for lane, _ in loops.lanes.values}
    cycles = {k: touched.access.copying(names[k] if k >= 0 else None, l2) for k in known}
    each = np.array([cycles[lane] for lane, _ in loops.lanes.values])[loops.lanes.codes]
    return each * _copied_elements(loops, operand)


def _copied_elements(loops: LoopColumns, operand: int) -> Floats:
    """Elements that are copied to the panels of an operand in all."""
    level = loops.stage[:, operand]
    # Levels count the loops that there are: those over chunks as one, then each over tiles.
    tiles = np.where(level > 0, level - loops.chunked, 0)
    by_rank = np.take_along_axis(loops.tile < loops.chunk, loops.tile_order, axis=1)
    outside = (by_rank.cumsum(axis=1) < tiles[:, None]).sum(axis=1) + (tiles > 0)
    place = np.where(level == 0, 3 * loops.rank, 2 * loops.rank - np.minimum(outside, loops.rank))
    at = np.arange(loops.count)
    copied = loops.touched[operand][0][place, at] * loops.executions[place, at]
    return np.where(level >= 0, copied, 0.0)


def _traffic(
    loops: LoopColumns, packed: list[Bools]
) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
    """Footprints of all accesses together, and bytes from behind each cache."""
    device = loops.device
    parts = [*(loops.footprint(k, p) for k, p in enumerate(packed)), loops.footprint(len(packed))]
    moved = [part * loops.executions for part in parts]
    whole: Floats = np.sum(parts, axis=0)
    levels = np.arange(len(whole))[:, None]

    def behind(size: int) -> Floats:
        # The outermost level that fits, or the innermost of all.
        fits = np.maximum((whole <= size).sum(axis=0) - 1, 0)
        outside, found = levels >= fits, np.zeros(loops.count)
        for part, bytes_ in zip(parts, moved, strict=True):
            kept = part[fits, np.arange(loops.count)]
            # Loops outside of that level which touch nothing else of it leave it where it is.
            stays = outside & (part <= kept)
            found += np.where(stays, bytes_, np.inf).min(axis=0)
        return found

    return whole, (behind(device.l1_bytes), behind(device.l2_bytes), behind(device.l3_bytes))
