"""Dot products: neighbours of a reduction that one instruction multiplies and adds up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.fragments import Fragment, fragments
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import taken
from tcl.codegen.loopir.walk import dims_of_values
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import map_nest, refuse, too_many
from tcl.codegen.passes.knobs import (
    NONE,
    Decoded,
    KnobSubject,
    OptionKnobs,
    Values,
    as_numbers,
    as_text,
    padded,
)
from tcl.codegen.passes.vectorize import vector_dim
from tcl.grammar.ranges import intervals
from tcl.grammar.sizes.varying import Size, limits
from tcl.grammar.syntax.types import BFLOAT16, FLOAT32, INT8, INT32, UINT8, ScalarType


def value_range(value: ir.Value) -> intervals.Bounds:
    """The smallest and the largest value that a bool or an integer may have, as far as its
    operations tell. What may wrap around may be anything of its type."""
    found = _unwrapped_range(value)
    low, high = value.type.limits
    return found if low <= found[0] and found[1] <= high else (low, high)


def narrowest(value: ir.Value, types: Iterable[ScalarType]) -> ScalarType | None:
    """The first of some types that holds whatever the value may be; None if none does."""
    low, high = value_range(value)
    for type_ in types:
        least, most = type_.limits
        if least <= low and high <= most:
            return type_
    return None


def _unwrapped_range(value: ir.Value) -> intervals.Bounds:
    """As ``value_range``, before anything wraps around."""
    match value:
        case ir.Const(value=constant) if not value.type.is_float:
            return limits(constant) if isinstance(constant, Size) else (int(constant),) * 2
        case ir.Cast(operand=operand) if not operand.type.is_float:
            return value_range(operand)
        case ir.Unary(op="-", operand=operand):
            low, high = value_range(operand)
            return -high, -low
        case ir.Select(then=then, otherwise=otherwise):
            return intervals.either(value_range(then), value_range(otherwise))
        case ir.Binary(op="+" | "-" | "*" | "min" | "max" as op, left=left, right=right):
            return intervals.operation(op, value_range(left), value_range(right))
    return value.type.limits


_SIGN = 128
"""What takes an 8-bit integer to the other sign's range."""


@dataclass(frozen=True, slots=True)
class UseDotProducts:
    """Splits the innermost loop of a reduction into loops over groups of neighbouring points and
    one inside of a group, which an instruction does at once.

    That loop is the innermost one, inside of the lanes: so panels have the points of a group next
    to each other. The factors become what the instruction takes. Where it takes none of their
    signs, one of them is moved by 128, and what that adds to the sums is summed up as well.
    """

    nest: str
    sizes: tuple[int, ...]
    """Per dimension; 0, 1 or a missing size adds up one point after the other."""
    lanes: tuple[int, int]
    """As of ``Vectorize``."""
    device: CpuProfile
    matrix: bool = False
    """Whether its matrix unit does them."""

    def __call__(self, program: ir.Program) -> ir.Program:
        return map_nest(program, self.nest, self._dotted) if any(self.sizes) else program

    def _dotted(self, nest: ir.Nest) -> ir.Nest:
        reason = why_not_dotted(nest, self.sizes, self.lanes, self.device, self.matrix)
        refuse("dot", nest.name, reason)
        return dotted(nest, self.sizes, self.device, self.matrix)


def why_not_dotted(
    nest: ir.Nest,
    sizes: tuple[int, ...],
    lanes: tuple[int, int],
    device: CpuProfile,
    matrix: bool = False,
) -> str | None:
    """Why a nest, whatever its loops, cannot have these dot products with these lanes (as of
    ``Vectorize``), or None if it can. ``matrix``: those that a matrix unit does."""
    if reason := too_many(nest, sizes):
        return reason
    chosen = [(d, size) for d, size in zip(nest.dims, sizes, strict=False) if size > 1]
    if not chosen:
        return None
    if nest.sequential:
        return nest.sequential
    if nest.point.lets:
        return "it computes named values point by point"
    if len(chosen) > 1:
        named = " and ".join(d.name for d, _ in chosen)
        return f"an instruction adds points of one dimension, not of {named}"
    (dim, depth) = chosen[0]
    if not dim.reduction:
        return f"{dim.name} is not a reduction: its points are not summed"
    vector = vector_dim(nest, *lanes)
    if vector is None or vector.reduction:
        return "its sums have no lanes: vectorize a dimension of its results"
    return _why_no_fragment(nest.point, depth, device, matrix)


