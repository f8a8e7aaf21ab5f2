"""Polynomials in sizes that are known only when a kernel runs, and what lies between them.

Code for a class of sizes asks the same few questions of the same few polynomials for every access
that is emitted. So each is made once, and remembers where its values lie; sums and products of the
same ones are looked up. What is remembered is limited, so that no process grows by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from itertools import product
from typing import TypeAlias

from tcl.common.dataclass import Hashed, dataclass

REMEMBERED = 1 << 13
"""Results of each operation that are remembered."""


@dataclass(frozen=True, slots=True)
class Symbol(Hashed):
    """A size that a kernel is given when it runs, divided by what is known to divide it."""

    name: str
    """Of the size, as the def has it."""
    multiple: int
    """The size is a multiple of this."""
    least: int
    """The smallest value of the quotient."""
    most: int
    representative: int
    """The value by which choices are made."""

    def __str__(self) -> str:
        return self.name if self.multiple == 1 else f"{self.name}/{self.multiple}"


@dataclass(frozen=True, slots=True)
class Quotient(Hashed):
    """A polynomial over a positive integer, rounded down."""

    terms: Terms
    divisor: int
    least: int
    most: int
    representative: int
    _text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_text", f"({terms_text(self.terms)})/{self.divisor}")

    def __str__(self) -> str:
        return self._text


Atom: TypeAlias = Symbol | Quotient
Monomial: TypeAlias = tuple[Atom, ...]
"""What is multiplied, in the order of its text."""
Terms: TypeAlias = tuple[tuple[Monomial, int], ...]
"""Coefficients, none of them 0, by the atoms that they are multiplied with, in a fixed order."""


def terms_text(terms: Terms) -> str:
    """A polynomial as text, the same for equal ones."""
    parts = []
    for monomial, coefficient in terms:
        factors = [str(a) for a in monomial]
        if coefficient != 1 or not factors:
            factors.insert(0, str(coefficient))
        parts.append("*".join(factors))
    return " + ".join(parts)


class Polynomial:
    """What sizes share that differ by a constant: terms without one. Compared by them."""

    __slots__ = ("_hash", "_limits", "_representative", "terms")

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._hash = hash(terms)
        self._limits: tuple[int, int] | None = None
        self._representative: int | None = None

    @staticmethod
    def from_terms(found: Mapping[Monomial, int]) -> Polynomial:
        """The one with these terms, some of which may be 0."""
        return remembered(_ordered((m, c) for m, c in found.items() if c))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Polynomial) and self.terms == other.terms)

    def __hash__(self) -> int:
        return self._hash

    @property
    def representative(self) -> int:
        """The value by which choices are made."""
        if self._representative is None:
            self._representative = sum(
                c * math.prod(a.representative for a in m) for m, c in self.terms
            )
        return self._representative

    @property
    def limits(self) -> tuple[int, int]:
        """Two integers between which all values lie, as near as is easily told."""
        if self._limits is None:
            self._limits = _limits(self.terms)
        return self._limits


def _ordered(terms: Iterable[tuple[Monomial, int]]) -> Terms:
    return tuple(sorted(terms, key=lambda each: [*map(str, each[0])], reverse=True))


@lru_cache(REMEMBERED)
def remembered(terms: Terms) -> Polynomial:
    return Polynomial(terms)


@lru_cache(REMEMBERED)
def plus(one: Polynomial, other: Polynomial, factor: int) -> Polynomial:
    """``one + factor * other``."""
    found = dict(one.terms)
    for monomial, c in other.terms:
        found[monomial] = found.get(monomial, 0) + factor * c
    return Polynomial.from_terms(found)


@lru_cache(REMEMBERED)
def multiplied(one: Polynomial, other: Polynomial) -> Polynomial:
    """Their product, which has no constant either."""
    return Polynomial.from_terms(_multiplied(one.terms, other.terms))


def _multiplied(one: Terms, other: Terms) -> dict[Monomial, int]:
    found: dict[Monomial, int] = {}
    for (m, c), (n, d) in product(one, other):
        key = tuple(sorted((*m, *n), key=str))
        found[key] = found.get(key, 0) + c * d
    return found


ZERO = Polynomial(())


def _limits(terms: Terms) -> tuple[int, int]:
    """As ``Polynomial.limits``."""
    low, high = _ends(terms)
    if any(_quotients(terms)):
        # 2 * (N / 2) is told from N by what a quotient is, and not by where both of them lie.
        below, scale = _without_quotients(terms, 1)
        low = max(low, -(-_ends(below)[0] // scale))
        above, scale = _without_quotients(terms, -1)
        high = min(high, _ends(above)[1] // scale)
    return low, high


def _quotients(terms: Terms) -> Iterator[Quotient]:
    return (a for monomial, _ in terms for a in monomial if isinstance(a, Quotient))


def _ends(terms: Terms) -> tuple[int, int]:
    # Each term by itself: no atom is negative.
    below = [c * math.prod(a.least for a in m) for m, c in terms]
    above = [c * math.prod(a.most for a in m) for m, c in terms]
    low, high = sum(map(min, below, above)), sum(map(max, below, above))
    if min((c for _, c in terms), default=0) < 0 < max((c for _, c in terms), default=0):
        # Counted from their smallest values, atoms are not negative, either: without coefficients
        # of the other sign, the constant is the end.
        shifted = _shifted(terms)
        others = [c for m, c in shifted.items() if m]
        constant = shifted.get((), 0)
        low = constant if all(c >= 0 for c in others) else low
        high = constant if all(c <= 0 for c in others) else high
    return low, high


def _shifted(terms: Terms) -> dict[Monomial, int]:
    """The terms in atoms that are counted from their smallest values."""
    found: dict[Monomial, int] = {}
    for monomial, c in terms:
        parts: dict[Monomial, int] = {(): c}
        for atom in monomial:
            kept = {(*m, atom): d for m, d in parts.items()}
            for m, d in parts.items() if atom.least else ():
                kept[m] = kept.get(m, 0) + d * atom.least
            parts = kept
        for m, d in parts.items():
            found[m] = found.get(m, 0) + d
    return found


def _without_quotients(terms: Terms, sign: int) -> tuple[Terms, int]:
    """A polynomial without quotients, and a scale: divided by it, it is no more than the terms if
    the sign is positive, and no less if it is negative. ``p / d``, rounded down, lies between
    ``(p - (d - 1)) / d`` and ``p / d``, and what it is multiplied with is not negative."""
    scale = 1
    while quotients := {*_quotients(terms)}:
        found: dict[Monomial, int] = {}
        # Before those that are within it.
        atom = max(quotients, key=lambda each: (len(str(each)), str(each)))
        for monomial, c in terms:
            if atom not in monomial:
                found[monomial] = found.get(monomial, 0) + c * atom.divisor
                continue
            left = list(monomial)
            left.remove(atom)
            dividend = dict(atom.terms)
            if c * sign > 0:
                dividend[()] = dividend.get((), 0) - (atom.divisor - 1)
            for key, d in _multiplied(((tuple(left), c),), tuple(dividend.items())).items():
                found[key] = found.get(key, 0) + d
        scale *= atom.divisor
        terms = _ordered((m, c) for m, c in found.items() if c)
    return terms, scale
