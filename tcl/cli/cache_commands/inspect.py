"""``tcl cache inspect`` and ``analyze``: the ranked candidates of each key, and what all results
say together."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from tcl.arrays.annotations import parse_sizes
from tcl.cli import common
from tcl.cli.cache_commands.common import (
    SHORT,
    existing,
    key_data,
    layouts_of,
    moment,
    plain,
    write_text,
)
from tcl.cli.cache_commands.show import shape_data, show_shape, wanted_shapes
from tcl.cli.tables import plain_table, print_table, print_with_lines
from tcl.common.errors import ArgumentError
from tcl.common.extras import installing
from tcl.common.number_format import duration, plural
from tcl.grammar.tree.canonical import canonical_text
from tcl.report.cache_analysis import FORMULA, ReportSection, draw, markdown, sections
from tcl.selection.suggested_options import DEFAULT
from tcl.tuner.cache.analysis import CacheAnalysis, analyse
from tcl.tuner.cache.insight import Filter, KeyInsight, insights
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import TuningCache

_F = TypeVar("_F", bound=Callable[..., Any])

_OPTIONS = (
    click.argument("file", required=False, type=click.Path(path_type=Path)),
    click.option("--entry", "-e", metavar="NAME", help="Only keys of this def; of FILE, if given."),
    click.option("--device", metavar="TEXT", help="Only devices whose name contains this."),
    click.option(
        "--namespace",
        "--backend",
        "backend",
        metavar="NAME",
        help="Only results of this backend: cpu, cuda.",
    ),
    click.option(
        *("--sizes", "-s"),
        multiple=True,
        help="Only keys of these sizes. With FILE: M=128,N=64, or a label. Without FILE, sizes "
        "have no names: give a part of the inputs that tcl cache list shows, such as "
        "'[64,64]'. May be given several times.",
    ),
    click.option(
        "--codegen", "version", metavar="VERSION", help="Only this version of the code generator."
    ),
)


def filter_options(command: _F) -> _F:
    """The argument and the options that say which keys are looked at."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen_keys(
    cache: TuningCache, said: Mapping[str, Any], *, others: bool = False
) -> tuple[KeyInsight, ...]:
    """What is known of the keys that the options name; ``ArgumentError`` if there are none, unless
    there are ``others`` to show than keys."""
    wanted = _filter(**said)
    found = insights(cache, DEFAULT.to_json(), wanted)
    if not found and not others:
        known = insights(cache, DEFAULT.to_json(), Filter())
        if not known:
            raise ArgumentError(f"{cache.path} has no results: nothing has been tuned yet")
        raise ArgumentError(f"no key of {cache.path} {plain(wanted.why_none(known))}")
    return found


def _filter(file: Path | None, **said: Any) -> Filter:
    """What is looked for: with a file, a def by its text, and sizes by their names."""
    wanted = Filter(**said)
    named = next((text for text in wanted.sizes if "=" in text), None)
    if file is None:
        if named is not None:
            raise ArgumentError(
                f"--sizes {named}: a cache has the shapes of inputs, but no names of sizes; "
                "also name the FILE of the def, or give a part of the shapes that tcl cache "
                "list shows, '[64,64]'"
            )
        return wanted
    _, checked = common.choose(file, wanted.entry)
    inputs = None
    if wanted.sizes:
        _, inputs = layouts_of(checked, parse_sizes(",".join(wanted.sizes), checked))
    text = canonical_text(checked)
    return replace(wanted, entry=checked.name, definition=text, inputs=inputs)


@click.command("inspect")
@filter_options
@click.option("--best-only", is_flag=True, help="Only the winner of each key.")
@click.option(
    "--top-k",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    metavar="K",
    help="Best candidates of each key.",
)
@common.json_option
@common.cache_option
def inspect(best_only: bool, top_k: int, as_json: bool, path: Path | None, **said: Any) -> None:
    """The ranked candidates of each key, then those of launch shapes. With FILE, only the keys of
    its def, on every device.

    Shows times as tcl cache show does, how much longer a candidate takes than the winner (for times
    of the same kind), and when and in which search it was first correct. One line per key shows how
    all candidates ended, and the winner's margins over the second and over the untuned default.

    Launch shapes that tcl.BlockTuner tuned come last. For them, --entry is the name of the kernel,
    and --sizes its global size, such as '64 x 64'. They have no namespace and no version.
    """
    if best_only and common.was_given("top_k"):
        raise click.UsageError("--best-only means --top-k 1; give one of them")
    cache = existing(path, as_json=as_json)
    shapes = wanted_shapes(cache, said)
    found = chosen_keys(cache, said, others=bool(shapes))
    count = 1 if best_only else top_k
    if as_json:
        keys = [_data(each, count) for each in found]
        common.print_json([*keys, *map(shape_data, shapes)])
        return
    for each in found:
        _print_key(each, count)
    for shape in shapes:
        show_shape(shape, count)
    records = sum(each.records for each in found)
    besides = f" and {plural(len(shapes), 'launch shape')}" if shapes else ""
    counted = f"{plural(len(found), 'key')}, {plural(records, 'result')}{besides}"
    click.echo(f"{counted} in {cache.path}")


