"""Text → tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.source import Source, Span

END = "$END"
"""The kind of the token behind the last one."""

_KEYWORDS = frozenset({"def", "where", "in", "exists", "min", "max"})
_NUMBER = r"(?![A-Za-z_0-9])"
"""A number does not run into a name."""
_TOKEN = re.compile(
    r"(?P<SCALAR>(?:bool|byte|half|float|double|bfloat16|float(?:16|32|64)|u?int(?:8|16|32|64))\b)"
    r"|(?P<REDUCE>(?:\+|\*|min|max)=!?)"
    r"|(?P<AXIS>(?<=[A-Za-z0-9_])\.[0-9]+)"  # the `.0` of `T.0`: right behind a name
    r"|(?P<FLOAT>(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)"
    rf"{_NUMBER})|(?P<INT>[0-9]+{_NUMBER})"
    r"|(?P<NAME>[A-Za-z_][A-Za-z0-9_]*)"
    r"|->|<=>|(?P<EQUALITY>[=!]=)|(?P<RELATION>[<>]=?)|(?P<OR>\|\|)|(?P<AND>&&)"
    r"|(?P<TIMES>[*/%])|[-+!=(){},:?]"
)
_IGNORED = re.compile(r"(?:[ \t\r\n\f\v]+|#[^\n]*)*")


@dataclass(slots=True)
class Token:
    """A word of the language."""

    kind: str
    """A word in capitals; of keywords and signs the text itself."""
    text: str
    span: Span


class NoTokenError(Exception):
    """At this position starts no token."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def tokens(source: Source) -> Iterator[Token]:
    """The tokens of a text, then one of the kind ``END``. Raises ``NoTokenError``."""
    text = source.text
    position, line, line_start = 0, 1, 0
    while True:
        ignored = _IGNORED.match(text, position)
        assert ignored is not None  # it may be empty
        start = ignored.end()
        if newlines := text.count("\n", position, start):
            line += newlines
            line_start = text.rfind("\n", position, start) + 1
        if start == len(text):
            yield Token(END, "", Span(start, start, line, start - line_start + 1))
            return
        found = _TOKEN.match(text, start)
        if found is None:
            raise NoTokenError(start)
        position, kind, word = found.end(), found.lastgroup, found[0]
        if word in _KEYWORDS:
            kind = word
        yield Token(kind or word, word, Span(start, position, line, start - line_start + 1))
