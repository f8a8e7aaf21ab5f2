"""Lanes that data selects, under conditions: where gathers are slow, each is loaded on its own."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from cpu_kernels import Array, fenced_copy, run, sized_of
from random_defs import check_random_defs

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule import cpu
from tcl.grammar.syntax.types import SCALAR_TYPES

GUARDED = """def f(float(A, T) S, float(N) P) -> (O) {
    O(i, a) = l >= 0 && l < T ? S(a, l) : 0.5
        where i in 0:N, a in 0:A, l = int32(floor(P(i) * (a + 1))) }"""


def work(rng: random.Random) -> tuple[str, list[Array]]:
    """A def that reads what data selects, inside of the tensor only, and its inputs."""
    n, rows, row = rng.choice([1, 5, 16, 33]), rng.choice([1, 3, 16, 35]), rng.choice([1, 2, 40])
    type_ = rng.choice(["float32", "float64", "int8", "float16", "int64", "bool"])
    index = rng.choice(["int32(floor(P(i) * (a + 1)))", "K(i, a)", "K(i, a) - a", "K(0, a) + i"])
    read = rng.choice(["S(a, l)", "S(l, a)", "S(a, T - 1 - l)", "S(A - 1 - a, l)"])
    t, op = (rows, "=") if read == "S(l, a)" else (row, rng.choice(["=", "+=!", "max=!"]))
    t, op = (t, "=") if type_ == "bool" else (t, op)
    left = "O(i, a)" if op == "=" else "O(i)"
    shape = (t, rows) if read == "S(l, a)" else (rows, t)
    sizes = f"{type_}({shape[0]}, {shape[1]}) S, float(N) P, int32(N, A) K"
    read = read.replace("T", str(t)).replace("A", str(rows))
    otherwise = "bool(0)" if type_ == "bool" else "1"
    text = f"def f({sizes}) -> (O) {{ {left} {op} l >= 0 && l < {t} ? {read} : {otherwise} "
    text += f"where i in 0:{n}, a in 0:{rows}, l = {index} }}"
    draw = np.random.default_rng(rng.randrange(1 << 30))
    values = draw.integers(0, 9, shape).astype(numpy_dtype(SCALAR_TYPES[type_]))
    places = draw.uniform(-1, 3, n).astype(np.float32)
    return text, [values, places, draw.integers(-3, t + 3, (n, rows)).astype(np.int32)]


@pytest.fixture(autouse=True)
def _slow_gathers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever processor this is."""
    monkeypatch.setattr("tcl.codegen.cpu.emit.lane_loads.gathers_slowly", lambda _: True)


@pytest.mark.parametrize("seed", range(4))
def test_random_places(seed: int) -> None:
    check_random_defs(work, f"places {seed}", 5, [host_cpu()])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_more_random_places(seed: int) -> None:
    check_random_defs(work, f"more places {seed}", 25, [host_cpu()])


@pytest.mark.parametrize(
    ("name", "gathers"),
    [("Zen 4", False), ("Zen 3", False), ("Cascade Lake", False), ("Sapphire Rapids", True)],
)
def test_who_gathers(monkeypatch: pytest.MonkeyPatch, name: str, gathers: bool) -> None:
    monkeypatch.undo()
    device = find(name)
    assert device is not None
    sized = sized_of(GUARDED, np.zeros((45, 151), np.float32), np.zeros(80, np.float32))
    for lanes in (4, 16):
        options = MappingOptions("naive", nests=(NestOptions(vectorize=(1, lanes)),))
        text = emit_program(cpu.schedule(sized, options, replace(device, threads=1)), device).text
        assert ("masked.gather" in text) == gathers


