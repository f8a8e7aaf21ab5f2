"""Reductions that go through those points alone at which their condition holds."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from comparing import check_cpu, check_interpreted, expected_of
from cpu_kernels import Array, accepted, random_options, run, sized_of
from nests import ARM, NARROW, WIDE
from sampling import sampled

from tcl.codegen.choose.cpu.variants import condition_share
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show
from tcl.codegen.loopir.walk import statements, walk
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan, schedule
from tcl.common.errors import OptionsError
from tcl.grammar.ranges.sized import SizedDef

PRODUCT = """def f({0}(M, K) A, {0}(K, N) B, uint8(M, K) S) -> ({1}(M, N) C) {{
    C(m, n) {2} {3}
}}"""
WHERE = "S(m, k) == 1 ? A(m, k) * B(k, n) : {0}"
SKIP = NestOptions(skip=True)
LANES = replace(SKIP, vectorize=(1, 8))
DIVIDED = replace(LANES, chunk=(2, 16), register=(0, 2), stage=(0, 1, 1))
WAYS = [
    SKIP,
    LANES,
    replace(LANES, register=(0, 3), stage=(-1, -1, 0)),
    replace(LANES, tile=(2, 16), order=(1, 0, 2), stage=(-1, 2, 1)),
    DIVIDED,
    replace(SKIP, chunk=(0, 5), inner_order=(1, 0, 2)),
]


def product(
    value: str = WHERE.format("0"), op: str = "+=!", type_: str = "float", result: str = ""
) -> SizedDef:
    text = PRODUCT.format(type_, result or type_, op, value)
    return sized_of(text, np.zeros((7, 21)), np.zeros((21, 37)), np.zeros((7, 21)))


def inputs_of(sized: SizedDef, share: float, seed: int = 0) -> list[Array]:
    """``A``, ``B`` and ``S``, which is 1 at this share of its points."""
    rng, shapes = np.random.default_rng(seed), sized.shapes
    a, b = (
        rng.integers(0, 6, shapes[t.name]).astype(numpy_dtype(t.type))
        for t in sized.checked.inputs[:2]
    )
    return [a, b, (rng.random(shapes["S"]) < share).astype(np.uint8)]


def listed(program: ir.Built) -> list[ir.For]:
    """The loops through lists."""
    inside = (s for k in program.kernels for s in statements(k.body))
    return [s for s in inside if isinstance(s, ir.For) and s.loop.compacted is not None]


def check(
    sized: SizedDef, chosen: NestOptions | MappingOptions, inputs: list[Array]
) -> list[Array]:
    """The results of the kernel, which are those of the reference, as are those of its loops, run
    one by one."""
    options = MappingOptions()
    options = chosen if isinstance(chosen, MappingOptions) else options.with_nest(0, chosen)
    program = schedule(sized, options, host_cpu())
    assert listed(program), options
    check_interpreted(sized, inputs, program, f"{options}")
    expected = expected_of(sized, inputs)
    check_cpu(sized, inputs, options, replace(host_cpu(), threads=3), expected)
    return expected


CASES = [
    product(),
    product(op="+="),
    product("S(m, k) == 1 ? A(m, k) - B(k, n) : 2147483647", "min=!", "int32"),
    product("S(m, k) == 1 ? A(m, k) * 0.25 + B(k, n) * 0.125 : 1", "*=!"),
    product("S(m, k) == 1 ? int32(A(m, k)) * B(k, n) : 0", type_="int8", result="int32"),
    product(WHERE.format("0"), type_="bfloat16"),
    product("m + k < 20 && S(m, k) == 1 ? fmax(A(m, k), 0.0) * B(k, n) : 0"),
    product("S(m, k) == 1 && A(m, k) > 2 ? B(k, n) : 0"),
    product("S(m, k) == 1 ? A(m, k) * B(k, n) / float(S(m, k)) : 0"),
]


@pytest.mark.parametrize(("way", "case"), sampled(itertools.product(WAYS, range(len(CASES))), 4))
def test_results_are_those_of_the_reference(way: NestOptions, case: int) -> None:
    check(CASES[case], way, inputs_of(CASES[case], 0.5))


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_lists_may_be_empty_or_full(share: float) -> None:
    some = inputs_of(product(), share)
    some[2][3] = 1 - some[2][3]
    check(product(), DIVIDED, some)


@pytest.mark.parametrize("way", [SKIP, DIVIDED])
def test_what_is_left_out_is_not_multiplied(way: NestOptions) -> None:
    """A product with an infinity, or with what is no number, would be none."""
    a, b, chosen = inputs_of(product(), 0.5)
    chosen[:, 4] = chosen[2, :] = 0
    b[4], a[2] = np.inf, np.nan
    assert np.isfinite(check(product(), way, [a, b, chosen])[0]).all()


def test_what_may_not_be_there_is_not_read() -> None:
    """Only the condition keeps the subscripts inside of the tensor."""
    text = """def f(float(N, D) A) -> (O) {
        O(i, d) +=! (i + k < N) ? A(i + k, d) : 0 where i in 0:N, k in 0:N
    }"""
    sized = sized_of(text, np.zeros((9, 19)))
    a = np.random.default_rng(3).standard_normal((9, 19)).astype(np.float32)
    for way in (SKIP, LANES, replace(LANES, register=(0, 2), chunk=(4,))):
        check(sized, way, [a])


def test_conditions_of_several_reductions() -> None:
    text = """def f(float(C, H, W) I, float(F, C, K, L) V, bool(F, K, C) S) -> (O) {
        O(f, h, w) +=! S(f, kh, c) ? I(c, h + kh, w + kw) * V(f, c, kh, kw) : 0
    }"""
    shapes = {"I": (5, 8, 23), "V": (3, 5, 3, 2), "S": (3, 3, 5)}
    sized = sized_of(text, *(np.zeros(s) for s in shapes.values()))
    rng = np.random.default_rng(5)
    inputs: list[Array] = [rng.integers(0, 4, s).astype(np.float32) for s in shapes.values()]
    inputs[2] = inputs[2] > 1
    lanes = replace(SKIP, vectorize=(2, 8))
    turned = replace(lanes, inner_order=(0, 1, 2, 4, 3, 5))
    for way in (lanes, turned, replace(lanes, register=(0, 2, 2, 0, 0, 2))):
        check(sized, way, inputs)


def test_random_options() -> None:
    """Whatever else is chosen."""
    found = 0
    for seed in range(20):
        sized = CASES[seed % len(CASES)]
        own = random_options(random.Random(seed), sized).own(0)
        tile, register = ((*(sizes or ()), 0, 0, 0) for sizes in (own.tile, own.register))
        own = replace(
            own,
            tile=(*tile[:2], 0),
            inner_order=random.Random(seed).choice([(0, 1, 2), (1, 0, 2)]),
            vectorize=(1, (own.vectorize or (1, 1))[1]),
            register=(0, register[1], 0),
            dot=(),
            stream=False,
            skip=True,
        )
        if accepted(sized, MappingOptions().with_nest(0, own), host_cpu()):
            found += 1
            check(sized, own, inputs_of(sized, 0.5, seed))
    assert found > 6


def test_lists_are_made_once_and_loops_have_no_condition() -> None:
    program = schedule(product(), MappingOptions().with_nest(0, DIVIDED), host_cpu())
    lists, _, work = program.kernels
    (loop,) = listed(program)
    assert loop.loop.fold.name == "s0.k.point"
    assert loop in list(statements(work.body)) and lists.grid
    sums = [s for s in statements(loop) if isinstance(s, ir.Accumulate)]
    assert sums and not any(isinstance(v, ir.Select) for s in sums for v in walk(s.value))


def test_a_later_nest_computes_what_the_points_left_out_lack() -> None:
    """A function's values are kept for a later nest only by one that computes all of them."""
    text = """def f(float(M, N) A, uint8(N) S) -> (P, Q) {
        P(m) +=! S(n) == 1 ? exp(A(m, n)) : 0
        Q(m) +=! exp(A(m, n)) * 2
    }"""
    rng = np.random.default_rng(6)
    a: Array = rng.random((6, 20), dtype=np.float32)
    inputs = [a, rng.integers(0, 2, 20).astype(np.uint8)]
    sized = sized_of(text, *inputs)
    shared = MappingOptions("naive").chunk(2).nest(1).fuse()
    check(sized, shared.nest(0).skip(), inputs)
    check(sized, MappingOptions("naive").nest(0).skip(), inputs)  # nor do they share loops


