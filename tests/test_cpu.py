"""The CPU backend: every type, built-in, layout and option against the reference."""

from __future__ import annotations

import ctypes
import gc
import mmap
import random
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import mpmath as mp
import numpy as np
import oracles
import pytest
from strategies import numpy_type, random_program

from tcl.codegen.cpu.kernel import CpuKernel, compile_cpu
from tcl.codegen.device import CpuProfile, host_cpu
from tcl.codegen.dtypes import numpy_dtype
from tcl.codegen.errors import ArgumentError, CompileError
from tcl.codegen.lower import lower
from tcl.codegen.options import PRESETS, MappingOptions, NestOptions
from tcl.codegen.reference import compile_reference
from tcl.grammar.builtins import BUILTINS
from tcl.grammar.check import check
from tcl.grammar.ranges import infer
from tcl.grammar.sized import SizedDef
from tcl.grammar.types import SCALAR_TYPES

Array = np.ndarray[Any, np.dtype[Any]]
NAIVE = MappingOptions()
LANES = MappingOptions().vectorize(8)
BOTH = pytest.mark.parametrize("options", [NAIVE, LANES], ids=["scalar", "lanes"])
POISON = 77
MATMUL = "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"


def sized_of(text: str, *inputs: Array) -> SizedDef:
    """The one def of ``text`` for these inputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (checked,) = check(text).values()
    names = [t.name for t in checked.inputs]
    return infer(checked, {n: a.shape for n, a in zip(names, inputs, strict=True)})


def poisoned(sized: SizedDef) -> list[Array]:
    return [
        np.full(sized.shapes[t.name], POISON).astype(numpy_dtype(t.type))
        for t in sized.checked.outputs
    ]


def run(
    text: str,
    *inputs: Array,
    options: MappingOptions = NAIVE,
    unchecked: bool = False,
    device: CpuProfile | None = None,
) -> list[Array]:
    """Outputs of the one def of ``text``; the kernel is compiled for the inputs' strides."""
    sized = sized_of(text, *inputs)
    strides = {t.name: a.strides for t, a in zip(sized.checked.inputs, inputs, strict=True)}
    outputs = poisoned(sized)
    kernel = compile_cpu(sized, options, strides=strides, unchecked=unchecked, device=device)
    kernel(inputs, outputs)
    return outputs


def reference(text: str, *inputs: Array) -> list[Array]:
    sized = sized_of(text, *inputs)
    outputs = poisoned(sized)
    compile_reference(sized, jit=False)(inputs, outputs)
    return outputs


