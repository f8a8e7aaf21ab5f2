"""Operands that are asked for ahead of their use: where it is done, where refused, by default."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compiled_kernels import compile_cpu
from cpu_kernels import reference, run, sized_of
from nests import X86, sized

from tcl.codegen.choose.cpu.prefetch_distances import tiles_ahead
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan_cpu, schedule
from tcl.common.errors import OptionsError
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.space.cpu.mapping import MappingSpace

AMD = CpuProfile("znver3", "+avx2,+fma,+sse4a", X86, 256, 2, 32 << 10, 512 << 10, 32 << 20)
DEVICE = CpuProfile(
    "skylake-avx512", "+avx2,+fma,+avx512f", X86, 512, 2, 32 << 10, 1 << 20, 32 << 20, threads=1
)
MLP = MappingOptions("mlp")
SOFTMAX = """
def softmax(float(N, D) I) -> (O, highest, total) {
    highest(n) max=! I(n, d)
    total(n) +=! exp(I(n, d) - highest(n))
    O(n, d) = exp(I(n, d) - highest(n)) / total(n)
}
"""


def distances(each: SizedDef, device: CpuProfile = DEVICE) -> list[tuple[int, ...]]:
    """What the default prefetches, nest by nest."""
    return [o.prefetch or () for o in plan_cpu(lower(each), MLP, device).options.values()]


def test_the_kernel_asks_for_what_comes_next_and_gives_the_same() -> None:
    text = "def f(float(M, N) A, float(N) B) -> (O) { O(m, n) = A(m, n) * B(n) }"
    a, b = np.arange(7 * 37, dtype=np.float32).reshape(7, 37), np.arange(37, dtype=np.float32)
    options = MappingOptions().vectorize(16).nest(0).prefetch(4096)
    each = sized_of(text, a, b)
    assert "prefetch 4096 bytes after A(s0.m, s0.n)" in show(schedule(each, options, DEVICE))
    kernel = compile_cpu(each, options)
    assert "llvm.prefetch" in kernel.llvm
    assert "i64 4096" in kernel.llvm
    np.testing.assert_array_equal(run(text, a, b, options=options)[0], reference(text, a, b)[0])


@pytest.mark.skipif(not host_cpu().triple.startswith("x86_64"), reason="instructions of x86")
@pytest.mark.parametrize(("type_", "lines"), [("float", 1), ("double", 2)])
def test_each_line_of_a_vector_is_asked_for_once(type_: str, lines: int) -> None:
    each = sized_of(
        f"def f({type_}(M, N) A) -> (O) {{ O(m, n) = A(m, n) }}", np.zeros((1, 16), f"f{lines * 4}")
    )
    asm = compile_cpu(each, MappingOptions().vectorize(16).nest(0).prefetch(512)).asm
    assert asm.count("prefetcht0") == lines


@pytest.mark.skipif(not host_cpu().triple.startswith("x86_64"), reason="instructions of x86")
def test_a_line_is_asked_for_once_by_code_that_is_written_out() -> None:
    text = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    a, b = np.ones((6, 32), np.float32), np.ones((32, 64), np.float32)
    # Three rows that do not depend on the lanes, of which four elements each are in one line; a
    # vector, that the three rows share.
    options = MappingOptions().vectorize(16).register(3, 1, 4).nest(0).prefetch(1 << 20, 1 << 21)
    asm = compile_cpu(sized_of(text, a, b), options, device=DEVICE).asm
    assert asm.count("prefetcht0") == 3 + 4
    np.testing.assert_array_equal(run(text, a, b, options=options)[0], a @ b)


@pytest.mark.skipif(not host_cpu().triple.startswith("x86_64"), reason="instructions of x86")
@pytest.mark.parametrize(
    ("body", "ahead", "hint"),
    [
        ("S(m) +=! A(m, n)", 192, "prefetchnta"),
        ("S(m) +=! A(m, n)", 256, "prefetcht0"),
        ("S(m) +=! A(m, n) Q(m) +=! A(m, n) * A(m, n)", 192, "prefetcht0"),
        ("S(m) +=! A(m, n) * A(m, n)", 192, "prefetchnta"),
        ("S(m, j) +=! A(m, n) where j in 0:3", 192, "prefetcht0"),
        ("S(m) +=! A(m, n + k) where k in 0:3", 192, "prefetcht0"),
    ],
)
def test_what_is_read_soon_and_once_passes_by_the_caches(body: str, ahead: int, hint: str) -> None:
    results = "(S, Q)" if "Q" in body else "(S)"
    a = np.arange(5 * 70, dtype=np.float32).reshape(5, 70)
    text = f"def f(float(M, N) A) -> {results} {{ {body} }}"
    options = MappingOptions().vectorize(1, 8).nest(0).prefetch(ahead)
    asm = compile_cpu(sized_of(text, a), options).asm
    assert {w for w in asm.split() if w.startswith("prefetch")} == {hint}
    np.testing.assert_allclose(run(text, a, options=options)[0], reference(text, a)[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("S(m) +=! A(m, n)", [(192,)]),
        ("S(n) +=! A(m, n)", [(192,)]),
        ("S(m) +=! A(m, n) Q(m) max=! A(m, n)", [(), ()]),
        ("S(m, n) = A(m, n) + 1", [(2048,)]),
    ],
)
def test_amd_asks_soon_for_what_comes_from_memory(body: str, wanted: list[tuple[int, ...]]) -> None:
    results = "(S, Q)" if "Q" in body else "(S)"
    text = f"def f(float(M, N) A) -> {results} {{ {body} }}"
    assert distances(sized(text, A=(4096, 2048)), replace(AMD, threads=1)) == wanted
    assert (192,) not in distances(sized(text, A=(1024, 2048)), replace(AMD, threads=1))
    scaled = "def f(float(M, N) A, float(M) X) -> (S) { S(n) +=! A(m, n) * X(m) }"
    assert distances(sized(scaled, A=(4096, 2048), X=(4096,)), replace(AMD, threads=1)) == [()]


@pytest.mark.parametrize(
    ("body", "options", "words"),
    [
        ("O(m, n) = A(m, n)", MappingOptions().vectorize(8, 0), "lanes along s0.m are not"),
        ("O(m, n) = A(m, A(m, n))", MappingOptions().vectorize(8), "data select"),
    ],
)
def test_what_cannot_be_prefetched_is_refused(
    body: str, options: MappingOptions, words: str
) -> None:
    each = sized_of(f"def f(int32(M, M) A) -> (O) {{ {body} }}", np.zeros((16, 16)))
    for asked in (options.nest(0).prefetch(64), options.prefetch(64)):
        with pytest.raises(OptionsError, match=f"prefetch: nest s0: .*{words}"):
            schedule(each, asked, DEVICE)


def test_more_distances_than_operands_are_refused() -> None:
    each = sized("def f(float(M) A) -> (O) { O(m) = A(m) }", A=(64,))
    options = MappingOptions().vectorize(8).nest(0).prefetch(64, 64)
    with pytest.raises(
        OptionsError, match="prefetch: nest s0: it has 1 operands, but 2 were given"
    ):
        schedule(each, options, DEVICE)
    with pytest.raises(OptionsError, match=r"prefetch: distances must be from 0 \(none\) to"):
        MappingOptions().prefetch(-64)


def test_a_reduction_that_prefetches_for_itself_goes_alone() -> None:
    text = "def f(float(N) A) -> (S, Q) { S +=! A(n) Q +=! A(n) * A(n) }"
    each = sized(text, A=(1000,))
    together = MLP.nest(0).prefetch(64)
    assert show(schedule(each, together, DEVICE)).count("for s1") == 0
    alone = together.nest(1).prefetch(64)
    assert show(schedule(each, alone, DEVICE)).count("prefetch 64 bytes after A(s1.n)") > 0
    a = np.random.default_rng(1).random(1000).astype(np.float32)
    for mine, right in zip(run(text, a, options=alone), reference(text, a), strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-5)


def test_the_default_reaches_into_the_next_chunk_in_the_pass_with_most_arithmetic() -> None:
    text = show(schedule(sized(SOFTMAX, I=(4096, 1024)), MLP, DEVICE))
    assert "for s0.n.chunk x 2048 step 2 parallel" in text
    assert text.count("prefetch") == 1
    # Where the second nest computes its exponentials, which the third one reads.
    assert "prefetch 8192 bytes after I(s1.n, s1.d)" in text


def test_the_default_leaves_short_chunks_to_processors_that_read_ahead() -> None:
    text = """
    def f(float(N, D) I, float(D) G, float(D) B, float E) -> (O, S, Q) {
        S(n) +=! I(n, d)
        Q(n) +=! (I(n, d) - S(n)) * (I(n, d) - S(n))
        O(n, d) = (I(n, d) - S(n)) * rsqrt(Q(n) + E) * G(d) + B(d)
    }
    """
    for width in (1024, 2048):
        rows = sized(text, I=(4096, width), G=(width,), B=(width,), E=())
        assert distances(rows)[2] == (width * 4,)
        assert distances(rows, AMD)[2] == (() if width == 1024 else (width * 4,))


def test_the_default_reaches_over_the_page_where_there_is_one_pass() -> None:
    add = """
    def f(float(M, N) A, float(M, N) B, float(N) C) -> (O) {
        O(m, n) = A(m, n) + B(m, n) + C(n)
    }
    """
    assert distances(sized(add, A=(2048, 1024), B=(2048, 1024), C=(1024,))) == [(2048, 2048)]
    # Both sums in one pass.
    sums = "def f(float(N, K) I) -> (S, Q) { S(n) +=! I(n, k) Q(n) +=! I(n, k) * I(n, k) }"
    assert distances(sized(sums, I=(512, 4096))) == [(2048,), ()]


def test_the_default_asks_for_what_is_furthest_ahead() -> None:
    rows = "def f(float(M, N) I) -> (O) { O(i, j) = %s where i in 1:M - 1, j in 0:N }"
    near, far = "I(i, j) + I(i - 1, j)", "I(i, j) + I(i + 1, j)"
    assert distances(sized(rows % near, I=(2048, 1024))) == [(2048,)]
    assert distances(sized(rows % far, I=(2048, 1024))) == [(0, 2048)]


def test_the_default_leaves_rows_that_are_read_side_by_side_to_the_processor() -> None:
    text = "def f(float(M, N) I) -> (S) { S(%s) +=! I(m, n) }"
    assert distances(sized(text % "n", I=(2048, 1024))) == [()]
    assert distances(sized(text % "m", I=(2048, 1024))) == [(2048,)]


@pytest.mark.parametrize(("heads", "width", "ahead"), [(1, 64, 2048), (8, 64, 8192), (8, 16, 0)])
def test_the_default_asks_for_rows_that_register_tiles_read_whole(
    heads: int, width: int, ahead: int
) -> None:
    """Short ones farther ahead where memory has others between; not for each part of a line."""
    text = """def f(float(B, H, T) P, int8(B, T, H, D) V) -> (O) {
        O(b, h, d) +=! P(b, h, t) * V(b, t, h, d) }"""
    rows = sized(text, P=(16, heads, 4096), V=(16, 4096, heads, width))
    found = distances(rows)[0]
    assert found == ((0, ahead) if ahead else ())
    assert distances(rows, AMD)[0] == (), "it reads ahead by itself"


def test_the_default_prefetches_nothing_that_is_near_or_read_often() -> None:
    assert distances(sized(SOFTMAX, I=(64, 1024))) == [(), (), ()]
    product = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    assert distances(sized(product, A=(256, 256), B=(256, 256))) == [()]
    # Its lanes are along m: the elements that they read lie apart.
    turned = "def f(float(M, N) A) -> (O) { O(n, m) = A(m, n) }"
    assert distances(sized(turned, A=(2048, 1024))) == [()]


def test_the_tuner_can_say_the_default_and_more() -> None:
    program = lower(sized(SOFTMAX, I=(4096, 1024)))
    space = MappingSpace(program, DEVICE)
    default = space.from_options(MLP)
    assert default is not None
    (knob,) = (k for k in space.space.knobs if k.name == "s1.prefetch0")
    mine = space.space.values(default)[knob.name]
    assert mine in knob.choices
    assert int(mine) > 0
    for choice in knob.choices:
        config = space.space.config(space.space.values(default) | {knob.name: choice})
        assert space.space.valid(config)
        options = space.to_options(config)
        assert (options.own(1).prefetch or (0,))[0] == choice
        assert space.from_options(options) == config


def test_the_tuner_does_not_ask_for_lanes_that_lie_apart() -> None:
    turned = "def f(float(M, N) A) -> (O) { O(m, n) = A(m, n) where m in 0:1000, n in 0:1000 }"
    program = lower(sized(turned, A=(1024, 1024)))
    space = MappingSpace(program, DEVICE).space
    values = space.values(space.default) | {"s0.prefetch0": 2048, "s0.lanes": 4}
    assert space.reason(space.config(values)) is None
    reason = space.reason(space.config(values | {"s0.vector": 0}))
    assert reason == (
        "prefetch: nest s0: operand 0, A: lanes along s0.m are not adjacent in memory"
    )


def test_the_default_reaches_ahead_where_a_register_tile_needs_an_operand_but_once() -> None:
    step = "def f(float(M, N, K) X, float(D, K) W) -> (O) { O(m, n, d) +=! X(m, n, k) * W(d, k) }"
    assert distances(sized(step, X=(640, 512, 16), W=(16, 16))) == [(2048,)]
    assert distances(sized(step, X=(640, 512, 16), W=(512, 16))) == [()]
    # From the last cache, not where each step asks again for the lines of all rows.
    assert distances(sized(step, X=(64, 512, 16), W=(16, 16))) == [()]
    batched = """
    def f(float(B, N, M) X, float(B, M, K) Y) -> (Z) { Z(b, n, k) +=! X(b, n, m) * Y(b, m, k) }
    """
    assert distances(sized(batched, X=(500, 20, 72), Y=(500, 72, 26))) == [(2048, 2048)]


def test_the_default_leaves_it_to_processors_that_read_ahead_by_themselves() -> None:
    total = "def f(float(M, N) I) -> (S) { S(m) +=! I(m, n) }"
    short = replace(AMD, threads=2)
    assert distances(sized(total, I=(65536, 128)), short) == [()]
    assert distances(sized(total, I=(4096, 4096)), short) == [()]
    # But for rows side by side, from the last cache: of long ones, far ahead.
    longest = "def f(float(M, N) I) -> (S) { S(m) max=! I(m, n) }"
    assert distances(sized(longest, I=(2048, 1024)), short) == [(8192,)]
    assert distances(sized(total, I=(2048, 1024)), AMD) == [()]
    assert distances(sized(total, I=(20000, 128)), AMD) == [(2048,)]
    # Unless results go past the caches meanwhile.
    scaled = "def f(float(M, N) I) -> (O) { O(m, n) = 2 * I(m, n) }"
    assert distances(sized(scaled, I=(4096, 4096)), AMD) == [(2048,)]
    # In a product it may be hidden: with two vectors of results for each element, not with one.
    step = "def f(float(M, N, K) X, float(D, K) W) -> (O) { O(m, n, d) +=! X(m, n, k) * W(d, k) }"
    assert distances(sized(step, X=(64, 512, 16), W=(16, 16)), AMD) == [(2048,)]
    assert distances(sized(step, X=(64, 512, 16), W=(8, 16)), AMD) == [()]


CONVOLUTION = """
def f(float(N, G, C, H, W) I, float(G, F, C, KH, KW) W1) -> (O) {
    O(n, g, f, h, w) +=! I(n, g, c, h + kh, w + kw) * W1(g, f, c, kh, kw)
}
"""


@pytest.mark.parametrize(
    ("shape", "filters", "expected"),
    [
        # The next group of channels, once everything was done with this one.
        ((32, 32, 4, 56, 56), 4, (4 * 56 * 56 * 4,)),
        # Arithmetic takes much longer than memory; it all stays near; the next block is too large.
        ((32, 32, 4, 56, 56), 64, ()),
        ((2, 32, 4, 56, 56), 4, ()),
        ((8, 1, 64, 112, 112), 2, ()),
        # The next row of all channels, of which no loop goes through one after the other.
        ((32, 1, 16, 56, 56), 16, (56 * 4,)),
    ],
)
def test_the_default_reaches_into_the_next_block_of_what_is_read_again(
    shape: tuple[int, ...], filters: int, expected: tuple[int, ...]
) -> None:
    each = sized(CONVOLUTION, I=shape, W1=(shape[1], filters, shape[2], 3, 3))
    assert distances(each) == [expected]


@pytest.mark.parametrize(("channels", "expected"), [(4, ()), (8, (1024,))])
def test_windows_through_many_planes_ask_for_what_comes_next(
    channels: int, expected: tuple[int, ...]
) -> None:
    """More of them than a processor that reads ahead by itself follows at once."""
    each = sized(CONVOLUTION, I=(64, 1, channels, 56, 56), W1=(1, 64, channels, 3, 3))
    assert distances(each, AMD) == [expected]


@pytest.mark.parametrize("size", [32, 64])
def test_the_default_reaches_into_the_next_matrix_of_a_batch_where_the_first_cache_has_room(
    size: int,
) -> None:
    """On processors that do not read ahead into it; and their register tiles wait for none."""
    text = "float(B, M, K) X, float(B, K, N) Y) -> (Z) { Z(b, m, n) +=! X(b, m, k) * Y(b, k, n) }"
    product, batch = f"def f({text}", (1 << 19) // size**2
    each = sized(product, X=(batch, size, size), Y=(batch, size, size))
    assert distances(each) == [(2048, 4096) if size == 32 else (2048,)]
    assert all(len(ahead) < 2 for ahead in distances(each, AMD))


def test_asking_for_blocks_pays_where_few_lines_are_in_a_register_tile() -> None:
    each = sized(CONVOLUTION, I=(32, 32, 16, 14, 14), W1=(32, 16, 16, 3, 3))
    program = lower(each)
    chosen = plan_cpu(program, MLP, AMD).options["s0"]
    assert chosen.prefetch == (32 * 16 * 14 * 14 * 4,), "all images for one group's filters"
    (nest,) = program.nests
    across = replace(chosen, register=(0, 0, 1, 7, 2))  # of 14 rows two elements each
    assert tiles_ahead(program, nest, across, AMD) == ()


def test_rows_that_hold_short_blocks_side_by_side_are_asked_for_a_block_ahead() -> None:
    """Where reductions go from page to page, for all columns of register tiles and for one after
    the other; not where a block is long, as processors read ahead in it."""
    text = """def f(double(B, J, A, I) T, double(J, C, B) V) -> (O) {
        O(a, c, i) +=! T(b, j, a, i) * V(j, c, b) }"""
    assert distances(sized(text, T=(24, 18, 31, 20), V=(18, 40, 24))) == [(160,)]
    assert distances(sized(text, T=(24, 18, 10, 20), V=(18, 40, 24))) == [()], "it is kept"
    floats = text.replace("double", "float")
    assert distances(sized(floats, T=(32, 24, 40, 28), V=(24, 48, 32))) == [(112,)]
    longer = """def f(double(K, A, M, C) X, double(M, D, K) Y) -> (O) {
        O(c, a, d) +=! X(k, a, m, c) * Y(m, d, k) }"""
    assert distances(sized(longer, X=(20, 33, 24, 18), Y=(24, 40, 20))) == [()]


def test_what_a_chunk_has_made_is_not_asked_for() -> None:
    """Nor if a nest made it that is fused with another one."""
    text = """float(H, W) X, float(H, W) Y, float(W) G) -> (U, V, N) {
        U(i, j) = 0.9 * X(i, j) + 0.1 * Y(i, j)
        V(i, j) = U(i, j) * G(j)
        N(i) +=! U(i, j) * V(i, j) }"""
    found = distances(sized(text, (1885, 831), (1885, 831), (831,)))
    assert found[0] and not any(found[2])


def test_columns_of_register_tiles_are_asked_for_ahead() -> None:
    """On Intel's processors: panels, and the rows that these meet, if the second cache does not
    hold both."""
    text = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    deep, short = sized(text, A=(512, 512), B=(512, 512)), sized(text, A=(512, 64), B=(64, 512))
    few = sized(text, A=(96, 512), B=(512, 512))
    assert distances(deep) == [(128, 2048)]
    assert distances(few) == [()]
    assert distances(short) == [()]
    assert distances(deep, replace(AMD, threads=1)) == [()]
    assert "prefetch 2048 bytes after s0.panel1(" in show(schedule(deep, MLP, DEVICE))
    across = sized(text.replace("A(m, k)", "A(k, m)"), A=(512, 512), B=(512, 512))
    assert distances(across) == [()]  # its elements are side by side


def test_panels_of_dot_products_are_not_asked_for() -> None:
    text = "C(m, n) +=! int32(A(m, k)) * int32(B(k, n))"
    each = sized(
        f"def f(int8(M, K) A, int8(K, N) B) -> (C) {{ {text} }}", A=(512, 512), B=(512, 512)
    )
    device = replace(
        DEVICE, name="cascadelake", features=f"{DEVICE.features},+avx512bw,+avx512vnni"
    )
    (chosen,) = plan_cpu(lower(each), MLP, device).options.values()
    assert any(chosen.dot or ())
    assert not chosen.prefetch
    with pytest.raises(OptionsError, match="operand 1, B: it is read from a copy"):
        schedule(each, MLP.nest(0).prefetch(0, 64), device)


def test_a_panel_that_is_asked_for_ahead_is_the_same() -> None:
    text = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    options = MappingOptions().tile(4, 16, 8).vectorize(8, 1).register(2, 2).stage(-1, 3)
    a, b = np.random.default_rng(1).random((2, 24, 24), np.float32)
    found = run(text, a, b, options=options.nest(0).prefetch(0, 64))[0]
    np.testing.assert_allclose(found, reference(text, a, b)[0], rtol=1e-5)
