"""Values of random programs: text, type, interval, and whether the value is exactly known.

Each operation returns None where its result would be ill-conditioned: too large, divided by
something near zero, or decided by a value that rounding may have moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcl.grammar.syntax import types as t
from tcl.grammar.syntax.types import ScalarType


def default_type(type_: ScalarType) -> ScalarType:
    """The type that a value has when nothing decides it: int32 or float32 for literals."""
    if not type_.weak:
        return type_
    return t.FLOAT32 if type_.is_float else t.INT32


COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")

_CAP = {16: 30_000.0, 32: 1e6, 64: 1e6}
"""Largest magnitude of a float, by bits."""


def exact_cap(type_: ScalarType) -> float:
    """Integers up to this magnitude are values of the type."""
    if type_ == t.BFLOAT16:
        return 256.0
    return {16: 2048.0, 32: 2.0**24, 64: 2.0**53}[type_.bits]


@dataclass(frozen=True, slots=True)
class Value:
    text: str
    type: ScalarType
    low: float
    high: float
    exact: bool
    """No rounding took place; a float is then a whole number."""

    def named(self, text: str) -> Value:
        """The same value, written differently."""
        return replace(self, text=text)

    def joined(self, other: Value) -> Value:
        """Either of the two values, of one type."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Value(self.text, self.type, low, high, self.exact and other.exact)

    @property
    def size(self) -> float:
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))


def literal(value: float) -> Value:
    type_ = t.WEAK_INT if isinstance(value, int) else t.WEAK_FLOAT
    return Value(str(value), type_, value, value, float(value).is_integer())


def _made(text: str, type_: ScalarType, low: float, high: float, exact: bool) -> Value | None:
    """A result of that interval; integers wrap, floats have to be of moderate size."""
    if math.isnan(low) or math.isnan(high):
        return None
    if type_.is_float:
        size = max(abs(low), abs(high))
        # 16-bit floats are computed in float32 and meet their limits when they are stored.
        if size > _CAP[type_.bits]:
            return None
        return Value(text, type_, low, high, exact and size <= exact_cap(type_.compute))
    smallest, largest = type_.limits
    if low < smallest or high > largest:
        low, high = smallest, largest
    return Value(text, type_, low, high, exact)


def _as(value: Value, type_: ScalarType) -> Value | None:
    """The value after an implicit conversion."""
    if value.type == type_ or value.type.weak:
        if value.type.weak and type_.is_integral:
            low, high = type_.limits
            if not (value.exact and low <= value.low and value.high <= high):
                return None
        return replace(value, type=type_)
    exact = value.exact and not (type_.is_float and value.size > exact_cap(type_))
    return _made(value.text, type_, value.low, value.high, exact)


def _pair(a: Value, b: Value, arithmetic: bool) -> tuple[Value, Value] | None:
    """Both in the type in which they meet."""
    if a.type.weak and b.type.weak:
        return None
    type_ = t.promote(a.type, b.type)
    if arithmetic:
        type_ = t.arithmetic(type_)
    x, y = _as(a, type_), _as(b, type_)
    return None if x is None or y is None else (x, y)


def binary(op: str, a: Value, b: Value) -> Value | None:
    pair = _pair(a, b, op not in ("min", "max"))
    if pair is None:
        return None
    x, y = pair
    exact = x.exact and y.exact
    text = f"{op}({a.text}, {b.text})" if op in ("min", "max") else f"({a.text} {op} {b.text})"
    corners = [_CORNERS[op](p, q) for p in (x.low, x.high) for q in (y.low, y.high)]
    low, high = min(corners), max(corners)
    if op in "/%":
        if x.type.is_float and (y.low < 0.25 and y.high > -0.25):
            return None
        if op == "%" and x.type.is_float and not exact:
            return None
        size = x.size * (4 if x.type.is_float and op == "/" else 1)
        low, high = -size if x.low < 0 or y.low < 0 else 0, size
        exact = exact and not (op == "/" and x.type.is_float)
    return _made(text, x.type, low, high, exact)


_CORNERS: dict[str, Callable[[float, float], float]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "min": min,
    "max": max,
    "/": lambda x, y: x,
    "%": lambda x, y: x,
}


def compare(op: str, a: Value, b: Value) -> Value | None:
    pair = _pair(a, b, False)
    if pair is None or not (a.exact and b.exact):
        return None
    if op not in ("==", "!=") and a.type.is_bool != b.type.is_bool:
        return None
    return Value(f"({a.text} {op} {b.text})", t.BOOL, 0, 1, True)


def logical(op: str, a: Value, b: Value) -> Value:
    return Value(f"({a.text} {op} {b.text})", t.BOOL, 0, 1, True)


def negate(a: Value) -> Value | None:
    if a.type.is_bool:
        return a.named(f"!{a.text}")
    if a.type.weak:
        return None
    return _made(f"(-{a.text})", a.type, -a.high, -a.low, a.exact)


def select(condition: str, a: Value, b: Value) -> Value | None:
    pair = _pair(a, b, False)
    if pair is None:
        return None
    x, y = pair
    return x.joined(y).named(f"({condition} ? {a.text} : {b.text})")


def cast(type_: ScalarType, a: Value) -> Value | None:
    if a.type.weak or (not type_.is_float and not a.exact):
        return None
    low, high, exact = a.low, a.high, a.exact
    if type_.is_bool:
        low, high = 0, 1
    elif type_.is_float:
        exact = exact and a.size <= exact_cap(type_)
    elif a.type.is_float:  # saturates
        low, high = (min(max(x, type_.limits[0]), type_.limits[1]) for x in (low, high))
    return _made(f"{type_}({a.text})", type_, low, high, exact)


