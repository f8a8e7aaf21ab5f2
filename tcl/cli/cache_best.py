"""``tcl cache best``: the options that a def runs with, and where they come from."""

from __future__ import annotations

from pathlib import Path

import click

from tcl.cli.cache_common import (
    SHORT,
    cache_option,
    device_option,
    moment,
    named_key,
    needed,
    plain,
    relax_option,
)
from tcl.cli.common import (
    entry_option,
    fail,
    file_argument,
    reporting,
    sizes_option,
    threads_option,
    varying_option,
)
from tcl.common.number_format import duration


@click.command("best")
@file_argument
@entry_option
@sizes_option
@threads_option
@varying_option
@device_option
@relax_option
@cache_option
@reporting
def best(
    file: Path,
    entry: str | None,
    sizes: str | None,
    threads: int | None,
    varying: tuple[str, ...],
    device: str,
    relax: frozenset[str],
    path: Path | None,
) -> None:
    """The best options for some sizes, as JSON.

    They are what --options takes. Where they come from is said on standard error: the key, the
    time, the search; and what differs, if it is another device's result that --relax let through.
    """
    from tcl.selection.best_options import stand_in
    from tcl.tuner.cache.nearby import nearby

    key, name = named_key(str(file), entry, sizes, threads, varying, device)
    cache = needed(path)
    used, record = key, cache.best(key)
    if record is None and relax:
        near = next(nearby(cache, key, each=1, sizes=False, relax=relax), None)
        if near is not None:
            used, record = near.key, near.record
            click.echo(f"warning: {plain(stand_in(name, key, used))}", err=True)
    if record is None:
        besides = f", nor of devices that differ only in {', '.join(sorted(relax))}" * bool(relax)
        fail(f"{cache.path} has no options for {name} on {key.sizes}{besides}; see tcl cache why")
    assert record.time is not None
    click.echo(
        f"{duration(record.time)} a call on {plain(used.device)}, found by "
        f"{plain(record.run[:8])} on {moment(record.when)}; key {used.digest[:SHORT]}",
        err=True,
    )
    click.echo(plain(record.options))
