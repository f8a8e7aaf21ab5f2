"""``tcl tune``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcl.cli import common
from tcl.cli.grid_file import most_threads, read_grid
from tcl.cli.settings import check_executor, own_names, search_config
from tcl.codegen.cpu.thread_count import thread_count
from tcl.common.lazy import Lazy
from tcl.common.number_format import is_whole_number

if TYPE_CHECKING:
    from tcl.cli import grid as grids
    from tcl.cli import tuned
else:  # they import NumPy, which has to be told before how many threads to have
    grids, tuned = Lazy("tcl.cli.grid"), Lazy("tcl.cli.tuned")


@click.command("tune")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@common.entry_option
@common.sizes_option
@click.option(
    "--grid",
    type=click.Path(path_type=Path),
    help="Instead of FILE: tune all defs and sizes in this TOML file.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help=("With --grid: show what would be tuned and how long it takes; tune nothing."),
)
@click.option(
    "--device",
    show_default="cpu",
    help="The device to tune for: cpu, or cuda:0, a GPU of this machine.",
)
@click.option(
    "--generations", type=int, show_default="10", help="The maximum number of generations."
)
@click.option("--population", type=int, show_default="20", help="Candidates per generation.")
@click.option(
    "--elites",
    type=int,
    help="Candidates that later generations keep and do not measure again; at most half of the "
    "population.",
)
@click.option(
    "--crossover", type=int, show_default="80", help="Percentage of the children that mix parents."
)
@click.option(
    "--mutation", type=int, show_default="10", help="Percentage of the knobs that mutate."
)
@click.option(
    "--strategy",
    show_default="screened",
    help="How to search. screened: genetic, with a model that screens the children; genetic; "
    "random; exhaustive.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    show_default="a different seed each time",
    help="Seed of the search and of the random inputs.",
)
@click.option(
    "--model/--no-model",
    default=None,
    help="Whether to start from the learned model, if there is one for this machine.",
)
@common.threads_option
@common.varying_option
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=0),
    show_default="0",
    help="Processes that compile; 0: one per core. On measuring cores, compiling and measuring "
    "take turns.",
)
@click.option(
    "--executor",
    default="local",
    show_default=True,
    help="Where to compile and measure: local, or dask:tcp://HOST:PORT for a Dask cluster of "
    "equal machines.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue the last search of this def and these sizes, however it ended. With --grid: "
    "leave out finished points.",
)
@click.option(
    "--fix",
    "fixed",
    multiple=True,
    metavar="KNOB=VALUE",
    help="Keep this decision fixed; a wrong name prints the list of knobs. May be given several "
    "times.",
)
@click.option(
    "--time-limit",
    type=float,
    help="Seconds after which the search ends as with Ctrl+C, but not before a candidate is timed.",
)
@click.option(
    "--options", "-o", help=("Options to start from: the name of a preset, JSON or a JSON file.")
)
@common.cache_option
@click.option(
    "--report",
    "page",
    type=click.Path(path_type=Path),
    help="Write an HTML page about the search to this file; with --grid, one page per point to "
    "this folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON, one per line.")
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

    Every result is saved at once, in the cache that programs use. Ctrl+C ends the search early and
    keeps the best options (exit code 130); a second Ctrl+C ends it immediately. After any end, even
    a power failure, --resume continues the search as if there had been no break. You may then give
    new values for --generations, --time-limit and --jobs.

    With --grid, the exit code is 0 if every point of the grid has a result. The file of the grid
    has settings with the names of these options, at the top or in a table. A list of sizes means
    all its combinations:

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
                raise click.UsageError(
                    f"{name} belongs in the tables of the grid; leave it out here"
                )
        if fixed:
            raise click.UsageError("--fix names a knob of one def; it cannot be used with --grid")
        points = read_grid(grid)
        common.numpy_threads(most_threads(points, settings["threads"]))
        check_executor(executor)
        with own_names(usage=True):
            search_config(settings)
        wishes = tuned.Wishes(grid, settings, path, page, executor, resume, as_json)
        sys.exit(grids.tune_grid(points, wishes, dry_run=dry_run))
    if dry_run:
        raise click.UsageError("--dry-run is for --grid")
    if file is None:
        raise click.UsageError("Missing argument 'FILE'; or name a file with many: --grid FILE.")
    if page is not None:
        common.check_writable(page)  # now, rather than after an hour
    # NumPy has as many threads as our kernels may use, unless the user says otherwise.
    common.numpy_threads(thread_count(settings["threads"]))
    check_executor(executor)
    wishes = tuned.Wishes(file, settings, path, page, executor, resume, as_json)
    sys.exit(tuned.tune_def(wishes, entry, sizes, varying, _fixed(fixed)))


def _fixed(given: tuple[str, ...]) -> dict[str, int | str]:
    """Knob → value."""
    fixed: dict[str, int | str] = {}
    for each in given:
        name, equals, value = (part.strip() for part in each.partition("="))
        if not (name and equals and value):
            raise click.UsageError(f"--fix needs KNOB=VALUE, not {each!r}")
        if name in fixed:
            raise click.UsageError(f"--fix names the knob {name} twice; leave one of them out")
        fixed[name] = int(value) if is_whole_number(value) else value
    return fixed
