"""``tcl bench``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, RenderableType
from rich.table import Table

from tcl.bench.ceilings import Ceilings
from tcl.bench.report import DEFAULT, OURS, TUNED, Report, Result
from tcl.cli.common import fail, reporting
from tcl.cli.signals import exit_code
from tcl.cli.tables import plain_table
from tcl.codegen.common.extras import installing
from tcl.common.number_format import duration, plural
from tcl.grammar.errors import ArgumentError

if TYPE_CHECKING:
    from tcl.bench.contender import Spec
    from tcl.bench.report import Report

_HELP = {"help_option_names": ["-h", "--help"]}


@click.group("bench", context_settings=_HELP)
def command() -> None:
    """The benchmark suite, side by side with its peers."""


@command.command("cpu", context_settings=_HELP)
@click.option(
    "--rows", metavar="PATTERN", help="Only rows whose name, def or kind fits; comma-separated."
)
@click.option("--list", "list_rows", is_flag=True, help="Print the rows, and measure nothing.")
@click.option("--quick", is_flag=True, help="Fewer rounds, and not the largest rows.")
@click.option("--threads", default="1", show_default=True, help="One number, or several: 1,2.")
@click.option("--cold", is_flag=True, help="Empty the caches before every call.")
@click.option(
    "--peers",
    help="Comma-separated: numpy, torch, torch.compile, jax, halide. Default: those installed.",
)
@click.option("--rounds", type=click.IntRange(1), help="Samples per contender and row.")
@click.option(
    "--tune",
    "tune_seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Tune each row first, for this long.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Where tuned options come from, and go to. Default: the user's cache.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the random inputs."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="A folder for bench.json and, with matplotlib, bench-N.png.",
)
@reporting
def cpu(
    rows: str | None,
    list_rows: bool,
    quick: bool,
    threads: str,
    cold: bool,
    peers: str | None,
    rounds: int | None,
    tune_seconds: float | None,
    cache: Path | None,
    seed: int,
    out: Path | None,
) -> None:
    """Measure the suite on this CPU.

    Every contender runs in a process of its own, pinned to the same cores, one at a time and in
    turns; results are compared with the reference first. Exit code 1 if ours are wrong.
    """
    from dataclasses import replace

    from rich.console import Console

    from tcl.bench.report import OURS
    from tcl.bench.rows import select
    from tcl.bench.run import Settings, run
    from tcl.bench.tuning import tune
    from tcl.cli.bench import print_report
    from tcl.cli.cache_common import named_cache

    try:
        chosen = select(rows, quick)
    except ArgumentError as error:
        raise click.BadParameter(str(error), param_hint="--rows") from None
    if list_rows:
        for row in chosen:
            click.echo(f"{row.name:<32} {row.kind:<16} {row.file}.tc {row.entry} {row.sizes}")
        return
    settings = Settings.quick() if quick else Settings()
    settings = replace(settings, threads=_threads(threads), cold=cold, seed=seed)
    if rounds is not None:
        settings = replace(settings, rounds=rounds)
    specs = _peers(peers)
    if out is not None:
        _make(out)  # now, rather than after an hour
    path = named_cache(cache)
    say = _progress()
    try:
        if tune_seconds is not None:
            for count in settings.threads:
                failed = tune(chosen, tune_seconds, path, seed, say, count)
                say("")
                for name, reason in failed.items():
                    click.echo(f"{name} is not tuned: {reason}", err=True)
        report = run(chosen, settings, say, peers=specs, cache=path)
    except KeyboardInterrupt as stopped:
        click.echo("interrupted", err=True)
        sys.exit(exit_code(stopped))
    finally:
        say("")
    console = Console()
    if not console.is_terminal:  # a pipe has no width: do not cut lines
        console = Console(width=200)
    print_report(report, console)
    if out is not None:
        _write(report, out)
    if any(r.entries[n].error for r in report.results for n in OURS if n in r.entries):
        fail("some of our results are missing or wrong, see above")


def _threads(text: str) -> tuple[int, ...]:
    try:
        found = tuple(dict.fromkeys(int(t) for t in text.split(",")))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise click.BadParameter(f"'{text}' is no list of numbers from 1", param_hint="--threads")
    return found


def _peers(text: str | None) -> tuple[Spec, ...]:
    from tcl.bench.contender import PEERS

    if text is None:
        return PEERS
    known = {spec.name.lower(): spec for spec in PEERS}
    names = [t.strip().lower() for t in text.split(",") if t.strip()]
    for name in names:
        if name not in known:
            raise click.BadParameter(
                f"there is no peer '{name}'; there are: {', '.join(known)}", param_hint="--peers"
            )
    return tuple(known[name] for name in names)


def _progress() -> Callable[[str], None]:
    """Shows the last sentence on a terminal; elsewhere prints them all."""
    terminal = sys.stderr.isatty()

    def say(text: str) -> None:
        if terminal:
            click.echo(f"\r\x1b[K{text}", err=True, nl=False)
        elif text:
            click.echo(text, err=True)

    return say


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"the folder {folder} cannot be made: {error.strerror}") from None


def _write(report: Report, folder: Path) -> None:
    from tcl.bench.picture import draw

    (folder / "bench.json").write_text(report.text(), "utf-8")
    click.echo(f"written: {folder / 'bench.json'}")
    for threads in report.ceilings:
        picture = folder / f"bench-{threads}.png"
        try:
            draw(report, threads, picture)
        except ImportError:
            click.echo(f"no picture: matplotlib is not installed; {installing('bench')}")
            return
        click.echo(f"written: {picture}")


def print_report(report: Report, console: Console) -> None:
    """Everything: per number of threads the rows, the ceilings and the means; then the rest."""
    for threads in report.ceilings:
        for part in tables(report, threads):
            console.print(part)
        console.print()
    for name, reason in report.absent.items():
        console.print(f"without {name}: {reason}", highlight=False, markup=False)
    for result in report.results:
        for name, entry in result.entries.items():
            if entry.error:
                text = f"{result.name}, {result.threads} threads, {name}: {entry.error}"
                console.print(text, highlight=False, markup=False)


def tables(report: Report, threads: int) -> Iterator[RenderableType]:
    """The parts of the report for one number of threads."""
    results = report.of(threads)
    ceiling = report.ceiling(threads)
    names = [n for n in dict.fromkeys(n for r in results for n in r.entries) if n not in OURS]
    temperature = "cold" if report.settings["cold"] else "warm"
    numbers = (*names, "tcl", "thr", "ratio", "default", "share", "peer's", "compile")
    table = plain_table("work", *(f">{heading}" for heading in numbers))
    table.title_justify = "left"
    table.title = (
        f"{plural(threads, 'thread')}, {temperature} cache; medians of "
        f"{report.settings['rounds']} interleaved rounds; ratio = best peer's time / ours"
    )
    kind = ""
    for result in results:
        if result.kind != kind:
            kind = result.kind
            table.add_row(f"[italic]{kind}[/italic]")
        table.add_row(*_cells(result, names, ceiling))
    yield table
    yield (
        f"ceilings: {ceiling.read / 1e9:.1f} GB/s read, {ceiling.copy / 1e9:.1f} GB/s copy "
        f"(both directions), {ceiling.flops / 1e9:.0f} GFLOP/s (best of "
        f"{len(report.ceilings[threads])} samples)"
    )
    yield _summary(report.as_json()["summary"][str(threads)])


def _cells(result: Result, names: Sequence[str], ceiling: Ceilings) -> list[str]:
    best, ours = result.best_peer, result.ours
    cells = [result.name]
    for name in names:
        entry = result.entries.get(name)
        seconds = None if entry is None else entry.seconds
        failed = "-" if entry is None else "failed"
        text = failed if seconds is None else duration(seconds)
        cells.append(f"[bold]{text}[/bold]" if best is not None and name == best[0] else text)
    if ours is None:
        wrong = any(result.entries[n].error for n in OURS if n in result.entries)
        return [*cells, "[red]failed[/red]" if wrong else "-", *[""] * 6]
    mark = "" if ours[0] == TUNED else "*"
    cells += [duration(ours[1]) + mark, str(result.entries[ours[0]].threads)]
    cells += [_ratio(result.ratio()), _ratio(result.ratio(DEFAULT))]
    cells.append(_number(result.share(ours[1], ceiling)))
    cells.append(_number(result.share(best[1], ceiling) if best else None))
    compiled = result.compile_seconds
    cells.append("-" if compiled is None else duration(compiled))
    return cells


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _ratio(value: float | None) -> str:
    if value is None:
        return "-"
    colour = "green" if value >= 1 else "yellow" if value >= 0.93 else "red"
    return f"[{colour}]{value:.2f}[/{colour}]"


def _summary(summary: Mapping[str, Any]) -> Table:
    table = plain_table("geometric means", ">ratio", ">default")
    for kind, ratio in summary["ratio"].items():
        table.add_row(kind, _ratio(ratio), _ratio(summary["ratio_default"][kind]))
    if summary["worst"] is not None:
        table.add_row(f"worst: {summary['worst']['row']}", _ratio(summary["worst"]["ratio"]))
    if summary["default_over_tuned"] is not None:
        table.add_row("default / tuned", _ratio(summary["default_over_tuned"]))
    if summary["compile_seconds"] is not None:
        table.add_row("median compile time", duration(summary["compile_seconds"]))
    if summary["missing"]:
        table.add_row(f"rows without a ratio: {', '.join(summary['missing'])}")
    table.caption = "share: of the roofline; * : no tuned options are known, default ones used"
    table.caption_justify = "left"
    return table
