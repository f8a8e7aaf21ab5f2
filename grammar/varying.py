"""Sizes that are known only when a kernel runs, as integers that compilers can work with.

A ``Size`` is a polynomial with integer coefficients in such sizes, and in quotients of polynomials.
It is an ``int``, so that whatever works with sizes works with it; but a comparison is answered only
if the answer is the same for every value that the sizes may have, and raises ``Undecided`` where it
is not. So nothing is ever decided by one of the values: where a choice may rest on one, because
each answer is right, the code says so with ``usual``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, TypeAlias, TypeVar

_Number = TypeVar("_Number", int, float)


class Undecided(Exception):  # noqa: N818
    """A question whose answer depends on a size that is known only when a kernel runs."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A size that a kernel is given when it runs, divided by what is known to divide it."""

    name: str
    """Of the size, as the def has it."""
    multiple: int
    """The size is a multiple of this."""
    least: int
    """The smallest value of the quotient."""
    most: int
    usual: int
    """The value by which choices are made."""

    def __str__(self) -> str:
        return self.name if self.multiple == 1 else f"{self.name}/{self.multiple}"


@dataclass(frozen=True, slots=True)
class Quotient:
    """A polynomial over a positive integer, rounded down."""

    terms: Terms
    divisor: int
    least: int
    most: int
    usual: int

    def __str__(self) -> str:
        return f"({text_of(self.terms)})/{self.divisor}"


Atom: TypeAlias = Symbol | Quotient
Monomial: TypeAlias = tuple[Atom, ...]
Terms: TypeAlias = tuple[tuple[Monomial, int], ...]
"""Coefficients, none of them 0, by the atoms that they are multiplied with, in a fixed order."""


def text_of(terms: Terms) -> str:
    """A polynomial as text, the same for equal ones."""
    parts = []
    for monomial, coefficient in terms:
        factors = [str(a) for a in monomial]
        if coefficient != 1 or not factors:
            factors.insert(0, str(coefficient))
        parts.append("*".join(factors))
    return " + ".join(parts)


