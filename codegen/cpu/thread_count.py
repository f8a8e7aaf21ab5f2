"""How many threads a kernel may use."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

from tcl.common.errors import ArgumentError, VariableError
from tcl.common.number_format import is_whole_number
from tcl.common.shown import shown

VARIABLE = "TCL_NUM_THREADS"
"""The environment variable that says it for the whole process."""

MOST = 1024
"""More than this is taken for a mistake."""


def thread_count(asked: int | None = None, cores: int | None = None) -> int:
    """What was asked for, else what ``TCL_NUM_THREADS`` says, else the ``cores`` of a machine that
    is not here, or those that this process may use. More threads than cores are allowed: they take
    turns, which makes nothing faster.

    Raises ``ArgumentError`` for what is no number of threads; where the variable says it, that is a
    ``ValueError`` as well.
    """
    if asked is not None:
        if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= MOST:
            raise ArgumentError(
                f"threads must be a whole number from 1 to {MOST}, not {shown(asked)}"
            )
        return asked
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return min(MOST, cores or usable_cores())
    if not (is_whole_number(text) and len(text) <= 9 and 1 <= int(text) <= MOST):
        raise VariableError(
            f"{VARIABLE} must be a whole number from 1 to {MOST}, not {text[:40]!r}"
        )
    return int(text)


def usable_cores() -> int:
    """The cores that this process may run on, or as many as it may use the time of."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = _quota()
    # Rounded down: a thread that has used up the time of all stands still, and the others wait.
    return cores if quota is None else max(1, min(cores, int(quota)))


@functools.cache
def _quota() -> float | None:
    """Cores' worth of time that Linux gives this process's control group; None for any number."""
    found = []
    for folder in _groups():
        for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            try:
                words = " ".join((folder / name).read_text() for name in names).split()
                if int(words[0]) > 0:  # "max" or -1: no limit
                    found.append(int(words[0]) / int(words[1]))
            except (OSError, ValueError, IndexError, ZeroDivisionError):
                continue
    return min(found, default=None)


def _groups() -> Iterator[Path]:
    """The folders of this process's control group and of those that hold it."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = Path("/sys/fs/cgroup") / (controllers and "cpu")
        group = root / path.strip("/")
        yield group
        yield from (p for p in group.parents if p.is_relative_to(root))
