"""Subscripts that are checked while a kernel runs."""

from __future__ import annotations

from collections.abc import Iterable

from tcl.common.dataclass import dataclass
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.errors import Diagnostic
from tcl.grammar.syntax.source import Span
from tcl.grammar.tree.checked import CheckedDef
from tcl.grammar.tree.traverse import reads


@dataclass(frozen=True, slots=True)
class Site:
    """A subscript that is checked while the kernel runs."""

    tensor: str
    axis: int
    first: int
    extent: int
    unsigned: bool
    """The recorded value is to be read as a uint64."""

    def message(self, value: int) -> str:
        """The sentence of the ``IndexError`` for this value."""
        value = value % 2**64 if self.unsigned else value
        last = self.first + self.extent - 1
        has = f"has indices {self.first} to {last}" if self.extent else "is empty"
        return (
            f"index {value} is out of range for dimension {self.axis} "
            f"of tensor {self.tensor}, which {has}"
        )

    def error(self, value: int, sized: SizedDef | None) -> IndexError:
        """The error for this value, with a note of the subscripts of the def that it may mean."""
        found = IndexError(self.message(value))
        spans = [
            read.subscripts[self.axis].span
            for each in (() if sized is None else sized.statements)
            for read in (*reads(each.statement), each.statement.place)
            if read and read.tensor == self.tensor and each.needs_check(read, self.axis)
        ]
        if sized is not None and spans:
            found.add_note(where(sized.checked, spans))
        return found


def where(checked: CheckedDef, spans: Iterable[Span]) -> str:
    """A note of the subscripts of a def that an ``IndexError`` may mean, with their lines."""
    first, *others = sorted(set(spans))
    notes = tuple((span, "or this one") for span in others)
    told = Diagnostic(f"it is this subscript of {checked.name}", first, notes)
    return told.render(checked.source, "note")