PLAIN, ALL = WHERE.format("0"), "A(m, k) * B(k, n)"
REFUSED = [
    (ALL, LANES, "it is not a reduction that ignores a point"),
    ("S(m, k) == 1 ? A(m, k) : 1", LANES, "it is not a reduction that ignores a point"),
    (f"S(m, 0) == 1 ? {ALL} : 0", LANES, "its condition is the same for all points"),
    (f"B(k, n) > 0 ? {ALL} : 0", LANES, "along s0.n, which is written out or in lanes"),
    (PLAIN, replace(LANES, register=(2,)), "along s0.m, which is written out or in lanes"),
    (PLAIN, replace(LANES, register=(0, 0, 2)), "along s0.k, which is written out"),
    (PLAIN, replace(LANES, tile=(0, 0, 5)), "along s0.k, which is tiled"),
    (PLAIN, replace(LANES, inner_order=(2, 0, 1)), "changes along the results of s0.m"),
    (PLAIN, replace(LANES, inner_order=(0, 2, 1), tile=(0, 16)), "results are in memory between"),
]


@pytest.mark.parametrize(("value", "way", "words"), REFUSED)
def test_refusals(value: str, way: NestOptions, words: str) -> None:
    sized = product(value)
    # In all nests, too: there is no other one that could.
    for options in (MappingOptions().with_nest(0, way), MappingOptions(default=way)):
        with pytest.raises(OptionsError, match=f"skip: nest s0: .*{words}"):
            schedule(sized, options, WIDE)


