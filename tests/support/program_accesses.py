"""Accesses of random programs: inputs, indices with their ranges, subscripts that fit.

Every index gets a range by a known way, its anchor: a ``where`` clause, the extent of a new
input, a tensor that exists, a stencil around another index, a declared output. All other accesses
are made to fit these ranges, so that the ranges the language infers have to be the ones kept
here: an oracle of its own, by plain enumeration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Protocol, TypeVar

from program_values import Value, literal, select

from tcl.grammar.syntax import types as t

T = TypeVar("T")


class Choices(Protocol):
    """Where decisions come from. The first option is the simplest: shrinking leads there."""

    def integer(self, low: int, high: int) -> int:
        """A number from low to high, both included."""


@dataclass(slots=True)
class Tensor:
    name: str
    shape: tuple[int, ...]
    origin: tuple[int, ...]
    value: Value
    """Of its elements; the text is unused."""
    symbols: tuple[str, ...] | None = None
    """Declared dims as written."""
    is_input: bool = False
    ancestors: set[str] = field(default_factory=set)
    readable: bool = True
    initialised: bool = True

    def box(self, axis: int) -> tuple[int, int]:
        return self.origin[axis], self.origin[axis] + self.shape[axis]


@dataclass(frozen=True, slots=True)
class Index:
    name: str
    first: int
    stop: int
    kind: str
    """When inference knows it: ``where``, ``early`` (first round), ``late``, or ``declared``."""

    @property
    def values(self) -> range:
        """An empty range counts as its first index, as in the language."""
        return range(self.first, max(self.stop, self.first + 1))


@dataclass(slots=True)
class Statement:
    """The statement being built."""

    indices: list[Index] = field(default_factory=list)
    new_dims: list[tuple[str, int]] = field(default_factory=list)
    """Subscripts that anchor an index, with the extent of the new input's dimension."""
    old_dims: dict[str, dict[int, str]] = field(default_factory=dict)
    """The same into tensors that exist: tensor → axis → subscript."""
    clauses: list[str] = field(default_factory=list)
    lets: list[str] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)

    def kinds(self, *kinds: str) -> list[Index]:
        return [i for i in self.indices if i.kind in kinds]

    @property
    def points(self) -> int:
        return prod(len(i.values) for i in self.indices)


_TYPES = (
    *(t.FLOAT32, t.FLOAT32, t.FLOAT32, t.FLOAT64, t.INT32, t.INT64, t.UINT8, t.INT8, t.FLOAT16),
    *(t.INT16, t.UINT16, t.UINT32, t.UINT64, t.BOOL, t.BFLOAT16),
)
NAMES = ("i", "j", "k", "l", "m", "n", "p")
_MAX_POINTS = 3000


