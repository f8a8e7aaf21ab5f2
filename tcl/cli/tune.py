"""``tcl tune``."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcl.cli.common import (
    entry_option,
    file_argument,
    numpy_threads,
    reporting,
    sizes_option,
    threads_option,
)
from tcl.grammar.errors import ArgumentError

if TYPE_CHECKING:
    from tcl.tuner.config import TunerConfig


@click.command("tune")
@file_argument
@entry_option
@sizes_option
@click.option("--device", default="cpu", show_default=True, help="What to tune for.")
@click.option("--generations", type=int, show_default="10", help="At most this many.")
@click.option("--population", type=int, show_default="20", help="Per generation.")
@click.option("--elites", type=int, help="Best members that stay; at most half the population.")
@click.option("--crossover", type=int, show_default="80", help="Percent of children.")
@click.option("--mutation", type=int, show_default="10", help="Percent of knobs.")
@click.option(
    "--strategy",
    show_default="screened",
    help="Or genetic, without a model that screens the children; random; exhaustive.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    show_default="another one each time",
    help="Of the search and of the random inputs.",
)
@threads_option
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=0),
    show_default="0",
    help="Processes that compile; 0: one for each core that measuring leaves, or for all in turns.",
)
@click.option(
    "--executor",
    default="local",
    show_default=True,
    help="Where to compile and measure; or dask:tcp://HOST:PORT, a cluster of such machines.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with the last search of this def and these sizes, however it ended.",
)
@click.option(
    "--fix",
    "fixed",
    multiple=True,
    metavar="KNOB=VALUE",
    help="Leave this decision alone; a wrong name lists the knobs. May be given several times.",
)
@click.option("--time-limit", type=float, help="Seconds; the search ends as with Ctrl+C.")
@click.option("--options", "-o", help="Start from these: a preset's name, JSON or a JSON file.")
@click.option(
    "--cache",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where results are kept. Default: the user's cache, from which programs load them.",
)
@click.option(
    "--report",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page (HTML) about the search to this file.",
)
@click.option("--json", "as_json", is_flag=True, help="Events as JSON, one per line.")
@reporting
def command(
    file: Path,
    entry: str | None,
    sizes: str | None,
    device: str,
    generations: int | None,
    population: int | None,
    elites: int | None,
    crossover: int | None,
    mutation: int | None,
    strategy: str | None,
    seed: int | None,
    threads: int | None,
    jobs: int | None,
    executor: str,
    resume: bool,
    fixed: tuple[str, ...],
    time_limit: float | None,
    options: str | None,
    cache: Path | None,
    page: Path | None,
    as_json: bool,
) -> None:
    """Search for the fastest options of a def.

    Every result is saved at once. Ctrl+C ends the search early and keeps the best (exit code
    130); twice ends it immediately. After any end, even a power failure, --resume goes on as if
    there had been none; then --generations, --time-limit and --jobs may be given anew.
    """
    if page is not None:
        _check_page(page)  # now, rather than after an hour
    from tcl.codegen.cpu.threads import thread_count

    count = thread_count(threads)
    # NumPy has as many threads as our kernels may use, unless the user says otherwise.
    numpy_threads(count)
    from tcl.cli.kernels import Work, parse_options, require_cpu
    from tcl.cli.tuned import Session, resumed
    from tcl.cluster import workplace
    from tcl.tuner.cache import TuningCache, default_path

    require_cpu(device)
    config = _config(
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
    path = cache or default_path()
    TuningCache(path).check_writable()  # now, rather than after an hour
    if resume:
        config = resumed(config, Work.load(file, entry, sizes, 0), count, path)
    # One seed for the search and the inputs, so that a resumed search knows both.
    config = config.with_defaults(generations=10, seed=random.SystemRandom().getrandbits(32))
    work = Work.load(file, entry, sizes, config.settings.seed or 0)
    with workplace(executor, count, lambda line: click.echo(line, err=as_json)) as place:
        session = Session(
            work, count, config, path, page, place,
            fixed=_fixed(fixed), resume=resume, as_json=as_json,
        )  # fmt: skip
        code = session.run(start, default=cache is None)
    sys.exit(code)


def _fixed(given: tuple[str, ...]) -> dict[str, int | str]:
    """Knob → value."""
    fixed: dict[str, int | str] = {}
    for each in given:
        name, equals, value = (part.strip() for part in each.partition("="))
        if not (name and equals and value):
            raise ArgumentError(f"--fix needs KNOB=VALUE, not {each!r}")
        fixed[name] = int(value) if value.isdecimal() else value
    return fixed


def _config(**values: Any) -> TunerConfig:
    """The settings that were given."""
    from tcl.tuner.config import TunerConfig

    return TunerConfig(**{name: value for name, value in values.items() if value is not None})


def _check_page(page: Path) -> None:
    """Refuse a file that cannot be written."""
    if page.exists():
        if not os.access(page, os.W_OK):
            raise ArgumentError(f"the report {page} cannot be written")
    elif not page.parent.is_dir():
        raise ArgumentError(f"the report {page} cannot be made: there is no folder {page.parent}")
    elif not os.access(page.parent, os.W_OK | os.X_OK):
        raise ArgumentError(f"the report {page} cannot be made: {page.parent} cannot be written to")
