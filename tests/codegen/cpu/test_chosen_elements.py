"""Elements of short rows that data choose are moved to their lanes in registers."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import check_cpu
from cpu_kernels import fenced_copy, sized_of
from nests import sized

import tcl
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.devices import known_cpus
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule

CHOSEN = """def chosen({0}(2, 3) A, {0}(2, 4) B, {0}(2, 13) C, {0}(2, 17) D, uint8(N) I) -> (O) {{
    O(m, n) = A(m, I(n)) + B(m, I(n) % 4) * C(1 - m, I(n) * 5) + D(m, I(n) + 14)
        + (m > 0 ? C(m - 1, I(n) + 1) : m < n % 2 ? B(m + 1, I(n)) : 7) where m in 0:2 }}"""
SCORES = """def scores(float(M, K, 4) P, uint8(L) S) -> (O) {
    O(m, l) +=! P(m, k, S(l + k)) }"""
TYPES = {"float": "f4", "double": "f8", "uint8": "u1", "int16": "i2", "float16": "f2"}
LANES = {"float": (2, 4, 8, 16, 32), "double": (4, 8)}


@pytest.mark.parametrize(("type_", "lanes"), [(t, n) for t in TYPES for n in LANES.get(t, (16,))])
@pytest.mark.parametrize("cpu", ["", "Haswell"])
def test_elements_of_short_rows(type_: str, lanes: int, cpu: str) -> None:
    device = known_cpus.find(cpu) if cpu else host_cpu()
    assert device is not None
    rng = np.random.default_rng(lanes)
    rows = [rng.integers(0, 9, (2, row)).astype(TYPES[type_]) for row in (3, 4, 13, 17)]
    arrays = [fenced_copy(row, after=row.shape[1] != 13) for row in rows]
    arrays.append(rng.integers(0, 3, 37).astype(np.uint8))
    given = sized_of(CHOSEN.format(type_), *arrays)
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(1, lanes)),))
    if device.present <= host_cpu().present:
        check_cpu(given, arrays, options, device)
    else:
        emit_program(schedule(given, options, device), device)


def test_wrong_choices_are_errors() -> None:
    table, places = np.ones((2, 3, 4), np.float32), np.arange(40, dtype=np.uint8) % 4
    run = tcl.define(SCORES).scores
    np.testing.assert_array_equal(run(table, places), np.full((2, 38), 3, np.float32))
    places[39] = 4
    with pytest.raises(IndexError, match="4"):
        run(table, places)


def test_a_default_moves_them_in_registers_and_checks_them_once() -> None:
    given, device = sized(SCORES, (8, 3, 4), (100,)), known_cpus.find("Sapphire Rapids")
    assert device is not None
    text = emit_program(schedule(given, MappingOptions("mlp"), device), device).text
    assert "permvar.si.512" in text
    permutes, checks = (text.count(x) for x in ("call <16 x i32> @llvm.x86", "call void @tcl_fail"))
    assert permutes >= 4 * checks
