"""Arithmetic that wraps before it is widened is told, and the remedies that are told work."""

from __future__ import annotations

import re

import numpy as np
import pytest
from programs import unmark

import tcl
from tcl.grammar.check.definitions import check

_HEADER = (
    "def f(int8(M, N) A, int8(N) a, uint8(N) u, int32(N) c, int64(N) l, bool(N) t, "
    "float16(N) h, float(N) x) -> ({}) {{\n    {}\n}}"
)


def _text(case: str) -> str:
    outputs, _, body = case.partition(" | ")
    return _HEADER.format(outputs, body)


_LATE = (
    ("int32(M) C | C(m) +=! «A(m, k) * a(k)»", "int32(A(m, k)) * a(k)"),
    ("int32(M) C | C(m) max=! «A(m, k) - a(k)»", "int32(A(m, k)) - a(k)"),
    ("int32(N) O | O(i) = «-u(i)»", "-int32(u(i))"),
    ("float(N) O | O(i) = «u(i) + a(i)» where i in 0:N", "float32(u(i)) + a(i)"),
    ("double(N) O | O(i) = «c(i) * c(i)»", "float64(c(i)) * c(i)"),
    ("int64(N) O | O(i) = «c(i) + 1»", "int64(c(i)) + 1"),
    ("int32(N) O | O(i) = «2 * u(i)»", "2 * int32(u(i))"),
    ("int32(N) O | O(i) = c(i) + «u(i) * u(i)»", "int32(u(i)) * u(i)"),
    ("int32(N) O | O(i) = («a(i) + u(i)») / 2", "(int32(a(i)) + u(i)) / 2"),
    ("int32(N) O | O(i) = «u(i) * u(i) + 2 * u(i)»",
     "int32(u(i)) * u(i) + 2 * int32(u(i))"),
    ("int32(N) O | O(i) = «(u(i) + 1) * (u(i) + 2)»",
     "(int32(u(i)) + 1) * (int32(u(i)) + 2)"),
    ("int32(N) O | O(i) = t(i) ? «u(i) * 3» : u(i)", "t(i) ? int32(u(i)) * 3 : u(i)"),
    ("int32(N) O | O(i) = «(t(i) ? u(i) : u(0)) * u(i)»",
     "(int32(t(i) ? u(i) : u(0))) * u(i)"),
    ("int32(N) O | O(i) = t(i) ? u(0) : («(u(i) > 1 ? u(i) : u(0)) * u(i)»)",
     "t(i) ? u(0) : ((int32(u(i) > 1 ? u(i) : u(0))) * u(i))"),
    ("int32(N) O | O(i) = y where y = «a(i) * a(i)»", "int32(a(i)) * a(i)"),
    ("int64(N) O | O(i) = l(i) > «c(i) * c(i)» ? 1 : 0", "int64(c(i)) * c(i)"),
    ("O | O(i) = exp(«a(i) * a(i)»)", "float32(a(i)) * a(i)"),
    ("O | O(i) = c(i) O(i) += «u(i) * u(i)»", "int32(u(i)) * u(i)"),
)  # fmt: skip


_CUT = (
    ("O | O(i) = x(i) * («1 / N»)", "1.0 / N"),
    ("O | O(i) = x(i) * («i / x.0»)", "float(i) / x.0"),
    ("O | O(i) = x(i) + («2 / N»)", "2.0 / N"),
    ("O | O(i) = x(i) * y where y = «1 / N»", "1.0 / N"),
    ("float(N) O | O(i) = «c(i) / N»", "float(c(i)) / N"),
    ("float O | O +=! «(c(i) > 3) / N»", "(float(c(i) > 3)) / N"),
    ("O | O(i) = x(i) * («c(i) / (c(0) + 1)»)", "float(c(i)) / (c(0) + 1)"),
    ("O | O(i) = «1 / 2» * x(i)", "1.0 / 2"),
    ("O | O(i) = x(i) * (1 - «3 / 2»)", "3.0 / 2"),
    ("O | O(i) = x(i) * («c(i) / 3» + c(i) % 3)", "float(c(i)) / 3"),
    ("O | O(i) = x(i) * (y + y % 3) where y = «c(i) / 3»", "float(c(i)) / 3"),
    ("O | O(i) = x(i) * («c(i) % 6 / 3»)", "float(c(i) % 6) / 3"),
)


