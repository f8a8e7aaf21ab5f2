"""Tuning the rows before they are measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tcl.bench.rows import Row
from tcl.sample import random_inputs
from tcl.tuner.config import TunerConfig
from tcl.tuning import Tuner

_GENERATIONS = 1000


def tune(
    rows: Sequence[Row], seconds: float, cache: Path, seed: int, say: Callable[[str], object]
) -> None:
    """Tune each row for about ``seconds``. What is found goes to ``cache``, from which runs
    load it; what is there already is where the search begins. Ctrl+C ends one row's search early
    and is then raised as ``KeyboardInterrupt``."""
    for row in rows:
        say(f"tuning {row.name} for {seconds:.0f} s")
        config = TunerConfig(generations=_GENERATIONS, time_limit=seconds, seed=seed)
        inputs = random_inputs(row.checked, row.values, seed)
        result = Tuner(row.text, cache).tune(row.entry, inputs, None, config)
        if result.interrupted and result.seconds < 0.9 * seconds:
            raise KeyboardInterrupt