def same_bits(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def random_options(rng: random.Random, sized: SizedDef) -> MappingOptions:
    """Any tiles, orders and lanes that the nests of ``sized`` can have."""
    if rng.random() < 0.1:
        return MappingOptions(rng.choice(PRESETS))
    nests = []
    for nest in lower(sized).nests:
        rank = len(nest.dims)
        outer, inner = (tuple(rng.sample(range(rank), rank)) for _ in range(2))
        outputs = [k for k, d in enumerate(nest.dims) if not d.reduction]
        lanes = (rng.choice(outputs), rng.choice([1, 2, 4, 8, 16])) if outputs else None
        tile = tuple(rng.choice([0, 1, 2, 3, 4, 5, 8]) for _ in range(rank))
        nests.append(NestOptions(tile, outer, inner, lanes))
    return MappingOptions(nests=tuple(nests))


# Random programs with random options.


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_agree_with_the_reference(seed: int) -> None:
    program = random_program(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checked = check(program.source)[program.entry]
    sized = infer(checked, program.shapes)
    arrays = program.inputs(seed)
    inputs = [arrays[t.name] for t in checked.inputs]
    expected = poisoned(sized)
    compile_reference(sized, jit=False)(inputs, expected)
    rng = random.Random(seed)
    for _ in range(3):
        options = random_options(rng, sized)
        outputs = poisoned(sized)
        compile_cpu(sized, options)(inputs, outputs)
        for tensor, got, want in zip(checked.outputs, outputs, expected, strict=True):
            known = program.outputs[tensor.name]
            where = f"{tensor.name}, {options}\n{program.source}"
            if known.exact:
                np.testing.assert_array_equal(_plain(got), _plain(want), err_msg=where)
                continue
            eps = {"float16": 1e-2, "bfloat16": 8e-2, "float64": 1e-9}.get(tensor.type.name, 1e-3)
            size = max(1.0, abs(known.low), abs(known.high))
            np.testing.assert_allclose(
                _plain(got), _plain(want), rtol=eps, atol=eps * size, err_msg=where
            )


def _plain(a: Array) -> Array:
    return a.astype(np.float64) if a.dtype.kind not in "biu" else a


# Types.


def interesting(name: str) -> Array:
    """Values at which a type does something of its own."""
    kind = SCALAR_TYPES[name]
    if not kind.is_float:
        low, high = kind.limits
        values = [low, low + 1, -128, -7, -2, -1, 0, 1, 2, 3, 100, 127, 255, high - 1, high]
        values += [2**24 + 1, 2**53 + 1, 2**62 + 2**38 + 1, 2**62 + 2**54]
        return np.array([v for v in values if low <= v <= high], numpy_type(name))
    floats = [0.0, -0.0, 0.5, 1.5, 2.5, -1.5, 1e-7, 6e-8, 3e-8, 6e-5, 3.14159, 65504, 65520, 65519]
    floats += [1e5, -1e5, 127.9, 128, 255.5, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 1e30, 3e38, 1e300]
    floats += [1.0009765625, 1.00048828125001, 1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-40, np.inf, np.nan]
    values = np.array(floats + [-x for x in floats])
    with np.errstate(all="ignore"):
        return values.astype(numpy_type(name))


@pytest.mark.parametrize("source", SCALAR_TYPES)
def test_casts_between_all_types(source: str) -> None:
    values = interesting(source)
    names = list(SCALAR_TYPES)
    outs = ", ".join(f"{t}(N) O{k}" for k, t in enumerate(names))
    body = " ".join(f"O{k}(i) = {t}(a(i))" for k, t in enumerate(names))
    text = f"def f({source}(N) a) -> ({outs}) {{ {body} }}"
    expected = reference(text, values)
    soft = replace(host_cpu(), features=host_cpu().features.replace("+f16c", "-f16c"))
    for options, device in [(NAIVE, None), (LANES, None), (LANES, soft), (NAIVE, soft)]:
        for name, got, want in zip(
            names, run(text, values, options=options, device=device), expected, strict=True
        ):
            equal = same_bits(got, want) | (np.isnan(_plain(got)) & np.isnan(_plain(want)))
            differ = got.tobytes() != want.tobytes()
            if differ:
                equal = (got == want) | (np.isnan(_plain(got)) & np.isnan(_plain(want)))
                signs = np.signbit(_plain(got)) == np.signbit(_plain(want))
                equal = equal & (signs | np.isnan(_plain(want)))
            assert np.all(equal), f"{name}: {values} {got} {want}"


@BOTH
@pytest.mark.parametrize("name", [n for n in SCALAR_TYPES if n != "bool"])
def test_operators_of_all_types(name: str, options: MappingOptions) -> None:
    a, b = (np.ascontiguousarray(g.ravel()) for g in np.meshgrid(*[interesting(name)] * 2))
    signed = SCALAR_TYPES[name].kind.value != "uint"
    body = "O(i) = a(i) + b(i) P(i) = a(i) - b(i) Q(i) = a(i) * b(i) R(i) = a(i) / b(i)"
    body += " S(i) = a(i) % b(i) T(i) = min(a(i), b(i)) U(i) = max(a(i), b(i))"
    body += f" V(i) = {'-' if signed else ''}a(i)"
    body += " A0(i) = a(i) < b(i) A1(i) = a(i) <= b(i) A2(i) = a(i) > b(i)"
    body += " A3(i) = a(i) >= b(i) A4(i) = a(i) == b(i) A5(i) = a(i) != b(i)"
    text = f"def f({name}(N) a, {name}(N) b) -> (O,P,Q,R,S,T,U,V,A0,A1,A2,A3,A4,A5) {{ {body} }}"
    for got, want in zip(run(text, a, b, options=options), reference(text, a, b), strict=True):
        np.testing.assert_array_equal(_plain(got), _plain(want))


@BOTH
def test_bools(options: MappingOptions) -> None:
    a, b = np.array([[0, 0, 1, 1] * 3, [0, 1, 0, 1] * 3], np.bool_)
    text = """def f(bool(N) a, bool(N) b) -> (O, P, Q, R, S) {
        O(i) = a(i) && !b(i)  P(i) = a(i) || b(i)  Q(i) = a(i) ? b(i) : !b(i)
        R max=! a(i)  S min=! a(i)
    }"""
    got = run(text, a, b, options=options)
    expected = [a & ~b, a | b, np.where(a, b, ~b), a.any(), a.all()]
    for x, y in zip(got, expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("native", [True, False], ids=["native", "software"])
def test_float16_bits_both_ways(native: bool) -> None:
    """All 65536 values survive; every float32 near a tie of two of them rounds as NumPy does."""
    device = host_cpu()
    if not native:
        device = replace(device, features=device.features.replace("+f16c", "-f16c"))
    bits = np.arange(2**16, dtype=np.uint16)
    wide = "def f(float16(N) a) -> (O) { O(i) = float32(a(i)) }"
    narrow = "def f(float32(N) a) -> (O) { O(i) = float16(a(i)) }"
    (got,) = run(wide, bits.view(np.float16), options=LANES, device=device)
    expected = bits.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(got, expected)
    finite = np.sort(expected[np.isfinite(expected)]).astype(np.float64)
    ties = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    infinity = np.float32(np.inf)
    near = np.concatenate([ties, np.nextafter(ties, infinity), np.nextafter(ties, -infinity)])
    with np.errstate(all="ignore"):
        want = near.astype(np.float16)
    (got,) = run(narrow, near, options=LANES, device=device)
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))


def test_bfloat16_rounds_to_nearest_even() -> None:
    import ml_dtypes

    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**32, 20000, dtype=np.uint32)
    values[::3] = (values[::3] & 0xFFFF0000) | 0x8000  # ties
    floats = values.view(np.float32)
    (got,) = run("def f(float32(N) a) -> (O) { O(i) = bfloat16(a(i)) }", floats, options=LANES)
    with np.errstate(all="ignore"):
        want = floats.astype(ml_dtypes.bfloat16)
    nan = np.isnan(floats)
    np.testing.assert_array_equal(got.view(np.uint16)[~nan], want.view(np.uint16)[~nan])
    assert np.isnan(got[nan].astype(np.float32)).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_16_bit_sums_round_once(name: str) -> None:
    """Even when tiles of the reduction are outside of the loops over the result."""
    ones = np.full((3, 5000), 0.25).astype(numpy_type(name))
    text = f"def f({name}(M, N) a) -> (O) {{ O(m) +=! a(m, n) }}"
    for options in (NAIVE, LANES, NAIVE.tile(2, 64).order(1, 0), NAIVE.tile(0, 7).vectorize(2)):
        (got,) = run(text, ones, options=options)
        np.testing.assert_array_equal(got.astype(np.float64), 1250.0 if name == "float16" else 1248)


