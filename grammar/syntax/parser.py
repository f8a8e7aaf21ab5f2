"""Text → AST. What is accepted stands in ``docs/language.md``, under Grammar."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn, TypeVar

from tcl.common.recursion import with_room
from tcl.grammar.syntax import ast
from tcl.grammar.syntax.errors import Diagnostic, TclSyntaxError
from tcl.grammar.syntax.hints import unexpected_character, unexpected_token
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Source, Span
from tcl.grammar.syntax.tokens import END, NoTokenError, Token, tokens
from tcl.grammar.syntax.types import ALIASES
from tcl.grammar.syntax.walk import deepest

MAX_DEPTH = 200
"""Deepest nesting of an expression. Passes over the tree recurse; this keeps them in bounds."""

MAX_TEXT = 1 << 18
"""Longest text, in characters: some ten thousand lines."""

_MOST_LEVELS = 500
"""Of expressions and parentheses inside each other, which are read by calls inside each other."""

_BINDS = {"OR": 1, "AND": 2, "EQUALITY": 3, "RELATION": 4, "+": 5, "-": 5, "TIMES": 6}
"""Operators, and how tightly they bind."""
_UNARY = 7
_ANY_OPERATOR = 1

_T = TypeVar("_T")
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
    try:
        return with_room(lambda: _Parser(source).read_module())
    except NoTokenError as e:
        error = unexpected_character(source, e.position)
    raise error


class _Parser:
    """Reads one token after another and never goes back."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = tokens(source)
        self.read: list[Token] = []
        """Tokens of the statement, or header, so far."""
        self.inside = False
        """Whether a body is read, not a header."""
        self.in_expression = False
        """Whether the last token is a name within an expression."""
        self.accepted: set[str] = set()
        """Kinds of tokens that could stand here."""
        self.level = 0
        """Of what is inside what, parentheses counted."""
        self.token = next(self.tokens)

    # --- tokens ---

    def advance(self) -> Token:
        token = self.token
        self.read.append(token)
        self.in_expression = False
        self.accepted.clear()
        self.token = next(self.tokens)
        return token

    def sees(self, *kinds: str) -> bool:
        """Whether the token is of one of these kinds, which may all stand here."""
        self.accepted.update(kinds)
        return self.token.kind in kinds

    def accept(self, kind: str) -> bool:
        """Take the token if it is of this kind, which may stand here."""
        return self.sees(kind) and bool(self.advance())

    def expect(self, *kinds: str) -> Token:
        """Take the token, which has to be of one of these kinds."""
        return self.advance() if self.sees(*kinds) else self.unexpected()

    def begin(self, kind: str) -> Token:
        """Likewise, the first one of a statement or a header."""
        if not self.sees(kind):
            self.unexpected()
        self.read = []
        return self.advance()

    def unexpected(self) -> NoReturn:
        raise unexpected_token(
            *(self.source, self.token, self.accepted, self.read),
            inside=self.inside,
            in_expression=self.in_expression,
        )

    def refuse(self, span: Span, message: str, section: Section) -> NoReturn:
        raise TclSyntaxError(self.source, [Diagnostic(message, span, section=section)])

    def since(self, first: Token) -> Span:
        """From the start of a token to the end of the last one."""
        start = first.span
        return Span(start.start, self.read[-1].span.end, start.line, start.column)

    def separated(self, item: Callable[[], _T]) -> tuple[_T, ...]:
        """One or more, with commas between."""
        found = [item()]
        while self.accept(","):
            found.append(item())
        return tuple(found)

    def in_parentheses(self, item: Callable[[], _T]) -> tuple[_T, ...]:
        """None or more, behind an opening parenthesis that was taken."""
        found = () if self.sees(")") else self.separated(item)
        self.expect(")")
        return found

    # --- definitions ---

    def read_module(self) -> ast.Module:
        defs = []
        while not self.sees(END):
            defs.append(self.read_def())
        if not defs:
            message = "the text holds no def; write def name(inputs) -> (outputs) { statements }"
            self.refuse(self.source.span_at(0, 1), message, Section.DEFS)
        return ast.Module(tuple(defs))

    def read_def(self) -> ast.Def:
        begin = self.begin("def").span.start
        name = self.expect("NAME")
        self.expect("(")
        params = self.in_parentheses(self.read_param)
        self.expect("->")
        if self.accept("("):
            outputs = self.in_parentheses(self.read_param)
        else:
            outputs = self.separated(self.read_param)
        self.expect("{")
        self.inside, statements = True, list[ast.Statement]()
        while not self.accept("}"):
            statements.append(self.read_statement())
        self.inside = False
        return ast.Def(name.text, params, outputs, tuple(statements), name.span, begin)

    def read_param(self) -> ast.Param:
        type_ = self.read_type() if self.sees("SCALAR") else None
        name = self.expect("NAME")
        return ast.Param(name.text, type_, name.span)

    def read_type(self) -> ast.TensorType:
        scalar = self.expect("SCALAR")
        dims = self.in_parentheses(self.read_dim) if self.accept("(") else ()
        return ast.TensorType(_type_name(scalar), dims, scalar.span)

    def read_dim(self) -> ast.Number | ast.Name:
        if self.sees("INT"):
            return self.integer(self.advance())
        name = self.expect("NAME")
        return ast.Name(name.text, name.span)

    # --- statements ---

    def read_statement(self) -> ast.Statement:
        name = self.begin("NAME")
        if self.sees(","):
            return self.read_call(name)
        indices = self.in_parentheses(self.read_expr) if self.accept("(") else ()
        op = self.expect("=", "REDUCE")
        rhs = self.read_expr()
        equivalent = self.read_note() if self.sees("<=>") else None
        where = self.separated(self.read_clause) if self.accept("where") else ()
        spans = self.since(name), name.span, op.span
        return self.within_depth(
            ast.Assign(name.text, indices, op.text, rhs, equivalent, where, *spans)
        )

    def read_call(self, first: Token) -> ast.Call:
        targets = [first]
        while self.accept(","):
            targets.append(self.expect("NAME"))
        self.expect("=")
        value = self.read_expr()
        names = tuple(ast.Name(t.text, t.span) for t in targets)
        return self.within_depth(ast.Call(names, value, self.since(first)))

    def read_note(self) -> ast.Equivalent:
        first = self.expect("<=>")
        name = self.expect("NAME")
        self.expect("(")
        arguments = self.in_parentheses(self.read_expr)
        return ast.Equivalent(name.text, arguments, self.since(first))

    def read_clause(self) -> ast.Where:
        if self.sees("exists"):
            first = self.advance()
            return ast.Exists(self.read_expr(), self.since(first))
        name = self.expect("NAME")
        if self.accept("in"):
            start = self.read_expr()
            self.expect(":")
            return ast.Range(name.text, start, self.read_expr(), name.span)
        self.expect("=")
        return ast.Let(name.text, self.read_expr(), name.span)

    def within_depth(self, statement: _S) -> _S:
        depth, span = deepest(statement)
        if depth > MAX_DEPTH:
            self.refuse(
                span, _too_deep(f"{depth} levels deep, more than {MAX_DEPTH}"), Section.LIMITS
            )
        return statement

    # --- expressions ---

    def read_expr(self, least: int = _ANY_OPERATOR) -> ast.Expr:
        """An expression whose operators bind no less tightly than that."""
        first = self.token
        self.level += 1
        if self.level > _MOST_LEVELS:
            self.refuse(
                first.span, _too_deep(f"more than {_MOST_LEVELS} levels deep"), Section.LIMITS
            )
        node = self.read_operand()
        while self.sees(*_BINDS) and _BINDS[self.token.kind] >= least:
            op = self.advance()
            right = self.read_expr(_BINDS[op.kind] + 1)
            node = ast.Binary(op.text, node, right, self.since(first))
        if least == _ANY_OPERATOR and self.accept("?"):
            then = self.read_expr()
            self.expect(":")
            node = ast.Select(node, then, self.read_expr(), self.since(first))
        self.level -= 1
        return node

    def read_operand(self) -> ast.Expr:
        first = self.expect("-", "!", "INT", "FLOAT", "NAME", "SCALAR", "min", "max", "(")
        match first.kind:
            case "-" | "!":
                operand = self.read_expr(_UNARY)
                return ast.Unary(first.text, operand, self.since(first))
            case "INT":
                return self.integer(first)
            case "FLOAT":
                return self.real(first)
            case "NAME":
                return self.read_named(first)
        if first.kind != "(":
            self.expect("(")
        node = self.read_expr()
        if first.kind in ("min", "max"):
            self.expect(",")
            right = self.read_expr()
            self.expect(")")
            return ast.Binary(first.text, node, right, self.since(first))
        self.expect(")")
        if first.kind == "SCALAR":
            return ast.Cast(_type_name(first), node, self.since(first))
        return node

    def read_named(self, name: Token) -> ast.Expr:
        """What begins with a name, which was taken."""
        self.in_expression = True
        if self.sees("AXIS"):
            # No tensor has that many dimensions; the check says so.
            digits = self.advance().text[1:]
            axis = int(digits) if len(digits) < 8 else 10**9
            return ast.Dimension(name.text, axis, self.since(name))
        if not self.accept("("):
            return ast.Name(name.text, name.span)
        arguments = self.in_parentheses(self.read_expr)
        return ast.Apply(name.text, arguments, self.since(name), name.span)

    def integer(self, token: Token) -> ast.Number:
        digits = token.text.lstrip("0") or "0"
        value = int(digits) if len(digits) <= 20 else 2**64
        if value >= 2**64:
            message = "the number does not fit in 64 bits; a float has a '.' or an exponent: 1e20"
            self.refuse(token.span, message, Section.LITERALS)
        return ast.Number(value, token.span)

    def real(self, token: Token) -> ast.Number:
        value = float(token.text)
        if not math.isfinite(value):
            message = "the number is too large for a float64; infinity is -log(0.0)"
            self.refuse(token.span, message, Section.LITERALS)
        return ast.Number(value, token.span)


def _too_deep(how: str) -> str:
    return f"the expression is nested {how}; name parts of it with `where x = ...`"


def _type_name(token: Token) -> str:
    return ALIASES.get(token.text, token.text)
