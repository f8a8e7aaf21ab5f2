"""``tcl cache``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcl.cli import cache_files, cache_prune, cache_show
from tcl.cli.cache_common import SHORT, cache_option, existing, moment, plain
from tcl.cli.common import reporting
from tcl.common.number_format import duration, plural

if TYPE_CHECKING:
    from tcl.tuner.cache.tuning_cache import Summary


@click.group("cache", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """What was tuned."""


@command.command("list")
@cache_option
@reporting
def list_(path: Path | None) -> None:
    """What was tuned, with its best time.

    Every def and sizes that have results, device by device, those that were tuned last first.
    """
    from tcl.cli.tables import plain_table, print_table
    from tcl.tuner.cache.key import split_threads

    cache = existing(path)
    if cache is None:
        return
    summaries = cache.list()
    devices: dict[str, list[tuple[Summary, int]]] = {}
    for summary in summaries:
        device, threads = split_threads(summary.key.device)
        devices.setdefault(f"{summary.key.backend}: {device}", []).append((summary, threads))
    for device, found in devices.items():
        click.echo(plain(device))
        headings = ("def", "inputs", ">best", ">measured", "last", ">threads", ">version", "key")
        table = plain_table(*headings)
        for summary, threads in found:
            key = summary.key
            best = "-" if summary.best is None else duration(summary.best)
            table.add_row(
                *(plain(summary.entry), plain(key.sizes), best, str(summary.measured)),
                *(moment(summary.last), str(threads)),
                *(plain(key.codegen_version), key.digest[:SHORT]),
            )
        print_table(table)
    click.echo(f"{plural(len(summaries), 'key')} in {cache.path}")


for _each in (
    *(cache_show.show, cache_show.why, cache_files.merge, cache_files.export),
    *(cache_files.import_, cache_prune.prune),
):
    command.add_command(_each)
