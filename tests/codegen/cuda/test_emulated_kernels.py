"""Generated CUDA kernels on the CPU: random programs agree with the reference in every order and
do nothing wrong; what is broken in generated source is found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cpu_kernels
import numpy as np
import numpy.typing as npt
import pytest
from comparing import check_equal, outputs_of, sized_of
from program_builder import Program
from strategies import random_program

from tcl.codegen.cuda.emit.emit import emit_module
from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.emulator import ORDERS, EmulationError, compile_modules, why_not
from tcl.codegen.devices.gpu import H200, T4
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import PRESETS, MappingOptions
from tcl.codegen.reference import compile_reference

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "")

Array = npt.NDArray[Any]


def named(module: CudaModule, arrays: Sequence[Array]) -> dict[str, Array]:
    outer = [t.name for t in module.tensors if t.role is not ir.Role.SCRATCH]
    return dict(zip(outer, arrays, strict=True))


def compare(programs: dict[int, Program]) -> None:
    """Every preset, on a GPU with asynchronous copies and on one without."""
    cases = [
        (seed, sized_of(program), MappingOptions(preset), profile)
        for seed, program in programs.items()
        for preset, profile in zip(PRESETS, (H200, T4, H200, H200), strict=False)
    ]
    modules = [emit_module(sized, options, profile) for _, sized, options, profile in cases]
    for (seed, sized, options, _), emulated in zip(cases, compile_modules(modules), strict=True):
        inputs = tuple(programs[seed].inputs(seed).values())
        expected = outputs_of(sized)
        compile_reference(sized)(inputs, expected)
        for order in ORDERS:
            actual = outputs_of(sized)
            emulated.run(named(emulated.module, [*inputs, *actual]), order, seed=seed + 1)
            check_equal(sized, actual, expected, f"seed {seed}, {options}, {order}")


@pytest.mark.parametrize("first", range(0, 16, 8))
def test_random_programs_agree_with_the_reference(first: int) -> None:
    compare({seed: random_program(seed) for seed in range(first, first + 8)})


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1400, 8))
def test_many_random_programs_agree_with_the_reference(first: int) -> None:
    compare({seed: random_program(seed) for seed in range(first, first + 8)})


RNG = np.random.default_rng(2)
A = RNG.standard_normal((100, 77), dtype=np.float32)
B = RNG.standard_normal((77, 51), dtype=np.float32)
SUMS = "def f(float(M, K) A) -> (C) { C(m) +=! A(m, k) }"

FAULTS = {
    "no barrier between filling and reading": (
        r"(wait_copies<\d>\(\);\s*)__syncthreads\(\);",
        r"\1",
        "race: ",
    ),
    "no wait": (r"wait_copies<\d>\(\);", "", "has not waited"),
    "a wait for too little": (r"wait_copies<1>", "wait_copies<2>", "has not waited"),
    "a buffer too few": (r"% 3\) \* ", "% 2) * ", "race: "),
    "no guard of the result": (r"if \(m < 100 && n < 51\)", "", "out of bounds: .* of C"),
    "a guard off by one": ("m < 100 &&", "m <= 100 &&", "out of bounds: .* of C"),
    "no guard of a copy": (
        r"(copy_async<\d+>\(&B_tile\[[^;]*), [^,;]*< 51\);",
        r"\1, true);",
        "out of bounds.* of B",
    ),
    "an index off by one": (r"C\[m \* 51", "C[1 + m * 51", "out of bounds: .* of C"),
    "panels that overlap": (r"shared \+ 3072", "shared + 2048", "race: "),
    "results of two threads in one place": (r"C\[m \* 51 \+ n\]", "C[m * 51]", "race: "),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_in_a_generated_product_are_found(fault: str) -> None:
    pattern, replacement, message = FAULTS[fault]
    module = emit_module(
        cpu_kernels.sized_of(cpu_kernels.MATMUL, A, B), MappingOptions("mlp"), H200
    )
    found(module, pattern, replacement, message, [A, B, np.zeros((100, 51), np.float32)])


SUM_FAULTS = {
    "no barrier before reading what others left": (
        r"(exchange\[threadIdx\.x\] = value;\s*)__syncthreads\(\);",
        r"\1",
        "race: ",
    ),
    "a barrier that some skip": (
        r"(exchange\[threadIdx\.x\] = value;\s*)__syncthreads\(\);",
        r"\1if (threadIdx.x < 64) __syncthreads();",
        "divergent|race",
    ),
    "every thread stores": (r"if \(threadIdx\.x == 0\) ", "", "race: "),
    "vectors that are not aligned": (r"&A\[", "&A[1 + ", "misaligned: .* of A"),
}


@pytest.mark.parametrize("fault", SUM_FAULTS)
def test_faults_in_a_generated_sum_are_found(fault: str) -> None:
    pattern, replacement, message = SUM_FAULTS[fault]
    x = RNG.standard_normal((37, 300), dtype=np.float32)
    module = emit_module(cpu_kernels.sized_of(SUMS, x), MappingOptions("mlp"), H200)
    found(module, pattern, replacement, message, [x, np.zeros(37, np.float32)])


def found(
    module: CudaModule, pattern: str, replacement: str, message: str, arrays: Sequence[Array]
) -> None:
    """The module runs clean, and is refused with the message once it is changed."""
    source = re.sub(pattern, replacement, module.source)
    assert source != module.source, module.source
    good, broken = compile_modules([module, replace(module, source=source)])
    for order in ORDERS:
        good.run(named(module, arrays), order)
        with pytest.raises(EmulationError, match=message):
            broken.run(named(module, arrays), order)
