"""Reductions that are fused with the one before them, in the same loops.

Either over the same points, where both read the same memory: ``S +=! A(n); Q +=! A(n) * A(n)``.
Or over those points that have the extreme value of the first one. The second statement of
``L min=! A(n); B min=! A(n) == L ? n : N`` needs no pass of its own over ``A``: wherever the first
one keeps an extreme value, the second keeps what it has of the points that have this value. Two
such pairs, of lanes or of a lane and a point, are combined so: the better value, and of the sides
that have it what they had. A NaN is better than all values and equal to none, so that nothing is
left of either side, as a second pass would find nothing. Where the first of several points wins, a
value replaces the best one only if it is better or NaN. Points that are written out together, and
combined in the end, keep apart whether one of them was NaN: it takes one question for two of them,
and each step waits for one comparison.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.identity import identity
from tcl.codegen.loopir.periods import interval_of
from tcl.codegen.loopir.walk import loads, renamed, renamed_ref, values_of, walk
from tcl.codegen.passes.fusion.epilogues import loops_over
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_at_least, provably_equal
from tcl.grammar.syntax.types import BOOL

ACCUMULATOR = "accumulator"
_VALUE = f"{ACCUMULATOR}.value"
_BEST = f"{ACCUMULATOR}.best"
_NAN = f"{ACCUMULATOR}.nan"
_NO_WORSE = {"min": "<=", "max": ">="}
_BETTER = {"min": "<", "max": ">"}


@dataclass(frozen=True, slots=True)
class EarlierPointWins:
    """That the value of each later point is worse than that of the one before."""

    value: ir.Value
    """That of the first point of all."""
    worst: ir.Const
    """The extreme value of no points at all."""


@dataclass(frozen=True, slots=True)
class Sibling:
    """A reduction in the dimensions of another one."""

    nest: str
    point: ir.Point
    """Its value is that of the points that count."""
    always: bool
    """All points count; else those that have the extreme value of the other one."""
    otherwise: ir.Const | None
    """What the points that do not count have. None where that changes nothing."""
    first: EarlierPointWins | None = None
    """Where of points that have the same extreme value the first one decides; None where that is
    not known."""

    @property
    def accumulator(self) -> str:
        return f"{ACCUMULATOR}.{self.nest}"

    @property
    def start(self) -> ir.Const:
        """The first value of the accumulator."""
        return identity(self.point.op, self.point.type)

    def held_value(self) -> ir.Variable:
        """What the accumulator holds."""
        return ir.Variable(self.accumulator, self.point.type)

    def update(self, best: ir.Variable, new: ir.Variable, op: str) -> ir.Accumulate:
        """One more point; ``best`` is the extreme value without it."""
        if self.always:
            return ir.Accumulate(self.accumulator, self.point.op, self.point.value)
        type_ = self.point.type
        if self.first is not None:
            comes = ir.Binary(_BETTER[op], new, best, BOOL)
            kept = ir.Select(comes, self.point.value, self.held_value(), type_)
            return ir.Accumulate(self.accumulator, "=", kept)
        stays = ir.Binary(_NO_WORSE[op], best, new, BOOL)
        comes = ir.Binary(_NO_WORSE[op], new, best, BOOL)
        before = ir.Select(stays, self.held_value(), self.start, type_)
        now = ir.Select(comes, self.point.value, self.start, type_)
        both = ir.Binary(self.point.op, before, now, type_)
        return ir.Accumulate(self.accumulator, "=", both)

    def store_result(
        self, best: ir.Variable, held: ir.Variable, folds: tuple[ir.Fold, ...]
    ) -> ir.Store:
        """Stores the result. ``best`` is the extreme value of all, ``held`` that of an iteration
        of these folds, which are to be combined."""
        point, type_ = self.point, self.point.type
        value: ir.Value = self.held_value()
        if folds and self.always:
            value = ir.Combined(value, point.op, folds, type_)
        elif folds or self.first is not None:
            has = ir.Binary("==", held, best, BOOL)
            value = ir.Select(has, value, self.start, type_)
            if folds:
                value = ir.Combined(value, point.op, folds, type_)
        if self.first is not None:
            # An accumulator that begins with the worst value never changes to that one.
            never = ir.Binary("==", best, self.first.worst, BOOL)
            value = ir.Select(never, self.first.value, value, type_)
        if self.otherwise is not None:
            value = ir.Binary(point.op, self.otherwise, value, type_)
        if not point.initialise:
            value = ir.Binary(point.op, ir.Load(point.target, type_, total=True), value, type_)
        return ir.Store(point.target, value)


def updates(
    point: ir.Point, siblings: Sequence[Sibling], nan_apart: bool = False
) -> tuple[ir.Statement, ...]:
    """What one point of a reduction does to its accumulator and to those that are fused with it;
    ``nan_apart``: and to what ``SeenNan`` declares."""
    if all(b.always for b in siblings):
        return (
            ir.Accumulate(ACCUMULATOR, point.op, point.value),
            *(b.update(ir.Variable(ACCUMULATOR, point.type), b.held_value(), "") for b in siblings),
        )
    best, new = ir.Variable(ACCUMULATOR, point.type), ir.Variable(_VALUE, point.type)
    own = [ir.Accumulate(ACCUMULATOR, point.op, new)]
    if _first_wins(siblings):
        # The comparison that they make; a NaN comes, too, and stays.
        comes, nan = ir.Binary(_BETTER[point.op], new, best, BOOL), ir.Binary("!=", new, new, BOOL)
        apart = [ir.Accumulate(_NAN, "max", nan)] if nan_apart and point.type.is_float else []
        if point.type.is_float and not apart:
            comes = ir.Binary("||", comes, nan, BOOL)
        own = [ir.Accumulate(ACCUMULATOR, "=", ir.Select(comes, new, best, point.type)), *apart]
    return (
        ir.Let(_VALUE, point.value),
        *(b.update(best, new, point.op) for b in siblings),
        *own,
    )


def _first_wins(siblings: Sequence[Sibling]) -> bool:
    return bool(siblings) and all(b.first is not None for b in siblings)


@dataclass(frozen=True, slots=True)
class SeenNan:
    """Whether a point of a reduction was NaN, where ``updates`` keeps that apart."""

    declared: tuple[ir.Statement, ...] = ()
    value: ir.Value | None = None

    @staticmethod
    def from_registers(
        point: ir.Point,
        siblings: Sequence[Sibling],
        registers: Sequence[ir.Loop],
        combined: Sequence[ir.Fold],
    ) -> SeenNan:
        """``combined``: the registers that are. Those among them that are written out share it.
        Where none do, there are more masks than registers for them: on Zen 4, eight rows side by
        side take 1.1 times as long with masks of their own."""
        lanes = {x.fold for x in registers if x.kind is ir.Kind.VECTOR}
        shared = any(fold not in lanes for fold in combined)
        if not (shared and _first_wins(siblings) and point.type.is_float):
            return SeenNan()
        over = tuple(x.fold for x in registers if x.fold not in combined or x.fold in lanes)
        value: ir.Value = ir.Variable(_NAN, BOOL)
        if own := tuple(fold for fold in over if fold in combined):
            value = ir.Combined(value, "max", own, BOOL)
        return SeenNan((ir.Declare(_NAN, BOOL, over, ir.Const(False, BOOL)),), value)

    def of_one(self, value: ir.Value) -> ir.Value:
        """The extreme value of the points of one accumulator, which may yet be combined."""
        return value if isinstance(self.value, ir.Combined) else self.of_all(value)

    def of_all(self, value: ir.Value) -> ir.Value:
        """The extreme value of all points."""
        if self.value is None:
            return value
        return ir.Select(self.value, ir.Const(math.nan, value.type), value, value.type)


def results(
    first: ir.Store, siblings: Sequence[Sibling], folds: tuple[ir.Fold, ...]
) -> tuple[list[ir.Let], list[ir.Store]]:
    """Stores of the result of a reduction and of those that are fused with it, and what they need
    before. ``folds`` are combined."""
    if not siblings:
        return [], [first]
    best, held = (ir.Variable(name, first.value.type) for name in (_BEST, ACCUMULATOR))
    ends = (s.store_result(best, held, folds) for s in siblings)
    return [ir.Let(_BEST, first.value)], [replace(first, value=best), *ends]


def sibling(first: ir.Nest, second: ir.Nest) -> Sibling | None:
    """The second nest as a reduction that can be fused with the first, right before it; None if it
    cannot. Their loops are not looked at."""
    a, b = first.point, second.point
    names = _same_dims(first, second)
    value = b.value
    if names is None or "=" in (a.op, b.op):
        return None
    if any(p.type.compute != p.type or p.value.type != p.type for p in (a, b)):
        return None
    if b.lets or b.kept or a.lets or first.sequential or second.sequential:
        return None
    if second.staged or second.prefetched:
        return None
    read = {load.ref.tensor for v in values_of(a) for load in loads(v)}
    if b.target.tensor in read or a.target.tensor == b.target.tensor:
        return None
    changed = {a.target.tensor, b.target.tensor}
    if not {load.ref.tensor for load in loads(value)} & changed:
        if not all(map(_known_everywhere, walk(value))):
            return None
        point = replace(b, target=renamed_ref(b.target, names), value=renamed(value, names))
        # Worth it where both read the same elements.
        own = {load.ref for v in values_of(a) for load in loads(v)}
        same = any(load.ref in own for load in loads(point.value))
        return Sibling(second.name, point, True, None) if same else None
    if a.op not in _NO_WORSE or not isinstance(value, ir.Select):
        return None
    then = renamed(value.then, names)
    if not _equal(renamed(value.condition, names), a) or not _anywhere(then, changed):
        return None
    otherwise = value.otherwise
    point = ir.Point((), renamed_ref(b.target, names), b.type, b.op, b.initialise, then)
    start = identity(b.op, b.type)
    if not isinstance(otherwise, ir.Const):
        return None
    # What a reduction resumes from may be a value that points have, which it would not notice.
    earliest = _earliest_wins(then, b.op, first) if a.initialise else None
    if otherwise.value == start.value:
        return Sibling(second.name, point, False, None, earliest)
    if not _never_better(otherwise, then, b.op, first):
        return None
    return Sibling(second.name, point, False, otherwise, earliest)


def _known_everywhere(value: ir.Value) -> bool:
    """Whether it is the same value in other loops over the same points."""
    return not isinstance(value, ir.Variable | ir.Combined)


def same_loops(first: ir.Nest, second: ir.Nest) -> bool:
    """Whether both nests have the same loops, dimension for dimension, through all points."""
    one, other = (loops_over(nest, nest.dims) for nest in (first, second))
    return first.compacted is second.compacted is None and one == other


def _same_dims(first: ir.Nest, second: ir.Nest) -> dict[str, str] | None:
    """Dimensions of the second → those of the first, if they are alike and there is a reduction
    that has points."""
    own, its = ([(d.first, d.extent, d.reduction) for d in nest.dims] for nest in (first, second))
    reduced = [d.extent for d in first.dims if d.reduction]
    if not provably_equal(own, its) or not reduced or any(n == 0 for n in reduced):
        return None
    return {b.name: a.name for a, b in zip(first.dims, second.dims, strict=True)}


def _equal(condition: ir.Value, a: ir.Point) -> bool:
    """Whether the condition is that a point has the extreme value."""
    if not isinstance(condition, ir.Binary) or condition.op != "==":
        return False
    for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
        best = isinstance(other, ir.Load) and other.ref == a.target
        if best and one == a.value:
            return True
    return False


def _anywhere(value: ir.Value, changed: set[str]) -> bool:
    """Whether a value may and should be computed at every point, before these tensors are known."""
    for v in walk(value):
        if isinstance(v, ir.Call | ir.Variable | ir.Combined):
            return False
        if isinstance(v, ir.Load) and (
            not v.total or v.ref.tensor in changed or not v.ref.is_affine
        ):
            return False
    return True


def _never_better(constant: ir.Const, value: ir.Value, op: str, nest: ir.Nest) -> bool:
    """Whether min or max of the value, at whichever points, and the constant is that of the value.
    Where no point counts at all, the constant is the result."""
    range_ = interval_of(value, {d.name: d for d in nest.dims})
    if range_ is None or constant.type.is_bool:
        return False
    return (op == "min" and constant.value >= range_[1]) or (
        op == "max" and constant.value <= range_[0]
    )


def _earliest_wins(value: ir.Value, op: str, nest: ir.Nest) -> EarlierPointWins | None:
    """That min or max of a value at one point and at a later one is always the earlier one; None if
    that is not known. Loops go through the points of one dimension in order, whatever folds it
    has, but may have those of several in any order."""
    reduced = [d for d in nest.dims if d.reduction and not provably_at_least(1, d.extent)]
    if op not in _NO_WORSE or not isinstance(value, ir.Position) or len(reduced) != 1:
        return None
    (dim,) = reduced
    if interval_of(value, {d.name: d for d in nest.dims}) is None:
        return None  # it may wrap
    by_point = value.index.coefficient(dim.name)
    if not (by_point > 0 if op == "min" else by_point < 0):
        return None
    start = ir.Affine((), by_point * dim.first)
    rest = value.index + ir.Affine.variable(dim.name).scaled(-by_point)
    leader = nest.point
    return EarlierPointWins(replace(value, index=rest + start), identity(leader.op, leader.type))
