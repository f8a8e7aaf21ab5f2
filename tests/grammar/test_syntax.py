"""The grammar: trees, precedence, spelling, and where syntax errors point."""

from __future__ import annotations

import re

import numpy as np
import pytest
from programs import SYNTAX, in_def, unmark

import tcl
from tcl.grammar.check.builtins import BUILTINS
from tcl.grammar.check.definitions import check
from tcl.grammar.syntax import ast
from tcl.grammar.syntax.errors import TclSyntaxError
from tcl.grammar.syntax.parser import parse
from tcl.grammar.syntax.printer import expr_text


@pytest.mark.parametrize(("text", "fragment"), SYNTAX)
def test_rejected(text: str, fragment: str) -> None:
    marked = unmark(text if text.startswith(("#", "\n")) or not text else in_def(text))
    with pytest.raises(TclSyntaxError) as caught:
        check(marked.text, "file.tc")
    (problem,) = caught.value.diagnostics
    assert fragment in problem.message
    assert problem.section is not None or "unexpected" in problem.message
    line, column, _ = marked.places[0] if marked.places else (1, 1, "")
    assert (problem.span.line, problem.span.column) == (line, column)
    assert str(caught.value).startswith(f"file.tc:{line}:{column}: error: ")


def _rhs(text: str) -> ast.Expr:
    statement = parse(f"def f(float(N) b) -> (O) {{ O(i) = {text} }}").defs[0].statements[0]
    assert isinstance(statement, ast.Assign)
    return statement.rhs


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("- - a", "-(-a)"),
        ("--a", "-(-a)"),
        ("!a && b", "(!a) && b"),
        ("!a == b", "(!a) == b"),
        ("!-a", "!(-a)"),
        ("a - -b", "a - (-b)"),
        ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
        ("a ? b ? c : d : e", "a ? (b ? c : d) : e"),
        ("a || b ? c + d : e * f", "(a || b) ? (c + d) : (e * f)"),
        ("a>=b||c<=d", "(a >= b) || (c <= d)"),
    ],
)
def test_precedence_of_signs_and_choices(text: str, grouped: str) -> None:
    assert _rhs(text) == _rhs(grouped)
    assert expr_text(_rhs(grouped)) == expr_text(_rhs(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("007", 7),
        ("1.5", 1.5),
        (".5", 0.5),
        ("3.", 3.0),
        ("3e-3", 3e-3),
        ("3E+3", 3e3),
        ("1.5e2", 150.0),
        (".5e1", 5.0),
        ("3.e2", 300.0),
        ("18446744073709551615", 2**64 - 1),
        ("000000000000000000000000000000012", 12),
    ],
)
def test_numbers(text: str, value: float) -> None:
    number = _rhs(text)
    assert isinstance(number, ast.Number)
    assert (number.value, type(number.value)) == (value, type(value))


@pytest.mark.parametrize(
    "name", "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 "
    "float32 float64".split()
)  # fmt: skip
def test_type_names(name: str) -> None:
    (definition,) = parse(
        f"def f({name}(N) A, {name} b) -> ({name}(N) O) {{ O(i) = {name}(1) }}"
    ).defs
    types = [p.type for p in (*definition.params, *definition.outputs)]
    assert [t.scalar for t in types if t] == [name] * 3
    assert _rhs(f"{name}(1)") == ast.Cast(name, ast.Number(1, _SPAN), _SPAN)


@pytest.mark.parametrize(
    ("alias", "name"),
    [("half", "float16"), ("float", "float32"), ("double", "float64"), ("byte", "uint8")],
)
def test_aliases(alias: str, name: str) -> None:
    text = "def f({0}(N) A) -> ({0}(N) O) {{ O(i) = {0}(1) }}"
    assert parse(text.format(alias)) == parse(text.format(name))


@pytest.mark.parametrize("name", BUILTINS)
def test_every_builtin_is_callable(name: str) -> None:
    arguments = ", ".join(["b(i)"] * BUILTINS[name])
    check(f"def f(float(N) b) -> (O) {{ O(i) = {name}({arguments}) }}")


def test_the_builtins_are_the_originals_and_expit() -> None:
    expected = """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi
        cyl_bessel_i0 cyl_bessel_i1 erf erfc erfcinv erfcx erfinv exp exp10 exp2 expit expm1 fabs
        fdim fdivide floor fma fmax fmin fmod hypot j0 j1 lgamma log log10 log1p log2 logb nextafter
        norm3d norm4d normcdf normcdfinv pow rcbrt remainder rhypot rnorm3d rnorm4d round rsqrt
        sin sinh sinpi sqrt tan tanh tgamma trunc y0 y1"""
    assert sorted(BUILTINS) == sorted(expected.split())


_SPAN = parse("def f() -> (O) { O = 1 }").defs[0].span

_SPACED = "def f(float(M, N) A, float(N) b) -> (O) {{{0}O(m) +=! A(m, n) * b(n)\
{0}where n in 0:N, x = 1.5, exists b(n){0}O(m) = O(m) + 1{0}}}{0}"


@pytest.mark.parametrize("gap", ["\n", "\r\n", "\t", "  ", "\n\n\n", " # c\n", "\f", "\v", "\r"])
def test_spacing_means_nothing(gap: str) -> None:
    assert parse(_SPACED.format(gap)) == parse(_SPACED.format(" "))


def test_no_spaces_at_all() -> None:
    dense = "def f(float(N)b)->(O){O(i)=b(i)>0?b(i):-b(i)where i in 0:N,x=1,exists b(i)O(i)=O(i)*2}"
    loose = (
        "def f(float(N) b) -> (O) { O(i) = b(i) > 0 ? b(i) : -b(i) "
        "where i in 0 : N, x = 1, exists b(i)\nO(i) = O(i) * 2 }"
    )
    assert parse(dense) == parse(loose)


def test_a_minus_at_the_start_of_a_line_continues_the_expression() -> None:
    assert _rhs("b(i)\n - 1") == _rhs("b(i) - 1")


def test_columns_count_characters_after_crlf_and_tabs() -> None:
    with pytest.raises(TclSyntaxError) as caught:
        parse("def f(float(N) b) -> (O) {\r\n\tO(i) = b(i) ;\r\n}")
    assert (caught.value.line, caught.value.column) == (2, 14)


def test_errors_can_be_pickled() -> None:
    import pickle

    with pytest.raises(TclSyntaxError) as caught:
        parse("def", "some.tc")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.span) == (str(caught.value), caught.value.span)


@pytest.mark.parametrize("places", [1, 3, 31, 62])
def test_the_remedies_for_a_shift_compute_it(places: int) -> None:
    header = "def f(int64(N) X, uint64(N) U) -> (O, P)"
    with pytest.raises(TclSyntaxError) as error:
        check(f"{header} {{ O(n) = X(n) >> {places} }}")
    found = re.search(r"write (.*) of an unsigned x, (.*) of a signed x", error.value.message)
    assert found is not None
    unsigned, signed = re.sub(r"\bx\b", "u", found[1]), found[2]
    text = f"{header} {{ O(n) = {signed} where x = X(n) P(n) = {unsigned} where u = U(n) }}"
    x = np.array([-(2**63), -(2**63) + 5, -9, -8, -7, -1, 0, 1, 7, 8, 2**63 - 1])
    o, p = tcl.define(text).f(x, x.astype(np.uint64))
    assert np.array_equal(o, x >> places)
    assert np.array_equal(p, x.astype(np.uint64) >> np.uint64(places))
