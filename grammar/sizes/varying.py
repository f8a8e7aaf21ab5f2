"""Sizes that are known only when a kernel runs, as integers that compilers can work with.

A ``Size`` is a polynomial with integer coefficients in such sizes, and in quotients of polynomials.
Whatever works with sizes works with it: it has an integer's arithmetic, but no value. A comparison
is answered only if the answer is the same for every value that the sizes may have, and raises
``Undecided`` where it is not, as does whatever asks for a plain number. So nothing is ever decided
by one of the values: where a choice may rest on one, because each answer is right, the code says so
with ``representative``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tcl.grammar.sizes.polynomials import (
    REMEMBERED,
    ZERO,
    Atom,
    Monomial,
    Polynomial,
    Quotient,
    Symbol,
    Terms,
    multiplied,
    plus,
)

if TYPE_CHECKING:
    _Integer: TypeAlias = int  # as which whatever works with sizes has them
else:
    _Integer = object  # an ``int`` would have a value, and whatever is written in C would take it

_Number = TypeVar("_Number", int, float)


class Undecided(Exception):  # noqa: N818
    """A question whose answer depends on a size that is known only when a kernel runs."""


class Size(_Integer):
    """An integer that depends on sizes which are known when a kernel runs."""

    __slots__ = ("_constant", "_polynomial")
    _polynomial: Polynomial
    _constant: int

    @staticmethod
    def from_terms(found: Mapping[Monomial, int]) -> int:
        """The polynomial; a plain integer if it is one."""
        terms = dict(found)
        constant = terms.pop((), 0)
        return Size._plus_constant(Polynomial.from_terms(terms), constant)

    @staticmethod
    def _plus_constant(polynomial: Polynomial, constant: int) -> int:
        if not polynomial.terms:
            return constant
        size = object.__new__(Size)
        size._polynomial, size._constant = polynomial, constant
        return size

    @staticmethod
    def named(name: str, *, least: int, most: int, multiple: int = 1, value: int) -> int:
        """The size of this name: a multiple of ``multiple`` from ``least`` to ``most``; choices are
        made as if it were ``value``."""
        first, last = -(-least // multiple), most // multiple
        symbol = Symbol(name, multiple, first, last, value // multiple)
        return Size.from_terms({(symbol,): multiple})

    @property
    def terms(self) -> Terms:
        """All of it, the constant last."""
        terms = self._polynomial.terms
        return (*terms, ((), self._constant)) if self._constant else terms

    # Arithmetic.

    def __add__(self, other: int) -> int:
        return self._plus(other, 1)

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        return self._plus(other, -1)

    def _plus(self, other: int, factor: int) -> int:
        """``self + factor * other``."""
        if isinstance(other, Size):
            found = plus(self._polynomial, other._polynomial, factor)
            return Size._plus_constant(found, self._constant + factor * other._constant)
        if isinstance(other, int):
            return Size._plus_constant(self._polynomial, self._constant + factor * other)
        if isinstance(other, float):  # no size changes what is infinite
            return factor * other if math.isinf(other) else self._no()
        return NotImplemented

    def __rsub__(self, other: int) -> int:
        return -self + other

    def __neg__(self) -> int:
        return Size._plus_constant(plus(ZERO, self._polynomial, -1), -self._constant)

    def __pos__(self) -> int:
        return self

    def __abs__(self) -> int:
        return self if self >= 0 else -self

    def __mul__(self, other: int) -> int:
        mine, constant = self._polynomial, self._constant
        if isinstance(other, Size):
            found = multiplied(mine, other._polynomial)
            found = plus(plus(found, mine, other._constant), other._polynomial, constant)
            return Size._plus_constant(found, constant * other._constant)
        if isinstance(other, int):
            return Size._plus_constant(plus(ZERO, mine, other), constant * other)
        return self._no() if isinstance(other, float) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> int:
        if isinstance(other, Size):
            return _ratio(self, other)
        if not isinstance(other, int):
            return self._no() if isinstance(other, float) else NotImplemented
        return over(self._polynomial, self._constant, other)

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
    __int__ = __index__ = __float__ = __complex__ = __round__ = _no
    __trunc__ = __floor__ = __ceil__ = _no
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
        if isinstance(other, float):
            if not other.is_integer():
                return False
            other = int(other)
        if not isinstance(other, int | Size):
            return NotImplemented
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
        return hash((self._polynomial, self._constant))

    # Text.

    def __str__(self) -> str:
        return _text(self.terms)

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return Size.from_terms, (dict(self.terms),)


def _text(terms: Terms) -> str:
    """As people write it: what is subtracted stands behind what is added, a number last."""
    ordered = sorted(terms, key=lambda term: (term[0] == (), term[1] < 0))
    text = " + ".join(_factors_text(monomial, factor) for monomial, factor in ordered)
    return text.replace("+ -", "- ")


def _factors_text(monomial: Monomial, factor: int) -> str:
    """A number times sizes and quotients."""
    texts = []
    for atom in monomial:
        if isinstance(atom, Quotient):
            dividend = _text(atom.terms)
            texts.append(f"{f'({dividend})' if ' ' in dividend else dividend}/{atom.divisor}")
        else:
            texts.append(str(atom))
    sign = "-" if factor < 0 else ""
    return sign + "*".join([str(abs(factor))] * (abs(factor) != 1 or not texts) + texts)


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


def representative(value: int) -> int:
    """The value by which choices are made, each of which is right."""
    return value._polynomial.representative + value._constant if isinstance(value, Size) else value


def provably(answer: Any) -> bool:
    """Whether the answer, a function of nothing, is yes for all values that sizes may have."""
    try:
        return bool(answer())
    except Undecided:
        return False


def provably_equal(one: Any, other: Any) -> bool:
    """Whether two values, or tuples of them, are known to be equal."""
    if type(one) is int and type(other) is int:  # as nearly always
        return one == other
    return provably(lambda: one == other)


def provably_divides(unit: int, size: int) -> bool:
    """Whether a size is known to be a multiple of another."""
    return provably_equal(size % unit, 0)


def provably_at_least(size: int, extent: int) -> bool:
    """Whether so many points are known to be no fewer than there are."""
    return provably(lambda: size >= extent)


def clipped(size: int, extent: int) -> int:
    """A number of points, or the extent where that is less and has a known value: code is written
    out for so many points."""
    return size if isinstance(extent, Size) else min(size, extent)


def common_divisor(values: Iterable[int]) -> int:
    """The greatest number that divides all values, whatever sizes are; 0 of none or of zeros."""
    known = list(values)
    if not any(isinstance(x, Size) for x in known):
        return math.gcd(*known)
    if any(provably_equal(abs(x), 1) for x in known if not isinstance(x, Size)):
        return 1
    if len(known) > 1:
        raise Undecided(
            f"the common divisor of {', '.join(map(str, known))} is known only at run time"
        )
    return abs(known[0])


def largest(*values: _Number) -> _Number:
    """The largest value, where it is the same one whatever sizes are."""
    try:
        return max(values)
    except Undecided:
        return _extreme(values, lambda one, other: one >= other)


def smallest(*values: _Number) -> _Number:
    """The smallest one, likewise."""
    try:
        return min(values)
    except Undecided:
        return _extreme(values, lambda one, other: one <= other)


def _extreme(values: Sequence[_Number], before: Callable[[Any, Any], bool]) -> _Number:
    """The value that comes before all others, or along with them."""
    for one in values:
        if all(provably(partial(before, one, other)) for other in values):
            return one
    listed = ", ".join(map(str, values))
    raise Undecided(f"the largest or smallest of {listed} is known only when the kernel runs")


def limits(value: int) -> tuple[int, int]:
    """Two integers between which all values lie, as near as is easily told."""
    if not isinstance(value, Size):
        return value, value
    low, high = value._polynomial.limits
    return low + value._constant, high + value._constant


def product_reaches(values: Sequence[int], least: int) -> bool:
    """Whether numbers, none of them negative, have a product as large as this. It is multiplied out
    only where the values' limits do not tell: of n differences it has 2**n terms."""
    lows, highs = zip(*map(limits, values), strict=True) if values else ((), ())
    if math.prod(max(0, low) for low in lows) >= least:
        return True
    return math.prod(highs) >= least and math.prod(values) >= least


