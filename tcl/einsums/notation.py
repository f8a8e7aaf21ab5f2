"""What einsum's subscripts say, in both of NumPy's forms: letters and lists of numbers. With the
shapes of its operands, every index of an expression has its extent."""

from __future__ import annotations

import operator
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.common.number_format import plural
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
            raise _refused(expression, f"the output has the index '{label}', but no operand has it")
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
                raise _refused(
                    expression, f"{whose} has a single '.' at position {at} instead of '...'"
                )
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
                f"einsum: {whose} has {shown(each)} in its subscripts; they must be whole "
                "numbers or Ellipsis"
            ) from None
        if not 0 <= number < len(_LETTERS):
            raise ArgumentError(
                f"einsum: {whose} has {number} in its subscripts; they must be from 0 to "
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


Shape: TypeAlias = tuple[int, ...]
Term: TypeAlias = tuple[str | None, ...]
"""The index of each dimension: a letter, or the number of a dimension that an ellipsis stands for.
None: the dimension has extent 1 and its index another one, so it is read at 0 alone."""


@dataclass(frozen=True, slots=True)
class Indexed:
    notation: Notation
    terms: tuple[Term, ...]
    """Of each operand."""
    output: Labels
    """No index is there twice."""
    sizes: dict[str, int]
    """The extent of every index. Empty if shapes are not known: then nothing is broadcast."""


def with_ranks(notation: Notation, ranks: Sequence[int]) -> Indexed:
    """An expression for operands of so many dimensions. Raises ``ArgumentError``."""
    expected = len(notation.terms)
    if len(ranks) != expected:
        raise notation.refused(
            f"there are subscripts for {plural(expected, 'operand')}, but "
            f"{plural(len(ranks), 'operand')} {'was' if len(ranks) == 1 else 'were'} given"
        )
    hidden = []
    for number, (labels, rank) in enumerate(zip(notation.terms, ranks, strict=True)):
        named = len(labels) - labels.count(ELLIPSIS)
        if rank < named or (rank > named and ELLIPSIS not in labels):
            raise notation.refused(
                f"operand {number} has {plural(rank, 'dimension')}, but its subscripts "
                f"'{''.join(labels)}' are for {'at least ' * (ELLIPSIS in labels)}{named}"
                + "; write '...' for dimensions without an index"
                * (rank > named)
            )
        hidden.append(rank - named)
    most = max(hidden, default=0)
    if most and ELLIPSIS not in notation.output:
        raise notation.refused(
            f"'...' means {plural(most, 'dimension')}, which the output does not have; write "
            "'...' there, or an index for each dimension to sum over"
        )
    terms = tuple(
        _spread(labels, most - rank, most)
        for labels, rank in zip(notation.terms, hidden, strict=True)
    )
    return Indexed(notation, terms, _spread(notation.output, 0, most), {})


def _spread(labels: Labels, first: int, stop: int) -> Labels:
    """The labels with those of the ellipsis' dimensions, which lie together on the right."""
    found: list[str] = []
    for label in labels:
        found.extend(map(str, range(first, stop)) if label == ELLIPSIS else [label])
    return tuple(found)


def with_shapes(notation: Notation, shapes: Sequence[Shape]) -> Indexed:
    """An expression for operands of these shapes. An index has the same extent in all operands, or
    extent 1 in some, which are then repeated along it. Raises ``ArgumentError``."""
    ranked = with_ranks(notation, [len(shape) for shape in shapes])
    sizes: dict[str, int] = {}
    first: dict[str, int] = {}
    for number, (term, shape) in enumerate(zip(ranked.terms, shapes, strict=True)):
        here: dict[str, int] = {}
        for label, extent in zip(term, shape, strict=True):
            assert label is not None  # nothing is broadcast yet
            if here.setdefault(label, extent) != extent:
                raise notation.refused(
                    f"operand {number} has the index '{label}' on dimensions of extents "
                    f"{here[label]} and {extent}, which must be equal"
                )
        for label, extent in here.items():
            known = sizes.get(label, 1)
            if extent != 1 and known not in (1, extent):
                where = f"index '{label}'" if label.isalpha() else f"dimension {label} of '...'"
                raise notation.refused(
                    f"{where} has extent {known} in operand {first[label]}, but {extent} in "
                    f"operand {number}; extents have to be equal, or 1"
                )
            if label not in sizes or extent != 1:
                sizes[label], first[label] = extent, number
    terms = tuple(
        tuple(
            None if extent == 1 != sizes[label or ""] else label
            for label, extent in zip(term, shape, strict=True)
        )
        for term, shape in zip(ranked.terms, shapes, strict=True)
    )
    return Indexed(notation, terms, ranked.output, sizes)
