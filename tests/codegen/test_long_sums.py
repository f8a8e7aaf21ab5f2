"""Sums of many floats keep their digits, whatever loops they have."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any

import numpy as np
import pytest
from comparing import check_cpu, expected_of, outputs_of
from comparing import sized_of as program_sized
from compiled_kernels import compile_cpu
from cpu_kernels import Array, random_options, sized_of
from cuda_checks import (
    case_of,
    check_cases,
    compile_modules,
    points_of,
    run_case,
    why_not,
    work_of_text,
)
from cuda_options import random_gpu_options
from interpreted_stages import check_stages, stages
from matrix_unit import EMULATING, random_array, text_of
from nests import WIDE
from strategies import random_program

from tcl.codegen.common import sums
from tcl.codegen.common.rounding import UNKNOWN
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.devices.gpu import H200
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import roundings
from tcl.grammar.ranges.sized import SizedDef
from tcl.selection.best_options import DEFAULT
from tcl.tuner.measure.correctness import accumulation_depths, mismatch

LONG = """
def f({0}(M, N) A, {0}(N, M) D, {0}(N) B) -> (R, C, T, S, Q, P, V) {{
    R(m) +=! A(m, n)
    C(m) +=! D(n, m)
    T +=! A(m, n)
    S(m) +=! A(m, n)
    Q(m) +=! A(m, n) * A(m, n)
    P(m) +=! A(m, n) * B(n)
    V(m) +=! D(n, m) * D(n, m)
}}
"""
SUMS, PRODUCTS = 2e-6, 5e-6
"""Relative errors in float32 that ``docs/language.md`` states."""


TWO = replace(host_cpu(), threads=2)


def inputs_of(name: str, n: int, *, equal: bool) -> list[Array]:
    rng = np.random.default_rng(n)
    shapes = [(3, n), (n, 3), (n,)]
    return [
        (np.full(s, rng.uniform(0.1, 1)) if equal else rng.random(s)).astype(name) for s in shapes
    ]


def wrong(made: Sequence[Array], inputs: Sequence[Array]) -> list[str]:
    """The outputs that are off by more than is stated."""
    a, d, b = (x.astype(np.float64) for x in inputs)
    rows, squares = [math.fsum(x) for x in a], [math.fsum(x * x) for x in a]
    exact: list[Any] = [rows, [math.fsum(x) for x in d.T], math.fsum(rows), rows, squares]
    exact += [[math.fsum(x * b) for x in a], [math.fsum(x * x) for x in d.T]]
    unit = float(np.finfo(inputs[0].dtype).eps) / 2**-23
    found = []
    for name, ours, right in zip("RCTSQPV", made, exact, strict=True):
        error = float(np.max(np.abs(ours / right - 1)))
        most = (SUMS if name in "RCTS" else PRODUCTS) * unit
        # A product of float64 is rounded in the exact sum as well.
        if error > most + (2**-52 if unit < 1 else 0):
            found.append(f"{name}: {error:.2e}")
    return found


def on_the_cpu(sized: SizedDef, inputs: Sequence[Array], options: MappingOptions) -> list[Array]:
    made = outputs_of(sized)
    compile_cpu(sized, options, device=TWO)(inputs, made)
    return made


@pytest.mark.parametrize("seed", range(10))
def test_the_error_stays_as_stated(seed: int) -> None:
    """Equal terms are the worst: they are rounded in the same direction again and again."""
    rng = random.Random(f"long sums {seed}")
    name = "float64" if seed == 3 else "float32"
    inputs = inputs_of(name, rng.randrange(20_000, 50_000), equal=seed % 4 != 2)
    sized = sized_of(LONG.format("double" if name == "float64" else "float"), *inputs)
    options = MappingOptions() if seed == 0 else random_options(rng, sized)
    assert not wrong(on_the_cpu(sized, inputs, options), inputs), options


def test_defaults_and_the_reference() -> None:
    inputs = inputs_of("float32", 100_000, equal=True)
    sized = sized_of(LONG.format("float"), *inputs)
    assert not wrong(on_the_cpu(sized, inputs, DEFAULT), inputs)
    assert not wrong(expected_of(sized, inputs), inputs)


@pytest.mark.parametrize(
    ("form", "most"),
    [("A(n)", sums.TERMS), ("A(n) * A(n)", sums.PRODUCTS)],
)
def test_what_a_candidate_is_allowed_does_not_grow_with_the_length(form: str, most: int) -> None:
    n = 10**7
    text = f"def f(float(N) A) -> (S) {{ S +=! A(n) S += {form} }}"
    sized = sized_of(text, np.broadcast_to(np.float32(0), n))
    assert accumulation_depths(sized) == {"A": 0, "S": sums.TERMS + most}


def test_sums_in_float64_may_cancel() -> None:
    """A sum of a million terms is 1."""
    n = 1 << 20
    values = np.random.default_rng(5).standard_normal(n // 2)
    values = np.random.default_rng(6).permutation([*values, *-values, 1.0])
    sized = sized_of("def f(double(N) A) -> (S) { S +=! A(n) }", values)
    (expected,) = expected_of(sized, [values])
    off = [expected * (1 + 2e-13), expected * (1 + 1e-10)]
    (rounding,) = roundings(sized, [values], [expected])
    depth = accumulation_depths(sized)["S"]
    for known in (UNKNOWN, rounding):
        found = [mismatch("S", each, expected, depth, known) is None for each in off]
        assert found == [True, False]
    check_cpu(sized, [values], DEFAULT, TWO)


@pytest.mark.skipif(bool(why_not()), reason="no C++ compiler")
def test_on_a_gpu() -> None:
    inputs = inputs_of("float32", 30_000, equal=True)
    work = work_of_text(LONG.format("float"), *inputs)
    drawn = (random.Random(f"long sums {seed}") for seed in range(2))
    options = [MappingOptions(), DEFAULT, *(random_gpu_options(r, work.sized, H200) for r in drawn)]
    cases = [case_of(work, each) for each in options]
    for case, emulated in zip(cases, compile_modules([c.module for c in cases]), strict=True):
        assert not wrong(run_case(case, emulated, "forward"), inputs), case


@pytest.mark.parametrize("many", [False, True])
def test_a_sum_that_overflows_is_infinite(many: bool) -> None:
    """What rounding took from an infinity is no number; nor is one less the other."""
    shapes = (2, 20_000), (20_000, 2), (20_000,)
    a, d, b = (np.full(s, 3e38 if many else 0, np.float32) for s in shapes)
    a[:, [5, 170]] = d[[5, 170]] = 3e38
    b[:] = 1
    sized = sized_of(LONG.format("float"), a, d, b)
    made = [on_the_cpu(sized, [a, d, b], o) for o in (MappingOptions(), DEFAULT)]
    made.append(expected_of(sized, [a, d, b]))
    if not why_not():
        case = case_of(work_of_text(LONG.format("float"), a, d, b), DEFAULT)
        (emulated,) = compile_modules([case.module])
        made.append(run_case(case, emulated, "forward"))
    for k, outputs in enumerate(made):
        assert all(np.all(np.isposinf(o)) for o in outputs), k


@pytest.fixture
def short() -> Iterator[None]:
    """Parts of a few terms, so that small sums have many."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"TERMS": 2, "PRODUCTS": 3, "PARTS": 2}.items():
            patch.setattr(sums, name, value)
        yield


