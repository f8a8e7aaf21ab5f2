"""Loops of a GPU's thread that are written out, and how many numbers stay in registers."""

from __future__ import annotations

import math

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.fragments import fragments, row_loop
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.walk import branches, chain, in_block, inside, statements
from tcl.grammar.sizes.varying import Size, provably_equal, representative

UNROLLED = 1024
"""Points that may be written out one after the other."""
BRANCHING = 4
"""How many of those a point with branches is worth: compilers take long to straighten them out."""
LONGEST = 16
"""Iterations that are."""

MANY = 8
"""Numbers that are used seldom and may be in registers all the same. Totals, which are read and
written once per 256 products, lie in the memory of a block, or in local memory, where a thread has
more."""


def written_out(loop: ir.For, geometry: Geometry | None = None) -> int:
    """How many iterations of a loop of one thread are written out, so that what one of them reads
    comes while another one computes: 1 for a loop that stays. Half as many where there is a
    ``row_loop``: compilers would read the rows of all before they compute, and have no registers
    left to choose from. Before a kernel has a ``geometry``, none is known to have one."""
    count = representative(loop.loop.fold.count)
    points = _points(loop.body)
    if branches(loop.body):
        points *= BRANCHING
    if geometry is not None and by_rows(loop.body, geometry):
        points *= 2
    if count < 2 or points > UNROLLED:
        return 1
    known = not isinstance(loop.loop.fold.count, Size)
    whole = known and count <= LONGEST and count * points <= UNROLLED
    return count if whole else max(1, min(4, UNROLLED // points))


SHORT = 64
"""Points of a pipeline up to which compilers write it out themselves."""


def tiles_written_out(pipeline: ir.Pipeline, count: int, geometry: Geometry) -> int:
    """How many of so many iterations of a loop over tiles are written out: 1 for a loop whose
    every iteration asks which buffer it has. Where a thread fills panels from registers, and a tile
    is written out, there are as many as buffers, so that all addresses in these are constants."""
    every = pipeline.buffers if pipeline.pause is None else pipeline.pause.every
    known = pipeline.ahead is ir.Ahead.REGISTERS and every % pipeline.buffers == 0
    return (
        pipeline.buffers
        if known and _tile_is_written_out(pipeline, geometry) and long(pipeline, count)
        else 1
    )


def counts_buffers(pipeline: ir.Pipeline, geometry: Geometry) -> bool:
    """Whether a loop whose panels are filled by asynchronous copies counts its buffers: their
    number is no power of two, so that a remainder would take a division, and registers are left for
    that, as all of a tile is written out."""
    by_division = pipeline.buffers & (pipeline.buffers - 1) != 0
    plain = pipeline.ahead is ir.Ahead.ASYNCHRONOUS and pipeline.steps is None
    return plain and by_division and _tile_is_written_out(pipeline, geometry)


def _tile_is_written_out(pipeline: ir.Pipeline, geometry: Geometry) -> bool:
    """Whether the work on a tile is written out wholly."""
    inner = (s for s in statements(pipeline.body) if isinstance(s, ir.For))
    serial = (s for s in inner if s.loop.kind is ir.Kind.SERIAL)
    return all(provably_equal(s.loop.fold.count, written_out(s, geometry)) for s in serial)


def long(pipeline: ir.Pipeline, count: int) -> bool:
    """Whether a loop over tiles with so many iterations is not written out wholly."""
    loops = (s.loop for s in statements(pipeline.body) if isinstance(s, ir.For))
    points = math.prod(x.fold.count for x in loops if x.kind is not ir.Kind.THREAD)
    return points * count > SHORT


def _points(body: ir.Statement) -> int:
    """Those of the loops in a body; of loops that come one after the other, the longest."""
    loops = [s.loop for s in statements(body) if isinstance(s, ir.For)]
    by_mma = any(x.fold.level == "mma" for x in loops)  # an instruction for many points

    def points(statement: ir.Statement) -> int:
        longest = max(map(points, inside(statement)), default=1)
        if not isinstance(statement, ir.For):
            return longest
        loop = statement.loop
        once = loop.kind is ir.Kind.THREAD or (by_mma and loop.fold.level != "register")
        return longest if once else longest * representative(loop.fold.count)

    return points(body)


def by_rows(body: ir.Statement, geometry: Geometry) -> bool:
    """Whether what a loop repeats has a ``row_loop``."""
    loops, innermost = chain(body)
    loops = [x for x in loops if x.kind is not ir.Kind.THREAD]
    if not loops or any(x.kind is ir.Kind.SERIAL or x.fold.level == "mma" for x in loops):
        return False
    parts = in_block(innermost)
    return row_loop(geometry, loops, parts, fragments(geometry, loops, parts)) is not None
