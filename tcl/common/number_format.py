"""Numbers for people: every display writes times, ratios and counts with these, and what people
write as a whole number is looked at here."""

from __future__ import annotations

import math
import sys


def is_whole_number(text: str) -> bool:
    """Whether a text has digits alone, of which there is at least one. ``int`` takes further ones,
    of other scripts, and signs, spaces and ``_``."""
    return text.isascii() and text.isdigit()


def plural(number: int, what: str) -> str:
    """1 key, 2 keys; ``what`` is one of them."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def duration(seconds: float) -> str:
    """A time with three digits, in the unit that suits it: 12.3 µs, 4.56 ms, 1.20 s."""
    fitting = (u for u in _UNITS if float(f"{seconds / u[1]:.3g}") >= 1)
    unit, scale = next(fitting, _UNITS[-1])
    # Three digits, none of them left out, however large the number: 1.20, 12.0, 1,200.
    value = float(f"{seconds / scale:.3g}")
    before = math.floor(math.log10(value)) if value > 0 else 0
    return printable(f"{value:,.{min(max(0, 2 - before), 4)}f} {unit}")


def ratio_text(ratio: float) -> str:
    """How many times as fast, or as long: 1.50 ×."""
    return printable(f"{ratio:.2f} ×" if ratio < 100 else f"{ratio:,.0f} ×")


def printable(text: str) -> str:
    """The text, with letters in place of signs that standard output cannot take."""
    # A live display puts a stream without an encoding in its place meanwhile.
    streams = (sys.stdout, sys.__stdout__)
    encodings = (getattr(stream, "encoding", None) for stream in streams)
    try:
        text.encode(next((e for e in encodings if e), "ascii"))
    except UnicodeEncodeError:
        return text.replace("µ", "u").replace("×", "x").replace("±", "+-")
    return text
