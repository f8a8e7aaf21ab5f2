"""What calls in epilogues take from the register tiles of the sums that they work on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nests import sized

from tcl.codegen.devices import known_cpus
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan_cpu

_PRODUCT = """float(M, K) A, float(K, N) B) -> (C, O) {
    C(m, n) +=! A(m, k) * B(k, n)
    O(m, n) = %s }"""


def _points(value: str, depth: int) -> int:
    """Vectors of a register tile of a product that so many terms are added up for."""
    device = known_cpus.find("zen 4")
    assert device is not None
    program = lower(sized(_PRODUCT % value, (1000, depth), (depth, 176)))
    plan = plan_cpu(program, MappingOptions("mlp"), replace(device, threads=1))
    rows, vectors, *_ = plan.options["s0"].register or ()
    assert (plan.options["s1"].register or ())[:2] == (rows, vectors), "it is fused"
    return rows * max(1, vectors)


@pytest.mark.parametrize("call", ["expit(C(m, n))", "exp(C(m, n)) + tanh(C(m, n))"])
def test_tiles_are_smaller_where_calls_would_spill_their_registers(call: str) -> None:
    # Six rows of four factors each, which are loaded before the loop, fit the registers.
    assert _points(call, 4) <= 4 < 6 <= _points("C(m, n) + 1", 4)
    assert _points("fmax(C(m, n), 0)", 4) == _points("C(m, n)", 4), "one instruction"


def test_spills_count_for_little_beside_long_sums() -> None:
    assert _points("expit(C(m, n))", 512) == _points("C(m, n)", 512)


def test_rows_of_sums_share_the_wait_for_their_calls() -> None:
    device = known_cpus.find("zen 4")
    assert device is not None
    text = "float(M, N) A) -> (S) { S(m) +=! %s(A(m, n)) }"
    rows = []
    for call in ("exp", ""):
        program = lower(sized(text % call, (512, 1024)))
        plan = plan_cpu(program, MappingOptions("mlp"), replace(device, threads=1))
        rows.append((plan.options["s0"].register or ())[0])
    assert rows[0] > max(1, rows[1])


@pytest.mark.parametrize(
    ("value", "rows", "lanes"),
    [
        ("exp(C(m)) - exp(L(m))", 1000, (0, 16)),
        ("C(m) - L(m)", 1000, (-1, 1)),
        ("exp(C(m)) - exp(L(m))", 8, (-1, 1)),
    ],
)
def test_functions_of_sums_of_rows_are_called_for_vectors(
    value: str, rows: int, lanes: tuple[int, int]
) -> None:
    """By a pass over the results, where there are enough of them: with lanes along the rows, an
    epilogue would call them for one result at a time."""
    device = known_cpus.find("zen 4")
    assert device is not None
    text = f"""float(M, N) A) -> (C, L, O) {{
        C(m) max=! A(m, n)
        L(m) min=! A(m, n)
        O(m) = {value} }}"""
    program = lower(sized(text, (rows, 400)))
    plan = plan_cpu(program, MappingOptions("mlp"), replace(device, threads=1))
    assert plan.options["s0"].vectorize == (1, 16)
    assert plan.options["s2"].vectorize == lanes
