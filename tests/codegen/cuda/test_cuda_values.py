"""Values as CUDA C++: every type, operator, cast and built-in, through the host's compiler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import cuda_values
import mpmath as mp
import numpy as np
import oracles
import pytest
from cpu_kernels import Array, plain, reference
from cpu_values import interesting
from cuda_values import Case

from tcl.codegen.cuda.cpp import arith
from tcl.codegen.cuda.emit import values
from tcl.codegen.cuda.prelude.prelude import HELPERS
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.syntax.types import FLOAT32, FLOAT64, SCALAR_TYPES

needs_compiler = pytest.mark.skipif(not cuda_values.COMPILER, reason="no C++ compiler (g++)")

NUMBERS = [n for n in SCALAR_TYPES if n != "bool"]
FLOATS: list[type[np.floating[Any]]] = [np.float32, np.float64]


def edges(name: str) -> Array:
    """Interesting values, and more at which a conversion rounds twice if it is careless."""
    t = SCALAR_TYPES[name]
    if t.is_float:
        # A NaN whose high bits are all zero would become an infinity.
        low_nan = np.array([0x7F800001, 0xFF800001], np.uint32).view(np.float32)
        more = low_nan if t == FLOAT32 else np.zeros(0, interesting(name).dtype)
        return np.concatenate([interesting(name), more])
    above = [2**30 + 2**22 + 1, 2**62 + 2**54 + 1, 2**55 + 2**47 - 1]
    kept = [v for x in above for v in (x, -x) if t.limits[0] <= v <= t.limits[1]]
    return np.concatenate([interesting(name), np.array(kept, interesting(name).dtype)])


def casts(source: str) -> Case:
    names = list(SCALAR_TYPES)
    outs = ", ".join(f"{t}(N) O{k}" for k, t in enumerate(names))
    body = " ".join(f"O{k}(i) = {t}(a(i))" for k, t in enumerate(names))
    return Case(f"def f({source}(N) a) -> ({outs}) {{ {body} }}", [edges(source)])


def operators(name: str) -> Case:
    a, b = (np.ascontiguousarray(g.ravel()) for g in np.meshgrid(*[interesting(name)] * 2))
    minus = "" if SCALAR_TYPES[name].kind.value == "uint" else "-"
    made = [f"a(i) {op} b(i)" for op in "+-*/%"]
    made += ["min(a(i), b(i))", "max(a(i), b(i))", f"{minus}a(i)", f"{minus}(a(i) - b(i))"]
    made += [f"a(i) {op} b(i)" for op in ("<", "<=", ">", ">=", "==", "!=")]
    made += ["a(i) < b(i) ? a(i) + b(i) * 3 : b(i) - (a(i) - 7) / 5", "a(i) % 3 * 100"]
    body = " ".join(f"O{k}(i) = {v}" for k, v in enumerate(made))
    body += " P +=! a(i) * b(i) Q *=! a(i) R min=! a(i) S max=! b(i) T +=! b(i)"
    outs = ", ".join([*(f"O{k}" for k in range(len(made))), *"PQRST"])
    return Case(f"def f({name}(N) a, {name}(N) b) -> ({outs}) {{ {body} }}", [a, b])


def builtin(name: str, arguments: list[Array]) -> Case:
    letters = "abcd"[: len(arguments)]
    parameters = ", ".join(f"{arguments[0].dtype.name}(N) {x}" for x in letters)
    call = f"{name}({', '.join(f'{x}(i)' for x in letters)})"
    return Case(f"def f({parameters}) -> (O) {{ O(i) = {call} }}", arguments)


def special(name: str, dtype: type[np.floating[Any]]) -> list[Array]:
    rows = np.array(oracles.SPECIAL[name], np.float64).astype(dtype)
    return [np.ascontiguousarray(c) for c in rows.T]


BOOLS = """def f(bool(N) a, bool(N) b) -> (O, P, Q, R, S) {
    O(i) = a(i) && !b(i) || b(i) == a(i)  P(i) = (a(i) || b(i)) && !(a(i) && b(i))
    Q(i) = a(i) ? b(i) : !b(i)  R max=! a(i)  S min=! a(i)
}"""


def rounded(source: str) -> Case:
    """Conversions to 16 bits within a value, and what is computed with them."""
    made = [f"float64({half}(a(i)))" for half in ("float16", "bfloat16")]
    made += ["float64(bfloat16(float16(a(i))) * float16(bfloat16(a(i))))"]
    made += ["float32(float16(float32(float16(a(i))))) + 1", "int32(float16(a(i)) % 3)"]
    body = " ".join(f"O{k}(i) = {v}" for k, v in enumerate(made))
    outs = ", ".join(f"O{k}" for k in range(len(made)))
    return Case(f"def f({source}(N) a) -> ({outs}) {{ {body} }}", [edges(source)])


MIXED = """def f(int32(N) a, int8(N) b, uint64(N) c) -> (O, P, Q, R, S, T) {
    O(i) = i * 100000 * i - a(i) where i in 0:25
    P(i) = a(i) > 3 && (b(i) < 0 || c(i) == 5) ? b(i) * 2 : i < 10 ? -b(i) : b(i) - (b(i) - 7)
    Q(i) = int8(min(b(i), 9) / max(b(i), int8(-3)) % 5) - int8(-(-b(i)))
    R(i) = float(a(i)) * 0.1 - (float(b(i)) - 2.5) / 3 + float(c(i)) * 1e-7
    S(i) = double(c(i)) / 3 - -2.0 - (a(i) / 7 - a(i) % 7 * (a(i) / -7))
    T(i) = (a(i) < 0) == (b(i) < 0) != (c(i) > 7)
}"""

Key = tuple[str, ...]


def all_cases() -> dict[Key, Case]:
    pairs = [np.array(x, np.bool_) for x in ([0, 0, 1, 1], [0, 1, 0, 1])]
    found: dict[Key, Case] = {("bools",): Case(BOOLS, pairs)}
    found |= {("casts", n): casts(n) for n in SCALAR_TYPES}
    found |= {("rounded", n): rounded(n) for n in SCALAR_TYPES}
    mixed = [np.resize(interesting(n), 25) for n in ("int32", "int8", "uint64")]
    found["mixed",] = Case(MIXED, mixed)
    found |= {("operators", n): operators(n) for n in NUMBERS}
    for dtype in FLOATS:
        for n in BUILTINS:
            found["special", n, dtype.__name__] = builtin(n, special(n, dtype)[:-1])
        for n in oracles.ORACLES:
            found["domain", n, dtype.__name__] = builtin(n, oracles.samples(n, dtype))
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[Key, tuple[Case, list[Array]]]:
    """Everything, by one compilation."""
    cases = all_cases()
    outputs = cuda_values.run(list(cases.values()), tmp_path_factory.mktemp("values"))
    return {k: (c, o) for (k, c), o in zip(cases.items(), outputs, strict=True)}


Results = dict[Key, tuple[Case, list[Array]]]


@needs_compiler
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # signalling NaNs
@pytest.mark.parametrize("source", SCALAR_TYPES)
def test_casts_between_all_types(source: str, results: Results) -> None:
    case, outputs = results["casts", source]
    for name, got, want in zip(
        SCALAR_TYPES, outputs, reference(case.text, *case.inputs), strict=True
    ):
        np.testing.assert_array_equal(plain(got), plain(want), err_msg=name)
        number = plain(want) == plain(want)
        assert (np.signbit(plain(got)) == np.signbit(plain(want)))[number].all()


@needs_compiler
@pytest.mark.parametrize("name", [*NUMBERS, "bool"])
def test_operators_of_all_types(name: str, results: Results) -> None:
    case, outputs = results[("bools",) if name == "bool" else ("operators", name)]
    expected = reference(case.text, *case.inputs)
    for k, (got, want) in enumerate(zip(outputs, expected, strict=True)):
        if got.shape or not SCALAR_TYPES[name].is_float:
            np.testing.assert_array_equal(plain(got), plain(want), err_msg=f"output {k}")


@needs_compiler
@pytest.mark.parametrize("key", [("mixed",), *(("rounded", n) for n in SCALAR_TYPES)], ids=str)
def test_values_of_several_operations(key: Key, results: Results) -> None:
    case, outputs = results[key]
    for k, (got, want) in enumerate(zip(outputs, reference(case.text, *case.inputs), strict=True)):
        np.testing.assert_array_equal(plain(got), plain(want), err_msg=f"output {k}")


@pytest.fixture
def _precision() -> Iterator[None]:
    with mp.workprec(oracles.PRECISION):
        yield


@needs_compiler
@pytest.mark.usefixtures("_precision")
@pytest.mark.parametrize("dtype", FLOATS, ids=["float32", "float64"])
@pytest.mark.parametrize("name", sorted(oracles.ORACLES))
def test_builtins_over_their_domain(
    name: str, dtype: type[np.floating[Any]], results: Results
) -> None:
    case, (got,) = results["domain", name, dtype.__name__]
    worst, where = oracles.worst_error(name, list(case.inputs), got)
    assert worst <= oracles.ORACLES[name].ulps[dtype is np.float64], where


@needs_compiler
@pytest.mark.parametrize("dtype", FLOATS, ids=["float32", "float64"])
@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_builtins_at_special_values(
    name: str, dtype: type[np.floating[Any]], results: Results
) -> None:
    expected = special(name, dtype)[-1]
    _, (got,) = results["special", name, dtype.__name__]
    np.testing.assert_array_max_ulp(got, expected, 1)
    zero = expected == 0
    assert (np.signbit(got) == np.signbit(expected))[zero].all(), got


# What NVRTC says, which needs no GPU.


def compiled(source: str, option: str) -> Any:
    """The program after NVRTC has compiled it without a word."""
    nvrtc = pytest.importorskip("cupy.cuda", reason="NVRTC comes with CuPy").nvrtc
    program = nvrtc.createProgram(source, "values.cu", (), ())
    try:
        nvrtc.compileProgram(program, (f"-arch={option}", "--fmad=false"))
        log = nvrtc.getProgramLog(program)
        assert not log, log[:4000]
        return nvrtc.getPTX(program) if option.startswith("compute") else nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError:
        pytest.fail(nvrtc.getProgramLog(program)[:4000])
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
def test_every_helper_compiles_for_gpus(architecture: str) -> None:
    few = ("int32", "uint16", "uint64", "float32")
    own = arith.OWN.keys() | arith.OWN_DOUBLE.keys()
    cases = [
        case
        for (kind, *rest), case in all_cases().items()
        if kind in ("casts", "mixed", "rounded")
        or (kind == "operators" and rest[0] in few)
        or (kind == "special" and (rest[0] in own or architecture == "sm_90"))
    ]
    source = cuda_values.kernels(cases)
    names = list(HELPERS)
    of_values = names[: names.index("carry")]  # the others are about memory
    assert set(of_values) <= values.helpers_in(source)
    assert compiled(source, architecture)


def test_constants_are_exact() -> None:
    """The decimals that are written give the same bits in PTX."""
    rng = np.random.default_rng(5)
    singles = rng.integers(0, 2**32, 300, np.uint32).view(np.float32)
    doubles = rng.integers(0, 2**64, 300, np.uint64).view(np.float64)
    singles, doubles = singles[np.isfinite(singles)], doubles[np.isfinite(doubles)]
    lines = [f"p[{k}] = {values.constant(float(x), FLOAT32)};" for k, x in enumerate(singles)]
    lines += [f"q[{k}] = {values.constant(float(x), FLOAT64)};" for k, x in enumerate(doubles)]
    head = 'extern "C" __global__ void f(float* p, double* q)'
    ptx = compiled(f"{head} {{ {' '.join(lines)} }}", "compute_75")
    found = {int(x) for x in re.findall(r"mov\.[bu](?:32|64) \S+ (-?\d+);", str(ptx))}
    assert {*singles.view(np.int32).tolist(), *doubles.view(np.int64).tolist()} <= found