class Accesses:
    """The signature of a program and the accesses of its statements."""

    def __init__(self, choices: Choices, bfloat16: bool) -> None:
        self.choices = choices
        self.types = [x for x in _TYPES if bfloat16 or x != t.BFLOAT16]
        self.inputs: dict[str, Tensor] = {}
        self.outputs: dict[str, Tensor] = {}
        self.sizes: dict[str, int] = {}
        """Size symbol → value."""

    # --- decisions ---

    def chance(self, percent: int) -> bool:
        return self.choices.integer(0, 99) >= 100 - percent

    def pick(self, options: Sequence[T]) -> T:
        return options[self.choices.integer(0, len(options) - 1)]

    def number(self, low: int, high: int) -> int:
        return self.choices.integer(low, high)

    # --- inputs and sizes ---

    def _dim(self, extent: int) -> str:
        """A constant or a size symbol for a dimension of an input."""
        same = [s for s, n in self.sizes.items() if n == extent]
        how = self.number(0, 3)
        if how == 1:
            return str(extent)
        if same and how:
            return self.pick(same)
        name = f"N{len(self.sizes)}"
        self.sizes[name] = extent
        return name

    def size(self, value: int) -> str:
        """A size expression of that value, for ranges and conditions."""
        if self.sizes and self.chance(40):
            name = self.pick(list(self.sizes))
            rest = value - self.sizes[name]
            return name if not rest else f"{name} {'-' if rest < 0 else '+'} {abs(rest)}"
        wide = [x for x in self.inputs.values() if x.shape]
        if wide and self.chance(10):
            tensor = self.pick(wide)
            axis = self.number(0, len(tensor.shape) - 1)
            return f"{tensor.name}.{axis} + {value - tensor.shape[axis]}".replace("+ -", "- ")
        return str(value)

    def new_input(self, subscripts: Sequence[str], extents: Sequence[int]) -> Value:
        """A new input, and its element at these subscripts."""
        type_ = self.pick(self.types)
        exact = not type_.is_float or self.chance(50)
        low, high = (-3.0, 4.0) if exact else (0.5, 2.0)
        if not type_.is_float:
            low, high = max(low, type_.limits[0]), min(high, type_.limits[1])
        name = f"A{len(self.inputs)}"
        value = Value(name, type_, low, high, exact)
        shape = tuple(extents)
        self.inputs[name] = Tensor(
            name, shape, (0,) * len(shape), value, tuple(map(self._dim, shape)), is_input=True
        )
        return value.named(element(name, subscripts))

    def _table(self, statement: Statement, first: int, stop: int) -> str | None:
        """A subscript read from a new input of integers, between first and stop."""
        free = statement.kinds("early", "where")
        plain = [i for i in free if i.first == 0]
        if len(self.inputs) >= 6 or stop <= first:
            return None
        type_ = self.pick((t.INT32, t.INT64, t.UINT8, t.INT16, t.UINT32))
        shift = self.number(0, 1) if first - 1 >= type_.limits[0] else 0
        if first - shift < type_.limits[0]:
            return None
        name = f"A{len(self.inputs)}"
        value = Value(name, type_, first - shift, stop - 1 - shift, True)
        chosen = [self.pick(plain)] if plain and self.chance(85) else []
        shape = tuple(i.stop for i in chosen)
        dims = tuple(map(self._dim, shape))
        self.inputs[name] = Tensor(name, shape, (0,) * len(shape), value, dims, is_input=True)
        statement.reads.add(name)
        text = element(name, [i.name for i in chosen])
        return f"{text} + {shift}" if shift else text

    # --- indices and their anchors ---

    def new_index(self, statement: Statement, readable: list[Tensor], kinds: str) -> None:
        """One more index, anchored in one of ``kinds`` (letters) or, failing these, by where."""
        name = NAMES[len(statement.indices)]
        tight = statement.points * 6 > _MAX_POINTS
        kind = "w" if tight else self.pick(kinds)
        found: Index | None = None
        if kind == "e":
            found = self._anchor_existing(statement, name, readable)
        elif kind == "s":
            found = self._anchor_stencil(statement, name)
        if kind == "n" or (found is None and kind != "w" and self.chance(80)):
            found = self._anchor_new(statement, name)
        if found is None:
            first = self.number(-2, 3) if self.chance(30) else 0
            extent = 0 if self.chance(3) else self.number(1, 2 if tight else 5)
            found = Index(name, first, first + extent, "where")
            text = f"{name} in {self.size(first)}:{self.size(first + extent)}"
            statement.clauses.append(text)
        statement.indices.append(found)

    def _anchor_new(self, statement: Statement, name: str) -> Index:
        if self.chance(3):
            statement.new_dims.append((name, 0))
            return Index(name, 0, 0, "early")
        k, c = 1, 0
        if self.chance(40):
            k, c = self.pick((1, 2, -1, 3, -2)), self.number(-2, 4)
        extent = abs(k) * self.number(1, 6) + self.number(0, abs(k) - 1)
        values = _solutions(lambda i: 0 <= k * i + c < extent)
        if not values:
            k, c, values = 1, 0, list(range(extent))
        statement.new_dims.append((self._affine({name: k}, c), extent))
        return Index(name, values[0], values[-1] + 1, "early")

    def _anchor_existing(
        self, statement: Statement, name: str, readable: list[Tensor]
    ) -> Index | None:
        free = [
            (x, axis)
            for x in readable
            for axis in range(len(x.shape))
            if axis not in statement.old_dims.get(x.name, {})
            and (0 not in x.shape or len(x.shape) == 1)
        ]
        if not free:
            return None
        tensor, axis = self.pick(free)
        first, stop = tensor.box(axis)
        c = self.number(-2, 2) if stop > first and self.chance(25) else 0
        statement.old_dims.setdefault(tensor.name, {})[axis] = self._affine({name: 1}, c)
        return Index(name, first - c, stop - c, "early")

    def _anchor_stencil(self, statement: Statement, name: str) -> Index | None:
        around = statement.kinds("early", "where")
        if not around:
            return None
        other = self.pick(around)
        k, d = self.pick((1, 2, -1, 3)), self.pick((1, 1, -1, 2))
        reach = [d * v for v in other.values]
        c = -min(reach) + self.number(-1, 1)
        width = max(reach) - min(reach)
        extent = width + abs(k) * self.number(1, 5) + self.number(0, 1)
        values = _solutions(lambda i: all(0 <= k * i + r + c < extent for r in reach))
        if not values or extent > 24:
            return None
        statement.new_dims.append((self._affine({name: k, other.name: d}, c), extent))
        kind = "late" if other.kind == "early" else "early"
        return Index(name, values[0], values[-1] + 1, kind)

    def _affine(self, terms: dict[str, int], constant: int) -> str:
        """An affine expression, spelled in one of several ways."""
        parts = [(k, n if abs(k) == 1 else f"{abs(k)} * {n}") for n, k in terms.items()]
        if self.chance(20):
            parts = [(k, n if abs(k) == 1 else f"{n} * {abs(k)}") for n, k in terms.items()]
        if constant and self.chance(30):
            parts = [(constant, str(abs(constant))), *parts]
        elif constant or not parts:
            parts.append((constant, str(abs(constant))))
        text = ("-" if parts[0][0] < 0 else "") + parts[0][1]
        return text + "".join(f" {'-' if k < 0 else '+'} {x}" for k, x in parts[1:])

    # --- accesses that fit ---

    def _fitting(self, statement: Statement, first: int, stop: int) -> str | None:
        """A subscript whose values lie in first..stop-1 for all points of the statement."""
        if stop <= first:
            return None
        how = self.number(0, 11)
        affine = statement.kinds("early", "where")
        anything = statement.kinds("early", "where", "late")
        if how >= 9 and (text := self._table(statement, first, stop)):
            return text
        if how in (7, 8) and anything:
            i = self.pick(anything)
            if first == 0 and i.first >= 0 and how == 7:
                return f"{i.name} % {stop}"
            low, high = self.pick(((first, stop - 1), (first, first)))
            return f"min(max({i.name}, {low}), {high})"
        if how >= 1 and affine:
            i = self.pick(affine)
            width = len(i.values)
            k = self.pick((1, 1, -1, 2))
            while abs(k) > 1 and abs(k) * (width - 1) >= stop - first:
                k -= 1
            low, high = sorted((k * i.values[0], k * i.values[-1]))
            offsets = [c for c in range(first - low, stop - high) if (k, c) != (1, 0)]
            # Whole dimensions under one index have to agree, unless a clause says its range.
            alike = (i.first, i.stop) == (first, stop) or i.kind == "where"
            if k == 1 and alike and first - low <= 0 < stop - high:
                offsets.insert(0, 0)
            if offsets:
                return self._affine({i.name: k}, self.pick(offsets[:3]))
        return str(self.number(first, stop - 1))

    def read(self, statement: Statement, readable: list[Tensor]) -> Value | None:
        """Another element: of a tensor that exists or, sometimes, of a new input."""
        if len(self.inputs) < 5 and (not readable or self.chance(30)):
            return self.read_new(statement)
        if not readable:
            return None
        tensor = self.pick(readable)
        return self.complete(statement, tensor, {})

    def complete(self, statement: Statement, tensor: Tensor, fixed: dict[int, str]) -> Value | None:
        """A read of ``tensor`` with the subscripts ``fixed`` and others that fit."""
        subscripts: list[str] = []
        for axis in range(len(tensor.shape)):
            text = fixed.get(axis) or self._fitting(statement, *tensor.box(axis))
            if text is None:
                return None
            subscripts.append(text)
        statement.reads.add(tensor.name)
        return tensor.value.named(element(tensor.name, subscripts))

    def read_new(self, statement: Statement) -> Value:
        usable = statement.kinds("early", "where")
        early = statement.kinds("early")
        subscripts, extents = [], []
        for _ in range(self.number(0, 2) if usable else 0):
            chosen = {self.pick(usable).name: self.pick((1, 1, 2, -1))}
            late = statement.kinds("late")
            if early and late and self.chance(30):  # known together, in the later round
                chosen = {self.pick(early).name: 1, self.pick(late).name: self.pick((1, -1))}
            elif self.chance(20):
                chosen.setdefault(self.pick(usable).name, 1)
            by_name = {i.name: i for i in statement.indices}
            ends = [sorted((k * by_name[n].values[0], k * by_name[n].values[-1]))
                    for n, k in chosen.items()]  # fmt: skip
            low, high = sum(e[0] for e in ends), sum(e[1] for e in ends)
            offset = -low if low < 0 or self.chance(40) else 0
            plain = list(chosen.values()) == [1] and offset == 0
            if plain and low > 0 and by_name[next(iter(chosen))].kind != "where":
                plain, offset = False, 1  # by itself it runs over a whole dimension, from 0
            extents.append(high + offset + 1 + (0 if plain else self.number(0, 1)))
            subscripts.append(self._affine(chosen, offset))
            if plain:
                (name,) = chosen
                extents[-1] = by_name[name].stop
        value = self.new_input(subscripts, extents)
        statement.reads.add(f"A{len(self.inputs) - 1}")
        return value

    def guarded(self, statement: Statement, readable: list[Tensor]) -> Value | None:
        """An element of a tensor padded by a condition, in one of many spellings."""
        wide = [x for x in readable if x.shape and 0 not in x.shape]
        inner = statement.kinds("early", "where", "late")
        if not wide or not inner:
            return None
        tensor = self.pick(wide)
        fixed: dict[int, str] = {}
        axis = self.number(0, len(tensor.shape) - 1)
        i = self.pick(inner)
        form = self._affine({i.name: self.pick((1, 1, 2, -1))}, self.number(-2, 2))
        fixed[axis] = form
        value = self.complete(statement, tensor, fixed)
        if value is None:
            return None
        first, stop = tensor.box(axis)
        other = literal(self.number(0, 2))
        low, high = self.size(first), self.size(stop)
        inside, outside = (
            f"{form} >= {low} && {form} < {high}",
            f"{form} < {low} || {form} >= {high}",
        )
        if self.chance(25):
            inside = f"{low} <= {form} && !({form} > {high} - 1)"
        if self.chance(20):
            name = f"inside{len(statement.lets)}"
            statement.lets.append(f"{name} = {inside}")
            inside = name
        how = self.number(0, 3)
        padded = select("?", value, other)
        if padded is None:
            return None
        if how == 1:
            return padded.named(f"({outside} ? {other.text} : {value.text})")
        if how == 2:
            nested = f"({form} < {high} ? {value.text} : {other.text})"
            return padded.named(f"({form} < {low} ? {other.text} : {nested})")
        if how == 3:
            return padded.named(f"(!({inside}) ? {other.text} : {value.text})")
        return padded.named(f"({inside} ? {value.text} : {other.text})")


def element(name: str, subscripts: Sequence[str]) -> str:
    return f"{name}({', '.join(subscripts)})" if subscripts else name


def _solutions(holds: Callable[[int], bool]) -> list[int]:
    """All i for which ``holds(i)``: the oracle for inferred ranges."""
    return [i for i in range(-80, 80) if holds(i)]
