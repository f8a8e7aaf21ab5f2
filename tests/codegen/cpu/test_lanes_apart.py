"""Lanes that lie apart are as many uses of one address, which LLVM need not compare in pairs."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_kernels import run, sized_of

from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule

WRITTEN = "def f(float(N) A) -> (O) { O(n, m) = A(n) + m where m in 0:5 }"
READ = "def f(float(N, 7) A) -> (O) { O(n) = A(n, 2) + 1 }"


def along_n(lanes: int) -> MappingOptions:
    """Lanes along the dimension whose points lie apart."""
    return MappingOptions("naive").with_nest(0, NestOptions(vectorize=(0, lanes)))


@pytest.mark.parametrize(("text", "shape"), [(WRITTEN, (64,)), (READ, (64, 7))])
@pytest.mark.parametrize(("lanes", "left"), [(2, True), (8, False)])
def test_addresses_of_few_lanes_are_left_to_llvm(
    text: str, shape: tuple[int, ...], lanes: int, left: bool
) -> None:
    a = np.random.default_rng(lanes).random(shape, np.float32)
    options, sized = along_n(lanes), sized_of(text, a)
    made = emit_program(schedule(sized, options, host_cpu()), host_cpu()).text
    assert ("= call ptr @llvm.strip.invariant.group" in made) is not left
    expected = a[:, 2] + 1 if text == READ else a[:, None] + np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(run(text, a, options=options)[0], expected)
