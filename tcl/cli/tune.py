"""``tcl tune``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcl.cli.common import (
    duration,
    entry_option,
    fail,
    file_argument,
    report,
    reporting,
    sizes_option,
    threads_option,
)

if TYPE_CHECKING:
    from tcl.cli.kernels import Work
    from tcl.codegen.options import MappingOptions
    from tcl.tuner.tuner import TuningResult

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@click.command("tune")
@file_argument
@entry_option
@sizes_option
@click.option("--device", default="cpu", show_default=True, help="What to tune for.")
@click.option("--generations", type=int, default=10, show_default=True, help="At most this many.")
@click.option("--population", type=int, default=20, show_default=True, help="Per generation.")
@click.option("--elites", type=int, help="Best members that stay; at most half the population.")
@click.option("--crossover", type=int, default=80, show_default=True, help="Percent of children.")
@click.option("--mutation", type=int, default=10, show_default=True, help="Percent of knobs.")
@click.option(
    "--strategy",
    default="screened",
    show_default=True,
    help="Or genetic, without a model that screens the children; random; exhaustive.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Of the search and of the random inputs.")
@threads_option
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=0),
    default=0,
    help="Processes that compile; 0: one for each core that measuring leaves, or for all in turns.",
)
@click.option("--time-limit", type=float, help="Seconds; the search ends as with Ctrl+C.")
@click.option("--options", "-o", help="Start from these: a preset's name, JSON or a JSON file.")
@click.option(
    "--cache",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where results are kept. Default: the user's cache, from which programs load them.",
)
@reporting
def command(
    file: Path,
    entry: str | None,
    sizes: str | None,
    device: str,
    generations: int,
    population: int,
    elites: int | None,
    crossover: int,
    mutation: int,
    strategy: str,
    seed: int | None,
    threads: int | None,
    jobs: int,
    time_limit: float | None,
    options: str | None,
    cache: Path | None,
) -> None:
    """Search for the fastest options of a def.

    Every result is saved at once. Ctrl+C ends the search early and keeps the best (exit code
    130); twice ends it immediately.
    """
    from tcl.codegen.cpu.threads import thread_count

    count = thread_count(threads)
    # NumPy has as many threads as our kernels may use, unless the user says otherwise.
    if not any(name in os.environ for name in _THREADS):
        os.environ.update(dict.fromkeys(_THREADS, str(count)))
    from tcl.cli.kernels import Work, parse_options, require_cpu
    from tcl.cli.progress import Progress
    from tcl.tuner.cache import TuningCache, default_path
    from tcl.tuner.config import TunerConfig
    from tcl.tuning import Tuner

    require_cpu(device)
    config = TunerConfig(
        generations=generations,
        population=population,
        elites=elites,
        crossover_rate=crossover,
        mutation_rate=mutation,
        strategy=strategy,
        seed=seed,
        threads=jobs,
        time_limit=time_limit,
    )
    start = parse_options(options)
    work = Work.load(file, entry, sizes, seed or 0)
    path = cache or default_path()
    TuningCache(path).check_writable()  # now, rather than after an hour
    tuner = Tuner(work.text, path, threads=count)
    # During the search the tuner counts the signals. One that comes just before or after, or a
    # second press of Ctrl+C, must neither be lost nor cost the user the table.
    presses: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: presses.append(number))
    with Progress(work.title) as progress:
        result = tuner.tune(work.checked.name, work.inputs, start, config, report=progress.report)
    signalled = progress.signalled or bool(presses)
    if not signalled:
        signal.signal(signal.SIGINT, handler)
    if result.options is None:
        report(_nothing(result))
        sys.exit(130 if signalled else 1)
    try:
        _table(work, result, count, compare=not signalled)
    except KeyboardInterrupt:
        signalled = True
        _table(work, result, count, compare=False)
    if result.unsaved:
        fail(f"{result.unsaved} of {len(result.history)} results could not be saved in {path}")
    use = "load it from there" if cache else "programs on this machine use it from now on"
    click.echo(f"saved in {path}; {use}")
    if signalled:
        sys.exit(130)


def _nothing(result: TuningResult[MappingOptions]) -> str:
    if result.interrupted:
        return "the search ended before any candidate was measured; nothing was found"
    examples = dict.fromkeys(c.outcome.message for c in result.history)
    return f"no candidate worked ({len(result.history)} tried): {'; '.join(list(examples)[:3])}"


def _table(
    work: Work, result: TuningResult[MappingOptions], threads: int, *, compare: bool
) -> None:
    """Before, after and NumPy: measured once more, in turns; or, in a hurry, as in the search."""
    from rich.console import Console
    from rich.table import Table

    assert result.options is not None
    if compare:
        times = _compared(work, result.options, threads)
    else:
        times = {"tuned": result.time or 0.0}
        if result.history[0].time is not None:
            times = {"before: where the search began": result.history[0].time, **times}
    before = next(iter(times.values()))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(work.title)
    for heading in ("time a call", "speed-up"):
        table.add_column(heading, justify="right")
    for name, seconds in times.items():
        style = "bold green" if name.startswith("after") else None
        table.add_row(name, duration(seconds), f"{before / seconds:.2f} x", style=style)
    Console().print(table)
    click.echo(f"options: {result.options}")


def _compared(work: Work, best: MappingOptions, threads: int) -> dict[str, float]:
    from tcl.cli.kernels import interleaved
    from tcl.codegen.options import MappingOptions
    from tcl.codegen.whole_array import NoFormulationError, whole_array
    from tcl.executor import Executor
    from tcl.known import DEFAULT

    outputs = work.outputs()
    contenders: dict[str, Callable[[], object]] = {}
    for name, options in (
        ("before: naive", MappingOptions("naive")),
        ("before: untuned default", DEFAULT),
        ("after: tuned", best),
    ):
        executor = Executor(work.sized, options, threads)
        contenders[name] = partial(executor.run, work.inputs, outputs)
    numpy = partial(whole_array(work.sized), work.inputs, work.outputs())
    try:
        numpy()
        contenders[f"NumPy ({_numpy_threads()})"] = numpy
    except NoFormulationError as error:
        click.echo(f"no comparison with NumPy: {error}")
    return interleaved(contenders)


def _numpy_threads() -> str:
    counts = {os.environ[name] for name in _THREADS if name in os.environ}
    count = min(counts, default="all")
    return f"{count} thread{'' if count == '1' else 's'}"
