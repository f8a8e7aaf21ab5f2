"""What the commands of ``tcl cache`` share."""

from __future__ import annotations

import datetime
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from tcl.arrays.annotations import sizes_of
from tcl.arrays.random_inputs import input_shape
from tcl.backends.targets import target
from tcl.cli.common import (
    check_varying,
    choose,
    entry_option,
    fail,
    print_json,
    sizes_option,
    threads_option,
    varying_option,
    without_threads,
)
from tcl.cli.kernels import Work
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.thread_count import thread_count
from tcl.common.errors import ArgumentError, CacheError
from tcl.common.files import write_whole
from tcl.executors.calls import contiguous
from tcl.grammar.ranges.inference import infer
from tcl.grammar.tree.checked import CheckedDef
from tcl.selection.best_options import Query, defined
from tcl.tuner.cache.file import check_sound
from tcl.tuner.cache.fingerprint import relaxed_fields
from tcl.tuner.cache.tuning_cache import ArrayLayout, CacheKey, Summary, TuningCache, default_path

_F = TypeVar("_F", bound=Callable[..., Any])


def _relaxed(
    context: click.Context, parameter: click.Parameter, given: str | None
) -> frozenset[str]:
    try:
        return relaxed_fields(given, "--relax")
    except ArgumentError as error:
        if given is None:
            fail(str(error))  # the command line is right, the environment is not
        raise click.UsageError(str(error), context) from None


device_option = click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="The device of the results: cpu; cuda:0, a GPU of this machine; or cuda-emulated.",
)


relax_option = click.option(
    "--relax",
    metavar="FIELD,...",
    callback=_relaxed,
    help="If nothing was tuned for this device, also use results of devices that differ only in "
    "these fields, such as clock,cores. Default: TCL_RELAX, else none.",
)


def key_options(command: _F) -> _F:
    """The options that say, with a file, which key is meant; ``named_key`` takes them by name."""
    for option in (device_option, varying_option, threads_option, sizes_option, entry_option):
        command = option(command)
    return command


SHORT = 10
"""Digits by which people name a key."""


def named_cache(path: Path | None) -> Path:
    """The cache file that was named, else the user's; ``ArgumentError`` if there is no place for
    one."""
    try:
        return path or default_path()
    except CacheError as error:
        raise ArgumentError(f"{error}, or name a file with --cache") from None


def writable_cache(path: Path | None) -> TuningCache:
    """``named_cache``, for results; ``ArgumentError``, with what to do, if they cannot be saved."""
    cache = TuningCache(named_cache(path))
    try:
        cache.check_writable()
    except CacheError as error:
        if "; " in str(error):  # with a remedy of its own
            raise ArgumentError(str(error)) from None
        other = "name another file with --cache"
        remedy = other if path is not None else f"{other}, or a folder with TCL_CACHE_DIR"
        raise ArgumentError(f"{error}; {remedy}") from None
    return cache


def how_to_load(work: Work, query: Query, cache: Path | None, device: str) -> tuple[str, ...]:
    """What results are for, and what to type to use them: in Python, and on the command line.
    ``cache``: the file that they are in if it is not the user's own."""
    name = work.checked.source.name
    file = shlex.quote(name)
    sizes = ",".join(f"{symbol}={size}" for symbol, size in work.sizes.items())
    command = f"tcl run {file} --entry {work.checked.name} --sizes {shlex.quote(sizes)}"
    if work.varying:
        command += f" --varying {','.join(work.varying)}"
    if device != "cpu":
        command += f" --device {device}"
    elif query.device.threads not in (None, thread_count(None)):
        command += f" --threads {query.device.threads}"
    if cache is not None:
        command += f" --cache {shlex.quote(str(cache))}"
    call = defined(f"pathlib.Path({name!r})", cache or default_path(), query, work.varying)
    return (
        f"  for:                  {query.key.described}",
        f"  in Python:            {call}",
        f"  on the command line:  {command}",
    )


