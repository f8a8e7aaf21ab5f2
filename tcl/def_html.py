"""Defs as notebooks show them: the text with its words marked, inputs and outputs in a table."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tcl.grammar.ranges.findings import output_dims
from tcl.grammar.syntax.parser import parse
from tcl.grammar.syntax.printer import to_text
from tcl.grammar.syntax.types import ALIASES, SCALAR_TYPES
from tcl.grammar.tree.checked import CheckedDef
from tcl.html.markup import Markup, join, shown, table, table_row, tag

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


def text_html(source: str, definitions: Iterable[CheckedDef]) -> str:
    return shown(highlighted(source.strip("\n")), map(_arguments, definitions))


def def_html(source: str, definition: CheckedDef) -> str:
    tree = next(d for d in parse(source).defs if d.name == definition.name)
    return shown(highlighted(to_text(tree)), _arguments(definition))


def _arguments(definition: CheckedDef) -> Markup:
    """The def's inputs and outputs, as a table."""
    rows, inferred = [], output_dims(definition)
    for tensor in definition.inputs + definition.outputs:
        shape = ", ".join(map(str, inferred.get(tensor.name, tensor.dims) or ()))
        kind = "input" if tensor.is_input else "output"
        type_ = f"{tensor.type}({shape})" if shape else str(tensor.type)
        rows.append(table_row(tensor.name, kind, type_))
    return table((definition.name, "", "type"), rows)
