"""``tcl cache``."""

from __future__ import annotations

from pathlib import Path

import click

from tcl.cli import cache_files, cache_prune, cache_show
from tcl.cli.cache_common import SHORT, cache_option, existing, moment, plain, print_table
from tcl.cli.common import duration, reporting


@click.group("cache", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """What was tuned."""


@command.command("list")
@cache_option
@reporting
def list_(path: Path | None) -> None:
    """Every def and shape that has results, with its best time."""
    from rich.table import Table

    cache = existing(path)
    if cache is None:
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("def", "inputs", "best", "measured", "last", "key", "version", "device"):
        table.add_column(heading, justify="right" if heading in ("best", "measured") else "left")
    summaries = cache.list()
    for summary in summaries:
        key = summary.key
        best = "-" if summary.best is None else duration(summary.best)
        table.add_row(
            *(plain(summary.entry), plain(key.sizes), best, str(summary.measured)),
            *(moment(summary.last), key.digest[:SHORT], plain(key.codegen_version)),
            plain(f"{key.backend}: {key.device}"),
        )
    print_table(table)
    click.echo(f"{len(summaries)} in {cache.path}")


for _each in (
    *(cache_show.show, cache_show.why, cache_files.merge, cache_files.export),
    *(cache_files.import_, cache_prune.prune),
):
    command.add_command(_each)
