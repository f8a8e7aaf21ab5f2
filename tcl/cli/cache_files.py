"""``tcl cache merge``, ``export`` and ``import``: results from one file to another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcl.cli.cache_common import cache_option, listed_key, needed, write_text
from tcl.cli.common import read, report, reporting
from tcl.common.number_format import plural

if TYPE_CHECKING:
    from tcl.tuner.cache.merge import Added
    from tcl.tuner.cache.tuning_cache import CacheKey

_file = click.Path(path_type=Path)
_format = click.option(
    "--format",
    "form",
    type=click.Choice(["t4"]),
    default="t4",
    show_default=True,
    help="t4: the auto-tuning community's JSON.",
)


@click.command("merge")
@click.argument("into", type=_file)
@click.argument("sources", metavar="FROM...", type=_file, nargs=-1, required=True)
@reporting
def merge(into: Path, sources: tuple[Path, ...]) -> None:
    """Add the results of other caches.

    All results of the caches FROM are added to the cache INTO, which is made if there is none. Each
    is added whole or not at all and left as it is; what INTO has already is not added again.
    """
    from tcl.tuner.cache import merge as merging
    from tcl.tuner.cache.tuning_cache import TuningCache
    from tcl.tuner.errors import CacheError

    cache = TuningCache(into)
    failed = False
    for source in sources:
        try:
            click.echo(f"{source}: {_said(merging.merge(cache, source))}")
        except CacheError as error:
            report(str(error))
            failed = True
    if failed:
        sys.exit(1)


@click.command("export")
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@_format
@click.option("--key", "-k", "keys", multiple=True, help="Only this key, as in tcl cache list.")
@cache_option
@reporting
def export(file: str, form: str, keys: tuple[str, ...], path: Path | None) -> None:
    """Write results for other programs.

    Or for another machine's tcl cache import. FILE - is standard output.
    """
    from tcl.tuner.cache.merge import results
    from tcl.tuner.cache.t4_format import to_t4

    cache = needed(path)
    chosen = {listed_key(cache, digits).key for digits in keys}
    found = [each for each in results(cache) if not keys or each.key in chosen]
    write_text(file, to_t4(found))
    count = sum(len(each.records) for each in found)
    click.echo(
        f"{plural(count, 'result')} of {plural(len(found), 'key')} written to {file}",
        err=file == "-",
    )


@click.command("import")
@click.argument("file", type=click.Path(allow_dash=True, path_type=Path))
@_format
@cache_option
@reporting
def import_(file: Path, form: str, path: Path | None) -> None:
    """Add results that were exported.

    FILE is what tcl cache export wrote, - is standard input. All are added or none; those that
    are there already are not added again.
    """
    from tcl.tuner.cache import merge as merging
    from tcl.tuner.cache.t4_format import from_t4
    from tcl.tuner.cache.tuning_cache import TuningCache

    found = from_t4(read(file), str(file), _canonical)
    cache = TuningCache(path)
    click.echo(f"{file}: {_said(merging.add(cache, found))} to {cache.path}")


def _canonical(key: CacheKey, options: str) -> str:
    """Options as our own are stored; those of backends that we do not know are taken as they
    are."""
    from tcl.codegen.options.options import MappingOptions

    return MappingOptions.from_json(options).to_json() if key.backend == "cpu" else options


def _said(done: Added) -> str:
    known = f" ({done.known} were there already)" if done.known else ""
    return f"{plural(done.added, 'result')} added{known}"
