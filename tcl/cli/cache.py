"""``tcl cache``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from tcl.cli import common
from tcl.cli.cache_commands.common import (
    SHORT,
    existing,
    key_data,
    listed_key,
    moment,
    named_cache,
    needed,
    plain,
    write_text,
)
from tcl.cli.cache_commands.inspect import analyze, inspect
from tcl.cli.cache_commands.show import best, list_shapes, shape_data, show, why
from tcl.cli.meant import Commands
from tcl.cli.tables import plain_table, print_table
from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import ArgumentError, CacheError, TclError
from tcl.common.files import MOST_DATA, read_text
from tcl.common.number_format import duration, plural
from tcl.tuner.cache import block_results
from tcl.tuner.cache import merge as merging
from tcl.tuner.cache import prune as pruning
from tcl.tuner.cache.fingerprint import split_threads
from tcl.tuner.cache.merge import Added, results
from tcl.tuner.cache.t4_format import from_t4, opened, to_t4
from tcl.tuner.cache.tuning_cache import CacheKey, Summary, TuningCache

_DAY = 24 * 3600.0
_file = click.Path(path_type=Path)
_format = click.option(
    "--format",
    "form",
    type=click.Choice(["t4"]),
    default="t4",
    show_default=True,
    help="t4: the auto-tuning community's JSON.",
)


@click.group("cache", cls=Commands)
def command() -> None:
    """Show and manage tuning results."""


@command.command("list")
@common.json_option
@common.cache_option
def list_(as_json: bool, path: Path | None) -> None:
    """List all results, with the best times.

    Lists every def with its tuned sizes, by device, the latest result first. Launch shapes that
    tcl.BlockTuner tuned come last.
    """
    cache = existing(path, as_json=as_json)
    summaries = cache.list()
    if as_json:
        launches = map(shape_data, block_results.stored_shapes(cache))
        common.print_json([*map(_listed, summaries), *launches])
        return
    devices: dict[str, list[tuple[Summary, int]]] = {}
    for summary in summaries:
        device, threads = split_threads(summary.key.device)
        devices.setdefault(f"{summary.key.backend}: {device}", []).append((summary, threads))
    for device, found in devices.items():
        click.echo(plain(device))
        headings = ("def", "inputs", ">best", ">measured", "last", ">threads", ">version", "key")
        table = plain_table(*headings)
        for summary, threads in found:
            key = summary.key
            best = "-" if summary.best is None else duration(summary.best)
            table.add_row(
                *(plain(summary.entry), plain(key.sizes), best, str(summary.measured)),
                *(moment(summary.last), str(threads)),
                *(plain(key.codegen_version), key.digest[:SHORT]),
            )
        print_table(table)
    shapes = list_shapes(cache)
    besides = f" and {plural(shapes, 'launch shape')}" if shapes else ""
    click.echo(f"{plural(len(summaries), 'key')}{besides} in {cache.path}")


def _listed(summary: Summary) -> dict[str, object]:
    return {
        **key_data(summary.key, summary.entry),
        "seconds": summary.best,
        "results": summary.measured,
        "last": summary.last,
    }


@command.command("prune")
@click.option(
    "--older-than",
    type=common.Amount(min=0),
    metavar="DAYS",
    help="Results that are older than this.",
)
@click.option("--outdated", is_flag=True, help="Results of other versions of the code generator.")
@click.option(
    "--codegen",
    "versions",
    metavar="VERSION",
    multiple=True,
    help="Results of this version of the code generator. May be given several times.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    metavar="K",
    help="Keep the K best options of each key. Without other rules, remove all others.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed; remove nothing.")
@common.cache_option
def prune(
    older_than: float | None,
    outdated: bool,
    versions: tuple[str, ...],
    keep: int | None,
    dry_run: bool,
    path: Path | None,
) -> None:
    """Remove old results.

    Removes the results that match all given rules, except the K best options of each key (--keep).
    tcl cache list shows keys and versions. For launch shapes of your own kernels, only --older-than
    counts.
    """
    if older_than is None and not outdated and not versions and keep is None:
        raise click.UsageError(
            "choose what to remove: --older-than, --outdated, --codegen or --keep"
        )
    cache = existing(path)
    rules = pruning.PruneRules(
        older_than=None if older_than is None else older_than * _DAY,
        versions=frozenset(versions) if versions else None,
        except_version=CODEGEN_VERSION if outdated else None,
        keep=keep,
    )
    done = pruning.prune(cache, rules, dry_run=dry_run)
    verb = "would be removed" if dry_run else "removed"
    click.echo(
        f"{done.results} of {plural(done.of, 'result')} {verb}, and with them {done.keys} of "
        f"{plural(done.of_keys, 'key')}, from {cache.path}"
    )
    if done.shapes:
        click.echo(f"{plural(done.shapes, 'launch shape')} {verb}")


@command.command("merge")
@click.argument("sources", metavar="FROM...", type=_file, nargs=-1, required=True)
@common.cache_option
def merge(sources: tuple[Path, ...], path: Path | None) -> None:
    """Add the results of other caches.

    Adds all results of the caches FROM to the cache, which is created if it does not exist. Each
    cache FROM is added completely or not at all, and is not changed. A result that is already there
    is not added again. Each device has its own results; no device uses those of another.
    """
    cache = TuningCache(named_cache(path))
    failed = False
    for source in sources:
        try:
            click.echo(f"{source}: {_added_text(merging.merge(cache, source))} to {cache.path}")
        except CacheError as error:
            common.report(str(error))
            failed = True
    if failed:
        sys.exit(1)


@command.command("export")
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@_format
@click.option("--key", "-k", "keys", multiple=True, help="Only this key, as in tcl cache list.")
@common.cache_option
def export(file: str, form: str, keys: tuple[str, ...], path: Path | None) -> None:
    """Write results for other programs.

    On another machine, tcl cache import reads them. The FILE - is standard output. A FILE that
    exists is replaced only if tcl cache export wrote it.
    """
    cache = needed(path)
    chosen = {listed_key(cache, digits).key for digits in keys}
    found = [each for each in results(cache) if not keys or each.key in chosen]
    _check_replaced(file)
    write_text(file, to_t4(found))
    count = sum(len(each.records) for each in found)
    click.echo(
        f"{plural(count, 'result')} of {plural(len(found), 'key')} written to {file}",
        err=file == "-",
    )
    if not keys and (shapes := len(block_results.stored_shapes(cache))):
        click.echo(
            f"{plural(shapes, 'launch shape')} of your own kernels were not written: T4 has no "
            "format for them; tcl cache merge copies them",
            err=True,
        )


def _check_replaced(file: str) -> None:
    """Refuse a file with contents of another kind, such as a def: they would be lost."""
    if file == "-" or not os.path.isfile(file):
        return
    try:
        if text := read_text(Path(file), MOST_DATA):
            opened(text, file)
    except TclError:
        raise ArgumentError(
            f"{file} exists and is not an output of tcl cache export; move it away, or name "
            "another file"
        ) from None


@command.command("import")
@click.argument("file", type=click.Path(allow_dash=True, path_type=Path))
@_format
@common.cache_option
def import_(file: Path, form: str, path: Path | None) -> None:
    """Add exported results.

    FILE is the output of tcl cache export; - is standard input. All results are added, or none. A
    result that is already there is not added again.
    """
    found = from_t4(common.read(file, MOST_DATA), str(file), _canonical_options)
    cache = TuningCache(named_cache(path))
    click.echo(f"{file}: {_added_text(merging.add(cache, found))} to {cache.path}")


def _canonical_options(key: CacheKey, options: str) -> str:
    """Options as our own are stored; those of backends that we do not know are taken as they
    are."""
    return MappingOptions.from_json(options).to_json() if key.backend == "cpu" else options


def _added_text(done: Added) -> str:
    known = f" ({done.known} were already there)" if done.known else ""
    return f"{plural(done.added, 'result')} added{known}"


for _each in (best, show, why, inspect, analyze):
    command.add_command(_each)