# Built-ins.


@pytest.fixture
def _precision() -> Iterator[None]:
    with mp.workprec(oracles.PRECISION):
        yield


def builtin(name: str, arguments: Sequence[Array], options: MappingOptions) -> Array:
    letters = "abcd"[: len(arguments)]
    parameters = ", ".join(f"{arguments[0].dtype.name}(N) {x}" for x in letters)
    call = f"{name}({', '.join(f'{x}(i)' for x in letters)})"
    text = f"def f({parameters}) -> (O) {{ O(i) = {call} }}"
    return run(text, *arguments, options=options)[0]


@pytest.mark.usefixtures("_precision")
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", sorted(oracles.ORACLES))
def test_builtins_over_their_domain(name: str, dtype: type[np.floating[Any]]) -> None:
    arguments = oracles.samples(name, dtype)
    results = builtin(name, arguments, LANES)
    worst, where = oracles.worst_error(name, arguments, results)
    assert worst <= oracles.ORACLES[name].ulps[dtype is np.float64], where


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_builtins_at_special_values(
    name: str, dtype: type[np.floating[Any]], options: MappingOptions
) -> None:
    rows = np.array(oracles.SPECIAL[name], np.float64).astype(dtype)
    rows = np.repeat(rows, 9, axis=0)  # enough for all lanes
    results = builtin(name, [np.ascontiguousarray(c) for c in rows[:, :-1].T], options)
    expected = rows[:, -1]
    np.testing.assert_array_max_ulp(results, expected, 1)
    zero = expected == 0
    assert (np.signbit(results) == np.signbit(expected))[zero].all(), results


