"""``tcl bench``."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import click

from tcl.bench.compare import TOLERANCE, compare, title
from tcl.bench.contender import PEERS, Spec
from tcl.bench.report import Report
from tcl.bench.rows import select
from tcl.bench.run import BenchSettings, run, tune
from tcl.bench.task import OURS
from tcl.cli.bench_tables import draw, print_comparison, print_report
from tcl.cli.cache_commands.common import named_cache, needed, writable_cache, write_text
from tcl.cli.common import Amount, cache_option, fail, make_folder, seed_option
from tcl.cli.meant import Commands
from tcl.cli.output import exit_code, write_over
from tcl.common.errors import ArgumentError
from tcl.common.extras import installing
from tcl.common.files import MOST_DATA, read_text
from tcl.common.number_format import plural
from tcl.progress.console import Console
from tcl.tuner.measure.placement import PLACEMENTS

_JSON = "bench.json"


@click.group("bench", cls=Commands)
def command() -> None:
    """Measure the benchmark suite beside other libraries."""


@command.command("cpu")
@click.option(
    "--rows", metavar="PATTERN", help="Only rows whose name, def or kind matches; comma-separated."
)
@click.option("--list", "list_rows", is_flag=True, help="Print the rows; measure nothing.")
@click.option("--quick", is_flag=True, help="Fewer rounds; leave out the largest rows.")
@click.option("--threads", default="1", show_default=True, help="One number, or several: 1,2.")
@click.option(
    "--placement",
    type=click.Choice(["aligned", "numpy", "both"]),
    default="aligned",
    show_default=True,
    help="Where arrays begin: at a cache line, or 16 bytes after one, like NumPy's large arrays.",
)
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Repeat everything N times, in new processes; show medians and ranges over the runs.",
)
@click.option("--cold", is_flag=True, help="Empty the caches before every call.")
@click.option(
    "--peers",
    help="Comma-separated: numpy, torch, torch.compile, jax, onnx runtime, halide. Default: all "
    "that are installed.",
)
@click.option("--rounds", type=click.IntRange(1), help="Samples per library and row.")
@click.option(
    "--tune",
    "tune_seconds",
    type=Amount(min=0, min_open=True),
    help="Tune each row first, for this many seconds.",
)
@cache_option
@seed_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="A folder for bench.json and, with matplotlib, bench-N.png.",
)
@click.option(
    "--resume",
    is_flag=True,
    help=("Measure only what is missing in bench.json in --out, and add it."),
)
def cpu(
    rows: str | None,
    list_rows: bool,
    quick: bool,
    threads: str,
    placement: str,
    runs: int,
    cold: bool,
    peers: str | None,
    rounds: int | None,
    tune_seconds: float | None,
    path: Path | None,
    seed: int,
    out: Path | None,
    resume: bool,
) -> None:
    """Measure the suite on this CPU.

    Every library runs in a separate process, on the same cores, in turns. First, results are
    compared with the reference. The exit code is 1 if a result of tcl is wrong.
    """

    try:
        chosen = select(rows, quick)
    except ArgumentError as error:
        raise click.BadParameter(str(error), param_hint="--rows") from None
    if list_rows:
        for row in chosen:
            click.echo(f"{row.name:<34} {row.kind:<26} {row.file}.tc {row.entry} {row.sizes}")
        return
    settings = BenchSettings.quick() if quick else BenchSettings()
    settings = replace(
        settings,
        threads=_threads(threads),
        placements=tuple(PLACEMENTS) if placement == "both" else (placement,),
        runs=runs,
        cold=cold,
        seed=seed,
        rounds=rounds or settings.rounds,
    )
    specs = _peers(peers)
    before = _before(out) if resume else None
    if out is not None:
        make_folder(out)  # now, rather than after an hour
    # Looked at now, rather than after an hour.
    if tune_seconds is not None:
        cache = writable_cache(path).path
    else:
        cache = named_cache(None) if path is None else needed(path).path
    reports: list[Report] = []

    def keep(report: Report) -> None:
        reports[:] = [report]
        if out is not None:
            write_text(str(out / _JSON), report.text())

    stopped: KeyboardInterrupt | None = None
    try:
        for count in settings.threads if tune_seconds is not None else ():
            failed = tune(chosen, tune_seconds or 0.0, cache, settings.seed, _say, count)
            _say("")
            for name, reason in failed.items():
                click.echo(f"{name} is not tuned: {reason}", err=True)
        keep(run(chosen, settings, _say, peers=specs, cache=cache, finished=keep, before=before))
    except KeyboardInterrupt as error:
        stopped = error
    finally:
        _say("")
    for report in reports:
        if report.results:
            _print_report(report, out)
    if stopped is not None:
        wanted = len(chosen) * len(settings.threads) * len(settings.placements) * runs
        done = sum(len(report.results) for report in reports)
        click.echo(f"interrupted after {done} of {wanted} measurements", err=True)
        sys.exit(exit_code(stopped))
    (report,) = reports
    if not report.results:
        fail("nothing was measured: " + "; ".join(report.left_out.values()))
    if any(r.entries[n].error for r in report.results for n in OURS if n in r.entries):
        fail("some results of tcl are missing or wrong, see above")


@command.command("compare")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--tolerance",
    type=Amount(min=0),
    default=100 * TOLERANCE,
    show_default=True,
    metavar="PERCENT",
    help="How many percent longer a row may take.",
)
def compare_reports(old: Path, new: Path, tolerance: float) -> None:
    """Find regressions that are not noise, in two files bench.json of `tcl bench cpu --out`.

    Prints the times of each row, their ratio and its confidence interval. The ratios of the peers,
    whose code did not change, show the change of the machine, and every ratio is divided by it. The
    exit code is 1 if a row is certainly slower by more than the tolerance, or failed only in NEW.
    """
    found = compare(_read(old), _read(new), tolerance / 100)
    if not (found.changes or found.failed):
        raise ArgumentError(f"{old} and {new} have no row in common")
    print_comparison(found)
    if found.failed:
        names = "; ".join(map(title, found.failed))
        fail(f"{plural(len(found.failed), 'kernel')} failed in {new}: {names}")
    if slower := found.slower(tolerance / 100):
        fail(f"{plural(len(slower), 'row')} slower by more than {tolerance:g} %")


def _read(path: Path) -> Report:
    """The report in a file; ``ArgumentError`` that names the file if there is none."""
    text = read_text(path, MOST_DATA)
    try:
        return Report.from_json(json.loads(text))
    except ValueError:
        raise ArgumentError(f"{path} is not JSON") from None
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from None


def _print_report(report: Report, out: Path | None) -> None:
    """Print what was measured, and say where it is."""
    console = Console()
    if not console.is_terminal:  # a pipe has no width: do not cut lines
        console = Console(width=260)
    print_report(report, console)
    if out is None:
        return
    click.echo(f"written: {out / _JSON}")
    for threads in report.ceilings:
        picture = out / f"bench-{threads}.png"
        try:
            draw(report, threads, picture)
        except ImportError:
            click.echo(f"no picture: matplotlib is not installed; {installing('plot')}")
            return
        click.echo(f"written: {picture}")


def _threads(text: str) -> tuple[int, ...]:
    try:
        found = tuple(dict.fromkeys(int(t) for t in text.split(",")))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise click.BadParameter(
            f"'{text}' is not a list of numbers from 1", param_hint="--threads"
        )
    return found


def _peers(text: str | None) -> tuple[Spec, ...]:
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


def _say(text: str) -> None:
    """Show progress: the last sentence on a terminal; elsewhere all of them."""
    if sys.stderr.isatty():
        write_over(text)
    elif text:
        click.echo(text, err=True)


def _before(folder: Path | None) -> Report | None:
    """What was measured before; None if there is nothing."""
    if folder is None:
        raise click.UsageError("--resume needs --out, the folder with the earlier results")
    path = folder / _JSON
    if not path.exists():
        return None
    try:
        return _read(path)
    except ArgumentError as error:
        raise ArgumentError(f"{error}; remove it to start again") from None
