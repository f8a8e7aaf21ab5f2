"""Places that remainders, quotients and limits of indices decide: plain, but for the border."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from operator import truediv

import numpy as np
import pytest
from comparing import check_interpreted
from cpu_kernels import Array, run, sized_of
from random_defs import check_random_defs

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.periods import interval_of, piece_of
from tcl.codegen.loopir.walk import dims_of_values, loads, statements, values_in
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule import cpu
from tcl.grammar.syntax.types import INT64, SCALAR_TYPES

"""Without masked stores, too, if this machine runs such code."""
TYPES = ("float32", "float64", "int8", "float16", "int32")


def place(rng: random.Random, index: str, extent: int) -> str:
    """A subscript of an axis of that extent, which stays inside of it."""
    far, by, more = rng.randrange(3 * extent + 1), rng.randrange(1, extent + 1), rng.randrange(9)
    return rng.choice(
        [
            f"({index} + {far}) % {extent}",
            f"({index} + {extent} * 3 - {far % (2 * extent)}) % {extent}",
            f"({far} - {index} + 40 * {extent}) % {extent}",
            f"(2 * {index} + {far}) % {extent}",
            f"({index} + {more}) / 3 % {by}",
            f"({index} + {far}) % {by} + {extent - by}",
            f"({extent - 1} + ({index} - 7 - {more}) % {extent}) / 2",
            f"(({index} + 1) % {extent} + {far}) % {extent}",
            f"max(min({index} - {more}, {extent - 1}), 0)",
            f"min({extent - 1}, max({far} - {index}, 0)) / {by}",
            f"min(max({index} + {more} - 3, 0), ({far} + 2 * {index}) % {extent})",
            f"({index} < {more} ? 0 : min({index} - {more}, {extent - 1}))",
            f"({index} > {far} ? {extent - 1} : {index} < {extent} ? {index} : 0)",
            f"({index} + {more} >= {extent} ? {more % extent} : {index} + {more})",
            f"(!({index} > {more}) ? {extent - 1} : min({index} - {more}, {extent - 1}))",
        ]
    )


def work(rng: random.Random) -> tuple[str, list[Array]]:
    """A def and its inputs."""
    sizes = [rng.choice([1, 2, 3, 7, 8, 16, 17, 31, 40, 67]) for _ in range(2)]
    results = [rng.choice([n, n, 1, 5, 33, 70]) for n in sizes]
    reads = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        row = place(rng, rng.choice("iij"), sizes[0]) if rng.random() < 0.6 else f"i % {sizes[0]}"
        reads.append(f"X({row}, {place(rng, 'j' + rng.choice(['', '', ' + k']), sizes[1])})")
    ranges = f"where i in 0:{results[0]}, j in 0:{results[1]}"
    type_ = rng.choice(TYPES)
    reduced = any("k" in read for read in reads)
    if rng.random() < 0.3 and not reduced:
        body = f"Y(i, j) > 0 ? {reads[0]} : {' - '.join(reads)}"
    else:
        body = " + ".join([*reads, *(["Y(i, j)"] if not reduced else [])])
    statement = f"O(i, j) {'+=!' if reduced else '='} {body} {ranges}"
    if reduced:
        statement += f", k in 0:{rng.choice([1, 3, 5])}"
    if rng.random() < 0.3:
        named = place(rng, "j", sizes[1])
        statement += f", w = {named}"
        statement = statement.replace(reads[0], f"X(i % {sizes[0]}, w)", 1)
    made = "O"
    if rng.random() < 0.3:
        made = "O, P"
        statement += f" P(i, j) = O(i, j) + X({row}, {place(rng, 'j', sizes[1])})"
    shapes = ", ".join(map(str, sizes)), ", ".join(map(str, results))
    text = f"def f({type_}({shapes[0]}) X, {type_}({shapes[1]}) Y) -> ({made}) {{ {statement} }}"
    draw = np.random.default_rng(rng.randrange(1 << 30))
    numbers = numpy_dtype(SCALAR_TYPES[type_])
    return text, [draw.integers(-9, 10, shape).astype(numbers) for shape in (sizes, results)]


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_random_places(seed: int) -> None:
    check_random_defs(work, f"places {seed}", 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_more_random_places(seed: int) -> None:
    check_random_defs(work, f"more places {seed}", 25)


def at_point(index: ir.Affine, i: int) -> int:
    return index.constant + index.coefficient("i") * i


_OPERATIONS: dict[str, Callable[[int, int], float]] = {
    "/": truediv,
    "%": math.fmod,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("op", _OPERATIONS)
def test_pieces_and_intervals(op: str) -> None:
    rng = random.Random(op)
    for _ in range(200):
        dim = ir.Dim("i", rng.randrange(-9, 9), rng.randrange(1, 12), False)
        index = ir.Affine.variable("i").scaled(rng.choice([-2, -1, 1, 3]))
        index += ir.Affine((), rng.randrange(-20, 20))
        value = ir.Binary(op, ir.Position(index, INT64), ir.Const(5, INT64), INT64)
        interval, piece = interval_of(value, {"i": dim}), piece_of(value, {"i": dim}, {})
        assert interval is not None
        assert piece is not None
        held = []
        for at in range(dim.first, dim.first + dim.extent):
            right = (at_point(index, at), 5)
            made = int(_OPERATIONS[op](*right))
            assert interval[0] <= made <= interval[1]
            if all(at_point(each, at) < bound for each, bound in piece[1]):
                held.append(at_point(piece[0], at) == made)
        assert held, "the middle of all points is among them"
        assert all(held)


@pytest.mark.parametrize(
    ("op", "shift", "within"), [("max", -6, range(8, 60)), ("min", 3, range(55))]
)
def test_most_points_lie_beyond_a_remainder(op: str, shift: int, within: range) -> None:
    """Where neighbours three apart are held within a row of 60."""
    at, by = ir.Position(ir.Affine.variable("i"), INT64), ir.Const(3, INT64)
    inner: ir.Value = ir.Binary("%", at, by, INT64)
    if op == "min":
        inner = ir.Binary("+", inner, ir.Const(57, INT64), INT64)
    moved = ir.Affine.variable("i") + ir.Affine((), shift)
    for sides in [(ir.Position(moved, INT64), inner), (inner, ir.Position(moved, INT64))]:
        piece = piece_of(ir.Binary(op, *sides, INT64), {"i": ir.Dim("i", 0, 60, False)}, {})
        assert piece is not None
        index, bounds = piece
        held = [i for i in range(60) if all(at_point(each, i) < bound for each, bound in bounds)]
        assert index == moved
        assert held == list(within)


@pytest.mark.parametrize("column", ["x + 20", "W + 20 - x"])
def test_lanes_at_the_end_of_a_row_are_two_loads_under_masks(column: str) -> None:
    device = find("zen 4")
    assert device is not None
    read = f"X((y + 15) % H, ({column}) % W) where y in 0:H, x in 0:W"
    text = f"def f(float(H, W) X) -> (O) {{ O(y, x) = {read} }}"
    sized = sized_of(text, np.zeros((30, 40), np.float32))
    built = cpu.schedule(sized, MappingOptions("mlp"), replace(device, threads=1))
    found = emit_program(built, device).text
    assert "@llvm.masked.load.v16f32" in found
    assert "gather" not in found
    assert "insertelement <16 x float>" not in found


@pytest.mark.parametrize("extent", [16, 17, 61])
def test_a_circular_convolution_has_lanes_along_its_delays(extent: int) -> None:
    """They lie side by side from the last to the first, and go on at the other end of the row."""
    sums = "O(q, p) +=! int32(X(q, n)) * K((n + N - p) % N) where p in 0:N"
    text = f"def f(int8(Q, N) X, int8(N) K) -> (O) {{ {sums} }}"
    rng = np.random.default_rng(0)
    x, k = (rng.integers(-9, 10, shape).astype(np.int8) for shape in ((8, extent), extent))
    expected = np.stack([x.astype(np.int32) @ np.roll(k, p) for p in range(extent)], axis=1)
    for lanes in (4, 16):
        nest = NestOptions(vectorize=(1, lanes), register=(2, 2, 0))
        (made,) = run(text, x, k, options=MappingOptions("naive", nests=(nest,)))
        np.testing.assert_array_equal(made, expected)
    device = find("cascade lake")
    assert device is not None
    whole = sized_of(text, np.zeros((8, 1023), np.int8), np.zeros(1023, np.int8))
    plan = cpu.plan(whole, MappingOptions("mlp"), replace(device, threads=1))
    assert plan.options["s0"].vectorize == (1, 16)


@pytest.mark.parametrize(("last", "divides"), [(40, False), (70, True)])
def test_indices_that_come_to_no_second_multiple_are_not_divided(last: int, divides: bool) -> None:
    device = find("zen 4")
    assert device is not None
    read = f"X((y + H - 1) % H, (x + {last}) % W) * float((x + y) / W)"
    text = f"def f(float(H, W) X) -> (O) {{ O(y, x) = {read} + X(y, x) }}"
    array = np.arange(30.0 * 40, dtype=np.float32).reshape(30, 40)
    sized = sized_of(text, array)
    built = cpu.schedule(sized, MappingOptions("mlp"), replace(device, threads=1))
    found = emit_program(built, device).text
    assert bool(re.search("[su](rem|div) ", found)) == divides
    (made,) = run(text, array)
    y, x = np.indices(array.shape)
    assert np.array_equal(made, array[(y + 29) % 30, (x + last) % 40] * ((x + y) // 40) + array)


@pytest.mark.parametrize("statement", ["{}", "{} where left = (x + W - 1) % W"])
def test_inside_of_a_periodic_grid_places_are_index_expressions(statement: str) -> None:
    left = "left" if "left" in statement else "(x + W - 1) % W"
    said = statement.format(f"O(y, x) = X(y, {left}) + X((y + 1) % H, x)")
    text = f"def f(float(H, W) X) -> (O) {{ {said} }}"
    rng = np.random.default_rng(0)
    array = rng.integers(-9, 10, (5, 61)).astype(np.float32)
    sized = sized_of(text, array)
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(1, 8)),))
    built = cpu.schedule(sized, options, replace(host_cpu(), threads=1))
    found = [s for k in built.kernels for s in statements(k.body) if isinstance(s, ir.Within)]
    assert len(found) == 1
    inside = [v for s in statements(found[0].then) for v in values_in(s)]
    places = [load.ref.subscripts[1] for v in inside for load in loads(v)]
    assert len(places) == 2
    assert all(isinstance(place, ir.Affine) for place in places)
    check_interpreted(sized, [array], built, "in two versions")
    (made,) = run(text, array, options=options)
    assert np.array_equal(made, np.roll(array, 1, 1) + np.roll(array, -1, 0))


def test_what_is_computed_beside_a_result_has_index_expressions_inside_too() -> None:
    left, right = "(x + W - 1) % W", "(x + 1) % W"
    said = f"O(y, x) = X(y, x) - X(y, {left}) P(y, x) = O(y, x) + X(y, {right})"
    rng = np.random.default_rng(0)
    array = rng.integers(-9, 10, (5, 61)).astype(np.float32)
    text = f"def f(float(H, W) X) -> (O, P) {{ {said} }}"
    sized = sized_of(text, array)
    lanes = NestOptions(vectorize=(1, 8))
    options = MappingOptions("naive", nests=(lanes, lanes))
    built = cpu.schedule(sized, options, replace(host_cpu(), threads=1))
    (found,) = (s for k in built.kernels for s in statements(k.body) if isinstance(s, ir.Within))
    inside = [v for s in statements(found.then) for v in values_in(s)]
    places = [load.ref.subscripts[1] for v in inside for load in loads(v)]
    assert len(places) == 3
    assert all(isinstance(place, ir.Affine) for place in places)
    check_interpreted(sized, [array], built, "in two versions")
    made = run(text, array, options=options)
    assert np.array_equal(made[0], array - np.roll(array, 1, 1))
    assert np.array_equal(made[1], made[0] + np.roll(array, -1, 1))


def bordered(rng: random.Random) -> tuple[str, list[Array]]:
    """A def that reads neighbours but at some borders, and its inputs."""
    sizes = [rng.choice([1, 2, 7, 8, 17, 31, 40, 67]) for _ in range(2)]
    type_, steps = rng.choice(TYPES), [rng.randrange(-3, 4) for _ in range(4)]
    inside, reads = [], []
    for di, dj in (steps[:2], steps[2:]):
        for name, step, size in (("i", di, sizes[0]), ("j", dj, sizes[1])):
            inside += [f"{name} >= {-step}"] if step < 0 else []
            inside += [f"{name} < {size - step}"] if step > 0 else []
        reads.append(f"X(i + {di}, j + {dj})")
    rng.shuffle(inside)
    more = rng.choice(["", "", " && Y(i, j) > 0"])
    otherwise = rng.choice(["0", "X(i, j)", f"Y(i, j) > 1 ? {sizes[0]} : Y(i, j)"])
    value = f"{' && '.join(inside or ['i >= 0'])}{more} ? {' - '.join(reads)} : {otherwise}"
    ranges = f"where i in 0:{sizes[0]}, j in 0:{sizes[1]}"
    statement, made = f"O(i, j) = {value} {ranges}", rng.choice(["O", "O, P"])
    if made != "O":
        statement += f" P(i, j) = {value.replace('X', 'O')} {ranges}"
    shape = ", ".join(map(str, sizes))
    text = f"def f({type_}({shape}) X, {type_}({shape}) Y) -> ({made}) {{ {statement} }}"
    draw = np.random.default_rng(rng.randrange(1 << 30))
    numbers = numpy_dtype(SCALAR_TYPES[type_])
    return text, [draw.integers(-9, 10, sizes).astype(numbers) for _ in range(2)]


@pytest.mark.parametrize("seed", [0, 1])
def test_random_borders(seed: int) -> None:
    check_random_defs(bordered, f"borders {seed}", 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_more_random_borders(seed: int) -> None:
    check_random_defs(bordered, f"more borders {seed}", 25)


def test_inside_of_a_border_neighbours_are_read_without_masks() -> None:
    text = """def f(float(H, W) X) -> (O) {
        O(y, x) = y > 0 && x > 0 && x < W - 1 ? X(y - 1, x - 1) + X(y, x + 1) : 0
            where y in 0:H, x in 0:W }"""
    array = np.random.default_rng(0).integers(-9, 10, (5, 61)).astype(np.float32)
    sized = sized_of(text, array)
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(1, 8)),))
    built = cpu.schedule(sized, options, replace(host_cpu(), threads=1))
    (found,) = (s for k in built.kernels for s in statements(k.body) if isinstance(s, ir.Within))
    asked = [v for s in statements(found.then) for v in values_in(s) if isinstance(v, ir.Select)]
    assert [dims_of_values([v.condition]) for v in asked] == [{"s0.y"}]
    check_interpreted(sized, [array], built, "in two versions")
    (made,) = run(text, array, options=options)
    expected = np.zeros_like(array)
    expected[1:, 1:-1] = array[:-1, :-2] + array[1:, 2:]
    assert np.array_equal(made, expected)
