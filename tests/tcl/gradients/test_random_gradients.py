"""Random defs: what is derived beside the adjoints of the def, for any sizes and for these."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from adjoint_interpreter import OutsideError
from comparing_gradients import InfiniteError, check_direction, check_gradients
from gradient_programs import Case, case
from sampling import swept

from tcl.common.errors import ArgumentError, TclError
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.errors import RangeInferenceError

HELD = 64
"""Defs of every run; the full sweep has more."""


def _legal(seed: int) -> tuple[Case, SizedDef] | None:
    """The first def of a few that is legal: every fourth or fifth is."""
    for one in map(case, range(10 * seed, 10 * seed + 10)):
        with contextlib.suppress(TclError):
            return one, infer(check(one.text)["f"], one.shapes)
    return None


def _check(seeds: range) -> int:
    """How many of the defs were compared."""
    compared = 0
    for seed in seeds:
        found = _legal(seed)
        if found is None:
            continue
        one, sized = found
        rng = np.random.default_rng(seed)
        arrays = {}
        for name, shape in one.shapes.items():
            type_ = one.types[name]
            whole = one.whole or type_ == "int32"
            values = rng.integers(-2, 3, shape) if whole else rng.uniform(-1, 1, shape)
            values = np.abs(values) if type_ == "int32" else values
            arrays[name] = np.asarray(values, dtype={"float": "f", "double": "d"}.get(type_, type_))
        tolerance = 1e-4 if "float" in one.types.values() else 1e-8
        empty = any(0 in shape for shape in sized.shapes.values())
        for options in ({}, {"sizes": dict(sized.sizes)}, {"save": ()}):
            try:
                with np.errstate(all="ignore"):
                    derived = check_gradients(
                        one.text, "f", arrays, tolerance, finite=True, **options
                    )
                    if not one.whole and not options and "float" not in one.types.values():
                        check_direction(one.text, "f", arrays, derived)
                compared += 1
            except (OutsideError, InfiniteError):  # the def itself leaves a tensor, or the numbers
                break
            except RangeInferenceError as error:
                # A def for all sizes may refuse arrays without elements; and one for these sizes a
                # read that leaves its tensor, which the data hide forward.
                if not empty and "guard the read" not in str(error):
                    raise
            except ArgumentError as error:
                refusals = ["has no formula", "no gradient", "cannot be derived"]
                refusals += ["array that the caller passes"]
                refusals += ["pass an array that has"] * empty
                if not any(words in str(error) for words in refusals):
                    raise
    return compared


@pytest.mark.parametrize("first", swept(range(0, HELD, HELD // 4), range(1000, 5000, HELD // 4)))
def test_random_defs(first: int) -> None:
    assert _check(range(first, first + HELD // 4)) >= HELD // 8
