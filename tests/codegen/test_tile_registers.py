"""How many points a register tile has, by the registers and the latencies of what they compute."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from nests import sized

from tcl.codegen.devices import known_cpus
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan_cpu

CASCADE_LAKE, ZEN3, ZEN4 = (
    replace(next(p for p in known_cpus.PROFILES if p.title == title), threads=1)
    for title in ("Cascade Lake", "Zen 3", "Zen 4")
)


def chosen(text: str, *shapes: tuple[int, ...], device: CpuProfile = ZEN4) -> NestOptions:
    """The choices for the first nest of a def, with all that is fused with it."""
    return plan_cpu(lower(sized(text, *shapes)), MappingOptions("mlp"), device).options["s0"]


@pytest.mark.parametrize("vectors", [3, 8])
def test_a_row_of_few_vectors_is_written_out(vectors: int) -> None:
    """What is one for all rows is computed before them."""
    text = "double(N) X, double(M) Y) -> (O) { O(n, m) = cos(Y(m)) * sin(X(n) - Y(m)) }"
    found = chosen(text, (500,), (vectors * 8,))
    assert found.register == (0, vectors)


def test_points_that_several_sums_take_need_registers_beside_the_sums() -> None:
    both = "X(i, k) >= 0 && Y(j, k) >= 0 ?"
    sums = f"A(i, j) +=! {both} 1 : 0 B(i, j) +=! {both} int32(X(i, k)) : 0"
    more = f"C(i, j) +=! {both} int32(Y(j, k)) : 0 D(i, j) +=! {both} int32(X(i, k) * Y(j, k)) : 0"
    text = f"int8(I, K) X, int8(J, K) Y) -> (A, B, C, D) {{ {sums} {more} }}"
    found = chosen(text, (90, 500), (90, 500))
    assert 1 < math.prod(x for x in found.register or () if x) <= 4


@pytest.mark.parametrize(("value", "least", "most"), [("exp(%s)", 1, 4), ("%s", 12, 28)])
def test_calls_of_each_point_leave_few_points(value: str, least: int, most: int) -> None:
    text = f"float(T, K) W, float(K, C) X) -> (O) {{ O(t, c) +=! {value % 'W(t, k) * X(k, c)'} }}"
    found = chosen(text, (300, 70), (70, 48))
    assert least <= math.prod(x for x in (found.register or ())[:2] if x) <= most


def test_results_that_share_a_call_are_sixteen_rows() -> None:
    text = "float(I, J) A, float(J, D) V) -> (R) { R(i, d) +=! exp(A(i, j)) * V(j, d) }"
    found = chosen(text, (96, 96), (96, 32))
    assert found.vectorize == (0, 16)
    assert (found.register or ())[:2] == (1, 16), "each call is for half of the results"


@pytest.mark.parametrize(("type_", "most"), [("int8", 24), ("int32", 12)])
def test_a_fused_sum_of_a_wider_type_takes_several_registers(type_: str, most: int) -> None:
    """Counts in ``int32`` of 64 bytes are four vectors."""
    count = f"{type_}(X(i, k) < 0 && Y(j, k) < 0)"
    text = f"int8(I, K) X, int8(J, K) Y) -> (L, N) {{\
        L(i, j) min=! max(X(i, k), Y(j, k)) N(i, j) +=! {count} }}"
    found = chosen(text, (90, 500), (128, 500))
    points = math.prod(x for x in (found.register or ())[:2] if x)
    assert found.vectorize is not None
    assert found.vectorize[1] == 64
    assert 1 < points * (2 if type_ == "int8" else 5) <= 28, found.register


def test_a_register_tile_has_most_points_that_decide_conditions_of_a_reduction() -> None:
    """Which points differ is known where one tile and the rest of it have all of them."""
    text = """int8(C, D, B) X) -> (O) {
        O(c, k, b) min=! j != k ? max(X(c, j, b), -X(c, j, b)) : int8(127) where k in 0:D }"""
    for extent in (5, 7):
        found = chosen(text, (90, extent, 64))
        _, rows, _, steps = found.register or ()
        assert 2 * rows > extent and steps == extent


@pytest.mark.parametrize(("extent", "lanes"), [(5, 4), (6, 4), (8, 8), (16, 8)])
def test_vectors_of_half_the_length_fill_short_rows(extent: int, lanes: int) -> None:
    """Where a core works on long ones in halves."""
    text = """double(N, K) L, double(N, K) D, double(N, K) U, double(N, K) X) -> (Y) {
        Y(n, k) = D(n, k) * X(n, k) + ((k > 0) ? L(n, k) * X(n, k - 1) : 0)
            + ((k < K - 1) ? U(n, k) * X(n, k + 1) : 0) }"""
    assert chosen(text, *[(4000, extent)] * 4).vectorize == (1, lanes)


def test_whole_vectors_are_transposed() -> None:
    text = "float(A, B, C, D, E) X) -> (O) { O(e, b, d, a, c) = X(a, b, c, d, e) }"
    _, lanes = chosen(text, (15, 17, 19, 21, 23)).vectorize or (-1, 1)
    assert lanes == 16


@pytest.mark.parametrize(("lags", "places"), [(15, 64), (12, 64), (20, 48), (15, 128)])
def test_rows_that_the_next_steps_read_again_have_registers(lags: int, places: int) -> None:
    """A step reads ``t + l`` of rows whose lag is one more or less for its neighbours, too."""
    text = f"""uint8(T, N) S, float(T, P) X) -> (A) {{
        A(n, l, p) +=! S(t + {lags - 1}, n) * X(t + l, p) where l in 0:{lags} }}"""
    found = chosen(text, (2003, 9), (2003, places))
    _, rows, vectors, steps = found.register or ()
    assert steps > 1
    assert rows * vectors + (rows - 1) * vectors < 32


PAIRS = "float(M, K) X, float(N, K) Y) -> (O) { O(m, n) +=! fabs(X(m, k) - Y(n, k)) }"


@pytest.mark.parametrize(
    ("rows", "columns", "steps"), [(20000, 32, 5), (5000, 128, 5), (1000, 300, 4)]
)
def test_registers_hold_what_is_loaded_before_a_loop(rows: int, columns: int, steps: int) -> None:
    """All steps are written out: the loop along a row changes no element of ``X``."""
    found = chosen(PAIRS, (rows, steps), (columns, steps), device=CASCADE_LAKE).register or ()
    assert found[2] == steps, "the end of a short loop costs as much as a few points"
    inside = found[1] * 16 >= columns
    assert found[0] * found[1] + (0 if inside else found[0] * steps) <= 30


def test_running_reductions_take_half_of_the_registers() -> None:
    text = "{0}(A, B) X) -> (O) {{ O(a, b) +=! z <= a ? X(z, b) : 0 where a in 0:A }}"
    for type_ in ("int32", "double", "float16"):
        found = chosen(text.format(type_), (502, 3735), device=CASCADE_LAKE)
        assert found.register == (16,)
    narrow = next(p for p in known_cpus.PROFILES if p.title == "Zen 2")
    assert chosen(text.format("int32"), (502, 3735), device=narrow).register == (8,)


def test_results_that_go_past_the_caches_are_few_rows_at_a_time() -> None:
    far, near = (
        chosen(PAIRS, (rows, 5), (32, 5), device=CASCADE_LAKE).register or ()
        for rows in (20000, 3000)
    )
    assert far[0] < near[0]


@pytest.mark.parametrize(("columns", "rows"), [(24, 12), (32, 13)])
def test_steps_beside_a_cut_vector_leave_registers(columns: int, rows: int) -> None:
    """LLVM keeps the whole vectors of all steps, where others are read under a mask."""
    text = "float(T, K) A, float(S, K) D) -> (O) { O(t, s) +=! A(t, k) * D(s, k) }"
    found = chosen(text, (4800, 16), (columns, 16), device=CASCADE_LAKE)
    assert found.register == (rows, 2, 4)


@pytest.mark.parametrize(
    ("text", "shapes", "lanes", "tile"),
    [
        (  # each of four factors is read for two sums
            """float(I, K, 2) A, float(K, J, 2) B) -> (Re, Im) {
            Re(i, j) +=! A(i, k, 0) * B(k, j, 0) - A(i, k, 1) * B(k, j, 1)
            Im(i, j) +=! A(i, k, 0) * B(k, j, 1) + A(i, k, 1) * B(k, j, 0) }""",
            [(100, 100, 2)] * 2,
            (1, 16),
            (6, 4, 2),
        ),
        (  # columns of two panels, of which the first cache holds one
            """float(T, D) X, float(F, D) W, float(F, D) V) -> (A, B) {
            A(t, f) +=! X(t, d) * W(f, d)
            B(t, f) +=! X(t, d) * V(f, d) }""",
            [(200, 256), (344, 256), (344, 256)],
            (1, 16),
            (13, 2, 4),
        ),
    ],
    ids=["complex", "gated"],
)
def test_sums_with_panels_of_their_own_have_tiles_of_their_own(
    text: str,
    shapes: list[tuple[int, ...]],
    lanes: tuple[int, int],
    tile: tuple[int, ...],
) -> None:
    found = chosen(text, *shapes, device=CASCADE_LAKE)
    assert (found.vectorize, found.register) == (lanes, tile)


def test_pieces_of_long_columns_of_bytes_are_pairs_of_lines() -> None:
    weight = "(float(W(g, k, m)) - float(Z(g, m))) * S(g, m)"
    text = (
        "uint8(G, K, M) W, float(G, M) S, uint8(G, M) Z, float(G, K) X) -> (Y) "
        f"{{ Y(m) +=! {weight} * X(g, k) }}"
    )
    shapes = (20, 32, 1000), (20, 1000), (20, 1000), (20, 32)
    found = chosen(text, *shapes, device=CASCADE_LAKE)
    assert (found.vectorize, found.register) == ((0, 16), (8, 0, 0))


def test_a_tile_has_a_period_of_what_lanes_take() -> None:
    """Of three vectors, lanes take the same of the next ones."""
    text = "float(H, W) I) -> (O) { O(v, u) = I(v / 3, u / 3) where v in 0:3 * H, u in 0:3 * W }"
    found = chosen(text, (40, 100), device=CASCADE_LAKE)
    assert found.register is not None
    assert (found.vectorize, found.register[1]) == ((1, 16), 3)


def test_vectors_that_inner_rows_use_again_take_registers() -> None:
    """Those of one outer row are held beside the numbers that the next one needs again."""
    text = """double(A, B, C, D) T, double(C, E) U) -> (O) {
        O(a, e, d, b) +=! T(a, b, c, d) * U(c, e) }"""
    found = chosen(text, (10, 12, 14, 16), (14, 18), device=ZEN3)
    assert found.vectorize == (3, 4)
    outer, inner, _, vectors, _ = found.register or ()
    held = vectors + max(inner, 1) if outer > 1 else vectors + 1
    assert max(outer, 1) * max(inner, 1) * vectors + held <= 16


def test_lanes_are_of_what_no_condition_compares_where_they_are_chosen_apart() -> None:
    """Without masked instructions, each sum is chosen by lanes; a branch decides for all lanes."""
    text = """float(N, F, H, W) D, float(F, C, 3, 3) K) -> (O) {
        O(n, c, h, w) +=! (h >= kh && h - kh < H && w >= kw && w - kw < W)
            ? D(n, f, h - kh, w - kw) * K(f, c, kh, kw) : 0 where h in 0:H + 2, w in 0:W + 2 }"""
    shapes = (2, 40, 37, 37), (40, 28, 3, 3)
    for device, lanes in ((ZEN3, 1), (ZEN4, 3)):
        found = chosen(text, *shapes, device=device).vectorize
        assert found is not None
        assert found[0] == lanes


def test_lanes_are_of_what_a_copy_makes_wider() -> None:
    """Along a reduction, each product would convert its operands."""
    text = """bfloat16(T, D) X, bfloat16(F, D) W) -> (float(T, F) P) {
        P(t, f) +=! float(X(t, d)) * float(W(f, d)) }"""
    found = chosen(text, (180, 420), (330, 420), device=ZEN3)
    assert found.vectorize is not None
    assert found.vectorize[0] < 2
    assert found.stage and all(level >= 0 for level in found.stage)
