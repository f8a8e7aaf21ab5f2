"""Cycles of the arithmetic of one point of a nest, or of one vector of points, for the model of a
core: by the dimensions that operations depend on, as points that differ in others share them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from typing import TypeAlias

from tcl.codegen.choose.cpu.costs import (
    CALL_CYCLES,
    DIVISION_CYCLES,
    EXTREME_CYCLES,
    LONG_REMAINDER_CYCLES,
    OPERATION_CYCLES,
    RECIPROCAL_CYCLES,
    SERIAL_SHARE,
    divider,
)
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import SHORT, index_of
from tcl.codegen.loopir.cost import deciding_dims
from tcl.codegen.loopir.quotients import COMPARISONS, decided
from tcl.codegen.loopir.terms import guard, product, taken, terms
from tcl.codegen.loopir.walk import children, dims_of_lets, dims_of_values, values_of, walk
from tcl.codegen.passes.fusion.groups import long_calls
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_at_least
from tcl.grammar.syntax.types import FLOAT64, INT32, INT64, ScalarType

NORMS = frozenset("hypot rhypot norm3d norm4d rnorm3d rnorm4d".split())
"""Built-in functions that are a few instructions, in float64 for float32, too: on Zen 4, bytes made
from ``rnorm3d`` of floats take .87 of the time with 32 lanes instead of 64."""
_NORM_CYCLES = 8.0
"""What they take besides a division and a square root."""
_ROOTS = frozenset({"sqrt", "rsqrt", "fdivide"})
WIDE_FUNCTIONS = frozenset(
    "acos acosh asin asinh atan atan2 atanh cbrt cosh erfc hypot log1p normcdf pow rcbrt"
    " sinh".split()
)
"""Those that are computed in float64 for float32, too."""
_DIVIDING = NORMS | _ROOTS
"""Built-in functions in which a core divides, and does little else."""


def arithmetic_cycles(
    nest: ir.Nest, call: float = CALL_CYCLES, fused: Collection[ir.Point] = ()
) -> dict[frozenset[str], float]:
    """Cycles per point, by the dimensions that the operations depend on; ``call``: of a built-in
    function that is more than an instruction; ``fused``: what reductions that are fused with the
    nest do besides."""
    return _counted(nest, fused, lambda value: _cycles(value, call), _accumulation_cycles)


def issued_cycles(nest: ir.Nest, fused: Collection[ir.Point] = ()) -> dict[frozenset[str], float]:
    """As ``arithmetic_cycles``, without what the unit that divides takes besides."""
    return _counted(nest, fused, issued, _accumulation_cycles)


@dataclass(frozen=True, slots=True)
class Division:
    """What the unit that divides does for a value."""

    dims: frozenset[str]
    """The dimensions that the value depends on ..."""
    divisor: frozenset[str] | None
    """... and its divisor; None of square roots, which may be divided by, too."""
    cycles: float
    """Of a vector of them ..."""
    alone: float
    """... or a single one."""

    def along(self, lane: str | None, device: CpuProfile, halves: int) -> tuple[float, float]:
        """Cycles of that unit with lanes along a dimension, and of other arithmetic."""
        if lane is None or lane not in self.dims:
            return self.alone, 0.0
        if self.divisor is not None and lane not in self.divisor and device.fused:
            return 0.0, RECIPROCAL_CYCLES * halves
        return self.cycles * (halves / 2 if device.halves_vectors else 1), 0.0


def divisions(
    nest: ir.Nest, device: CpuProfile, lanes: int, fused: Collection[ir.Point] = ()
) -> tuple[Division, ...]:
    """All of a point, or a vector of so many points."""
    values: list[ir.Value] = []

    def noted(value: ir.Value) -> float:
        if any(_divided(value)):
            values.append(value)
        return 0.0

    _counted(nest, fused, noted, lambda point, multiplied: 0.0)
    lets = dims_of_lets(nest.point.lets) if values else {}
    found = []
    for v in values:
        divisor = dims_of_values([children(v)[1]], lets) if _divided(v) == (1, 0) else None
        cycles = [_divider_cycles(v, device, n) for n in (lanes, 1)]
        found.append(Division(dims_of_values([v], lets), divisor, *cycles))
    return tuple(found)


def _divided(value: ir.Value) -> tuple[int, int]:
    """Quotients and square roots that a value is made of, without others inside."""
    match value:
        case ir.Binary(op="/", type=type_) if type_.is_float:
            return 1, 0
        case ir.Call(name=name) if name in _DIVIDING:
            return int(name[0] == "r" or name == "fdivide"), int(name != "fdivide")
    return 0, 0


def _divider_cycles(value: ir.Value, device: CpuProfile, lanes: int) -> float:
    """Cycles of the unit that divides for so many of a value."""
    quotients, roots = _divided(value)
    if not quotients + roots:
        return 0.0
    wide = isinstance(value, ir.Call) and value.name in NORMS
    itemsize = FLOAT64.itemsize if wide else value.type.compute.itemsize
    unit, halves = divider(device), lanes * itemsize / 32
    quotient, root = (
        each[itemsize][halves > 0.5] * max(1.0, halves) for each in (unit.quotient, unit.root)
    )
    return quotients * quotient + roots * root


def wide_cycles(
    nest: ir.Nest, fused: Collection[ir.Point], registers: Callable[[ScalarType], int]
) -> dict[frozenset[str], float]:
    """As ``arithmetic_cycles``, where lanes of wider types take several ``registers``."""

    def cycles(value: ir.Value) -> float:
        types = [v.type for v in (value, *children(value)) if not v.type.is_bool]
        return issued(value) * max((registers(t) for t in types), default=1)

    def added(point: ir.Point, multiplied: bool) -> float:
        return _accumulation_cycles(point, multiplied) * registers(point.type)

    return _counted(nest, fused, cycles, added)


def addition_cycles(nest: ir.Nest, fused: Collection[ir.Point] = ()) -> dict[frozenset[str], float]:
    """The part of ``arithmetic_cycles`` that is additions and subtractions of floats, without those
    that an instruction does besides a product."""
    return _counted(nest, fused, _added_cycles, _accumulated_alone)


def summed_comparisons(nest: ir.Nest, fused: Collection[ir.Point] = ()) -> int:
    """How many of a point's sums count where one element is less than another, or equal. Vectors as
    long as a line have that in registers for masks, one at a time: on Zen 4 such counts of ints,
    floats and doubles take .72 to .8 of the time in halves, of several conditions 1.1."""
    return sum(
        point.op == "+"
        and isinstance(value := taken(point.value), ir.Binary)
        and value.op in COMPARISONS
        and all(isinstance(x, ir.Load) for x in (value.left, value.right))
        and value.left.type.itemsize >= INT32.itemsize
        for point in ((nest.point, *fused) if nest.reduces else ())
    )


def conversion_cycles(nest: ir.Nest) -> dict[frozenset[str], float]:
    """The part of ``arithmetic_cycles`` that makes another type of what is read, where nothing is
    reduced: of what several points read, once."""
    return {} if nest.reduces else _counted(nest, (), _converted_cycles, _accumulated_alone)


def beside_each_other(cycles: float, additions: float) -> float:
    """Of so many cycles, where these of them that are additions run beside the others: the longer
    of both, and a part of the shorter."""
    return cycles - (1.0 - SERIAL_SHARE) * min(additions, cycles - additions)


def calling_shares(nest: ir.Nest, fused: Collection[ir.Point]) -> dict[frozenset[str], float]:
    """Those dimensions of ``arithmetic_cycles`` on whose values built-in functions are called that
    are many instructions, each of which waits for the one before, and the part of these functions
    that gain from vectors as long as a line. Those that are computed in a wider type have such
    vectors anyway: on Zen 4, ``log1p``, ``asin`` and ``atan2`` of float32 take 1.8 to 2.2 times as
    long on 16 lanes as on 8."""

    def called(value: ir.Value) -> float:
        return _cycles(value) - _cycles(value, 0.0)

    def gaining(value: ir.Value) -> float:
        wide = isinstance(value, ir.Call) and value.name in WIDE_FUNCTIONS
        return 0.0 if wide and value.type.compute != FLOAT64 else called(value)

    every, some = (_counted(nest, fused, each, lambda *_: 0.0) for each in (called, gaining))
    return {dims: some.get(dims, 0.0) / cycles for dims, cycles in every.items()}


_Cycles: TypeAlias = dict[frozenset[str], float]


def _counted(
    nest: ir.Nest,
    fused: Collection[ir.Point],
    cycles: Callable[[ir.Value], float],
    accumulation: Callable[[ir.Point, bool], float],
) -> _Cycles:
    """Cycles per point, by the dimensions that the operations depend on. ``accumulation``: of one
    of the terms that a point adds up, which may be a product."""
    counter = _Counter(cycles)
    for let in nest.point.lets:
        counter.variables[let.name] = counter.add(let.value)
    op, value = nest.point.op, nest.point.value
    if op == "=":
        counter.add(value)
        return counter.found
    every = frozenset(d.name for d in nest.dims)
    for point in (nest.point, *fused):
        for term in terms(point.op, point.value):
            condition, added = guard(point.op, term)
            both = product(added) if point.op == "+" else None
            if each := accumulation(point, both is not None):
                counter.found[every] = counter.found.get(every, 0.0) + each
            for part in (condition, *((added,) if both is None else _factors(both))):
                if part is not None:
                    counter.add(part)
    return counter.found


def _factors(product: ir.Binary) -> Iterator[ir.Value]:
    """Those of a product that is added up: an instruction subtracts it as well."""
    for value in (product.left, product.right):
        yield value.operand if isinstance(value, ir.Unary) and value.op == "-" else value


def _accumulation_cycles(point: ir.Point, multiplied: bool) -> float:
    """The accumulation is one instruction, with a product and a guard in it; a minimum or maximum
    of floats is more."""
    extreme = point.op in ("min", "max") and point.type.is_float
    return EXTREME_CYCLES if extreme else OPERATION_CYCLES


def choosing_dims(nest: ir.Nest, fused: Collection[ir.Point]) -> tuple[frozenset[str], ...]:
    """The dimensions of each condition under which something is added up."""
    lets = dims_of_lets(nest.point.lets)
    found = []
    for point in (nest.point, *fused):
        for term in terms(point.op, point.value):
            condition, added = guard(point.op, term)
            if condition is not None and not isinstance(added, ir.Const):
                found.append(dims_of_values([condition], lets))
    return tuple(found)


def _accumulated_alone(point: ir.Point, multiplied: bool) -> float:
    adds = point.op == "+" and point.type.is_float and not multiplied
    return OPERATION_CYCLES if adds else 0.0


class _Counter:
    """Adds up the cycles of values: of those that are computed twice, as both factors of a square
    may be, once."""

    def __init__(self, cycles: Callable[[ir.Value], float]) -> None:
        self.cycles = cycles
        self.variables: dict[str, frozenset[str]] = {}
        self.found: _Cycles = {}
        self.numbers: dict[Hashable, int] = {}
        """Of different values."""

    def add(self, value: ir.Value) -> frozenset[str]:
        """Adds the cycles of a value; the dimensions that it depends on."""
        dims: dict[int, frozenset[str]] = {}
        numbers: dict[int, int] = {}
        for v in reversed(list(walk(value))):  # what is inside comes first
            inside = children(v)
            key = _without_children(v), *[numbers[id(c)] for c in inside]
            new = key not in self.numbers
            numbers[id(v)] = self.numbers.setdefault(key, len(self.numbers))
            own = _own_dims(v)
            if isinstance(v, ir.Variable):
                own = self.variables.get(v.name, own)
            dims[id(v)] = own.union(*(dims[id(c)] for c in inside))
            cycles = self.cycles(v) if new else 0.0
            if cycles:
                self.found[dims[id(v)]] = self.found.get(dims[id(v)], 0.0) + cycles
        return dims[id(value)]


def _without_children(value: ir.Value) -> Hashable:
    """What makes a value differ from others that are made of the same values."""
    match value:
        case ir.Binary(op=op) | ir.Unary(op=op) | ir.Call(name=op):
            return type(value), op, value.type
        case ir.Cast() | ir.Select():
            return type(value), value.type
        case ir.Load(ref=ref):
            affine = (s if isinstance(s, ir.Affine) else None for s in ref.subscripts)
            return ref.tensor, tuple(affine)
    return value


def _own_dims(value: ir.Value) -> frozenset[str]:
    """The dimensions that a value names, without what it is made of."""
    match value:
        case ir.Position(index=index):
            return frozenset(name for name, _ in index.terms)
        case ir.Load(ref=ref):
            return ref.names
    return frozenset()


def calls_functions(point: ir.Point) -> bool:
    """Whether a point calls functions that are more than a division or two."""
    return any(c.name not in _ROOTS for v in values_of(point) for c in long_calls(v))


def _cycles(value: ir.Value, call: float = CALL_CYCLES) -> float:
    match value:
        case ir.Call(name=name) if name in _DIVIDING:
            return CALL_CYCLES
        case ir.Call(name=name):
            return OPERATION_CYCLES if name in SHORT else call
        case ir.Binary(op="/", type=type_) if type_.is_float:
            return DIVISION_CYCLES
        case ir.Binary(op="/" | "%", right=right) if any(
            isinstance(v, ir.Load | ir.Select) for v in walk(right)
        ):
            return CALL_CYCLES  # by what data or indices decide, or a remainder of floats by that
        case ir.Binary(op="/" | "%", left=left, right=right, type=type_) if type_ == INT64 and any(
            isinstance(v, ir.Load) for v in walk(left)
        ):
            return OPERATION_CYCLES if _is_power_of_two(right) else LONG_REMAINDER_CYCLES
        case ir.Binary(op="min" | "max", type=type_) if type_.is_float:
            return EXTREME_CYCLES
        case ir.Unary() | ir.Binary() | ir.Select() | ir.Cast():
            return OPERATION_CYCLES
    return 0.0


def whole_cycles(value: ir.Value, device: CpuProfile, lanes: int) -> float:
    """Of a vector of so many of a value, the unit that divides included."""
    return issued(value) + _divider_cycles(value, device, lanes)


def issued(value: ir.Value) -> float:
    """As ``_cycles``, without what the unit that divides takes besides."""
    if isinstance(value, ir.Call) and value.name in NORMS:
        return _NORM_CYCLES
    return OPERATION_CYCLES * sum(_divided(value)) or _cycles(value)


def _is_power_of_two(divisor: ir.Value) -> bool:
    """Whether it is a number of which one bit is set: integers are shifted."""
    index = index_of(divisor)
    return index is not None and not index.terms and abs(index.constant).bit_count() == 1


def adds_floats(value: ir.Value) -> bool:
    return isinstance(value, ir.Binary) and value.op in ("+", "-") and value.type.is_float


def _added_cycles(value: ir.Value) -> float:
    return OPERATION_CYCLES if adds_floats(value) else 0.0


def _converted_cycles(value: ir.Value) -> float:
    converts = isinstance(value, ir.Cast) and isinstance(value.operand, ir.Load)
    return OPERATION_CYCLES if converts else 0.0


DECIDED = 16
"""Points of the dimensions of conditions up to which all of them may be written out ..."""
_DECIDED_STEPS = 64
"""... in a reduction, where register tiles of a part of them may be enough."""


def deciding_sizes(nest: ir.Nest, fused: Collection[ir.Point] = ()) -> dict[str, int]:
    """The extents of the few dimensions that decide conditions of what is chosen, and nothing
    besides; empty if there are none, or too many points of them."""
    most = _DECIDED_STEPS if nest.reduces else DECIDED
    lets = {let.name: let.value for let in nest.point.lets}
    found: dict[str, int] = {}
    for value in (nest.point.value, *lets.values(), *(point.value for point in fused)):
        for v in walk(value):
            names = deciding_dims(v.condition, lets) if isinstance(v, ir.Select) else None
            sizes = {name: nest.dim(name).extent for name in names or ()}
            if all(provably_at_least(most, size) for size in sizes.values()):
                found |= sizes
    return found if 1 < math.prod(found.values()) <= most else {}


def decided_cycles(
    nest: ir.Nest,
    sizes: Mapping[str, int],
    fused: Collection[ir.Point] = (),
    cycles: Callable[[ir.Value], float] | None = None,
) -> dict[frozenset[str], float]:
    """As ``arithmetic_cycles``, where all points of some dimensions are written out: the conditions
    that they decide are known, and what several of these points compute is computed once.
    ``cycles``: of one value."""
    lets = {let.name: let.value for let in nest.point.lets}
    counter = _DecidedCounter(sizes, lets, cycles or _cycles)
    ranges = (range(d.first, d.first + d.extent) for d in map(nest.dim, sizes))
    for place in itertools.product(*ranges):
        counter.move(dict(zip(sizes, place, strict=True)))
        if nest.point.op == "=":
            counter.visit(nest.point.value)
        else:
            for point in (nest.point, *fused):
                counter.accumulate(nest, point)
    return counter.found


class _DecidedCounter:
    """Adds up cycles point by point along a few dimensions of such extents."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        lets: Mapping[str, ir.Value],
        cycles: Callable[[ir.Value], float],
    ) -> None:
        self.sizes, self.lets, self.cycles = sizes, lets, cycles
        self.found: _Cycles = {}
        self.counted = set[tuple[int, ...]]()
        """What was computed at which places."""
        self.known: dict[int, frozenset[str] | None] = {}
        """As of ``known_dims``, by value."""

    def move(self, at: Mapping[str, int]) -> None:
        """To the next point."""
        self.at = at
        self.seen: dict[int, frozenset[str]] = {}

    def known_dims(self, value: ir.Value) -> frozenset[str] | None:
        """The dimensions that decide a value, if it is a number at each point."""
        if id(value) not in self.known:
            names = deciding_dims(value, self.lets)
            inside = names is not None and names <= self.sizes.keys()
            self.known[id(value)] = frozenset(names or ()) if inside else None
        return self.known[id(value)]

    def holds(self, condition: ir.Value) -> bool | None:
        """Whether it does here; None if that is not known."""
        if not self.known_dims(condition):
            return None
        found = decided(condition, self.at, self.lets)
        return None if found is None else bool(found)

    def accumulate(self, nest: ir.Nest, point: ir.Point) -> None:
        """Adds what a reduction does at this point."""
        op, every = point.op, frozenset(d.name for d in nest.dims)
        for term in terms(op, point.value):
            condition, added = guard(op, term)
            holds = self.holds(condition) if condition is not None else True
            if holds is False:
                continue
            if condition is not None and holds is None:
                self.visit(condition)
            both = product(added) if op == "+" else None
            for part in (added,) if both is None else _factors(both):
                self.visit(part)
            self._add(every, _accumulation_cycles(point, both is not None))

    def visit(self, value: ir.Value) -> frozenset[str]:
        """Adds what a value takes at this point; the dimensions that it depends on."""
        if id(value) not in self.seen:
            names = self.known_dims(value)
            self.seen[id(value)] = self._visited(value) if names is None else names
        return self.seen[id(value)]

    def _visited(self, value: ir.Value) -> frozenset[str]:
        if isinstance(value, ir.Variable) and value.name in self.lets:
            return self.visit(self.lets[value.name])
        if isinstance(value, ir.Select) and (holds := self.holds(value.condition)) is not None:
            names = self.known_dims(value.condition) or frozenset()
            return self.visit(value.then if holds else value.otherwise) | names
        own = _own_dims(value).union(*map(self.visit, children(value)))
        place = (id(value), *(self.at[d] for d in self.at if d in own))
        match value:
            case ir.Binary(op="/" | "%", right=right, type=type_) if (
                type_.is_integral and self.known_dims(right) is not None
            ):
                cycles = OPERATION_CYCLES  # by a number
            case _:
                cycles = self.cycles(value)
        if cycles and place not in self.counted:
            self.counted.add(place)
            self._add(own, cycles)
        return own

    def _add(self, dims: frozenset[str], cycles: float) -> None:
        points = math.prod(size for name, size in self.sizes.items() if name in dims)
        self.found[dims] = self.found.get(dims, 0.0) + cycles / points