class Size(int):
    """An integer that depends on sizes which are known when a kernel runs; as an ``int`` it has
    the value by which choices are made."""

    terms: Terms

    @staticmethod
    def made(found: Mapping[Monomial, int]) -> int:
        """The polynomial; a plain integer if it is one."""
        terms = tuple(
            sorted(
                ((m, c) for m, c in found.items() if c),
                key=lambda each: [*map(str, each[0])],
                reverse=True,
            )
        )
        if not terms:
            return 0
        if len(terms) == 1 and not terms[0][0]:
            return terms[0][1]
        value = sum(c * math.prod(a.usual for a in m) for m, c in terms)
        size = int.__new__(Size, value)
        size.terms = terms
        return size

    @staticmethod
    def of(name: str, *, least: int, most: int, multiple: int = 1, value: int) -> int:
        """The size of this name: a multiple of ``multiple`` from ``least`` to ``most``; choices are
        made as if it were ``value``."""
        first, last = -(-least // multiple), most // multiple
        symbol = Symbol(name, multiple, first, last, value // multiple)
        return Size.made({(symbol,): multiple})

    # Arithmetic.

    def __add__(self, other: int) -> int:
        return Size.made(_sum(self, other, 1)) if isinstance(other, int) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        return Size.made(_sum(self, other, -1)) if isinstance(other, int) else NotImplemented

    def __rsub__(self, other: int) -> int:
        return -self + other if isinstance(other, int) else NotImplemented

    def __neg__(self) -> int:
        return Size.made({m: -c for m, c in self.terms})

    def __pos__(self) -> int:
        return self

    def __abs__(self) -> int:
        return self if self >= 0 else -self

    def __mul__(self, other: int) -> int:
        if not isinstance(other, int):
            return NotImplemented
        found: dict[Monomial, int] = {}
        for (m, c), (n, d) in product(self.terms, terms_of(other)):
            key = tuple(sorted((*m, *n), key=str))
            found[key] = found.get(key, 0) + c * d
        return Size.made(found)

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> int:
        if isinstance(other, Size):
            return _ratio(self, other)
        if not isinstance(other, int):
            return NotImplemented
        if other < 0:
            return -self // -other
        if other == 0:
            raise ZeroDivisionError
        whole = {m: c // other for m, c in self.terms if c % other == 0}
        rest = {m: c for m, c in self.terms if c % other}
        constant = rest.pop((), 0)
        if not rest:
            return Size.made(whole) + constant // other
        left = Size.made({**rest, (): constant})
        low, high = limits(left)
        if high <= 0:  # quotients are of what is not negative
            return Size.made(whole) - (-left + (other - 1)) // other
        if low < 0:
            less = low // other
            constant -= less * other
            left = Size.made({**rest, (): constant})
            whole[()] = whole.get((), 0) + less
            low, high = low - less * other, high - less * other
        common = math.gcd(other, *rest.values())
        if common > 1:  # (g p + c) / (g d) is (p + c / g) / d, all rounded down
            left = Size.made({m: c // common for m, c in rest.items()} | {(): constant // common})
            return Size.made(whole) + left // (other // common)
        (monomial, c), *more = rest.items()
        if not more and c == 1 and len(monomial) == 1 and isinstance(monomial[0], Quotient):
            inner = monomial[0]  # (p / d + c) / e is (p + c d) / (d e)
            left = Size.made(dict(inner.terms)) + constant * inner.divisor
            return Size.made(whole) + left // (inner.divisor * other)
        usual_ = usual(left) // other
        atom = Quotient(terms_of(left), other, low // other, high // other, usual_)
        if atom.least == atom.most:
            return Size.made(whole) + atom.least
        return Size.made(whole) + Size.made({(atom,): 1})

    def __rfloordiv__(self, other: int) -> int:
        return _ratio(other, self)

    def __mod__(self, other: int) -> int:
        return self - self // other * other

    def __rmod__(self, other: int) -> int:
        return other - other // self * self

    def __divmod__(self, other: int) -> tuple[int, int]:
        return self // other, self % other

    def _no(self, *_: Any) -> Any:
        raise Undecided(f"{self} is known only when the kernel runs")

    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _no
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _no
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _no
    __int__ = __index__ = __float__ = __round__ = __trunc__ = __floor__ = __ceil__ = _no
    __rdivmod__ = bit_length = bit_count = as_integer_ratio = _no

    # Comparisons.

    def __lt__(self, other: float) -> bool:
        return _at_least(other, self, 1)

    def __le__(self, other: float) -> bool:
        return _at_least(other, self, 0)

    def __gt__(self, other: float) -> bool:
        return _at_least(self, other, 1)

    def __ge__(self, other: float) -> bool:
        return _at_least(self, other, 0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int):
            if not isinstance(other, float):
                return NotImplemented
            if not other.is_integer():
                return False
            other = int(other)
        low, high = limits(self - other)
        if low == high == 0:
            return True
        if low > 0 or high < 0:
            return False
        raise Undecided(f"whether {self} is {other} is known only when the kernel runs")

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        return hash(self.terms)

    # Text.

    def __str__(self) -> str:
        text = text_of(self.terms)
        _NAMED[text] = self
        return text

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return Size.made, (dict(self.terms),)


_NAMED: dict[str, Size] = {}


def named(text: str) -> Size:
    """The size that was written as this text."""
    return _NAMED[text]


def terms_of(value: int) -> Terms:
    """A polynomial's terms."""
    return value.terms if isinstance(value, Size) else (((), value),) if value else ()


def linear(value: int) -> tuple[int, int] | None:
    """``(a, b)`` of ``a + b * size``, where there is one size; None for what is not linear."""
    constant = factor = 0
    for monomial, c in terms_of(value):
        match monomial:
            case ():
                constant = c
            case (Symbol(multiple=multiple),) if c % multiple == 0:
                factor = c // multiple
            case _:
                return None
    return constant, factor


def usual(value: int) -> int:
    """The value by which choices are made, each of which is right."""
    return int.__pos__(value) if isinstance(value, Size) else value


def surely(answer: Any) -> bool:
    """Whether the answer, a function of nothing, is yes for all values that sizes may have."""
    try:
        return bool(answer())
    except Undecided:
        return False


def alike(one: Any, other: Any) -> bool:
    """Whether two values, or tuples of them, are known to be equal."""
    return surely(lambda: one == other)


def divides(unit: int, size: int) -> bool:
    """Whether a size is known to be a multiple of another."""
    return alike(size % unit, 0)


def covers(size: int, extent: int) -> bool:
    """Whether so many points are known to be no fewer than there are."""
    return surely(lambda: size >= extent)


def clipped(size: int, extent: int) -> int:
    """A number of points, or the extent where that is less and has a known value: code is written
    out for so many points."""
    return size if isinstance(extent, Size) else min(size, extent)


def common_divisor(values: Iterable[int]) -> int:
    """The greatest number that divides all values, whatever sizes are; 0 of none or of zeros."""
    known = list(values)
    if not any(isinstance(x, Size) for x in known):
        return math.gcd(*known)
    if any(alike(abs(x), 1) for x in known if not isinstance(x, Size)):
        return 1
    if len(known) > 1:
        raise Undecided(f"what divides {', '.join(map(str, known))} is known only at run time")
    return abs(known[0])


def largest(*values: _Number) -> _Number:
    """The largest value, where it is the same one whatever sizes are."""
    try:
        return max(values)
    except Undecided:
        return _first(values, lambda one, other: one >= other)


def smallest(*values: _Number) -> _Number:
    """The smallest one, likewise."""
    try:
        return min(values)
    except Undecided:
        return _first(values, lambda one, other: one <= other)


def _first(values: Sequence[_Number], before: Callable[[Any, Any], bool]) -> _Number:
    """The value that comes before all others, or along with them."""
    for one in values:
        if all(surely(partial(before, one, other)) for other in values):
            return one
    raise Undecided(f"which of {', '.join(map(str, values))} is known only when the kernel runs")


def limits(value: int) -> tuple[int, int]:
    """Two integers between which all values lie, as near as is easily told."""
    if not isinstance(value, Size):
        return value, value
    terms = value.terms
    low, high = _ends(terms)
    if any(isinstance(atom, Quotient) for monomial, _ in terms for atom in monomial):
        # 2 * (N / 2) is told from N by what a quotient is, and not by where both of them lie.
        below, scale = _divided(terms, 1)
        low = max(low, -(-_ends(below)[0] // scale))
        above, scale = _divided(terms, -1)
        high = min(high, _ends(above)[1] // scale)
    return low, high


def _ends(terms: Terms) -> tuple[int, int]:
    from_below, from_above = _shifted(terms, 1), _shifted(terms, -1)
    return _end(from_below, terms, min), _end(from_above, terms, max)


def _divided(terms: Terms, sign: int) -> tuple[Terms, int]:
    """A polynomial without quotients, and a scale: divided by it, it is no more than the terms if
    the sign is positive, and no less if it is negative. ``p / d``, rounded down, lies between
    ``(p - (d - 1)) / d`` and ``p / d``, and what it is multiplied with is not negative."""
    scale = 1
    while True:
        found: dict[Monomial, int] = {}
        quotients = {a for m, _ in terms for a in m if isinstance(a, Quotient)}
        if not quotients:
            return terms, scale
        atom = max(quotients, key=lambda each: len(str(each)))  # before those that are within it
        for monomial, c in terms:
            if atom not in monomial:
                found[monomial] = found.get(monomial, 0) + c * atom.divisor
                continue
            left = list(monomial)
            left.remove(atom)
            dividend = dict(atom.terms)
            if c * sign > 0:
                dividend[()] = dividend.get((), 0) - (atom.divisor - 1)
            for other, d in dividend.items():
                key = tuple(sorted((*left, *other), key=str))
                found[key] = found.get(key, 0) + c * d
        scale *= atom.divisor
        terms = terms_of(Size.made(found))


def _end(shifted: Mapping[Monomial, int], terms: Terms, end: Any) -> int:
    # Counted from their smallest values, atoms are not negative: without coefficients of the other
    # sign, the constant is the end. Otherwise, each term by itself.
    others = [c for m, c in shifted.items() if m]
    if all(c >= 0 for c in others) and end is min:
        return shifted.get((), 0)
    if all(c <= 0 for c in others) and end is max:
        return shifted.get((), 0)
    total = 0
    for monomial, c in terms:
        ends = [math.prod(x) for x in product(*((a.least, a.most) for a in monomial))]
        total += end(c * x for x in ends)
    return total


def _shifted(terms: Terms, sign: int) -> dict[Monomial, int]:
    """The terms in atoms that are counted from their smallest values."""
    found: dict[Monomial, int] = {}
    for monomial, c in terms:
        for chosen in product(*((True, False) for _ in monomial)):
            kept = tuple(a for a, keep in zip(monomial, chosen, strict=True) if keep)
            left = (a.least for a, keep in zip(monomial, chosen, strict=True) if not keep)
            found[kept] = found.get(kept, 0) + c * math.prod(left)
    return found


def _sum(left: int, right: int, sign: int) -> dict[Monomial, int]:
    found = dict(terms_of(left))
    for monomial, c in terms_of(right):
        found[monomial] = found.get(monomial, 0) + sign * c
    return found


def _ratio(left: int, right: int) -> int:
    """A quotient that is known."""
    theirs = dict(terms_of(right))
    ours = dict(terms_of(left))
    if theirs.keys() == ours.keys():
        found = {divmod(ours[m], theirs[m]) for m in theirs}
        if len(found) == 1:
            quotient, rest = found.pop()
            if rest == 0:
                return quotient
    low, high = limits(left)
    below, _ = limits(right)
    if low >= 0 and high < below:
        return 0
    raise Undecided(f"{left} / {right} is known only when the kernel runs")


def _at_least(left: float, right: float, margin: int) -> bool:
    """``left >= right + margin``."""
    if isinstance(left, float) or isinstance(right, float):
        # Beside infinities, any of the values tells.
        ends = [limits(x) if isinstance(x, int) else (x, x) for x in (left, right)]
        (low, high), (below, above) = ends
        if low >= above + margin:
            return True
        if high < below + margin:
            return False
        raise Undecided(f"{left} >= {right} is known only when the kernel runs")
    least, most = limits(left - right)
    if least >= margin:
        return True
    if most < margin:
        return False
    raise Undecided(f"whether {left} >= {right + margin} is known only when the kernel runs")


def formula(value: int) -> Any:
    """A polynomial as data that JSON has: an integer; the name of a size; or a list, of ``"+"`` or
    ``"*"`` and what is added up or multiplied, or of ``"/"``, a dividend and a divisor."""
    if not isinstance(value, Size):
        return value
    parts = [_product([c, *map(_factor, monomial)]) for monomial, c in value.terms]
    return parts[0] if len(parts) == 1 else ["+", *parts]


def _product(factors: list[Any]) -> Any:
    factors = [f for f in factors if f != 1] or [1]
    return factors[0] if len(factors) == 1 else ["*", *factors]


def _factor(atom: Atom) -> Any:
    if isinstance(atom, Symbol):
        return ["/", atom.name, atom.multiple] if atom.multiple > 1 else atom.name
    return ["/", formula(Size.made(dict(atom.terms))), atom.divisor]


def value_of(found: Any, sizes: Mapping[str, int]) -> int:
    """The value of a ``formula``."""
    value: int = calculator(found)(sizes)
    return value


def calculator(wanted: Any) -> Callable[[Mapping[str, int]], Any]:
    """What gives the values of formulas for some sizes, in tuples and dicts as ``wanted`` has them.
    It is compiled, as calls wait for it."""
    found: Callable[[Mapping[str, int]], Any]
    found = eval(f"lambda sizes: {_expression(wanted)}", {"__builtins__": {}})
    return found


def _expression(wanted: Any) -> str:
    """Python's for the values. Names are quoted: files may say what they like."""
    match wanted:
        case int():
            return repr(int(wanted))
        case str():
            return f"sizes[{wanted!r}]"
        case tuple():
            return f"({''.join(f'{_expression(each)}, ' for each in wanted)})"
        case dict():
            return f"{{{', '.join(f'{key!r}: {_expression(v)}' for key, v in wanted.items())}}}"
        case ["+" | "*" as sign, *parts]:
            return f"({f' {sign} '.join(map(_expression, parts))})"
        case ["/", dividend, divisor]:
            return f"({_expression(dividend)} // {_expression(divisor)})"
    raise ValueError(f"{wanted} is no formula")


def symbols_of(values: Iterator[int]) -> dict[str, Symbol]:
    """The sizes that polynomials depend on, by name."""
    found: dict[str, Symbol] = {}
    pending = [m for v in values for m, _ in terms_of(v)]
    while pending:
        for atom in pending.pop():
            if isinstance(atom, Symbol):
                found[atom.name] = atom
            else:
                pending += [m for m, _ in atom.terms]
    return found