def test_what_the_condition_reads_has_to_be_there() -> None:
    text = """def f(float(M, K) A, float(K, N) B) -> (S, C) {
        S(m, k) = A(m, k) + 1
        C(m, n) +=! S(m, k) > 0 ? A(m, k) * B(k, n) : 0
    }"""
    sized = sized_of(text, np.zeros((8, 20)), np.zeros((20, 24)))
    apart = MappingOptions("naive").chunk(2)
    assert listed(schedule(sized, apart.nest(1).skip(), WIDE))
    with pytest.raises(OptionsError, match="skip: nest s1: the nests whose chunks it shares"):
        schedule(sized, apart.nest(1).fuse().nest(1).skip(), WIDE)


MASKED = """def f(float(B, C, W) I, float(F, C) V, uint8(F, C) S) -> (O) {
    O(b, f, w) +=! (S(f, c) == 1) ? fmax(0.0, I(b, c, w)) * V(f, c) : 0.0
}"""


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("device", [NARROW, ARM], ids=lambda d: d.name)
def test_the_default_of_a_masked_product(device: CpuProfile, threads: int) -> None:
    """A long row of results, so that the operand in lanes may be read once for each product."""
    sized = sized_of(MASKED, np.zeros((8, 64, 784)), np.zeros((64, 64)), np.zeros((64, 64)))
    made = plan(sized, MappingOptions("mlp"), replace(device, threads=threads))
    options = made.nests["s0"].options
    assert options.skip and options.register is not None
    assert max(options.register) >= 7 and sorted(options.register)[-2] <= 1
    assert listed(made.scheduled())


GRAMS = """def f(int32(U, K) J, float(U, K) W, float(I, F) X) -> (A) {
    A(u, f, g) +=! J(u, k) >= 0 ? W(u, k) * X(J(u, k), f) * X(J(u, k), g) : 0
}"""


@pytest.mark.parametrize("threads", [1, 2])
def test_all_chunks_share_the_lists(threads: int) -> None:
    """Threads wait for each other once before they use these, not once a chunk."""
    sized = sized_of(GRAMS, np.zeros((29, 37)), np.zeros((29, 37)), np.zeros((500, 32)))
    assert listed(schedule(sized, MappingOptions("mlp"), replace(WIDE, threads=threads)))


SHORT = MASKED.replace("C", "3")
MOVING = (
    "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! B(k, n) > 0 ? A(m, k) * B(k, n) : 0 }"
)
ONCE = "def f(float(M, K) A, uint8(M, K) S) -> (C) { C(m) +=! S(m, k) == 1 ? A(m, k) : 0 }"


def test_where_the_default_has_no_lists() -> None:
    """A few points, a condition that changes along the lanes, or nothing to use a list twice."""
    shapes: list[tuple[str, list[tuple[int, ...]]]] = [
        (SHORT, [(8, 3, 784), (64, 3), (64, 3)]),
        (MOVING, [(64, 64), (64, 256)]),
        (ONCE, [(512, 512), (512, 512)]),
    ]
    for text, sizes in shapes:
        sized = sized_of(text, *(np.zeros(s) for s in sizes))
        assert "listed" not in show(schedule(sized, MappingOptions("mlp"), WIDE)), text


SURROUNDINGS = """def f(float(H, W) I) -> (O) {
    O(y, x) +=! i < 3 || i > 5 || j < 4 || j > 8 ? I(y + i, x + j) : 0 where i in 0:9, j in 0:13
}"""


def test_points_are_counted_where_indices_decide() -> None:
    sized = sized_of(SURROUNDINGS, np.zeros((72, 223)))
    (nest,) = lower(sized).nests
    assert condition_share(nest) == 102 / 117
    (masked,) = lower(product()).nests
    assert condition_share(masked) == 0.5, "nothing is known of data"


def test_the_default_leaves_out_the_middle_of_a_window() -> None:
    sized = sized_of(SURROUNDINGS, np.zeros((72, 223)))
    for threads in (1, 2):  # which share no lists along a reduction
        assert listed(schedule(sized, MappingOptions("mlp"), replace(WIDE, threads=threads)))
    image = np.random.default_rng(0).integers(0, 9, (20, 40)).astype("f")
    check(sized_of(SURROUNDINGS, image), SKIP, [image])
    check(sized_of(SURROUNDINGS, image), replace(SKIP, chunk=(4,)), [image])


def test_a_condition_may_never_hold() -> None:
    text = """def f(float(M, K) A, float(K, N) B) -> (C) {
        C(m, n) +=! (k > 2 && k < 2 * m) ? A(m, k) * B(k, n) : 0
    }"""
    inputs = [np.ones((2, 40), "f"), np.ones((40, 40), "f")]
    for options in (MappingOptions("mlp"), MappingOptions("naive").vectorize(8, 1).skip()):
        check_cpu(sized_of(text, *inputs), inputs, options)


def test_a_condition_that_never_holds() -> None:
    text = """def f(double(M, N) X, double(N) Y) -> (O) {
        O(m, i) +=! (i + j < 0) ? X(m, j) + Y(i) : 0 where i in 0:N }"""
    for options in (MappingOptions("mlp"), MappingOptions("naive")):
        (found,) = run(text, np.ones((2, 5)), np.ones(5), options=options)
        np.testing.assert_array_equal(found, np.zeros((2, 5)))
