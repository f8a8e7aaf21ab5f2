"""An expression with the shapes of its operands: every index has its extent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tcl.common.dataclass import dataclass
from tcl.common.plural import plural
from tcl.einsums.notation import ELLIPSIS, Labels, Notation

Shape: TypeAlias = tuple[int, ...]
Term: TypeAlias = tuple[str | None, ...]
"""The index of each dimension: a letter, or the number of a dimension that an ellipsis stands for.
None: the dimension has extent 1 and its index another one, so it is read at 0 alone."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """What is to be computed."""

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
                + "; write '...' for those without an index"
                * (rank > named)
            )
        hidden.append(rank - named)
    most = max(hidden, default=0)
    if most and ELLIPSIS not in notation.output:
        raise notation.refused(
            f"'...' stands for {plural(most, 'dimension')}, which the output does not have; "
            "write '...' there, or an index for each that is to be summed"
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
                    f"{here[label]} and {extent}, which have to be equal"
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
