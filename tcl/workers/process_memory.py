"""How much memory a process has, and how much there is."""

from __future__ import annotations

import resource

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
