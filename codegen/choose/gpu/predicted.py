"""What options come to on a GPU, as counted: what choices are ranked by."""

from __future__ import annotations

import math
from dataclasses import replace

from tcl.codegen.counters.counts import KernelCounts, Loads, count_program
from tcl.codegen.counters.prediction import adding_up_seconds, predict
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.passes.gpu.build_blocks import BuildBlocks
from tcl.codegen.passes.split import VECTOR, parts_of

PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_TILES = 4
"""Tiles of a reduction that a part has at least, so that filling panels ahead is worth it."""
_WORTH = 0.9
"""Of the time without it, at most, so that a split is chosen."""


def counts_of(program: ir.Program, profile: GpuProfile) -> KernelCounts | None:
    """What the nest of a program asks for that has been through all passes; None if it asks for
    nothing."""
    counts = count_program(BuildBlocks(profile)(program), profile)
    return counts[0] if len(counts) == 1 else None


def part_sizes(extent: int, tile: int) -> set[int]:
    """Into how many parts a reduction of so many points may be split; ``tile``: the points of it
    between two fills of panels."""
    return {parts_of(extent, p, _TILES * max(1, tile), VECTOR) for p in PARTS}


def best_split(counts: KernelCounts, nest: ir.Nest, k: int, tile: int) -> tuple[int, float]:
    """(parts, rank): into how many parts the reduction ``k`` of a nest that asks for so much is
    best split, and what it takes then, to be compared; ``tile``: the points of it between two fills
    of panels."""
    sizes = part_sizes(nest.dims[k].extent, tile)
    whole = predict(counts).rank
    timed = [(_in_parts(counts, nest, p), p) for p in sizes if p > 1]
    seconds, parts = min(timed, default=(math.inf, 1))
    return (parts, seconds) if seconds < _WORTH * whole else (1, whole)


def _in_parts(counts: KernelCounts, nest: ir.Nest, parts: int) -> float:
    """Seconds of a nest whose reduction is split, and of the one that adds up the parts."""
    results = math.prod(d.extent for d in nest.dims if not d.reduction)
    moved = results * nest.point.type.compute.itemsize
    of_block = -(-moved // counts.blocks)
    split = replace(
        counts,
        blocks=counts.blocks * parts,
        dram_written=counts.dram_written * parts,
        loads=tuple(of_part(x, parts) for x in counts.loads),
    )
    added = adding_up_seconds(parts, moved, of_block, counts.threads, counts.profile)
    return predict(split).rank + min(added)


def of_part(loads: Loads, parts: int) -> Loads:
    """Those of a block that reduces one of several parts: each waits for a first tile."""
    return replace(
        loads,
        times=-(-loads.times // parts),
        waited=loads.waited / parts,
        fills=min(1.0, loads.fills * parts),
    )
