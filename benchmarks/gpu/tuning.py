"""Where tuning comes in: from a row, options for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from benchmarks.gpu.rows import GpuRow
from tcl.bench.tuning import tune, tuned_options
from tcl.sample import random_inputs

Tune: TypeAlias = Callable[[GpuRow, float, Path, int], str]
"""Search for about so many seconds, with a cache file and a seed: options as JSON, or nothing."""


def tuner_for(device: str) -> Tune | None:
    """The tuner for a device, ``cuda`` or ``cpu``; None if there is none."""
    return _on_cpu if device == "cpu" else None


def _on_cpu(row: GpuRow, seconds: float, cache: Path, seed: int) -> str:
    tune([row], seconds, cache, seed, lambda text: None)
    return tuned_options(row, random_inputs(row.checked, row.values, seed), cache)