# Layouts.


@BOTH
def test_any_strides(options: MappingOptions) -> None:
    rng = np.random.default_rng(1)
    base = rng.random((20, 46))
    text = "def f(double(M, N) A, double(M, N) B) -> (O) { O(m, n) = A(m, n) - 2 * B(m, n) }"
    packed = np.zeros(23 * 20, np.dtype([("x", "u1"), ("y", "<f8")]))["y"]  # 9 bytes apart
    packed[:] = rng.random(460)
    views = [
        base[:, ::2], base[::-1, :23], base[:, 45:22:-1], base.T[:20, :20][:, :1].repeat(23, 1),
        np.broadcast_to(base[0, :23], (20, 23)), np.broadcast_to(base[:, :1], (20, 23)),
        rng.random((23, 20)).T, packed.reshape(20, 23),
    ]  # fmt: skip
    for a in views:
        for b in (views[0], views[6], views[7]):
            (got,) = run(text, a, b, options=options)
            np.testing.assert_array_equal(got, a - 2 * b)


@BOTH
def test_strided_outputs_leave_the_rest_alone(options: MappingOptions) -> None:
    a = np.arange(12 * 10, dtype=np.float32).reshape(12, 10)
    sized = sized_of("def f(float(M, N) A) -> (O) { O(n, m) = A(m, n) + 1 }", a)
    backing = np.full((30, 40), -POISON, np.float32)
    for view in (backing[::3, 3:15], backing[9::-1, 24:0:-2], backing[:24:2, :10].T):
        backing[:] = -POISON
        kernel = compile_cpu(sized, options, strides={"O": view.strides})
        kernel([a], [view])
        np.testing.assert_array_equal(view, a.T + 1)
        assert (backing == -POISON).sum() == backing.size - view.size


@BOTH
def test_outputs_with_an_origin(options: MappingOptions) -> None:
    a = np.arange(30, dtype=np.float32)
    text = "def f(float(N) A) -> (O, P) { O(i) = A(i - 3) where i in 5:25  P(i) = O(i) + 1 }"
    o, p = run(text, a, options=options)
    np.testing.assert_array_equal(o, a[2:22])
    np.testing.assert_array_equal(p, a[2:22] + 1)


# Run-time checks and guards.


@BOTH
@pytest.mark.parametrize("bad", [12, -1, 10, 2**31 - 1])
def test_an_index_out_of_range_is_reported(bad: int, options: MappingOptions) -> None:
    lut = np.arange(10, dtype=np.float32)
    index = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9] * 2, np.int32)
    text = "def f(float(N) LUT, int32(B) I) -> (O) { O(b) = LUT(I(b)) }"
    np.testing.assert_array_equal(run(text, lut, index, options=options)[0], lut[index])
    index[13] = bad
    message = f"index {bad} is out of range for dimension 0 of tensor LUT, which has indices 0 to 9"
    with pytest.raises(IndexError) as caught:
        run(text, lut, index, options=options)
    assert str(caught.value) == message
    with pytest.raises(IndexError) as expected:
        reference(text, lut, index)
    assert str(expected.value) == message


