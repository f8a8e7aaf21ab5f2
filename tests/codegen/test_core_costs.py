"""What the model of a core says of a nest's arithmetic, and of loops that end early."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nests import WIDE, sized

from tcl.codegen.choose.cpu.core_model import Core
from tcl.codegen.choose.cpu.costs import CALL_CYCLES, LONG_REMAINDER_CYCLES, OPERATION_CYCLES
from tcl.codegen.choose.cpu.heuristics import heuristic
from tcl.codegen.choose.cpu.lanes import lanes_of
from tcl.codegen.choose.cpu.lanes_model import along_lanes
from tcl.codegen.choose.cpu.operand_loads import Tile, read_share
from tcl.codegen.choose.cpu.operation_costs import (
    WIDE_FUNCTIONS,
    addition_cycles,
    arithmetic_cycles,
    beside_each_other,
    decided_cycles,
)
from tcl.codegen.choose.cpu.tile_cycles import nest_cycles
from tcl.codegen.choose.cpu.unrolled_steps import unrolled_steps
from tcl.codegen.choose.cpu.variants import shares_of_divided
from tcl.codegen.cpu.math import float32_wide
from tcl.codegen.devices import known_cpus
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import Bound
from tcl.codegen.loopir.lower import lower
from tcl.codegen.passes.cpu.cut import mostly_held, reached_share
from tcl.codegen.passes.cpu.skip import unguarded

(ZEN4,) = (replace(p, threads=1) for p in known_cpus.PROFILES if p.title == "Zen 4")
(CASCADE_LAKE,) = (p for p in known_cpus.PROFILES if p.title == "Cascade Lake")


def nest_of(value: str, where: str = "") -> ir.Nest:
    every = f"where n in 0:N, m in 0:M, d in 0:D{where}"
    text = f"float(N, D) A, float(M, D) B) -> (O) {{ O(n, m) +=! {value} {every} }}"
    return lower(sized(text, (30, 20), (40, 20))).nests[0]


@pytest.mark.parametrize(
    ("value", "cycles"),
    [
        ("A(n, d) * B(m, d)", 0.0),
        ("(A(n, d) - B(m, d)) * (A(n, d) - B(m, d))", OPERATION_CYCLES),
        ("(A(n, d) - B(m, d)) * (B(m, d) - A(n, d))", 2 * OPERATION_CYCLES),
        ("(A(n, d) - B(m, d)) * (A(n, d) + B(m, d))", 2 * OPERATION_CYCLES),
        ("exp(A(n, d)) * exp(A(n, d))", CALL_CYCLES),
        ("exp(A(n, d)) * exp(B(m, d))", 2 * CALL_CYCLES),
        ("A(n, d) * A(n, d) - A(n, d) * B(m, d)", OPERATION_CYCLES),
    ],
)
def test_what_is_computed_twice_counts_once(value: str, cycles: float) -> None:
    assert sum(arithmetic_cycles(nest_of(value)).values()) == OPERATION_CYCLES + cycles


def test_a_variable_counts_as_its_value() -> None:
    plain = nest_of("(A(n, d) - B(m, d)) * (A(n, d) - B(m, d))")
    named = nest_of("x * x", ", x = A(n, d) - B(m, d)")
    assert arithmetic_cycles(named) == arithmetic_cycles(plain)


@pytest.mark.parametrize(
    ("value", "additions"),
    [
        ("A(n, d) * B(m, d)", 0),
        ("(A(n, d) - B(m, d)) * (A(n, d) - B(m, d))", 1),
        ("A(n, d) - B(m, d)", 2),
        ("fabs(A(n, d) - B(m, d))", 2),
        ("int32(A(n, d)) - int32(B(m, d))", 0),
    ],
)
def test_additions_are_told_apart_from_products(value: str, additions: int) -> None:
    found = sum(addition_cycles(nest_of(value)).values())
    assert found == additions * OPERATION_CYCLES


def test_additions_run_beside_products_on_processors_that_have_units_of_their_own() -> None:
    text = """float(N, D) A, float(M, D) B) -> (O) {
        O(n, m) +=! (A(n, d) - B(m, d)) * (A(n, d) - B(m, d)) }"""
    program = lower(sized(text, (30, 20), (40, 20)))
    nest = program.nests[0]
    assert ZEN4.adds_beside and not WIDE.adds_beside
    tile = {"s0.n": 4, "s0.m": 2}
    both = [Core.read(program, nest, device) for device in (ZEN4, WIDE)]
    assert both[0].each == beside_each_other(2 * OPERATION_CYCLES, OPERATION_CYCLES)
    assert both[1].each == 2 * OPERATION_CYCLES
    alone = replace(both[0], additions={})
    assert nest_cycles(both[0], "s0.m", tile) < nest_cycles(alone, "s0.m", tile)


@given(st.data())
def test_tiles_without_points_within_bounds_are_not_counted(data: st.DataObject) -> None:
    names = ("a", "b", "c")[: data.draw(st.integers(1, 3))]
    small = st.integers(-3, 3)
    dims = tuple(
        ir.Dim(name, data.draw(small), data.draw(st.integers(1, 16)), False) for name in names
    )
    widths = {name: data.draw(st.integers(1, 6)) for name in names}
    bounds = tuple(
        (
            ir.Affine(tuple((n, data.draw(st.sampled_from((-1, 1)))) for n in names), 0),
            data.draw(st.integers(-10, 20)),
        )
        for _ in range(data.draw(st.integers(1, 2)))
    )
    nest = replace(nest_of("A(n, d)"), dims=dims)
    assert reached_share(nest, bounds, widths) == counted(dims, bounds, widths, any)
    held = counted(dims, bounds, widths, all)
    assert mostly_held(nest, bounds, widths) == (held if held > 0.5 else 0.0)


def counted(
    dims: tuple[ir.Dim, ...],
    bounds: tuple[Bound, ...],
    widths: Mapping[str, int],
    points_within: Callable[[Iterable[bool]], bool],
) -> float:
    """The part of the tiles that have ``any`` or ``all`` points within each bound, point by
    point."""
    tiles = [
        [
            range(at, min(at + widths[d.name], d.first + d.extent))
            for at in range(d.first, d.first + d.extent, widths[d.name])
        ]
        for d in dims
    ]
    every = list(itertools.product(*tiles))
    within = 0
    for tile in every:
        points = [
            dict(zip((d.name for d in dims), p, strict=True)) for p in itertools.product(*tile)
        ]
        within += all(
            points_within(
                index.constant + sum(c * at[n] for n, c in index.terms) < bound for at in points
            )
            for index, bound in bounds
        )
    return within / len(every)


def test_tiles_of_a_triangle_leave_out_what_lies_beyond_it() -> None:
    """27 columns are two vectors, of which the first rows need one."""
    text = """float(B, F, D) V) -> (O) {
        O(b, i, j) +=! (j < i) ? V(b, i, d) * V(b, j, d) : 0 where i in 0:F, j in 0:F }"""
    program = lower(sized(text, (256, 27, 16)))
    found = heuristic(program, program.nests[0], ZEN4)
    rows, columns = (found.register or ())[1:3]
    assert found.vectorize == (2, 16) and columns <= 1
    assert rows == 14, "two tiles, of which one has both vectors"


def test_loops_end_early_whatever_else_a_condition_asks() -> None:
    """Triples of which the second is below the third, and neither is the first: the loop over the
    third is no longer written out, as it ends after 9 points in the mean."""
    text = """float(I, J) A, float(I, P) B, float(J, K) C) -> (O) {{
        O(i, p) +=! {} ? exp(B(i, p) * A(i, j) * A(i, k)) : 0 where j in 0:J, k in 0:J }}"""
    cores = []
    for condition in ("j < k", "j < k && j != i && k != i", "j != i && k != i"):
        program = lower(sized(text.format(condition), (19, 19), (19, 5), (19, 19)))
        nest = program.nests[0]
        bare = nest if "&&" in condition else replace(nest, point=unguarded(nest.point))
        cores.append(Core.read(program, bare, ZEN4))
    shares = [core.reached("s0.j", {"s0.p": 5}) for core in cores]
    assert shares[0] == shares[1] == 10 / 19 and shares[2] == 1.0
    steps = [unrolled_steps(core, "s0.i", {"s0.i": 1, "s0.p": 5}) for core in cores]
    assert steps == [1, 1, 4]


def test_functions_in_a_wider_type_gain_nothing_from_whole_vectors() -> None:
    """They have two of these for one of float32."""

    def ratio(function: str, type_: str) -> float:
        program = lower(sized(f"{type_}(N) A) -> (O) {{ O(n) = {function} }}", (4096,)))
        core = Core.read(program, program.nests[0], ZEN4)
        return nest_cycles(core, "s0.n", {}) / nest_cycles(core.in_halves(), "s0.n", {})

    assert ratio("exp(A(n))", "float") < 0.75 > ratio("log1p(A(n))", "double")
    assert 0.75 < ratio("log1p(exp(A(n)))", "float") < 0.9 < ratio("log1p(A(n))", "float")
    assert frozenset(float32_wide.FORMULAS) == WIDE_FUNCTIONS


def test_steps_that_a_divided_index_leaves_out_are_not_counted() -> None:
    """Where rows that differ in it are no points of one register tile."""
    nest = nest_of("((n - d) % 4 == 0 && d < m + 9) ? A(n, d) * B(m, d) : 0")
    assert shares_of_divided(nest) == ((frozenset({"s0.n", "s0.d"}), 0.25),)
    assert not shares_of_divided(nest_of("(d < n) ? A(n, d) * B(m, d) : 0"))
    assert not shares_of_divided(nest_of("(A(n, d) / 2 > 1) ? A(n, d) * B(m, d) : 0"))
    text = """int32(N, K) A, int32(K, M) B) -> (O) {
        O(i, j, l) +=! ((i - l) % 4 == 0) ? A(i, k) * B(k, j) : 0 where l in 0:8 }"""
    program = lower(sized(text, (16, 30), (30, 64)))
    core = Core.read(program, program.nests[0], ZEN4)
    assert core.taken("s0.j", {"s0.j": 2}) == 0.25
    assert core.taken("s0.j", {"s0.i": 4}) == core.taken("s0.j", {"s0.l": 2, "s0.j": 2}) == 1.0
    every = replace(core, divided=())
    ratio = nest_cycles(core, "s0.j", {}) / nest_cycles(every, "s0.j", {})
    assert 0.2 < ratio < 0.5  # results are stored as before


@pytest.mark.parametrize(("extent", "least"), [(30, LONG_REMAINDER_CYCLES), (32, 0.0)])
def test_places_that_data_move_around_a_ring_are_divided(extent: int, least: float) -> None:
    text = "float(H, N) A, int32(M) J) -> (O) { O(m, y, n) = A(y, (n + J(m)) % N) where n in 0:N }"
    program = lower(sized(text, (9, extent), (40,)))
    (nest,) = program.nests
    found = sum(arithmetic_cycles(nest).values())
    assert least <= found < least + 2


def test_lanes_are_those_of_the_types_that_norms_compute_in() -> None:
    """Norms of floats are computed in float64: a byte made from one takes no more registers than
    one made from float64."""
    counts = []
    for value in ("X(n) * 2", "rnorm3d(X(n), 1.0, 2.0) * 2", "double(X(n)) * 2"):
        text = f"float(N) X) -> (uint8(N) O) {{ O(n) = uint8({value}) }}"
        counts.append(lanes_of(lower(sized(text, (1000,))).nests[0].point, WIDE))
    assert counts == [64, 32, 32]


def test_what_reductions_leave_alone_is_computed_before_them() -> None:
    """As the rows' scales of a product."""
    text = "float(N, D) A, float(M, D) B) -> (O) { O(n, m) +=! exp(A(n, 0)) * B(m, d) }"
    program = lower(sized(text, (30, 20), (40, 20)))
    work = dict(along_lanes(Core.read(program, program.nests[0], CASCADE_LAKE), "s0.m").work)
    assert work[frozenset({"s0.n"})] == pytest.approx(2 * CALL_CYCLES / 20)
    assert work[frozenset({"s0.n", "s0.m", "s0.d"})] == OPERATION_CYCLES


