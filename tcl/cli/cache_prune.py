"""``tcl cache prune``."""

from __future__ import annotations

from pathlib import Path

import click

from tcl.cli.cache_common import cache_option, existing
from tcl.cli.common import reporting
from tcl.common.number_format import plural

_DAY = 24 * 3600.0


@click.command("prune")
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Results that were measured longer ago.",
)
@click.option(
    "--outdated", is_flag=True, help="Results of all versions of the code generator but this one's."
)
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
    help="Leave the K best options of each key; alone: remove all others.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@cache_option
@reporting
def prune(
    older_than: float | None,
    outdated: bool,
    versions: tuple[str, ...],
    keep: int | None,
    dry_run: bool,
    path: Path | None,
) -> None:
    """Remove old results.

    Those go that all of the given rules name, except for the K best options of each key. tcl cache
    list shows keys and versions.
    """
    from tcl.codegen.common.version import CODEGEN_VERSION
    from tcl.tuner.cache import prune as pruning

    if older_than is None and not outdated and not versions and keep is None:
        raise click.UsageError("say what to remove: --older-than, --outdated, --codegen or --keep")
    cache = existing(path)
    if cache is None:
        return
    rules = pruning.Rules(
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