def test_what_is_selected_for_all_lanes_is_one_element() -> None:
    """Of the last lanes, too, which are fewer."""
    text = """def f(double(M, 6, 6) C, double(E, 6, 6) T, int32(E) Material) -> (R) {
        R(e, k, j) +=! C(Material(e), k, l) * T(e, l, j) }"""
    device = find("Cascade Lake")
    assert device is not None
    material = np.array([2, 0, 1, 2, 2], np.int32)
    sized = sized_of(text, np.zeros((3, 6, 6)), np.zeros((5, 6, 6)), material)
    options = MappingOptions("naive", nests=(NestOptions(vectorize=(2, 8)),))
    kernel = emit_program(cpu.schedule(sized, options, replace(device, threads=1)), device)
    assert "masked.gather" not in kernel.text
    draw = np.random.default_rng(1)
    c, t = draw.random((3, 6, 6)), draw.random((5, 6, 6))
    (found,) = run(text, c, t, material, options=options)
    np.testing.assert_allclose(found, c[material] @ t, rtol=1e-12)
    with pytest.raises(IndexError):
        run(text, c, t, material + 1, options=options)


def test_what_is_selected_for_some_lanes_is_one_element() -> None:
    """It is read whether they need it or not. An index outside is an error if some lane does."""
    text = """def f(float(V) W, int32(L) Word, int32(K) Most) -> (R) {
        R(k) +=! Word(l) < Most(k) ? W(Word(l)) : -1 }"""
    w, word = np.arange(1, 6, dtype=np.float32), np.array([0, 1, 4, 3, 7, 2, 600], np.int32)
    most = np.array([0, 5, 3, 1, 2, -1, 5, 4], np.int32)
    sized, options = sized_of(text, w, word, most), MappingOptions("naive").vectorize(8)
    built = cpu.schedule(sized, options, host_cpu())
    assert "masked.gather" not in emit_program(built, host_cpu()).text
    # Without checks, it may be anywhere.
    assert "masked.gather" in emit_program(built, host_cpu(), unchecked=True).text
    (found,) = run(text, w, word, most, options=options)
    expected = np.where(word[:, None] < most, w[np.minimum(word, 4), None], -1).sum(0)
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(IndexError):
        run(text, w, word, most + 3, options=options)


@pytest.mark.parametrize("type_", ["uint8", "int16"])
@pytest.mark.parametrize("points", [5, 27, 45, 103])
def test_a_part_of_a_vector_of_narrow_numbers_is_read_in_pieces(type_: str, points: int) -> None:
    x = np.random.default_rng(1).integers(1, 100, (5, points)).astype(type_)
    text = f"def f({type_}(M, N) X) -> ({type_}(M) S) {{ S(m) max=! X(m, n) }}"
    for lanes in (8, 16):
        (found,) = run(text, x, options=MappingOptions("naive").vectorize(lanes, 1))
        np.testing.assert_array_equal(found, x.max(1))


@pytest.mark.parametrize(("type_", "lanes"), [("double", 8), ("float", 16)])
@pytest.mark.parametrize("made", ["double", "float16"])
def test_registers_all_of_whose_lanes_are_switched_off_are_not_read(
    type_: str, lanes: int, made: str
) -> None:
    """What LLVM finds out of the last lanes of a mask once it has split it."""
    few, points = lanes // 2 - 2, 2 * lanes - 1
    text = f"""def f({type_}(3, {few}) A) -> ({made}(5, {points}) O) {{
        O(i, j) = i >= 1 && j < {few} && i <= 3 ? {made}(A(i - 1, j)) : 0
            where i in 0:5, j in 0:{points} }}"""
    a = np.arange(3.0 * few).reshape(3, few).astype(np.float64 if type_ == "double" else np.float32)
    nest = NestOptions(vectorize=(1, lanes), register=(0, 2))
    for after in (False, True):
        inside = fenced_copy(a, after)
        (found,) = run(text, inside, options=MappingOptions("naive", nests=(nest,)))
        expected = np.zeros((5, points))
        expected[1:4, :few] = a
        np.testing.assert_array_equal(found, expected)
