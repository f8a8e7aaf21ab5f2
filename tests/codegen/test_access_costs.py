"""What the model of a core knows of operands that data select."""

from __future__ import annotations

import pytest
from nests import sized

from tcl.codegen.choose.cpu.access_costs import OperandAccess, access_of
from tcl.codegen.choose.cpu.chunk_groups import ChunkGroup
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.walk import operands

_GATHERED = """float(C, T) X, float(C, F) W) -> (Y) {
    Y(f, n) +=! X(c, q) * W(c, f) where n in 0:8 * T, q = (n * n) % T }"""


def _gather() -> OperandAccess:
    program = lower(sized(_GATHERED, (6, 40), (6, 5)))
    (nest,) = program.nests
    access = access_of(program, nest, operands(nest.point)[0])
    assert access.scattered
    return access


def test_dimensions_behind_variables_decide_what_is_selected() -> None:
    assert _gather().moving == {"s0.c", "s0.n"}


def test_points_that_select_the_same_element_count_once() -> None:
    access = _gather()
    assert access.count({"s0.f": 4}) == 1
    assert access.count({"s0.f": 4, "s0.n": 2}) == 2
    assert access.cycles("s0.f", 16) == access.cycles(None, 1) < access.cycles("s0.n", 16)


def test_a_chunk_touches_what_its_points_select() -> None:
    program = lower(sized(_GATHERED, (6, 40), (6, 5)))
    group = ChunkGroup(program.nests, (("s0.f",), ("s0.n",)), (program.nests,))
    assert group.bytes(program, {"s0.f": 5, "s0.n": 3}, written=False) == 4 * (6 * 3 + 6 * 5)


@pytest.mark.parametrize(
    ("place", "goes_on"),
    [
        ("At(n) + k", True),
        ("k - At(n) + N", True),
        ("At(n) + 2 * k", False),
        ("At(n) - k", False),
        ("At(n) + k + k * k / 90", False),
        ("At(k) + k", False),
        ("At(At(n)) + k", True),
    ],
)
@pytest.mark.parametrize(
    "form", ["{0} >= 0 && {0} < N ? X({0}) : 0", "X({0})", "k > 3 ? X({0}) : 0"]
)
def test_what_follows_an_element_that_data_select_is_a_vector(
    place: str, goes_on: bool, form: str
) -> None:
    """Not where lanes are checked under a condition that does not say that they are there."""
    value, found_at_once = form.format(place), "k > 3" not in form
    text = f"""float(N) X, int32(N) At) -> (O) {{
        O(n, k) = {value} where k in 0:20, n in 0:9 }}"""
    program = lower(sized(text, (400,), (400,)))
    (nest,) = program.nests
    access = next(
        access_of(program, nest, load) for load in operands(nest.point) if load.ref.tensor == "X"
    )
    assert access.following == ({"s0.k"} if goes_on and found_at_once else set())
    assert (access.cycles("s0.k", 16) < 2) == (goes_on and found_at_once)
