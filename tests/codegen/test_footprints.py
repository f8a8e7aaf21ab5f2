"""Footprints, reuse distances and what they make the first cache wait for."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nests import MATMUL, sized

from tcl.codegen.choose.cpu.access_costs import OperandAccess
from tcl.codegen.choose.cpu.core_model import Core
from tcl.codegen.choose.cpu.footprints import Level, refills, with_refills
from tcl.codegen.devices import known_cpus
from tcl.codegen.devices.cpu import LINE
from tcl.codegen.loopir.lower import lower

(CASCADE_LAKE,) = (replace(p, threads=1) for p in known_cpus.PROFILES if p.title == "Cascade Lake")


def core_of(text: str, *shapes: tuple[int, ...]) -> Core:
    program = lower(sized(text, *shapes))
    return Core.read(program, program.nests[0], CASCADE_LAKE)


def access_of(**strides: int) -> OperandAccess:
    return OperandAccess("A", 0, strides, 4, False, None, 1, 1, 1, False)


@pytest.mark.parametrize(
    ("strides", "points", "lines"),
    [
        ({"x": 4}, {"x": 32}, 2),
        ({"y": 400, "x": 4}, {"y": 5, "x": 16}, 5),
        ({"y": 64, "x": 4}, {"y": 5, "x": 16}, 5),
        ({"y": 400, "r": 400, "x": 4}, {"y": 6, "r": 3, "x": 16}, 8),
        ({"y": 800, "r": 400, "x": 4}, {"y": 6, "r": 3, "x": 16}, 13),
        ({"x": 4}, {"y": 7}, 1),
    ],
    ids=["row", "rows", "side by side", "window", "window of every other row", "still"],
)
def test_lines_of_windows_count_once(
    strides: dict[str, int], points: dict[str, int], lines: int
) -> None:
    assert access_of(**strides).lines(points) == lines


@given(
    st.dictionaries(
        st.sampled_from("abc"), st.tuples(st.sampled_from((4, 64, 128, 640)), st.integers(1, 4))
    )
)
def test_lines_are_those_that_points_come_to(moves: dict[str, tuple[int, int]]) -> None:
    """Of an array that begins with a line."""
    steps = [[k * stride for k in range(n)] for stride, n in moves.values()]
    places = {sum(each) // LINE for each in itertools.product(*steps)}
    access = access_of(**{d: stride for d, (stride, _) in moves.items()})
    assert access.lines({d: n for d, (_, n) in moves.items()}) == len(places)


def test_columns_come_from_the_cache_that_holds_what_rows_touch() -> None:
    """A column of 64 numbers is read again for the next 6 rows, the rows for the next column."""
    tile = {"s0.m": 6, "s0.n": 4}
    found = {}
    for depth in (64, 256, 3000):
        core = core_of(MATMUL, (384, depth), (depth, 640))
        found[depth] = [r.level for r in refills(core, "s0.n", tile) if r.exposed < 1.0]
    assert found[64] == [Level.L2]
    assert Level.L2 in found[256]
    assert Level.L3 in found[3000]


def test_what_the_first_cache_holds_takes_nothing() -> None:
    core = core_of(MATMUL, (30, 40), (40, 32))
    assert not list(refills(core, "s0.n", {"s0.m": 6, "s0.n": 2}))
    assert with_refills(core, "s0.n", {"s0.m": 6, "s0.n": 2}, 100.0) == 100.0


@pytest.mark.parametrize(("planes", "expected"), [(1, 2), (4, 0.5)])
def test_points_of_a_stencil_read_what_others_have_read(planes: int, expected: float) -> None:
    """Three planes of 1 MB: two of them again for each, for four planes at once two for all."""
    text = """float(Z, Y, X) A) -> (O) {
        O(z, y, x) = A(z - 1, y, x) + A(z, y, x) + A(z + 1, y, x) where z in 1:Z - 1 }"""
    core = core_of(text, (102, 256, 1024))
    again = sum(r.bytes for r in refills(core, "s0.x", {"s0.z": planes}) if r.level > Level.L2)
    assert again / (100 * 256 * 1024 * 4) == pytest.approx(expected, rel=0.05)


def test_the_second_cache_hands_over_lines_beside_the_work() -> None:
    tile = {"s0.m": 3, "s0.n": 6}
    core = core_of(MATMUL, (384, 256), (256, 384))
    near = sum(r.bytes for r in refills(core, "s0.n", tile) if r.level is Level.L2)
    assert near > 0
    assert with_refills(core, "s0.n", tile, near) == near
    assert near / 32 < with_refills(core, "s0.n", tile, 0.0) < near / 24


def test_levels() -> None:
    sizes = 16 << 10, 512 << 10, 2 << 20, 1 << 30
    levels = [Level.at(CASCADE_LAKE, size) for size in sizes]
    assert levels == [Level.L1, Level.L2, Level.L3, Level.MEMORY]
    rates = [level.rate(CASCADE_LAKE) for level in levels[1:]]
    assert rates == sorted(rates, reverse=True)
