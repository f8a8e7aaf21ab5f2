"""What is chosen for nests that nobody has tuned."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from nests import ARM, MATMUL, NARROW, TRANSPOSED, WIDE, sized
from steps import steps

import tcl
from benchmarks import growth
from tcl.codegen.choose.cpu import register_tiles
from tcl.codegen.choose.cpu.chunk_groups import grouping
from tcl.codegen.choose.cpu.core_model import Core
from tcl.codegen.choose.cpu.costs import DIVISION_CYCLES, OPERATION_CYCLES
from tcl.codegen.choose.cpu.footprints import cached_bytes
from tcl.codegen.choose.cpu.heuristics import heuristic
from tcl.codegen.choose.cpu.operation_costs import decided_cycles, deciding_sizes
from tcl.codegen.choose.cpu.tile_cycles import TileParts, nest_cycles, tile_parts
from tcl.codegen.devices import known_cpus
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.measured_memory import MeasuredMemory
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show
from tcl.codegen.loopir.walk import statements
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.schedule.cpu import plan_cpu, schedule

(ZEN4,) = (replace(p, threads=1) for p in known_cpus.PROFILES if p.title == "Zen 4")
(ZEN3,) = (replace(p, threads=1) for p in known_cpus.PROFILES if p.title == "Zen 3")
(CASCADE_LAKE,) = (replace(p, threads=1) for p in known_cpus.PROFILES if p.title == "Cascade Lake")
DEVICES = pytest.mark.parametrize("device", [WIDE, NARROW, ARM], ids=lambda d: d.name)


def chosen(device: CpuProfile, text: str, *shapes: tuple[int, ...]) -> NestOptions:
    """The choices for the first nest, which have to be possible."""
    each = sized(text, *shapes)
    schedule(each, MappingOptions("mlp"), device)
    program = lower(each)
    found = heuristic(program, program.nests[0], device)
    schedule(each, MappingOptions("naive").with_nest(0, found), device)
    return found


def test_elements_that_remainders_come_to_again_are_read_once() -> None:
    """The cofactors of small matrices, with lanes across these, read nine vectors, not 36."""
    cofactors = """float(B, 3, 3) A, float(B, 3) Y) -> (X) { X(b, i) +=! Y(b, j) * (
        A(b, (j + 1) % 3, (i + 1) % 3) * A(b, (j + 2) % 3, (i + 2) % 3)
        - A(b, (j + 1) % 3, (i + 2) % 3) * A(b, (j + 2) % 3, (i + 1) % 3)) where i in 0:3 }"""
    found = chosen(ZEN4, cofactors, (3000, 3, 3), (3000, 3))
    assert found.vectorize == (0, 16)
    assert (found.register or ())[1] == 3


@pytest.mark.parametrize(
    ("value", "lanes"),
    [
        ("A(n, i) < 128 || A(n, i) >= 192 ? 1 : 0", 64),
        ("A(n, i) < 128 || A(n, i) >= 192 ? int32(A(n, i)) : 0", 64),
        ("(A(n, i) < 128 || A(n, i) >= 192) && B(i) < 128 ? 1 : 0", 16),
    ],
)
def test_counts_of_bytes_have_the_lanes_of_bytes(value: str, lanes: int) -> None:
    """Conditions of 64 bytes are one vector each, and four of the sums; not where other operands
    are as wide as these."""
    text = f"uint8(N, L) A, int32(L) B) -> (int32(N) C) {{ C(n) +=! {value} }}"
    assert chosen(CASCADE_LAKE, text, (500, 128), (128,)).vectorize == (1, lanes)


@pytest.mark.parametrize(("device", "lanes"), [(CASCADE_LAKE, 64), (ZEN4, 16)])
def test_one_condition_of_bytes_has_the_lanes_of_results_where_halves_are_worked_on(
    device: CpuProfile, lanes: int
) -> None:
    """It is a quarter of a vector then, and no halves; more of them are worth those of bytes."""
    for value, own in (("A(n, i) != B(i)", lanes), ("A(n, i) < B(i) || A(n, i) >= 192", 64)):
        text = f"uint8(N, L) A, uint8(L) B) -> (int32(N) C) {{ C(n) +=! {value} ? 1 : 0 }}"
        assert chosen(device, text, (500, 128), (128,)).vectorize == (1, own), value


@pytest.mark.parametrize(
    ("compared", "lanes"),
    [("2 * R(j) > R(i)", 16), ("R(i) > 0", 64), ("E(i, (j + 3) % 41) < 5", 64)],
)
def test_conditions_that_are_combined_are_as_long_as_what_they_compare(
    compared: str, lanes: int
) -> None:
    """Remainders of indices are known before, in no lanes."""
    text = f"uint8(N, N) E, int16(N) R) -> (C) {{ C(j) max=! E(i, j) < 2 && {compared} }}"
    assert chosen(ZEN4, text, (41, 41), (41,)).vectorize == (0, lanes)


@pytest.mark.parametrize(("device", "lanes"), [(CASCADE_LAKE, (4, 4)), (ZEN4, (2, 32))])
def test_six_bytes_between_lanes_are_put_together_where_vectors_of_bytes_are_shuffled(
    device: CpuProfile, lanes: tuple[int, int]
) -> None:
    """Pixels of an image of twice the size."""
    text = "uint8(H, W, C) I) -> (O) { O(h, a, w, b, c) = I(h, w, c) where a in 0:2, b in 0:2 }"
    assert chosen(device, text, (180, 240, 3)).vectorize == lanes


@pytest.mark.parametrize(("type_", "few"), [("uint8", 4), ("int16", 8)])
def test_what_a_table_gives_has_lanes_along_short_rows_of_places(type_: str, few: int) -> None:
    """LLVM loads each of these by itself; across the rows, it takes them out of vectors."""
    text = f"{type_}(N, {few}) I, {type_}(M) T) -> (O) {{ O(n, k) = T(I(n, k)) }}"
    assert chosen(CASCADE_LAKE, text, (30000, few), (256,)).vectorize == (1, few)


def test_lanes_of_a_sum_come_out_of_whole_vectors() -> None:
    """Rows of a few elements, which are no one row as something else reads a column of them: their
    sum has the lanes across the rows, and a vector of each column is taken out of those read."""
    read = "O(n) = X(n, 0)"
    text = f"uint8(N, 4) X) -> (int32 S, O) {{ S +=! X(n, k) > 63\n {read} }}"
    found = chosen(CASCADE_LAKE, text, (30000, 4))
    assert found.vectorize == (0, 64) and (found.register or ())[1] == 4
    text = f"float(H, W, 3) X) -> (S, O) {{ S(y) max=! X(y, n, c)\n {read.replace('n', 'y, n')} }}"
    found = chosen(CASCADE_LAKE, text, (131, 322, 3))
    assert found.vectorize == (1, 16) and (found.register or ())[2] == 3


def test_several_sums_beside_each_other_have_lanes_of_their_own() -> None:
    """Three sums of four registers leave none for a second row: on Zen 4, lanes across rows take
    .45 of the time."""
    sums = "\n".join(f"C{k}(n) +=! A(n, i) < 128 || A(n, i) >= {k} ? 1 : 0" for k in range(3))
    text = f"uint8(N, L) A) -> (int32(N) C0, int32(N) C1, int32(N) C2) {{ {sums} }}"
    found = plan_cpu(lower(sized(text, (500, 128))), MappingOptions("mlp"), CASCADE_LAKE)
    assert {o.vectorize for o in found.options.values()} == {(0, 16)}


def test_rows_of_lists_are_done_in_few_tiles() -> None:
    """13 vectors in two tiles, not in four: each goes through the points of the window again."""
    window = """float(D, R) P) -> (N) { N(d, r) +=! i < 3 || i > 5 || j < 4 || j > 8
        ? P((d + i) % D, r + j) : 0 where d in 0:D, i in 0:9, j in 0:13 }"""
    found = chosen(ZEN4, window, (64, 211))
    assert found.skip
    assert (found.register or ())[1] == 7


@DEVICES
def test_a_matrix_product(device: CpuProfile) -> None:
    found = chosen(device, MATMUL, (1024, 1024), (1024, 1024))
    lanes = device.vector_bits // 32
    assert found.vectorize == (1, lanes)
    rows, vectors, unrolled = found.register or ()
    registers = 16 if device is NARROW else 32
    live = rows * vectors + vectors + 1
    assert registers * 0.7 < live <= registers
    assert (unrolled > 1) == (registers - live >= 2), "several steps at once need registers, too"
    tile = found.tile or ()
    assert tile[1] == vectors * lanes, "one column of register tiles at a time"
    assert (tile[2] or 1024) * tile[1] * 4 <= device.l2_bytes // 2
    assert found.stage is not None and found.stage[1] >= 0, "B is read by many rows"


def test_rows_far_apart_are_copied_before_all_columns() -> None:
    """Where processors look ahead 2 KB and to the end of a page only: each column of register tiles
    would wait for each of its rows."""
    assert chosen(CASCADE_LAKE, MATMUL, (1024, 1024), (1024, 1024)).stage == (-1, 0)
    assert chosen(CASCADE_LAKE, MATMUL, (1000, 1000), (1000, 1001)).stage == (-1, 0)
    assert chosen(CASCADE_LAKE, MATMUL, (1000, 1000), (1000, 400)).stage == (-1, 1), "near"
    images = "float(B, C, P) I, float(F, C) W) -> (O) { O(b, f, p) +=! I(b, c, p) * W(f, c) }"
    assert chosen(CASCADE_LAKE, images, (8, 64, 784), (64, 64)).stage == (2, -1), "one is kept"
    assert chosen(CASCADE_LAKE, MATMUL, (512, 512), (512, 512)).stage == (-1, 1), "kept"
    assert chosen(CASCADE_LAKE, MATMUL, (512, 4096), (4096, 512)).stage == (-1, 2), "short rows"
    assert chosen(ZEN4, MATMUL, (1024, 1024), (1024, 1024)).stage == (-1, 1)


def test_one_column_has_a_panel_for_each_matrix_of_a_batch() -> None:
    """One after the other, near: not all of them before all loops."""
    text = "float(B, M, K) X, float(B, K, N) Y) -> (Z) { Z(b, m, n) +=! X(b, m, k) * Y(b, k, n) }"
    found = chosen(CASCADE_LAKE, text, (40, 200, 200), (40, 200, 48))
    assert (found.tile, found.stage) == ((1, 0, 0, 0), (-1, 1))
    assert not chosen(CASCADE_LAKE, text, (1, 200, 200), (1, 200, 48)).tile


def test_pieces_of_rows_from_far_are_copied_some_pages_at_a_time() -> None:
    """For all panels that have the next pieces, one after the other: partial results wait."""
    text = """float(S, T, P, R) X, float(T, Q, S) W) -> (O) {
        O(p, q, r) +=! X(s, t, p, r) * W(t, q, s) }"""
    found = chosen(CASCADE_LAKE, text, (40, 40, 60, 50), (40, 24, 40))
    assert (found.tile, found.order) == ((1, 0, 0, 1, 0), (3, 0, 2, 4, 1))
    assert found.stage == (2, -1)
    four = """double(B, J, A, I) T, double(J, C, B) V) -> (O) {
        O(a, c, i) +=! T(b, j, a, i) * V(j, c, b) }"""
    for device, points in ((CASCADE_LAKE, 3), (ZEN4, 0)):  # of which the last cache is near
        kept = chosen(device, four, (24, 18, 34, 24), (18, 40, 24))
        assert kept.tile == (1, 0, 0, points, 0), device.name
    near = chosen(CASCADE_LAKE, text, (16, 20, 30, 40), (20, 24, 16))
    assert (near.tile or (0, 0, 0, 0))[3] == 0, "the second cache has most of it"
    many = chosen(CASCADE_LAKE, text, (40, 40, 60, 50), (40, 120, 40))
    assert many.tile and not many.tile[3], "results would come and go"


def test_rows_are_copied_from_end_to_end() -> None:
    options = MappingOptions().tile(0, 64).vectorize(16, 1).stage(-1, 0)
    program = schedule(sized(MATMUL, (96, 80), (80, 256)), options, CASCADE_LAKE)
    first = next(s for k in program.kernels for s in statements(k.body) if isinstance(s, ir.For))
    assert first.loop.fold.dim == "s0.k", "before the columns"


def test_columns_from_the_second_cache_are_narrow() -> None:
    """Six vectors of a column for three rows of products would wait for it."""
    text = MATMUL.replace("float", "double")
    found = chosen(CASCADE_LAKE, text, (512, 512), (512, 512))
    assert found.register == (6, 4, 4)


def test_few_rows_stay_beside_a_column() -> None:
    """Else all rows, 1 MB, come from behind the second cache for each column."""
    assert chosen(CASCADE_LAKE, MATMUL, (128, 2000), (2000, 128)).tile == (0, 64, 512)
    assert chosen(CASCADE_LAKE, MATMUL, (128, 1000), (1000, 128)).tile == (0, 64, 0)


def test_results_of_few_steps_are_stored_in_order() -> None:
    """And not in columns, which would be in 256 pages each."""
    text = "float(D, T) X, float(S, D) W) -> (O) { O(s, t) +=! X(d, t) * W(s, d) }"
    assert chosen(CASCADE_LAKE, text, (32, 4000), (256, 32)).tile == ()
    assert chosen(CASCADE_LAKE, text, (128, 1000), (256, 128)).tile == (0, 64, 0)


@pytest.mark.parametrize("size", [512, 1024, 2048])
def test_rows_far_apart_are_not_read_again_for_each_column(size: int) -> None:
    text = "double(M, K) A, double(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    found = chosen(NARROW, text, (size, size), (size, size))
    assert found.vectorize == (1, 4), "not along m, nor along k, where B would be read across rows"
    assert found.stage is not None and found.stage[1] >= 0


def test_a_large_image_is_not_read_again_for_each_channel() -> None:
    text = """float(N, C, H, W) I, float(F, C, R, S) K) -> (O) {
        O(n, f, h, w) +=! I(n, c, h + r, w + s) * K(f, c, r, s) }"""
    found = chosen(NARROW, text, (8, 64, 56, 56), (64, 64, 3, 3))
    assert found.vectorize == (1, 8), "lanes of channels: few passes over the image"
    assert found.stage == (-1, 0), "the image is read where it is"
    narrow = chosen(NARROW, text.replace("float", "bfloat16"), (8, 64, 56, 56), (64, 64, 3, 3))
    assert narrow.stage == (0, 0), "but converted once"
    few = chosen(NARROW, text, (8, 4, 56, 56), (4, 4, 3, 3))
    assert few.vectorize == (3, 8)


@pytest.mark.parametrize("type_", ["float", "bfloat16"])
def test_columns_are_wider_where_an_image_does_not_stay_in_the_second_cache(type_: str) -> None:
    """It is read anew for each of them."""
    text = f"""{type_}(N, C, H, W) I, {type_}(F, C, R, S) K) -> (O) {{
        O(n, f, h, w) +=! I(n, c, h + r, w + s) * K(f, c, r, s) }}"""
    small = chosen(CASCADE_LAKE, text, (8, 64, 20, 20), (64, 64, 3, 3)).register or ()
    large = chosen(CASCADE_LAKE, text, (8, 64, 56, 56), (64, 64, 3, 3)).register or ()
    assert (small[1], large[1]) == (1, 2)


@pytest.mark.parametrize(("name", "lanes"), [("Zen 4", 8), ("Zen 5", 16)])
def test_vectors_that_a_core_halves_are_shorter_where_they_fill_rows(name: str, lanes: int) -> None:
    device = known_cpus.find(name)
    assert device is not None
    deep = "float(K, M) A, float(K, N) B) -> (C) { C(m, n) +=! A(k, m) * B(k, n) }"
    assert chosen(device, deep, (3000, 18), (3000, 18)).vectorize == (1, lanes)
    assert chosen(device, deep, (3000, 64), (3000, 64)).vectorize == (1, 16)
    rows = "float(M, N) A) -> (C) { C(m) +=! A(m, n) }"
    assert chosen(device, rows, (64, 18)).vectorize != (1, 8), "a row is added up as a whole"


@pytest.mark.parametrize(("name", "lanes"), [("Zen 4", 16), ("Zen 5", 16), ("Sapphire Rapids", 32)])
def test_vectors_of_pixels_are_compared_with_halves(name: str, lanes: int) -> None:
    device = known_cpus.find(name)
    assert device is not None
    frames = """float(F, H, W) I, bool(H, W) Hot) -> (O) { O(f, h, w) = uint16(fmax(Hot(h, w)
        ? 0.25 * (I(f, max(h - 1, 0), w) + I(f, min(h + 1, H - 1), w)
            + I(f, h, max(w - 1, 0)) + I(f, h, min(w + 1, W - 1))) : I(f, h, w), 0)) }"""
    assert chosen(device, frames, (6, 250, 322), (250, 322)).vectorize == (2, lanes)


PRODUCT_OF_ROWS = "float(M, K) A, float(N, K) B) -> (C) { C(m, n) +=! A(m, k) * B(n, k) }"


@pytest.mark.parametrize(("rows", "depth"), [(16, 2048), (16, 4096), (12, 2000)])
def test_few_rows_are_copied_where_others_come_from_memory(rows: int, depth: int) -> None:
    found = chosen(ZEN4, PRODUCT_OF_ROWS, (rows, depth), (8192, depth))
    assert found.vectorize == (0, 16), "along K, each tile would read rows from afar again"
    assert found.stage == (0, -1)


@pytest.mark.parametrize(("rows", "depth"), [(4, 1024), (8, 700), (6, 3072)])
def test_tiles_along_rows_have_many_of_both_operands(rows: int, depth: int) -> None:
    found = chosen(ZEN4, PRODUCT_OF_ROWS, (rows, depth), (1000, depth))
    assert found.vectorize == (2, 16)
    first, second, _ = found.register or ()
    assert min(first, second) >= 3, "or loads take longer than products"
    assert first * second >= 16


@pytest.mark.parametrize(("depth", "most"), [(1024, 8), (1000, 14)])
def test_rows_in_one_place_of_the_first_cache_are_few(depth: int, most: int) -> None:
    found = chosen(ZEN4, PRODUCT_OF_ROWS, (32, depth), (4096, depth))
    assert found.vectorize == (0, 16)
    register = found.register or ()
    assert most // 2 < register[1] <= most


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (
            "float(B, A, X, C) P, float(X, D) Q) -> (R) {"
            " R(c, d, a, b) +=! P(b, a, x, c) * Q(x, d) }",
            ((64, 20, 33, 20), (33, 12)),
        ),
        (
            "double(K, A, M, C) X, double(M, D, K) Y) -> (O) {"
            " O(c, a, d) +=! X(k, a, m, c) * Y(m, d, k) }",
            ((20, 33, 24, 18), (24, 40, 20)),
        ),
    ],
)
def test_results_whose_operands_share_lines_are_next_to_each_other(
    text: str, shapes: tuple[tuple[int, ...], ...]
) -> None:
    """Dimension c: all steps of a sum come to more lines than the first cache has."""
    for device in (WIDE, ZEN4):
        found = chosen(device, text, *shapes)
        lane, _ = found.vectorize or (-1, 1)
        assert lane == 0 or (found.register or ())[0] > 4, found


@DEVICES
def test_an_operand_across_the_lanes_is_copied(device: CpuProfile) -> None:
    found = chosen(device, TRANSPOSED, (128, 512), (512, 512))
    assert found.vectorize is not None and found.vectorize[1] == device.vector_bits // 32
    assert found.stage is not None and found.stage[found.vectorize[0]] >= 0


def test_but_not_if_it_is_read_once() -> None:
    found = chosen(WIDE, TRANSPOSED, (2, 512), (512, 512))
    assert found.vectorize == (2, 16), "dot products need no copy"
    assert not found.stage


@pytest.mark.parametrize("device", [ZEN4, NARROW], ids=lambda d: d.name)
def test_vectors_of_a_whole_line_that_are_read_often_are_copied(device: CpuProfile) -> None:
    """An array that begins within a line has two lines in each of them."""
    blocked = """float(C, H, W, 16) I, float(F, C, 3, 3, 16, 16) K) -> (O) {
        O(f, y, x, k) +=! I(c, y + r, x + s, j) * K(f, c, r, s, j, k) }"""
    found = chosen(device, blocked, (4, 30, 30, 16), (4, 4, 3, 3, 16, 16))
    assert bool(found.stage and found.stage[1] >= 0) == (device is ZEN4)


@pytest.mark.parametrize(("size", "copied"), [(32, False), (64, False), (100, True)])
def test_but_not_matrices_of_a_batch_that_the_first_cache_keeps(size: int, copied: bool) -> None:
    """To copy all of them would read and write behind the second cache what is read there once."""
    text = "float(B, M, K) X, float(B, K, N) Y) -> (Z) { Z(b, m, n) +=! X(b, m, k) * Y(b, k, n) }"
    found = chosen(CASCADE_LAKE, text, (256, size, size), (256, size, size))
    assert bool(found.stage) == copied


def test_register_tiles_do_not_wait_for_what_is_asked_for() -> None:
    """More than 4 rows of two vectors where the processor does not read on by itself."""
    text = "float(B, M, K) X, float(B, K, N) Y) -> (Z) { Z(b, m, n) +=! X(b, m, k) * Y(b, k, n) }"
    rows = [
        (chosen(device, text, (512, 32, 32), (512, 32, 32)).register or ())[1]
        for device in (
            CASCADE_LAKE,
            replace(CASCADE_LAKE, features=f"{CASCADE_LAKE.features},+sse4a"),
        )
    ]
    assert rows[0] >= 8 and rows[1] == 4


@pytest.mark.parametrize("columns", [512, 500])
def test_rows_that_push_each_other_out_of_the_first_cache_are_copied(columns: int) -> None:
    found = chosen(NARROW, MATMUL, (64, 128), (128, columns))
    assert bool(found.stage) == (columns == 512), "only rows of 2 KiB lie in few places of it"


@pytest.mark.parametrize(
    ("channels", "filters", "tile"),
    [
        (64, 64, ()),
        (256, 64, ()),
        (256, 256, (64, 0)),
        (1024, 512, (128, 128)),
        (1024, 32, (0, 512)),
    ],
)
def test_panels_of_a_convolution_stay_in_the_second_cache(
    channels: int, filters: int, tile: tuple[int, ...]
) -> None:
    """All of them, or as many as are multiplied by an image that is read several times."""
    text = """float(N, C, H, W) I, float(F, C, 3, 3) K) -> (O) {
        O(n, f, h, w) +=! I(n, c, h + r, w + s) * K(f, c, r, s) }"""
    found = chosen(ZEN4, text, (4, channels, 30, 30), (filters, channels, 3, 3))
    assert found.vectorize == (1, 16) and found.stage == (-1, sum(map(bool, tile)))
    assert tuple((found.tile or ())[k] for k in (1, 4) if found.tile) == tile


@pytest.mark.parametrize(("channels", "tile"), [(64, (0, 0, 0, 48, 0, 0, 0)), (128, ())])
def test_columns_of_dot_products_stay_in_the_first_cache(
    channels: int, tile: tuple[int, ...]
) -> None:
    """48 filters of 3 x 3 x 64 bytes do."""
    text = """int8(B, H, W, C) X, int8(3, 3, C, K) F) -> (O) {
        O(b, y, x, k) +=! int32(X(b, y + i, x + j, c)) * F(i, j, c, k) }"""
    found = chosen(ZEN4, text, (2, 24, 24, channels), (3, 3, channels, 96))
    assert (found.vectorize, found.tile) == ((3, 16), tile)


def test_short_loops_are_written_out_beside_tiles_that_leave_one_register() -> None:
    text = """float(N, C, H, W) I, float(F, C, 3, 3) K) -> (O) {
        O(n, f, h, w) +=! I(n, c, h + r, w + s) * K(f, c, r, s) }"""
    found = chosen(ZEN3, text, (32, 16, 56, 56), (16, 16, 3, 3))
    assert found.vectorize == (3, 8) and (found.register or ())[6] == 3


def test_lanes_along_rows_of_a_window_keep_planes_in_the_first_cache() -> None:
    """Of 48 channels 16 at a time; of frames that the window goes along, all."""
    text = """float(C, H, W) I, float(F, C, 3, 3) K) -> (O) {
        O(f, h, w) +=! I(c, h + r, w + s) * K(f, c, r, s) }"""
    found = chosen(CASCADE_LAKE, text, (48, 37, 61), (40, 48, 3, 3))
    assert found.vectorize == (2, 16) and not found.stage
    assert found.tile == (0, 0, 0, 16, 0, 0)
    few = chosen(CASCADE_LAKE, text, (8, 37, 61), (40, 8, 3, 3))
    assert few.vectorize == (2, 16) and not few.tile
    average = """float(T, S) Y, float(T, P) X) -> (O) {
        O(s, l, p) +=! Y(t + 14, s) * X(t + l, p) where l in 0:15 }"""
    assert not chosen(CASCADE_LAKE, average, (600, 20), (600, 70)).tile


def test_what_is_read_once_is_read_as_memory_lies() -> None:
    """No column is read again, as the operand with the lanes has all dimensions of results."""
    text = """float(A, B, C) X, float(2) W) -> (O) {
        O(a, b, c) +=! b - k >= 0 ? X(a, b - k, c) * W(k) : 0 where k in 0:2, b in 0:B }"""
    found = chosen(CASCADE_LAKE, text, (9340, 17, 6), (2,))
    assert not found.tile and not found.inner_order


def test_matrices_of_a_batch_that_are_near_are_not_copied() -> None:
    text = "float(B, N, K) X, float(B, K, M) Y) -> (Z) { Z(b, n, m) +=! X(b, n, k) * Y(b, k, m) }"
    near = chosen(NARROW, text, (30, 40, 64), (30, 64, 48))
    assert not near.stage, "each of them is read by ten register tiles at most"


def test_masked_results_are_worked_on_side_by_side() -> None:
    text = """float(C, H, W) I, float(F, C, K, K) A, uint8(F, C) M) -> (O) {
        O(f, h, w) +=! (M(f, c) == 1) ? fmax(0.0, I(c, h + kh, w + kw)) * A(f, c, kh, kw) : 0.0 }"""
    found = chosen(NARROW, text, (16, 20, 20), (16, 16, 3, 3), (16, 16))
    _, rows, vectors, *_ = found.register or ()
    assert found.skip and rows > 1 and rows * vectors >= 8, "rows hide what accumulators wait for"


def test_bins_that_share_what_takes_long_are_all_in_registers() -> None:
    """Nine of them, so that each magnitude is computed once."""
    text = (
        "def f(float(H, W) X, float(H, W) Y) -> (O) {\n"
        "    O(h, k) +=! (k == b) ? sqrt(X(h, w) * X(h, w) + Y(h, w) * Y(h, w)) : 0\n"
        "        where k in 0:9, b = int32(fabs(atan2(X(h, w), Y(h, w))) * 2.86)\n}"
    )
    assert (chosen(WIDE, text, (64, 128), (64, 128)).register or ())[1] == 9


def test_masks_that_are_kept_take_registers() -> None:
    text = """float(C, H, W) I, float(F, C, 3, 3) K) -> (O) {
        O(f, h, w) +=! (w + kw) % 3 != 0 ? I(c, h + kh, w + kw) * K(f, c, kh, kw) : 0 }"""
    found = chosen(NARROW, text, (16, 28, 28), (16, 16, 3, 3))
    rows, _, vectors, *_ = found.register or ()
    assert rows > 1 and rows * vectors + 3 * vectors + 1 <= 16, "operand, mask and weight"


def test_nor_if_it_is_near_and_read_seldom() -> None:
    near = chosen(WIDE, MATMUL, (64, 50), (50, 100))
    assert not near.stage, "rows of memory that all fit into the first cache"
    assert not near.tile or near.tile[2] == 0, "nor does it have to be cut"
    far = chosen(WIDE, MATMUL, (128, 2000), (2000, 1024))
    assert far.stage is not None and far.stage[1] >= 0
    often = chosen(WIDE, MATMUL, (512, 512), (512, 512))
    assert often.stage is not None and often.stage[1] >= 0


@pytest.mark.parametrize(
    ("text", "shapes", "steps"),
    [
        (MATMUL, [(512, 512), (512, 512)], 4),
        (MATMUL, [(512, 74), (74, 512)], 4),
        (MATMUL, [(512, 26), (26, 512)], 2),
        (MATMUL, [(512, 27), (27, 512)], 0),
        (MATMUL, [(512, 6), (6, 512)], 6),
        ("float(M, N) A) -> (S) { S(n) +=! A(m, n) }", [(300, 400)], 0),
        (
            "float(N, D) A, int32(B, L) I) -> (S) { S(b, d) +=! A(I(b, l), d) }",
            [(99, 64), (64, 64)],
            0,
        ),
        (  # the code of as many subscripts is long
            """uint8(H, W) B, int32(K) Dy, int32(K) Dx) -> (S) {
            S(y, x) +=! B((y + Dy(k) + H) % H, (x + Dx(k) + W) % W) where y in 0:H, x in 0:W }""",
            [(400, 501), (6,), (6,)],
            0,
        ),
    ],
)
def test_steps_of_a_reduction_that_are_written_out(
    text: str, shapes: list[tuple[int, ...]], steps: int
) -> None:
    register = chosen(WIDE, text, *shapes).register or (0,)
    assert (register[-1] if register[-1] > 1 else 0) == steps


@DEVICES
def test_sums_of_rows_and_columns(device: CpuProfile) -> None:
    lanes = device.vector_bits // 32
    rows = chosen(device, "float(M, N) A) -> (S) { S(m) +=! A(m, n) }", (300, 400))
    assert rows.vectorize == (1, lanes)
    columns = chosen(device, "float(M, N) A) -> (S) { S(n) +=! A(m, n) }", (300, 400))
    assert columns.vectorize == (0, lanes)
    total = chosen(device, "float(N) A) -> (S) { S +=! A(n) }", (400,))
    assert total.vectorize == (0, lanes)


def test_sums_along_rows_have_accumulators_along_a_row_or_in_several_rows() -> None:
    """Along the row where caches hold the matrix and the row is long enough for the sum of the
    accumulators to count for little; in several rows where memory is read or rows are short."""
    text = "float(M, N) A) -> (S) { S(m) +=! A(m, n) }"
    for columns in (512, 1000, 5000):
        near = chosen(NARROW, text, (256, columns))
        assert (near.tile, near.register) == ((), (0, 6))
    for shape in ((512, 64), (512, 200), (4096, 4096)):
        rows, _ = chosen(NARROW, text, shape).register or ()
        assert rows > 1


@pytest.mark.parametrize(
    ("reduction", "others"),
    [("max=! A(m, n)", ""), ("+=! A(m, n)", ""), ("+=! A(m, n) * X(n)", ", float(N) X")],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_from_memory_are_read_one_by_one_where_processors_read_ahead(
    reduction: str, others: str, threads: int
) -> None:
    text = f"float(M, N) A{others}) -> (S) {{ S(m) {reduction} }}"
    shapes = ((20_000, 3000), (3000,))[: 2 if others else 1]
    for device, alone in ((ZEN4, True), (CASCADE_LAKE, False)):
        found = chosen(replace(device, threads=threads), text, *shapes)
        assert found.vectorize == (1, device.vector_bits // 32)
        rows, _ = found.register or ()
        assert (rows <= 1) == alone


def test_short_pieces_of_rows_are_no_long_row() -> None:
    """What the gradient of a filter adds up lies in rows of 54 elements, in many images."""
    text = """float(N, F, P, Q) G, float(N, C, H, W) I) -> (K) {
        K(f, c, r, s) +=! G(n, f, p, q) * I(n, c, p + r, q + s) where r in 0:3, s in 0:3 }"""
    found = chosen(
        replace(NARROW, l3_bytes=32 << 20, threads=1), text, (32, 16, 54, 54), (32, 16, 56, 56)
    )
    assert found.vectorize == (0, 8), "lanes of filters, not along a row"


@DEVICES
def test_few_rows_of_a_column_sum_are_read_side_by_side(device: CpuProfile) -> None:
    text = "float(M, N) A) -> (S) { S(n) +=! A(m, n) }"
    found = chosen(device, text, (300, 4096))
    assert (found.tile, found.order) == ((0, 8), (1, 0))
    vectors = (found.register or (1,))[0]
    assert vectors & (vectors - 1) == 0, "whole pairs of lines"
    assert chosen(device, text, (8, 4096)).tile == ()
    whole = chosen(device, text, (300, 6 * device.vector_bits // 32))
    assert (whole.register or ())[0] == 6
    assert whole.tile == (), "tiles of a register read whole rows in the order of memory"


@pytest.mark.parametrize(
    ("shape", "rows"), [((300, 3600), 16), ((300, 4096), 8), ((9000, 3600), 8)]
)
def test_more_rows_are_read_side_by_side_from_caches(shape: tuple[int, int], rows: int) -> None:
    """Unless their lines lie in the same places of the first cache."""
    found = chosen(ZEN4, "float(M, N) A) -> (S) { S(n) +=! A(m, n) }", shape)
    assert found.tile == (0, rows)


@pytest.mark.parametrize(
    ("op", "shape", "piece"),
    [
        *(("+=!", (1500, 1500), 10), ("+=!", (4000, 1000), None)),
        *(("max=!", (2000, 333), 7), ("max=!", (90, 130), 9), ("max=!", (9000, 600), None)),
    ],
)
def test_reductions_of_columns_share_a_pass_where_caches_keep_it(
    op: str, shape: tuple[int, int], piece: int | None
) -> None:
    """In pieces of rows of one length, as long as registers hold what is kept."""
    text = f"def f(float(M, N) A) -> (S, Q) {{ S(n) {op} A(m, n) Q(n) {op} A(m, n) * A(m, n) }}"
    first, _ = plan_cpu(lower(sized(text, shape)), MappingOptions("mlp"), ZEN4).options.values()
    assert (first.tile or first.register) == ((0, 8) if piece is None else (piece, 0))
    first, _ = plan_cpu(lower(sized(text, shape)), MappingOptions("mlp"), NARROW).options.values()
    assert first.tile or (first.register or (7,))[0] <= 6, "half as many registers"


def test_rows_from_memory_that_one_tile_reads_come_a_few_at_a_time() -> None:
    text = """def f(uint32(B, N, L) D, uint32(N, L, M) K) -> (O) {
        O(b, m) +=! D(b, n, l) * K(n, l, m)
    }"""
    found = chosen(ZEN4, text, (3, 1024, 8), (1024, 8, 631))
    assert found.register == (3, 6, 0, 0), "all rows of results"
    assert (found.tile, found.order) == ((0, 0, 1, 0), (2, 3, 0, 1))


@pytest.mark.parametrize(("shape", "steps"), [((20, 600), 16), ((20, 6000), 1), ((90, 400), 8)])
def test_rows_of_all_inner_steps_count_where_long_ones_come_from_memory(
    shape: tuple[int, int], steps: int
) -> None:
    text = "float(I, J, N) A, float(J, I) W) -> (S) { S(n) +=! A(i, j, n) * W(j, i) }"
    size, columns = shape
    assert chosen(ZEN4, text, (size, size, columns), (size, size)).tile == (0, steps, 0)


def test_rows_that_lanes_read_apart_are_not_torn() -> None:
    text = """float(I, J, K) T, float(J, R) B, float(K, R) C) -> (M) {
        M(i, r) +=! T(i, j, k) * B(j, r) * C(k, r) }"""
    found = chosen(ZEN4, text, (120, 101, 130), (101, 20), (130, 20))
    assert found.vectorize == (0, 8)
    assert found.tile == (64, 0, 16, 0), "pieces of the first sum"


@DEVICES
def test_rows_that_data_decides_are_added_while_they_are_near(device: CpuProfile) -> None:
    text = "float(E, D) T, int32(B, L) I) -> (O) { O(b, d) +=! T(I(b, l), d) }"
    few = chosen(device, text, (100_000, 64), (128, 50))
    assert (few.tile, few.order) == ((), ())
    many = chosen(device, text, (100_000, 256), (4, 5000))
    assert (many.tile, many.order) == ((0, 0, device.l1_bytes // 2048), (2, 0, 1))


def test_lanes_go_where_memory_is_in_order() -> None:
    text = "float(M, N) A) -> (O) { O(n, m) = A(m, n) + A(m, n + 1) + A(m, n + 2) where n in 0:62 }"
    assert chosen(WIDE, text, (64, 64)).vectorize == (0, 16)


def test_a_group_with_few_channels() -> None:
    text = """float(N, G, C, H, W) I, float(G, F, C, R, S) K) -> (O) {
        O(n, g, f, h, w) +=! I(n, g, c, h + r, w + s) * K(g, f, c, r, s) }"""
    found = chosen(WIDE, text, (4, 4, 4, 18, 34), (4, 4, 4, 3, 3))
    assert found.vectorize == (4, 16)
    register = found.register or ()
    assert register[2] == 4, "each of the 4 output channels reads the same vectors"


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("float(M) A) -> (S) { S +=! A(m) }", [(0,)]),
        ("float(M) A) -> (S) { S +=! A(m) }", [(1,)]),
        (MATMUL, [(1, 1), (1, 1)]),
        (MATMUL, [(0, 4), (4, 3)]),
        ("float A) -> (S) { S = A }", [()]),
        ("double(M, K) A, double(K, N) B) -> (C) { C(m, n) max=! A(m, k) * B(k, n) }",
         [(7, 90), (90, 13)]),
        ("float(N) L, int32(M) I) -> (O) { O(m, k) +=! L(I(j)) where m in 0:5, k in 0:20 }",
         [(9,), (12,)]),
    ],
)  # fmt: skip
@DEVICES
def test_odd_nests(device: CpuProfile, text: str, shapes: list[tuple[int, ...]]) -> None:
    chosen(device, text, *shapes)


@pytest.mark.parametrize("shapes", [[(64, 0), (64, 0)], [(64, 0), (0, 64)], [(0, 9), (9, 8)]])
@DEVICES
def test_threads_that_have_nothing_to_do(device: CpuProfile, shapes: list[tuple[int, ...]]) -> None:
    text = MATMUL if shapes[0] != shapes[1] else TRANSPOSED
    chosen(replace(device, threads=2), text, *shapes)


def test_choosing_takes_little_time() -> None:
    text = """float(N, G, C, H, W) I, float(G, F, C, R, S) K) -> (O) {
        O(n, g, f, h, w) +=! I(n, g, c, h + r, w + s) * K(g, f, c, r, s) }"""
    program = lower(sized(text, (4, 4, 8, 18, 34), (4, 8, 8, 3, 3)))
    # Some tenths of a second.
    assert steps(lambda: heuristic(program, program.nests[0], WIDE)) < 600_000


def test_register_tiles_are_few_where_dimensions_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of two dimensions are tried for the most promising dimensions only."""
    asked: list[str | None] = []

    def counted(core: Core, lane: str | None, sizes: Mapping[str, int]) -> TileParts:
        asked.append(lane)
        return tile_parts(core, lane, sizes)

    monkeypatch.setattr(register_tiles, "tile_parts", counted)
    counts = []
    for dims in (8, 16):
        asked.clear()
        text = growth.window(dims)
        chosen(NARROW, text.source, *text.shapes.values())
        counts.append(len(asked))
    assert counts[0] < counts[1] < 2 * counts[0]


