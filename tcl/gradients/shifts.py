"""Tensors that outputs do not depend on, although they are computed with them.

A softmax takes the largest number off all others, so that ``exp`` does not overflow; what comes
out is the same whatever is taken off. So no gradient goes through that ``max``. Here is told how
every tensor changes when a number ``c`` is added to such a tensor ``M``: by ``k * c``, or by the
factor ``exp(k * c)``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from typing import Literal

from tcl.common.dataclass import dataclass
from tcl.gradients.versions import Step, Version
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import children


@dataclass(frozen=True, slots=True)
class Change:
    """How something changes with ``c``."""

    kind: Literal["sum", "factor", "none"]
    k: Fraction
    at: tuple[object, ...]
    """Which element of ``M``: names of indices, or dimensions of a tensor."""

    def but(self, kind: Literal["sum", "factor"], k: Fraction) -> Change:
        """With another amount."""
        return Change(kind, k, self.at) if k else NONE


NONE = Change("none", Fraction(0), ())
_UNKNOWN = Change("sum", Fraction(1), ("unknown",))


class _UnknownError(Exception):
    """Something changes in another way."""


def without_effect(steps: Sequence[Step], wanted: Collection[Version]) -> frozenset[Version]:
    """The results of ``min`` and ``max`` reductions that no wanted version depends on."""
    found = set()
    for place, step in enumerate(steps):
        extreme = step.statement.op in ("min", "max") and step.statement.initialise
        if extreme and step.whole and not _has_effect(steps[place + 1 :], step.after, wanted):
            found.add(step.after)
    return frozenset(found)


def _has_effect(steps: Sequence[Step], subject: Version, wanted: Collection[Version]) -> bool:
    changes: dict[Version, Change] = {}
    for step in steps:
        try:
            changes[step.after] = _Statement(step, subject, changes).change()
        except _UnknownError:
            changes[step.after] = _UNKNOWN
    return subject in wanted or any(changes.get(v, NONE) is not NONE for v in wanted)


@dataclass(slots=True)
class _Statement:
    step: Step
    subject: Version
    changes: dict[Version, Change]

    def change(self) -> Change:
        """How what the statement makes changes, by dimensions of its target."""
        statement = self.step.statement
        found = self._of(statement.rhs)
        if statement.op == "+" and found.kind == "sum":
            raise _UnknownError
        if statement.op == "*" and found is not NONE:
            raise _UnknownError
        if found is not NONE:
            if statement.place is not None:
                raise _UnknownError
            if not set(found.at) <= set(statement.indices):
                raise _UnknownError
            found = Change(
                found.kind, found.k, tuple(statement.indices.index(str(i)) for i in found.at)
            )
        kept, before = self.step.keeps or self.step.keeps_value, self.step.before
        if kept and (before == self.subject or self.changes.get(before, NONE) != found):
            raise _UnknownError
        return found

    def _of(self, expr: c.Expr) -> Change:
        match expr:
            case c.Read(tensor=tensor, subscripts=subscripts):
                for subscript in subscripts:
                    self._need_none(subscript)
                return self._read(self.step.version(tensor), subscripts)
            case c.LetRef(name=name):
                return self._of(self.step.lets[name])
            case c.Unary(op="-", operand=operand):
                inner = self._of(operand)
                return inner.but("sum", -inner.k) if inner.kind == "sum" else inner
            case c.Binary(op=op, left=left, right=right):
                return self._operation(op, left, right)
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                self._need_none(condition)
                return self._same(then, otherwise)
            case c.Call(name=name, arguments=(argument,)) if name in ("exp", "log", *_ROOTS):
                return self._function(name, self._of(argument))
            case c.Cast(operand=operand, type=type_) if type_.is_float and operand.type.is_float:
                return self._of(operand)
            case _:
                for child in children(expr):
                    self._need_none(child)
                return NONE

    def _need_none(self, expr: c.Expr) -> None:
        if self._of(expr) is not NONE:
            raise _UnknownError

    def _read(self, version: Version, subscripts: Sequence[c.Expr]) -> Change:
        known = self.changes.get(version, NONE)
        dims: Iterable[object] = known.at
        if version == self.subject:
            known, dims = Change("sum", Fraction(1), ()), range(len(subscripts))
        if known is NONE:
            return NONE
        at = []
        for dim in dims:
            subscript = subscripts[dim] if isinstance(dim, int) else None
            if not isinstance(subscript, c.Index):
                raise _UnknownError
            at.append(subscript.name)
        return Change(known.kind, known.k, tuple(at))

    def _operation(self, op: str, left: c.Expr, right: c.Expr) -> Change:
        a, b = self._of(left), self._of(right)
        if a is NONE and b is NONE:
            return NONE
        if a is not NONE and b is not NONE and a.at != b.at:
            raise _UnknownError
        known = b if a is NONE else a
        sign = -1 if op in "-/" else 1
        if op in "+-" and "factor" not in (a.kind, b.kind):
            return known.but("sum", a.k + sign * b.k)
        if op in "+-":
            return self._same(left, right)
        if op in "*/" and "sum" not in (a.kind, b.kind):
            return known.but("factor", a.k + sign * b.k)
        if op in ("min", "max"):
            return self._same(left, right)
        raise _UnknownError

    def _same(self, left: c.Expr, right: c.Expr) -> Change:
        """Of two that change alike; 0 changes like any factor."""
        a, b = self._of(left), self._of(right)
        for one, other, expr in ((a, b, right), (b, a, left)):
            if one.kind == "factor" and isinstance(expr, c.Const) and expr.value == 0:
                return one
            if one == other:
                return one
        raise _UnknownError

    def _function(self, name: str, inner: Change) -> Change:
        if inner is NONE:
            return NONE
        if name == "exp" and inner.kind == "sum":
            return inner.but("factor", inner.k)
        if name == "log" and inner.kind == "factor":
            return inner.but("sum", inner.k)
        if name in _ROOTS and inner.kind == "factor":
            return inner.but("factor", inner.k * _ROOTS[name])
        raise _UnknownError


_ROOTS = {"sqrt": Fraction(1, 2), "rsqrt": Fraction(-1, 2)}
