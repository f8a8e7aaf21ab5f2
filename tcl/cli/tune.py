"""``tcl tune``."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tcl.cli.cache_common import cache_option, writable_cache
from tcl.cli.common import (
    check_varying,
    check_writable,
    choose,
    entry_option,
    numpy_threads,
    reporting,
    sizes_option,
    threads_option,
    varying_option,
)


@click.command("tune")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@entry_option
@sizes_option
@click.option(
    "--grid",
    type=click.Path(path_type=Path),
    help="Instead of FILE: tune all defs and sizes that this file (TOML) names.",
)
@click.option(
    "--dry-run", is_flag=True, help="With --grid: only say what would be tuned, and its cost."
)
@click.option(
    "--device",
    show_default="cpu",
    help="What to tune for: cpu, or cuda:0, a GPU of this machine.",
)
@click.option("--generations", type=int, show_default="10", help="At most this many.")
@click.option("--population", type=int, show_default="20", help="Per generation.")
@click.option(
    "--elites",
    type=int,
    help="Members that later generations take over, and do not measure again; at most half.",
)
@click.option(
    "--crossover", type=int, show_default="80", help="Percent of the children that may mix parents."
)
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
@click.option(
    "--model/--no-model",
    default=None,
    help="Whether to start from the learned model, where there is one for this machine.",
)
@threads_option
@varying_option
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=0),
    show_default="0",
    help="Processes that compile; 0: one per core, in turns with measuring where kernels run.",
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
    help="Go on with the last search of this def and these sizes, however it ended. "
    "With --grid: leave out what is done.",
)
@click.option(
    "--fix",
    "fixed",
    multiple=True,
    metavar="KNOB=VALUE",
    help="Leave this decision alone; a wrong name lists the knobs. May be given several times.",
)
@click.option(
    "--time-limit",
    type=float,
    help="Seconds; then the search ends as with Ctrl+C, but not before a candidate is timed.",
)
@click.option("--options", "-o", help="Start from these: a preset's name, JSON or a JSON file.")
@cache_option
@click.option(
    "--report",
    "page",
    type=click.Path(path_type=Path),
    help="Write a page (HTML) about the search to this file; with --grid, a page for each into "
    "this folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Events as JSON, one per line.")
@reporting
def command(
    file: Path | None,
    entry: str | None,
    sizes: str | None,
    grid: Path | None,
    dry_run: bool,
    executor: str,
    resume: bool,
    fixed: tuple[str, ...],
    varying: tuple[str, ...],
    path: Path | None,
    page: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Search for the fastest options of a def, or of many.

    Every result is saved at once, in the cache from which programs take the best. Ctrl+C ends the
    search early and keeps the best (exit code 130); twice ends it immediately. After any end, even
    a power failure, --resume goes on as if there had been none; then --generations, --time-limit
    and --jobs may be given anew.

    The exit code with --grid is 0 if every point of the grid is accounted for. Its file has
    settings by the names of these options, at the top or in a table; lists of sizes stand for all
    combinations:

    \b
        generations = 5
        [[tune]]
        file = "matmul.tc"
        entry = "matmul"
        sizes = { M = [256, 512], N = 512, K = [64, 128] }
    """
    if grid is not None:
        for given, name in (
            *((file, "FILE"), (entry, "--entry"), (sizes, "--sizes")),
            (varying or None, "--varying"),
        ):
            if given is not None:
                raise click.UsageError(f"{name} is said in the grid's tables; leave it out here")
        if fixed:
            raise click.UsageError("--fix names a knob of one def; it cannot be used with --grid")
        from tcl.cli.grid_file import most_threads, read_grid

        points = read_grid(grid)
        numpy_threads(most_threads(points, settings["threads"]))
        from tcl.cli.grid import Wishes, tune_grid
        from tcl.cli.settings import check_executor, own_names, search_config

        check_executor(executor)
        with own_names(usage=True):
            search_config(settings)
        wishes = Wishes(grid, settings, path, page, executor, resume, as_json)
        sys.exit(tune_grid(points, wishes, dry_run=dry_run))
    if dry_run:
        raise click.UsageError("--dry-run is for --grid")
    if file is None:
        raise click.UsageError("Missing argument 'FILE'; or name a file with many: --grid FILE.")
    sys.exit(
        _tune(
            *(file, entry, sizes, varying, settings, executor, _fixed(fixed), path, page),
            resume=resume,
            as_json=as_json,
        )
    )


def _tune(
    file: Path,
    entry: str | None,
    sizes: str | None,
    varying: tuple[str, ...],
    settings: dict[str, Any],
    executor: str,
    fixed: Mapping[str, int | str],
    path: Path | None,
    page: Path | None,
    *,
    resume: bool,
    as_json: bool,
) -> int:
    """Tune one def; the exit code."""
    if page is not None:
        check_writable(page)  # now, rather than after an hour
    from tcl.codegen.cpu.thread_count import thread_count

    count = thread_count(settings["threads"])
    # NumPy has as many threads as our kernels may use, unless the user says otherwise.
    numpy_threads(count)
    from tcl.arrays.annotations import sizes_of
    from tcl.backends.targets import timed_target
    from tcl.cli.kernels import Work, parse_options
    from tcl.cli.settings import check_executor, own_names, search_config
    from tcl.cli.tuned import TuneSession, resumed
    from tcl.cluster import LOCAL, workplace

    check_executor(executor)
    device = "cpu" if settings["device"] is None else settings["device"]
    chosen = timed_target(device, count, here=executor == LOCAL)
    with own_names(usage=True):
        config = search_config(settings)
    start = parse_options(settings["options"])
    text, checked = choose(file, entry)
    check_varying(checked, varying)
    values = sizes_of(checked, sizes)
    # Now, rather than after an hour; and not before names are known to be right: it makes a file.
    cache = writable_cache(path).path
    if resume:
        with own_names(options=True):
            config = resumed(
                config, Work.from_def(text, checked, values, 0, varying), chosen, cache
            )
    # One seed for the search and the inputs, so that a resumed search knows both.
    config = config.with_defaults(generations=10, seed=random.SystemRandom().getrandbits(32))
    with own_names(usage=True):
        config.settings.check()  # now, before anything is measured
    work = Work.from_def(text, checked, values, config.settings.seed or 0, varying)
    with workplace(executor, chosen.cores, lambda line: click.echo(line, err=as_json)) as place:
        session = TuneSession(
            work, chosen, config, cache, page, place,
            threads=count, fixed=fixed, resume=resume, as_json=as_json,
        )  # fmt: skip
        return session.run(start, default=path is None).exit_code


def _fixed(given: tuple[str, ...]) -> dict[str, int | str]:
    """Knob → value."""
    fixed: dict[str, int | str] = {}
    for each in given:
        name, equals, value = (part.strip() for part in each.partition("="))
        if not (name and equals and value):
            raise click.UsageError(f"--fix needs KNOB=VALUE, not {each!r}")
        if name in fixed:
            raise click.UsageError(f"--fix names the knob {name} twice; leave one of them out")
        fixed[name] = int(value) if value.isdecimal() else value
    return fixed
