"""Launch shapes of users' kernels, for the commands of ``tcl cache``."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click

from tcl.block_tuning.result import BlockTuningResult
from tcl.cli.cache_commands.common import moment, plain
from tcl.cli.tables import plain_table, print_table
from tcl.common.number_format import duration, plural
from tcl.tuner.cache import block_results
from tcl.tuner.cache.block_results import StoredShape
from tcl.tuner.cache.tuning_cache import TuningCache


def listed(cache: TuningCache) -> int:
    """List all of a cache, device by device; how many there are."""
    kept = block_results.stored_shapes(cache)
    for device, found in itertools.groupby(kept, lambda each: each.device):
        click.echo(plain(f"launch shapes: {device}"))
        table = plain_table("kernel", "global size", "block", ">best", ">measured", "last")
        for each in found:
            result = _tuning_result(each)
            best = ("?", "?", "?")
            if result is not None:
                measured = sum(timing.time_us is not None for timing in result.timings)
                best = (str(result.candidate), duration(result.runtime_us * 1e-6), str(measured))
            table.add_row(
                plain(each.kernel), _global_size(each), *map(plain, best), moment(each.when)
            )
        print_table(table)
    return len(kept)


def _tuning_result(each: StoredShape) -> BlockTuningResult | None:
    """None for what is measured again when it is asked for."""
    try:
        return BlockTuningResult.from_json(each.result)
    except ValueError:
        return None


def _global_size(each: StoredShape) -> str:
    return " x ".join(map(str, each.global_size))


def wanted(cache: TuningCache, said: Mapping[str, Any]) -> list[StoredShape]:
    """Those that have all that the options of ``tcl cache inspect`` say: a kernel has a name, a
    global size and a device, but no file, no namespace, and no version of the code generator."""
    if any(said[name] is not None for name in ("file", "backend", "version")):
        return []
    entry, device = said["entry"], said["device"] or ""
    return [
        each
        for each in block_results.stored_shapes(cache)
        if entry in (None, each.kernel)
        and device.casefold() in each.device.casefold()
        and all("".join(s.split()) in "".join(_global_size(each).split()) for s in said["sizes"])
    ]


def show(each: StoredShape, count: int) -> None:
    """The best ``count`` candidates of a kernel."""
    click.echo(f"launch shape of {plain(each.kernel)} on {_global_size(each)}; {moment(each.when)}")
    click.echo(plain(each.device))
    result = _tuning_result(each)
    if result is None:
        click.echo("it cannot be read, and is measured again when it is asked for\n")
        return
    verdicts = Counter(timing.verdict.value for timing in result.timings)
    counts = ", ".join(f"{n} {verdict}" for verdict, n in verdicts.most_common())
    bound = "; launch-bound: nothing else was tried" * result.launch_bound
    click.echo(f"{plural(len(result.timings), 'candidate')}: {counts}{bound}")
    for note in result.notes:
        click.echo(plain(note))
    table = plain_table(">", ">time", ">longer", "block", no_wrap=True)
    timed = [timing for timing in result.timings if timing.time_us is not None]
    for rank, timing in enumerate(timed[:count], 1):
        seconds = (timing.time_us or 0.0) * 1e-6
        longer = seconds / (result.runtime_us * 1e-6) - 1 if result.runtime_us else 0.0
        table.add_row(
            str(rank), duration(seconds), f"{100 * longer:+.1f} %", plain(str(timing.candidate))
        )
    print_table(table)
    click.echo()


def data(each: StoredShape) -> dict[str, Any]:
    """All that is known of a kernel, times in seconds, as JSON has it."""
    result = _tuning_result(each)
    return {
        "kernel": each.kernel,
        "global_size": each.global_size,
        "device": each.device,
        "when": each.when,
        "block": None if result is None else result.block,
        "defines": None if result is None else result.defines,
        "grid": None if result is None else result.grid,
        "launch_bound": None if result is None else result.launch_bound,
        "candidates": [] if result is None else _candidate_data(result),
    }


def _candidate_data(result: BlockTuningResult) -> Sequence[dict[str, Any]]:
    return [
        {
            "block": timing.block,
            "defines": timing.defines,
            "verdict": timing.verdict.value,
            "seconds": None if timing.time_us is None else timing.time_us * 1e-6,
            "message": timing.message,
        }
        for timing in result.timings
    ]
