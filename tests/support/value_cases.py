"""Defs of every type, operator, cast and built-in, at values at which these do something of their
own: what backends make of them is compared with the reference, and with mpmath."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import mpmath as mp
import numpy as np
import oracles
from cpu_kernels import Array, plain, reference, sized_of
from strategies import numpy_type

from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.types import FLOAT32, SCALAR_TYPES


@dataclass
class Case:
    """A def of one-dimensional tensors and what it is run on."""

    text: str
    inputs: Sequence[Array]

    @property
    def sized(self) -> SizedDef:
        return sized_of(self.text, *self.inputs)


def interesting(name: str) -> Array:
    """Values at which a type does something of its own."""
    kind = SCALAR_TYPES[name]
    if not kind.is_float:
        low, high = kind.limits
        whole = [low, low + 1, -128, -7, -2, -1, 0, 1, 2, 3, 100, 127, 255, high - 1, high]
        whole += [2**24 + 1, 2**53 + 1, 2**62 + 2**38 + 1, 2**62 + 2**54]
        return np.array([v for v in whole if low <= v <= high], numpy_type(name))
    floats: list[float] = [
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -1.5,
        1e-7,
        6e-8,
        3e-8,
        6e-5,
        3.14159,
        65504,
        65520,
        65519,
    ]
    floats += [1e5, -1e5, 127.9, 128, 255.5, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 1e30, 3e38, 1e300]
    floats += [1.0009765625, 1.00048828125001, 1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-40, np.inf, np.nan]
    signed = np.array(floats + [-x for x in floats])
    with np.errstate(all="ignore"):
        return signed.astype(numpy_type(name))


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
    """The arguments of the special values, often enough for all lanes; as many as ``domain`` has,
    so that one kernel is for both."""
    columns = np.array(oracles.SPECIAL[name], np.float64).astype(dtype)[:, :-1].T
    many = len(oracles.samples(name, dtype)[0]) if name in oracles.ORACLES else 9 * len(columns[0])
    return [np.resize(c, many) for c in columns]


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

Key: TypeAlias = tuple[str, ...]


@cache
def all_cases() -> dict[Key, Case]:
    """By their kind, and the type or function that they are about."""
    pairs = [np.array(x, np.bool_) for x in ([0, 0, 1, 1], [0, 1, 0, 1])]
    found: dict[Key, Case] = {("bools",): Case(BOOLS, pairs)}
    found |= {("casts", n): casts(n) for n in SCALAR_TYPES}
    found |= {("rounded", n): rounded(n) for n in SCALAR_TYPES}
    mixed = [np.resize(interesting(n), 25) for n in ("int32", "int8", "uint64")]
    found["mixed",] = Case(MIXED, mixed)
    found |= {("operators", n): operators(n) for n in NUMBERS}
    for dtype in FLOATS:
        for n in BUILTINS:
            found["special", n, dtype.__name__] = builtin(n, special(n, dtype))
            if n in oracles.ORACLES:
                found["domain", n, dtype.__name__] = builtin(n, oracles.samples(n, dtype))
    return found


@cache  # several kernels are compared with them
def expected_outputs(key: Key) -> list[Array]:
    """What the reference makes of a case."""
    case = all_cases()[key]
    return reference(case.text, *case.inputs)


def check_outputs(key: Key, outputs: Sequence[Array]) -> None:
    """Whether these are the outputs of a case."""
    case, (kind, *about) = all_cases()[key], key
    if kind == "domain":
        with mp.workprec(oracles.PRECISION):
            worst, where = oracles.worst_error(about[0], list(case.inputs), outputs[0])
        assert worst <= oracles.ORACLES[about[0]].ulps[about[1] == "float64"], where
        return
    if kind == "special":
        rows = np.array(oracles.SPECIAL[about[0]], np.float64).astype(about[1])
        expected = np.resize(rows[:, -1], len(outputs[0]))
        np.testing.assert_array_max_ulp(outputs[0], expected, 1)
        zero = expected == 0
        assert (np.signbit(outputs[0]) == np.signbit(expected))[zero].all(), outputs[0]
        return
    for k, (got, want) in enumerate(zip(outputs, expected_outputs(key), strict=True)):
        assert got.dtype == want.dtype
        if not got.shape and got.dtype.kind not in "biu":
            continue  # a sum of floats depends on the order
        # A quotient by a number may be a product with its inverse.
        rtol = 2 * np.finfo(got.dtype).eps if kind == "mixed" and got.dtype.kind == "f" else 0
        np.testing.assert_allclose(plain(got), plain(want), rtol, 0, err_msg=f"{key}, output {k}")
        if kind == "casts":
            number = plain(want) == plain(want)
            assert (np.signbit(plain(got)) == np.signbit(plain(want)))[number].all()
