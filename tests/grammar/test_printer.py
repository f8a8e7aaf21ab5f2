"""The printer: what it prints parses back to the same tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import ACCEPTED, SEMANTIC, in_def, unmark
from strategies import Program, programs, random_program

from examples import FILES
from tcl.grammar.syntax import ast
from tcl.grammar.syntax.parser import parse
from tcl.grammar.syntax.printer import expr_text, to_text
from tcl.grammar.syntax.source import Span
from tcl.grammar.syntax.types import SCALAR_TYPES

_SPAN = Span(0, 0, 1, 1)


def _round_trip(text: str) -> None:
    tree = parse(text)
    printed = to_text(tree)
    assert parse(printed) == tree
    assert to_text(parse(printed)) == printed


@pytest.mark.parametrize("text", [*ACCEPTED, *(case[0] for case in SEMANTIC)])
def test_corpus(text: str) -> None:
    _round_trip(unmark(in_def(text)).text)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_examples(path: Path) -> None:
    _round_trip(path.read_text())


def test_random_programs() -> None:
    for seed in range(200):
        _round_trip(random_program(seed).source)


@settings(max_examples=50, deadline=None)
@given(programs())
def test_generated_programs(program: Program) -> None:
    _round_trip(program.source)


_NAMES = st.sampled_from(
    ["a", "b", "N", "_x", "exp", "main", "define", "inner", "floats", "minimum", "existsx", "e1"]
)
_LEAVES = st.one_of(
    st.integers(0, 2**64 - 1).map(lambda v: ast.Number(v, _SPAN)),
    st.floats(0, allow_nan=False, allow_infinity=False).map(lambda v: ast.Number(v, _SPAN)),
    _NAMES.map(lambda n: ast.Name(n, _SPAN)),
    st.builds(lambda n, axis: ast.Dimension(n, axis, _SPAN), _NAMES, st.integers(0, 99)),
)
_OPERATORS = st.sampled_from(
    "+ - * / % < <= > >= == != && || min max".split()
)  # fmt: skip


def _larger(inner: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Expr]:
    arguments = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        st.builds(lambda op, x: ast.Unary(op, x, _SPAN), st.sampled_from("-!"), inner),
        st.builds(lambda op, x, y: ast.Binary(op, x, y, _SPAN), _OPERATORS, inner, inner),
        st.builds(lambda x, y, z: ast.Select(x, y, z, _SPAN), inner, inner, inner),
        st.builds(lambda t, x: ast.Cast(t, x, _SPAN), st.sampled_from([*SCALAR_TYPES]), inner),
        st.builds(lambda n, a: ast.Apply(n, a, _SPAN, _SPAN), _NAMES, arguments),
    )


_EXPRESSIONS: st.SearchStrategy[ast.Expr] = st.recursive(_LEAVES, _larger, max_leaves=12)
_ARGUMENTS = st.lists(_EXPRESSIONS, max_size=3).map(tuple)
_CLAUSES = st.one_of(
    st.builds(lambda n, a, b: ast.Range(n, a, b, _SPAN), _NAMES, _EXPRESSIONS, _EXPRESSIONS),
    st.builds(lambda n, x: ast.Let(n, x, _SPAN), _NAMES, _EXPRESSIONS),
    st.builds(lambda x: ast.Exists(x, _SPAN), _EXPRESSIONS),
)
_ASSIGNMENTS = st.builds(
    lambda target, indices, op, rhs, equivalent, where: ast.Assign(
        target, indices, op, rhs, equivalent, where, _SPAN, _SPAN, _SPAN
    ),
    _NAMES,
    _ARGUMENTS,
    st.sampled_from("= += *= min= max= +=! *=! min=! max=!".split()),
    _EXPRESSIONS,
    st.none() | st.builds(lambda n, a: ast.Equivalent(n, a, _SPAN), _NAMES, _ARGUMENTS),
    st.lists(_CLAUSES, max_size=3).map(tuple),
)
_CALLS = st.builds(
    lambda targets, value: ast.Call(targets, value, _SPAN),
    st.lists(_NAMES.map(lambda n: ast.Name(n, _SPAN)), min_size=2, max_size=3).map(tuple),
    _EXPRESSIONS,
)
_DIMS = st.one_of(
    st.integers(0, 99).map(lambda v: ast.Number(v, _SPAN)),
    _NAMES.map(lambda n: ast.Name(n, _SPAN)),
)
_TYPES = st.builds(
    lambda scalar, dims: ast.TensorType(scalar, tuple(dims), _SPAN),
    st.sampled_from([*SCALAR_TYPES]),
    st.lists(_DIMS, max_size=3),
)
_PARAMS = st.builds(lambda n, t: ast.Param(n, t, _SPAN), _NAMES, st.none() | _TYPES)
_MODULES = st.lists(
    st.builds(
        lambda name, params, outputs, statements: ast.Def(
            name, tuple(params), tuple(outputs), tuple(statements), _SPAN
        ),
        _NAMES,
        st.lists(_PARAMS, max_size=3),
        st.lists(_PARAMS, max_size=3),
        st.lists(_ASSIGNMENTS | _CALLS, max_size=3),
    ),
    min_size=1,
    max_size=3,
).map(lambda defs: ast.Module(tuple(defs)))


@settings(max_examples=120, deadline=None)
@given(_EXPRESSIONS)
def test_any_expression(expr: ast.Expr) -> None:
    tree = parse(f"def f() -> (O) {{ O = {expr_text(expr)} }}")
    statement = tree.defs[0].statements[0]
    assert isinstance(statement, ast.Assign)
    assert statement.rhs == expr


@settings(max_examples=60, deadline=None)
@given(_MODULES)
def test_any_tree(tree: ast.Module) -> None:
    printed = to_text(tree)
    assert parse(printed) == tree


@pytest.mark.parametrize(
    "text",
    [
        "a - b - c",
        "a - (b - c)",
        "(a + b) * c",
        "a ? b : c ? d : e",
        "(a ? b : c) ? d : e",
        "-a * b",
        "-(a * b)",
        "!(a && b) || c",
        "- -a",
        "min(a, b + c)",
        "float32(a + b)",
        "a(b, -c)",
        "a.1 + 0.5",
    ],
)
def test_no_more_parentheses_than_needed(text: str) -> None:
    statement = parse(f"def f() -> (O) {{ O = {text} }}").defs[0].statements[0]
    assert isinstance(statement, ast.Assign)
    assert expr_text(statement.rhs).replace("--", "- -") == text
