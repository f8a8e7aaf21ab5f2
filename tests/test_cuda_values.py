"""Values as CUDA C++: every type, operator, cast and built-in, through the host's compiler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cuda_values
import mpmath as mp
import numpy as np
import oracles
import pytest
from cpu_kernels import Array, plain, reference
from cuda_values import Case
from test_cpu_types import interesting

from tcl.grammar.builtins import BUILTINS
from tcl.grammar.types import SCALAR_TYPES

needs_compiler = pytest.mark.skipif(not cuda_values.COMPILER, reason="no C++ compiler (g++)")

NUMBERS = [n for n in SCALAR_TYPES if n != "bool"]
FLOATS: list[type[np.floating[Any]]] = [np.float32, np.float64]


def casts(source: str) -> Case:
    names = list(SCALAR_TYPES)
    outs = ", ".join(f"{t}(N) O{k}" for k, t in enumerate(names))
    body = " ".join(f"O{k}(i) = {t}(a(i))" for k, t in enumerate(names))
    return Case(f"def f({source}(N) a) -> ({outs}) {{ {body} }}", [interesting(source)])


def operators(name: str) -> Case:
    a, b = (np.ascontiguousarray(g.ravel()) for g in np.meshgrid(*[interesting(name)] * 2))
    minus = "" if SCALAR_TYPES[name].kind.value == "uint" else "-"
    values = [f"a(i) {op} b(i)" for op in "+-*/%"]
    values += ["min(a(i), b(i))", "max(a(i), b(i))", f"{minus}a(i)", f"{minus}(a(i) - b(i))"]
    values += [f"a(i) {op} b(i)" for op in ("<", "<=", ">", ">=", "==", "!=")]
    values += ["a(i) < b(i) ? a(i) + b(i) * 3 : b(i) - (a(i) - 7) / 5", "a(i) % 3 * 100"]
    body = " ".join(f"O{k}(i) = {v}" for k, v in enumerate(values))
    body += " P +=! a(i) * b(i) Q *=! a(i) R min=! a(i) S max=! b(i) T +=! b(i)"
    outs = ", ".join([*(f"O{k}" for k in range(len(values))), *"PQRST"])
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

Key = tuple[str, ...]


def all_cases() -> dict[Key, Case]:
    pairs = [np.array(x, np.bool_) for x in ([0, 0, 1, 1], [0, 1, 0, 1])]
    found: dict[Key, Case] = {("bools",): Case(BOOLS, pairs)}
    found |= {("casts", n): casts(n) for n in SCALAR_TYPES}
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


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
def test_everything_compiles_for_gpus(architecture: str) -> None:
    nvrtc = pytest.importorskip("cupy.cuda", reason="NVRTC comes with CuPy").nvrtc
    cases = [c for k, c in all_cases().items() if k[0] != "domain"]
    program = nvrtc.createProgram(cuda_values.kernels(cases), "values.cu", (), ())
    try:
        nvrtc.compileProgram(program, (f"-arch={architecture}", "--fmad=false"))
        log = nvrtc.getProgramLog(program)
        assert not log, log
        assert nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError:
        pytest.fail(nvrtc.getProgramLog(program)[:4000])
    finally:
        nvrtc.destroyProgram(program)
