"""Text of the language with its words marked, for pages."""

from __future__ import annotations

import re

from tcl.grammar.syntax.types import ALIASES, SCALAR_TYPES
from tcl.html.markup import Markup, join, tag

_WORDS = {
    "comment": r"#[^\n]*",
    "keyword": r"\b(?:def|where|in|exists|min|max)\b",
    "type": rf"\b(?:{'|'.join(map(re.escape, (*SCALAR_TYPES, *ALIASES)))})\b",
}
_WORD = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _WORDS.items()))


def highlighted(text: str) -> Markup:
    """The text as a block, with comments, keywords and types in classes of these names."""
    pieces: list[str] = []
    end = 0
    for found in _WORD.finditer(text):
        pieces += [text[end : found.start()], tag("span", found[0], class_=found.lastgroup)]
        end = found.end()
    return tag("pre", tag("code", join(pieces), text[end:]))
