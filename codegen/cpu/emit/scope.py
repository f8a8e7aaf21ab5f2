"""What is known at a place in the emitted code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache

from tcl.codegen.cpu.emit.sizes import named_sizes
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import Bound
from tcl.common.dataclass import dataclass, made_often, replace
from tcl.grammar.sizes.varying import Size, Undecided, limits, provably_equal


@made_often(frozen=True, slots=True)
class At:
    """An index value: what is known only when the code runs, plus what is known now.

    Kept apart, so that the places of an unrolled loop share the first part.
    """

    base: Val | None = None
    constant: int = 0

    def __add__(self, points: int) -> At:
        return At(self.base, self.constant + points)


@dataclass(frozen=True, slots=True)
class PointCount:
    """A number of points that is known only when the code runs."""

    value: Val
    choices: tuple[int, ...] | Lengths
    """All values that it can have."""

    @property
    def least(self) -> int:
        return self.choices.least if isinstance(self.choices, Lengths) else min(self.choices)

    def remainders(self, step: int) -> set[int]:
        """What they leave when they are divided by ``step``."""
        if isinstance(self.choices, Lengths):
            return self.choices.remainders(step)
        return {c % step for c in self.choices}

    def reaches(self, points: int) -> bool:
        if isinstance(self.choices, Lengths):
            return points <= self.choices.most
        return max(self.choices) >= points

    @staticmethod
    def for_extent(extent: int) -> PointCount | int:
        """The points of a dimension."""
        if not isinstance(extent, Size):
            return extent
        multiple = math.gcd(*(c for _, c in extent.terms))
        return PointCount(number(extent), Lengths(multiple, *limits(extent)))


@dataclass(frozen=True, slots=True)
class Lengths:
    """Multiples of a number, from ``least`` to ``most``."""

    multiple: int
    least: int
    most: int

    def remainders(self, step: int) -> set[int]:
        """What they leave when they are divided by ``step``."""
        first = -(-self.least // self.multiple) * self.multiple
        if self.most - first < step * self.multiple:
            return {length % step for length in range(first, self.most + 1, self.multiple)}
        return set(range(0, step, math.gcd(self.multiple, step)))


@made_often(frozen=True, slots=True)
class PointRange:
    """Where the loops of one dimension stand, in points from its start."""

    offset: At
    span: PointCount | int
    """Points that the enclosing loop hands to the next fold."""
    begun: At = At()
    """Where the next fold begins: points before it are done apart."""


@dataclass(slots=True)
class AccumulatorRegisters:
    """The registers of one accumulator, one for each combination of unrolled iterations."""

    type: str
    """LLVM type of one lane."""
    lanes: int
    over: tuple[ir.Fold, ...]
    """The unrolled folds ..."""
    names: tuple[str, ...] = field(init=False)
    """... and their names."""
    slots: dict[tuple[int, ...], str] = field(default_factory=dict)
    """Iterations → stack slot, which LLVM turns into a register."""
    rows: ir.Fold | None = None
    """The rows of a matrix: a slot has all of them."""
    registers: dict[tuple[int, ...], int] = field(default_factory=dict)
    """Likewise → register of the matrix unit."""

    def __post_init__(self) -> None:
        self.names = tuple(f.name for f in self.over)


@made_often(frozen=True, slots=True)
class Scope:
    """Loops and variables around a place, and the lanes that run there."""

    ranges: dict[str, PointRange]
    """By dim."""
    written_out: dict[str, PointRange] = field(default_factory=dict)
    """By dim: the points that the unrolled loops around this place go through, where nothing
    branches in them."""
    rest: bool = False
    """Whether it is in the last, shorter iteration of a loop, one of many lengths."""
    folds: dict[str, At] = field(default_factory=dict)
    """Offset in points of each fold, by name."""
    variables: dict[str, Val] = field(default_factory=dict)
    lets: dict[str, ir.Value] = field(default_factory=dict)
    """What variables are in the loop IR."""
    accumulators: dict[str, AccumulatorRegisters] = field(default_factory=dict)
    lanes: int = 1
    lane_dim: str = ""
    lane_fold: str = ""
    active: int = 1
    """The leading lanes that exist, or may exist; the others lie behind the end of the dimension,
    and must touch nothing."""
    there: Val | None = None
    """The mask of the lanes that exist, where some do not."""
    mask: Val | None = None
    """The lanes that run, among those that exist, where some do not: reading for the others
    may be wrong."""

    holds: tuple[Bound, ...] = ()
    """Bounds that hold at all points of the loops around this place."""
    aligned: ir.TensorRef | None = None
    """What all vectors that are written to here lie on boundaries."""
    written: tuple[Val, Val] | None = None
    """The first point along the lanes that is written, and the one after the last, where others are
    computed in vain."""

    @property
    def ragged(self) -> bool:
        """Whether some lanes do not exist."""
        return self.there is not None

    def under(self, mask: Val | None) -> Scope:
        """The same place with other lanes switched off."""
        return replace(self, mask=mask)

    def copied(self) -> Scope:
        """For a block of its own: names defined in it end with it."""
        return replace(
            self,
            variables=dict(self.variables),
            lets=dict(self.lets),
            accumulators=dict(self.accumulators),
        )

    def moved(self, ranges: Mapping[str, PointRange], folds: Mapping[str, At]) -> Scope:
        """An inner place of these loops."""
        return replace(self, ranges={**self.ranges, **ranges}, folds={**self.folds, **folds})


def known_span(fold: ir.Fold, scope: Scope) -> int:
    """The number of points of a loop that is written out.

    Raises ``Undecided`` where the loops around it leave that to a size that varies.
    """
    span = scope.ranges[fold.dim].span
    if isinstance(span, Size) or (
        isinstance(span, PointCount) and isinstance(span.choices, Lengths)
    ):
        raise Undecided(f"how many points {fold.name} has is known only when the kernel runs")
    if not isinstance(span, int):
        raise ir.IRError(f"the length of {fold.name} is not known where it is written out")
    return span


def leading(lanes: int, active: int) -> Val:
    """The mask of the first ``active`` lanes."""
    bits = ", ".join(f"i1 {'true' if k < active else 'false'}" for k in range(lanes))
    return Val(f"<{bits}>", "i1", lanes)


def fewer(b: Builder, lanes: int, count: Val) -> Val:
    """The mask of the first lanes, whose number is known only when the code runs."""
    type_ = "i32" if lanes <= 16 else "i8"
    ladder = ", ".join(f"{type_} {k}" for k in range(lanes))
    most = b.spread(b.convert("trunc", count, type_), lanes)
    return b.compare("icmp ult", Val(f"<{ladder}>", type_, lanes), most)


def add(b: Builder, left: Val | None, right: Val | None) -> Val | None:
    """A sum of index values, None standing for 0."""
    if left is None or right is None:
        return right if left is None else left
    found = _unwrapped(b, "add", left, right)
    if (each := math.gcd(b.multiple(left), b.multiple(right))) > 1:
        b.multiples[found.text] = each
    if (one := b.interval(left)) and (other := b.interval(right)):
        b.ends[found.text] = one[0] + other[0], one[1] + other[1]
    return found


def _unwrapped(b: Builder, op: str, left: Val, right: Val) -> Val:
    """Arithmetic on index values, which does not wrap unless it is on data."""
    wraps = left.text in b.wrapping or right.text in b.wrapping
    found = b.binary(op if wraps else f"{op} nsw", left, right)
    if wraps:
        b.wrapping.add(found.text)
    return found


def scale(b: Builder, value: Val | None, factor: int) -> Val | None:
    """An index value times a constant."""
    if value is None or provably_equal(factor, 1):
        return value
    if provably_equal(factor, 0):
        return None
    found = _unwrapped(b, "mul", value, number(factor))
    if not isinstance(factor, Size):
        b.multiples[found.text] = b.multiple(value) * abs(factor)
        if ends := b.interval(value):
            low, high = sorted(end * factor for end in ends)
            b.ends[found.text] = low, high
    return found


def number(value: int) -> Val:
    """An index value that is known now, or as soon as the sizes are."""
    return Val(named_sizes(value), "i64") if isinstance(value, Size) else _literal(value)


@lru_cache(maxsize=1024)
def _literal(value: int) -> Val:
    return Val(str(value), "i64")


def i64(b: Builder, at: At) -> Val:
    """An index value as an operand."""
    if at.base is None:
        return number(at.constant)
    if provably_equal(at.constant, 0):
        return at.base
    found = _unwrapped(b, "add", at.base, number(at.constant))
    if (ends := b.interval(at.base)) and not isinstance(at.constant, Size):
        b.ends[found.text] = ends[0] + at.constant, ends[1] + at.constant
    return found


def affine(
    b: Builder, index: ir.Affine, dims: Mapping[str, ir.Dim], scope: Scope
) -> tuple[At, int]:
    """(value in the first lane, what each further lane adds)."""
    moving: list[tuple[Val, int]] = []
    constant = index.constant
    step = 0
    for name, c in index.terms:
        at = scope.folds.get(name)
        if at is not None:
            constant += at.constant * c
            lanes = name == scope.lane_fold
        else:
            at = scope.ranges[name].offset
            constant += (at.constant + dims[name].first) * c
            lanes = name == scope.lane_dim
        if lanes:
            step += c
        if at.base is not None:
            moving.append((at.base, c))
    if not moving:
        return At(None, constant), step
    # The points of a register tile ask for the same sum. Sizes cannot always be compared.
    key = tuple([(value.text, c if type(c) is int else repr(c)) for value, c in moving])
    base = b.known.recall(key)
    if base is None:
        for value, c in moving:
            base = add(b, base, scale(b, value, c))
        if base is not None:
            b.known.remember(key, base, b.known.depths.get(base.text, 0))
    return At(base, constant), step


def lane_values(b: Builder, value: Val, step: int, lanes: int, start: int = 0) -> Val:
    """An index value, ``start`` further than ``value``, in every lane. What is known now is added
    to all lanes at once, so that the places of an unrolled loop share what is not."""
    if isinstance(step, Size) or isinstance(start, Size):
        ladder = ", ".join(f"i64 {k}" for k in range(lanes))
        own = b.binary("mul", Val(f"<{ladder}>", "i64", lanes), b.spread(number(step), lanes))
        own = b.binary("add", own, b.spread(number(start), lanes))
        own = own if value.type == "i64" else b.convert("trunc", own, value.type)
        return b.binary("add", value, own)
    if step == 0 or lanes == 1:
        return b.binary("add", value, Val(str(start), value.type)) if start else value
    low, high = -(1 << (int(value.type[1:]) - 1)), 1 << int(value.type[1:])
    each = [(start + step * k - low) % high + low for k in range(lanes)]
    ladder = ", ".join(f"{value.type} {k}" for k in each)
    # Index values are exact in 64 bits; in fewer, they wrap.
    add_ = "add nsw" if value.type == "i64" else "add"
    return b.binary(add_, value, Val(f"<{ladder}>", value.type, lanes))
