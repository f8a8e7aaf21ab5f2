"""Text → AST."""

from __future__ import annotations

import math
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from lark import Lark, Token, UnexpectedCharacters, UnexpectedToken, v_args
from lark.exceptions import VisitError
from lark.visitors import Transformer_NonRecursive

from tcl.grammar.syntax import ast, tables
from tcl.grammar.syntax.errors import Diagnostic, TclSyntaxError
from tcl.grammar.syntax.hints import unexpected_character, unexpected_token
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Source, Span
from tcl.grammar.syntax.types import ALIASES
from tcl.grammar.syntax.walk import deepest

MAX_DEPTH = 200
"""Deepest nesting of an expression. Passes over the tree recurse; this keeps them in bounds."""

MAX_TEXT = 1 << 18
"""Longest text, in characters: some ten thousand lines."""


_S = TypeVar("_S", ast.Assign, ast.Call)


def parse(text: str, name: str = "<string>") -> ast.Module:
    """Parse a text of any number of defs.

    ``name`` is shown in messages (a file's path, for example). Raises ``TclSyntaxError``.
    """
    source = Source(text, name)
    if len(text) > MAX_TEXT:
        message = f"the text has {len(text)} characters, more than {MAX_TEXT}; split it up"
        whole = Diagnostic(message, source.span_at(0, 1), section=Section.LIMITS)
        raise TclSyntaxError(source, [whole])
    error: BaseException
    try:
        tree = _lark().parse(text)
        return ast.Module(tuple(_Builder(source).transform(tree)))
    except VisitError as e:  # Lark's wrapper around what the builder raised
        error = e.orig_exc
    except UnexpectedToken as e:
        error = unexpected_token(source, e)
    except UnexpectedCharacters as e:
        error = unexpected_character(source, e.pos_in_stream or 0)
    # Not in there: Lark's error would be its context, with a parser in it that cannot be pickled.
    raise error


@cache
def _lark() -> Lark:
    grammar = resources.files("tcl.grammar.syntax").joinpath("tcl.lark").read_text("utf-8")
    return tables.parser(
        grammar, parser="lalr", lexer="basic", propagate_positions=True, maybe_placeholders=True
    )


def _span(at: Any) -> Span:
    """The span of a Token, or of a rule's Meta."""
    return Span(at.start_pos, at.end_pos, at.line, at.column)