@BOTH
def test_huge_and_empty(options: MappingOptions) -> None:
    text = "def f(float(N) L, uint64(B) I) -> (O) { O(b) = L(I(b)) }"
    index = np.full(11, 2**64 - 1, np.uint64)
    with pytest.raises(IndexError, match=f"index {2**64 - 1} .* indices 0 to 4"):
        run(text, np.ones(5, np.float32), index, options=options)
    with pytest.raises(IndexError, match="tensor L, which is empty"):
        run(text, np.ones(0, np.float32), index, options=options)
    assert run(text, np.ones(0, np.float32), index[:0], options=options)[0].shape == (0,)


@BOTH
def test_a_guard_protects_data_dependent_reads(options: MappingOptions) -> None:
    lut = np.arange(10, dtype=np.float32)
    index = np.array([3, -5, 99, 0, 9, 10, -1, 4, 5, 2**31 - 1, -(2**31), 1], np.int32)
    text = """def f(float(N) L, int32(B) I) -> (O, P) {
        O(b) = (I(b) >= 0 && I(b) < N) ? L(I(b)) : 0 - 1.0
        P(b) = (I(b) < 0 || I(b) >= N || L(I(b)) > 4.0) ? 1.0 : 2.0
    }"""
    inside = (index >= 0) & (index < 10)
    o, p = run(text, lut, index, options=options)
    values = lut[np.clip(index, 0, 9)]
    np.testing.assert_array_equal(o, np.where(inside, values, -1))
    np.testing.assert_array_equal(p, np.where(~inside | (values > 4), 1, 2))


@BOTH
def test_unchecked_leaves_the_checks_out(options: MappingOptions) -> None:
    lut, index = np.arange(10.0), np.arange(9, -1, -1, dtype=np.int32)
    text = "def f(double(N) L, int32(B) I) -> (O) { O(b) = L(I(b)) }"
    sized = sized_of(text, lut, index)
    assert "tcl_fail" in compile_cpu(sized, options).llvm
    assert "tcl_fail" not in compile_cpu(sized, options, unchecked=True).llvm
    (got,) = run(text, lut, index, options=options, unchecked=True)
    np.testing.assert_array_equal(got, lut[::-1])


def fenced(shape: tuple[int, ...], dtype: Any, after: bool) -> Array:
    """An array with forbidden memory right behind it, or right before it."""
    page = mmap.PAGESIZE
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = -(-size // page) * page
    memory = mmap.mmap(-1, room + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None)
    for at in (start, start + page + room):
        assert libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(page), 0) == 0
    offset = page + room - size if after else page
    return np.frombuffer(memory, dtype, int(np.prod(shape)), offset).reshape(shape)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses mprotect")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("width", [1, 4, 16])
def test_nothing_outside_is_touched(width: int, after: bool) -> None:
    """Padding by guards, forwards and backwards, by lanes: a stray read would end the process."""
    text = """def f(float(N) A, int8(N) B) -> (O, P, Q, R) {
        O(i) = (i - 3 >= 0 && i - 3 < N) ? A(i - 3) : 0.0 where i in 0:N + 6
        P(i) = (2 - i >= 0 && 2 - i < N) ? A(2 - i) : 0.0 where i in 0:N + 6
        Q(i) = (2 * i - 5 >= 0 && 2 * i - 5 < N) ? B(2 * i - 5) : int8(1) where i in 0:N + 6
        R(i) +=! (i + k - 2 >= 0 && i + k - 2 < N) ? A(i + k - 2) : 0.0 where i in 0:N, k in 0:5
    }"""
    a, b = fenced((37,), np.float32, after), fenced((37,), np.int8, after)
    a[:], b[:] = np.arange(37) + 1, np.arange(37)
    got = run(text, a, b, options=MappingOptions().vectorize(width))
    for x, y in zip(got, reference(text, a.copy(), b.copy()), strict=True):
        np.testing.assert_allclose(x, y)


