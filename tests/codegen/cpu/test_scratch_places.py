"""Where a kernel's own memory lies: elsewhere in a page than arrays begin."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from cpu_kernels import sized_of

from tcl.codegen.cpu.abi import LINE, PAGE, spaced
from tcl.codegen.cpu.run.kernel import compile_cpu
from tcl.codegen.options.options import MappingOptions

PIECES = 7


@pytest.mark.parametrize("begin", [0, 1, 16, 2048, 2049, 4095, 123_456_789])
def test_pieces_begin_apart_from_each_other_and_from_arrays(begin: int) -> None:
    places = [spaced(begin, k) for k in range(PIECES)]
    assert all(begin <= place < begin + PAGE and place % LINE == 0 for place in places)
    offsets = [0, *(place % PAGE for place in places)]
    between = [abs(a - b) for a, b in combinations(offsets, 2)]
    assert min(*between, *(PAGE - x for x in between)) == PAGE // 8
    # The first few have more room.
    assert sorted(offsets[:4]) == [0, PAGE // 4, PAGE // 2, 3 * PAGE // 4]
    assert spaced(begin, PIECES) == places[0]


def test_scratch_arrays_of_a_call_begin_there() -> None:
    text = """
    def f(float(N, D) X, float(D, E) W, float(E, D) V) -> (S, H, O) {
        S(n, d) = X(n, d) * 2
        H(n, e) +=! S(n, d) * W(d, e)
        O(n, d) +=! H(n, e) * V(e, d)
    }
    """
    x, w, v = (np.ones((16, 16), np.float32) for _ in range(3))
    options = MappingOptions().vectorize(8).nest(1).stage(-1, 0).nest(2).stage(-1, 0)
    kernel = compile_cpu(sized_of(text, x, w, v), options)
    outputs = [np.empty((16, 16), np.float32) for _ in range(3)]
    kernel([x, w, v], outputs)
    launcher = kernel.launcher
    (frame,) = launcher.frames
    first = launcher.arguments
    found = [frame.pointers[first + k] % PAGE for k in range(len(launcher.scratch))]
    assert len(found) > 1
    assert found == [spaced(0, k) for k in range(len(found))]
    np.testing.assert_array_equal(outputs[2], 16 * 16 * np.full((16, 16), 2.0))
