"""Where a kernel's own memory lies: elsewhere in a page than arrays begin."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from compiled_kernels import compile_cpu
from cpu_kernels import sized_of
from team_kernels import kernel

from tcl.codegen.cpu.abi import LINE, PAGE, spaced
from tcl.codegen.cpu.emit.emit import moved_apart
from tcl.codegen.cpu.llvm.builder import Builder
from tcl.codegen.cpu.run.launch import address_of, lengths
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.syntax.types import SCALAR_TYPES

PIECES = 7
FLOAT32 = SCALAR_TYPES["float32"]


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


TENSORS = ("in", "out", "small", "own", "other")


def moved(*addresses: int) -> list[int]:
    """Where a kernel has its two pieces of 300 bytes, if its tensors are said to lie there."""
    sizes = (PAGE, 10 * PAGE, PAGE - 4, 300, 300)
    roles = (ir.Role.INPUT, ir.Role.OUTPUT, ir.Role.OUTPUT, ir.Role.SCRATCH, ir.Role.SCRATCH)
    tensors = [
        ir.Tensor(name, role, ir.contiguous(FLOAT32, (size // 4,), (0,)))
        for name, role, size in zip(TENSORS, roles, sizes, strict=True)
    ]
    b = Builder()
    slots = {
        name: b.op(f"getelementptr ptr, ptr %tensors, i64 {k}", "ptr")
        for k, name in enumerate(TENSORS)
    }
    pointers = {name: b.op(f"load ptr, {at}, align 8", "ptr") for name, at in slots.items()}
    for name, there in moved_apart(b, tensors, pointers).items():
        b.do(f"store {there}, {slots[name]}, align 8")
    launcher = kernel("\n".join([*b.lines, "ret i32 0"]), len(TENSORS), threads=1)
    assert launcher.run(addresses, (), ()) is None
    return list(launcher.frames[0].pointers)[3:]


FAR = 1 << 32


@pytest.mark.parametrize("into", [0, 16, 512, 1040, 2000, 2064, 2128, 4090])
@pytest.mark.parametrize("out", [0, 64, 2064, 2128, 2304, 3088])
def test_pieces_begin_where_no_array_of_the_call_does(into: int, out: int) -> None:
    begin = FAR, 2 * FAR
    pieces = moved(7 * FAR + into, 9 * FAR + out, 11 * FAR + 2048, *begin)
    for there, before in zip(pieces, begin, strict=True):
        assert before <= there < before + PAGE and there % LINE == 0
    own, other = (there % PAGE for there in pieces)
    assert own != other
    for piece in (own, other):
        for array in (into, out):
            behind = (array - piece) % PAGE
            assert 320 <= behind < PAGE - 192
    if into == out == 0:  # a small array is no reason
        assert own == PAGE // 2


def test_there_is_room_to_move_in() -> None:
    text = """
    def f(float(N, D) X, float(D, E) W, float(E, D) V) -> (S, H, O) {
        S(n, d) = X(n, d) * 2
        H(n, e) +=! S(n, d) * W(d, e)
        O(n, d) +=! H(n, e) * V(e, d)
    }
    """
    x, w, v = (np.ones((16, 16), np.float32) for _ in range(3))
    options = MappingOptions().vectorize(8).nest(1).stage(-1, 0).nest(2).stage(-1, 0)
    compiled = compile_cpu(sized_of(text, x, w, v), options)
    outputs = [np.empty((16, 16), np.float32) for _ in range(3)]
    compiled([x, w, v], outputs)
    launcher = compiled.launcher
    (frame,) = launcher.frames
    first = launcher.arguments
    found = [frame.pointers[first + k] for k in range(len(launcher.scratch))]
    assert len(found) > 1
    for begin, held, size in zip(found, frame._scratch, lengths(launcher.scratch), strict=True):
        assert begin % LINE == 0
        assert address_of(held) <= begin and begin + size + PAGE <= address_of(held) + held.nbytes
    np.testing.assert_array_equal(outputs[2], 16 * 16 * np.full((16, 16), 2.0))
