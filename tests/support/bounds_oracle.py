"""Every access of a sized definition, made in plain Python, to see that it stays in its tensor.

Values are random (a tensor's element is drawn when it is first read), so that data-dependent
subscripts and conditions go every way. Arithmetic is Python's: enough to decide conditions and
subscripts, not to compute results.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from tcl.grammar.ranges.sized import SizedDef, SizedStatement
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import index_lets, is_index_arithmetic


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

    def run(self) -> None:
        self.index_lets = index_lets(self.statement.statement.lets)
        try:
            for let in self.statement.statement.lets:
                self.lets[let.name] = self.value(let.value)
            self.value(self.statement.statement.rhs)
        except _RefusedError:
            pass

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
        at = tuple(int(self.value(s)) for s in read.subscripts)
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
        match expr.op:
            case "+":
                found = left + right
            case "-":
                found = left - right
            case "*":
                found = left * right
            case "/" | "%":
                found = _divided(expr, left, right)
            case "min":
                found = min(left, right)
            case "max":
                found = max(left, right)
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
        return self._wrapped(found, expr)

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
    low, high = expr.type.limits
    return (int(value) - low) % (high - low + 1) + low


def _cast(value: float, expr: c.Cast) -> float:
    if expr.type.is_bool:
        return value != 0
    if expr.type.is_float:
        return float(value)
    if expr.operand.type.is_float:
        low, high = expr.type.limits
        return int(min(max(value, low), high)) if value == value else 0
    return _wrapped(value, expr)