@pytest.mark.parametrize("text", [MATMUL, growth.window(6).source], ids=["matmul", "window"])
def test_tiles_that_are_left_early_are_not_the_best(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left off takes more than the limit, and the choice is that of no limits."""
    shapes = [(60, 50), (50, 70)] if text == MATMUL else [*growth.window(6).shapes.values()]
    device = known_cpus.find("zen 4")  # which tries vectors of half the length, too
    assert device is not None
    left = []

    def whole(core: Core, lane: str | None, sizes: Mapping[str, int], *limits: Any) -> float:
        found = nest_cycles(core, lane, sizes)
        if nest_cycles(core, lane, sizes, *limits) != found:
            left.append(found - limits[0])
        return found

    quick = chosen(device, text, *shapes)
    monkeypatch.setattr(register_tiles, "nest_cycles", whole)
    register_tiles.searched.cache_clear()
    assert chosen(device, text, *shapes) == quick
    assert left and min(left) > 0


def test_a_point_that_reads_more_than_there_are_registers() -> None:
    reads = " * ".join(f"A{k}(i, j)" for k in range(40))
    inputs = ", ".join(f"float(N, M) A{k}" for k in range(40))
    arrays = [np.full((3, 20), 1 + k / 64, np.float32) for k in range(40)]
    found = tcl.define(f"def f({inputs}) -> (O) {{ O(i) +=! {reads} }}").f(*arrays)
    np.testing.assert_allclose(found, np.prod(arrays, axis=0).sum(1), rtol=1e-5)


def test_rows_that_come_from_behind_the_second_cache_are_read_seldom() -> None:
    """Each column of register tiles goes through all rows: it is wider, if these are far."""
    near = chosen(NARROW, MATMUL, (100, 1024), (1024, 1024))
    far = chosen(NARROW, MATMUL, (2048, 1024), (1024, 1024))
    assert (near.register or ())[1] == 2
    assert (far.register or ())[1] == 3
    assert (far.tile or ())[1] == 24


def test_chunks_are_as_long_as_what_all_of_them_read_deserves() -> None:
    """Of a small second cache they fill half, of a large one a quarter."""
    text = """float(B, S, D) Q, float(B, S, D) K) -> (P, Score, Total) {
        Score(b, i, j) +=! Q(b, i, d) * K(b, j, d)
        Total(b, i) +=! exp(Score(b, i, j))
        P(b, i, j) = exp(Score(b, i, j)) / Total(b, i)
    }"""
    program = lower(sized(text, (8, 256, 64), (8, 256, 64)))
    for device, rows in ((NARROW, 64), (WIDE, 128)):
        assert grouping(program, replace(device, threads=1))["s0"].chunk == (1, rows, 0, 0)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (
            "float(M, K) A, float(K, N) B) -> (C, S) { C(m, n) +=! A(m, k) * B(k, n)\n"
            "S(m) +=! C(m, n) }",
            [(350, 200), (200, 410)],
        ),
        (
            "int16(T, N) X, float(T, 2) G) -> (Y, Most) { Y(n, c) +=! float(X(t, n)) * G(t, c)\n"
            "Most(c, k) max=! Y(480 * k + i, c) where i in 0:480 }",
            [(24, 9637), (24, 2)],
        ),
    ],
    ids=["sums of rows", "maxima per channel"],
)
def test_chunks_do_not_keep_rows_from_sharing_what_they_read(
    text: str, shapes: list[tuple[int, ...]]
) -> None:
    """Else each row of A reads all of B, each channel all of X."""
    program = lower(sized(text, *shapes))
    found = heuristic(program, program.nests[0], ZEN4)
    chunk = (grouping(program, ZEN4).get("s0") or NestOptions()).chunk or (0, 0, 0)
    for dim, size in zip(program.nests[0].dims, chunk, strict=True):
        assert not size or size >= (found.register or ())[program.nests[0].dims.index(dim)]


@pytest.mark.parametrize(
    ("text", "shapes", "divided"),
    [
        # Of 65, 70 and 96 points only the last are 8 equal chunks: of 12, in lines of 16.
        ("""float(X, Y, Z) H, uint8(X, Y, Z) I, float(M) T) -> (O) {
            O(x, y, z) = h + T(I(x, y, z)) * (H(max(x - 1, 0), y, z) + H(min(x + 1, X - 1), y, z)
                + H(x, max(y - 1, 0), z) + H(x, min(y + 1, Y - 1), z)
                + H(x, y, max(z - 1, 0)) + H(x, y, min(z + 1, Z - 1)) - 6 * h)
                where h = H(x, y, z) }""", [(65, 70, 96), (65, 70, 96), (5,)], "s0.x"),
        # Chunks of columns would divide each of 1000 rows of 240 bytes.
        ("""double(T, D) X) -> (int32(T, D) L, O, int32(D) F) {
            L(t, d) max=! (s <= t) ? (X(s, d) == X(s, d) ? s : -1) : -2147483648 where t in 0:T
            O(t, d) = L(t, d) >= 0 && t - L(t, d) <= 20 ? X(L(t, d), d) : X(t, d)
            F(d) +=! X(t, d) != X(t, d) && O(t, d) == O(t, d) }""", [(1000, 30)], "s1.t"),
    ],
)  # fmt: skip
def test_what_one_thread_writes_lies_together(
    text: str, shapes: list[tuple[int, ...]], divided: str
) -> None:
    """In whole lines."""
    program = lower(sized(text, *shapes))
    found = plan_cpu(program, MappingOptions("mlp"), replace(ZEN4, threads=2))
    name, _ = divided.split(".")
    sizes = zip(program.nest(name).dims, found.options[name].chunk or (), strict=False)
    assert [dim.name for dim, size in sizes if size] == [divided]


@pytest.mark.parametrize(
    ("text", "shapes", "nest", "whole"),
    [
        # Each row of X is 40 channels, which both threads would read.
        (
            "float(N, T, H, W, C) X) -> (Y) "
            "{ Y(n, c, t, y, x) +=! X(n, t, 2 * y + i, 2 * x + j, c) where i in 0:2, j in 0:2 }",
            [(3, 7, 46, 58, 40)], "s0", "c",
        ),
        # Stations are neighbours in memory: each day's row would be divided.
        (
            "float(Y, D, S) Low, int16(S) First) -> (Frost) "
            "{ Frost(s, y) +=! d >= First(s) && Low(y, d, s) < 0 }",
            [(12, 365, 397), (397,)], "s0", "s",
        ),
        # All layers of a point are read by the thread that adds them up.
        (
            "float(T, H) X, float(H, W) V) -> (Y, S) "
            "{ Y(t, y, x) = X(t, y) * V(y, x)\nS(y, x) +=! exp(Y(t, y, x)) }",
            [(61, 72), (72, 96)], "s0", "t",
        ),
    ],
    ids=["channels", "rows", "layers"],
)  # fmt: skip
def test_threads_fetch_little_of_what_others_have(
    text: str, shapes: list[tuple[int, ...]], nest: str, whole: str
) -> None:
    """They divide dimensions along which rows stay whole, and a later nest reads its own part."""
    program = lower(sized(text, *shapes))
    found = plan_cpu(program, MappingOptions("mlp"), replace(ZEN4, threads=2))
    sizes = zip(program.nest(nest).dims, found.options[nest].chunk or (), strict=True)
    divided = [dim.name for dim, size in sizes if size]
    assert divided and f"{nest}.{whole}" not in divided


def test_chunks_of_few_sums_do_not_tear_the_rows_that_are_made_of_them() -> None:
    """Columns one by one would read and write each line of X and O for each of its elements."""
    text = (
        "int32(N) B, float(N, D) X) -> (float(50, D) V, O) { V(B(n), d) +=! X(n, d) * X(n, d)\n"
        "O(n, d) = X(n, d) * rsqrt(V(B(n), d) + 1e-5) }"
    )
    program = lower(sized(text, (6007,), (6007, 13)))
    found = plan_cpu(program, MappingOptions("mlp"), ZEN4).options["s1"]
    assert not found.chunk and found.vectorize == (1, 16)


@pytest.mark.parametrize(("features", "lane"), [(33, 0), (1024, 1)])
def test_rows_that_data_select_alike_are_lanes_if_the_first_cache_holds_them(
    features: int, lane: int
) -> None:
    text = """float(N, F) X, uint8(T, 6) Feature, float(T, 6) Border) -> (Y) {
        Y(n, t) +=! X(n, Feature(t, d)) > Border(t, d)
    }"""
    program = lower(sized(text, (700, features), (90, 6), (90, 6)))
    found = heuristic(program, program.nests[0], ZEN4)
    assert (found.vectorize or (-1, 1))[0] == lane


def test_rows_that_one_vector_would_hold_are_done_in_two_halves() -> None:
    """Fewer vectors lie in two lines then; where vectors are whole, nothing is gained."""
    text = """double(N, K) D, double(N, K) X) -> (Y) {
        Y(n, k) = D(n, k) * X(n, k) + (k > 0 ? X(n, k - 1) : 0) + (k < K - 1 ? X(n, k + 1) : 0)
    }"""
    for columns, lanes in ((5, 4), (8, 8), (16, 8)):
        program = lower(sized(text, (2048, columns), (2048, columns)))
        assert heuristic(program, program.nests[0], ZEN4).vectorize == (1, lanes)


def test_rows_of_results_are_done_together_that_share_two_of_three_rows_they_read() -> None:
    text = """uint16(H, W) Raw) -> (uint16(H, W) O) {
        O(y, x) = (y + x) % 2 == 1 ? Raw(y, x) : uint16((up + down + before + after + 2) / 4)
            where y in 0:H, x in 0:W,
                  up = int32(Raw(max(y - 1, 0), x)), down = int32(Raw(min(y + 1, H - 1), x)),
                  before = int32(Raw(y, max(x - 1, 0))), after = int32(Raw(y, min(x + 1, W - 1)))
    }"""
    found = chosen(ZEN4, text, (720, 1279))
    assert found.vectorize == (1, 16) and (found.register or (1,))[0] > 1


def test_a_few_steps_are_written_out_if_what_they_share_fits() -> None:
    """A window of three along a row reads each element of the row three times."""
    text = (
        "float(G, C, H, W) I, float(G, F, C, 3, 3) W1) -> (O) "
        "{ O(g, f, h, w) +=! I(g, c, h + kh, w + kw) * W1(g, f, c, kh, kw) }"
    )
    for extent, channels in ((56, 4), (20, 8)):
        image, filters = (32, channels, extent, extent), (32, channels, channels, 3, 3)
        wide, narrow = (chosen(device, text, image, filters) for device in (WIDE, NARROW))
        assert (wide.register or ())[6:] == (3,)
        written_out = (narrow.register or ())[6:] == (3,)
        assert written_out == (channels == 4), "its lanes go along rows, and share nothing"


def test_what_steps_of_a_window_share_is_read_once() -> None:
    text = """float(N, C, H, W) I, float(F, C, 3, 3) K) -> (O) {
        O(n, f, h, w) +=! I(n, c, h + r, w + s) * K(f, c, r, s) }"""
    found = chosen(ZEN4, text, (32, 8, 28, 28), (8, 8, 3, 3))
    assert found.vectorize == (1, 8), "26 places of a row fill no vectors, 8 channels do"
    assert found.register == (0, 1, 0, 13, 0, 0, 3), "15 places are read for 39 products"
    largest = chosen(ZEN4, text.replace("+=!", "max=!"), (32, 8, 28, 28), (8, 8, 3, 3))
    assert largest.register != found.register, "what is read is overwritten"


@pytest.mark.parametrize(
    ("name", "bin_", "lanes"),
    [
        ("Cascade Lake", "int32(X(n))", 8),
        ("Cascade Lake", "int32(log2(X(n)))", 16),
        ("Sapphire Rapids", "int32(X(n))", 16),
    ],
)
def test_updates_one_by_one_run_at_the_full_clock(name: str, bin_: str, lanes: int) -> None:
    """Vectors of 512 bits beside them would lower it, if nothing needs these."""
    device = known_cpus.find(name)
    assert device is not None
    text = f"float(N) X) -> (int32(256) H) {{ H(b) +=! 1 where b = {bin_} }}"
    plan = plan_cpu(lower(sized(text, (50_000,))), DEFAULT, replace(device, threads=1))
    widths = [o.vectorize[1] for o in plan.options.values() if o.vectorize]
    assert max(widths) == lanes


@pytest.mark.parametrize(("classes", "vectors"), [(3, 2), (6, 2), (9, 1)])
def test_rows_of_few_results_are_transposed_two_vectors_at_a_time(
    classes: int, vectors: int
) -> None:
    """As many as registers hold beside the sums, before and after that."""
    found = chosen(CASCADE_LAKE, TRANSPOSED, (4000, 64), (classes, 64))
    assert found.vectorize == (0, 16) and found.register == (vectors, classes, 4)


def test_few_rows_of_short_numbers_are_transposed_one_vector_at_a_time() -> None:
    text = """float(M, D) Q, float16(T, D) K) -> (S) {
        S(m, t) +=! Q(m, d) * float(K(t, d)) }"""
    assert chosen(CASCADE_LAKE, text, (3, 64), (600, 64)).register == (3, 1, 8)


@pytest.mark.parametrize(("apart", "steps"), [(1, 8), (2, 8), (30, 0)])
def test_steps_that_share_what_they_read_with_other_rows_are_written_out(
    apart: int, steps: int
) -> None:
    """A filter along time of four channels."""
    text = f"""float(T, 4) X, float(4, K) W) -> (O) {{
        O(t, c) +=! X(t + {apart} * k, c) * W(c, k) }}"""
    found = chosen(CASCADE_LAKE, text, (16000, 4), (4, 24))
    assert found.vectorize == (1, 4)
    register = found.register or ()
    assert register[0] > 4
    assert [n for n in register[2:] if n > 1] == ([steps] if steps else [])


@pytest.mark.parametrize("apart", [1, 2, 3])
def test_a_window_that_registers_cannot_keep_is_not_written_out(apart: int) -> None:
    """Steps of a dilated window come to the same elements, too, if some steps later."""
    text = f"""float(N, C, H, W) I, float(F, C, 3, 3) K) -> (O) {{
        O(n, f, h, w) +=! I(n, c, h + {apart} * i, w + {apart} * j) * K(f, c, i, j) }}"""
    found = chosen(ZEN4, text, (4, 24, 42 + 2 * apart, 42 + 2 * apart), (32, 24, 3, 3))
    assert found.vectorize == (1, 16)
    assert (found.register or ())[6:] in ((), (0,))


def pooled(device: CpuProfile, by: int, value: str, op: str) -> NestOptions:
    """The choices for windows of 3x3 that lie so many points apart."""
    extent = 24 * by + 2
    text = f"""float(B, C, H, W) I) -> (O) {{
        O(b, c, h, w) {op}=! {value.replace("I", f"I(b, c, {by} * h + kh, {by} * w + kw)")}
        where kh in 0:3, kw in 0:3 }}"""
    return chosen(device, text, (2, 16, extent, extent))


@pytest.mark.parametrize("device", [WIDE, NARROW], ids=lambda d: d.name)
def test_windows_a_few_apart_have_lanes_where_the_arithmetic_is_slow(device: CpuProfile) -> None:
    lanes = device.vector_bits // 32
    assert pooled(device, 2, "9 / I", "+").vectorize == (3, lanes), "divisions"
    assert pooled(device, 2, "I", "max").vectorize == (3, lanes), "NaN stays NaN"
    assert pooled(device, 3, "I", "max").vectorize == (3, lanes)


@pytest.mark.parametrize(("apart", "written_out"), [(1, 3), (2, 2), (3, 3)])
def test_steps_between_two_lanes_are_written_out_together(apart: int, written_out: int) -> None:
    found = pooled(WIDE, apart, "9 / I", "+")
    assert found.vectorize is not None and found.vectorize[0] == 3
    assert (found.register or ())[5] == written_out


@pytest.mark.parametrize(
    ("text", "shapes", "lane", "tile"),
    [
        (
            """float(H, W) A, float(H, W) B) -> (O) { O(y, x, c) = c == 0 ? A(y, x) + B(y, x)
            : c == 1 ? A(y, x) - B(y, x) : c < 4 ? A(y, x) : 3 * B(y, x) where c in 0:6 }""",
            [(60, 320), (60, 320)],
            (1, 16),
            {2: 6},
        ),
        (
            """double(N, C, W) I, double(C, F, 2) K) -> (O) {
            O(n, f, w, b) +=! I(n, c, w) * K(c, f, b) }""",
            [(6, 12, 36), (12, 12, 2)],
            (2, 8),
            {3: 2},
        ),
        (
            """uint8(H, W, 4) I) -> (O) {
            O(y, x, c) = I(y, x / 2, c == 0 ? 2 * (x % 2) : 2 * c - 1) where x in 0:2 * W, c in 0:3
            }""",
            [(60, 320, 4)],
            (1, 32),
            {2: 3},
        ),
        (
            """float(D) F) -> (O) {
            O(d, n, c) = c == 0 ? cos(n * F(d)) : sin(n * F(d)) where n in 0:512, c in 0:2 }""",
            [(40,)],
            (1, 16),
            {2: 2},
        ),
        (
            """float(N) X, float(N) Y, float(N) Z) -> (O) { O(n, k) = k == 0 ? 0.3 : k == 1 ? Y(n)
            : k == 2 ? Z(n) : k == 3 ? X(n) : k == 4 ? X(n) * Y(n) : k == 5 ? Y(n) * Z(n)
            : k == 6 ? 3 * Z(n) * Z(n) - 1 : k == 7 ? X(n) * Z(n) : X(n) * X(n) - Y(n) * Y(n)
            where k in 0:9 }""",
            [(900,), (900,), (900,)],
            (0, 16),
            {1: 9},
        ),
    ],
    ids=["planes", "products", "bytes of two pixels", "waves", "conditions of more"],
)
def test_results_between_two_lanes_are_written_together(
    text: str, shapes: list[tuple[int, ...]], lane: tuple[int, int], tile: dict[int, int]
) -> None:
    """Without all of them, each lane would be written on its own."""
    found = chosen(CASCADE_LAKE, text, *shapes)
    assert found.vectorize == lane
    assert {d: (found.register or ())[d] for d in tile} == tile


@pytest.mark.parametrize(("times", "rows"), [(2, 2), (1, 0)])
def test_pixels_of_rows_that_read_the_same_are_written_in_pairs(times: int, rows: int) -> None:
    text = f"""float(H, W, 4) I) -> (O) {{
        O(y, x, c) = (1 - v) * ((1 - u) * I(q, p, c) + u * I(q, p + 1, c))
            + v * ((1 - u) * I(q + 1, p, c) + u * I(q + 1, p + 1, c))
            where y in 0:{times} * (H - 1), x in 0:2 * (W - 1), q = y / {times}, p = x / 2,
            v = (y % {times} + 0.5) / {times}, u = (x % 2 + 0.5) / 2 }}"""
    found = chosen(CASCADE_LAKE, text, (100, 150, 4))
    assert (found.vectorize, found.register) == ((1, 16), (rows, 0, 4))


@pytest.mark.parametrize(
    ("value", "device", "rows"),
    [
        ("A(i) * B(j)", CASCADE_LAKE, 0),
        ("A(i) * B(j)", ZEN4, 2),
        ("A(i) / (1 + sqrt(B(j)))", CASCADE_LAKE, 4),
    ],
)
def test_stores_of_whole_lines_go_along_one_row(value: str, device: CpuProfile, rows: int) -> None:
    """Each lies in two lines; not where rows share much more than that takes."""
    text = f"float(M) A, float(N) B) -> (O) {{ O(i, j) = {value} }}"
    assert (chosen(device, text, (300,), (330,)).register or (0,))[0] == rows


def test_vectors_that_are_put_together_take_twice_as_long_where_a_core_halves_them() -> None:
    """21 results fill three vectors of 8 better than two of 16."""
    text = """float(C, H, W) I) -> (O) {
        O(c, h, w) +=! I(c, 3 * h + i, 3 * w + j) where i in 0:3, j in 0:3 }"""
    assert chosen(ZEN4, text, (50, 63, 63)).vectorize == (2, 8)


def test_lanes_beside_heavy_arithmetic_go_along_rows() -> None:
    """Lanes across rows would be put together by the units that compute ``exp``."""
    found = chosen(ZEN4, "float(P, T) L) -> (M) { M(p) +=! exp(L(p, t)) }", (64, 61))
    assert found.vectorize == (1, 16)


def test_windows_far_apart_are_transposed_for_a_sum() -> None:
    found = pooled(NARROW, 7, "I", "+")
    assert found.vectorize == (3, 8)
    assert (found.register or ())[5] == 3, "the row of a window, which lies in memory in order"


def test_pieces_of_rows_are_the_better_power_of_two() -> None:
    """Of windows along rows, three vectors wait for the accumulators less than two; four do as
    well."""
    text = """double(S, T) P, double(S, T) M) -> (V) {
        V(s, t) +=! (P(s, t + k) - M(s, t)) * (P(s, t + k) - M(s, t))
            where k in 0:20, t in 0:T - 19 }"""
    assert chosen(ZEN3, text, (200, 1000), (200, 1000)).register == (0, 4, 0)


@pytest.mark.parametrize(("condition", "vectors"), [("k < m", 6), ("m < 40", 3)])
def test_loops_that_end_elsewhere_each_time_have_more_vectors_inside(
    condition: str, vectors: int
) -> None:
    text = f"""float(M, X) F) -> (S) {{
        S(x) +=! {condition} ? fabs(F(m, x) - F(k, x)) : 0 where k in 0:M }}"""
    assert (chosen(ZEN3, text, (21, 144)).register or ())[0] == vectors


def test_rows_of_five_or_seven_vectors_are_read_once() -> None:
    text = "float(T, P) X, float(P) M) -> (W) { W(p) +=! (X(t, p) - M(p)) / 3 }"
    assert chosen(ZEN3, text, (4000, 53), (53,)).register == (7, 0)


STENCIL = "float(M, N) A) -> (B) { B(i, j) = A(i, j) + A(i + 1, j) + A(i + 2, j) + A(i, j + 1) }"


def test_windows_that_overlap_are_read_once_by_several_rows() -> None:
    near = chosen(NARROW, STENCIL, (402, 401))
    assert near.register and near.register[0] >= 2, "two rows read four, and not six"
    alone = chosen(NARROW, "float(M, N) A) -> (B) { B(i, j) = A(i, j) + 1.0 }", (400, 400))
    assert not any(alone.register or ()), "nothing that rows could share"


def test_but_not_where_memory_takes_longer() -> None:
    assert not any(chosen(NARROW, STENCIL, (4098, 4097)).register or ())


@pytest.mark.parametrize(("rows", "tile"), [(100, 10), (1200, 0)])
def test_sums_of_neighbours_from_afar_are_done_row_after_row(rows: int, tile: int) -> None:
    """Rows that share what they read pay where the second cache has it."""
    text = "float(A, B) X, float(2, B) W) -> (O) { O(a, b) +=! X(a + k, b) * W(k, b) }"
    found = chosen(CASCADE_LAKE, text, (rows, 616), (2, 616))
    assert found.register == (tile, 1, 2)


def test_but_not_where_the_core_takes_longer_than_the_last_cache() -> None:
    text = """float(N, H, W, C) I) -> (O) {
        O(n, h, w, c) max=! I(n, h + i, w + j, c) where i in 0:3, j in 0:3 }"""
    measured = MeasuredMemory(14980125, 1.05, 23724032, 7.99)
    found = chosen(replace(ZEN4, memory=measured), text, (4, 60, 60, 64))
    assert found.register == (0, 2, 2, 1, 3, 3)


@pytest.mark.parametrize(("depth", "rows"), [(400, 64), (40, 640)])
def test_planes_that_the_second_cache_loses_are_read_once_by_several(depth: int, rows: int) -> None:
    """Seven reads of three planes: of 64 rows each is still near, of 640 it is not."""
    heat = """float(Z, Y, X) A) -> (B) { B(z, y, x) = A(z, y + 1, x + 1) + A(z + 2, y + 1, x + 1)
        + A(z + 1, y, x + 1) + A(z + 1, y + 2, x + 1) + A(z + 1, y + 1, x)
        + A(z + 1, y + 1, x + 2) - 6 * A(z + 1, y + 1, x + 1) }"""
    found = chosen(replace(CASCADE_LAKE, vector_bits=256), heat, (depth, rows, 800))
    assert ((found.register or (0,))[0] > 1) == (rows == 640)


@pytest.mark.parametrize("size", [28, 1000, 4000])
@pytest.mark.parametrize("device", [NARROW, WIDE])
def test_what_is_transposed_is_read_or_written_in_rows(device: CpuProfile, size: int) -> None:
    """Lanes go along one dimension, and several points along the other, whichever of both."""
    found = chosen(device, "float(M, N) A) -> (C) { C(n, m) = A(m, n) }", (size, size))
    assert found.vectorize and found.register, found
    lane, _ = found.vectorize
    assert lane in (0, 1) and found.register[1 - lane] in (4, 8)


@pytest.mark.parametrize(("columns", "order"), [(2100, (1, 0)), (64, ())])
def test_rows_of_lines_that_the_first_cache_loses_are_read_on(
    columns: int, order: tuple[int, ...]
) -> None:
    """Each of 64 lanes reads 8 bytes of its line: with the next 8 before other lanes come, if
    these have more lines than the first cache."""
    found = chosen(ZEN4, "uint8(M, N) A) -> (C) { C(n, m) = A(m, n) }", (columns, 1300))
    assert found.vectorize == (1, 64)
    assert found.inner_order == order


@pytest.mark.parametrize(
    ("type_", "lanes", "rows"),
    [("int8", 64, 16), ("int16", 32, 16), ("float", 16, 8), ("double", 8, 4)],
)
def test_pieces_of_rows_are_read_and_whole_vectors_written(
    type_: str, lanes: int, rows: int
) -> None:
    """Pieces of 32 bytes, but for the shortest numbers, of which as many as 16 vectors take."""
    text = f"{type_}(M, N) A) -> ({type_}(N, M) C) {{ C(n, m) = A(m, n) }}"
    found = chosen(ZEN4, text, (1000, 1200))
    assert (found.vectorize, found.register) == ((1, lanes), (rows, 4))
    assert found.inner_order == (1, 0), "a second cache has the lines that two vectors share"
    assert not chosen(ZEN4, text, (1001, 20000)).inner_order, "where they are too many"


@pytest.mark.parametrize(("columns", "vectors"), [(1000, 4), (40, 3), (16, 0)])
@pytest.mark.parametrize("device", [ZEN4, CASCADE_LAKE], ids=lambda d: d.title)
def test_several_vectors_of_a_row_are_put_together(
    device: CpuProfile, columns: int, vectors: int
) -> None:
    """Two vectors of a row share a line, which stores of both wait for."""
    found = chosen(device, "float(M, N) A) -> (C) { C(n, m) = A(m, n) }", (columns, 1200))
    assert (found.vectorize, found.register) == ((1, 16), (8, vectors))


def test_rows_of_filters_are_transposed_where_lanes_along_them_are_halves() -> None:
    """54 results in a row fill seven halves, or four vectors and a part; 16 filters fill one."""
    text = """float(N, C, H, W) I, float(F, C, R, S) K) -> (O) {
        O(n, f, h, w) +=! I(n, c, h + r, w + s) * K(f, c, r, s) }"""
    found = chosen(ZEN4, text, (32, 16, 56, 56), (16, 16, 3, 3))
    assert (found.vectorize, found.register) == ((1, 16), (0, 1, 2, 8, 0, 0, 0))


def test_lanes_share_no_element_that_data_decide_whether_to_read() -> None:
    """Each one for all lanes is asked for by itself."""
    text = """float(C, H, W) X, uint8(H, W) Known, float(K, C, 3, 3) F) -> (O) {
        O(k, y, x) +=! u >= 0 && u < H && v >= 0 && v < W && Known(u, v) != 0
            ? X(c, u, v) * F(k, c, i, j) : 0
            where y in 0:H, x in 0:W, u = y + i - 1, v = x + j - 1 }"""
    found = chosen(ZEN4, text, (32, 72, 97), (72, 97), (48, 32, 3, 3))
    assert found.vectorize == (2, 8)


@pytest.mark.parametrize(("rows", "register"), [(1023, (0, 0)), (123, (3, 0))])
def test_rows_from_behind_the_second_cache_come_one_after_the_other(
    rows: int, register: tuple[int, int]
) -> None:
    """Others share what they read beside each other."""
    text = "float(M, N) A, float(M) X, float(N) Y) -> (O) { O(m, n) = A(m, n) - X(m) * Y(n) }"
    assert chosen(ZEN4, text, (rows, 1025), (rows,), (1025,)).register == register


def test_lanes_many_elements_apart_are_read_one_by_one() -> None:
    """32 bytes: no vector has two of them, whatever its length."""
    found = chosen(ZEN4, "uint8(M, N) A) -> (C) { C(n, m) = A(m, n) }", (126742, 32))
    assert (found.vectorize, found.register) == ((1, 64), (16, 4))


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "tile", "inner"),
    [
        (128, 20000, 16, 1024, ()),
        (256, 8192, 64, 1024, ()),
        (256, 8192, 512, 64, (1, 0, 2)),
        (64, 6000, 32, 64, (1, 0, 2)),
    ],
    ids=["short", "longer", "deep", "few results"],
)
def test_long_rows_of_results_that_caches_do_not_hold_are_written_one_by_one(
    rows: int, columns: int, depth: int, tile: int, inner: tuple[int, ...]
) -> None:
    """A page of each, where the panel leaves the second cache room."""
    found = chosen(CASCADE_LAKE, MATMUL, (rows, depth), (depth, columns))
    assert found.tile and found.tile[1] == tile
    assert found.inner_order == inner


def test_the_rest_of_a_row_is_read_for_no_lanes_that_are_not_there() -> None:
    """Of every second pixel, 160 of a row are three vectors, and 120 rows two."""
    text = """uint8(H, W, 3) I) -> (uint8(120, 160) U) {
        U(y, x) = uint8((3 * int32(I(2 * y, 2 * x, 2)) + int32(I(2 * y, 2 * x, 0))) / 4)
            where y in 0:H / 2, x in 0:W / 2 }"""
    assert chosen(CASCADE_LAKE, text, (240, 321, 3)).vectorize == (1, 64)


@pytest.mark.parametrize(("planes", "order"), [(8, ()), (40, (1, 0, 2))])
def test_loops_keep_their_order_where_the_first_cache_loses_no_lines(
    planes: int, order: tuple[int, ...]
) -> None:
    """Each tile writes a part of the lines of a result, whose rest belongs to other planes."""
    text = "int16(P, M, N) A) -> (float(N, P, M) C) { C(n, p, m) = A(p, m, n) }"
    found = chosen(ZEN4, text, (planes, 12, 29040))
    assert found.inner_order == order, found


def test_rows_that_fill_the_first_cache_are_read_once_for_several() -> None:
    value = "fabs(fabs(fabs(fabs(A(m, n) + 1) + 1) + 1) + 1) * exp(Y(m)) - X(m)"
    text = f"""float(M, N) A, float(M) X, float(M) Y, float(N) B, float(N) D, float(N) E) -> (C) {{
        C(m, n) = {value} + B(n) + D(n) + E(n) }}"""
    shapes = ([(64, n), (64,), (64,), (n,), (n,), (n,)] for n in (4096, 768))
    long, short = (chosen(NARROW, text, *each) for each in shapes)
    assert long.register and long.register[0] in (2, 3, 4)
    assert not any(short.register or ()), "what it reads again is near"


def test_what_a_condition_guards_is_gathered_along_the_rows_of_places() -> None:
    """In lanes of 9 curves, which the first cache holds, each vector would be a masked gather."""
    text = """float(B, A) Load, float(B, A) Behind, float(S, L) Line, float(P) Front) -> (O) {
        O(b, s, p) +=! at >= 0 && at < L - 1
                ? Load(b, a) * ((1 - w) * Line(s, at) + w * Line(s, at + 1)) : 0
            where place = 128 * Front(p) - Behind(b, a), at = int32(floor(place)), w = place - at
    }"""
    found = chosen(ZEN4, text, (40, 6), (40, 6), (9, 101), (251,))
    assert found.vectorize == (2, 16)


def test_a_place_that_data_decides_is_checked_once_for_several_vectors() -> None:
    text = "float(H, W) I, int32(L) X) -> (O) { O(l, w) = I(X(l), w) }"
    found = chosen(NARROW, text, (1000, 64), (2048,))
    assert found.vectorize == (1, 8) and found.register and found.register[1] >= 2


@pytest.mark.parametrize(("read", "streams"), [("b, t, f", True), ("b, f, t", False)])
def test_what_is_transposed_is_not_written_past_the_caches(read: str, streams: bool) -> None:
    text = f"float(B, X, Y) A, float(F) M) -> (O) {{ O(b, t, f) = A({read}) - M(f) }}"
    given = sized(text, (160, 280, 280), (280,))
    assert ("past the caches" in show(schedule(given, MappingOptions("mlp"), ZEN4))) == streams


@pytest.mark.parametrize(("rows", "lines"), [(4096, True), (4100, False), (128, False)])
def test_but_in_whole_lines_it_is(rows: int, lines: bool) -> None:
    """Where rows of results are many lines, and no part of one."""
    given = sized("float(M, N) A) -> (C) { C(n, m) = A(m, n) }", (rows, 40000))
    shown = show(schedule(given, MappingOptions("mlp"), ZEN4))
    assert [words in shown for words in ("at a multiple of", "past the caches")] == [lines, lines]


@pytest.mark.parametrize(
    ("text", "shapes", "streams"),
    [
        ("A, float(N, F) B) -> (O) { O(n, f, w) = A(n, f, w) + B(n, f) }", (400, (400, 100)), True),
        ("A, float(N, F) B) -> (O) { O(n, f, w) = A(n, f, w) + B(n, f) }", (44, (400, 100)), False),
        ("A) -> (O) { O(n, f, w) = A(n, f / 2, w / 2) where f in 0:F, w in 0:W }", (400,), False),
        (
            """A) -> (O) { O(n, f, w) = A(n, f, w) + A(n + 1, f, w) + A(n + 2, f, w)
            + A(n, f + 1, w) + A(n, f, w + 1) where n in 0:N - 2, f in 0:F - 1, w in 0:W - 1 }""",
            (44,),
            False,
        ),
        (
            """A, float(G, 3, 3) K, float(G) B) -> (O) {
            O(n, g, f, w) +=! A(n, f + i, w + j) * K(g, i, j)
            O(n, g, f, w) = O(n, g, f, w) + B(g) }""",
            (402, (16, 3, 3), (16,)),
            False,
        ),
    ],
    ids=["rows", "short rows", "overlapping vectors", "rows in turns", "sums"],
)
def test_only_whole_lines_are_written_past_the_caches(
    text: str, shapes: tuple[Any, ...], streams: bool
) -> None:
    width, *others = shapes
    given = sized("float(N, F, W) " + text, (400, 100, width), *others)
    shown = show(schedule(given, MappingOptions("mlp"), ZEN3))
    assert ("past the caches" in shown) == streams


@pytest.mark.parametrize(("read", "peels"), [("c, h, w", True), ("c, w, h", False)])
def test_rows_put_together_from_afar_begin_where_they_are(read: str, peels: bool) -> None:
    text = f"float(C, H, W) I) -> (O) {{ O(c, h, w) = I({read}) where h in 0:400, w in 0:400 }}"
    given = sized(text, (64, 400, 400))
    shown = show(schedule(given, MappingOptions("mlp"), NARROW))
    assert ("at a multiple of" in shown) == peels


@pytest.mark.parametrize(
    ("name", "rows", "peels", "streams"),
    [
        ("sapphirerapids", 1000, True, False),
        ("znver4", 1000, False, False),
        ("sapphirerapids", 25000, True, False),
        ("znver4", 25000, True, True),
    ],
)
def test_where_rows_are_written_differs_between_machines(
    name: str, rows: int, peels: bool, streams: bool
) -> None:
    """.4 and 10 MB of rows that are no multiple of a line."""
    device = known_cpus.find(name)
    assert device is not None
    text = "float(M, N) A, float(M) X) -> (C) { C(m, n) = A(m, n) * X(m) }"
    shown = show(schedule(sized(text, (rows, 100), (rows,)), MappingOptions("mlp"), device))
    assert (("at a multiple of" in shown), ("past the caches" in shown)) == (peels, streams)


@pytest.mark.parametrize(
    ("value", "columns", "peels"),
    [
        ("A(m, n) * X(m)", 801, True),
        ("A(m, n) * X(m)", 401, False),
        ("A(m, (n + 1) % N)", 801, False),
    ],
)
def test_long_rows_of_plain_work_begin_on_boundaries(value: str, columns: int, peels: bool) -> None:
    """50 vectors in a row; to wrap takes longer than stores that lie in two lines."""
    text = f"float(M, N) A, float(M) X) -> (C) {{ C(m, n) = {value} where m in 0:600, n in 0:N }}"
    given = sized(text, (600, columns), (600,))
    assert ("at a multiple of" in show(schedule(given, MappingOptions("mlp"), ZEN4))) == peels


@DEVICES
def test_vectors_are_no_longer_than_short_rows_need(device: CpuProfile) -> None:
    text = "float(N, 3, 3) A, float(N, 3, 3) B) -> (C) { C(n, i, j) +=! A(n, i, k) * B(n, k, j) }"
    found = chosen(device, text, (20000, 3, 3), (20000, 3, 3))
    assert found.vectorize == (2, 4)


@pytest.mark.parametrize(
    ("device", "channels"), [(WIDE, 2), (WIDE, 3), (WIDE, 4), (NARROW, 2), (NARROW, 3)]
)
def test_channels_of_a_pixel_are_written_together(device: CpuProfile, channels: int) -> None:
    text = "float(C, H, W) I) -> (O) { O(h, w, c) = I(c, h, w) }"
    found = chosen(device, text, (channels, 480, 640))
    assert found.vectorize and found.vectorize[0] == 1
    assert found.register == (0, 0, channels)


@pytest.mark.parametrize(("type_", "lanes"), [("uint8", 32), ("int16", 16), ("float", 16)])
def test_pixels_of_narrow_numbers_are_put_together_in_halves(type_: str, lanes: int) -> None:
    text = f"{type_}(H, W, C) I) -> ({type_}(H, W, C) O) {{ O(h, w, c) = I(h, w, 2 - c) }}"
    found = chosen(ZEN4, text.replace("2 - c)", "2 - c) where c in 0:3"), (480, 640, 3))
    assert (found.vectorize, found.register) == ((1, lanes), (0, 0, 3))


@DEVICES
def test_products_that_share_loops_have_their_panels(device: CpuProfile) -> None:
    text = """float(T, D) X, float(F, D) W, float(F, D) V) -> (A, B, O) {
        A(t, f) +=! X(t, d) * W(f, d)
        B(t, f) +=! X(t, d) * V(f, d)
        O(t, f) = A(t, f) / (1 + exp(0 - A(t, f))) * B(t, f)
    }"""
    given = sized(text, (200, 256), (344, 256), (344, 256))
    shown = show(schedule(given, MappingOptions("mlp"), device))
    assert "scratch s0.panel1:" in shown and "scratch s1.panel1:" in shown


def test_what_is_kept_for_a_later_nest_lies_as_lanes_read_it() -> None:
    text = """float(N, C, P) X) -> (S, O) {
        S(n, p) +=! exp(X(n, c, p))
        O(n, c, p) = exp(X(n, c, p)) / S(n, p)
    }"""
    nests: list[object] = [{"vectorize": [1, 16], "chunk": [4, 0, 0]}]
    nests.append({"vectorize": [2, 16], "chunk": [4, 0, 0], "fuse": True})
    options = MappingOptions.from_json(json.dumps({"preset": "mlp", "nests": nests}))
    shown = show(schedule(sized(text, (64, 10, 1000)), options, WIDE))
    assert "kept0: float32(4, 10, 1000)" in shown


def test_a_short_loop_around_one_vector_is_written_out() -> None:
    windows = """float(N, C, H, W) I) -> (O) {
        O(n, h, w, c, kh, kw) = I(n, c, h + kh, w + kw) where kh in 0:3, kw in 0:3
    }"""
    found = chosen(WIDE, windows, (4, 16, 40, 40))
    assert (found.vectorize, found.register) == ((5, 4), (0, 0, 0, 0, 3, 0))
    longer = windows.replace("0:3, kw", "0:9, kw")
    assert chosen(WIDE, longer, (4, 16, 40, 40)).register == (0, 0, 0, 0, 2, 0)


@pytest.mark.parametrize("device", [WIDE, ZEN4], ids=lambda d: d.name)
def test_rows_of_a_window_are_written_out_where_results_share_them(device: CpuProfile) -> None:
    text = "float(H, W) I, float(7, 7) K) -> (O) { O(h, w) +=! I(h + i, w + j) * K(i, j) }"
    rows, _, window, _ = chosen(device, text, (900, 1100), (7, 7)).register or ()
    assert window == 7
    assert rows > 1, "a row of the image serves several rows of results"


def test_rows_of_a_window_are_few_where_caches_do_not_keep_them() -> None:
    text = (
        "float(C, H, W) I) -> (O) { O(c, h, w) +=! I(c, {0} * h + i, {0} * w + j)"
        " where i in 0:3, j in 0:3 }"
    )
    near, far = (
        chosen(ZEN4, text.replace("{0}", "1"), (planes, 112, 112)).register or ()
        for planes in (32, 512)
    )
    assert near[1] > 3 >= far[1], "eight rows of memory at a time, with those of the results"
    assert 3 in near[3:] and 3 in far[3:]
    apart = chosen(ZEN4, text.replace("{0}", "2"), (512, 112, 112)).register or ()
    assert not apart[3], "rows whose lanes are put together"


@pytest.mark.parametrize("places", [10, 36, 37])
def test_short_rows_are_read_in_pieces_by_lanes_of_rows(places: int) -> None:
    """Whether the last piece is whole or not."""
    text = """float(N, C) X) -> (Most, Best) { Most(n) max=! X(n, c)
        Best(n) min=! X(n, c) == Most(n) ? c : C }"""
    program = lower(sized(text, (900, places)))
    found = plan_cpu(program, MappingOptions("mlp"), CASCADE_LAKE).options["s0"]
    assert (found.vectorize, found.register) == ((0, 16), (4, 4))


@pytest.mark.parametrize("places", [26, 45])
def test_values_kept_by_lanes_of_rows_are_read_in_pieces(places: int) -> None:
    """They lie in memory as the lanes do that compute them."""
    text = """float(N, C) X) -> (Most, T, O) { Most(n) max=! X(n, c)
        T(n) +=! exp(X(n, c) - Most(n))
        O(n, c) = exp(X(n, c) - Most(n)) / T(n) }"""
    program = lower(sized(text, (900, places)))
    options = plan_cpu(program, MappingOptions("mlp"), CASCADE_LAKE).options
    assert (options["s1"].vectorize, options["s2"].vectorize) == ((0, 16), (1, 16))
    assert (options["s2"].register or ())[0] == 8


@pytest.mark.parametrize("threads", [1, 2])
def test_windows_are_written_out_in_chunks_of_threads(threads: int) -> None:
    """What one chunk reads takes as much of the memory's time as it is a part of the tensor."""
    text = """float(N, H, W, C) I) -> (O) {
        O(n, h, w, c) max=! I(n, h + i, w + j, c) where i in 0:3, j in 0:3 }"""
    program = lower(sized(text, (4, 60, 60, 64)))
    device = replace(CASCADE_LAKE, threads=threads)
    found = plan_cpu(program, MappingOptions("mlp"), device).options["s0"]
    assert (found.register or ())[4:] == (3, 3)


