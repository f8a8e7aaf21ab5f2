"""``tcl cache``."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from tcl.cli.common import duration, reporting


@click.group("cache", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """What was tuned."""


@command.command("list")
@click.option(
    "--cache", "path", type=click.Path(dir_okay=False, path_type=Path), help="The cache file."
)
@reporting
def list_(path: Path | None) -> None:
    """Every def and shape that has results, with its best time."""
    from rich.console import Console
    from rich.table import Table

    from tcl.tuner.cache import TuningCache, default_path

    path = path or default_path()
    if not path.exists():
        click.echo(f"{path} does not exist: nothing was tuned yet")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("def", "inputs", "best", "measured", "last", "device"):
        table.add_column(heading, justify="right" if heading in ("best", "measured") else "left")
    summaries = TuningCache(path).list()
    for summary in summaries:
        inputs = " ".join(f"{i.dtype}[{','.join(map(str, i.shape))}]" for i in summary.key.inputs)
        last = datetime.datetime.fromtimestamp(summary.last).strftime("%Y-%m-%d %H:%M")
        best = "-" if summary.best is None else duration(summary.best)
        device = f"{summary.key.backend}: {summary.key.device}"
        table.add_row(summary.entry, inputs, best, str(summary.measured), last, device)
    console = Console()
    if not console.is_terminal:  # a pipe has no width: do not cut lines
        console = Console(width=1000)
    console.print(table)
    click.echo(f"{len(summaries)} in {path}")
