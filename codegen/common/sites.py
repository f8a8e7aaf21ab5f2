"""Subscripts that are checked while a kernel runs."""

from __future__ import annotations

from tcl.common.dataclass import dataclass
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.errors import Diagnostic
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


def where_checked(sized: SizedDef, message: str) -> str | None:
    """The subscripts of the def that may be meant by the ``message`` of an ``IndexError``, with
    their lines; None if there are none."""
    spans = []
    for each in sized.statements:
        place = () if each.statement.place is None else (each.statement.place,)
        for read in (*reads(each.statement), *place):
            for axis, subscript in enumerate(read.subscripts):
                here = f" dimension {axis} of tensor {read.tensor}, " in message
                if here and each.needs_check(read, axis) and subscript.span not in spans:
                    spans.append(subscript.span)
    if not spans:
        return None
    first, *others = sorted(spans)
    notes = tuple((span, "or this one") for span in others)
    told = Diagnostic(f"it is this subscript of {sized.checked.name}", first, notes)
    return told.render(sized.checked.source, "note")