def test_small_matrices_are_transposed_where_that_takes_less_than_single_elements() -> None:
    text = "float(B, 3, 3) A, float(B, 3) X) -> (O) { O(b, i) +=! A(b, i, j) * X(b, j) }"
    found = chosen(ZEN4, text, (10000, 3, 3), (10000, 3))
    assert found.vectorize == (
        0,
        ZEN4.lanes(lower(sized(text, (9, 3, 3), (9, 3))).nests[0].point.type) // 2,
    )
    assert found.register == (1, 3, 3)


def test_columns_that_the_first_cache_has_keep_rows_in_order() -> None:
    text = "float(M, R) U, float(N, R) V) -> (O) { O(m, n) +=! U(m, r) * V(n, r) }"
    found = chosen(ZEN4, text, (700, 3), (500, 3))
    assert not any(found.tile or ())
    assert found.stage == (-1, 0), "all of V is copied once"


def test_rows_that_data_select_are_shared_in_chunks_of_many() -> None:
    text = (
        "float(V, D) E, int32(B, L) I, float(D, F) W) -> (S, O) { S(b, d) +=! E(I(b, l), d)\n"
        "O(b, f) +=! S(b, d) * W(d, f) }"
    )
    program = lower(sized(text, (4000, 40), (300, 11), (40, 56)))
    chunks = [(o.chunk or ())[0] for o in grouping(program, ZEN4).values()]
    assert min(chunks) >= 16, "a product of few rows would read W again and again"


