"""What a def has to do, whatever its schedule: operations, and bytes that move at least once.

Counted from the lowered program, as points times operations, for every def alike. An operation is
a step of a floating-point reduction, or a distinct value that ``+ - * / min max``, a minus or a
built-in function makes of what was read: it counts once per point of the dimensions that it depends
on, however often it is written or used. Arithmetic on constants, subscripts and integers is free,
but for sums of products of narrow integers, which count as those of floating-point numbers do. The
side of a ``? :`` counts at the points where an affine condition chooses it; both sides count
everywhere where the condition depends on data. Read is each element of an input that is used, or of
an output whose old contents matter; written, each element of an output.

Where elements or values coincide in ways that the count does not see, it is too high: it is a
measure for people, not a proof.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

import numpy as np

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.quotients import decided
from tcl.codegen.loopir.walk import behind_names, children
from tcl.common.recursion import with_room
from tcl.grammar.sizes.varying import representative

NARROW = ("bfloat16", "float16", "int16", "int8")
"""Types of numbers that instructions multiply and add up in wider ones; integers of either sign."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The work of one call."""

    operations: int
    """On floating-point numbers, and in ``products``; a multiply-add is two."""
    single: float
    """Those on floating-point numbers that are not in ``products``, each weighed by its width in
    units of 32 bits: what a machine does of them in a second does not depend on their type."""
    read: int
    """Bytes."""
    written: int
    """Bytes."""
    products: Mapping[str, int] = field(default_factory=dict)
    """Operations in sums of products of narrow numbers, by the type of these: ``NARROW``. Machines
    have instructions for them."""

    @property
    def operation_unit(self) -> str:
        """Of the operations: FLOP, or OP where they are on integers."""
        return "OP" if any(kind.startswith("int") for kind in self.products) else "FLOP"

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written."""
        return self.read + self.written


def cost_of(program: ir.Program) -> Cost:
    """The work of a program that has just been lowered."""
    counter = with_room(lambda: _counted(program))
    operations = [*counter.operations.values(), *counter.steps]
    narrow = dict(counter.products)
    integers = sum(n for kind, n in narrow.items() if kind.startswith("int"))
    floats = sum(narrow.values()) - integers
    return Cost(
        operations=round(sum(points for points, _ in operations)) + integers,
        single=max(0.0, sum(points * bits / 32 for points, bits in operations) - floats),
        read=sum(counter.touched(name) for name in counter.boxes),
        written=sum(program.tensor(name).layout.bytes for name in counter.versions),
        products=narrow,
    )


def _counted(program: ir.Program) -> _Counter:
    counter = _Counter(program)
    for nest in program.nests:
        if nest.points > 0:
            counter.count(nest)
        counter.versions[nest.point.target.tensor] += 1
    return counter


_Token: TypeAlias = tuple[int, int, int]
"""A dimension, the same for nests that run over the same points: first value, extent, and which
of those in its nest."""
_Index: TypeAlias = tuple[tuple[tuple[_Token, int], ...], int]
"""An index expression over tokens."""


@dataclass(frozen=True, slots=True)
class _About:
    """What is known of a value."""

    dims: frozenset[_Token] = frozenset()
    indices: frozenset[_Index] = frozenset()
    """The index expressions that it depends on, and on nothing else of the dimensions."""
    reads: bool = False

    def __or__(self, other: _About) -> _About:
        return _About(
            self.dims | other.dims, self.indices | other.indices, self.reads or other.reads
        )

    @property
    def points(self) -> int:
        """How many different ones there are, at most."""
        return min(
            math.prod(extent for _, extent, _ in self.dims), math.prod(map(_reach, self.indices))
        )


@dataclass(slots=True)
class _Counter:
    program: ir.Program
    operations: dict[int, tuple[float, int]] = field(default_factory=dict)
    """Number of a value → how many there are, and their bits."""
    steps: list[tuple[float, int]] = field(default_factory=list)
    """Likewise for the steps of reductions."""
    products: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Operations in sums of products of narrow numbers, by type."""
    versions: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Tensor → how many nests have written it."""
    boxes: dict[str, list[tuple[int, tuple[range, ...]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Tensor → how many elements each access touches, and the box that they lie in."""
    about: list[_About] = field(default_factory=list)
    numbers: dict[object, int] = field(default_factory=dict)
    """What makes a value → its number. Equal values have one number, in whatever nest."""
    tokens: dict[str, _Token] = field(default_factory=dict)
    lets: dict[str, tuple[int, ir.Value]] = field(default_factory=dict)
    dims: Mapping[str, ir.Dim] = field(default_factory=dict)

    def count(self, nest: ir.Nest) -> None:
        """Add what a nest does; nests come in the order in which they run."""
        seen: dict[tuple[int, int], int] = defaultdict(int)
        self.tokens, self.lets, self.dims = {}, {}, {d.name: d for d in nest.dims}
        for dim in nest.dims:
            kind = dim.first, dim.extent
            self.tokens[dim.name] = (*kind, seen[kind])
            seen[kind] += 1
        point = nest.point
        for let in point.lets:
            self.lets[let.name] = self._number_of(let.value, 1.0), let.value
        self._number_of(point.value, 1.0)
        if point.op != "=":
            if point.type.is_float:
                points = nest.points
                self.steps.append((points, point.type.compute.bits))
            narrow = _multiplied(point.value) if point.op == "+" else None
            if narrow is not None:
                self.products[narrow] += 2 * round(nest.points)
            if not point.initialise:
                self._touch(point.target)

    # Values, by number.

    def _number_of(self, value: ir.Value, share: float) -> int:
        """The number of a value that is computed at this share of all points."""
        match value:
            case ir.Const(value=constant):
                return self._number(("const", repr(constant)), _About())
            case ir.Position(index=index):
                own = self._index(index)
                return self._number(own, self._about(own))
            case ir.Variable(name=name):
                return self.lets[name][0]
            case ir.Load(ref=ref):
                return self._number_loaded(ref, share)
            case ir.Select(condition=condition, then=then, otherwise=otherwise):
                values = {name: let for name, (_, let) in self.lets.items()}
                chosen = share_of_points(condition, self.dims, values)
                parts = (
                    self._number_of(condition, share),
                    self._number_of(then, share * (1.0 if chosen is None else chosen)),
                    self._number_of(otherwise, share * (1.0 if chosen is None else 1.0 - chosen)),
                )
                return self._number_made("select", parts)
            case ir.Unary(op=op) | ir.Binary(op=op) | ir.Call(name=op):
                number = self._number_made(
                    op, tuple(self._number_of(v, share) for v in children(value))
                )
                if value.type.is_float and self.about[number].reads:
                    points = self.about[number].points * share
                    before = self.operations.get(number, (0.0, 0))[0]
                    self.operations[number] = max(points, before), value.type.compute.bits
                return number
            case ir.Cast(operand=operand, type=type_):
                return self._number_made(str(type_), (self._number_of(operand, share),))
            case ir.Combined():
                raise ir.IRError("the cost of a program is counted before it is scheduled")
            case _:
                assert_never(value)

    def _number_made(self, op: str, parts: tuple[int, ...]) -> int:
        about = _About()
        for part in parts:
            about |= self.about[part]
        return self._number((op, parts), about)

    def _number(self, key: object, about: _About) -> int:
        number = self.numbers.setdefault(key, len(self.about))
        if number == len(self.about):
            self.about.append(about)
        return number

    def _index(self, index: ir.Affine) -> _Index:
        return tuple((self.tokens[name], c) for name, c in index.terms), index.constant

    def _about(self, index: _Index) -> _About:
        dims = frozenset(token for token, _ in index[0])
        return _About(dims, frozenset([index] if dims else []))

    # Memory.

    def _number_loaded(self, ref: ir.TensorRef, share: float) -> int:
        about = _About(reads=True)
        parts: list[object] = []
        for subscript in ref.subscripts:
            if isinstance(subscript, ir.Affine):
                index = self._index(subscript)
                parts.append(index)
                about |= self._about(index)
            else:
                number = self._number_of(subscript.value, share)
                parts.append(number)
                about |= self.about[number]
        version = self.versions.get(ref.tensor, 0)
        key = ("load", ref.tensor, version, *parts)
        if version == 0 and key not in self.numbers:
            self._touch(ref)
        return self._number(key, about)

    def _touch(self, ref: ir.TensorRef) -> None:
        """Note what is read of memory that no nest has written."""
        if self.versions.get(ref.tensor, 0):
            return
        layout = self.program.tensor(ref.tensor).layout
        count, box = 1, []
        for subscript, origin, extent in zip(
            ref.subscripts, layout.origin, layout.extents, strict=True
        ):
            whole = range(origin, origin + extent)
            if isinstance(subscript, ir.Affine):
                low, high = subscript.interval(self.dims)
                box.append(range(max(low, whole.start), min(high + 1, whole.stop)))
                count *= min(_reach(self._index(subscript)), len(box[-1]))
            else:
                box.append(whole)
                count *= min(self.about[self._number_of(subscript.value, 0.0)].points, extent)
        self.boxes[ref.tensor].append((count, tuple(box)))

    def touched(self, name: str) -> int:
        """Bytes of a tensor that are read: all accesses together, in the box around them."""
        accesses = self.boxes[name]
        around = 1
        for axis in zip(*(box for _, box in accesses), strict=True):
            around *= max(0, max(r.stop for r in axis) - min(r.start for r in axis))
        itemsize = self.program.tensor(name).layout.itemsize
        return min(around, sum(count for count, _ in accesses)) * itemsize


