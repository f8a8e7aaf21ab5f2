"""Tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcl.html.markup import Child, Markup, tag


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
