"""The backends against each other, on random programs.

The reference defines meaning. CPU kernels with presets and random options, on any number of threads
(more than there are cores, and than there are chunks), and the whole-array NumPy formulation share
no code with it, and have to agree with it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import cpu_kernels
import pytest
from comparing import check_cpu, check_equal, outputs_of, sized_of
from cpu_kernels import accepted
from hypothesis import HealthCheck, given, settings
from program_builder import Program
from sampling import swept
from strategies import programs, random_program
from team_kernels import keep_together

from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.codegen.reference.whole_array import NoFormulationError, whole_array
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.space.cpu.mapping import MappingSpace


@pytest.fixture(autouse=True, scope="module")
def _together() -> Iterator[None]:
    keep_together()
    yield
    keep_together(False)


def random_options(rng: random.Random, sized: SizedDef, space: MappingSpace) -> MappingOptions:
    """Any, sampled, or a preset's, the latter two with random chunks in most cases."""
    if rng.random() < 0.3:
        return cpu_kernels.random_options(rng, sized)
    config = space.space.sample(rng)
    chosen = MappingOptions(rng.choice(("naive", "pointwise", "mlp")))
    if config is not None and rng.random() < 0.6:
        chosen = space.to_options(config)
    if rng.random() < 0.6:
        sizes = (rng.choice((0, 1, 2, 3, 5, 16)) for _ in range(rng.randint(1, 3)))
        chosen = chosen.chunk(*sizes).fuse(rng.random() < 0.5)
    return chosen


def compare(program: Program, seed: int, options: int = 3, jit: bool | None = None) -> int:
    """Compare; how many kernels had something to share."""
    sized = sized_of(program)
    inputs = tuple(program.inputs(seed).values())
    expected = outputs_of(sized)
    compile_reference(sized, jit=jit)(inputs, expected)

    rng, shared = random.Random(seed), 0
    device = replace(host_cpu(), threads=rng.choice((1, 2, 3, 5)))
    if rng.random() < 0.5:  # caches so small that even these nests had better be joined
        device = replace(device, l1_bytes=64, l2_bytes=4096)
    space = MappingSpace(lower(sized), device)
    chosen = [MappingOptions(name) for name in ("naive", "pointwise", "mlp", "conv")]
    chosen += [random_options(rng, sized, space) for _ in range(options)]
    for option in chosen:
        if not accepted(sized, option, device):  # no nest can be divided so, or joined
            option = replace(option, default=NestOptions())
        kernel = check_cpu(sized, inputs, option, device, expected)
        shared += kernel.launcher.threads > 1
        again = outputs_of(sized)
        kernel(inputs, again)  # which finds what the first call left in its frame
        check_equal(sized, again, expected, f"once more: cpu {option} on {device.threads} threads")

    actual = outputs_of(sized)
    try:
        whole_array(sized)(inputs, actual)
    except NoFormulationError:
        return shared
    check_equal(sized, actual, expected, "NumPy")
    return shared


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(programs())
def test_backends_agree(program: Program) -> None:
    compare(program, seed=1)


@pytest.mark.parametrize("first", swept(range(0, 24, 12), [24, 36, 48, *range(1000, 2000, 6)]))
def test_backends_agree_on_seeded_programs(first: int) -> None:
    # Numba takes longer than all the rest, so that a part of them is compiled by it.
    shared = 0
    for seed in range(first, first + 6):
        shared += compare(random_program(seed), seed, jit=seed % 12 == 0 or first > 999)
    assert shared
