"""Tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from tcl.progress.console import Console


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


def print_with_lines(table: Table, below: Sequence[str]) -> None:
    """Print a table, each row followed by a text of its own: all of it, folded on a terminal."""
    console = Console(markup=False, highlight=False)
    wide = Console(markup=False, highlight=False, width=1000, force_terminal=False)
    with wide.capture() as rows:
        wide.print(table)
    heading, *lines = rows.get().rstrip("\n").split("\n")
    console.print(Text(heading.rstrip(), style="bold"), soft_wrap=True)
    for line, text in zip(lines, below, strict=True):
        click.echo(line.rstrip())
        width = console.width - _INDENT if console.is_terminal else len(text)
        for start in range(0, len(text), max(1, width)):
            click.echo(f"{'':{_INDENT}}{text[start : start + max(1, width)]}")


_INDENT = 4
"""Of what stands under a row."""
