"""``tcl cache show``, ``best`` and ``why``: what is known of one key, and why not more; and launch
shapes of users' kernels, for these commands."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tcl.block_tuning.result import BlockTuningResult
from tcl.cli.cache_commands.common import (
    SHORT,
    existing,
    is_digits,
    key_options,
    listed_key,
    moment,
    named_key,
    named_query,
    needed,
    plain,
    relax_option,
)
from tcl.cli.common import cache_option, fail, file_argument, was_given
from tcl.cli.tables import plain_table, print_table, print_with_lines
from tcl.common.number_format import duration, plural
from tcl.progress.state import FINALS, FIRST
from tcl.selection.best_options import Query, stand_in
from tcl.selection.near_sizes import AdoptedOptions, judged
from tcl.selection.tune_modes import tune_modes
from tcl.tuner.cache import block_results
from tcl.tuner.cache.block_results import StoredShape
from tcl.tuner.cache.fingerprint import FIELDS
from tcl.tuner.cache.nearby import explain, nearby
from tcl.tuner.cache.tuning_cache import Record, Summary, TuningCache
from tcl.tuner.measure.placement import shown


def list_shapes(cache: TuningCache) -> int:
    """List all of a cache, device by device; how many there are."""
    kept = block_results.stored_shapes(cache)
    for device, found in itertools.groupby(kept, lambda each: each.device):
        click.echo(plain(f"launch shapes: {device}"))
        table = plain_table("kernel", "global size", "block", ">best", ">measured", "last")
        for each in found:
            result = _tuning_result(each)
            best = ("?", "?", "?")
            if result is not None:
                measured = sum(timing.time_us is not None for timing in result.timings)
                best = (str(result.candidate), duration(result.runtime_us * 1e-6), str(measured))
            table.add_row(
                plain(each.kernel), _global_size(each), *map(plain, best), moment(each.when)
            )
        print_table(table)
    return len(kept)


def _tuning_result(each: StoredShape) -> BlockTuningResult | None:
    """None for what is measured again when it is asked for."""
    try:
        return BlockTuningResult.from_json(each.result)
    except ValueError:
        return None


def _global_size(each: StoredShape) -> str:
    return " x ".join(map(str, each.global_size))


def wanted_shapes(cache: TuningCache, said: Mapping[str, Any]) -> list[StoredShape]:
    """Those that have all that the options of ``tcl cache inspect`` say: a kernel has a name, a
    global size and a device, but no file, no namespace, and no version of the code generator."""
    if any(said[name] is not None for name in ("file", "backend", "version")):
        return []
    entry, device = said["entry"], said["device"] or ""
    return [
        each
        for each in block_results.stored_shapes(cache)
        if entry in (None, each.kernel)
        and device.casefold() in each.device.casefold()
        and all("".join(s.split()) in "".join(_global_size(each).split()) for s in said["sizes"])
    ]


def show_shape(each: StoredShape, count: int) -> None:
    """The best ``count`` candidates of a kernel."""
    click.echo(f"launch shape of {plain(each.kernel)} on {_global_size(each)}; {moment(each.when)}")
    click.echo(plain(each.device))
    result = _tuning_result(each)
    if result is None:
        click.echo("it cannot be read, and will be measured again when it is needed\n")
        return
    verdicts = Counter(timing.verdict.value for timing in result.timings)
    counts = ", ".join(f"{n} {verdict}" for verdict, n in verdicts.most_common())
    bound = "; launch-bound: no other candidate was tried" * result.launch_bound
    click.echo(f"{plural(len(result.timings), 'candidate')}: {counts}{bound}")
    for note in result.notes:
        click.echo(plain(note))
    table = plain_table(">", ">time", ">longer", "block", no_wrap=True)
    timed = [timing for timing in result.timings if timing.time_us is not None]
    for rank, timing in enumerate(timed[:count], 1):
        seconds = (timing.time_us or 0.0) * 1e-6
        longer = seconds / (result.runtime_us * 1e-6) - 1 if result.runtime_us else 0.0
        table.add_row(
            str(rank), duration(seconds), f"{100 * longer:+.1f} %", plain(str(timing.candidate))
        )
    print_table(table)
    click.echo()


def shape_data(each: StoredShape) -> dict[str, Any]:
    """All that is known of a kernel, times in seconds, as JSON has it."""
    result = _tuning_result(each)
    return {
        "kernel": each.kernel,
        "global_size": each.global_size,
        "device": each.device,
        "when": each.when,
        "block": None if result is None else result.block,
        "defines": None if result is None else result.defines,
        "grid": None if result is None else result.grid,
        "launch_bound": None if result is None else result.launch_bound,
        "candidates": [] if result is None else _candidate_data(result),
    }


def _candidate_data(result: BlockTuningResult) -> Sequence[dict[str, Any]]:
    return [
        {
            "block": timing.block,
            "defines": timing.defines,
            "verdict": timing.verdict.value,
            "seconds": None if timing.time_us is None else timing.time_us * 1e-6,
            "message": timing.message,
        }
        for timing in result.timings
    ]


@click.command("show")
@click.argument("what", metavar="FILE|KEY")
@key_options
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Best options to show; 0: all.",
)
@cache_option
def show(what: str, top: int, path: Path | None, **named: Any) -> None:
    """The ranked results for some sizes.

    Name a FILE with a def, and sizes; or a KEY that tcl cache list shows. If options were measured
    several times, the last result counts. Candidates of the finals, which were timed in turns,
    stand first, in the order of the finals. Do not compare their times with first readings.
    """
    if is_digits(what):
        for option in named:
            if was_given(option):
                raise click.UsageError(f"the key {what} already contains --{option}; leave it out")
        cache = needed(path)
        summary = listed_key(cache, what)
        key, name = summary.key, summary.entry
    elif not Path(what).suffix and not Path(what).exists():
        wanted = "that is 4 to 64 digits of a key that tcl cache list shows"
        fail(f"{plain(what)} is neither a file nor a key: {wanted}")
    else:
        key, name = named_key(Path(what), **named)
        cache = needed(path)
    history = cache.history(key)
    if not history:
        fail(f"{cache.path} has no results for {name} on {key.sizes}; see tcl cache why")
    best = cache.top(key, top or len(history))
    click.echo(f"{plain(name)} {plain(key.sizes)}")
    click.echo(plain(f"{key.backend}: {key.device}; code generator {key.codegen_version}"))
    _table(best)
    verdicts = Counter(record.verdict.value for record in history)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    tried = len({record.options for record in history})
    measured = f"{plural(len(history), 'result')} of {plural(tried, 'candidate')}"
    click.echo(f"{measured}: {counts}; key {key.digest[:SHORT]}")


def _table(records: tuple[Record, ...]) -> None:
    """Those of the finals, then the others; each with its options on a line of its own."""
    ranks = {id(record): str(rank) for rank, record in enumerate(records, start=1)}
    timed = [r for r in records if r.time is not None]
    final = [r for r in timed if r.place is not None]
    first = [r for r in timed if r.place is None]
    titles = (FINALS, f"{FIRST}s, each timed once during the search")
    for title, found in zip(titles, (final, first), strict=True):
        if found:
            click.echo(f"{title}:")
            _group(found, ranks)


def _group(records: Sequence[Record], ranks: Mapping[int, str]) -> None:
    places = list(dict.fromkeys(name for r in records for name in r.outcome.placements))
    placed = [f">{plain(shown(name))}" for name in places]
    headings = (">", ">time", ">as long", *placed, ">samples", ">when", "run")
    table = plain_table(*headings, no_wrap=True)
    fastest = records[0].time
    for record in records:
        assert record.time is not None
        ratio = f"{record.time / fastest:.3f}" if fastest else "-"
        on = record.outcome.placements
        table.add_row(
            *(ranks[id(record)], duration(record.time), ratio),
            *(duration(on[name]) if name in on else "-" for name in places),
            *(str(len(record.samples)), moment(record.when), plain(record.run[:8])),
        )
    print_with_lines(table, [plain(record.options) for record in records])


@click.command("best")
@file_argument
@key_options
@relax_option
@cache_option
def best(relax: frozenset[str], path: Path | None, **named: Any) -> None:
    """The best options for some sizes, as JSON.

    The output is valid for --options. Standard error shows where the options come from: the key,
    the time, the search, and the differences if --relax selected a result of another device.
    """
    key, name = named_key(**named)
    cache = needed(path)
    used, record = key, cache.best(key)
    if record is None and relax:
        near = next(nearby(cache, key, each=1, sizes=False, relax=relax), None)
        if near is not None:
            used, record = near.key, near.record
            click.echo(f"warning: {plain(stand_in(name, key, used))}", err=True)
    if record is None:
        besides = f", nor of devices that differ only in {', '.join(sorted(relax))}" * bool(relax)
        fail(f"{cache.path} has no options for {name} on {key.sizes}{besides}; see tcl cache why")
    assert record.time is not None
    click.echo(
        f"{duration(record.time)} a call on {plain(used.device)}, found by "
        f"{plain(record.run[:8])} on {moment(record.when)}; key {used.digest[:SHORT]}",
        err=True,
    )
    click.echo(plain(record.options))


@click.command("why")
@file_argument
@key_options
@cache_option
def why(path: Path | None, **named: Any) -> None:
    """Show why sizes are tuned, or why not.

    A result is used only for exactly what it was measured for. If there is no result, the command
    names the nearest key with results, and the parts (for another device: the fields) that differ.
    tcl run and tcl cache best can ignore fields: --relax FIELD,... For results of other sizes, the
    command shows whether their options are used here, or why not.
    """
    query = named_query(**named)
    key, name = query.key, query.name
    cache = existing(path)
    answer = explain(cache, key, name)
    if answer.exact is not None and answer.exact.best is not None:
        click.echo(f"{name} {key.sizes} was tuned: {_summary_text(answer.exact)}")
        return
    if answer.exact is not None:
        click.echo(
            f"{name} {key.sizes} has {plural(answer.exact.measured, 'result')}, none correct; "
            f"see tcl cache show {answer.exact.key.digest[:SHORT]}"
        )
    else:
        click.echo(f"{name} {key.sizes} was not tuned: {cache.path} has no results for it")
    if answer.nearest is None:
        click.echo("nor for anything else")
        return
    title = plain(f"{answer.nearest.entry} {answer.nearest.key.sizes}")
    click.echo(f"the nearest is {title}: {_summary_text(answer.nearest)}")
    width = max(len(d.ingredient) for d in answer.differences)
    for each in answer.differences:
        click.echo(
            f"  {each.ingredient:{width}}  asked for {plain(each.here)}\n"
            f"  {'':{width}}  there is  {plain(each.there)}"
        )
    apart = [d.ingredient for d in answer.differences]
    if answer.nearest.best is not None and not {*apart} - {*FIELDS}:
        click.echo(f"to use it, ignore the difference: --relax {','.join(apart)}")
    if path is None:
        _say_of_near_sizes(cache, query)


def _say_of_near_sizes(cache: TuningCache, query: Query) -> None:
    """Which of the options for other sizes the user's cache gives these, and why not the others."""
    if tune_modes(None, (query.name,)).mode_of(query.name).name == "predict":
        for each in judged(cache, query):
            used = "are used" if isinstance(each, AdoptedOptions) else "are not used"
            click.echo(f"options for {plain(each.key.sizes)} {used}: {each.reason}")


def _summary_text(summary: Summary) -> str:
    best = "nothing correct" if summary.best is None else f"best {duration(summary.best)}"
    count = f"{plural(summary.measured, 'result')}, last {moment(summary.last)}"
    return f"{best} of {count}, key {summary.key.digest[:SHORT]}"