def test_a_division_by_one_of_two_numbers_is_a_call_unless_it_is_known_which() -> None:
    """Of which LLVM makes no shift."""
    text = "int32(N) X) -> (O) { O(n, k) = X(n) / (k < 8 ? 1 : 256) where k in 0:16 }"
    nest = lower(sized(text, (100,))).nests[0]
    assert sum(arithmetic_cycles(nest).values()) > CALL_CYCLES
    assert sum(decided_cycles(nest, {"s0.k": 16}).values()) == OPERATION_CYCLES


def divided(device: CpuProfile, text: str, *shapes: tuple[int, ...]) -> Core:
    program = lower(sized(text, *shapes))
    return Core.read(program, program.nests[0], device)


@pytest.mark.parametrize(
    ("title", "kind", "quotient", "root"),
    [
        ("Cascade Lake", "float", 10.0, 12.0),
        ("Cascade Lake", "double", 16.0, 24.0),
        ("Skylake", "double", 8.0, 12.0),
        ("Haswell", "float", 14.0, 14.0),
        ("Zen 3", "float", 3.3, 5.0),
        ("Zen 4", "double", 9.0, 17.6),
        ("Neoverse V1", "double", 3.5, 3.5),
    ],
)
def test_divisions_take_as_long_as_the_processor_says(
    title: str, kind: str, quotient: float, root: float
) -> None:
    device = known_cpus.find(title)
    assert device is not None
    text = f"{kind}(N) A, {kind}(N) B) -> (O) {{ O(n) = sqrt(A(n)) / B(n) }}"
    found = divided(device, text, (99,), (99,)).divisions
    assert sorted(d.cycles for d in found) == pytest.approx(sorted([quotient, root]))