@pytest.mark.parametrize(("case", "better"), _CUT)
def test_quotient_of_integers_used_as_a_float(case: str, better: str) -> None:
    marked = unmark(_text(case))
    (warning,) = check(marked.text)["f"].warnings
    line, column = marked.places[0][:2]
    assert (warning.span.line, warning.span.column) == (line, column)
    cut = marked.text[warning.span.start : warning.span.end]
    assert warning.message.endswith(f"write {better}, or float({cut}) if it is meant to be cut")
    for remedy in (better, f"float({cut})"):
        assert check(marked.text.replace(cut, remedy, 1))["f"].warnings == ()


@pytest.mark.parametrize(
    ("case", "remedies"),
    [
        ("O | O(i) = («u(i) + u(0)») / 2", ["int32(u(i)) + u(0)", "uint8(u(i) + u(0))"]),
        (
            "int8(N) O | O(i) = int8((«a(i) - a(0)») / 2)",
            ["int32(a(i)) - a(0)", "int8(a(i) - a(0))"],
        ),
        ("O | O(i) = «u(i) * u(0)» / 255", ["int32(u(i)) * u(0)", "uint8(u(i) * u(0))"]),
        ("O | O(i) = y / 2 where y = «u(i) + 1»", ["int32(u(i)) + 1", "uint8(u(i) + 1)"]),
        ("O | O(i) = max(«u(i) - u(0)», 0)", ["int32(u(i)) - u(0)", "uint8(u(i) - u(0))"]),
        ("O | O(i) = max(u(i), y) where y = «u(i) - 1»", ["int32(u(i)) - 1", "uint8(u(i) - 1)"]),
        ("O | O(i) = «u(i) - u(0)» >= 0 ? 1 : 0", ["int32(u(i)) - u(0)", "uint8(u(i) - u(0))"]),
        ("O | O(i) = 0 > y && t(i) where y = «u(i) - 1»", ["int32(u(i)) - 1", "uint8(u(i) - 1)"]),
        ("O | O(i) = int32(«u(i) - u(0)») * 2", ["int32(u(i)) - u(0)", "uint8(u(i) - u(0))"]),
        ("O | O(i) = float(y) where y = «u(i) - 9»", ["float32(u(i)) - 9", "uint8(u(i) - 9)"]),
        ("int32(N) O | O(i) = «u(i) - u(0)»", ["int32(u(i)) - u(0)", "uint8(u(i) - u(0))"]),
        ("O | O(m) +=! «A(m, k)»", ["int32(A(m, k))", "int8(A(m, k))"]),
        ("O | O(m) +=! «A(m, k) * a(k)»", ["int32(A(m, k)) * a(k)", "int8(A(m, k) * a(k))"]),
    ],
)
def test_narrow_values_that_are_divided_summed_or_cast(case: str, remedies: list[str]) -> None:
    """Each remedy, typed, ends the warning: also the cast to the type that it has."""
    marked = unmark(_text(case))
    (warning,) = check(marked.text)["f"].warnings
    assert f"; write {remedies[0]}, or {remedies[1]} if it is meant to wrap" in warning.message
    for remedy in remedies:
        assert check(marked.text.replace(marked.places[0][2], remedy))["f"].warnings == ()


@pytest.mark.parametrize(("case", "better"), _LATE)
def test_late_widening(case: str, better: str) -> None:
    marked = unmark(_text(case))
    (warning,) = check(marked.text)["f"].warnings
    assert (warning.span.line, warning.span.column) == marked.places[0][:2]
    assert "where it can wrap" in warning.message
    written = re.search(r"; write (.*), or (.*) if it is meant to wrap$", warning.message)
    assert written is not None
    assert written[1] == better
    # Each remedy, typed in place of what it is about, ends the warning.
    before = written[2][written[2].index("(") + 1 : -1]
    start = marked.text.rindex(before)
    for remedy in written.groups():
        text = marked.text[:start] + remedy + marked.text[start + len(before) :]
        assert check(text)["f"].warnings == ()


def _unsigned(case: str) -> str:
    return _text(case).replace("float(N) x)", "float(N) x, uint32(N) w, uint64(N) W)")


_SIGNED = (
    ("O | O(i) = w(i) % «N»", "int32(w(i))"),
    ("O | O(i, k) = «k» * (w(i) * 3 + 1) where k in 0:4", "int32(w(i) * 3 + 1)"),
    ("O | O(i) = y / («2 * N») where y = w(i)", "int32(y)"),
    ("O | O(i) = w(i) - «w.0»", "int32(w(i))"),
    ("O | O(i) = W(i) + «i»", "int64(W(i))"),
)


