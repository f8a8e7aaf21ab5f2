"""How much memory a process has."""

from __future__ import annotations


def resident(process: int) -> int | None:
    """Bytes of memory that a process has; None if it is gone or the system does not tell."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            return int(file.read().split()[1]) * _page_size()
    except (OSError, ValueError, IndexError):
        return None


def in_words(count: int) -> str:
    """A number of bytes for people: 512 MB, 1.5 GB."""
    if count < 1e9:
        return f"{count / 1e6:.0f} MB"
    return f"{count / 1e9:.1f}".removesuffix(".0") + " GB"


def _page_size() -> int:
    import resource  # there is none on Windows, nor a /proc

    return resource.getpagesize()
