"""Size expressions: what the bounds of a range are made of, and their values.

A size expression is an integer expression of sizes, extents (``X.0``), literals, and names bound
to such expressions, by any operators; indices, elements of tensors and floats are none. It has one
value for given sizes, before anything runs.

Arithmetic in ``int32`` and ``int64`` is exact, as in subscripts. In a narrower or unsigned type,
which takes a cast, it wraps, as everywhere.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.types import INDEX, INT64, ScalarType
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import walk


def no_size(expr: c.Expr, lets: Mapping[str, c.Expr]) -> tuple[c.Expr, c.Expr] | None:
    """The part that makes an expression no size expression, and what it is because of that.

    The two differ where the part is a name: ``lets`` has what makes the values of the statement's
    names no size expressions. An index or an element of a tensor is told rather than a float.
    """
    of_float = None
    for node in walk(expr):
        match node:
            case c.Index() | c.Read():
                return node, node
            case c.LetRef(name=name) if name in lets:
                return node, lets[name]
            case _ if node.type.is_float and of_float is None:
                of_float = node, node
    return of_float


class NoValueError(Exception):
    """A size expression that has no value for these sizes."""

    def __init__(self, place: c.Expr, divisor: c.Expr | None = None) -> None:
        super().__init__()
        self.place = place
        self.divisor = divisor
        """What is zero; None where it is the value that leaves 64 bits."""


@dataclass(slots=True)
class SizeValues:
    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    lets: Mapping[str, c.Expr]
    _of_lets: dict[str, int | NoValueError | None] = field(default_factory=dict)
    _known: dict[int, tuple[c.Expr, int | None]] = field(default_factory=dict)
    """Values of expressions, by identity: each is asked for at every level that it is nested in."""

    def value(self, expr: c.Expr) -> int | None:
        """The value, a bool's as 0 or 1; None of what is no size expression.

        Raises ``NoValueError`` for a division by zero and for a value beyond 64 bits, where the
        value depends on it: of ``? :``, ``&&`` and ``||`` no more is evaluated than needed.
        """
        if id(expr) not in self._known:
            self._known[id(expr)] = expr, self._value(expr)
        return self._known[id(expr)][1]

    def _value(self, expr: c.Expr) -> int | None:
        match expr:
            case c.Const(value=number, type=type_):
                return None if type_.is_float else int(number)
            case c.Size(name=name):
                return self.sizes.get(name)
            case c.Dimension(tensor=tensor, axis=axis) if tensor in self.shapes:
                return self.shapes[tensor][axis]
            case c.LetRef(name=name):
                return self._let(name)
            case c.Unary(op=op, operand=operand):
                value = self.value(operand)
                if value is None or op == "!":
                    return None if value is None else int(not value)
                return self._fitted(expr, -value)
            case c.Binary(op="&&" | "||" as op, left=left, right=right):
                value = self.value(left)
                return value if value is None or bool(value) == (op == "||") else self.value(right)
            case c.Binary():
                return self._binary_value(expr)
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                holds = self.value(condition)
                return None if holds is None else self.value(then if holds else otherwise)
            case c.Cast(operand=operand, type=type_) if not type_.is_float:
                value = self.value(operand)
                if value is None:
                    return None
                return int(value != 0) if type_.is_bool else wrapped(value, type_)
            case _:
                return None

    def _binary_value(self, expr: c.Binary) -> int | None:
        left, right = self.value(expr.left), self.value(expr.right)
        if left is None or right is None:
            return None
        if expr.op in "/%" and right == 0:
            raise NoValueError(expr, expr.right)
        return self._fitted(expr, OPERATIONS[expr.op](left, right))

    def _let(self, name: str) -> int | None:
        """The value bound to a name. All are worked out in order: none then follows a chain."""
        if not self._of_lets:
            for let, expr in self.lets.items():
                self._of_lets[let] = None  # of what a faulty chain would ask for
                try:
                    self._of_lets[let] = self.value(expr)
                except NoValueError as error:
                    self._of_lets[let] = error
        value = self._of_lets[name]
        if isinstance(value, NoValueError):
            raise value
        return value

    def _fitted(self, expr: c.Unary | c.Binary, value: int) -> int | None:
        type_: ScalarType = expr.type
        if type_.is_float:
            return None
        if type_.is_bool:
            return value
        if type_ not in (INDEX, INT64):
            return wrapped(value, type_)
        if wrapped(value, INT64) != value:
            raise NoValueError(expr)
        return value


def quotient(a: int, b: int) -> int:
    """C's ``a / b``, truncated towards zero; 0 for ``b`` = 0."""
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    """C's ``a % b``, which has the sign of ``a``; 0 for ``b`` = 0."""
    return a - b * quotient(a, b) if b else 0


def wrapped(value: int, type_: ScalarType) -> int:
    """The value of an integer type that is ``value`` modulo 2 to the power of its bits."""
    low, high = type_.limits
    return (value - low) % (high - low + 1) + low


OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": quotient,
    "%": remainder,
    "min": min,
    "max": max,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
"""What the operators on two integers do, where nothing wraps."""
