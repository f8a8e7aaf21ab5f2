"""The backends against each other, on random programs.

The reference defines meaning. The naive CPU kernel, CPU kernels with random options, and the
whole-array NumPy formulation share no code with it, and have to agree with it.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy.typing as npt
import pytest
from comparing import check_equal, outputs_of, sized_of
from hypothesis import HealthCheck, given, settings
from program_builder import Program
from sampling import sampled
from strategies import programs, random_program

from tcl.codegen.cpu.run.kernel import compile_cpu
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.codegen.reference.whole_array import NoFormulationError, whole_array
from tcl.tuner.space.cpu.mapping import MappingSpace

Array = npt.NDArray[Any]


def compare(program: Program, seed: int, options: int = 3, jit: bool | None = None) -> None:
    sized = sized_of(program)
    inputs = tuple(program.inputs(seed).values())
    expected = outputs_of(sized)
    compile_reference(sized, jit=jit)(inputs, expected)

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
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(programs())
def test_backends_agree(program: Program) -> None:
    compare(program, seed=1)


@pytest.mark.parametrize("seed", sampled(range(40), 2))
def test_backends_agree_on_seeded_programs(seed: int) -> None:
    # Numba takes longer than all the rest, so that a part of them is compiled by it.
    compare(random_program(seed), seed, jit=seed % 4 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 2000))
def test_backends_agree_on_many_programs(seed: int) -> None:
    compare(random_program(seed), seed, options=6, jit=True)
