"""Lanes that lie apart in memory, read a row at a time and transposed in registers."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from itertools import chain, product
from typing import TypeVar

import numpy as np
import pytest
from compiled_kernels import compile_cpu
from cpu_kernels import Array, fenced, plain, reference, run, sized_of
from nests import WIDE
from program_builder import numpy_type
from sampling import sampled

from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.cpu.llvm.transpose import joined, transposed
from tcl.codegen.devices.cpu import host_cpu, narrowed
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import schedule

TYPES = ["int8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool"]
TURNED = "def f({0}(M, N) A) -> (O) {{ O(n, m) = A(m, n) }}"
PRODUCT = "def f({0}(M, K) A, {0}(N, K) B) -> ({1}(M, N) C) {{ C(m, n) +=! A(m, k) * B(n, k) }}"
COLUMNS = 1
_T = TypeVar("_T")


whole = pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])


def turn(cases: list[_T], name: str, lanes: int, whole: bool) -> list[_T]:
    """All of these, or one in four: each has its turn with some of the types and of the lanes."""
    at = (TYPES.index(name) + lanes.bit_length()) * 3
    some = range(at, at + max(1, len(cases) // 4))
    return cases if whole else [cases[k % len(cases)] for k in some]


def numbers(name: str, *shape: int) -> Array:
    found: Array = np.random.default_rng(1).integers(0, 5, shape).astype(numpy_type(name))
    return found


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("squares", [1, 2, 4])
def test_the_network(size: int, itemsize: int, squares: int) -> None:
    """Followed lane by lane: every column comes out once, its rows in order."""
    b, lanes = Builder(), size * squares
    rows = [Val(f"%row{k}", "i8", size) for k in range(lanes)]  # the type does not matter
    columns = transposed(b, [joined(b, rows[k::size]) for k in range(size)], itemsize)
    known = {row.text: [(k, c) for c in range(size)] for k, row in enumerate(rows)}
    for line in b.lines:
        name, *read = re.findall(r"%\w+", line)
        both, order = [known[one] for one in read], re.findall(r"i32 (\d+)", line)
        # Without an order it is the same vector, as LLVM names or fences it.
        known[name] = [[*chain(*both)][int(k)] for k in order] if order else both[0]
    assert [known[c.text] for c in columns] == [[(r, c) for r in range(lanes)] for c in range(size)]


@whole
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("lanes", [2, 8, 16, 64])
def test_a_loop_that_is_written_out(name: str, lanes: int, whole: bool) -> None:
    """Rows and columns left over at both ends, and every type."""
    shapes = [(64, 64), (lanes + 1, 5), (2 * lanes - 1, 1), (3, 40)]
    for shape, columns in turn(list(product(shapes, (3, 16))), name, lanes, whole):
        a = numbers(name, *shape)
        options = MappingOptions().vectorize(lanes).register(columns)
        (got,) = run(TURNED.format(name), a, options=options)
        np.testing.assert_array_equal(plain(got), plain(a.T), err_msg=f"{shape} {columns}")


@whole
@pytest.mark.parametrize(("name", "lanes"), sampled(product(TYPES, [4, 16, 32]), 2))
def test_a_copy(name: str, lanes: int, whole: bool) -> None:
    into = "int32" if name == "bool" else name
    a, b = numbers(name, 5, 77), numbers(name, 45, 77)
    want = np.asarray(plain(a), np.int64) @ np.asarray(plain(b), np.int64).T
    both = list(product([(), (2, 2, 5)], [(), (2, 33, 70)]))
    for register, tile in turn(both, name, lanes, whole):
        options = MappingOptions().tile(*tile).vectorize(lanes, COLUMNS).stage(-1, 0)
        if lanes <= host_cpu().vector_bits // 32:
            options = options.register(*register)
        (got,) = run(PRODUCT.format(name, into), a, b, options=options)
        limit = 256 if into in ("int8", "bool") else 1 << 16 if into == "uint16" else 1 << 30
        same = np.isclose(plain(got), want, rtol=1e-2) if "float" in name else (
                np.asarray(got, np.int64) - want) % limit == 0  # fmt: skip
        assert np.all(same), options


def test_copies_of_whole_vectors_are_written_out_once() -> None:
    """A loop goes through the vectors of a panel; what is left over beside them stands alone."""

    def shuffles(vectors: int, rest: int) -> int:
        b = np.zeros((16 * vectors + rest, 64), np.float32)
        options = MappingOptions("naive").vectorize(16, COLUMNS).register(4, vectors).stage(-1, 0)
        given = sized_of(PRODUCT.format("float", "float"), np.zeros((32, 64), np.float32), b)
        built = schedule(given, options, WIDE)
        return emit_program(built, WIDE).text.count("shufflevector")

    assert shuffles(4, 0) == shuffles(2, 0)
    assert shuffles(2, 0) < shuffles(4, 5) == shuffles(3, 5)


@pytest.mark.parametrize("bits", [128, 256])
def test_narrow_vectors(bits: int) -> None:
    features = [
        "-avx512f",
        "-avx512vl",
        "-avx512bw",
        "-avx512dq",
        *(["-avx"] if bits < 256 else []),
    ]
    host = host_cpu()
    narrow = replace(host, features=",".join([host.features, *features]), vector_bits=bits)
    a, b = numbers("float32", 5, 77), numbers("float32", 45, 77)
    for register in [(), (2, 2), (3, 1, 4)]:
        options = MappingOptions().vectorize(bits // 32, COLUMNS).stage(-1, 0).register(*register)
        (got,) = run(PRODUCT.format("float", "float"), a, b, options=options, device=narrow)
        np.testing.assert_array_equal(got, a @ b.T)


def test_any_strides() -> None:
    base = numbers("float32", 90, 200)
    a = numbers("float32", 5, 40)
    options = MappingOptions().vectorize(8, COLUMNS).register(2, 2).stage(-1, 0)
    views = [base[:37, :40], base[36::-1, 5:45], base[:37, 40:0:-1], base[:74:2, :80:2],
             base.T[:37, :40], np.broadcast_to(base[:1, :40], (37, 40))]  # fmt: skip
    for b in views:
        for each in (options, options.stage(), options.register(1, 1, 4)):
            (got,) = run(PRODUCT.format("float", "float"), a, b, options=each)
            np.testing.assert_array_equal(got, a @ b.T)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses mprotect")
@whole
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name", ["int8", "float16", "float32", "float64"])
def test_nothing_outside_is_touched(name: str, after: bool, whole: bool) -> None:
    shapes = [(17, 16), (16, 17), (5, 3), (33, 1), (31, 31)]
    for lanes in (4, 16):
        options = MappingOptions().vectorize(lanes)
        how = (options.register(16), options.register(5), options.stage(0))
        for shape, each in turn(list(product(shapes, how)), name, lanes + after, whole):
            a = fenced(shape, numpy_type(name), after)
            a[...] = numbers(name, *shape)
            (got,) = run(TURNED.format(name), a, options=each)
            np.testing.assert_array_equal(plain(got), plain(a.T))


def test_rows_are_read_as_vectors() -> None:
    """In copies, and in loops that are written out."""
    a, b = numbers("float32", 64, 64), numbers("float32", 64, 64)
    options = MappingOptions().vectorize(8, COLUMNS)
    sized = sized_of(PRODUCT.format("float", "float"), a, b)
    for each, rows in [
        (options, 0), (options.stage(-1, 0), 16), (options.register(1, 1, 8), 8),
        (options.register(1, 1, 4), 4),
    ]:  # fmt: skip
        text = compile_cpu(sized, each).llvm
        wanted = f"load <{min(rows, 8)} x float>, ptr" if rows else "insertelement"
        assert wanted in text, each
        assert text.count("= load float") <= (2 if rows > 8 else 2 * rows or 16), each


@whole
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("lanes", [2, 8, 16, 64])
def test_rows_are_written_as_vectors(name: str, lanes: int, whole: bool) -> None:
    """Lanes across the rows of the target; nothing next to it is touched."""
    text = f"def f({name}(M, N) A) -> (O, P) {{ O(m, n) = A(n, m) P(m, n) max=! A(n, m) }}"
    shapes = [(5, lanes + 1), (40, 3), (16, 2 * lanes), (17, lanes + 2)]
    for shape, register in turn(list(product(shapes, (3, 16))), name, lanes, whole):
        a = numbers(name, *shape)
        sized = sized_of(text, a)
        rows, columns = shape[::-1]
        backing = np.full((2, rows + 2, columns + 5), 1, a.dtype)
        expected = backing.copy()
        expected[:, 1:-1, 2:-3] = a.T
        options = MappingOptions().vectorize(lanes, 0).register(1, register)
        strides = backing.strides[1:]
        kernel = compile_cpu(sized, options, strides={"O": strides, "P": strides})
        kernel([a], [backing[0, 1:-1, 2:-3], backing[1, 1:-1, 2:-3]])
        np.testing.assert_array_equal(plain(backing), plain(expected), err_msg=str(shape))


def test_sums_are_written_as_vectors() -> None:
    """What was summed up before is read in the same way."""
    a, b = numbers("float32", 33, 40), numbers("float32", 40, 19)
    text = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
    for tile in ((), (0, 0, 16), (20, 7, 16)):
        options = MappingOptions().tile(*tile).vectorize(8, 0).register(1, 5).order(2, 0, 1)
        (got,) = run(text, a, b, options=options)
        np.testing.assert_array_equal(got, a @ b)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("rows", [2, 3, 8])
def test_quotients_are_written_as_vectors(name: str, rows: int) -> None:
    """A division by one number branches, and the rows of all lanes are written after it."""
    text = f"def f({name}(M, N) A, {name}(M) S) -> (O) {{ O(n, m) = A(m, n) / S(m) }}"
    a, s = numbers(name, 19, 33), numbers(name, 19) + np.ones((), numpy_type(name))
    options = MappingOptions().vectorize(8, 0).register(0, rows)
    (got,) = run(text, a, s, options=options)
    (expected,) = run(text, a, s, options=MappingOptions())
    np.testing.assert_allclose(plain(got), plain(expected), rtol=1e-6)


CHOICES = [
    "A(m, n) > 2 ? A(m, n) * 3 : B(n)",
    "B(n) > 2 ? A(m, n) + B(n) : A(m, n)",
    "B(n) > 2 && A(m, n) > 1 ? fmax(A(m, n), B(n)) : 1",
    "C(m) > 2 ? exp(-A(m, n)) + A(m, n) * C(m) : 2",
    "tanh(A(m, n)) * A(m, n)",
    "C(m) > 1 || B(n) > 1 ? pow(A(m, n) + 1, 0.5) : A(m, n)",
]


@pytest.mark.parametrize("value", CHOICES)
@pytest.mark.parametrize("name", ["float32", "float64", "int16"])
def test_what_takes_branches_is_transposed(name: str, value: str) -> None:
    """Values that choose between others, or call functions, wait to be written, and read rows."""
    value = f"{name}({value})"
    text = f"def f({name}(M, N) A, {name}(N) B, {name}(M) C) -> (O) {{ O(n, m) = {value} }}"
    inputs = numbers(name, 21, 35), numbers(name, 35), numbers(name, 21)
    expected = plain(reference(text, *inputs)[0])
    for position, register in ((0, (1, 5)), (0, (1, 8)), (1, (4, 1)), (1, (16, 2))):
        options = MappingOptions().vectorize(8, position).register(*register)
        (got,) = run(text, *inputs, options=options)
        np.testing.assert_allclose(plain(got), expected, rtol=1e-5, err_msg=str(options))


def test_rows_are_read_once_where_something_branches() -> None:
    """Each lane's row is one load for all of the tile's points, whatever is chosen or called."""
    inputs = numbers("float32", 32, 32), numbers("float32", 32), numbers("float32", 32)
    for value in CHOICES:
        text = f"def f(float(M, N) A, float(N) B, float(M) C) -> (O) {{ O(n, m) = {value} }}"
        options = MappingOptions().vectorize(8, 1).register(4)
        llvm = compile_cpu(sized_of(text, *inputs), options).llvm
        assert llvm.count("load <4 x float>, ptr") == 8, value


def test_targets_are_read_as_they_are() -> None:
    """What is written in between is seen."""
    a = numbers("float32", 20, 33)
    text = "def f(float(M, N) A) -> (O) { O(m, n) = A(m, n) O(m, n) = O(m, n) * 2 + A(m, n) }"
    options = MappingOptions().vectorize(8, 0).register(2, 16)
    (got,) = run(text, a, options=options)
    np.testing.assert_array_equal(got, 3 * a)


@pytest.mark.parametrize("between", [3, 4])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("narrow", [None, "x86-64-v3"])
def test_results_between_lanes(name: str, between: int, narrow: str | None) -> None:
    """As the channels of pixels, with lanes left over."""
    device = narrowed(host_cpu(), narrow) if narrow else host_cpu()
    a = numbers(name, between, 131)
    text = f"def f({name}({between}, N) A) -> (O) {{ O(n, m) = A(m, n) }}"
    for lanes in (4, 16, 64):
        options = MappingOptions().vectorize(lanes, 0).register(1, between)
        (got,) = run(text, a, options=options, device=device)
        np.testing.assert_array_equal(plain(got), plain(a.T), err_msg=f"{lanes} lanes")


@pytest.mark.parametrize(
    ("cpu", "type_", "lanes", "stores"),
    [
        ("cascade lake", "uint8", 64, "<192 x i8>"),
        ("cascade lake", "int16", 32, "<32 x i16>"),
        ("zen 4", "uint8", 64, "<64 x i8>"),
        ("zen 3", "float", 8, "<24 x float>"),
        ("graviton3", "int16", 8, "<24 x i16>"),
    ],
)
def test_results_between_lanes_are_written_in_whole_vectors(
    cpu: str, type_: str, lanes: int, stores: str
) -> None:
    """One by one, where permutes take any lanes of two; else in one piece."""
    device = find(cpu)
    assert device is not None
    text = f"def f({type_}(3, N) A) -> (O) {{ O(n, m) = A(m, n) }}"
    given = sized_of(text, np.zeros((3, 4 * lanes), np.int8))
    options = MappingOptions("naive").vectorize(lanes, 0).register(1, 3)
    made = emit_program(schedule(given, options, device), device).text
    assert set(re.findall(r"store (<.+?>)", made)) == {stores}
