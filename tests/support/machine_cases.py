"""Kernels that show what machines differ in: types, lanes, roundings, formulas, checks, threads."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcl.arrays.annotations import parse_sizes
from tcl.arrays.random_inputs import random_inputs
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.measure.correctness import accumulation_depths, mismatch

Array = np.ndarray[Any, np.dtype[Any]]
DEFAULT = MappingOptions("mlp")
STREAMED = MappingOptions().vectorize(4, 1).stream()


@dataclass(frozen=True)
class Case:
    """A def at some sizes, with options."""

    name: str
    text: str
    """From its parameters on."""
    sizes: str
    values: str = ""
    """A line of the kind ``I: 0..E``."""
    options: MappingOptions = DEFAULT
    threads: int = 1


@dataclass(frozen=True)
class Work:
    """What a case computes."""

    sized: SizedDef
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]

    def poisoned(self) -> list[Array]:
        """Outputs that nothing was written to."""
        return [np.full(e.shape, 77).astype(e.dtype) for e in self.expected]

    def wrong(self, outputs: list[Array]) -> list[str]:
        """Sentences about outputs that are not the reference's."""
        depths = accumulation_depths(self.sized)
        tensors = self.sized.checked.outputs
        found = (
            mismatch(t.name, o, e, depths[t.name])
            for t, o, e in zip(tensors, outputs, self.expected, strict=True)
        )
        return [sentence for sentence in found if sentence]


