"""Text → tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.source import Source, Span

END = "$END"
"""The kind of the token behind the last one."""

_KEYWORDS = {word: word.upper() for word in ("def", "where", "in", "exists", "min", "max")}
_NUMBER = r"(?![A-Za-z_0-9])"
"""A number does not run into a name."""
_TOKEN = re.compile(
    "|".join(
        f"(?P<{kind}>{pattern})"
        for kind, pattern in {
            "SCALAR": r"(?:bool|byte|half|float|double|bfloat16|float(?:16|32|64)"
            r"|u?int(?:8|16|32|64))\b",
            "REDUCE": r"(?:\+|\*|min|max)=!?",
            "AXIS": r"(?<=[A-Za-z0-9_])\.[0-9]+",  # the `.0` of `T.0`: right behind a name
            "FLOAT": rf"(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
            rf"|[0-9]+[eE][+-]?[0-9]+){_NUMBER}",
            "INT": rf"[0-9]+{_NUMBER}",
            "NAME": r"[A-Za-z_][A-Za-z0-9_]*",
            "EQUIVALENT": "<=>",
            "ARROW": "->",
            "EQUALITY": "[=!]=",
            "RELATION": "[<>]=?",
            "OR": r"\|\|",
            "AND": "&&",
            "EQUAL": "=",
            "NOT": "!",
            "PLUS": r"\+",
            "MINUS": "-",
            "TIMES": "[*/%]",
            "LPAR": r"\(",
            "RPAR": r"\)",
            "LBRACE": r"\{",
            "RBRACE": r"\}",
            "COMMA": ",",
            "COLON": ":",
            "QMARK": r"\?",
        }.items()
    )
)
_IGNORED = re.compile(r"(?:[ \t\r\n\f\v]+|#[^\n]*)*")


@dataclass(slots=True)
class Token:
    """A word of the language."""

    kind: str
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
        position, kind = found.end(), found.lastgroup or ""
        if kind == "NAME":
            kind = _KEYWORDS.get(found[0], kind)
        yield Token(kind, found[0], Span(start, position, line, start - line_start + 1))
