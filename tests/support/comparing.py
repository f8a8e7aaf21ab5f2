"""Outputs to compare, and their comparison, for tests of backends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from program_builder import Program

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.measure.correctness import accumulation_depths, mismatch

Array = npt.NDArray[Any]


def sized_of(program: Program) -> SizedDef:
    return infer(check(program.source)[program.entry], program.shapes)


def outputs_of(sized: SizedDef) -> list[Array]:
    """Poisoned outputs; those that the def adds to hold ones."""
    arrays = []
    for tensor in sized.checked.outputs:
        array = np.empty(sized.shapes[tensor.name], numpy_dtype(tensor.type))
        array.reshape(-1).view(np.uint8)[...] = 0xAB
        if tensor.name in sized.checked.uninitialised:
            array[...] = 1
        arrays.append(array)
    return arrays


def check_equal(
    sized: SizedDef, actual: Sequence[Array], expected: Sequence[Array], what: str
) -> None:
    depths = accumulation_depths(sized)
    for tensor, a, e in zip(sized.checked.outputs, actual, expected, strict=True):
        wrong = mismatch(tensor.name, a, e, depths[tensor.name])
        assert wrong is None, f"{what}: {wrong}\n{sized.checked.source.text}"