def existing(path: Path | None, *, as_json: bool = False) -> TuningCache:
    """``needed``; if the cache is the user's own, and there is none yet, or an empty file, that is
    no mistake: the command says so, and ends. A file that is named and not there is one
    (``MissingCacheError``).
    ``as_json``: it is said beside an empty list."""
    try:
        return needed(path)
    except MissingCacheError as error:
        if path is not None and not path.exists():
            raise
        click.echo(error, err=as_json)
        if as_json:
            print_json([])
        sys.exit(0)


class MissingCacheError(ArgumentError):
    """There is no cache yet, or an empty file."""


def needed(path: Path | None) -> TuningCache:
    """The cache to look into; ``MissingCacheError`` if there is none yet, and ``CacheError`` for
    a file that is damaged or of a newer version: one that is only looked into stays where it is."""
    found = named_cache(path)
    if not os.path.exists(found):
        raise MissingCacheError(f"{found} does not exist: nothing has been tuned yet")
    if not check_sound(found):  # TuningCache would begin one there
        raise MissingCacheError(f"{found} is empty: nothing has been tuned yet")
    return TuningCache(found)


def named_query(
    file: Path,
    entry: str | None,
    sizes: str | None,
    threads: int | None,
    varying: tuple[str, ...],
    device: str,
) -> Query:
    """What is looked up for a def in a file on inputs of these sizes. ``varying``: names of sizes
    of whose classes it is to be. ``ArgumentError`` for a ``device`` that is not here."""
    if device != "cpu":
        without_threads(device, threads)
    where = target(device, thread_count(threads))
    _, checked = choose(file, entry)
    check_varying(checked, varying)
    shapes, layouts = layouts_of(checked, sizes_of(checked, sizes))
    return where.query(infer(checked, shapes), layouts, varying)


def named_key(*given: Any, **named: Any) -> tuple[CacheKey, str]:
    """The key of ``named_query``, and the def's name."""
    query = named_query(*given, **named)
    return query.key, query.name


def layouts_of(
    checked: CheckedDef, sizes: Mapping[str, int]
) -> tuple[dict[str, tuple[int, ...]], tuple[ArrayLayout, ...]]:
    """The shapes of a def's inputs by name, and their layouts as ``tcl`` makes them."""
    shapes = {t.name: input_shape(t, sizes) for t in checked.inputs}
    layouts = []
    for tensor in checked.inputs:
        dtype, shape = numpy_dtype(tensor.type), shapes[tensor.name]
        layouts.append(ArrayLayout(shape, contiguous(shape, dtype.itemsize), dtype.name))
    return shapes, tuple(layouts)


def listed_key(cache: TuningCache, digits: str) -> Summary:
    """The key whose digest begins with these digits; ``ArgumentError`` unless it is one."""
    found = [s for s in cache.list() if s.key.digest.startswith(digits.lower())]
    if len(found) != 1:
        there = "no key that begins" if not found else f"{len(found)} keys that begin"
        raise ArgumentError(f"{cache.path} has {there} with {digits}; tcl cache list shows them")
    return found[0]


def key_data(key: CacheKey, entry: str) -> dict[str, object]:
    """What a key stands for, as JSON has it. Of sizes that vary, ``shape`` has the representative
    ones, and ``extents`` the classes."""
    inputs = []
    for each in key.inputs:
        about = {"shape": each.shape, "strides": each.strides, "dtype": each.dtype}
        inputs.append(about | ({"extents": each.extents} if each.classes else {}))
    return {
        "key": key.digest,
        "entry": entry,
        "namespace": key.backend,
        "device": key.device,
        "inputs": inputs,
        "codegen_version": key.codegen_version,
    }


def is_digits(what: str) -> bool:
    """Whether this names a key, rather than a file."""
    return re.fullmatch(r"[0-9a-fA-F]{4,64}", what) is not None and not Path(what).exists()


def plain(text: str) -> str:
    """A text of a file that others may have made, fit for a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def moment(when: float) -> str:
    """A time of day for people."""
    try:
        return datetime.datetime.fromtimestamp(when).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "?"


def write_text(path: str, text: str) -> None:
    """Write a file, or standard output for ``-``: all of it, or nothing but an error."""
    if path == "-":
        click.echo(text, nl=False)
        return
    try:
        write_whole(Path(path), text)
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror}") from None