def test_what_one_point_of_a_dimension_decides_stays_the_same_in_the_loops_around_it() -> None:
    text = (
        "float(N, H, G, C) X) -> (M, O) { M(n, g) +=! X(n, h, g, c)\n"
        "O(n, h, g, c) = X(n, h, g, c) * rsqrt(M(n, g) / 8112.0 + 1e-5) }"
    )
    each = sized(text, (4, 676, 8, 12))
    options = plan_cpu(lower(each), MappingOptions("mlp"), ZEN4).options
    assert options["s1"].vectorize is not None and options["s1"].vectorize[0] == 3, "in order"


def test_gathering_lanes_do_not_share_a_call_that_is_kept() -> None:
    text = """float(N, H, D) X, float(N, H) A, int32(N, K) J) -> (E, Total, O) {
        E(n, k, h) = A(n, h) + A(J(n, k), h)
        Total(n, h) +=! exp(E(n, k, h))
        O(n, h, d) +=! exp(E(n, k, h)) * X(J(n, k), h, d) }"""
    each = sized(text, (700, 4, 18), (700, 4), (700, 9))
    device = known_cpus.find("zen 4")
    assert device is not None
    options = plan_cpu(lower(each), MappingOptions("mlp"), replace(device, threads=1)).options
    assert options["s2"].fuse
    assert options["s2"].vectorize == (2, 16), "along rows of X, not a gather for each of them"


