"""Rows that data chooses: subscripts are checked once for all lanes, and nothing is gathered."""

from __future__ import annotations

import numpy as np
import pytest
from nests import WIDE, sized

import tcl
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule

ROWS = "def rows(float(V, D) E, int32(B) I) -> (O) { O(b, d) = E(I(b), d) }"
GUARDED = """def rows(float(V, D) E, int32(B) I) -> (O) {
    O(b, d) = d < 2 ? E(I(b), d) : 0.5 where d in 0:D }"""
NOBODY = """def rows(float(V, D) E, int32(B) I) -> (O) {
    O(b, d) = d < b - 100 ? E(I(b), d) : 0.5 where d in 0:D }"""


@pytest.mark.parametrize("length", [3, 16, 17, 100])
@pytest.mark.parametrize("lanes", [4, 16])
def test_rows_of_any_length(length: int, lanes: int) -> None:
    rng = np.random.default_rng(length)
    e = rng.standard_normal((9, length), dtype=np.float32)
    places = rng.integers(0, 9, 20).astype(np.int32)
    options = MappingOptions().vectorize(lanes)
    guarded = np.where(np.arange(length) < 2, e[places], np.float32(0.5))
    for text, expected in ((ROWS, e[places]), (GUARDED, guarded)):
        run = tcl.compile(text, "rows", options, e, places)
        np.testing.assert_array_equal(run(e, places), expected)
        for wrong in (-1, 9):
            with pytest.raises(IndexError, match=str(wrong)):
                run(e, np.where(np.arange(20) == 13, wrong, places).astype(np.int32))


def test_subscripts_that_no_lane_uses_are_not_checked() -> None:
    e, places = np.ones((9, 17), np.float32), np.full(20, 99, np.int32)
    run = tcl.compile(NOBODY, "rows", MappingOptions().vectorize(8), e, places)
    np.testing.assert_array_equal(run(e, places), np.float32(0.5))


def test_short_rows_are_not_gathered() -> None:
    options = MappingOptions("naive").vectorize(4)
    given = sized(ROWS.removeprefix("def rows("), (9, 3), (20,))
    text = emit_program(schedule(given, options, WIDE), WIDE).text
    assert "masked.load" in text and "gather" not in text
