"""Tables for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


def plain_table(*headings: str, **columns: Any) -> Table:
    """An empty table without lines. Headings that begin with ``>`` are those of numbers;
    ``columns``: what rich is told of all of them."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        right = heading.startswith(">")
        justify: Any = "right" if right else "left"
        table.add_column(heading.removeprefix(">"), justify=justify, **columns)
    return table


def print_table(table: Table) -> None:
    """Print a table; whole lines where there is no width to fit it into."""
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=1000)
    console.print(table)
