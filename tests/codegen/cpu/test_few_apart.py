"""Elements a few apart are read with what lies between them, and nothing more."""

from __future__ import annotations

from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest
from comparing import check_cpu
from cpu_kernels import fenced_copy, sized_of
from sampling import sampled

import tcl
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.devices import known_cpus
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

TYPES = {
    "uint8": np.uint8,
    "int8": np.int8,
    "int16": np.int16,
    "float16": np.float16,
    "int32": np.int32,
    "float": np.float32,
    "double": np.float64,
}
LENGTHS = (1, 2, 15, 16, 17, 33, 64, 100, 1001)


def ends(type_: str, apart: int) -> tcl.Definitions:
    """A def that reads the first and the last of each few elements."""
    return tcl.define(
        f"def ends({type_}(N, {apart}) A) -> (O) "
        f"{{ O(n) = float(A(n, 0)) + 2 * float(A(n, {apart - 1})) }}"
    )


def right(a: Array) -> Array:
    """What they come to."""
    both = a[:, 0].astype(np.float32) + 2 * a[:, -1].astype(np.float32)
    return both.astype(np.float32)


@pytest.mark.parametrize(("type_", "apart"), sampled(product(TYPES, [2, 3, 4, 6, 7]), 3))
def test_elements_a_few_apart(type_: str, apart: int) -> None:
    run, rng = ends(type_, apart).ends, np.random.default_rng(apart)
    for length in LENGTHS:
        a = rng.integers(0, 100, (length, apart)).astype(TYPES[type_])
        np.testing.assert_array_equal(run(a), right(a))
        wide = np.zeros((length, 3 * apart), a.dtype)
        wide[:, ::3] = a
        np.testing.assert_array_equal(run(wide[:, ::3]), right(a))


@pytest.mark.parametrize("apart", [2, 3, 4, 6])
@pytest.mark.parametrize("type_", ["uint8", "float16", "float", "double"])
def test_nothing_is_read_behind_the_last_element(type_: str, apart: int) -> None:
    run = ends(type_, apart).ends
    for length in (*LENGTHS[:-1], 13, 61):
        a = np.arange(length * apart).astype(TYPES[type_]).reshape(length, apart)
        np.testing.assert_array_equal(run(fenced_copy(a, after=True)), right(a))


@pytest.mark.parametrize("on", ["", "On(m) > 0 && "])
@pytest.mark.parametrize(("type_", "apart"), sampled(product(TYPES, [2, 3, 4]), 3))
def test_lanes_that_a_condition_switches_off(type_: str, apart: int, on: str) -> None:
    """The vectors that others are taken out of touch no more than these, without a branch."""
    index = f"{apart} * m - 3"
    value = f"({on}{index} >= 0 && {index} < N) ? float(A({index})) : -5"
    text = f"def f({type_}(N) A, int8(M) On) -> (O) {{ O(m) = {value} where m in 0:M }}"
    a, rng = np.arange(70).astype(TYPES[type_]), np.random.default_rng(apart)
    chosen = rng.integers(0, 2, 45).astype(np.int8)
    sized, device = sized_of(text, a, chosen), known_cpus.find("Cascade Lake")
    assert device is not None
    lanes = min(16, 64 // a.itemsize)
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(0, lanes)),))
    found = emit_program(schedule(sized, options, device), device).text
    assert "llvm.masked.gather" not in found
    if device.present <= host_cpu().present:
        for after in (False, True):
            check_cpu(sized, [fenced_copy(a, after), chosen], options, device)


@pytest.mark.parametrize("device", ["Zen 3", "Cascade Lake"])
@pytest.mark.parametrize("type_", ["uint8", "float16", "float", "double"])
def test_neighbours_in_reverse_that_a_condition_switches_off(type_: str, device: str) -> None:
    """One load under a mask in reverse: single elements of a filter take twice as long."""
    text = f"""def f({type_}(N) A, int8(M) On) -> (O) {{
        O(m) = (On(m) > 0 && 29 - m >= 0 && 29 - m < N) ? float(A(29 - m)) : -5 where m in 0:M }}"""
    a, rng = np.arange(25).astype(TYPES[type_]), np.random.default_rng(0)
    chosen = rng.integers(0, 2, 48).astype(np.int8)
    sized, found = sized_of(text, a, chosen), known_cpus.find(device)
    assert found is not None
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(0, 8)),))
    emitted = emit_program(schedule(sized, options, found), found).text
    assert "masked.gather" not in emitted
    assert ("masked.load" in emitted) == (device != "Zen 3" or a.itemsize >= 4)
    if found.present <= host_cpu().present:
        for after in (False, True):
            check_cpu(sized, [fenced_copy(a, after), chosen], options, found)


