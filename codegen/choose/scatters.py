"""How a scatter is done: by its sizes alone, so that the same bits come of any number of threads.

What costs: an update takes a nanosecond or two, as it loads, adds and stores, perhaps in the second
cache; an element of a copy one more at most, which is cleared, read again and made a result. So
copies are worth it while all of them together have a fraction of the elements that are updated.
Points that update the same element one after the other wait for it each time: a nest of its own
reduces them at the speed of any reduction.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.passes.scatter import Scatter, of_one_place
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import Size, representative
from tcl.grammar.syntax.types import FLOAT32, FLOAT64, ScalarType

_UPDATES = 4
"""Updates for each element of the copies, at least: then these cost an eighth of the time or so."""


@dataclass(frozen=True, slots=True)
class Copies:
    """What copies are worth on a kind of device."""

    most: int
    """As many threads update them."""
    least: int
    """Points of a part at least."""
    results: int
    """Results side by side that threads can share without copies."""
    owners: int
    """Threads that there should be at least: so many share what data say, too, where copies and
    results are fewer. Each of them looks at all points of its part."""
    ahead: int
    """As of ``Scatter``."""
    rest: bool
    """Whether parts have equally many points, and a nest of its own those that are left."""


CPU = Copies(16, 1 << 14, 64, 1, ahead=1 << 26, rest=True)
"""Tens of microseconds for each part; some lines of memory for each thread. A branch that is taken
at random takes longer than an update, so that nobody owns ranges; and what has to ask where a part
ends reads nothing before it knows: with a condition, updates take four times as long. Lanes call a
function for eight doubles in the time of two; but a function of all pairs of 10,000 points is not
worth 400 MB."""
GPU = Copies(1 << 12, 1 << 8, 1 << 10, 1 << 12, ahead=0, rest=False)
"""Where a few threads wait for memory, looking at points costs little."""


def scattered(program: ir.Program, nest: ir.Nest, copies: Copies) -> Scatter:
    held, reduced = held_type(program, nest), of_one_place(nest)
    if math.prod(representative(nest.dim(d).extent) for d in reduced) > 1:
        nest = replace(nest, dims=tuple(d for d in nest.dims if d.name not in reduced))
    else:
        reduced = frozenset()
    reductions = [k for k, d in enumerate(nest.dims) if d.reduction]
    parts, longest, rest = 1, 0, 0
    if reductions and nest.points:
        longest = max(reductions, key=lambda k: representative(nest.dims[k].extent))
        results = math.prod(representative(d.extent) for d in nest.dims if not d.reduction)
        if results < copies.results:
            extent = nest.dims[longest].extent
            parts = _parts(program, nest, representative(extent), copies)
            rest = extent % parts if copies.rest and not isinstance(extent, Size) else 0
    held = held or (nest.point.type if parts > 1 else None)
    owners = _owners(program, nest, parts, copies)
    return Scatter(nest.name, held, longest, parts, rest, owners, reduced, copies.ahead)


def _owners(program: ir.Program, nest: ir.Nest, parts: int, copies: Copies) -> int:
    """Of ranges of the first place that data say."""
    target = nest.point.target
    extents = program.tensor(target.tensor).layout.extents
    places = (
        n for n, s in zip(extents, target.subscripts, strict=True) if not isinstance(s, ir.Affine)
    )
    extent = next(places)
    shared = parts * math.prod(representative(d.extent) for d in nest.dims if not d.reduction)
    if isinstance(extent, Size) or nest.points == 0 or shared == 0:
        return 1
    return max(1, min(extent, copies.owners // shared))


def held_type(program: ir.Program, nest: ir.Nest) -> ScalarType | None:
    """The type of what sums and products are held in, if it is a wider one: that of 16-bit floats
    is float32, and float64 where many terms go into each element, so that rounding each of them
    would show. Where there are more elements than terms, copies would take longer than all else.
    """
    type_, op = nest.point.type, nest.point.op
    if not type_.is_float or op not in ("+", "*") or type_ == FLOAT64:
        return None
    if op == "+" and representative(nest.points) >= elements(program, nest):
        return FLOAT64
    return None if type_.compute == type_ else FLOAT32


def elements(program: ir.Program, nest: ir.Nest) -> int:
    """Of the target, as many as may be written."""
    layout, results = program.tensor(nest.point.target.tensor).layout, nest.dims
    extents = [d.extent for d in results if not d.reduction]
    for extent, s in zip(layout.extents, nest.point.target.subscripts, strict=True):
        if not isinstance(s, ir.Affine):
            extents.append(extent)
    return math.prod(map(representative, extents))


def _parts(program: ir.Program, nest: ir.Nest, extent: int, copies: Copies) -> int:
    """Of a reduction with so many points."""
    points, own = representative(nest.points), elements(program, nest)
    most = min(copies.most, points // copies.least, points // max(1, own * _UPDATES), extent // 2)
    return 1 << (most.bit_length() - 1) if most > 1 else 1
