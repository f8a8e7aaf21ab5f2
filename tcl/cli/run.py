"""``tcl run``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcl.cli.common import (
    entry_option,
    fail,
    file_argument,
    reporting,
    sizes_option,
    threads_option,
    without_threads,
)
from tcl.cli.signals import dying
from tcl.common.number_format import duration, plural
from tcl.grammar.errors import ArgumentError

if TYPE_CHECKING:
    from tcl.arrays.arguments import Array
    from tcl.cli.kernels import Work
    from tcl.selection.suggested_options import Chosen
    from tcl.tuner.cache.key import CacheKey


@click.command("run")
@file_argument
@entry_option
@sizes_option
@click.option(
    "--options",
    "-o",
    help="Mapping options: a preset's name, JSON, or the name of a JSON file. "
    "Default: the best that is known.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Use the best options that this cache has. Default: the user's cache, if it has any.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of the random inputs.",
)
@threads_option
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    help="Where to run: cpu; cuda:0, a GPU of this machine; or cuda-emulated, a GPU that the CPU "
    "emulates, which checks every access of small kernels.",
)
@click.option("--no-reference", is_flag=True, help="Do not compare with the reference.")
@reporting
def command(
    file: Path,
    entry: str | None,
    sizes: str | None,
    options: str | None,
    cache: Path | None,
    seed: int,
    threads: int | None,
    device: str,
    no_reference: bool,
) -> None:
    """Run a def on random inputs, compare it with the reference, print the time."""
    from tcl.cli.kernels import Work
    from tcl.codegen.cpu.thread_count import thread_count
    from tcl.executors.executor import Executor
    from tcl.selection.best_options import cache_key
    from tcl.tuner.measure.timing import measure

    # Nothing has to be saved here, and the reference may run for minutes without hearing of Ctrl+C.
    dying()
    count = thread_count(threads)
    if device != "cpu":
        from tcl.backends.targets import target
        from tcl.cli.run_cuda import run_cuda

        without_threads(device, threads)
        where = target(device, count)
        work = Work.load(file, entry, sizes, seed)
        key = where.key(work.sized, work.inputs)
        with work.indexing():
            run_cuda(work, _chosen(work, options, cache, key), where, compare=not no_reference)
        return
    work = Work.load(file, entry, sizes, seed)
    chosen = _chosen(work, options, cache, cache_key(work.sized, work.inputs, count))
    executor = Executor(work.sized, chosen, count)
    outputs = work.outputs()
    with work.indexing():
        executor.run(work.inputs, outputs)
    show_results(work, outputs, compare=not no_reference)
    seconds = measure(lambda: executor.run(work.inputs, outputs)).median
    used = plural(executor.threads, "thread")
    click.echo(f"  {duration(seconds)} a call on {used}, with options {executor.options}")


def _chosen(work: Work, options: str | None, cache: Path | None, key: CacheKey) -> Chosen:
    """What to run with: what was given, else what a cache has, else the default."""
    from tcl.cli.cache_common import needed
    from tcl.cli.kernels import parse_options
    from tcl.selection.best_options import best_known, known_options

    if cache is None:
        return parse_options(options) or best_known(work.sized, work.inputs, key=key)
    if options is not None:
        raise click.UsageError("--options and --cache both say which options to use; give one")
    found = known_options(needed(cache), work.sized, work.inputs, key=key)
    if found is None:
        raise ArgumentError(
            f"{cache} has no options for {work.title} on this device with so many threads; "
            "tcl cache why says what differs from those that it has"
        )
    return found


def show_results(work: Work, outputs: Sequence[Array], *, compare: bool) -> None:
    """Say what was computed, and whether it is right; exit if it is not."""
    click.echo(work.title)
    for tensor, array in zip(work.checked.outputs, outputs, strict=True):
        click.echo(f"  {tensor.name}: {tensor.type}{array.shape}")
    if compare:
        wrong = _differences(work, outputs)
        if wrong:
            fail("\n".join(wrong))
        click.echo("  agrees with the reference")


def _differences(work: Work, outputs: Sequence[Array]) -> list[str]:
    """Sentences about outputs that are not what the reference computes."""
    from tcl.codegen.reference import compile_reference
    from tcl.tuner.measure.correctness import accumulation_depths, mismatch

    expected = work.outputs()
    compile_reference(work.sized)(work.inputs, expected)
    depths = accumulation_depths(work.sized)
    found = (
        mismatch(tensor.name, actual, wanted, depths[tensor.name])
        for tensor, actual, wanted in zip(work.checked.outputs, outputs, expected, strict=True)
    )
    return [sentence for sentence in found if sentence is not None]
