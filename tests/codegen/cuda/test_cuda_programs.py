"""Random programs as CUDA kernels: emulated, with random options, against the reference."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from cuda_checks import (
    Case,
    case_of,
    check_cases,
    layout_of,
    strided,
    why_not,
    work_of_program,
    work_of_text,
)
from cuda_options import random_gpu_options
from sampling import swept
from strategies import random_program

from tcl.codegen.devices.gpu import H200, T4
from tcl.codegen.loopir.layouts import gpu_layouts
from tcl.codegen.options.options import PRESETS, MappingOptions

if why_not():
    pytest.skip(str(why_not()), allow_module_level=True)

TOGETHER = 10
"""Programs of a test."""


def cases(seeds: Iterable[int], options: int) -> Iterator[Case]:
    for seed in seeds:
        work = work_of_program(random_program(seed), seed)
        rng = random.Random(seed)
        for name in PRESETS:
            yield case_of(work, MappingOptions(name), rng.choice((H200, T4)))
        for _ in range(options):
            device = rng.choice((H200, T4))
            drawn = random_gpu_options(rng, work.sized, device)
            yield case_of(work, drawn, device, title=f"{device.name} ")


def elsewhere(seeds: Iterable[int]) -> Iterator[Case]:
    """Inputs that are not row-major, and lie where their elements' size allows."""
    for seed in seeds:
        rng = random.Random(seed)
        program = random_program(seed)
        plain = work_of_program(program, seed)
        inputs = [strided(a, rng) for a in plain.inputs]
        work = replace(plain, inputs=inputs)
        base = rng.choice((1, 16))
        found = gpu_layouts(work.sized, wide=())
        for tensor, array in zip(work.sized.checked.inputs, inputs, strict=True):
            own = max(base, array.dtype.itemsize)
            found[tensor.name] = layout_of(array, found[tensor.name], own)
        chosen = random_gpu_options(rng, work.sized, H200, layouts=found)
        for options in (MappingOptions("naive"), MappingOptions("mlp"), chosen):
            yield case_of(work, options, layouts=found)


@pytest.mark.parametrize("start", swept(range(0, 30, TOGETHER), range(1000, 3000, TOGETHER)))
def test_kernels_of_random_programs_agree_with_the_reference(start: int) -> None:
    check_cases(cases(range(start, start + TOGETHER), 1 if start < 1000 else 3)).none()


@pytest.mark.parametrize("start", swept(range(0, 20, TOGETHER), range(1000, 2000, TOGETHER)))
def test_kernels_for_arrays_that_lie_otherwise(start: int) -> None:
    check_cases(elsewhere(range(start, start + TOGETHER))).none()


def test_a_reduction_whose_operands_do_not_move_with_it() -> None:
    """Such operands are read before all loops, and say nothing of how threads share results."""
    text = "def f(float(M) A, float(N) B) -> (O) { O(m, n) +=! A(m) * B(n) where k in 0:8 }"
    given = [np.arange(count, dtype=np.float32) for count in (61, 5)]
    options = MappingOptions("naive").nest(0).chunk(32, 2).threads(8, 1).register(4, 2)
    check_cases([case_of(work_of_text(text, *given), options)]).none()