def test_a_division_runs_beside_other_arithmetic() -> None:
    """Of lanes by the same number it is other arithmetic; of one for all lanes, one is divided."""
    text = "float(N, D) A, float(N) B, float(D) C) -> (O) { O(n, d) = A(n, d) / %s }"
    rows, columns, once = (
        divided(CASCADE_LAKE, text % by, (30, 99), (30,), (99,))
        for by in ("B(n)", "C(d)", "(B(n) / 3.0)")
    )
    along = [along_lanes(core, "s0.d") for core in (rows, columns)]
    assert [sum(c for _, c in each.divided) for each in along] == [0.0, 10.0]
    assert sum(c for _, c in along[0].work) > sum(c for _, c in along[1].work)
    assert [c for _, c in along_lanes(once, "s0.d").divided] == [3.0]
    assert nest_cycles(rows, "s0.d", {}) < nest_cycles(columns, "s0.d", {})


def test_square_roots_are_no_calls() -> None:
    text = "float(N) A) -> (O) { O(n) = %s(A(n)) }"
    assert [divided(ZEN4, text % name, (99,)).called for name in ("sqrt", "exp")] == [False, True]


def test_lanes_are_of_what_no_condition_of_steps_compares() -> None:
    """With lanes along i or j, vectors of pairs within the condition have lanes outside of it."""
    text = """int32(N, F) X, float(H) W) -> (O) {
        O(n) +=! i < j ? W((X(n, i) * 7 + X(n, j)) % H) : 0
    }"""
    program = lower(sized(text, (4000, 20), (65521,)))
    (nest,) = program.nests
    assert (heuristic(program, nest, ZEN4).vectorize or (-1,))[0] == 0
    core = Core.read(program, replace(nest, point=unguarded(nest.point)), ZEN4)
    assert core.reached("s0.n", {"s0.n": 8}) == pytest.approx(0.475)
    assert core.reached("s0.j", {"s0.j": 2}) > 0.8


