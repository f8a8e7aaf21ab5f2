"""``tcl cache analyze``: what all results of a cache say together."""

from __future__ import annotations

import datetime
from collections import Counter
from pathlib import Path
from typing import Any

import click

from tcl.cli.cache_commands.common import existing, plain, write_text
from tcl.cli.cache_commands.inspect import chosen_keys, filter_options
from tcl.cli.common import cache_option, check_writable, reporting
from tcl.cli.tables import plain_table, print_table
from tcl.common.errors import ArgumentError
from tcl.common.extras import installing
from tcl.common.number_format import plural
from tcl.report.cache_analysis import FORMULA, ReportSection, draw, markdown, sections
from tcl.tuner.cache.analysis import CacheAnalysis, analyse

_MOST = 6
"""Rows of a table on the terminal for each def and device."""
_PICTURES = (".png", ".svg", ".pdf")


@click.command("analyze")
@filter_options
@click.option(
    "--importance",
    "important",
    is_flag=True,
    help="Also which knobs mattered, by a random forest: some seconds a def and device.",
)
@click.option("--out", metavar="FILE.md", help="Write all tables as Markdown; -: standard output.")
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    metavar="FILE.png",
    help="Draw pools, margins and knobs (PNG, SVG or PDF); needs matplotlib.",
)
@cache_option
@reporting
def analyze(
    important: bool, out: str | None, picture: Path | None, path: Path | None, **said: Any
) -> None:
    """What all results say together: how often presets and values of knobs win, by how much
    winners win, and what fewer candidates would lose. With FILE, of its def alone.

    By def and device, every mean twice: plain, and by time, where keys whose kernels take long
    count more.
    """
    cache = existing(path)
    if cache is None:
        return
    if out is not None and out != "-":
        check_writable(Path(out))
    if picture is not None:
        if picture.suffix not in _PICTURES:
            raise ArgumentError(
                f"--picture {picture}: the kind of a picture follows from its name's end, "
                f"{', '.join(_PICTURES)}"
            )
        check_writable(picture)
    found = chosen_keys(cache, said)
    result = analyse(found)
    if result is None:
        raise ArgumentError(
            f"{cache.path} has nothing to compare: no key that was asked for has two correct "
            "candidates; tune something first"
        )
    records = sum(each.records for each in found)
    facts = [f"{plural(len(found), 'key')}, {plural(records, 'result')}"]
    if result.left_out:
        facts.append(
            f"{plural(result.left_out, 'key')} left out: fewer than two correct candidates"
        )
    versions = dict.fromkeys(each.key.codegen_version for each in found)
    if len(versions) > 1:
        listed = ", ".join(versions)
        facts.append(f"of several versions of the code generator ({listed}): --codegen takes one")
    title = f"Tuning cache {cache.path}"
    if out != "-":
        for line in (title, *facts, FORMULA):
            click.echo(plain(line))
        for section in sections(result, important=important):
            _print_section(section)
    if out is not None:
        today = datetime.date.today().isoformat()
        tables = sections(result, values=True, important=important)
        write_text(out, markdown(tables, title, (*facts, f"made on {today}")))
        click.echo(f"written: {out}", err=out == "-")
    if picture is not None:
        _draw(result, title, picture, quiet=out == "-")


def _print_section(section: ReportSection) -> None:
    click.echo(f"\n{section.title}")
    if section.note:
        click.echo(section.note)
    table, shown = plain_table(*section.headings, overflow="fold"), Counter[tuple[str, ...]]()
    for row in section.rows:
        shown[row[:2]] += 1
        if shown[row[:2]] <= _MOST:
            table.add_row(*map(plain, row))
    print_table(table)
    if more := sum(max(0, count - _MOST) for count in shown.values()):
        click.echo(f"and {plural(more, 'more row')}; --out FILE.md has them all")


def _draw(result: CacheAnalysis, title: str, picture: Path, *, quiet: bool) -> None:
    try:
        draw(result, title, picture)
    except ImportError:
        raise ArgumentError(
            f"no picture: matplotlib is not installed; {installing('bench')}"
        ) from None
    click.echo(f"written: {picture}", err=quiet)