@pytest.mark.parametrize(("case", "meant"), _SIGNED)
def test_unsigned_values_that_meet_an_index_or_a_size(case: str, meant: str) -> None:
    before, other, after = re.split("[«»]", case)
    (warning,) = check(_unsigned(before + other + after))["f"].warnings
    assert "where large values of uint" in warning.message
    better = f"{'uint64' if 'W' in case else 'uint32'}({other})"
    assert warning.message.endswith(f"; write {better}, or {meant} if this is meant")
    value = meant[meant.index("(") + 1 : -1]
    for remedied in (before + better + after, (before + other + after).replace(value, meant, 1)):
        assert check(_unsigned(remedied))["f"].warnings == ()


def test_a_difference_of_32_bits_that_is_compared_with_0() -> None:
    marked = unmark(_unsigned("O | O(i) = «w(i) - w(0)» <= 0 || W(i) - W(0) <= 0"))
    (warning,) = check(marked.text)["f"].warnings  # no type is wider than that of W
    assert (warning.span.line, warning.span.column) == marked.places[0][:2]
    assert "compared with 0; write int64(w(i)) - w(0), or" in warning.message


def test_all_that_meets_unsigned_values_is_told_at_once() -> None:
    header = "def f(uint32(N) Key, float(B) Q) -> (Bit) {"
    text = f"{header} Bit(n, k) = (Key(n) * 7 + k * (Key(n) + 3)) / 512 % (8 * B) where k in 0:4 }}"
    remainder, product = check(text)["f"].warnings
    assert "this remainder is" in remainder.message and "this product is" in product.message
    assert remainder.message.endswith("become negative; write uint32(8 * B)")
    better = text.replace("k * (K", "uint32(k) * (K").replace("8 * B", "uint32(8 * B)")
    (definition,) = check(better).values()
    assert definition.warnings == () and str(definition.outputs[0].type) == "uint32"


@pytest.mark.parametrize(
    "case",
    [
        "O | O(i) = w(i) % 4 + w(i) * 3",  # literals take its type
        "O | O(i) = w(i) / 512 + i",  # has room in int32
        "O | O(i) = int32(w(i)) % N",  # meant, as it seems
        "O | O(i) = u(i) % N",
        "O | O(i) = w(i) * 0.5 + i",
        "O | O(i) = x(w(i) % N) where i in 0:N",  # subscripts are exact
    ],
)
def test_unsigned_values_that_stay_what_they_are(case: str) -> None:
    assert check(_unsigned(case))["f"].warnings == ()