def _why_no_fragment(point: ir.Point, depth: int, device: CpuProfile, matrix: bool) -> str | None:
    if point.op != "+" or _sides(point.value) is None:
        return "it does not sum products of two values at every point"
    if products_of(point, depth, device, matrix=matrix) is not None:
        return None
    sums = point.type.compute
    there = {f.depth for f, _ in _choices(point, device, matrix)}
    if there:
        able = " or ".join(map(str, sorted(there)))
        return f"{device.name} adds {able} such products at once, not {depth}"
    types = " and ".join(str(_before_widening(side).type) for side in _sides(point.value) or ())
    return f"{device.name} has no instruction that sums products of {types} in {sums}"


def dotted(
    nest: ir.Nest, sizes: tuple[int, ...], device: CpuProfile, matrix: bool = False
) -> ir.Nest:
    """A nest that can have these dot products, with the loop over them. As ``UseDotProducts``."""
    chosen = [(d.name, size) for d, size in zip(nest.dims, sizes, strict=False) if size > 1]
    if not chosen:
        return nest
    ((dim, depth),) = chosen
    products = products_of(nest.point, depth, device, nest.lane.dim if nest.lane else "", matrix)
    if products is None:
        raise ir.IRError(f"nest {nest.name} has no dot products of {depth} points")
    innermost = nest.folds(dim)[-1]
    groups = ir.Fold(dim, innermost.level, depth, -(-innermost.count // depth))
    loops = (ir.Loop(groups) if x.fold == innermost else x for x in nest.loops)
    dot = ir.Loop(ir.Fold(dim, "dot", 1, depth), ir.Kind.DOT)
    point = replace(nest.point, value=products.value)
    return replace(nest, point=point, excess=products.excess).with_loops([*loops, dot])


@dataclass(frozen=True, slots=True)
class Products:
    """What an instruction multiplies instead of a point's own factors."""

    fragment: Fragment
    value: ir.Value
    """The product of the factors that it takes."""
    excess: ir.Value | None
    """What that is larger than the point's value, if it is not the same."""


def depths(nest: ir.Nest, device: CpuProfile, matrix: bool = False) -> tuple[int, ...]:
    """How many products of a nest a device adds up at once, most first; none if it cannot."""
    if nest.sequential or nest.point.lets or nest.point.op != "+":
        return ()
    found = {f.depth for f, _ in _choices(nest.point, device, matrix)}
    return tuple(sorted(found, reverse=True))


def matrix_fragment(nest: ir.Nest, device: CpuProfile) -> Fragment | None:
    """What the matrix unit of a device multiplies of a nest's sums; None if it cannot."""
    most = next(iter(depths(nest, device, matrix=True)), None)
    return next((f for f in fragments(device, matrix=True) if f.depth == most), None)


def matrix_dots(fragment: Fragment, mma: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The dot products (as of ``UseDotProducts``) that the matrix unit needs along these
    dimensions, of ``rank`` that there are; none without a reduction."""
    return tuple(fragment.depth if k == mma[2] else 0 for k in range(rank)) if mma[2:] else ()


def products_of(
    point: ir.Point, depth: int, device: CpuProfile, lane: str = "", matrix: bool = False
) -> Products | None:
    """What the best instruction for so many points of a sum of products multiplies; None if there
    is none. ``lane``: the dimension with the lanes."""
    sides = _sides(point.value)
    found = [(f, types) for f, types in _choices(point, device, matrix) if f.depth == depth]
    if sides is None or not found:
        return None
    # Without a factor that has to be moved, first of all.
    fragment, types = min(found, key=lambda choice: choice[1] is None)
    if types is not None:
        left, right = (_as(side, type_) for side, type_ in zip(sides, types, strict=True))
        return Products(fragment, _product(left, right, point.value), None)
    # The one that all lanes share is moved: what that adds is the same for all of its rows.
    one = next((k for k, side in enumerate(sides) if lane not in dims_of_values([side])), 0)
    own, to, by = (INT8, UINT8, _SIGN) if _fits(sides[one], INT8) else (UINT8, INT8, -_SIGN)
    sum_ = ir.Binary("+", ir.Cast(sides[one], INT32), ir.Const(by, INT32), INT32)
    moved, other = ir.Cast(sum_, to), _as(sides[1 - one], own)
    excess = _product(ir.Const(by, to), other, point.value)
    # In their order: options name operands by their place.
    first, second = (other, moved) if one else (moved, other)
    return Products(fragment, _product(first, second, point.value), excess)


def _choices(
    point: ir.Point, device: CpuProfile, matrix: bool = False
) -> Iterator[tuple[Fragment, tuple[ScalarType, ScalarType] | None]]:
    """The fragments for a sum of products, each with the types that it takes the factors as; None
    where one of them has to be moved to the range of the other sign."""
    sides = _sides(point.value)
    if sides is None:
        return
    for fragment in fragments(device, matrix):
        if not fragment.sums_up(point.type.compute):
            continue
        for types in dict.fromkeys((fragment.factors, fragment.factors[::-1])):
            if _fits(sides[0], types[0]) and _fits(sides[1], types[1]):
                yield fragment, types
        if set(fragment.factors) == {UINT8, INT8} and any(
            all(_fits(side, own) for side in sides) for own in (INT8, UINT8)
        ):
            yield fragment, None


def _sides(value: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """The factors of a product of 32-bit integers or of bfloat16 numbers; None if it is none."""
    if isinstance(value, ir.Cast) and (value.operand.type, value.type) == (BFLOAT16, FLOAT32):
        value = value.operand  # nothing is rounded before it is stored
    if not isinstance(value, ir.Binary) or value.op != "*":
        return None
    if value.type.is_integral:
        return (value.left, value.right) if value.type.bits == 32 else None
    if value.type not in (BFLOAT16, FLOAT32):
        return None  # factors are rounded to fewer values first
    both = taken(value.left), taken(value.right)
    exact = all(isinstance(v, ir.Load) and v.type == BFLOAT16 for v in both)
    return (value.left, value.right) if exact else None


def _fits(side: ir.Value, type_: ScalarType) -> bool:
    """Whether a factor can be given to an instruction as a type."""
    if type_.is_float or side.type.is_float:
        return taken(side).type == type_
    return narrowest(side, (type_,)) is not None


def _as(side: ir.Value, type_: ScalarType) -> ir.Value:
    """A factor as a type that holds it."""
    plain = _before_widening(side)
    return plain if plain.type == type_ else ir.Cast(plain, type_)


def _before_widening(side: ir.Value) -> ir.Value:
    """A factor before it was made wider."""
    while isinstance(side, ir.Cast) and (
        (side.operand.type == BFLOAT16 and side.type.is_float)
        or (side.operand.type.is_integral and narrowest(side.operand, (side.type,)) is not None)
    ):
        side = side.operand
    return side


def _product(left: ir.Value, right: ir.Value, like: ir.Value) -> ir.Value:
    """The product of factors that an instruction takes, of the type of another one."""
    if like.type == BFLOAT16:
        return ir.Binary("*", left, right, like.type)
    return ir.Binary("*", ir.Cast(left, like.type), ir.Cast(right, like.type), like.type)


def dot_knobs(on: KnobSubject) -> OptionKnobs:
    """A reduction, and how many of its points an instruction adds up."""
    dims = on.nest.dims
    texts = [
        as_text(k, depth)
        for k in on.movable
        if dims[k].reduction
        for depth in depths(on.nest, on.device)
    ]
    own = () if on.default.mma else padded(on.default.dot, len(dims))
    texts += [as_text(k, size) for k, size in enumerate(own) if size > 1]
    knob = Knob(f"{on.nest.name}.dot", tuple(dict.fromkeys((NONE, *texts))), NONE, ordered=False)
    knobs = (knob,) if texts else ()
    unit = matrix_fragment(on.nest, on.device) or next(fragments(on.device, matrix=True), None)

    def decode(values: Values, decoded: Decoded) -> tuple[int, ...]:
        if decoded.mma and unit is not None:
            return matrix_dots(unit, decoded.mma, len(dims))
        if not knobs or values[knob.name] == NONE:
            return ()
        position, depth = as_numbers(values[knob.name])
        return tuple(depth if k == position else 0 for k in range(len(dims)))

    def encode(o: NestOptions) -> dict[str, Value]:
        texts = (
            [] if o.mma else [as_text(k, size) for k, size in enumerate(o.dot or ()) if size > 1]
        )
        return {knob.name: " ".join(texts) or NONE}

    def canonical(values: Values, decoded: Decoded) -> dict[str, Value]:
        return {knob.name: NONE} if decoded.mma and knobs else {}

    return OptionKnobs("dot", knobs, decode, encode, canonical)
