"""One def of a text whose other defs may have errors."""

from __future__ import annotations

import re
from bisect import bisect_right

from tcl.grammar.check.definitions import check
from tcl.grammar.syntax.errors import SourceError, TclSyntaxError
from tcl.grammar.tree.checked import CheckedDef

_DEF = re.compile(r"#[^\n]*|\bdef\b")
_NAME = re.compile(r"def\s+(\w+)")
_CODE = re.compile(r"(#[^\n]*)|[^#\n]")


def check_for(
    text: str, name: str, entry: str | None
) -> tuple[str, dict[str, CheckedDef], dict[str, int]]:
    """As ``check``, but without the defs that have errors, or that call such defs, unless these
    errors concern the def ``entry``; with None, all do.

    Gives also the text with spaces in place of what is left out, and the names of that, each with
    its line.
    """
    first: SourceError | None = None
    left_out: dict[str, int] = {}
    while True:
        try:
            return text, check(text, name), left_out
        except SourceError as error:
            first = first or error
            faulty = _faulty(text, error) if entry is not None else {}
            if not faulty or entry in faulty:
                raise first from None
        for wrong, (start, stop) in faulty.items():
            left_out[wrong] = text.count("\n", 0, start) + 1
            blank = _CODE.sub(lambda m: m[1] or " ", text[start:stop])
            text = text[:start] + blank + text[stop:]


def _faulty(text: str, error: SourceError) -> dict[str, tuple[int, int]]:
    """The defs that have errors, and where their texts begin and end; none if an error is in no
    def."""
    starts = [m.start() for m in _DEF.finditer(text) if m[0] == "def"]
    found: dict[str, tuple[int, int]] = {}
    for diagnostic in error.diagnostics:
        at = diagnostic.span.start
        before = bisect_right(starts, at)
        if isinstance(error, TclSyntaxError) and at in starts:
            before -= 1  # the def before has no end
        name = _NAME.match(text, starts[before - 1]) if before else None
        if name is None:
            return {}
        found[name[1]] = starts[before - 1], (*starts, len(text))[before]
    return found
