"""The defs of ``examples/`` as operators: torch's checks of them, and their values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from places import ROOT

import tcl
from tcl.arrays.annotations import read_annotations
from tcl.arrays.random_inputs import random_inputs
from tcl.grammar.check.definitions import check
from tcl.grammar.tree.checked import CheckedDef

FILES = sorted((ROOT / "examples").glob("*.tc"))
DEFS = [
    (file, checked)
    for file in FILES
    for checked in check(file.read_text("utf-8"), file.name).values()
]


def dense(array: Any) -> Any:
    return torch.from_numpy(array)


def permuted(array: Any) -> Any:
    return torch.from_numpy(array.T.copy()).permute(tuple(reversed(range(array.ndim))))


def sliced(array: Any) -> Any:
    wide = np.zeros([2 * n for n in array.shape], array.dtype)
    part = torch.from_numpy(wide)[tuple(slice(None, None, 2) for _ in array.shape)]
    return part.copy_(torch.from_numpy(array))


@pytest.mark.parametrize("make", [dense, permuted, sliced])
@pytest.mark.parametrize(
    ("file", "checked"),
    [
        pytest.param(*each, id=each[1].name, marks=() if k % 16 == 0 else pytest.mark.slow)
        for k, each in enumerate(DEFS)
    ],
)
def test_an_example_as_an_operator(
    file: Path, checked: CheckedDef, make: Callable[[Any], Any]
) -> None:
    arrays = random_inputs(checked, read_annotations(checked).sizes["test"])
    operator = tcl.torch.op(file, checked.name)
    inputs = tuple(make(array) for array in arrays)
    expected = tcl.define(file)[checked.name](*arrays)
    for _ in range(2):
        found = operator(*inputs)
        for one, other in zip(
            found if isinstance(found, tuple) else (found,),
            expected if isinstance(expected, tuple) else (expected,),
            strict=True,
        ):
            torch.testing.assert_close(one, torch.from_numpy(np.asarray(other)))
    torch.library.opcheck(operator.overload, inputs)
