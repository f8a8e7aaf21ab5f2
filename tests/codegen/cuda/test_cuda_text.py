"""How values read in CUDA C++: parentheses, helper functions, reductions."""

from __future__ import annotations

import pytest
from cuda_values import expressions

from tcl.codegen.cuda.cpp.pieces import Binds, wrapped, written
from tcl.codegen.cuda.emit.names import RESERVED
from tcl.codegen.cuda.emit.writer import Expressions
from tcl.codegen.cuda.prelude.prelude import helpers_in, prelude
from tcl.codegen.loopir import ir
from tcl.grammar.syntax.types import (
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    UINT16,
    UINT64,
    ScalarType,
)

A, B, C = (ir.Variable(name, FLOAT32) for name in "abc")


def op(symbol: str, left: ir.Value, right: ir.Value, t: ScalarType = FLOAT32) -> ir.Binary:
    return ir.Binary(symbol, left, right, t)


def less(left: ir.Value, right: ir.Value) -> ir.Binary:
    return op("<", left, right, BOOL)


def number(value: float, t: ScalarType = FLOAT32) -> ir.Const:
    return ir.Const(value, t)


TEXTS: list[tuple[ir.Value, str]] = [
    (op("+", op("*", A, B), C), "a * b + c"),
    (op("*", op("+", A, B), C), "(a + b) * c"),
    (op("-", A, op("-", B, C)), "a - (b - c)"),
    (op("-", op("-", A, B), C), "a - b - c"),
    (op("/", A, op("*", B, C)), "a / (b * c)"),
    (op("-", A, number(-1.5)), "a - -1.5f"),
    (ir.Unary("-", ir.Unary("-", A, FLOAT32), FLOAT32), "-(-a)"),
    (ir.Unary("-", number(-2.0), FLOAT32), "-(-2.0f)"),
    (ir.Unary("!", less(A, B), BOOL), "!(a < b)"),
    (op("==", less(A, B), less(B, C), BOOL), "(a < b) == (b < c)"),
    (op("||", op("&&", less(A, B), less(B, C), BOOL), less(C, A), BOOL),
     "(a < b && b < c) || c < a"),
    (op("&&", less(A, B), op("&&", less(B, C), less(C, A), BOOL), BOOL),
     "a < b && b < c && c < a"),
    (ir.Select(less(A, B), A, ir.Select(less(B, C), B, C, FLOAT32), FLOAT32),
     "a < b ? a : b < c ? b : c"),
    (op("*", ir.Select(less(A, B), A, B, FLOAT32), C), "(a < b ? a : b) * c"),
    (op("max", A, number(0.0)), "max_of(a, 0.0f)"),
    (op("%", A, B), "fmodf(a, b)"),
    (ir.Cast(op("+", A, B), FLOAT64), "(double)(a + b)"),
    (ir.Cast(op("+", A, B), INT32), "to_int32(a + b)"),
    (ir.Cast(ir.Variable("h", FLOAT16), FLOAT32), "h"),
    (ir.Cast(ir.Cast(A, FLOAT16), FLOAT16), "round_to_half(a)"),
    (ir.Call("fdivide", (A, op("+", B, C)), FLOAT32), "a / (b + c)"),
    (ir.Call("exp", (A,), FLOAT32), "expf(a)"),
    (ir.Call("pow", (A, B), FLOAT32), "(float)pow((double)a, (double)b)"),
    (number(-(2**31), INT32), "(-2147483647 - 1)"),
    (number(-(2**63), INT64), "(-9223372036854775807LL - 1)"),
    (number(5, UINT64), "5ULL"),
    (op("+", ir.Variable("s", INT16), number(5, INT16), INT16), "(short)(s + 5)"),
    (op("/", ir.Variable("n", INT32), number(8, INT32), INT32), "n / 8"),
    (op("/", ir.Variable("n", INT32), number(-8, INT32), INT32), "divide(n, -8)"),
    (op("-", ir.Variable("n", UINT64), number(8, UINT64), UINT64), "n - 8ULL"),
    (number(float("-inf")), "-infinity()"),
    (number(float("inf"), FLOAT64), "(double)infinity()"),
    (number(float("nan")), "not_a_number()"),
    (number(0.1), "0.1f"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=[t for _, t in TEXTS])
def test_text(value: ir.Value, text: str) -> None:
    writer = expressions()
    assert writer.text(value) == text
    assert writer.used == helpers_in(text)


@pytest.mark.parametrize(
    ("symbol", "value", "type_", "statement"),
    [
        ("+", op("*", A, op("+", B, C)), FLOAT32, "t = fmaf(a, b + c, t);"),
        ("+", ir.Cast(op("*", A, B, FLOAT16), FLOAT32), FLOAT32, "t = fmaf(a, b, t);"),
        (
            "+",
            ir.Select(less(A, B), op("*", A, C), number(0.0), FLOAT32),
            FLOAT32,
            "if (a < b) t = fmaf(a, c, t);",
        ),
        ("+", ir.Cast(op("*", A, B), FLOAT64), FLOAT64, "t += (double)(a * b);"),
        ("+", op("+", A, B), FLOAT16, "t += a + b;"),
        ("max", A, FLOAT32, "t = greatest_of(t, a);"),
        ("min", ir.Variable("n", INT64), INT64, "t = min_of(t, n);"),
        ("+", ir.Variable("n", INT32), INT32, "t = add(t, n);"),
        ("*", ir.Variable("n", UINT16), UINT16, "t = multiply(t, n);"),
        ("+", ir.Variable("n", UINT16), UINT16, "t += n;"),
        ("max", less(A, B), BOOL, "t |= a < b;"),
        ("*", less(A, B), BOOL, "t &= a < b;"),
        ("=", op("*", A, B), FLOAT32, "t = a * b;"),
    ],
)
def test_accumulate(symbol: str, value: ir.Value, type_: ScalarType, statement: str) -> None:
    assert expressions().accumulate(symbol, "t", value, type_) == statement


def test_stored_16_bit_values_are_rounded_once() -> None:
    writer = expressions()
    wide = ir.Variable("d", FLOAT64)
    assert writer.stored(ir.Cast(wide, FLOAT16), FLOAT16) == "float_to_half(odd_float(d))"
    assert writer.stored(op("*", A, B, FLOAT16), FLOAT16) == "float_to_half(a * b)"


def test_what_is_read_may_be_wider_than_its_type() -> None:
    """A panel of float32 holds products of float16 values, which a cast still has to round."""
    read = ir.Load(ir.TensorRef("p", (ir.Affine(),)), FLOAT16, total=True)
    writer = Expressions(lambda index, t: "i", lambda load: "p[i]", lambda v: v.name, lambda c: "c")
    assert writer.text(ir.Cast(read, FLOAT16)) == "round_to_half(p[i])"
    assert writer.stored(read, FLOAT16) == "float_to_half(p[i])"


def test_long_statements_are_broken() -> None:
    value: ir.Value = A
    for _ in range(50):
        value = op("+", value, op("*", B, C))
    text = f"t = {expressions().text(value)};"
    lines = wrapped(text, "    ").splitlines()
    assert len(lines) > 3 and max(map(len, lines)) <= 100
    assert " ".join(line.strip() for line in lines) == text
    assert wrapped("t = a;", "  ") == "  t = a;"


def test_merged_texts() -> None:
    writer = expressions()
    other = "__shfl_xor_sync(0xffffffffu, t, 1)"
    assert writer.merge("+", "t", other, FLOAT32) == f"t + {other}"
    assert writer.merge("*", "t + u", other, FLOAT64) == f"(t + u) * {other}"
    assert writer.merge("+", "t", other, INT64) == f"add(t, {other})"
    assert writer.merge("max", "t", "u != 0", BOOL) == "t || u != 0"


@pytest.mark.parametrize(
    ("text", "binds"),
    [
        ("A[4 * (i + 1)]", Binds.PRIMARY),
        ("half_to_float(A[i - 1])", Binds.PRIMARY),
        ("(i + 1)", Binds.PRIMARY),
        ("(int)i", Binds.UNARY),
        ("(long long)(i + 1)", Binds.UNARY),
        ("-a[i]", Binds.UNARY),
        ("*p", Binds.UNARY),
        ("4 * i", Binds.PRODUCT),
        ("4 * i + 1", Binds.SUM),
        ("A[i] != 0", Binds.COMPARISON),
        ("i < 4 && j < 4", Binds.AND),
        ("f(i && j) || j", Binds.OR),
        ("i < 4 ? i : j", Binds.CHOICE),
        ("i << 2", Binds.CHOICE),
    ],
)
def test_texts_from_elsewhere(text: str, binds: Binds) -> None:
    assert written(text).binds is binds


def test_deep_values_need_no_recursion() -> None:
    value: ir.Value = A
    for _ in range(20_000):
        value = op("+", op("*", value, B), C)
    text = expressions().text(value)
    assert len(text) < 20_000 * len("() * b + c") + 10


def test_the_prelude_holds_what_is_used_and_no_more() -> None:
    text = prelude({"round_to_half"})
    assert helpers_in(text) == {"half_to_float", "float_to_half", "round_to_half"}
    assert text.index("float_to_half(float x)") < text.index("round_to_half(float x)")
    assert prelude(()) == ""


def test_reserved_names() -> None:
    assert {"float", "expf", "max_of", "threadIdx", "template"} <= RESERVED
