"""The name that was probably meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from tcl.common.lazy import Lazy

if TYPE_CHECKING:
    import difflib
else:
    difflib = Lazy("difflib")

_LONGEST = 64
"""Characters of a name that are compared with others as short: the time grows with their square."""
_CLOSE, _BEGUN = 0.75, 0.6
"""How much two names have to be alike, as ``difflib`` counts it: any two, and two of which one is
the beginning of the other."""


def closest(name: str, known: Iterable[str]) -> str | None:
    """The one of these names that is most like ``name``, whose case counts least; None if none
    is like it."""
    return next(iter(closest_few(name, known, 1)), None)


def closest_few(name: str, known: Iterable[str], most: int) -> list[str]:
    """Likewise, up to so many, the one most like it first."""
    names = [n for n in known if len(n) <= _LONGEST]
    folded = name[:_LONGEST].casefold()
    same = [n for n in names if n.casefold() == folded]
    if same:
        return same[:most]
    by_letters: dict[str, str] = {n.casefold(): n for n in reversed(names)}
    near = difflib.get_close_matches(folded, by_letters, n=most, cutoff=_CLOSE)
    if not near:
        begun = [n for n in by_letters if n.startswith(folded) or folded.startswith(n)]
        near = difflib.get_close_matches(folded, begun, n=most, cutoff=_BEGUN)
    return [by_letters[n] for n in near]


def did_you_mean(name: object, known: Iterable[str], otherwise: str, quote: str = "") -> str:
    """``did you mean X?``, where one of these names is like ``name``; else what is ``otherwise`` to
    say. ``quote``: what names stand in."""
    near = closest(name, known) if isinstance(name, str) else None
    return f"did you mean {quote}{near}{quote}?" if near else otherwise


def no_def(name: str, defs: Collection[str]) -> str:
    """What is wrong with a name that no def has."""
    hint = did_you_mean(name, defs, f"there are: {', '.join(defs)}", "'")
    return f"there is no def '{name}'; {hint}"
