"""``tcl tune``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcl.cli.common import (
    cache_option,
    check_writable,
    entry_option,
    numpy_threads,
    reporting,
    sizes_option,
    threads_option,
    varying_option,
)
from tcl.cli.grid_file import most_threads, read_grid
from tcl.cli.settings import check_executor, own_names, search_config
from tcl.codegen.cpu.thread_count import thread_count
from tcl.common.lazy import Lazy

if TYPE_CHECKING:
    from tcl.cli import grid as grids
    from tcl.cli import tuned
else:  # they import NumPy, which has to be told before how many threads to have
    grids, tuned = Lazy("tcl.cli.grid"), Lazy("tcl.cli.tuned")


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
        points = read_grid(grid)
        numpy_threads(most_threads(points, settings["threads"]))
        check_executor(executor)
        with own_names(usage=True):
            search_config(settings)
        wishes = grids.Wishes(grid, settings, path, page, executor, resume, as_json)
        sys.exit(grids.tune_grid(points, wishes, dry_run=dry_run))
    if dry_run:
        raise click.UsageError("--dry-run is for --grid")
    if file is None:
        raise click.UsageError("Missing argument 'FILE'; or name a file with many: --grid FILE.")
    if page is not None:
        check_writable(page)  # now, rather than after an hour
    # NumPy has as many threads as our kernels may use, unless the user says otherwise.
    numpy_threads(thread_count(settings["threads"]))
    check_executor(executor)
    sys.exit(
        tuned.tune_def(
            *(file, entry, sizes, varying, settings, executor, _fixed(fixed), path, page),
            resume=resume,
            as_json=as_json,
        )
    )


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
