"""Every access of a sized definition, made in plain Python, to see that it stays in its tensor.

Values are random (a tensor's element is drawn when it is first read), so that data-dependent
subscripts and conditions go every way. Arithmetic is Python's: enough to decide conditions and
subscripts, not to compute results.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from tcl.grammar.ranges.sized import SizedDef, SizedStatement
from tcl.grammar.syntax.types import INT64, ScalarType
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import index_lets, is_exact, is_index_arithmetic


class OutOfBoundsError(AssertionError):
    """An access that nothing checks left its tensor."""


class _RefusedError(Exception):
    """An access that is checked left its tensor: the point ends here, as it does at run time."""


def run_everywhere(
    sized: SizedDef,
    rng: random.Random,
    values: Mapping[str, tuple[float, float, bool]] | None = None,
    most_points: int = 600,
) -> tuple[int, int]:
    """Evaluate the points of every statement: (unchecked reads, checked reads).

    Of more than ``most_points`` it takes the corners and random others.

    Raises ``OutOfBoundsError`` where an unchecked read leaves its tensor.
    """
    run = _Run(sized, rng, values or {})
    for statement in sized.statements:
        names = list(statement.ranges)
        for point in _points([range(*statement.ranges[n]) for n in names], rng, most_points):
            _Point(run, statement, dict(zip(names, point, strict=True))).run()
    return run.unchecked, run.checked


def _points(ranges: list[range], rng: random.Random, most: int) -> list[tuple[int, ...]]:
    if math.prod(len(r) for r in ranges) <= most:
        return list(itertools.product(*ranges))
    corners = itertools.product(*({r[0], r[-1]} for r in ranges))
    found = list(itertools.islice(corners, most // 2))
    return found + [tuple(rng.choice(r) for r in ranges) for _ in range(most - len(found))]


@dataclass(slots=True)
class _Run:
    sized: SizedDef
    rng: random.Random
    values: Mapping[str, tuple[float, float, bool]]
    memory: dict[tuple[str, tuple[int, ...]], float] = field(default_factory=dict)
    unchecked: int = 0
    checked: int = 0

    def element(self, read: c.Read, at: tuple[int, ...]) -> float:
        key = read.tensor, at
        if key not in self.memory:
            self.memory[key] = self._draw(read)
        return self.memory[key]

    def _draw(self, read: c.Read) -> float:
        if read.tensor in self.values:
            low, high, integral = self.values[read.tensor]
            if not integral:
                return self.rng.uniform(low, high)
            return self.rng.randint(int(low), int(high))
        if read.type.is_float:
            return self.rng.uniform(-2, 2)
        low, high = read.type.limits
        return self.rng.choice((self.rng.randint(max(low, -3), min(high, 9)), low, high))


@dataclass(slots=True)
class _Point:
    run_: _Run
    statement: SizedStatement
    indices: dict[str, int]
    lets: dict[str, float] = field(default_factory=dict)
    index_lets: frozenset[str] = field(init=False)
    of: str = ""
    found: int | None = None
    """Where the vector ``of`` was read."""

    def run(self) -> None:
        self.index_lets = index_lets(self._bound())
        try:
            for let in self.statement.statement.lets:
                self.lets[let.name] = self.value(let.value)
            self.value(self.statement.statement.rhs)
        except _RefusedError:
            pass

    def _bound(self) -> dict[str, c.Expr]:
        return {let.name: let.value for let in self.statement.statement.lets}

    def subscript(self, expr: c.Expr) -> int:
        """A subscript, which wraps as an int64, but for unsigned values of 32 and 64 bits."""
        match expr:
            case _ if not is_exact(expr):
                return int(self.value(expr))
            case c.LetRef(name=name):
                return self.subscript(self._bound()[name])
            case c.Cast(operand=operand):
                return self.subscript(operand)
            case c.Unary(operand=operand):
                return _in_type(-self.subscript(operand), INT64)
            case c.Binary(left=left, right=right):
                found = self._applied(expr, self.subscript(left), self.subscript(right))
                return _in_type(int(found), INT64)
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                return self.subscript(then if self.value(condition) else otherwise)
            case _:
                return int(self.value(expr))

    def value(self, expr: c.Expr) -> float:
        match expr:
            case c.Const(value=value):
                return value
            case c.Index(name=name):
                return self.indices[name]
            case c.Size(name=name):
                return self.run_.sized.sizes[name]
            case c.Dimension(tensor=tensor, axis=axis):
                return self.run_.sized.shapes[tensor][axis]
            case c.LetRef(name=name):
                return self.lets[name]
            case c.Read():
                return self._read(expr)
            case c.Unary(op=op, operand=operand):
                value = self.value(operand)
                return not value if op == "!" else self._wrapped(-value, expr)
            case c.Binary():
                return self._binary(expr)
            case c.Select(condition=condition, then=then, otherwise=otherwise):
                return self.value(then if self.value(condition) else otherwise)
            case c.Call(arguments=arguments):
                return sum(self.value(a) for a in arguments) / 4
            case c.Cast(operand=operand):
                return _cast(self.value(operand), expr)
            case _:
                assert_never(expr)

    def _read(self, read: c.Read) -> float:
        at = tuple(self.subscript(s) for s in read.subscripts)
        if read.tensor == self.of:
            (self.found,) = at
        sized = self.run_.sized
        origin, shape = sized.origins[read.tensor], sized.shapes[read.tensor]
        for axis, (index, first, extent) in enumerate(zip(at, origin, shape, strict=True)):
            if self.statement.needs_check(read, axis):
                self.run_.checked += 1
                if not first <= index < first + extent:
                    raise _RefusedError
            elif not first <= index < first + extent:
                raise OutOfBoundsError(f"{read.tensor}{at}, axis {axis}, at {self.indices}")
            else:
                self.run_.unchecked += 1
        return self.run_.element(read, at)

    def _binary(self, expr: c.Binary) -> float:
        left = self.value(expr.left)
        if expr.op == "&&":
            return bool(left) and bool(self.value(expr.right))
        if expr.op == "||":
            return bool(left) or bool(self.value(expr.right))
        right = self.value(expr.right)
        found = self._applied(expr, left, right)
        return found if expr.type.is_bool else self._wrapped(found, expr)

    def _applied(self, expr: c.Binary, left: float, right: float) -> float:
        match expr.op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/" | "%":
                return _divided(expr, left, right)
            case "min":
                return min(left, right)
            case "max":
                return max(left, right)
            case "<":
                return left < right
            case "<=":
                return left <= right
            case ">":
                return left > right
            case ">=":
                return left >= right
            case "==":
                return left == right
            case _:
                return left != right

    def _wrapped(self, value: float, expr: c.Expr) -> float:
        exact = is_index_arithmetic(expr, self.index_lets)
        return int(value) if exact else _wrapped(value, expr)


def _divided(expr: c.Binary, left: float, right: float) -> float:
    """C's division and remainder, 0 for a zero divisor."""
    if not right:
        return 0
    if not expr.type.is_integral:
        return left / right if expr.op == "/" else left % right
    a, b = int(left), int(right)
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient if expr.op == "/" else a - b * quotient


def _wrapped(value: float, expr: c.Expr) -> float:
    """Integers wrap in their type."""
    if expr.type.is_float or expr.type.is_bool:
        return min(max(value, -1e30), 1e30)
    return _in_type(int(value), expr.type)


def _in_type(value: int, type_: ScalarType) -> int:
    low, high = type_.limits
    return (value - low) % (high - low + 1) + low


def _cast(value: float, expr: c.Cast) -> float:
    if expr.type.is_bool:
        return value != 0
    if expr.type.is_float:
        return float(value)
    if expr.operand.type.is_float:
        low, high = expr.type.limits
        return int(min(max(value, low), high)) if value == value else 0
    return _wrapped(value, expr)


def place_of_read(
    sized: SizedDef, tensor: str, values: Mapping[str, Sequence[float]], n: int
) -> int | None:
    """The subscript of the only read of a vector at point ``n``; None if it is not evaluated.
    ``values``: of the other vectors."""
    run = _Run(sized, random.Random(0), {})
    run.memory = {(name, (n,)): int(each[n]) for name, each in values.items()}
    point = _Point(run, sized.statements[0], {"n": n})
    point.of = tensor
    point.run()
    return point.found
