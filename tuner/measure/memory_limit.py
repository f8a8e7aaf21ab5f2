"""How much memory there is, and how much of it a candidate may take."""

from __future__ import annotations

from pathlib import Path

from tcl.workers.process_memory import free_memory

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