@pytest.mark.parametrize("device", ["Haswell", "Cascade Lake", "Sapphire Rapids"])
@pytest.mark.parametrize("type_", ["uint8", "int16", "float16"])
def test_narrow_numbers_far_apart_are_not_branched_to(type_: str, device: str) -> None:
    """No processor gathers these. Lanes that a condition switches off read some element."""
    text = f"""def f({type_}(H, W) A) -> (O) {{
        O(y, x) = (9 * x >= 3 && 9 * x < W + 3 && y > 0) ? float(A(y - 1, 9 * x - 3)) : -5
            where y in 0:H, x in 0:14 }}"""
    a = np.arange(3 * 100).reshape(3, 100).astype(TYPES[type_])
    sized, found = sized_of(text, a), known_cpus.find(device)
    assert found is not None
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(1, 16)),))
    assert "masked.gather" not in emit_program(schedule(sized, options, found), found).text
    if found.present <= host_cpu().present:
        for after in (False, True):
            check_cpu(sized, [fenced_copy(a, after)], options, found)


@pytest.mark.parametrize("length", [13, 64])
@pytest.mark.parametrize("device", ["Haswell", "Zen 4"])
def test_lanes_are_taken_out_of_vectors(device: str, length: int) -> None:
    """Also where only some of them exist: 13 complex numbers are two vectors, not 26 elements."""
    text = "def f(float(M, N, 2) A) -> (O) { O(m, n) = A(m, n, 0) * A(m, n, 1) }"
    a = np.arange(3 * length * 2, dtype=np.float32).reshape(3, length, 2)
    sized, found = sized_of(text, a), known_cpus.find(device)
    assert found is not None
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(1, 16)),))
    emitted = emit_program(schedule(sized, options, found), found).text
    assert "insertelement" not in emitted
    assert "load <16 x float>" in emitted
    if found.present <= host_cpu().present:
        check_cpu(sized, [fenced_copy(a, after=True)], options, found)


@pytest.mark.parametrize("op", ["+=!", "max=!"])
@pytest.mark.parametrize("length", [5, 13, 29])
def test_lanes_that_do_not_exist_add_nothing(length: int, op: str) -> None:
    """They have some element of those that do."""
    text = f"def f(float(N, 2) A) -> (O) {{ O() {op} n < 7 ? A(n, 0) / A(n, 1) : A(n, 1) }}"
    a = 1 + np.arange(2 * length, dtype=np.float32).reshape(length, 2) / 64
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(0, 16)),))
    check_cpu(sized_of(text, a), [fenced_copy(a, after=True)], options, host_cpu())


@pytest.mark.parametrize("device", ["Haswell", "Zen 4"])
def test_steps_between_lanes_are_taken_out_too(device: str) -> None:
    """Not read as rows of two, of each lane its own, and transposed."""
    text = "def f(float(N) A, float(2) W) -> (O) { O(n) +=! A(2 * n + k) * W(k) }"
    a, w = np.arange(90, dtype=np.float32), np.array([2, 3], np.float32)
    sized, found = sized_of(text, a, w), known_cpus.find(device)
    assert found is not None
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(0, 16), register=(0, 2)),))
    emitted = emit_program(schedule(sized, options, found), found).text
    assert "load <2 x float>" not in emitted
    if found.present <= host_cpu().present:
        check_cpu(sized, [fenced_copy(a, after=True), w], options, found)


def test_nothing_is_read_for_a_register_whose_lanes_are_all_switched_off() -> None:
    text = """def f(int32(C, T) X, int32(L) W) -> (O) {
        O(c, l) min=! (t + l + 15 < T) ? X(c, t) * X(c, t + l + 15) : 5
            where c in 0:C, l in 0:L, t in 0:T }"""
    arrays = np.arange(5 * 57, dtype=np.int32).reshape(5, 57) % 7 - 3, np.zeros(7, np.int32)
    sized, device = sized_of(text, *arrays), known_cpus.find("Haswell")
    assert device is not None
    own = NestOptions(vectorize=(1, 16), register=(3,))  # of two registers, the second is unused
    options = MappingOptions("naive", nests=(own,))
    found = emit_program(schedule(sized, options, device), device).text
    assert "llvm.masked.load.v8i32" in found
    assert "llvm.masked.load.v16i32" not in found
    if device.present <= host_cpu().present:
        check_cpu(sized, [fenced_copy(a, after=True) for a in arrays], options, device)


@pytest.mark.parametrize("type_", ["float", "double"])
def test_three_results_between_lanes_are_written_as_whole_registers(type_: str) -> None:
    value = "A(n, (c + 1) % 3) + A(n, 0) where c in 0:3"
    text = f"def f({type_}(N, 3) A) -> (O) {{ O(n, c) = {value} }}"
    a = np.arange(67 * 3).astype(TYPES[type_]).reshape(67, 3)
    sized, device = sized_of(text, a), known_cpus.find("Zen 4")
    assert device is not None
    lanes = 64 // a.itemsize
    own = NestOptions(vectorize=(0, lanes), register=(0, 3))
    options = MappingOptions("naive", nests=(own,))
    emitted = emit_program(schedule(sized, options, device), device).text
    assert emitted.count(f"store <{lanes} x {type_}>") == 3
    if device.present <= host_cpu().present:
        check_cpu(sized, [fenced_copy(a, after=True)], options, device)
