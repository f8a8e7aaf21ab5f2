"""Where something stands in a text, and how to show it."""

from __future__ import annotations

from dataclasses import field

from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source text."""

    start: int
    """Offset of the first character, from 0."""
    end: int
    """Offset behind the last character."""
    line: int
    """Line of the first character, from 1."""
    column: int
    """Column of the first character, from 1."""

    def __lt__(self, other: Span) -> bool:
        return (self.start, self.end) < (other.start, other.end)


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the name to show for it in messages."""

    text: str = field(repr=False)
    name: str = "<string>"

    def span_at(self, start: int, end: int) -> Span:
        """The span of ``text[start:end]``, with line and column worked out."""
        start = max(0, min(start, len(self.text)))
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start)
        return Span(start, max(start, end), line, column)

    def one_line(self, span: Span) -> str:
        """The text of ``span``, whatever its spaces and line ends."""
        return " ".join(self.text[span.start : span.end].split())

    def excerpt(self, span: Span) -> str:
        """The line of ``span`` with a caret line below it, cut to a readable width."""
        begin = self.text.rfind("\n", 0, span.start) + 1
        end = self.text.find("\n", span.start)
        line = self.text[begin : end if end >= 0 else len(self.text)]
        offset = span.start - begin
        width = max(1, min(span.end, begin + len(line)) - span.start)
        if len(line) > _WIDTH:  # keep the caret in view on very long lines
            cut = max(0, min(offset - _WIDTH // 3, len(line) - _WIDTH))
            line, offset = line[cut : cut + _WIDTH], offset - cut
            width = min(width, _WIDTH - offset)
        # Tabs and other control characters would shift the caret.
        shown = "".join(c if c.isprintable() else " " for c in line)
        return f"{span.line:5} | {shown}\n      | {' ' * offset}{'^' * max(1, width)}"


_WIDTH = 110