@v_args(meta=True)
class _Builder(Transformer_NonRecursive[Token, list[ast.Def]]):
    """One method per rule of the grammar, called bottom-up with the rule's children."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source

    def _fail(self, span: Span, message: str, section: Section) -> TclSyntaxError:
        return TclSyntaxError(self._source, [Diagnostic(message, span, section=section)])

    # --- definitions ---

    def start(self, meta: Any, defs: list[ast.Def]) -> list[ast.Def]:
        if not defs:
            message = "the text holds no def; write def name(inputs) -> (outputs) { statements }"
            raise self._fail(self._source.span_at(0, 1), message, Section.DEFS)
        return defs

    def def_(self, meta: Any, parts: list[Any]) -> ast.Def:
        name, *rest = parts
        params = tuple(p for p in rest if isinstance(p, ast.Param))
        outputs = next(p for p in rest if isinstance(p, list))
        statements = tuple(p for p in rest if isinstance(p, ast.Assign | ast.Call))
        return ast.Def(str(name), params, tuple(outputs), statements, _span(name))

    def outputs(self, meta: Any, params: list[ast.Param | None]) -> list[ast.Param]:
        return [p for p in params if p is not None]

    def param(self, meta: Any, parts: list[Any]) -> ast.Param:
        type_, name = parts
        return ast.Param(str(name), type_, _span(name))

    def type(self, meta: Any, parts: list[Token | None]) -> ast.TensorType:
        scalar, *dims = (p for p in parts if p is not None)
        sizes = (
            ast.Number(self._integer(dim), _span(dim))
            if dim.type == "INT"
            else ast.Name(str(dim), _span(dim))
            for dim in dims
        )
        return ast.TensorType(_type_name(scalar), tuple(sizes), _span(scalar))

    # --- statements ---

    def assign(self, meta: Any, parts: list[Any]) -> ast.Assign:
        (name, indices), op, rhs, equivalent, *where = parts
        clauses = tuple(w for w in where if w is not None)
        span, target_span = _span(meta), _span(name)
        statement = ast.Assign(
            str(name), indices, str(op), rhs, equivalent, clauses, span, target_span, _span(op)
        )
        return self._within_depth(statement)

    def call(self, meta: Any, parts: list[Any]) -> ast.Call:
        *targets, value = parts
        names = tuple(ast.Name(str(t), _span(t)) for t in targets)
        return self._within_depth(ast.Call(names, value, _span(meta)))

    def _within_depth(self, statement: _S) -> _S:
        depth, span = deepest(statement)
        if depth > MAX_DEPTH:
            message = (
                f"the expression is nested {depth} levels deep, more than {MAX_DEPTH}; "
                "name parts of it with `where x = ...`"
            )
            raise self._fail(span, message, Section.LIMITS)
        return statement

    def target(self, meta: Any, parts: list[Any]) -> tuple[Token, tuple[ast.Expr, ...]]:
        name, indices = parts
        return name, indices or ()

    def arguments(self, meta: Any, parts: list[ast.Expr | None]) -> tuple[ast.Expr, ...]:
        return tuple(p for p in parts if p is not None)

    def equivalent(self, meta: Any, parts: list[Any]) -> ast.Equivalent:
        name, arguments = parts
        return ast.Equivalent(str(name), arguments, _span(meta))

    def range(self, meta: Any, parts: list[Any]) -> ast.Range:
        index, start, stop = parts
        return ast.Range(str(index), start, stop, _span(index))

    def let(self, meta: Any, parts: list[Any]) -> ast.Let:
        name, value = parts
        return ast.Let(str(name), value, _span(name))

    def exists(self, meta: Any, parts: list[Any]) -> ast.Exists:
        return ast.Exists(parts[0], _span(meta))

    # --- expressions ---

    def integer(self, meta: Any, parts: list[Token]) -> ast.Number:
        return ast.Number(self._integer(parts[0]), _span(meta))

    def _integer(self, token: Token) -> int:
        digits = token.lstrip("0") or "0"
        value = int(digits) if len(digits) <= 20 else 2**64
        if value >= 2**64:
            raise self._fail(_span(token), "the number does not fit in 64 bits", Section.LITERALS)
        return value

    def real(self, meta: Any, parts: list[Token]) -> ast.Number:
        value = float(parts[0])
        if not math.isfinite(value):
            message = "the number is too large for a float64"
            raise self._fail(_span(meta), message, Section.LITERALS)
        return ast.Number(value, _span(meta))

    def name(self, meta: Any, parts: list[Token]) -> ast.Name:
        return ast.Name(str(parts[0]), _span(meta))

    def apply(self, meta: Any, parts: list[Any]) -> ast.Apply:
        name, arguments = parts
        return ast.Apply(str(name), arguments, _span(meta), _span(name))

    def dimension(self, meta: Any, parts: list[Token]) -> ast.Dimension:
        tensor, axis = parts
        # No tensor has that many dimensions; the check says so.
        number = int(axis[1:]) if len(axis) < 9 else 10**9
        return ast.Dimension(str(tensor), number, _span(meta))

    def unary(self, meta: Any, parts: list[Any]) -> ast.Unary:
        op, operand = parts
        return ast.Unary(str(op), operand, _span(meta))

    def binary(self, meta: Any, parts: list[Any]) -> ast.Binary:
        left, op, right = parts
        return ast.Binary(str(op), left, right, _span(meta))

    def minmax(self, meta: Any, parts: list[Any]) -> ast.Binary:
        op, left, right = parts
        return ast.Binary(str(op), left, right, _span(meta))

    def select(self, meta: Any, parts: list[Any]) -> ast.Select:
        condition, then, otherwise = parts
        return ast.Select(condition, then, otherwise, _span(meta))

    def cast(self, meta: Any, parts: list[Any]) -> ast.Cast:
        type_, operand = parts
        return ast.Cast(_type_name(type_), operand, _span(meta))


def _type_name(token: Token) -> str:
    name = str(token)
    return ALIASES.get(name, name)