def _multiplied(value: ir.Value) -> str | None:
    """Which of ``NARROW`` both factors of a product are, of which it is one; else None."""
    if not isinstance(value, ir.Binary) or value.op != "*":
        return None
    kinds = {_narrow(value.left), _narrow(value.right)}
    return kinds.pop() if len(kinds) == 1 else None


def _narrow(value: ir.Value) -> str | None:
    while isinstance(value, ir.Cast):
        value = value.operand
    if not isinstance(value, ir.Load):
        return None
    name = f"int{value.type.bits}" if value.type.is_integral else value.type.name
    return name if name in NARROW else None


def _reach(index: _Index) -> int:
    """How many values an index expression takes, at most."""
    terms = [(c, extent) for (_, extent, _), c in index[0]]
    if not terms:
        return 1
    spread = sum(abs(c) * (extent - 1) for c, extent in terms)
    step = math.gcd(*(c for c, _ in terms))
    return min(spread // step + 1, math.prod(extent for _, extent in terms))


_MOST = 1 << 20
"""Points up to which a condition is decided one by one."""


def share_of_points(
    condition: ir.Value, dims: Mapping[str, ir.Dim], lets: Mapping[str, ir.Value]
) -> float | None:
    """The share of the points of these dimensions at which the condition holds; None if it depends
    on data, on more than simple arithmetic, or on too many points to look at each."""
    named = deciding_dims(condition, lets)
    moving = [dims[name] for name in sorted(named or ())]
    extents = [representative(d.extent) for d in moving]
    if named is None or math.prod(extents) > _MOST:
        return None
    steps = np.ix_(*map(np.arange, extents))
    at = {d.name: representative(d.first) + n for d, n in zip(moving, steps, strict=True)}
    found = decided(condition, at, lets)
    return None if found is None else float(np.mean(found))


def deciding_dims(condition: ir.Value, lets: Mapping[str, ir.Value]) -> set[str] | None:
    """The dimensions that decide a condition; None if it depends on data."""
    names: set[str] = set()
    for value in behind_names([condition], lets):
        if isinstance(value, ir.Load | ir.Combined):
            return None
        if isinstance(value, ir.Position):
            names.update(name for name, _ in value.index.terms)
    return names