@lru_cache(REMEMBERED)
def over(polynomial: Polynomial, constant: int, divisor: int) -> int:
    """``(polynomial + constant) // divisor``."""
    if divisor < 0:
        return -Size._plus_constant(polynomial, constant) // -divisor
    terms = (*polynomial.terms, ((), constant))
    whole = {m: c // divisor for m, c in terms if c % divisor == 0}
    rest = {m: c for m, c in terms if c % divisor}
    constant = rest.pop((), 0)
    if not rest:
        return Size.from_terms(whole) + constant // divisor
    left = Size.from_terms({**rest, (): constant})
    low, high = limits(left)
    if high <= 0:  # quotients are of what is not negative
        return Size.from_terms(whole) - (-left + (divisor - 1)) // divisor
    if low < 0:
        less = low // divisor
        constant -= less * divisor
        left = Size.from_terms({**rest, (): constant})
        whole[()] = whole.get((), 0) + less
        low, high = low - less * divisor, high - less * divisor
    common = math.gcd(divisor, *rest.values())
    if common > 1:  # (g p + c) / (g d) is (p + c / g) / d, all rounded down
        left = Size.from_terms({m: c // common for m, c in rest.items()} | {(): constant // common})
        return Size.from_terms(whole) + left // (divisor // common)
    (monomial, c), *more = rest.items()
    if not more and c == 1 and len(monomial) == 1 and isinstance(monomial[0], Quotient):
        inner = monomial[0]  # (p / d + c) / e is (p + c d) / (d e)
        left = Size.from_terms(dict(inner.terms)) + constant * inner.divisor
        return Size.from_terms(whole) + left // (inner.divisor * divisor)
    atom = Quotient(
        terms_of(left), divisor, low // divisor, high // divisor, representative(left) // divisor
    )
    if atom.least == atom.most:
        return Size.from_terms(whole) + atom.least
    return Size.from_terms(whole) + Size.from_terms({(atom,): 1})


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
        ends = [limits(x) if isinstance(x, Size) else (x, x) for x in (left, right)]
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
    return ["/", formula(Size.from_terms(dict(atom.terms))), atom.divisor]


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
    raise ValueError(f"{wanted} is not a formula")


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
