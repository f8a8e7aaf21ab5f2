"""Lines of source, indented."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tcl.codegen.cuda.cpp.pieces import wrapped


class Lines:
    """Source that is being written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 1

    def add(self, text: str, *, margin: bool = False) -> None:
        """A line, of which a ``margin`` one is not indented."""
        self.lines.append(text if margin else wrapped(text, "    " * self._depth))

    def open(self, text: str) -> None:
        """A line after which a block begins; ``nested`` and ``block`` end it."""
        self.add(text)
        self._depth += 1

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Ends all blocks that are opened inside."""
        depth = self._depth
        yield
        while self._depth > depth:
            self._depth -= 1
            self.add("}")

    @contextmanager
    def block(self, text: str) -> Iterator[None]:
        """Inside of a block that begins with this line."""
        with self.nested():
            self.open(text)
            yield
