"""Kernels of several threads against the reference, on random programs, options and numbers of
threads: also more than there are cores, and more than there are chunks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from comparing import check_equal, outputs_of, sized_of
from cpu_kernels import accepted
from strategies import random_program
from team_kernels import keep_together

import tcl
from tcl.codegen.cpu.run.kernel import compile_cpu
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.tuner.space.cpu.mapping import MappingSpace

THREADS = (1, 2, 3, 5)


@pytest.fixture(autouse=True)
def _together() -> Iterator[None]:
    keep_together()
    yield
    keep_together(False)


def random_options(rng: random.Random, space: MappingSpace) -> MappingOptions:
    """Sampled options, or a preset's, with random chunks in most cases."""
    config = space.space.sample(rng)
    chosen = MappingOptions(rng.choice(("naive", "pointwise", "mlp")))
    if config is not None and rng.random() < 0.6:
        chosen = space.to_options(config)
    if rng.random() < 0.8:
        sizes = (rng.choice((0, 1, 2, 3, 5, 16)) for _ in range(rng.randint(1, 3)))
        chosen = chosen.chunk(*sizes).fuse(rng.random() < 0.5)
    return chosen


def compare(seed: int, options: int) -> int:
    """Compare; how many kernels had something to share."""
    program = random_program(seed)
    sized = sized_of(program)
    inputs = tuple(program.inputs(seed).values())
    expected = outputs_of(sized)
    compile_reference(sized)(inputs, expected)
    rng, shared = random.Random(seed), 0
    space = MappingSpace(lower(sized), host_cpu())
    for _ in range(options):
        option, threads = random_options(rng, space), rng.choice(THREADS)
        device = replace(host_cpu(), threads=threads)
        if not accepted(sized, option, device):  # no nest can be divided so, or joined
            option = replace(option, default=NestOptions())
        kernel = compile_cpu(sized, option, device=device)
        shared += kernel.launcher.threads > 1
        for _ in range(2):  # the second call finds what the first one left in its frame
            actual = outputs_of(sized)
            kernel(inputs, actual)
            check_equal(sized, actual, expected, f"{threads} threads, {option}")
    return shared


@pytest.mark.parametrize("first", range(0, 60, 6))
def test_threads_compute_what_the_reference_does(first: int) -> None:
    shared = sum(compare(seed, options=2) for seed in range(first, first + 6))
    assert shared  # else nothing of it was tested


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2000, 3000, 20))
def test_threads_on_many_programs(first: int) -> None:
    assert sum(compare(seed, options=6) for seed in range(first, first + 20))


@pytest.mark.parametrize("threads", THREADS)
def test_a_subscript_out_of_range_in_any_thread(threads: int) -> None:
    text = "def lut(float(R, D) T, int32(N) I) -> (O) { O(n, d) = T(I(n), d) }"
    table, n = np.ones((10, 512), np.float32), 2000
    executor = tcl.compile(text, "lut", "mlp", table, np.zeros(n, np.int32), threads=threads)
    assert executor.threads == threads
    for place in (0, n // 2, n - 1):
        rows = np.full(n, 9, np.int32)
        assert executor(table, rows).sum() == n * 512  # type: ignore[union-attr]
        rows[place] = 10
        with pytest.raises(IndexError, match="index 10 is out of range for dimension 0"):
            executor(table, rows)
