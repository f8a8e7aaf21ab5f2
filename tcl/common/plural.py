"""Counts in sentences."""

from __future__ import annotations


def plural(number: int, what: str) -> str:
    """1 key, 2 keys; ``what`` is one of them."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