def test_a_call_that_is_kept_is_not_made_again_by_lanes_of_results() -> None:
    text = """float16(B, G, R, D) Q, float16(B, T, G, D) K, float16(B, T, G, D) V) -> (S, L, O) {
        S(b, g, r, t) +=! float(Q(b, g, r, d)) * float(K(b, t, g, d))
        L(b, g, r) +=! exp(S(b, g, r, t))
        O(b, g, r, d) +=! exp(S(b, g, r, t)) / L(b, g, r) * float(V(b, t, g, d)) }"""
    keys = (3, 333, 4, 64)
    each = sized(text, (3, 4, 5, 64), keys, keys)
    options = plan_cpu(lower(each), MappingOptions("mlp"), ZEN4).options
    assert options["s2"].fuse
    assert options["s2"].vectorize == (3, 16), "along rows of V: no lane takes a call of its own"


def test_an_instruction_that_is_kept_takes_as_long_as_to_read_it() -> None:
    text = """float(L, Y, X) T, float(L, Y, X) Q, float(L) Dp) -> (Tv, Geo, Column) {
        Tv(l, y, x) = T(l, y, x) * (1 + 0.61 * fabs(Q(l, y, x)))
        Geo(l, y, x) +=! (k >= l) ? Tv(k, y, x) * Dp(k) : 0 where l in 0:L
        Column(y, x) +=! fabs(Q(l, y, x)) * Dp(l) }"""
    each = sized(text, (41, 33, 45), (41, 33, 45), (41,))
    options = plan_cpu(lower(each), MappingOptions("mlp"), ZEN4).options
    assert options["s2"].fuse
    assert options["s2"].vectorize == (1, 16), "along rows of Q, not along the sums"


