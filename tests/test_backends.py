"""The backends against each other, on random programs.

The reference defines meaning. The naive CPU kernel, CPU kernels with random options, and the
whole-array NumPy formulation share no code with it, and have to agree with it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from program_builder import Program
from strategies import programs, random_program

from tcl.codegen.cpu.kernel import compile_cpu
from tcl.codegen.device import host_cpu
from tcl.codegen.dtypes import numpy_dtype
from tcl.codegen.lower import lower
from tcl.codegen.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.codegen.whole_array import NoFormulationError, whole_array
from tcl.grammar.check import check
from tcl.grammar.ranges import infer
from tcl.grammar.sized import SizedDef
from tcl.tuner.mapping import MappingSpace
from tcl.tuner.verify import accumulation_depths, mismatch

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


def compare(program: Program, seed: int, options: int = 3) -> None:
    sized = sized_of(program)
    inputs = tuple(program.inputs(seed).values())
    expected = outputs_of(sized)
    compile_reference(sized)(inputs, expected)

    rng = random.Random(seed)
    device = replace(host_cpu(), threads=rng.choice((1, 1, 2, 3)))
    if rng.random() < 0.5:  # caches so small that even these nests had better be joined
        device = replace(device, l1_bytes=64, l2_bytes=4096)
    space = MappingSpace(lower(sized), device)
    chosen = [MappingOptions(name) for name in ("naive", "pointwise", "mlp", "conv")]
    for _ in range(options):
        config = space.space.sample(rng)
        if config is not None:
            chosen.append(space.to_options(config))
    for option in chosen:
        actual = outputs_of(sized)
        compile_cpu(sized, option, device=device)(inputs, actual)
        check_equal(sized, actual, expected, f"cpu {option} on {device.threads} threads")

    actual = outputs_of(sized)
    try:
        whole_array(sized)(inputs, actual)
    except NoFormulationError:
        return
    check_equal(sized, actual, expected, "NumPy")


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(programs())
def test_backends_agree(program: Program) -> None:
    compare(program, seed=1)


@pytest.mark.parametrize("seed", range(40))
def test_backends_agree_on_seeded_programs(seed: int) -> None:
    compare(random_program(seed), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 2000))
def test_backends_agree_on_many_programs(seed: int) -> None:
    compare(random_program(seed), seed, options=6)
