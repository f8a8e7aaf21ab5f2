"""From the gradient of an expression to that of each element it reads, condition by condition."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.gradients.builtins import DERIVATIVES, REFUSED, Cases
from tcl.gradients.trees import (
    binary,
    cast,
    expression_of,
    negative,
    number,
    opposite,
    over,
    put,
    size_of,
    times,
)
from tcl.grammar.syntax import ast
from tcl.grammar.syntax.types import promote
from tcl.grammar.tree import checked as c

Conditions: TypeAlias = tuple[ast.Expr, ...]

LARGEST = 20_000
"""Nodes of a derived expression, beyond which it is refused: names bound by ``where`` that use each
other many times are written out."""


@dataclass(frozen=True, slots=True)
class Term:
    """A summand of the gradient of ``read``: ``value`` where all conditions hold."""

    read: c.Read
    conditions: Conditions
    value: ast.Expr


TOO_LONG = (
    "the gradient of an expression is too long; store the names of its where clauses in separate "
    "outputs"
)


@dataclass(frozen=True, slots=True)
class Propagation:
    """How the expressions of one statement are written and differentiated."""

    tree: Callable[[c.Expr], ast.Expr]
    """An expression of the forward pass, as one of the backward pass."""
    lets: dict[str, c.Expr]
    active: Callable[[c.Read], bool]
    """Whether the gradient of what is read is asked for."""

    def terms(self, expr: c.Expr, seed: ast.Expr, conditions: Conditions = ()) -> Iterator[Term]:
        """What each read that is asked for gets, if ``expr`` has the gradient ``seed``."""
        if not any(self.active(read) for read in smooth_reads(expr, self.lets)):
            return
        if size_of(seed) > LARGEST:
            raise ArgumentError(TOO_LONG)
        match expr:
            case c.Read():
                yield Term(expr, conditions, seed)
            case c.LetRef(name=name):
                yield from self.terms(self.lets[name], seed, conditions)
            case c.Unary(operand=operand):
                yield from self.terms(operand, negative(seed), conditions)
            case c.Binary():
                yield from self._operation(expr, seed, conditions)
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                holds = self.tree(condition)
                fails = opposite(holds, of_integers=_of_integers(condition))
                yield from self.terms(then, seed, (*conditions, holds))
                yield from self.terms(otherwise, seed, (*conditions, fails))
            case c.Cast(operand=operand, type=type_):
                if type_ != operand.type:
                    seed = cast(operand.type.name, seed)
                yield from self.terms(operand, seed, conditions)
            case c.Call():
                yield from self._call(expr, seed, conditions)
            case _:
                raise AssertionError("nothing is read")

    def _operation(self, expr: c.Binary, seed: ast.Expr, conditions: Conditions) -> Iterator[Term]:
        op, left, right = expr.op, expr.left, expr.right
        if op in "+-":
            yield from self.terms(left, seed, conditions)
            yield from self.terms(right, seed if op == "+" else negative(seed), conditions)
            return
        a, b = self.tree(left), self.tree(right)
        match op:
            case "*":
                yield from self.terms(left, times(seed, self._beside(right)), conditions)
                yield from self.terms(right, times(seed, self._beside(left)), conditions)
            case "/":
                yield from self.terms(left, over(seed, self._beside(right)), conditions)
                # As one would read the quotient where it is known.
                by_right = negative(over(binary("*", seed, binary("/", a, b)), b))
                yield from self.terms(right, by_right, conditions)
            case "min" | "max":
                for one, other, side in ((a, b, left), (b, a, right)):
                    wins = binary("<" if op == "min" else ">", one, other)
                    yield from self._choose_side(side, one, other, wins, seed, conditions)
            case _:
                yield from self._cases(expr, (left, right), DERIVATIVES["fmod"], seed, conditions)

    def _beside(self, expr: c.Expr) -> ast.Expr:
        """An operand beside a gradient, to whose type whole numbers are converted anyway."""
        if (
            isinstance(expr, c.Cast)
            and not expr.operand.type.is_float
            and _one_factor(expr.operand)
        ):
            return self.tree(expr.operand)
        return whole(expr, self.tree(expr))

    def _choose_side(
        self,
        side: c.Expr,
        one: ast.Expr,
        other: ast.Expr,
        wins: ast.Expr,
        seed: ast.Expr,
        conditions: Conditions,
    ) -> Iterator[Term]:
        """A side of ``min max fmin fmax``: all where it wins, half of a tie."""
        yield from self.terms(side, seed, (*conditions, wins))
        tie = binary("==", one, other)
        yield from self.terms(side, times(expression_of("0.5"), seed), (*conditions, tie))

    def _call(self, expr: c.Call, seed: ast.Expr, conditions: Conditions) -> Iterator[Term]:
        name, arguments = expr.name, expr.arguments
        if name in REFUSED:
            raise ArgumentError(
                f"{name} cannot be differentiated: its derivative is {REFUSED[name]}"
            )
        if name in ("fmin", "fmax"):
            a, b = (whole(e, self.tree(e)) for e in arguments)
            first, second = arguments
            for one, other, side, rest in ((a, b, first, second), (b, a, second, first)):
                wins = binary("<" if name == "fmin" else ">", one, other)
                if not isinstance(rest, c.Const):  # of a NaN and a number it is the number
                    wins = binary("||", wins, binary("!=", other, other))
                yield from self._choose_side(side, one, other, wins, seed, conditions)
            return
        yield from self._cases(expr, arguments, DERIVATIVES[name], seed, conditions)

    def _cases(
        self,
        expr: c.Call | c.Binary,
        arguments: tuple[c.Expr, ...],
        derivatives: tuple[Cases, ...],
        seed: ast.Expr,
        conditions: Conditions,
    ) -> Iterator[Term]:
        values = dict(zip("xyzw", map(self.tree, arguments), strict=False))
        for argument, cases in zip(arguments, derivatives, strict=True):
            for condition, derivative in cases:
                where: Conditions = (put(expression_of(condition), values),) if condition else ()
                decided = _constant_condition(where[0]) if where else True
                if decided is False:
                    continue
                factor = _tidied(put(expression_of(derivative), values))
                value = times(seed, factor)
                if isinstance(factor, ast.Binary) and factor.op == "/":
                    value = over(times(seed, factor.left), factor.right)
                inner = conditions if decided else (*conditions, *where)
                yield from self.terms(argument, value, inner)


def _constant_condition(condition: ast.Expr) -> bool | None:
    """Whether a condition holds, if it is one of numbers."""
    match condition:
        case ast.Binary(op="||", left=left, right=right):
            found = _constant_condition(left), _constant_condition(right)
            return True if True in found else None if None in found else False
        case ast.Binary(op=op, left=left, right=right):
            a, b = _number_value(left), _number_value(right)
            if a is None or b is None:
                return None
            holds = {"!=": a != b, "<": a < b, ">": a > b, "==": a == b}
            return holds.get(op)
        case _:
            return None


def _number_value(tree: ast.Expr) -> float | None:
    match tree:
        case ast.Number(value=value):
            return value
        case ast.Unary(op="-", operand=ast.Number(value=value)):
            return -value
        case _:
            return None


def _tidied(tree: ast.Expr) -> ast.Expr:
    """Without what numbers in the place of arguments make superfluous: ``2 * pow(x, 2 - 1)``."""
    match tree:
        case ast.Unary(op="-", operand=operand):
            return negative(_tidied(operand))
        case ast.Binary(op="*", left=left, right=right):
            return times(_tidied(left), _tidied(right))
        case ast.Apply(name="pow", arguments=(base, power)):
            match _tidied(power):
                case ast.Number(value=value) if value == 1:
                    return base
                case tidy:
                    return replace(tree, arguments=(base, tidy))
        case ast.Binary(op="-", left=left, right=right):
            a, b = _number_value(left), _number_value(right)
            return tree if a is None or b is None else number(a - b)
        case ast.Apply(name="log", arguments=(argument,)):  # which alone would be a float32
            a = _number_value(argument)
            return tree if a is None or a <= 0 else number(math.log(a))
        case _:
            return tree


def smooth_reads(expr: c.Expr, lets: dict[str, c.Expr]) -> Iterator[c.Read]:
    """The reads that an expression may have a gradient for: no conditions, subscripts, integers."""
    if not expr.type.is_float:
        return
    match expr:
        case c.Read():
            yield expr
        case c.LetRef(name=name):
            yield from smooth_reads(lets[name], lets)
        case c.Unary(operand=operand) | c.Cast(operand=operand):
            yield from smooth_reads(operand, lets)
        case c.Binary(left=left, right=right):
            yield from smooth_reads(left, lets)
            yield from smooth_reads(right, lets)
        case c.Select(then=then, otherwise=otherwise):
            yield from smooth_reads(then, lets)
            yield from smooth_reads(otherwise, lets)
        case c.Call(name=name, arguments=arguments):
            derivatives = DERIVATIVES.get(name, ((("", ""),),) * len(arguments))
            for argument, cases in zip(arguments, derivatives, strict=True):
                if cases:
                    yield from smooth_reads(argument, lets)
        case _:
            return


def _of_integers(condition: c.Expr) -> bool:
    """Whether a condition is a comparison of integers, of which one holds or its opposite."""
    return isinstance(condition, c.Binary) and not condition.left.type.is_float


def whole(expr: c.Expr, tree: ast.Expr) -> ast.Expr:
    """``0`` for ``0.0``, where it takes the type of what it meets."""
    if isinstance(expr, c.Const) and isinstance(tree, ast.Number) and tree.value == int(tree.value):
        return number(int(tree.value)) if tree.value < 1000 else tree
    return tree


def _one_factor(expr: c.Expr) -> bool:
    """Whether a value can stand among other factors. ``x * (i / 2)`` is not ``x * i / 2``, where
    whole numbers are divided."""
    if expr.type.is_float:
        return True
    match expr:
        case c.Unary(operand=operand):
            return _one_factor(operand)
        case c.Binary(op=op):
            return op not in "*/"
        case _:
            return not isinstance(expr, c.LetRef)


def needless_cast(cast_: c.Cast, other: c.Expr) -> bool:
    """Whether a conversion happens by itself beside another operand."""
    if isinstance(other, c.Const | c.Cast) or not _one_factor(cast_.operand):
        return False
    return promote(cast_.operand.type, other.type) == cast_.type == other.type