def test_lanes_apart_that_the_innermost_steps_do_not_move_are_read_once() -> None:
    text = "float(N, F) X, float(N, F) Y) -> (O) { O(n) +=! X(n, i) * Y(n, j) }"
    program = lower(sized(text, (4000, 20), (4000, 20)))
    core = Core.read(program, program.nests[0], ZEN4)
    tile = Tile({"s0.n": 4}, (False, False), 1)
    x, y = core.reads
    assert read_share(core, x, "s0.n", {"s0.n": 4}, tile) == 1 / 20
    assert read_share(core, y, "s0.n", {"s0.n": 4}, tile) == 1.0
    assert read_share(core, x, "s0.n", {"s0.n": 40}, tile) == 1.0  # more than registers hold


def test_elements_that_a_window_reads_twice_are_made_wider_before() -> None:
    text = """half(H, W, C) X, half(3, 3, C, O) K) -> (Y) {
        Y(h, w, o) +=! float(X(2 * h + i, 2 * w + j, c)) * float(K(i, j, c, o))
    }"""
    program = lower(sized(text, (116, 124, 32), (3, 3, 32, 16)))
    assert (heuristic(program, program.nests[0], ZEN4).stage or (-1,))[0] == 0


def test_lanes_are_of_steps_where_results_are_few() -> None:
    """Six columns leave ten lanes of sixteen empty, rows that are six apart none."""
    text = """float(N, D) X) -> (O) {
        O(d, e) +=! j < i ? (X(i, d) > X(j, d)) * (X(i, e) > X(j, e)) : 0 }"""
    program = lower(sized(text, (430, 6)))
    lane, _ = heuristic(program, program.nests[0], ZEN4).vectorize or (-1, 1)
    assert program.nests[0].dims[lane].reduction


def test_lanes_apart_of_a_last_vector_are_as_many_as_it_has_points() -> None:
    text = "float(B, N, N) A, float(B, N, N) C) -> (O) { O(b) +=! A(b, i, j) * C(b, j, i) }"
    program = lower(sized(text, (45, 35, 35), (45, 35, 35)))
    lane, _ = heuristic(program, program.nests[0], ZEN4).vectorize or (-1, 1)
    assert lane >= 0 and program.nests[0].dims[lane].reduction