# Statements and schedules.


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 0, 5), (0, 3, 5), (17, 31, 13), (33, 64, 50)])
@pytest.mark.parametrize("initialise", ["!", ""])
def test_matrix_products(shape: tuple[int, int, int], initialise: str) -> None:
    m, n, k = shape
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-9, 9, s).astype(np.float32) for s in [(m, k), (k, n)])
    text = MATMUL.replace("!", initialise)
    base = 0 if initialise else POISON
    for options in [
        *map(MappingOptions, PRESETS), NAIVE.tile(8, 16, 5).vectorize(4),
        NAIVE.tile(8, 16, 5).order(2, 1, 0).vectorize(16, 0), NAIVE.inner_order(2, 0, 1),
        NAIVE.tile(5, 7, 3).order(1, 2, 0).inner_order(2, 1, 0).vectorize(8),
    ]:  # fmt: skip
        (got,) = run(text, a, b, options=options)
        np.testing.assert_array_equal(got, base + a @ b, err_msg=str(options))


@pytest.mark.parametrize("op", ["+", "*", "min", "max"])
@pytest.mark.parametrize("name", ["int8", "uint16", "int64", "float32", "float16", "bool"])
def test_reductions_start_from_the_identity(op: str, name: str) -> None:
    if name == "bool" and op in "+*":
        pytest.skip("sums of bools are int32")
    for columns in (0, 1, 9):
        a = np.random.default_rng(3).integers(0, 3, (10, columns)).astype(numpy_type(name))
        text = f"def f({name}(M, N) A) -> ({name}(M) O) {{ O(m) {op}=! A(m, n) }}"
        for options in (NAIVE, LANES, NAIVE.tile(3, 2).order(1, 0)):
            (got,) = run(text, a, options=options)
            assert same_bits(got, reference(text, a)[0]), (columns, options)


def test_nan_wins_in_min_and_max_but_not_in_fmin_and_fmax() -> None:
    a = np.array([1, np.nan, 3, np.nan], np.float32)
    b = np.array([2, 2, np.nan, np.nan], np.float32)
    text = """def f(float(N) a, float(N) b) -> (O, P, Q, R) {
        O(i) = min(a(i), b(i)) P(i) = max(a(i), b(i))
        Q(i) = fmin(a(i), b(i)) R(i) = fmax(a(i), b(i)) }"""
    expected = [np.minimum(a, b), np.maximum(a, b), np.fmin(a, b), np.fmax(a, b)]
    for x, y in zip(run(text, a, b, options=NAIVE.vectorize(4)), expected, strict=True):
        np.testing.assert_array_equal(x, y)


def test_softmax() -> None:
    x = np.random.default_rng(4).normal(size=(7, 33)).astype(np.float32)
    text = """def f(float(N, D) I) -> (O, e, m, s) {
        m(n) max=! I(n, d)
        e(n, d) = exp(I(n, d) - m(n))
        s(n) +=! e(n, d)
        O(n, d) = e(n, d)
        O(n, d) = O(n, d) / s(n)
    }"""
    e = np.exp(x - x.max(1, keepdims=True))
    for preset in PRESETS:
        got = run(text, x, options=MappingOptions(preset))[0]
        np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=2e-6)


def test_lets_do_not_multiply() -> None:
    lets = ", ".join(f"x{k} = x{k - 1} + x{k - 1}" for k in range(1, 60))
    text = f"def f(double(N) A) -> (O) {{ O(i) = x59 where x0 = A(i), {lets} }}"
    a = np.arange(1.0, 12)
    np.testing.assert_array_equal(run(text, a, options=LANES)[0], a * 2.0**59)