@functools.cache
def work(case: Case) -> Work:
    """The case's inputs, and what the reference makes of them."""
    note = f"# values {case.values}\n" * bool(case.values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (checked,) = check(f"{note}def f({case.text}").values()
    sizes = parse_sizes(case.sizes, checked)
    inputs = random_inputs(checked, sizes)
    shapes = {t.name: a.shape for t, a in zip(checked.inputs, inputs, strict=True)}
    sized = infer(checked, shapes)
    expected = [np.zeros(sized.shapes[t.name], numpy_dtype(t.type)) for t in sized.checked.outputs]
    compile_reference(sized)(inputs, expected)
    return Work(sized, inputs, tuple(expected))


def _product(types: str, result: str = "", rows: str = "m, k", columns: str = "k, n") -> str:
    left, right = types.split()
    shape = {"m, k": "M, K", "k, m": "K, M", "k, n": "K, N", "n, k": "N, K"}
    a, b = f"A({rows})", f"B({columns})"
    if result:
        a, b = f"{result}({a})", f"{result}({b})"
    inputs = f"{left}({shape[rows]}) A, {right}({shape[columns]}) B"
    return f"{inputs}) -> (C) {{ C(m, n) +=! {a} * {b} }}"


def _each(type_: str, *values: str) -> str:
    names = [f"O{k}" for k in range(len(values))]
    body = " ".join(f"{n}(i) = {v}" for n, v in zip(names, values, strict=True))
    return f"{type_}(N) X, {type_}(N) Y) -> ({', '.join(names)}) {{ {body} }}"


_SOFTMAX = """%s(N, D) I) -> (O, m, s) {
    m(n) max=! I(n, d)
    s(n) +=! exp(I(n, d) - m(n))
    O(n, d) = exp(I(n, d) - m(n)) / s(n)
}"""
_LAYERNORM = """%s(N, D) X, %s(D) g, %s(D) b) -> (O, mean, var) {
    mean(n) +=! X(n, d)
    mean(n) = mean(n) / D
    var(n) +=! (X(n, d) - mean(n)) * (X(n, d) - mean(n))
    var(n) = rsqrt(var(n) / D + 0.001)
    O(n, d) = (X(n, d) - mean(n)) * var(n) * g(d) + b(d)
}"""
_MLP = """float(B, M) I, float(N, M) W, float(N) C, float(P, N) V) -> (O, U) {
    O(b, n) +=! I(b, m) * W(n, m)
    O(b, n) = fmax(O(b, n) + C(n), 0.0)
    U(b, p) +=! O(b, n) * V(p, n)
}"""
_CONVOLUTION = """%s(N, C, H, W) I, %s(F, C, KH, KW) K) -> (O) {
    O(n, f, h, w) +=! I(n, c, h + kh, w + kw) * K(f, c, kh, kw)
}"""
_GROUPED = """float(N, G, C, H, W) I, float(G, F, C, KH, KW) K) -> (O) {
    O(n, g, f, h, w) +=! I(n, g, c, 2 * h + kh, w + kw) * K(g, f, c, kh, kw)
}"""
_PADDED = """float(C, W) I, float(F, C, K) A) -> (O) {
    O(f, w) +=! w + k - 1 >= 0 && w + k - 1 < W ? I(c, w + k - 1) * A(f, c, k) : 0.0
        where w in 0:W
}"""
_ROWS = """float(N, D) X) -> (total, most, least, many) {
    total(n) +=! X(n, d)
    most(n) max=! X(n, d)
    least(n) min=! X(n, d)
    many(n) +=! X(n, d) > 0.5 ? 1.0 : 0.0
}"""
_INTEGERS = """%s(N, D) X) -> (total, product, most, least) {
    total(n) +=! X(n, d)
    product(n) *=! X(n, d)
    most(n) max=! X(n, d)
    least(n) min=! X(n, d)
}"""
_SCAN = "float(N, D) X) -> (S) { S(n, i) +=! j <= i ? X(n, j) : 0.0 where i in 0:D, j in 0:D }"
_SMALL = "M=33, N=47, K=29"
_FEW = "M=13, N=21, K=9"
"""For types in which the reference takes long."""

CASES: tuple[Case, ...] = (
    Case("product", _product("float float"), _SMALL),
    Case("product in panels", _product("float float"), "M=130, N=140, K=300"),
    Case("transposed product", _product("float float", columns="n, k"), _SMALL),
    Case("product of columns", _product("float float", rows="k, m"), _SMALL),
    Case("float64 product", _product("double double"), _SMALL),
    Case("float16 product", _product("float16 float16"), _FEW),
    Case("bfloat16 product", _product("bfloat16 bfloat16"), _FEW),
    Case("int8 product", _product("int8 int8", "int32"), _SMALL),
    Case("mixed product", _product("uint8 int8", "int32"), _SMALL),
    Case("int16 product", _product("int16 int16", "int32"), _SMALL),
    Case("int64 product", _product("int64 int64"), "M=9, N=21, K=7"),
    Case(
        "batched product",
        "float(B, M, K) X, float(B, K, N) Y) -> (Z) { Z(b, m, n) +=! X(b, m, k) * Y(b, k, n) }",
        "B=5, M=26, K=36, N=26",
    ),
    Case(
        "tiled product",
        _product("float float"),
        _SMALL,
        options=MappingOptions().tile(16, 16, 8).vectorize(4, 1).register(2, 2).stage(0, 1),
    ),
    Case("two layers", _MLP, "B=9, M=37, N=21, P=10"),
    Case("convolution", _CONVOLUTION % ("float", "float"), "N=2, C=3, H=10, W=19, F=5, KH=3, KW=3"),
    Case(
        "float16 convolution",
        _CONVOLUTION % ("float16", "float16"),
        "N=2, C=3, H=6, W=11, F=4, KH=3, KW=3",
    ),
    Case("grouped convolution", _GROUPED, "N=2, G=3, C=4, H=9, W=10, F=4, KH=3, KW=3"),
    Case("padded convolution", _PADDED, "C=5, W=21, F=6, K=3"),
    Case("softmax", _SOFTMAX % "float", "N=7, D=53"),
    Case("float64 softmax", _SOFTMAX % "double", "N=7, D=53"),
    Case("float16 softmax", _SOFTMAX % "float16", "N=7, D=53"),
    Case("layernorm", _LAYERNORM % (("float",) * 3), "N=9, D=70"),
    Case("bfloat16 layernorm", _LAYERNORM % (("bfloat16",) * 3), "N=9, D=70"),
    Case("sums of rows", _ROWS, "N=11, D=65"),
    Case("sums of columns", "float(N, D) X) -> (S) { S(d) +=! X(n, d) }", "N=31, D=67"),
    Case("int8", _INTEGERS % "int8", "N=7, D=67"),
    Case("uint8", _INTEGERS % "uint8", "N=7, D=67"),
    Case("int32", _INTEGERS % "int32", "N=7, D=67"),
    Case("uint64", _INTEGERS % "uint64", "N=7, D=37"),
    Case("prefix sums", _SCAN, "N=3, D=29"),
    Case(
        "streamed",
        "float(N, D) X, float(D) b) -> (O) { O(n, d) = fmax(X(n, d) + b(d), 0.0) * 0.5 }",
        "N=9, D=64",
        options=STREAMED,
    ),
    Case(
        "float32 functions",
        _each(
            "float",
            *("exp(X(i))", "log(fabs(X(i)))", "tanh(X(i))", "erf(X(i))", "sin(X(i)) * cos(Y(i))"),
            *("tan(X(i))", "pow(fabs(X(i)), Y(i))", "expm1(X(i))", "rsqrt(fabs(X(i)))"),
        ),
        "N=75",
    ),
    Case(
        "float64 functions",
        _each(
            "double",
            *("exp(X(i))", "log(fabs(X(i)))", "tanh(X(i))", "erf(X(i))", "sin(X(i)) * cos(Y(i))"),
            *("log2(fabs(X(i)))", "pow(fabs(X(i)), Y(i))", "cbrt(X(i))", "exp10(X(i))"),
        ),
        "N=75",
    ),
    Case(
        "roundings",
        _each(
            "float",
            *("floor(X(i) * 4)", "ceil(X(i) * 4)", "trunc(X(i) * 4)", "round(X(i) * 4)"),
            *("fmod(X(i), Y(i))", "fma(X(i), Y(i), X(i))", "hypot(X(i), Y(i))"),
        ),
        "N=75",
    ),
    Case(
        "float64 roundings",
        _each("double", "floor(X(i) * 4)", "ceil(X(i) * 4)", "trunc(X(i) * 4)", "round(X(i) * 4)"),
        "N=37",
    ),
    Case(
        "integer arithmetic",
        _each("int32", "X(i) / Y(i)", "X(i) % Y(i)", "X(i) * Y(i) - X(i)", "fmin(X(i), Y(i))"),
        "N=75",
    ),
    Case(
        "casts",
        "float16(N) A, bfloat16(N) B, uint8(N) C, int64(N) D, double(N) E) -> (P, Q, R, S, T) { "
        "P(i) = bfloat16(A(i)) Q(i) = float16(E(i)) R(i) = int32(E(i) * 1000) "
        "S(i) = float(D(i)) + float(C(i)) T(i) = uint8(B(i) * 100) }",
        "N=75",
    ),
    Case(
        "conditions",
        "float(N) X, float(N) Y) -> (O) { "
        "O(i) = X(i) < Y(i) && !(X(i) < 0) ? X(i) : Y(i) / (X(i) * X(i) + 1) }",
        "N=75",
    ),
    Case(
        "checked gather",
        "float(E, D) T, int32(B, L) I, float(L) w) -> (O) { O(b, d) +=! T(I(b, l), d) * w(l) }",
        "E=19, D=22, B=5, L=7",
        values="I: 0..E",
    ),
    Case(
        "gather with lanes",
        "double(E) T, int64(B) I) -> (O) { O(b) = T(I(b)) }",
        "E=19, B=37",
        values="I: 0..E",
    ),
    Case(
        "stencil",
        "float(H, W) X) -> (O) { O(h, w) = 0.2 * (X(h, w) + X(h + 1, w) + X(h + 2, w) "
        "+ X(h + 1, w + 1) + X(h + 1, w + 2)) }",
        "H=19, W=45",
    ),
    Case("threads: product", _product("float float"), "M=130, N=140, K=300", threads=3),
    Case("threads: softmax", _SOFTMAX % "float", "N=700, D=130", threads=2),
    Case("threads: layernorm", _LAYERNORM % (("float",) * 3), "N=500, D=200", threads=3),
    Case("threads: two layers", _MLP, "B=90, M=70, N=40, P=30", threads=2),
    Case(
        "threads: sums of columns",
        "float(N, D) X) -> (S) { S(d) +=! X(n, d) }",
        "N=600, D=300",
        threads=2,
    ),
)
