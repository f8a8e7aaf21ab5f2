"""Reductions in parts that the threads of a CPU share."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from comparing import check_cpu
from cpu_kernels import Array, sized_of
from sampling import sampled

from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.schedule.cpu import plan, schedule
from tcl.common.errors import OptionsError
from tcl.tuner.space.cpu.mapping import MappingSpace

TOTAL = "def f(float(M, N) A) -> (S) { S +=! A(m, n) }"
MEAN = "def f(float(N) A) -> (S, O) { S +=! A(n) O(n) = A(n) - S / N }"
LARGE = np.ones((1024, 1024), np.float32)


def device(threads: int) -> Any:
    return replace(host_cpu(), threads=threads)


def nests(text: str, *inputs: Array, threads: int, options: MappingOptions = DEFAULT) -> list[str]:
    return list(plan(sized_of(text, *inputs), options, device(threads)).nests)


def compare(text: str, options: MappingOptions, threads: int, *inputs: Array) -> None:
    check_cpu(sized_of(text, *inputs), inputs, options, device(threads))


OPERATORS = ["+=!", "+=", "*=!", "min=!", "max=", "max=!"]
TYPES = ["float", "half", "double", "int8", "int32"]
PARTS = [(2, 2), (3, 1), (5, 3)]


@pytest.mark.parametrize(
    ("type_", "op", "preset", "shared"),
    sampled(product(TYPES, OPERATORS, ["naive", "mlp"], PARTS), 5),
)
def test_parts_give_the_same(op: str, type_: str, preset: str, shared: tuple[int, int]) -> None:
    parts, threads = shared
    # 25 points in 3 parts: the last one is shorter.
    text = f"def f({type_}(25, 7) A, {type_}(25) B) -> (S) {{ S(n) {op} A(k, n) * B(k) }}"
    if not op.endswith("!"):
        text = text.replace("-> (S)", f"-> ({type_}(7) S)")
    rng = np.random.default_rng(0)
    sized_type = {"float": "f4", "half": "f2", "double": "f8"}.get(type_, type_)
    values = [rng.integers(1, 3, shape).astype(sized_type) for shape in ((25, 7), (25,))]
    options = MappingOptions(preset, nests=(NestOptions(split=(0, parts)),))
    compare(text, options, threads, *values)


def test_parts_of_sums_of_16_bits_are_kept_as_they_are_computed() -> None:
    """In float32: each part alone is more than the largest float16."""
    values = np.full(512, 300, np.float16)
    values[256:] = -300
    values[-1] = -298
    text = "def f(half(512) A) -> (S) { S +=! A(k) }"
    compare(text, MappingOptions("naive", nests=(NestOptions(split=(2,)),)), 2, values)


def test_who_reads_the_whole_waits_for_all_parts() -> None:
    values = np.random.default_rng(0).uniform(size=1 << 19).astype(np.float32)
    for threads in (1, 2, 3, 4):
        compare(MEAN, DEFAULT, threads, values)


def test_presets_split_what_has_one_result_and_takes_long() -> None:
    assert nests(TOTAL, LARGE, threads=2) == ["s0", "s0.whole"]
    assert nests(TOTAL, LARGE, threads=1) == ["s0"]
    assert nests(TOTAL, LARGE[:4, :4], threads=2) == ["s0"]
    rows = "def f(float(M, N) A) -> (S) { S(m) +=! A(m, n) }"
    assert nests(rows, LARGE, threads=2) == ["s0"]
    # Nor where something was said of the nest.
    said = MappingOptions("mlp", nests=(NestOptions(split=()),))
    assert nests(TOTAL, LARGE, threads=2, options=said) == ["s0"]


@pytest.mark.parametrize(
    "body",
    [
        "S +=! A(n) S = S / N",
        "S +=! A(n) Q +=! A(n) * A(n) S = S / N",
        "S min=! A(n) Q min=! (A(n) == S) ? n : N",
    ],
)
def test_presets_split_what_runs_in_the_same_loops(body: str) -> None:
    """And what uses the results stays in the loops that reduce the parts."""
    text = f"def f(float(N) A) -> (S{', Q' if 'Q' in body else ''}) {{ {body} }}"
    values = np.random.default_rng(0).integers(1, 9, 1 << 20).astype(np.float32)
    built = schedule(sized_of(text, values), DEFAULT, device(2))
    assert len(built.kernels) == 2  # both sums of the parts, then all that is left
    assert math.prod(fold.count for (fold,) in built.kernels[0].grid) == 2
    values[7], values[-7] = np.nan, -1.0
    for threads in (1, 2):
        compare(text, DEFAULT, threads, values)


def test_a_search_leaves_to_the_preset_what_that_splits() -> None:
    program = lower(sized_of(MEAN, LARGE.reshape(-1)))
    space = MappingSpace(program, device(2))
    assert space.positions == {1}
    default = space.from_options(MappingOptions("mlp"))
    assert default is not None
    assert (
        "s0.whole"
        in plan(sized_of(MEAN, LARGE.reshape(-1)), space.to_options(default), device(2)).nests
    )
    assert space.from_options(MappingOptions("mlp", nests=(NestOptions(split=(4,)),))) is None


@pytest.mark.parametrize(
    ("split", "reason"),
    [
        ((0, 2, 2), "it has 2 dimensions, but 3 numbers were given"),
        ((2,), "s0.m is not a reduction: use chunk to divide its points"),
        ((0, 9), "s0.n has only 4 points for 9 parts"),
    ],
)
def test_refused(split: tuple[int, ...], reason: str) -> None:
    text = "def f(float(M, N) A) -> (S) { S(m) +=! A(m, n) }"
    options = MappingOptions("mlp", nests=(NestOptions(split=split),))
    with pytest.raises(OptionsError, match=f"^split: nest s0: {reason}$"):
        plan(sized_of(text, LARGE[:3, :4]), options, device(2))
