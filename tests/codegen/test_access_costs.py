"""What the model of a core knows of operands that data select."""

from __future__ import annotations

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