def test_sixteen_rows_share_a_division() -> None:
    """As they share a call: here what calls is kept by the nest before."""
    text = """double(B, H, S, D) Q, double(B, H, S, D) K, double(B, H, S, D) V)
            -> (R, Most, Total, O) {
        R(b, h, i, j) +=! Q(b, h, i, d) * K(b, h, j, d)
        Most(b, h, i) max=! R(b, h, i, j)
        Total(b, h, i) +=! exp(R(b, h, i, j) - Most(b, h, i))
        O(b, h, i, d) +=! exp(R(b, h, i, j) - Most(b, h, i)) / Total(b, h, i) * V(b, h, j, d) }"""
    each = sized(text, *[(2, 4, 150, 32)] * 3)
    options = plan_cpu(lower(each), MappingOptions("mlp"), ZEN4).options
    assert (options["s3"].register or ())[3] == 16


def test_products_that_share_a_factor_need_no_panels_to_share_a_pass() -> None:
    text = """float(N) X, float(T, B) Cos, float(T, B) Sin) -> (Re, Im) {
        Re(f, b) +=! X(160 * f + t) * Cos(t, b)
        Im(f, b) +=! X(160 * f + t) * Sin(t, b) }"""
    each = sized(text, (16000,), (400, 65), (400, 65))
    device = known_cpus.find("zen 4")
    assert device is not None
    built = schedule(each, MappingOptions("mlp"), replace(device, threads=1))
    assert "accumulator.s1 +=" in show(built)


@pytest.mark.parametrize("where", ["", ", j = i"])
def test_points_that_decide_what_is_computed_are_written_out(where: str) -> None:
    index = "j" if where else "i"
    text = f"""double(9, N) A) -> (O) {{
        O(i, n) = {index} == 0 ? root : {index} == 1 ? A(1, n) / root : {index} < 5 ? A(i, n) : 2.0
        where i in 0:9, root = sqrt(A(0, n)){where} }}"""
    assert chosen(ZEN4, text, (9, 999)).register == (9, 0)
    long = text.replace("9", "99")
    assert (chosen(ZEN4, long, (99, 999)).register or (0,))[0] < 99, "that would be too much code"


@pytest.mark.parametrize(("device", "rows"), [(ZEN3, 5), (CASCADE_LAKE, 6)])
def test_accumulators_of_two_products_hide_their_latency(device: CpuProfile, rows: int) -> None:
    """A step takes two multiply-adds, one after the other, and registers for one of them. Panels
    keep the second sum in loops of its own, which the tile is for."""
    text = """float(N, K, 2) A, float(K, N, 2) B) -> (Re, Im) {
        Re(i, j) +=! A(i, k, 0) * B(k, j, 0) - A(i, k, 1) * B(k, j, 1)
        Im(i, j) +=! A(i, k, 0) * B(k, j, 1) + A(i, k, 1) * B(k, j, 0) }"""
    program = lower(sized(text, (100, 100, 2), (100, 100, 2)))
    found = plan_cpu(program, MappingOptions("mlp"), device).options["s0"]
    assert (found.stage or ())[1] == (found.stage or ())[3] == 1
    assert math.prod(filter(None, (found.register or ())[:2])) >= 2 * rows
    core = Core.read(program, program.nests[0], device)
    assert core.latency == 2 * Core.read(*_product(), device).latency


