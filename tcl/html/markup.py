"""HTML and SVG as nested calls. Whatever text goes in comes out as text: nothing is markup but what
``tag`` made.

What a notebook shows below a cell takes the notebook's own colours, light or dark. JupyterLab's own
rules for tables name three classes: ours name one three times, so that they hold.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TypeAlias


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | Iterable[Child] | None"

_VOID = frozenset({"meta", "br", "hr", "col"})


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """An element. An attribute of two words is written with ``_``, as ``stroke_width``; ``class_``
    and ``for_`` stand for Python's keywords. None and False leave an attribute out."""
    opening = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        opening += f" {key.rstrip('_').replace('_', '-')}"
        if value is not True:
            text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
            opening += f'="{html.escape(_printable(str(text)))}"'
    if name in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Markup:
    """Several pieces, one after the other."""
    return Markup("".join(_piece(child) for child in children))


def _piece(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return str(child)
    if isinstance(child, str):
        return html.escape(_printable(child), quote=False)
    return join(child)


def _printable(text: str) -> str:
    """Without what no document may hold: control characters and halves of surrogate pairs."""
    return "".join(
        c if c in "\n\t" or (ord(c) >= 32 and not 0xD800 <= ord(c) < 0xE000 and ord(c) != 0x7F)
        else "\ufffd"
        for c in text
    )  # fmt: skip


def table(headings: Sequence[str], rows: Iterable[Markup], numbers: Sequence[int] = ()) -> Markup:
    """A table that scrolls by itself where the page is narrow."""
    cells = (
        tag("th", heading, class_="number" if k in numbers else None)
        for k, heading in enumerate(headings)
    )
    head = tag("thead", tag("tr", cells)) if any(headings) else None
    return tag("div", tag("table", head, tag("tbody", rows)), class_="scroll")


def table_row(*cells: Child, numbers: Sequence[int] = (), **attributes: str | None) -> Markup:
    """A row of a table, whose first cell is its heading."""
    first, *rest = cells
    return tag(
        "tr",
        tag("th", first),
        (
            tag("td", cell, class_="number" if k in numbers else "text")
            for k, cell in enumerate(rest, 1)
        ),
        **attributes,
    )


_STYLE = """
.tcl-shown table { border-collapse: collapse; margin: .4em 0; font-variant-numeric: tabular-nums; }
.tcl-shown.tcl-shown.tcl-shown :is(th, td) {
  text-align: left; padding: .15em 1em .15em 0; background: none; overflow-wrap: anywhere;
}
.tcl-shown thead th { opacity: .65; font-weight: normal; }
.tcl-shown tbody th { font-weight: 600; }
.tcl-shown pre {
  background: none; color: inherit; margin: .4em 0; line-height: 1.4; white-space: pre-wrap;
}
.tcl-shown .keyword { font-weight: 600; } .tcl-shown .type { color: #3d8bd4; }
.tcl-shown .comment { opacity: .6; font-style: italic; }
.tcl-shown svg { max-width: 760px; width: 100%; height: auto; display: block; }
.tcl-shown svg text { fill: currentColor; opacity: .65; font-size: 12px; }
.tcl-shown .grid { stroke: currentColor; opacity: .15; }
.tcl-shown .base { stroke: currentColor; opacity: .5; }
.tcl-shown .dot { fill: #3d8bd4; fill-opacity: .55; } .tcl-shown circle.winner { fill: #2ea04f; }
.tcl-shown .line { fill: none; stroke-width: 2; } .tcl-shown .line.best { stroke: #3d8bd4; }
.tcl-shown .failed path { fill: none; stroke: #d1493e; stroke-width: 1.6; }
"""


def shown(*children: Child) -> str:
    """What ``_repr_html_`` returns: these, with the style that they need."""
    return tag("div", tag("style", Markup(_STYLE)), children, class_="tcl-shown")
