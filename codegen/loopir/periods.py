"""Remainders and quotients of index expressions, as those of ``X((i + 1) % N)``, and the smaller or
larger of two, as that of ``X(max(i - 1, 0))``: between two multiples of the divisor, or on one side
of where both are equal, they are index expressions themselves."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias, cast

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import Bound, bounds_of, index_of
from tcl.codegen.loopir.walk import dims_of_values, loads, rebuilt, values_of, walk, with_values
from tcl.grammar.ranges.intervals import operation
from tcl.grammar.sizes.varying import Size, Undecided, provably_at_least, representative
from tcl.grammar.syntax.types import INT64
from tcl.grammar.tree.size_expressions import quotient

Piece: TypeAlias = tuple[ir.Affine, tuple[Bound, ...]]
"""An index expression, and the bounds within which a value is equal to it."""


_NO_LETS: Mapping[str, ir.Value] = MappingProxyType({})


def interval_of(
    value: ir.Value,
    dims: Mapping[str, ir.Dim],
    lets: Mapping[str, ir.Value] = _NO_LETS,
    known: dict[str, tuple[int, int] | None] | None = None,
) -> tuple[int, int] | None:
    """A smallest and a largest value of an integer, both taken if it is an index expression; None
    if none are known, it may wrap, or there is no point. ``lets``: the values of variables;
    ``known``: of those that came up before."""
    if any(d.extent == 0 for d in dims.values()):
        return None
    known = {} if known is None else known
    found: tuple[int, int] | None = None
    match value:
        case ir.Variable(name=name) if name in lets:
            if name not in known:
                known[name] = interval_of(lets[name], dims, lets, known)
            return known[name]
        case ir.Position(index=index):
            found = index.interval(dims)
        case ir.Const(value=int(constant), type=type_) if not type_.is_bool:
            return constant, constant
        case ir.Binary(op="+" | "-" | "*" | "/" | "%" | "min" | "max" as op, type=type_) if (
            type_.is_integral
        ):
            sides = [interval_of(side, dims, lets, known) for side in (value.left, value.right)]
            if op in ("min", "max"):  # of a side of which nothing is known, the type says it
                fixed = (s and not any(isinstance(x, Size) for x in s) for s in sides)
                sides = [s if k else type_.limits for s, k in zip(sides, fixed, strict=True)]
            one, other = sides
            with suppress(Undecided):
                if one is not None and other is not None:
                    found = cast("tuple[int, int]", operation(op, one, other))
    if found is None:
        return None
    least, most = value.type.limits
    return found if least <= found[0] and found[1] <= most else None


def piece_of(
    value: ir.Value,
    dims: Mapping[str, ir.Dim],
    lets: Mapping[str, ir.Value],
    known: dict[str, Piece | None] | None = None,
) -> Piece | None:
    """A value that is an index expression within some bounds, in which most of its points lie; None
    for one that is no such thing. ``lets``: the values of variables; ``known``: of those that came
    up before."""
    known = {} if known is None else known
    match value:
        case ir.Variable(name=name) if name in lets:
            if name not in known:
                known[name] = piece_of(lets[name], dims, lets, known)
            return known[name]
        case ir.Binary(op="+" | "-" as op, left=left, right=right, type=type_) if type_ == INT64:
            one, other = (piece_of(side, dims, lets, known) for side in (left, right))
            if one is None or other is None:
                return None
            total = one[0] + (other[0] if op == "+" else other[0].scaled(-1))
            return total, tuple(dict.fromkeys(one[1] + other[1]))
        case ir.Binary(op="%" | "/", left=left, right=right, type=type_) if type_ == INT64:
            one, by = piece_of(left, dims, lets, known), index_of(right)
            if one is None or by is None or by.terms or representative(by.constant) <= 0:
                return None
            return _between_multiples(value.op, one, by.constant, dims)
        case ir.Binary(op="min" | "max" as op, left=left, right=right, type=type_) if (
            type_ == INT64
        ):
            for near, far in ((left, right), (right, left)):
                if index_of(far) is None and (found := _beyond(op, near, far, dims, lets, known)):
                    return found
            one, other = (piece_of(side, dims, lets, known) for side in (left, right))
            return None if one is None or other is None else _on_one_side(op, one, other, dims)
        case ir.Select(condition=condition, then=then, otherwise=otherwise):
            usual = usual_side(condition, dims)
            found = usual and piece_of(then if usual[1] else otherwise, dims, lets, known)
            return found and usual and (found[0], tuple(dict.fromkeys((*found[1], *usual[0]))))
    index = index_of(value)
    return None if index is None else (index, ())


def usual_side(
    condition: ir.Value, dims: Mapping[str, ir.Dim]
) -> tuple[tuple[Bound, ...], bool] | None:
    """Bounds within which a condition holds, or within which it does not, and which it is: those
    within which the middle of the points lies."""
    for holds in (True, False):
        bounds = bounds_of(condition, holds=holds)
        if bounds is not None and all(_has_middle(bound, dims) for bound in bounds):
            return tuple(bounds), holds
    return None


def _has_middle(bound: Bound, dims: Mapping[str, ir.Dim]) -> bool:
    index, most = bound
    if any(name not in dims for name, _ in index.terms):
        return False
    low, high = index.interval(dims)
    return representative(low) + representative(high) < 2 * representative(most)


def _between_multiples(
    op: str, of: Piece, divisor: int, dims: Mapping[str, ir.Dim]
) -> Piece | None:
    """A remainder or quotient, from one multiple of the divisor to the next: those between which
    the middle of its points lies. Quotients are rounded towards zero, so that around it there are
    twice as many."""
    index, bounds = of
    if any(name not in dims for name, _ in index.terms):
        return None
    least, most = index.interval(dims)
    low, high = representative(least), representative(most)
    times = quotient((low + high) // 2, representative(divisor))
    first = divisor * times if times > 0 else divisor * (times - 1) + 1
    stop = divisor * (times + 1) if times >= 0 else divisor * times + 1
    if not provably_at_least(least, first):
        bounds += ((index.scaled(-1) + ir.Affine((), first), 1),)
    if not provably_at_least(stop, most + 1):
        bounds += ((index + ir.Affine((), -stop), 0),)
    found = ir.Affine((), times) if op == "/" else index + ir.Affine((), -divisor * times)
    return found, bounds


def _on_one_side(op: str, one: Piece, other: Piece, dims: Mapping[str, ir.Dim]) -> Piece | None:
    """The smaller or larger of two, on the side on which the middle of its points lies."""
    chosen, rest = one[0], other[0]
    apart = (chosen + rest.scaled(-1)).scaled(1 if op == "min" else -1)
    if any(name not in dims for name, _ in apart.terms):
        return None
    least, most = apart.interval(dims)
    if representative(least) + representative(most) > 0:
        chosen, apart, most = rest, apart.scaled(-1), -least
    if provably_at_least(0, most):
        return chosen, tuple(dict.fromkeys(one[1] + other[1]))
    return (chosen, tuple(dict.fromkeys((*one[1], *other[1], (apart, 1))))) if apart.terms else None


def _beyond(
    op: str,
    value: ir.Value,
    other: ir.Value,
    dims: Mapping[str, ir.Dim],
    lets: Mapping[str, ir.Value],
    known: dict[str, Piece | None],
) -> Piece | None:
    """The smaller or larger of two, where most points of one lie beyond all of the other, as of
    ``max(i - 6, i % 3)``; else None."""
    piece, limits = piece_of(value, dims, lets, known), interval_of(other, dims, lets)
    if piece is None or limits is None:
        return None
    index, bounds = piece
    apart = index + ir.Affine((), -limits[0] if op == "min" else -limits[1])
    apart = apart if op == "min" else apart.scaled(-1)
    if not index.terms or any(name not in dims for name, _ in index.terms):
        return None
    least, most = apart.interval(dims)
    if representative(least) + representative(most) > 0:
        return None
    return index, bounds if provably_at_least(0, most) else (*bounds, (apart, 1))


def wrapped_axes(ref: ir.TensorRef) -> Iterator[tuple[int, ir.Affine, int]]:
    """The axes of an element along which it lies as ``X((i + 1) % N)`` does, with the index
    expressions, and with divisors that are the same for all sizes."""
    for axis, s in enumerate(ref.subscripts):
        match s:
            case ir.Computed(value=ir.Binary(op="%", left=left, right=right), check=False):
                index, by = index_of(left), index_of(right)
                if index is None or by is None or by.terms or isinstance(by.constant, Size):
                    continue
                if by.constant > 0:
                    yield axis, index, by.constant


def moves_others(ref: ir.TensorRef, axis: int, names: Container[str]) -> bool:
    """Whether other subscripts than that of an axis may depend on one of some dimensions."""
    for k, s in enumerate(ref.subscripts):
        value = ir.Position(s, INT64) if isinstance(s, ir.Affine) else s.value
        checked = isinstance(s, ir.Computed) and s.check
        unknown = checked or any(isinstance(v, ir.Variable) for v in walk(value))
        named = dims_of_values([value])
        if k != axis and (unknown or any(name in names for name in named)):
            return True
    return False


def periods_of(nest: ir.Nest, point: ir.Point) -> Mapping[ir.Computed, Piece]:
    """The places of a point's operands that remainders and quotients decide, and nothing else."""
    dims = {d.name: d for d in nest.dims}
    if any(representative(d.extent) == 0 for d in nest.dims):
        return {}
    lets = {let.name: let.value for let in point.lets}
    every = (s for value in values_of(point) for load in loads(value) for s in load.ref.computed)
    found: dict[ir.Computed, Piece] = {}
    for s in every:
        if not s.check and s not in found:
            piece = piece_of(s.value, dims, lets)
            if piece is not None:
                found[s] = piece
    return found


def within_periods(nest: ir.Nest, point: ir.Point, bounds: Container[Bound]) -> ir.Point:
    """What a point does within some bounds: places that are index expressions there are such."""
    places = {
        s: index
        for s, (index, asked) in periods_of(nest, point).items()
        if all(bound in bounds for bound in asked)
    }

    def placed(value: ir.Value) -> ir.Value:
        if not isinstance(value, ir.Load):
            return rebuilt(value, placed)
        subscripts = tuple(map(place, value.ref.subscripts))
        return replace(value, ref=replace(value.ref, subscripts=subscripts))

    def place(s: ir.Subscript) -> ir.Subscript:
        if isinstance(s, ir.Affine):
            return s
        return places[s] if s in places else replace(s, value=placed(s.value))

    if not places:
        return point
    made = with_values(point, placed)
    lets, value = [*made.lets], made.value
    if point.kept or point.scatters:
        return made
    while lets and all(v.name != lets[-1].name for v in walk(value) if isinstance(v, ir.Variable)):
        lets.pop()  # such places alone were made of it
    return replace(made, lets=tuple(lets))