def _print_key(each: KeyInsight, count: int) -> None:
    key = each.key
    click.echo(f"{plain(each.entry)} {plain(key.sizes)}; key {key.digest[:SHORT]}")
    click.echo(plain(f"{key.backend}: {key.device}; code generator {key.codegen_version}"))
    counts = ", ".join(f"{n} {verdict}" for verdict, n in each.verdicts.items())
    click.echo(f"{plural(each.records, 'result')}: {counts}")
    if each.ranked:
        click.echo(f"the winner's margin: {_margins(each)}")
        headings = (">", ">time", ">longer", "timed", "first found", "by")
        table = plain_table(*headings, no_wrap=True)
        for rank, record in enumerate(each.ranked[:count], 1):
            first = each.found[record.options]
            table.add_row(
                *(str(rank), duration(record.time or 0.0)),
                *(_percent(each.margin(record)), _timed(record)),
                *(moment(first.when), plain(first.run[:8])),
            )
        print_with_lines(table, [plain(record.options) for record in each.ranked[:count]])
    click.echo()


def _margins(each: KeyInsight) -> str:
    second = (
        "no second" if each.over_second is None else f"{_percent(each.over_second)} over the second"
    )
    default = f"{_percent(each.over_default)} over the untuned default"
    if each.default is None:
        default = "the untuned default was not measured"
    elif each.default is each.ranked[0]:
        default = "it is the untuned default"
    return f"{second}, {default}"


def _timed(record: Record) -> str:
    return "finals" if record.place is not None else "first reading"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:+.1f} %"


def _data(each: KeyInsight, count: int) -> dict[str, object]:
    return {
        **key_data(each.key, each.entry),
        "results": each.records,
        "verdicts": each.verdicts,
        "candidates": len(each.ranked),
        "margin_over_second": each.over_second,
        "default_seconds": None if each.default is None else each.default.time,
        "margin_over_default": each.over_default,
        "best": _ranked_data(each, each.ranked[:count]),
    }


def _ranked_data(each: KeyInsight, ranked: Sequence[Record]) -> list[dict[str, object]]:
    return [
        {
            "rank": rank,
            "seconds": record.time,
            "longer": each.margin(record),
            "finals": record.place is not None,
            "samples": len(record.samples),
            "when": record.when,
            "run": record.run,
            "first_found": each.found[record.options].when,
            "first_run": each.found[record.options].run,
            "options": record.options,
        }
        for rank, record in enumerate(ranked, 1)
    ]


_MOST = 6
"""Rows of a table on the terminal for each def and device."""
_PICTURES = (".png", ".svg", ".pdf")


@click.command("analyze")
@filter_options
@click.option(
    "--importance",
    "important",
    is_flag=True,
    help="Also show which knobs mattered, by a random forest; slow: seconds per def and device.",
)
@click.option(
    "--out", metavar="FILE.md", help=("Write all tables as Markdown; - means standard output.")
)
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    metavar="FILE.png",
    help="Draw charts of candidate pools, margins and knobs (PNG, SVG or PDF); needs matplotlib.",
)
@common.cache_option
def analyze(
    important: bool, out: str | None, picture: Path | None, path: Path | None, **said: Any
) -> None:
    """Show statistics of all results, or of the def in FILE: how often presets and knob values
    win, by how much, and what fewer candidates would lose.

    The tables are grouped by def and device. Every mean is shown twice: plain, and weighted by
    time, so that keys with slow kernels count more.
    """
    cache = existing(path)
    if out is not None and out != "-":
        common.check_writable(Path(out))
    if picture is not None:
        if picture.suffix not in _PICTURES:
            raise ArgumentError(
                f"--picture {picture}: the name of a picture must end in {', '.join(_PICTURES)}"
            )
        common.check_writable(picture)
    found = chosen_keys(cache, said)
    result = analyse(found)
    if result is None:
        raise ArgumentError(
            f"{cache.path} has nothing to compare: no selected key has two correct candidates; "
            "tune something first"
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
        facts.append(f"of several versions of the code generator ({listed}): --codegen selects one")
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
            f"no picture: matplotlib is not installed; {installing('plot')}"
        ) from None
    click.echo(f"written: {picture}", err=quiet)
