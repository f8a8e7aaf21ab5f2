"""What einsum's subscripts say, in both of NumPy's forms: letters and lists of numbers."""

from __future__ import annotations

import operator
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.common.shown import kind_of, shown

Labels: TypeAlias = tuple[str, ...]
"""The index of each dimension: a letter, or ``ELLIPSIS`` for any number of them."""

ELLIPSIS = "..."
_LETTERS = string.ascii_uppercase + string.ascii_lowercase
"""The indices that numbers stand for. NumPy's order: implicit outputs are sorted by it."""


@dataclass(frozen=True, slots=True)
class Notation:
    """An expression that is right in itself, whatever its operands are."""

    terms: tuple[Labels, ...]
    """Of each operand."""
    output: Labels

    def __str__(self) -> str:
        return f"{','.join(map(''.join, self.terms))}->{''.join(self.output)}"

    def refused(self, problem: str) -> ArgumentError:
        """An error of this expression."""
        return ArgumentError(f"einsum '{self}': {problem}")


def read_letters(expression: str) -> Notation:
    """The notation of a string such as ``"bik,kj->bij"``. Raises ``ArgumentError``."""
    inputs, arrow, output = expression.partition("->")
    if "->" in output:
        at = expression.index("->", len(inputs) + 2)
        raise _refused(expression, f"there is a second '->' at position {at}")
    terms = []
    start = 0
    for number, term in enumerate(inputs.split(",")):
        terms.append(_labels(expression, term, start, f"operand {number}"))
        start += len(term) + 1
    if not arrow:
        return Notation(tuple(terms), _implicit(terms))
    labels = _labels(expression, output, len(inputs) + 2, "the output")
    return _with_output(expression, terms, labels)


def read_numbers(lists: Sequence[Any], explicit: bool) -> Notation:
    """The notation of lists of numbers, one for each operand, and one for the output if that is
    ``explicit``. Raises ``ArgumentError``."""
    count = len(lists) - explicit
    terms = [_numbered(each, f"operand {number}") for number, each in enumerate(lists[:count])]
    if not explicit:
        return Notation(tuple(terms), _implicit(terms))
    output = _numbered(lists[-1], "the output")
    return _with_output(str(Notation(tuple(terms), output)), terms, output)


def _with_output(expression: str, terms: list[Labels], output: Labels) -> Notation:
    known = {ELLIPSIS}.union(*terms)
    for label, count in Counter(output).items():
        if label not in known:
            raise _refused(expression, f"the output's index '{label}' is in no operand")
        if count > 1:
            raise _refused(expression, f"the output has the index '{label}' {count} times")
    return Notation(tuple(terms), output)


def _labels(expression: str, term: str, start: int, whose: str) -> Labels:
    """The indices of one operand, or of the output, which starts there."""
    found: list[str] = []
    characters = [(start + n, c) for n, c in enumerate(term) if not c.isspace()]
    while characters:
        at, character = characters.pop(0)
        if character == ".":
            following = [c for _, c in characters[:2]]
            if following != [".", "."]:
                raise _refused(expression, f"{whose} has a '.' at position {at} that is no '...'")
            if ELLIPSIS in found:
                raise _refused(expression, f"{whose} has a second '...' at position {at}")
            del characters[:2]
            found.append(ELLIPSIS)
        elif character in _LETTERS:
            found.append(character)
        else:
            raise _refused(
                expression,
                f"{whose} has {character!r} at position {at}; indices are the letters a to z and "
                "A to Z",
            )
    return tuple(found)


def _numbered(given: Any, whose: str) -> Labels:
    """Likewise, from a list of numbers."""
    try:
        numbers = None if isinstance(given, str | bytes) else tuple(given)
    except TypeError:
        numbers = None
    if numbers is None:
        raise ArgumentError(
            f"einsum: the subscripts of {whose} have to be a list of numbers, not {kind_of(given)}"
        )
    found: list[str] = []
    for each in numbers:
        if each is Ellipsis:
            if ELLIPSIS in found:
                raise ArgumentError(f"einsum: {whose} has a second Ellipsis in its subscripts")
            found.append(ELLIPSIS)
            continue
        try:
            number = operator.index(each)
        except TypeError:
            raise ArgumentError(
                f"einsum: {whose} has {shown(each)} in its subscripts, which are whole numbers "
                "and Ellipsis"
            ) from None
        if not 0 <= number < len(_LETTERS):
            raise ArgumentError(
                f"einsum: {whose} has {number} in its subscripts, which go from 0 to "
                f"{len(_LETTERS) - 1}"
            )
        found.append(_LETTERS[number])
    return tuple(found)


def _implicit(terms: Sequence[Labels]) -> Labels:
    """Without ``->`` the output has what the ellipses stand for, then each index that is there
    once, in the order of the alphabet, upper case first."""
    counts = Counter(label for term in terms for label in term)
    broadcast = counts.pop(ELLIPSIS, 0)
    once = sorted(label for label, count in counts.items() if count == 1)
    return ((ELLIPSIS,) if broadcast else ()) + tuple(once)


def _refused(expression: str, problem: str) -> ArgumentError:
    return ArgumentError(f"einsum '{expression}': {problem}")
