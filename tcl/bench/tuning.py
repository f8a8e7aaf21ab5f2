"""Tuning the rows before they are measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tcl.arrays.random_inputs import input_shape, random_inputs
from tcl.backends.targets import target
from tcl.bench.rows import Row
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.executors.call_kernels import size
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.measure.placement import aligned
from tcl.tuning import Tuner

_GENERATIONS = 1000


def tune(
    rows: Sequence[Row],
    seconds: float,
    cache: Path,
    seed: int,
    say: Callable[[str], object],
    threads: int = 1,
    device: str = "cpu",
) -> dict[str, str]:
    """Tune each row for about ``seconds``; rows without a result, and why. ``device`` is as for
    ``Tuner``.

    What is found goes to ``cache``, from which runs load it; what is there already is where the
    search begins. Ctrl+C ends one row's search early and is then raised as ``KeyboardInterrupt``.
    """
    failed: dict[str, str] = {}
    for row in rows:
        say(f"tuning {row.name} for {seconds:.0f} s, {threads} thread{'s' * (threads > 1)}")
        config = TunerConfig(generations=_GENERATIONS, time_limit=seconds, seed=seed)
        inputs = random_inputs(row.checked, row.values, seed)
        tuner = Tuner(row.text, cache, threads=threads, device=device)
        result = tuner.tune(row.entry, inputs, None, config, progress=False)
        if result.interrupted and result.seconds < 0.9 * seconds:
            raise KeyboardInterrupt
        if result.options is None:
            messages = dict.fromkeys(c.outcome.message for c in result.history)
            reason = "; ".join(list(messages)[:2]) or "no candidate was finished"
            failed[row.name] = f"{len(result.history)} candidates, none worked: {reason}"
    return failed


def tuned_options(
    row: Row, cache: Path, threads: int = 1, device: str = "cpu", past: int = 0
) -> str:
    """The best options for a row that a cache file holds, for arrays that begin ``past`` bytes
    after a cache line, as JSON; empty if it holds none.

    Looked up here and not where kernels run: the key holds the number of cores, and the processes
    of contenders are pinned to some.
    """
    if not cache.exists():
        return ""
    lying = tuple(
        aligned(input_shape(t, row.values), numpy_dtype(t.type), past) for t in row.checked.inputs
    )
    sized = size(row.checked, lying)
    record = TuningCache(cache).best(target(device, threads).query(sized, lying).key)
    return "" if record is None else record.options
