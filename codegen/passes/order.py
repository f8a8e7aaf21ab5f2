"""Orders the loops of a nest, level by level."""

from __future__ import annotations

from collections.abc import Sequence

from tcl.codegen.loopir import ir
from tcl.codegen.options.knobs import Knob, Value, first_equivalent, loop_orders
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import map_nest, refuse
from tcl.codegen.passes.knobs import (
    Decoded,
    KnobSubject,
    OptionKnobs,
    Values,
    and_own,
    as_numbers,
    as_text,
    padded,
)
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """Orders the loops of one level; the other levels stay where they are."""

    nest: str
    level: str
    """``tile`` or ``point``."""
    permutation: tuple[int, ...]
    """Positions of dimensions, outermost first; () leaves the order as it is."""

    def __call__(self, program: ir.Program) -> ir.Program:
        return map_nest(program, self.nest, self._reorder) if self.permutation else program

    def _reorder(self, nest: ir.Nest) -> ir.Nest:
        option = "order" if self.level == "tile" else "inner_order"
        refuse(option, nest.name, why_not_ordered(nest, self.permutation))
        return ordered(nest, self.level, self.permutation)


def why_not_ordered(nest: ir.Nest, permutation: tuple[int, ...]) -> str | None:
    """Why a nest, whatever its loops, cannot have them in this order, or None if it can."""
    natural = tuple(range(len(nest.dims)))
    if permutation in ((), natural):
        return None
    if sorted(permutation) != list(natural):
        return (
            f"it has {len(natural)} dimensions, but the order {permutation} does not name each of "
            "them once"
        )
    if nest.running is None:
        return nest.sequential
    results = sum(not d.reduction for d in nest.dims)
    return None if permutation[results:] == natural[results:] else nest.sequential


def ordered(nest: ir.Nest, level: str, permutation: tuple[int, ...]) -> ir.Nest:
    """A nest that can have this order, with the loops of a level in it. As ``Order``."""
    if not permutation:
        return nest
    rank = {nest.dims[position].name: k for k, position in enumerate(permutation)}
    own = (x for x in nest.loops if x.fold.level == level)
    chosen = iter(sorted(own, key=lambda loop: rank[loop.fold.dim]))
    return nest.with_loops(next(chosen) if x.fold.level == level else x for x in nest.loops)


def order_knobs(on: KnobSubject, option: str) -> OptionKnobs:
    """The order of the loops over tiles, or of those inside: a permutation of the movable
    dimensions."""
    movable, dims = on.movable, on.nest.dims
    texts = tuple(as_text(*o) for o in loop_orders([dims[k].reduction for k in movable]))

    def text(permutation: Sequence[int] | None) -> str:
        return as_text(*(movable.index(k) for k in permutation or () if k in movable))

    own = text(getattr(on.default, option))
    knob = Knob(f"{on.nest.name}.{option}", and_own(texts, own), texts[0], ordered=False)
    knobs = (knob,) if len(texts) > 1 else ()

    def decode(values: Values, _: Decoded) -> tuple[int, ...]:
        places = as_numbers(values[knob.name]) if knobs else ()
        if places == tuple(sorted(places)):  # as written: plans say that by no order at all
            return ()
        permutation = list(range(len(dims)))
        for slot, place in zip(movable, places, strict=True):
            permutation[slot] = movable[place]
        return tuple(permutation)

    def encode(o: NestOptions) -> dict[str, Value]:
        return {k.name: text(getattr(o, option)) or k.default for k in knobs}

    def canonical(values: Values, decoded: Decoded) -> dict[str, Value]:
        """Where dimensions are not tiled, no loops over tiles of theirs have an order."""
        tiles = padded(decoded.tile, len(dims))
        inside = on.points_inside(decoded.chunk, ())
        tiled = (place for place, k in enumerate(movable) if 0 < tiles[k] < inside[k])
        return {knob.name: first_equivalent(knob, values[knob.name], tiled)}

    if option == "inner_order":
        return OptionKnobs(option, knobs, decode, encode, exact=False)
    return OptionKnobs(option, knobs, decode, encode, canonical, exact=False)
