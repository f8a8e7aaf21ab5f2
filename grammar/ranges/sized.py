"""A checked definition with concrete sizes: what range inference hands to code generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.source import Span
from tcl.grammar.tree.checked import CheckedDef, Read, Statement

How: TypeAlias = Literal["read", "exists", "written", "declared"]


@dataclass(frozen=True, slots=True)
class Limit:
    """The dimension that gave a range its first value, or its last, and what was done with it."""

    how: How
    tensor: str
    axis: int
    span: Span
    """Of the read, or of the statement that writes."""


@dataclass(frozen=True, slots=True)
class SizedStatement:
    statement: Statement
    ranges: Mapping[str, tuple[int, int]]
    """Index → (first, stop), stop exclusive; output indices first, then reduction indices."""
    checks: frozenset[tuple[Span, int]]
    """(span of the read, axis) of the subscripts that have to be checked at run time."""
    limits: Mapping[str, tuple[Limit, Limit]] = field(compare=False, repr=False)
    """Index → what gave its first value and its last; without those that a clause gives."""

    def needs_check(self, read: Read, axis: int) -> bool:
        """Whether this subscript may leave its tensor for some data."""
        return (read.span, axis) in self.checks

    def extent(self, index: str) -> int:
        """Number of values that ``index`` takes."""
        first, stop = self.ranges[index]
        return stop - first


@dataclass(frozen=True, slots=True)
class SizedDef:
    """A definition for one set of input shapes.

    Element ``[0, ...]`` of an array is the tensor's element at its origin: a read ``T(i)`` is
    array element ``i - origins["T"][0]``. Inputs have origin 0.
    """

    checked: CheckedDef
    sizes: Mapping[str, int]
    """Size symbol → value."""
    shapes: Mapping[str, tuple[int, ...]]
    """Tensor → extents, of inputs and outputs."""
    origins: Mapping[str, tuple[int, ...]]
    """Tensor → first index of each dimension."""
    statements: tuple[SizedStatement, ...]
