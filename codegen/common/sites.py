"""Subscripts that are checked while a kernel runs."""

from __future__ import annotations

from tcl.common.dataclass import dataclass


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