def rounding(function: str, a: Value) -> Value | None:
    """A rounding function of something between two whole numbers, never close to one."""
    if not a.exact or a.type.weak or a.size > 100 or not a.type.is_float:
        return None
    low, high = math.floor(a.low * 0.5), math.ceil(a.high * 0.5) + 1
    return Value(f"{function}({a.text} * 0.5 + 0.25)", a.type, low, high, True)


@dataclass(frozen=True, slots=True)
class _Function:
    """A built-in where it is well conditioned: all arguments within a domain."""

    name: str
    arity: int
    domain: tuple[float, float]
    image: Callable[..., Sequence[float]]
    """Interval (low, high) of the first argument → interval of the result."""


def _rising(f: Callable[[float], float]) -> Callable[[float, float], tuple[float, float]]:
    return lambda low, high: (f(low), f(high))


def _falling(f: Callable[[float], float]) -> Callable[[float, float], tuple[float, float]]:
    return lambda low, high: (f(high), f(low))


def _within(a: float, b: float) -> Callable[[float, float], tuple[float, float]]:
    return lambda low, high: (a, b)


_FUNCTIONS = (
    _Function("fabs", 1, (-1e4, 1e4), lambda a, b: (0, max(-a, b))),
    _Function("sqrt", 1, (0.25, 1e4), _rising(math.sqrt)),
    _Function("exp", 1, (-5, 5), _rising(math.exp)),
    _Function("tanh", 1, (-1e3, 1e3), _within(-1, 1)),
    _Function("log", 1, (0.25, 1e4), _rising(math.log)),
    _Function("sin", 1, (-8, 8), _within(-1, 1)),
    _Function("cos", 1, (-8, 8), _within(-1, 1)),
    _Function("erf", 1, (-10, 10), _within(-1, 1)),
    _Function("rsqrt", 1, (0.25, 1e4), _falling(lambda x: 1 / math.sqrt(x))),
    _Function("cbrt", 1, (0.25, 1e4), _rising(lambda x: x ** (1 / 3))),
    _Function("expm1", 1, (-5, 5), _rising(math.expm1)),
    _Function("log1p", 1, (0, 1e4), _rising(math.log1p)),
    _Function("atan", 1, (-1e3, 1e3), _within(-1.6, 1.6)),
    _Function("asinh", 1, (-1e3, 1e3), _within(-8, 8)),
    _Function("exp2", 1, (-6, 6), _rising(lambda x: 2.0**x)),
    _Function("fmax", 2, (-1e4, 1e4), _within(-1e4, 1e4)),
    _Function("fmin", 2, (-1e4, 1e4), _within(-1e4, 1e4)),
    _Function("hypot", 2, (0.25, 1e3), _within(0.25, 1.5e3)),
    _Function("pow", 2, (0.25, 3), _within(1 / 64, 27)),
    _Function("fdim", 2, (-1e3, 1e3), _within(0, 2e3)),
    _Function("fdivide", 2, (0.25, 50), _within(0.005, 200)),
)


def builtin(pick: Callable[[Any], Any], a: Value, b: Value | None = None) -> Value | None:
    """Some built-in of one or two arguments that suits their intervals."""
    arguments = [a] if b is None else [a, b]
    type_ = a.type if b is None else t.promote(a.type, b.type)
    if type_.weak or not type_.is_float:
        type_ = t.FLOAT32
    converted = [_as(x, type_) for x in arguments]
    suits = [
        f
        for f in _FUNCTIONS
        if f.arity == len(arguments)
        and all(x and f.domain[0] <= x.low and x.high <= f.domain[1] for x in converted)
    ]
    if not suits:
        return None
    chosen: _Function = pick(suits)
    low, high = chosen.image(a.low, a.high)
    if chosen.name in ("fmax", "fmin") and b is not None:
        low, high = min(a.low, b.low), max(a.high, b.high)
    text = f"{chosen.name}({', '.join(x.text for x in arguments)})"
    exact = all(x.exact for x in arguments) and chosen.name in ("fabs", "fmax", "fmin")
    return _made(text, type_, low, high, exact)


def reduced(
    op: str, value: Value, count: int, into: ScalarType | None, held: Value | None
) -> Value | None:
    """What a statement stores: ``count`` values put together by ``op``, as type ``into``.

    ``into`` None leaves the type to the language. ``held`` is what the target holds before.
    """
    if into is not None and into.is_bool and value.type.weak:
        value = Value(f"bool({value.text})", t.BOOL, 0, 1, True)
    natural = default_type(t.arithmetic(value.type) if op in "+*" else value.type)
    if into is not None and not (value.type.weak or t.assignable(natural, into)):
        changed = cast(into, value)
        if changed is None:
            return None
        value = changed
    type_ = into or natural
    if into is not None and into.is_bool and op in "+*":
        return None
    done = _as(value, type_)
    if done is None:
        return None
    low, high = done.low, done.high
    if op == "+":
        low, high = min(0.0, count * low), max(0.0, count * high)
    elif op == "*" and count != 1:
        bits = count * math.log2(max(done.size, 1))
        bound = math.inf if bits > 200 else float(max(done.size, 1)) ** count
        low, high = -bound if low < 0 else 0.0, bound
    if op in ("min", "max") and count == 0 and held is None:
        low, high = (-math.inf, math.inf) if type_.is_float else type_.limits
        return Value(value.text, type_, low, high, True)
    if held is not None and op != "=":
        corners = [_CORNERS[op](p, q) for p in (low, high) for q in (held.low, held.high)]
        low, high = min(*corners, held.low), max(*corners, held.high)
        exact = done.exact and held.exact
    else:
        exact = done.exact
    made = _made(value.text, type_, low, high, exact)
    if made is None or (made.type.is_float and made.size > exact_cap(made.type)):
        return made and replace(made, exact=False)
    return made