def test_steps_of_dot_products_are_written_out() -> None:
    text = """int8(M, K) A, int8(N, K) B) -> (int32(M, N) O) {
        O(m, n) +=! int32(A(m, k)) * int32(B(n, k)) }"""
    found = chosen(ZEN3, text, (200, 384), (200, 384))
    assert found.dot == (0, 0, 2)
    assert (found.register or ())[2] == 4


def test_sums_beside_each_other_leave_registers_for_what_each_reads() -> None:
    """Two sums of five points fill ten registers of 16, as the cosine and the sine take more."""
    text = """double(T) X, double(S, K) Cos, double(S, K) Sin) -> (Re, Im) {
        Re(s, t) +=! X(t + k) * Cos(s, k)
        Im(s, t) +=! X(t + k) * Sin(s, k) }"""
    program = lower(sized(text, (1500,), (20, 81), (20, 81)))
    found = plan_cpu(program, MappingOptions("mlp"), ZEN3).options["s0"]
    assert math.prod(filter(None, (found.register or ())[:2])) <= 5
    same = lower(sized(text.replace("Sin(s, k) }", "Cos(s, k) }"), (1500,), (20, 81), (20, 81)))
    found = plan_cpu(same, MappingOptions("mlp"), ZEN3).options["s0"]
    assert math.prod(filter(None, (found.register or ())[:2])) > 5


def _product() -> tuple[ir.Program, ir.Nest]:
    program = lower(sized(MATMUL, (100, 100), (100, 100)))
    return program, program.nests[0]


def test_what_is_decided_is_priced_once() -> None:
    text = """float(2, N) A) -> (O) {
        O(i, j, n) = i == 0 ? (j == 0 ? s / A(1, n) : s) : s * A(i, n) where i in 0:2, j in 0:2,
        s = A(0, n) / 3 }"""
    nest = lower(sized(text, (2, 99))).nests[0]
    sizes = deciding_sizes(nest)
    assert sizes == {"s0.i": 2, "s0.j": 2}
    cycles = decided_cycles(nest, sizes)
    every = sum(math.prod(sizes.get(d, 1) for d in dims) * n for dims, n in cycles.items())
    assert every == 2 * DIVISION_CYCLES + OPERATION_CYCLES


NORM = """float(N, C) X, float(C) M, float(C) V) -> (O) {
    O(n, c) = (X(n, c) - M(c)) * rsqrt(V(c)) }"""
TRAINED = """float(N, C) X) -> (M, V, O) {
    M(c) +=! X(n, c)
    V(c) +=! (X(n, c) - M(c)) * (X(n, c) - M(c))
    O(n, c) = (X(n, c) - M(c)) * rsqrt(V(c)) }"""


def test_what_is_one_for_all_rows_is_computed_before_rows_of_a_few_vectors() -> None:
    assert (chosen(ZEN4, NORM, (3000, 40), (40,), (40,)).register or ())[1] == 3
    assert (chosen(ZEN4, NORM, (3000, 200), (200,), (200,)).register or ())[1] in (0, 1)


@pytest.mark.parametrize(("size", "vectors"), [(256, 4), (300, 0)])
def test_not_where_the_last_chunk_is_shorter(size: int, vectors: int) -> None:
    program = lower(sized(TRAINED, (300, size)))
    *_, last = plan_cpu(program, MappingOptions("mlp"), ZEN4).options.values()
    assert (last.chunk or ())[1] == 64
    assert (last.register or ())[1] == vectors


def test_lanes_that_the_last_chunk_hardly_fills() -> None:
    """Pairs of 9 electrons in chunks of 8 and 1, of which the last one has a vector for each."""
    text = (
        "double(O, V, Q) B) -> (K, E) { K(i, j, a, b) +=! B(i, a, q) * B(j, b, q)\n"
        "E(i, j) +=! K(i, j, a, b) * K(i, j, b, a) }"
    )
    program = lower(sized(text, (9, 26, 83)))
    found = plan_cpu(program, MappingOptions("mlp"), ZEN4).options["s0"]
    assert (found.chunk or ())[1] == 8
    assert found.vectorize == (3, 4)


def test_one_tile_of_columns_need_not_be_a_power_of_two() -> None:
    text = "float(N, C) X) -> (M) { M(c) +=! X(n, c) }"
    assert (chosen(NARROW, text, (400, 22)).register or ())[0] == 3


def test_half_vectors_where_they_fill_short_rows_better() -> None:
    text = """float16(N, C) X, float(C) M, float(C) V, float(C) G) -> (float16(N, C) O) {
        O(n, c) = float16((float(X(n, c)) - M(c)) * rsqrt(V(c)) * G(c) + M(c)) }"""
    found = chosen(ZEN4, text, (1240, 22), (22,), (22,), (22,))
    assert found.vectorize == (1, 8) and (found.register or ())[1] == 3
    assert chosen(ZEN4, text, (1240, 32), (32,), (32,), (32,)).vectorize == (1, 16)


def test_lists_of_short_rows_leave_lanes_across_them() -> None:
    """Half vectors along the rows would fill them better, but their condition may skip these."""
    text = """double(N, S) C, int8(R, S) O) -> (P, Q, H) {
        P(c, r) *=! O(r, s) == 1 ? C(c, s) : 1  Q(c, r) = sqrt(P(c, r))  H(c) +=! Q(c, r) }"""
    schedule(sized(text, (500, 9), (9, 9)), DEFAULT, ZEN4)


def test_half_vectors_where_two_operands_are_made_wider_and_the_result_narrow() -> None:
    text = "float16(N) X, float16(N) Y) -> (O) {{ O(n) = float16({}) }}"
    pair = chosen(ZEN4, text.format("0.5 * X(n) + Y(n)"), (96,), (96,))
    assert (pair.vectorize, pair.register) == ((0, 8), (12,))
    for value in ("0.5 * X(n)", "exp(X(n)) + Y(n)"):
        assert chosen(ZEN4, text.format(value), (96,), (96,)).vectorize == (0, 16)


@pytest.mark.parametrize(("value", "lanes"), [("log(A(m, n))", 16), ("sqrt(A(m, n))", 8)])
def test_whole_vectors_where_functions_wait_for_their_own_instructions(
    value: str, lanes: int
) -> None:
    found = chosen(ZEN4, f"float(M, N) A) -> (O) {{ O(m, n) = {value} }}", (400, 33))
    assert found.vectorize == (1, lanes)


def test_functions_wait_beside_a_few_products() -> None:
    text = "float(S, M) A, float(S, N) B) -> (O) { O(m, n) +=! exp(A(s, m)) * B(s, n) }"
    assert chosen(ZEN4, text, (24, 150), (24, 7)).vectorize == (0, 16)


def test_no_value_takes_more_than_a_few_registers() -> None:
    """64 bytes of a result are 8 registers of what is computed for them in int64."""
    wide = "def f(int64(M, N) A, int64(M, N) B) -> (O) { O(i, j) = uint8(A(i, j) * 7 / B(i, j)) }"
    assert chosen(ZEN4, wide, (240, 320), (240, 320)).vectorize == (1, 32)
    narrow = "def f(uint8(M, N) A) -> (O) { O(i, j) = A(i, j) + A(i, j) }"
    assert chosen(ZEN4, narrow, (240, 320)).vectorize == (1, 64)


def test_lanes_of_quotients_and_remainders_are_neighbours() -> None:
    enlarged = "I(c, h / 2, w / 2) + I(c, h / 2, w / 2 + 1) where h in 0:2 * H, w in 0:2 * W - 2"
    found = chosen(
        ZEN4, f"def f(float(C, H, W) I) -> (O) {{ O(c, h, w) = {enlarged} }}", (30, 40, 50)
    )
    assert found.vectorize == (2, 16)
    assert (found.register or ())[1] in (2, 4), "two rows read the same"
    shuffled = (
        "I(4 * c + 2 * (h % 2) + w % 2, h / 2, w / 2) where c in 0:8, h in 0:2 * H, w in 0:2 * W"
    )
    found = chosen(
        ZEN4, f"def f(float(C, H, W) I) -> (O) {{ O(c, h, w) = {shuffled} }}", (32, 40, 50)
    )
    assert found.vectorize == (2, 16)


def test_the_same_nest_is_searched_once() -> None:
    shapes = (96, 80), (80, 64)
    one, other = (lower(sized(MATMUL, *shapes)) for _ in range(2))
    found = register_tiles.fastest(one, one.nests[0], WIDE)
    assert register_tiles.fastest(other, other.nests[0], WIDE) is found
    assert register_tiles.fastest(one, one.nests[0], NARROW) is not found


def plans(text: str, *shapes: tuple[int, ...]) -> list[NestOptions]:
    """The choices for all nests, for one thread of a Zen 4."""
    program = lower(sized(text, *shapes))
    return list(plan_cpu(program, MappingOptions("mlp"), ZEN4).options.values())


EDGES = """uint8(H, W) I) -> (A{}) {{
    A(y, x) = int16(I(y, x)) - I(y + 1, x + 1) where y in 0:H - 1, x in 0:W - 1
    {} }}"""


def test_rows_share_what_nests_in_the_same_loops_read() -> None:
    other = "B(y, x) = int16(I(y + 1, x)) - I(y, x + 1) where y in 0:H - 1, x in 0:W - 1"
    alone, *_ = plans(EDGES.format("", ""), (480, 640))
    first, second = plans(EDGES.format(", B", other), (480, 640))
    assert not any(alone.register or ()), "they read nothing twice"
    assert (first.register or ())[0] > 1
    assert first.register == second.register


def test_nothing_is_asked_for_ahead_where_loops_leave_it_out() -> None:
    band = "(j <= i && i - j < 48)"
    text = """float(B, N, N) A, float(B, N) X) -> (Y) {{
        Y(b, i) +=! {} ? A(b, i, j) * X(b, j) : 0 }}"""
    shapes = (8, 384, 384), (8, 384)
    assert plans(text.format("1 == 1"), *shapes)[0].prefetch
    assert not plans(text.format(band), *shapes)[0].prefetch


def test_steps_of_a_window_are_not_divided() -> None:
    text = "double(S, T) P) -> (M) { M(s, t) +=! P(s, t + k) where k in 0:20, t in 0:T - 19 }"
    window, *_ = plans(text, (200, 1000))
    assert not any(window.tile or ())


def test_functions_of_what_all_lanes_share_are_called_for_vectors() -> None:
    text = """float(N, P) X, float(N) E) -> (H) {
        H(p, q) +=! X(n, p) * X(n, q) * expit(E(n)) * (1 - expit(E(n))) }"""
    found = chosen(ZEN4, text, (3000, 24), (3000,))
    assert found.stage == (-1, -1, 0)


def test_tiles_of_rows_hold_what_loops_do_not_leave_out() -> None:
    text = """float(B, N, N) A, float(B, N) X) -> (Y) {{
        Y(b, i) +=! {} ? A(b, i, j) * X(b, j) : 0 }}"""
    shapes = (4, 600, 600), (4, 600)
    assert any(plans(text.format("j <= i"), *shapes)[0].tile or ())
    assert not any(plans(text.format("(j <= i && i - j < 48)"), *shapes)[0].tile or ())


@pytest.mark.parametrize(
    ("value", "shape", "order"),
    [
        ("exp(X(n)) + Z(z)", (64, 500), (1, 0)),
        ("exp(X(n)) + exp(Z(z) * X(n))", (64, 500), (1, 0)),
        ("exp(X(n) * Y(n)) + Z(z)", (64, 500), (1, 0)),
        ("exp(Z(z)) + X(n)", (64, 500), ()),
        ("X(n) * 2 + Z(z)", (64, 500), ()),
        ("exp(X(n) * Z(z)) + Y(n)", (64, 500), ()),
        ("exp(X(n)) + Z(z)", (600, 500), ()),
    ],
    ids=["one", "beside others", "of two", "in order", "no calls", "of all", "lines lost"],
)
def test_functions_are_called_before_loops_that_do_not_change_them(
    value: str, shape: tuple[int, int], order: tuple[int, ...]
) -> None:
    rows, columns = shape
    text = f"float(N) X, float(N) Y, float(M) Z) -> (O) {{ O(z, n) = {value} }}"
    found = chosen(ZEN4, text, (columns,), (columns,), (rows,))
    assert found.inner_order == order


def test_points_that_compute_much_leave_registers_for_that() -> None:
    """Sharing what rows read saves little beside it."""

    def rows(value: str) -> int:
        text = f"float(3, N) P, float(N) W) -> (O) {{ O(i) +=! {value} }}"
        return (chosen(ZEN4, text, (3, 901), (901,)).register or ())[0]

    terms = (f"(P({c}, j) - P({c}, i)) * (P({c}, j) - P({c}, i))" for c in range(3))
    distance = " + ".join(terms)
    assert rows(distance) > 8
    assert 1 < rows(f"W(j) * W(i) / (1 + {distance})") <= 4


@pytest.mark.parametrize(
    ("columns", "rows"), [(3, 2), (4, 2), (17, 0)], ids=["pixels", "one vector", "two vectors"]
)
def test_short_rows_that_take_as_long_as_counting_are_done_in_pairs(
    columns: int, rows: int
) -> None:
    text = "uint8(N, M) I, float(256, C) P) -> (O) { O(n, m, c) = P(int32(I(n, m)), c) }"
    found = chosen(CASCADE_LAKE, text, (60, 80), (256, columns))
    assert (found.register or (0, 0))[1] == rows


@pytest.mark.parametrize(("batch", "together"), [(12, 0), (50, 16)])
def test_panels_are_of_all_points_that_share_a_line(batch: int, together: int) -> None:
    """Else each panel of a batch reads the lines of all others again."""
    text = """float(K, B, M) X, float(N, K, B) W) -> (C) {
        C(n, b, m) +=! X(k, b, m) * W(n, k, b)
    }"""
    found = chosen(CASCADE_LAKE, text, (96, batch, 70), (110, 96, batch))
    assert found.vectorize == (0, 16)
    assert (found.tile or (0, -1))[1] == together


def planned(text: str, *shapes: tuple[int, ...]) -> NestOptions:
    """The choices for the first nest, for one thread of a Zen 3."""
    program = lower(sized(text, *shapes))
    return next(iter(plan_cpu(program, MappingOptions("mlp"), ZEN3).options.values()))


@pytest.mark.parametrize(("part", "ahead"), [(0.4, ()), (0.75, (8192,)), (2.0, (192,))])
def test_what_the_last_cache_lost_in_part_is_asked_for_far_ahead(
    part: float, ahead: tuple[int, ...]
) -> None:
    count = int(cached_bytes(ZEN3) * part) // 4
    text = "float(N) X) -> (M) { M() max=! X(n) }"
    assert planned(text, (count,)).prefetch == ahead
    wide = replace(ZEN3, vector_bits=512)  # each load is a line
    program = lower(sized(text, (count,)))
    (found,) = plan_cpu(program, MappingOptions("mlp"), wide).options.values()
    assert found.prefetch == (() if part < 1 else ahead)


