"""The cores of this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tcl.common.errors import ArgumentError


def available_cores() -> tuple[int, ...]:
    """The cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def split_cores(
    cores: Sequence[int], measuring: int = 1
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cores to compile on and those to measure on; where none are left, both are all of them."""
    if measuring > len(cores):
        raise ArgumentError(
            f"kernels with {measuring} threads are measured on as many cores; "
            f"there {'is' if len(cores) == 1 else 'are'} {len(cores)}"
        )
    measure = tuple(cores[len(cores) - measuring :])
    return tuple(cores[: len(cores) - measuring]) or measure, measure
