"""Defs for the sizes of a search, which are asked for again and again."""

from __future__ import annotations

import functools

from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef


@functools.lru_cache(maxsize=8)
def sized_once(source: str, entry: str, shapes: tuple[tuple[int, ...], ...]) -> SizedDef:
    """A def of a text for inputs of these shapes, which is kept."""
    checked = check(source)[entry]
    return infer(checked, {t.name: s for t, s in zip(checked.inputs, shapes, strict=True)})
