"""How much memory a process has, and how much there is."""

from __future__ import annotations

import resource
from pathlib import Path

_UNITS = (("PB", 1e15), ("TB", 1e12), ("GB", 1e9))


def resident(process: int) -> int | None:
    """Bytes of memory that a process has; None if it is gone or the system does not tell."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize()


def total_memory() -> int | None:
    """Bytes that the machine has, what it can swap included; None if the system does not tell."""
    return _told("MemTotal", "SwapTotal")


def free_memory() -> int | None:
    """Bytes that can be had without swapping; None if the system does not tell."""
    return _told("MemAvailable")


def in_words(count: int) -> str:
    """A number of bytes for people: 512 MB, 1.5 GB."""
    for unit, scale in _UNITS:
        if count >= scale:
            return f"{count / scale:,.1f}".removesuffix(".0") + f" {unit}"
    return f"{count / 1e6:.0f} MB"


def _told(*names: str) -> int | None:
    """The sum of these entries of ``/proc/meminfo``."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        return sum(int(lines[name].split()[0]) * 1024 for name in names)
    except (OSError, ValueError, KeyError, IndexError):
        return None


GENEROUS = 1_000_000_000
"""Bytes that any candidate may take: compiling was seen to need a tenth of it."""
_FLOOR = 500_000_000
"""Bytes that a candidate may take on the smallest machine: less, and compilers would fail."""
_COPIES = 4
"""Times as much as the problem has, in inputs and outputs, that a kernel may stage."""
_SHARE = 0.5
"""Of the memory that is free, for all candidates at once."""


def allowance(problem: int, threads: int, processes: int) -> int:
    """Bytes that a candidate may take beyond what its process had before.

    ``problem``: bytes of the inputs and outputs, of which each of ``threads`` may have a copy of
    its own. ``processes``: how many candidates there are at once.
    """
    wanted = GENEROUS + (_COPIES + threads) * problem
    free = available()
    if free is None:
        return wanted
    return max(_FLOOR, min(wanted, int(free * _SHARE) // max(1, processes)))


def available() -> int | None:
    """Bytes that can be had without swapping; None where the system does not tell."""
    free = free_memory()
    return None if free is None else min([free, *_left_in_group()])


def _left_in_group() -> list[int]:
    """What the control groups of this process still allow, as in a container; empty if all."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    left = []
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            root, limit, used = "/sys/fs/cgroup", "memory.max", "memory.current"
        elif controllers == "memory":
            root = "/sys/fs/cgroup/memory"
            limit, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        # In a container the group's own folder is mounted as the root.
        for folder in (Path(root + name), Path(root)):
            try:
                most, taken = (int((folder / file).read_text()) for file in (limit, used))
                left.append(most - taken + _reclaimable(folder / "memory.stat"))
                break
            except (OSError, ValueError):  # "max": no limit
                continue
    return [max(0, each) for each in left]


def _reclaimable(stat: Path) -> int:
    """Bytes that a control group counts as used and gives back when they are wanted: what it has
    read from files."""
    words = (line.split() for line in stat.read_text().splitlines())
    found = {name: int(value) for name, value in words}
    return found.get("total_inactive_file", found.get("inactive_file", 0))
