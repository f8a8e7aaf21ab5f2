"""Loops of a GPU's thread that are written out, and how many numbers stay in registers."""

from __future__ import annotations

import math

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import branches, statements
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
    inside = [s.loop for s in statements(loop.body) if isinstance(s, ir.For)]
    if any(x.fold.level == "mma" for x in inside):  # an instruction for many points
        inside = [x for x in inside if x.fold.level == "register"]
    points = math.prod(representative(x.fold.count) for x in inside if x.kind is not ir.Kind.THREAD)
    if branches(loop.body):
        points *= BRANCHING
    if count < 2 or points > UNROLLED:
        return 1
    known = not isinstance(loop.loop.fold.count, Size)
    whole = known and count <= LONGEST and count * points <= UNROLLED
    return count if whole else max(1, min(4, UNROLLED // points))