@pytest.mark.parametrize(("columns", "ahead"), [(1000, (8192,)), (64, (2048,))])
def test_long_rows_side_by_side_are_asked_for_far_ahead(
    columns: int, ahead: tuple[int, ...]
) -> None:
    text = "float(M, N) X) -> (S) { S(m) max=! X(m, n) }"
    found = planned(text, (2_000_000 // columns, columns))
    assert (found.register or ())[0] > 1
    assert found.prefetch == ahead


@pytest.mark.parametrize(
    ("columns", "value", "peels"),
    [
        (1000, "1 + X(m, n) * 3", True),
        (330, "1 + X(m, n) * 3", False),
        (1000, "exp(X(m, n))", False),
    ],
)
def test_long_rows_of_vectors_of_half_a_line_begin_on_boundaries(
    columns: int, value: str, peels: bool
) -> None:
    text = f"float(M, N) X) -> (Y) {{ Y(m, n) = {value} where n in 0:N - 5 }}"
    assert planned(text, (200, columns)).peel == peels


def test_bytes_of_windows_are_widened_once_for_pairs_of_products() -> None:
    text = """int8(H, W, C) X, int8(3, 3, C, K) F) -> (Y) {
        Y(h, w, k) +=! int32(X(h + i, w + j, c)) * F(i, j, c, k) }"""
    found = planned(text, (24, 24, 64), (3, 3, 64, 96))
    assert any(found.dot or ())
    assert (found.stage or ())[0] == 0


@pytest.mark.parametrize(
    ("points", "read", "order"),
    [(400, "X(m, {})", (1, 0)), (4000, "X(m, {})", ()), (400, "X({}, m)", ())],
)
def test_vectors_put_together_for_all_rows_are_put_together_once(
    points: int, read: str, order: tuple[int, ...]
) -> None:
    """Not where results go past the caches, nor where the vectors lie in order."""
    apart = " + ".join(f"fabs(A(n, {k}) - {read.format(k)})" for k in range(3))
    text = f"float(N, 3) A, float(P, Q) X) -> (O) {{ O(n, m) = {apart} where m in 0:{points} }}"
    shape = (points, 3) if read.startswith("X(m") else (3, points)
    assert (planned(text, (points, 3), shape).inner_order or ()) == order


@pytest.mark.parametrize("type_", ["float", "double"])
def test_what_is_added_up_takes_a_register_beside_the_sums(type_: str) -> None:
    """A difference is there before its square is added: 16 registers hold 12 sums, two vectors and
    a number besides, and no third vector."""
    text = f"""{type_}(N, D) X, {type_}(M, D) Y) -> (O) {{
        O(n, m) +=! (X(n, d) - Y(m, d)) * (X(n, d) - Y(m, d)) }}"""
    rows, vectors, _ = chosen(ZEN3, text, (300, 128), (270, 128)).register or (0, 0, 0)
    assert rows * vectors + vectors + 2 <= ZEN3.vector_registers


@pytest.mark.parametrize(
    ("condition", "vectorize"), [("L(n) == c", (2, 4)), ("L(n) == c + k", (1, 8))]
)
def test_what_data_seldom_choose_is_left_out_by_all_lanes(
    condition: str, vectorize: tuple[int, int]
) -> None:
    """With lanes along classes, one of them would have all computed; so would lanes along boxes if
    the condition differs by box."""
    text = f"""float(N, C, 4) P, float(N, 4) T, int32(N) L) -> (G) {{
        G(n, c, k) = {condition} ? exp(P(n, c, k) - T(n, k)) : 0 }}"""
    assert chosen(ZEN3, text, (64, 91, 4), (64, 4), (64,)).vectorize == vectorize


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        ("sqrt((D(m, n) + D(m + 1, n)) * (D(m, n) + D(m + 1, n)) + 1)", True),
        ("sqrt((D(m, n) + D(m, n + 1)) * (D(m, n) + D(m, n + 1)) + 1)", False),
    ],
)
def test_what_rows_compute_alike_is_computed_once(value: str, rows: bool) -> None:
    """Differences along a row, of this row and the next one, but not of places in one row."""
    value = re.sub(r"D\((.*?), (.*?)\)", r"fabs(X(\1, \2 + 2) - X(\1, \2))", value)
    text = f"float(M, N) X) -> (Y) {{ Y(m, n) = {value} where m in 0:M - 1, n in 0:N - 3 }}"
    assert ((planned(text, (200, 300)).register or (1,))[0] > 1) == rows


def test_rows_that_a_quotient_gives_the_same_compute_alike() -> None:
    """Two rows of pixels have the colours of one row of an image of half the size."""
    text = """uint8(H, W) L, uint8(P, Q, 2) C) -> (uint8(H, W, 3) O) {
        O(y, x, c) = uint8(min(max((298 * int32(L(y, x)) + tint) / 256, 0), 255))
            where c in 0:3, u = int32(C(y / 2, x / 2, 0)) - 128,
                v = int32(C(y / 2, x / 2, 1)) - 128,
                tint = c == 0 ? 409 * v : (c == 1 ? -100 * u - 208 * v : 516 * u) }"""
    assert planned(text, (288, 352), (144, 176, 2)).register == (2, 0, 3)


@pytest.mark.parametrize(
    ("text", "shapes", "steps"),
    [
        (  # windows of which rows of results share little
            "float(N, H, W, C) X, float(3, 3, C) K) -> (Y) { Y(n, h, w, c) +=! "
            "X(n, 2 * h + i, 2 * w + j, c) * K(i, j, c) }",
            ((4, 113, 113, 48), (3, 3, 48)),
            (3, 3),
        ),
        (  # pools
            "float(N, H, W, C) X) -> (Y) { Y(n, h, w, c) +=! X(n, 2 * h + i, 2 * w + j, c) "
            "where i in 0:2, j in 0:2 }",
            ((8, 56, 56, 96),),
            (2, 2),
        ),
        (  # a long reduction around short ones
            "float(N, C, H, W) X, float(F, C, 3, 3) K) -> (Y) { Y(n, f, h, w) +=! "
            "X(n, c, h + 2 * i, w + 2 * j) * K(f, c, i, j) }",
            ((4, 24, 46, 46), (32, 24, 3, 3)),
            (0, 3),
        ),
    ],
)
def test_few_short_reductions_are_written_out_together(
    text: str, shapes: tuple[tuple[int, ...], ...], steps: tuple[int, ...]
) -> None:
    assert (planned(text, *shapes).register or ())[-2:] == steps


def test_padding_of_strided_windows_is_asked_for_once_per_tile() -> None:
    """Whether rows and columns are named, and how far windows are apart."""
    text = """float(H, W, C) X, float(3, 3, C) F) -> (Y) {
        Y(h, w, c) +=! (y >= 0 && y < H && x >= 0 && x < W) ? X(y, x, c) * F(i, j, c) : 0
            where h in 0:H / 2, w in 0:W / 2, y = 2 * h + i - 1, x = 2 * w + j - 1 }"""
    found = show(schedule(sized(text, (56, 56, 24), (3, 3, 24)), DEFAULT, ZEN3))
    assert "where all points have" in found
    assert "let y" not in found


def test_mirrored_borders_are_asked_for_once_per_tile() -> None:
    text = """float(H, W) X, float(5) F) -> (Y) { Y(h, w) +=! F(i) * F(j) * X(
        y < 0 ? -y : y < H ? y : 2 * H - 2 - y, x < 0 ? -x : x < W ? x : 2 * W - 2 - x)
            where h in 0:H, w in 0:W, y = h + 2 * i - 4, x = w + 2 * j - 4 }"""
    found = show(schedule(sized(text, (118, 131), (5,)), DEFAULT, ZEN4))
    inside = found.split("where all points have")[1].split("elsewhere")[0]
    assert "X(" in inside and "?" not in inside


def test_columns_from_afar_are_read_in_long_pieces() -> None:
    """Rows that share a condition alone: twelve of them would be read a line of each at a time."""
    days = """float(Y, D, S) Low, int16(S) Sow) -> (O) {
        O(s, y) +=! d >= Sow(s) ? fmax(Low(y, d, s), 0) : 0 }"""
    for device in (ZEN4, ZEN3):
        found = chosen(device, days, (12, 365, 397), (397,))
        assert found.register is not None
        assert found.vectorize is not None
        vectors, rows, _ = found.register
        assert found.vectorize[0] == 0
        assert rows <= 1 or 4 * found.vectorize[1] * vectors >= 256
    assert chosen(ZEN3, days, (12, 20, 397), (397,)).register == (1, 4, 0)  # from a cache


def test_whole_vectors_divide_in_as_long_as_their_halves() -> None:
    """Where all points of conditions are written out, too."""
    text = """uint8(H, W, 3) I) -> (float(H, W, 3) O) {
        O(y, x, c) = c == 0 ? (top == r ? (g - b) / d : (b - r) / d) : c == 1 ? d / top : top
            where r = float(I(y, x, 0)), g = float(I(y, x, 1)), b = float(I(y, x, 2)),
                top = max(r, max(g, b)), d = top - min(r, min(g, b)) }"""
    found = chosen(ZEN4, text, (120, 160, 3))
    assert (found.vectorize, found.register) == ((1, 16), (0, 0, 3))


def test_what_a_chunk_keeps_is_read_without_a_panel() -> None:
    """Lanes across rows of what a sum has computed: transposed, in tiles of many rows."""
    text = """def attention(float(H, S, S) R, float(H, S, D) V) -> (Most, Total, O) {
        Most(h, i) max=! R(h, i, j)
        Total(h, i) +=! exp(R(h, i, j) - Most(h, i))
        O(h, i, d) +=! exp(R(h, i, j) - Most(h, i)) / Total(h, i) * V(h, j, d) }"""
    program = lower(sized(text, R=(8, 150, 150), V=(8, 150, 32)))
    found = plan_cpu(program, MappingOptions("mlp"), ZEN4).options["s2"]
    assert (found.vectorize, found.register) == ((1, 16), (0, 1, 16, 4))


def test_whole_vectors_of_float16_where_something_is_divided() -> None:
    text = """float16(T, D) X, float16(T, D) Y, float(T) S) -> (O) {
        O(t, d) = float16(float(X(t, d)) * r + float(Y(t, d)) / S(t)) where r = rsqrt(S(t)) }"""
    assert chosen(ZEN4, text, (500, 768), (500, 768), (500,)).vectorize == (1, 16)


def test_sums_of_products_of_bytes_are_summed_one_by_one() -> None:
    """An instruction adds four products to one sum, and none to two sums in one pass."""
    text = """def gate(uint8(B, K) X, int8(M, K) G, int8(M, K) U) -> (A, C) {
        A(b, m) +=! (int32(X(b, k)) - 128) * int32(G(m, k))
        C(b, m) +=! (int32(X(b, k)) - 128) * int32(U(m, k)) }"""
    program = lower(sized(text, X=(10, 516), G=(690, 516), U=(690, 516)))
    found = plan_cpu(program, MappingOptions("mlp"), ZEN4).options
    assert [found[name].dot for name in ("s0", "s1")] == [(0, 0, 4)] * 2


def test_words_with_turned_bits_are_read_in_place() -> None:
    """Two vectors of columns read each word twice, which is no reason for a copy."""
    text = "uint8(B, N) X, uint8(C, N) Y) -> (O) { O(b, c) +=! int32(X(b, n)) * Y(c, n) }"
    found = chosen(ZEN4, text, (333, 255), (64, 255))
    assert found.stage == (-1, 0)
    assert math.prod((found.register or ())[:2]) > 8


def test_words_of_windows_that_share_elements_are_no_dot_products() -> None:
    text = """int16(H, W) X) -> (O) {
        O(y, x) +=! int32(X(y + i, x + j)) * X(y + i, x + j) where i in 0:5, j in 0:5 }"""
    assert not any(chosen(ZEN4, text, (180, 241)).dot or ())


def test_rows_of_an_operand_end_between_vectors() -> None:
    def peels(text: str, shape: tuple[int, ...], row: int) -> bool:
        program = lower(sized(text, shape, (row,)))
        return bool(plan_cpu(program, MappingOptions("mlp"), ZEN4).options["s0"].peel)

    text = """float(C, B, 256) X, float(256) Y) -> (O) {
        O(c, s) = X(c, s / 256, s % 256) / Y(s % 256) where s in 0:256 * B }"""
    assert not peels(text, (2, 200, 256), 256)
    assert peels(
        "float(C, N) X, float(N) Y) -> (O) { O(c, s) = X(c, s) / Y(s) }", (2, 51200), 51200
    )


@pytest.mark.parametrize(
    ("value", "lanes"),
    [("V(b, j) < V(b, i)", 8), ("V(b, j) == V(b, i)", 8), ("V(b, j) < V(b, i) ? V(b, j) : 0", 16)],
)
def test_counts_of_comparisons_are_of_half_vectors(value: str, lanes: int) -> None:
    """A Zen 4 has the results of whole ones in registers for masks, one at a time."""
    text = f"int32(B, N) V) -> (R) {{ R(b, i) +=! {value} }}"
    assert (chosen(ZEN4, text, (24, 304)).vectorize or (-1, 1))[1] == lanes


@pytest.mark.parametrize(("read", "tiled"), [("X(n)", False), ("Y(k, n)", True)])
def test_only_rows_of_memory_are_read_a_few_at_a_time(read: str, tiled: bool) -> None:
    text = f"float(N) X, float(K, N) Y, float(K) Z) -> (O) {{ O(n) +=! fabs({read} - Z(k)) }}"
    assert any(chosen(ZEN4, text, (50001,), (40, 50001), (40,)).tile or ()) == tiled


def test_rows_are_read_across_the_lanes_in_long_loops() -> None:
    """Rows in the first cache are read to their ends, and not a few steps of all of them."""
    found = chosen(
        ZEN4,
        "int8(M, K) A, int8(K) X) -> (Y) { Y(m) +=! int32(A(m, k)) * X(k) }",
        (333, 2222),
        (2222,),
    )
    assert (found.vectorize or (-1, 1))[0] == 0
    assert not any(found.tile or ())


def test_sums_that_share_no_pass_have_lanes_of_their_own() -> None:
    """Pools of a clamped window take less alone than without lanes in one pass."""
    window = "X(p, min(max(h + i - 1, 0), H - 1), min(max(w + j - 1, 0), W - 1))"
    ranges = "where h in 0:H, w in 0:W, i in 0:3, j in 0:3"
    text = f"""def f(uint8(P, H, W) X) -> (High, Low) {{
        High(p, h, w) max=! {window} {ranges}
        Low(p, h, w) min=! {window} {ranges} }}"""
    plan = plan_cpu(lower(sized(text, (3, 300, 301))), MappingOptions("mlp"), ZEN4)
    assert {(nest.vectorize or (0,))[0] for nest in plan.options.values()} == {2}


def test_chunks_of_single_points_have_no_lanes_to_fill() -> None:
    """The model is asked about such chunks: seven threads share six points."""
    text = """int64(4, 4) B, float64(8) A, uint64(6) C, float(7) D, float(4) T) -> (O) {
        O(i) max=! B(k, 0) - ((-j - 2 < 8 && -j - 2 >= 0 ? A(-j - 2) : 1)
            + (i < 0 || i >= 4 ? 0 : T(i))) * (j * j > 1 && C(i - 1) > 1 ? D(j) : C(i - 1)) }"""
    each = sized(text, (4, 4), (8,), (6,), (7,), (4,))
    schedule(each, MappingOptions("mlp"), replace(ARM, threads=7))
