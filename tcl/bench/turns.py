"""Timing several ways to compute the same thing, in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

from tcl.common.number_format import duration, ratio_text
from tcl.tuner.measure.timing import measure


def interleaved(
    contenders: Mapping[str, Callable[[], object]], rounds: int = 5
) -> dict[str, float]:
    """Median seconds per call of each contender, measured in turns so that drift hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            times[name].append(measure(run).median)
    return {name: median(found) for name, found in times.items()}


def compare_in_turns(
    contenders: Mapping[str, Callable[[], object]], rounds: int = 5
) -> dict[str, float]:
    """Print what a call of each contender takes beside the first; the seconds, by name.

    The times are medians of ``rounds`` rounds in which each has its turn. A fair comparison gives
    all of them the same inputs, and outputs that are there already.
    """
    times = interleaved(contenders, rounds)
    first = next(iter(times.values()))
    width = max(map(len, times))
    print(f"{'':{width}}  {'a call':>8}  as long")
    for name, seconds in times.items():
        print(f"{name:{width}}  {duration(seconds):>8}  {ratio_text(seconds / first):>7}")
    return times