@pytest.mark.usefixtures("short")
def test_every_stage_means_the_same() -> None:
    """Random programs, those whose sums have parts."""
    found = 0
    for seed in count():
        program = random_program(seed, max_statements=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sized = program_sized(program)
        if points_of(sized) > 2000:
            continue
        options = random_options(random.Random(seed), sized, WIDE)
        made = list(stages(sized, options, WIDE))
        if "after every" in show(made[-1][1]) or ".lost" in show(made[-1][1]):
            check_stages(program, sized, seed, made, options)
            found += 1
        if found == 8:
            return


SMALL = """
def f(float(M, K) A, float(K, N) B, {0}(M, N) E) -> (C, H, S, Q, L) {{
    C(m, n) +=! A(m, k) * B(k, n)
    H(m, n) +=! E(m, r) * E(r, n) where r in 0:min(M, N)
    S(m) +=! A(m, k)
    Q(m) +=! A(m, k) * A(m, k)
    L(n) += (A(m, k) < 0.5) ? B(k, n) : 0
}}
"""


def small(name: str) -> tuple[str, list[Array]]:
    rng = np.random.default_rng(3)
    shapes = (13, 37), (37, 19), (13, 19)
    a, b, e = (rng.random(s) for s in shapes)
    return SMALL.format({"float16": "half"}.get(name, "float")), [
        a.astype("f"),
        b.astype("f"),
        e.astype(name),
    ]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("seed", range(12))
def test_small_parts(seed: int) -> None:
    rng = random.Random(f"small parts {seed}")
    text, inputs = small("float16" if seed % 2 else "float32")
    sized = sized_of(text, *inputs)
    check_cpu(sized, inputs, random_options(rng, sized), TWO)


@pytest.mark.usefixtures("short")
@pytest.mark.skipif(bool(why_not()), reason="no C++ compiler")
def test_small_parts_on_a_gpu() -> None:
    text, inputs = small("float16")
    work = work_of_text(text, *inputs)
    drawn = (random.Random(f"small parts {seed}") for seed in range(2))
    options = [DEFAULT, *(random_gpu_options(r, work.sized, H200) for r in drawn)]
    check_cases([case_of(work, each) for each in options]).none()


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("tile", [0, 64])
def test_a_matrix_unit_hands_its_sums_on(tile: int) -> None:
    """With the reduction in one piece, and in tiles between which the target holds the sums."""
    own = NestOptions(
        tile=(32, 0, tile),
        order=(2, 0, 1),
        inner_order=(1, 0, 2),
        vectorize=(1, 16),
        register=(2, 2),
        dot=(0, 0, 2),
        mma=(0, 1, 2),
        stage=(2, 1) if tile else (1, 1),
    )
    rng = random.Random(4)
    a, b = random_array(rng, (40, 500), "bfloat16"), random_array(rng, (500, 70), "bfloat16")
    sized = sized_of(text_of("plain", ("bfloat16", "bfloat16")), a, b)
    kernel = check_cpu(sized, [a, b], MappingOptions().with_nest(0, own), EMULATING)
    assert "llvm.x86.tdp" in kernel.llvm


@pytest.mark.parametrize(
    ("rows", "tile", "lost"),
    # parts of ``tile`` rows, as many together as an accumulator may take; the last ones are fewer
    [(320, 8, False), (8 * 37, 8, False), (4 * 603, 4, True), (2 * 70, 2, False)],
)
@pytest.mark.parametrize("form", ["+=!", "+="])
def test_columns_take_several_parts_before_they_are_added_up(
    rows: int, tile: int, lost: bool, form: str
) -> None:
    values = np.random.default_rng(rows).random((rows, 100)).astype("f")
    values[3, 7], values[5, 9] = np.inf, np.nan
    start = "C(n) = A(2, n)" if form == "+=" else ""
    sized = sized_of(f"def f(float(M, N) A) -> (C) {{ {start} C(n) {form} A(m, n) }}", values)
    own = NestOptions(tile=(0, tile), order=(1, 0), vectorize=(0, 16), register=(2, 0))
    options = MappingOptions().with_nest(len(sized.checked.statements) - 1, own)
    text = show(list(stages(sized, options, TWO))[-1][1])
    assert ".held" in text
    assert (".lost" in text) == lost
    check_cpu(sized, [values], options, TWO)


def test_columns_whose_last_part_is_shorter_are_added_up_one_by_one() -> None:
    values = np.random.default_rng(0).random((8 * 40 + 3, 100)).astype("f")
    sized = sized_of("def f(float(M, N) A) -> (C) { C(n) +=! A(m, n) }", values)
    own = NestOptions(tile=(0, 8), order=(1, 0), vectorize=(0, 16), register=(2, 0))
    options = MappingOptions().with_nest(0, own)
    assert ".held" not in show(list(stages(sized, options, TWO))[-1][1])
    check_cpu(sized, [values], options, TWO)


@pytest.mark.usefixtures("short")
def test_every_stage_of_columns_means_the_same() -> None:
    found = 0
    # Those of which it is known come first: one program in a hundred has such a sum.
    for seed in chain((52, 106, 120, 454), count()):
        program = random_program(seed, max_statements=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sized = program_sized(program)
        if points_of(sized) > 500:
            continue
        options = random_options(random.Random(seed), sized, WIDE)
        made = list(stages(sized, options, WIDE))
        if ".held" in show(made[-1][1]):
            check_stages(program, sized, seed, made, options)
            found += 1
        if found == 2 or seed > 3000:
            break
    assert found


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("type_", ["float", "double"])
@pytest.mark.skipif(bool(why_not()), reason="no C++ compiler")
def test_totals_of_many_sums_lie_in_the_memory_of_their_block(type_: str) -> None:
    """Where it has room for them; and each thread has its own, whatever the number of its sums."""
    rng, dtype = np.random.default_rng(0), {"float": np.float32, "double": np.float64}[type_]
    a, b = (rng.random(shape).astype(dtype) for shape in ((21, 23), (23, 21)))
    text = f"def f({type_}(M, K) A, {type_}(K, N) B) -> (C) {{ C(m, n) +=! A(m, k) * B(k, n) }}"
    work = work_of_text(text, a, b)
    for many, register in (True, (3, 6)), (False, (2, 2)):
        chunk = 4 * register[0], 4 * register[1]
        nest = NestOptions(chunk=chunk, threads=(4, 4, 2), register=register, tile=(0, 0, 4))
        options = MappingOptions(nests=(nest,))
        little = replace(H200, shared_per_block=1024, shared_per_multiprocessor=2048)
        cases = [case_of(work, options, device) for device in (H200, little)]
        local = ["volatile" in c.module.source for c in cases]
        assert local == [False, many]
        assert (cases[0].module.launches[0].shared > 0) == many
        for case, emulated in zip(cases, compile_modules([c.module for c in cases]), strict=True):
            (found,) = run_case(case, emulated, "forward")
            np.testing.assert_allclose(found, a @ b, rtol=1e-6)


@pytest.mark.usefixtures("short")
@pytest.mark.skipif(bool(why_not()), reason="no C++ compiler")
def test_totals_of_several_nests_have_room_for_the_most() -> None:
    """Nests that share a kernel have totals of one name, those of the second one more."""
    text = """def f(float(M, K) A, float(K, N) B, float(K, L) C) -> (S, T) {
        S(m, n) +=! A(m, k) * B(k, n) T(m, l) +=! A(m, k) * C(k, l) }"""
    rng = np.random.default_rng(0)
    a, b, c = (rng.random(shape).astype(np.float32) for shape in ((16, 23), (23, 48), (23, 96)))
    first = NestOptions(chunk=(16, 0), threads=(4, 8), register=(4, 6), tile=(0, 0, 4))
    second = replace(first, register=(4, 12), fuse=True)
    work = work_of_text(text, a, b, c)
    case = case_of(work, MappingOptions(nests=(first, second)))
    (launch,) = case.module.launches
    assert launch.shared == 2 * 32 * 4 * 48  # totals, and what they lost
    (emulated,) = compile_modules([case.module])
    for found, factor in zip(run_case(case, emulated, "forward"), (b, c), strict=True):
        np.testing.assert_allclose(found, a @ factor, rtol=1e-5)