@pytest.mark.parametrize(
    "case",
    [
        "int32(M) C | C(m) +=! A(m, k)",  # summed in int32
        "int8(M) C | C(m) +=! A(m, k) * a(k)",  # nothing was said to be wider
        "int32(M) C | C(m) +=! int32(A(m, k)) * a(k)",
        "int32(M) C | C(m) +=! int32(A(m, k) * a(k))",  # meant, as it seems
        "int32(N) O | O(i) = u(i) / 2 + u(i) / 2",  # cannot wrap
        "int32(N) O | O(i) = u(i) % 4 * 60 + min(u(i), 10)",
        "int32(N) O | O(i) = u(i) > 9 ? 1 : -1",
        "int64(N) O | O(i) = t(i) + t(i)",
        "int32(N) O | O(i) = u(u(i) + 1) where i in 0:1",  # subscripts are exact
        "float(N) O | O(i) = c(i) - 7",
        "float(N) O | O(i) = u(i) * i + 0.5",
        "int64(N) O | O(i) = i * i + l(i)",  # known with the sizes
        "float(N) O | O(i) = h(i) * h(i)",  # computed in float32 anyway
        "float(N) O | O(i) = x(i) * (i / 2) + x(i) / N",
        "O | O(i) = (c(0) / 15 % 15 - 7) * x(i)",  # the place in a row of rows
        "O | O(i) = ((c(0) / N + 1) % N - 7) * x(i) + i / N % 2",
        "O | O(i) = d * x(i) where d = c(0) / 15 % 15 - 7",
        "O | O(i) = d * x(i) where q = c(0) / 15, d = q % 15 - 7",
        "int32(N) O | O(i) = c(i) + i / N",
        "float(N) O | O(i) = x(i / N) where i in 0:N",
        "double(N) O | O(i) = x(i) * x(i)",  # too large is inf
        "O | O(i) = min(u(i) - u(0), u(0) - u(i))",  # of angles
        "O | O(i) = int32(max(u(i), u(0)) - min(u(i), u(0)))",  # cannot wrap
        "O | O(i) = u(i) > 48 && t(i) ? int32(u(i) - 48) : 0",  # nor this, as it seems
        "float(N) O | O(i) = u(i) < u(0) ? u(0) - u(i) : u(i) - u(0)",
        "uint32(N) O | O(i) = uint32(u(i) - u(0))",  # no sign is expected
        "O | O(i) = (u(i) * 31 + u(0)) / 16",  # the quotient would wrap, too
        "O | O(i) = (u(i) - u(0)) / 2",
        "O | O(i) = (int16(u(i)) * 9 + int16(u(0)) * 200) / 209",  # 16 bits may be room enough
        "O | O(i) = (u(i) / 2 + u(0) / 2) / 2 + (c(i) + c(0)) / 2",
        "int32(N) O | O(i) = uint8(u(i) + u(0))",
        "O | O(i) = u(i) != 0 ? int32(u(i) - 1) : 0",
        "O | O(i) = int32(u(i) - u(i) % 8)",
        "O | O(i) = int32(u(i) - u(i) / 2)",
        "O | O(i) = u(i) - u(0) != 0 || u(i) - u(i) % 8 > 0 || c(i) - c(0) < 0",
        "O | O(i) = u(i) - u(0) < 9",  # of a ring, as it seems
    ],
)
def test_no_false_alarm(case: str) -> None:
    assert check(_text(case))["f"].warnings == ()


@pytest.mark.parametrize(
    ("first", "wraps"),
    [
        ("M(n) max=! X(n, d)", False),
        ("M(n) = max(X(n, 0), X(n, 1))", False),
        ("M(n) = X(n, 0)", True),
    ],
)
def test_the_largest_of_an_earlier_statement_is_no_less(first: str, wraps: bool) -> None:
    text = f"def f(uint8(N, D) X) -> (M, O) {{ {first} O(n, d) = float(M(n) - X(n, d)) }}"
    assert len(check(text)["f"].warnings) == wraps


def test_the_remedy_computes_what_was_meant() -> None:
    text = "def f(int8(M, K) A, int8(K, N) B) -> (int32(M, N) C) { C(m, n) +=! A(m, k) * B(k, n) }"
    a, b = np.full((3, 5), 100, np.int8), np.full((5, 2), 50, np.int8)
    with pytest.warns(tcl.TclWarning, match=r":1:68: warning: this product is computed in int8"):
        wrapped = tcl.define(text).f(a, b)
    assert np.all(wrapped != 25_000)
    better = text.replace("A(m, k)", "int32(A(m, k))")
    assert np.all(tcl.define(better).f(a, b) == 25_000)


@pytest.mark.parametrize(
    ("statement", "literal"),
    [
        ("O(n) = X(n) * «s» where s = 0.1", "0.1"),
        ("O(n) = «r» + X(n) where s = 13.0 / 12, r = s * n", "13.0 / 12"),
        ("O(n) = «sqrt(3.0)» * X(n)", "3.0"),
        ("O(n) = X(n) * («1.0 / N»)", "1.0"),
        ("O(n) = «0.1 * n» + X(n)", "0.1"),
        ("O(n) = X(n) * («s / N») where s = 0.1", "0.1"),
        ("O(n) = X(n) * «sqrt(s)» where s = 3.0", "3.0"),
        ("O(n) = X(n) * «r» where s = 0.1, r = sqrt(s / 3)", "0.1"),
        ("O(n) = X(n) + «I(n) * 0.1»", "0.1"),
        ("O(n) = X(n) + «I(n + 1) / 3.0»", "3.0"),
        ("O(n) = X(n) * «exp(I(n))»", "I(n)"),
        ("O(n) = X(n) + float64(«0.1 * n»)", "0.1"),
        ("O(n) = X(n) + double(«s * I(n)») where s = 0.1", "0.1"),
    ],
)
def test_a_number_that_is_rounded_to_float32_beside_a_float64(statement: str, literal: str) -> None:
    """The remedy, typed, ends the warning."""
    marked = unmark(f"def f(double(N) X, int32(M) I) -> (O) {{ {statement} }}")
    (warning,) = check(marked.text)["f"].warnings
    assert f"write float64({literal}) for {literal}" in warning.message
    assert (warning.span.line, warning.span.column) == marked.places[0][:2]
    better = marked.text.replace(literal, f"float64({literal})")
    assert check(better)["f"].warnings == ()


