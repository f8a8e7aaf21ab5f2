"""Arrays that begin where they are asked to."""

from __future__ import annotations

import numpy as np
import pytest

from tcl.codegen.devices.cpu import LINE
from tcl.tuner.measure.placement import PLACEMENTS, aligned


@pytest.mark.parametrize("past", [*(p.past for p in PLACEMENTS.values()), 48, LINE + 8])
@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (0, 4), (300_000,)])
def test_arrays_begin_where_they_are_asked_to(shape: tuple[int, ...], past: int) -> None:
    array = aligned(shape, np.float64, past)
    assert array.shape == shape
    assert array.dtype == np.float64
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert not array.size or array.ctypes.data % LINE == past % LINE
    array.fill(3)
    assert (array == 3).all()
