"""What a thread of a GPU reads of operands before it computes: registers, filled in vectors where
memory allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.walk import loads, values_in
from tcl.grammar.sizes.varying import provably_equal


@dataclass(frozen=True, slots=True)
class Fragment:
    """An operand, as it is read in some unrolled loops and lanes."""

    load: ir.Load
    over: tuple[ir.Fold, ...]
    """The folds that it depends on, ``along`` last."""
    along: ir.Fold | None
    """The one in which ``width`` elements are read at once."""
    width: int
    guarded: tuple[str, ...]
    """Dimensions whose points have to be there; elsewhere it is zero."""


def hoistable(load: ir.Load) -> bool:
    """Whether an element can be read before it is known that it is needed."""
    return load.total and all(isinstance(s, ir.Affine) for s in load.ref.subscripts)


def fragments(
    geometry: Geometry, loops: Sequence[ir.Loop], body: Sequence[ir.Statement]
) -> list[Fragment]:
    """What can be read before unrolled loops and lanes around a body."""
    if not loops:
        return []
    values = (v for statement in body for v in values_in(statement))
    found = {x.ref: x for v in values for x in loads(v) if hoistable(x)}
    return [_fragment(geometry, load, loops) for load in found.values()]


def _fragment(geometry: Geometry, load: ir.Load, loops: Sequence[ir.Loop]) -> Fragment:
    tensor = geometry.program.tensor(load.ref.tensor)
    place = tensor.layout.place(load.ref)
    over = [x.fold for x in loops if not provably_equal(geometry.stride(place, x.fold), 0)]
    widths = {f: geometry.width(tensor.layout, place, f) for f in over}
    along = max(over, key=lambda f: widths[f], default=None)
    if along is None or widths[along] == 1:
        along = None
    else:
        over.sort(key=lambda f: f == along)
    dims = {f.dim for f, _ in geometry.strides(place)}
    guarded = [d for d in geometry.dims if d in dims and geometry.ragged[d] and not tensor.shared]
    width = 1 if along is None else widths[along]
    return Fragment(load, tuple(over), along, width, tuple(guarded))