@pytest.mark.parametrize(
    "statement",
    [
        "O(n) = X(n) * (13.0 / 12) + 0.1",
        "O(n) = X(n) * s + n / 2.0 where s = 0.25",
        "O(n) max=! X(n) > 0 ? X(n) : log(0.0)",
        "O(n) = X(n) * float(0.1)",
        "O(n) = X(n) + Y(n) * s where s = 0.1",  # computed in float32
        "O(n) = X(n) + I(n) * 0.5",
        "O(n) = X(n) + float(I(n)) / 3.0",
        "O(n) = X(n) + I(int32(0.1 * n)) * 0.5",
        "O(n) = X(n) + float64(float32(0.1 * n)) + float64(0.1 * Y(n)) + float64(0.5 * n)",
    ],
)
def test_no_number_is_rounded(statement: str) -> None:
    text = f"def f(double(N) X, float(N) Y, int32(M) I) -> (O) {{ {statement} }}"
    assert check(text)["f"].warnings == ()


def test_a_literal_that_is_cast_is_rounded_once() -> None:
    text = (
        "def f(double(N) X) -> (O) { O(n) = X(n) * float64(0.1) + s where s = double(13.0 / 12) }"
    )
    assert tcl.define(text).f(np.ones(1))[0] == 0.1 + 13 / 12


def test_float16_is_computed_in_float32() -> None:
    """Why floats are left alone."""
    text = "def f(float16(N) A) -> (float(N) O) { O(i) = A(i) * A(i) }"
    assert np.all(tcl.define(text).f(np.full(3, 300, np.float16)) == 90_000)


def test_of_long_expressions_the_start_is_shown() -> None:
    text = _text(f"int32(N) O | O(i) = {' + '.join(['a(i)'] * 99)}")
    (warning,) = check(text)["f"].warnings
    assert "; write int32(a(i)) for a(i), or " in warning.message
    assert len(warning.message) < 300
    text = _text(f"int32(N) O | O(i) = {' + '.join(['u(i) * u(i)'] * 99)}")
    (warning,) = check(text)["f"].warnings
    assert "; write int32(u(i)) for u(i), and likewise for the others, or " in warning.message


def test_a_long_expression_that_wraps_in_one_place() -> None:
    read = f"(u(i) > {' + '.join(['u(i)'] * 40)} ? u(i) : u(0))"
    (warning,) = check(_text(f"int32(N) O | O(i) = t(i) ? u(0) : {read} * u(i)"))["f"].warnings
    assert "; write int32(u(i) > " in warning.message


def test_long_chains_of_lets_take_no_time() -> None:
    lets = ", ".join(["x0 = u(i)", *(f"x{n} = x{n - 1} + x{n - 1}" for n in range(1, 2000))])
    (definition,) = check(_text(f"int32(N) O | O(i) = x1999 where {lets}")).values()
    assert len(definition.warnings) == 1999


@pytest.mark.parametrize(
    ("case", "warns"),
    [
        ("O | O +=! X(i)", True),
        ("O | O +=! X(i) * X(i)", True),
        ("O | O +=! X(i + k) > 3 ? int8(1) : int8(0) where k in 0:3", True),
        ("O | O +=! int16(X(i)) * 300", True),
        ("int8 O | O +=! X(i)", False),
        ("O | O +=! X(k) % 7 where k in 0:5", False),
        ("O | O +=! t * t where t = X(i)", True),
        ("O | O +=! u % 3 where k in 0:5, t = X(k), u = t % 7", False),
        ("O | O +=! X(i) > 3", False),
        ("O | O +=! int32(X(i))", False),
    ],
)
def test_sums_of_narrow_integers(case: str, warns: bool) -> None:
    """Only those whose type nobody wrote, and whose terms are not known to be small and few."""
    outputs, _, body = case.partition(" | ")
    warnings = check(f"def f(int8(N) X) -> ({outputs}) {{ {body} }}")["f"].warnings
    assert [("the sum 'O' has the type" in w.message) for w in warnings] == [True] * warns
