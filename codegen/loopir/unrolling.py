"""Loops of a GPU's thread that are written out, and how many numbers stay in registers."""

from __future__ import annotations

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import branches, inside, statements
from tcl.grammar.sizes.varying import Size, representative

UNROLLED = 1024
"""Points that may be written out one after the other."""
BRANCHING = 4
"""How many of those a point with branches is worth: compilers take long to straighten them out."""
LONGEST = 16
"""Iterations that are."""

MANY = 8
"""Numbers that are used seldom and may be in registers all the same. A total is read and written
once per 256 products: from local memory that is 1 % of what the products' operands take."""


def written_out(loop: ir.For) -> int:
    """How many iterations of a loop of one thread are written out, so that what one of them reads
    comes while another one computes: 1 for a loop that stays."""
    count = representative(loop.loop.fold.count)
    points = _points(loop.body)
    if branches(loop.body):
        points *= BRANCHING
    if count < 2 or points > UNROLLED:
        return 1
    known = not isinstance(loop.loop.fold.count, Size)
    whole = known and count <= LONGEST and count * points <= UNROLLED
    return count if whole else max(1, min(4, UNROLLED // points))


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