def test_lets_are_exact_in_subscripts() -> None:
    text = """def f(float(N) A) -> (O) { O(i) = A(y - x) where i in 0:N, x = i * 1000000 * 1000000,
        y = x + i }"""
    a = np.arange(9, dtype=np.float32)
    np.testing.assert_array_equal(run(text, a, options=LANES)[0], a)


def test_deep_expressions() -> None:
    sums = " + ".join(["A(i)"] * 150)
    text = f"def f(double(N) A) -> (O) {{ O(i) = {sums} }}"
    a = np.arange(9.0)
    np.testing.assert_array_equal(run(text, a, options=LANES)[0], 150 * a)


# The kernel as an object.


def test_names_do_not_reach_the_code() -> None:
    text = "def kernel(float(M) tcl_fail) -> (define) { define(ret) = tcl_fail(ret) + 1 }"
    a = np.ones(5, np.float32)
    np.testing.assert_array_equal(run(text, a)[0], a + 1)
    long = "x" * 10_000
    text = f"def {long}(float(M) {long}2) -> ({long}3) {{ {long}3({long}i) = {long}2({long}i) }}"
    sized = sized_of(text, a)
    assert "xxxx" not in compile_cpu(sized, NAIVE).llvm


def test_the_kernel_shows_its_code() -> None:
    kernel = compile_cpu(sized_of(MATMUL, np.ones((4, 5)), np.ones((5, 16))), LANES)
    assert "define i32 @tcl_kernel" in kernel.llvm and "<8 x float>" in kernel.llvm
    assert "tcl_kernel" in kernel.asm
    assert kernel.object_code[:4] == b"\x7fELF" or sys.platform != "linux"


def test_arguments_are_checked() -> None:
    a, b = np.ones((4, 5), np.float32), np.ones((5, 6), np.float32)
    kernel = compile_cpu(sized_of(MATMUL, a, b), NAIVE)
    out = np.ones((4, 6), np.float32)
    for inputs, outputs, words in [
        ([a], [out], "3 arrays are needed"),
        ([a, b.T], [out], "shape"),
        ([a.astype(np.float64), b], [out], "must be float32"),
        ([a, b.astype(">f4")], [out], "byte order"),
        ([np.asfortranarray(a), b], [out], "strides"),
    ]:
        with pytest.raises(ArgumentError, match=words):
            kernel(inputs, outputs)
    out.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        kernel([a, b], [out])


def test_threads_may_share_a_kernel() -> None:
    rng = np.random.default_rng(5)
    b = rng.integers(-9, 9, (64, 64)).astype(np.float32)
    kernel = compile_cpu(sized_of(MATMUL, b, b), MappingOptions("mlp"))
    wrong: list[int] = []

    def work(seed: int) -> None:
        a = np.random.default_rng(seed).integers(-9, 9, (64, 64)).astype(np.float32)
        out = np.empty_like(a)
        for _ in range(50):
            kernel([a, b], [out])
            if not np.array_equal(out, a @ b):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_loading_many_kernels_keeps_nothing() -> None:
    from tcl.codegen.cpu.load import Loaded

    code = compile_cpu(sized_of(MATMUL, np.ones((4, 5)), np.ones((5, 6))), LANES).object_code

    def load(times: int) -> None:
        for _ in range(times):
            Loaded(code)
        gc.collect()

    load(200)
    before = _resident()
    load(2000)
    assert _resident() - before < 8 << 20


def test_llvm_text_that_is_wrong_is_an_error_of_ours() -> None:
    from tcl.codegen.cpu.compile import compile_object

    with pytest.raises(CompileError, match="LLVM refused"):
        compile_object("define nonsense", host_cpu())


def test_compiling_is_a_pure_function() -> None:
    sized = sized_of(MATMUL, np.ones((4, 5)), np.ones((5, 6)))
    kernels: list[CpuKernel] = [compile_cpu(sized, LANES) for _ in range(2)]
    assert kernels[0].llvm == kernels[1].llvm
    assert kernels[0].object_code == kernels[1].object_code
