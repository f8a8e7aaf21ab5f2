"""Syntax errors in words: what was found, what was expected, what to do."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from lark import Token, Tree, UnexpectedToken

from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.errors import Diagnostic, TclSyntaxError
from tcl.grammar.syntax.meant import STATEMENTS, known_type, no_reduction, no_type
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Source

_DEF = re.compile(r"def\s+\w+\s*\(")
_KEYWORDS = frozenset({"DEF", "WHERE", "IN", "EXISTS", "MIN", "MAX", "SCALAR"})

_EXPRESSION = frozenset({"INT", "FLOAT", "NAME", "SCALAR", "MIN", "MAX", "LPAR", "MINUS", "NOT"})
_OPERATOR = frozenset({"OR", "AND", "EQUALITY", "RELATION", "PLUS", "MINUS", "TIMES", "QMARK"})

_WORDS = {
    "NAME": "a name",
    "INT": "an integer",
    "SCALAR": "a type",
    "EQUAL": "'='",
    "REDUCE": "a reduction (+= *= min= max=, each also with !)",
    "LPAR": "'('",
    "RPAR": "')'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "COMMA": "','",
    "COLON": "':'",
    "DEF": "'def'",
    "WHERE": "'where'",
    "IN": "'in'",
    "EXISTS": "'exists'",
    "AXIS": "a dimension such as '.0'",
    "$END": "the end of the text",
    "__ANON_0": "'->'",
    "__ANON_1": "'<=>'",
}
"""Terminals of the grammar as a person calls them."""

_CHARACTERS = {
    "[": "tensors are indexed with parentheses: A(i, j)",
    ";": "statements need no ';'",
    "&": "the logical and is '&&'",
    "|": "the logical or is '||'",
    "^": "there is no '^'; use pow(x, y)",
    "'": "the language has no strings",
    '"': "the language has no strings",
    ".": "a dimension is written T.0, without spaces; a number has a digit beside its dot",
}


def unexpected_character(source: Source, position: int) -> TclSyntaxError:
    """The error for a character that starts no token."""
    c = source.text[position]
    span = source.span_at(position, position + 1)
    if c in _CHARACTERS:
        message = f"unexpected '{c}': {_CHARACTERS[c]}"
    elif c.isdigit() and c.isascii():
        message = f"unexpected '{c}': a number runs into a name; put an operator or a space between"
    elif c.isascii() and c.isprintable():
        message = f"unexpected '{c}'; it has no meaning in the language"
    else:
        name = unicodedata.name(c, f"character code {ord(c)}")
        message = f"unexpected {name}; names and operators are plain ASCII"
    return TclSyntaxError(source, [Diagnostic(message, span)])


def unexpected_token(source: Source, error: UnexpectedToken) -> TclSyntaxError:
    """The error for a token that cannot stand where it stands."""
    token: Token = error.token
    if token.type == "$END":
        end = len(source.text.rstrip())
        span = source.span_at(max(0, end - 1), end)
        found = "the text ends too early"
    else:
        span = source.span_at(token.start_pos or 0, token.end_pos or 0)
        found = f"unexpected '{token if len(token) <= 40 else token[:37] + '...'}'"
    state: Any = error.interactive_parser  # Lark has no annotations here
    accepts = frozenset(state.accepts() if state else ())
    before = _Before.of(state.parser_state.value_stack if state else ())
    meant = _other_language(source, token, before)
    if meant is not None:
        word, (message, section) = meant
        span = source.span_at(word.start_pos or 0, word.end_pos or 0)
        return TclSyntaxError(source, [Diagnostic(message, span, section=section)])
    expected = f"expected {_expected(accepts)}", Section.GRAMMAR
    advice, section = _hint(source, token, accepts) or expected
    return TclSyntaxError(source, [Diagnostic(f"{found}; {advice}", span, section=section)])


@dataclass(frozen=True, slots=True)
class _Before:
    """What the parser has read of the def in which it met an error, and not yet put together."""

    inside: bool
    """In the body, not in the header."""
    statement: tuple[Token, ...]
    """Words of the statement or header that is being read, last first: what stands in its trees
    counts by its first word."""
    last: Token | None
    """The token before the error, unless it is part of a tree."""

    @classmethod
    def of(cls, stack: Sequence[Any]) -> _Before:
        words: list[Token] = []
        inside = False
        for item in reversed(stack):
            if isinstance(item, Tree) and item.data in ("assign", "call", "def_"):
                inside = inside or item.data != "def_"
                break
            first = item if isinstance(item, Token) else _first(item)
            if first is not None and first.type in ("LBRACE", "DEF"):
                inside = inside or first.type == "LBRACE"
                break
            if first is not None and first.type in ("NAME", "SCALAR"):
                words.append(first)
        last = stack[-1] if stack and isinstance(stack[-1], Token) else None
        return cls(inside, tuple(words), last)


def _first(tree: object) -> Token | None:
    """The first token of a tree; None for one without."""
    while isinstance(tree, Tree):
        tree = next((c for c in tree.children if isinstance(c, Token | Tree)), None)
    return tree if isinstance(tree, Token) else None


def _other_language(
    source: Source, token: Token, before: _Before
) -> tuple[Token, tuple[str, Section]] | None:
    """A word of another language that the error comes from, and what is written here instead."""
    text, after = source.text, source.text[token.end_pos or 0 :]
    if not before.inside:
        return _not_a_type(text, token, before)
    if token.type == "NAME" and before.last is not None and known_type(before.last):
        return before.last, STATEMENTS["let"]  # int x = ...
    for word in (token, *before.statement):
        if word.type == "NAME" and word in STATEMENTS:
            return word, STATEMENTS[word]
    if token.type == "NAME" and _REDUCTION.match(after):
        return token, no_reduction(token)
    if token.type == "SCALAR" and _DECLARED.match(after):
        return token, STATEMENTS["let"]  # float x = ...
    if token.type == "RPAR" and before.last is not None and before.last.type == "SCALAR":
        cast = f"a cast is written as a call: {before.last}(x)"
        return before.last, (cast, Section.ARITHMETIC)
    return None


_REDUCTION = re.compile(r"\s*=!?(?!=)")
_DECLARED = re.compile(r"\s+[A-Za-z_]")
_RANGE = re.compile(r"\bin\b[^:,{}]*:[^:,{}]*$")
_DIMS_THEN_NAME = re.compile(r"\([^()]*\)\s*[A-Za-z_]")


def _not_a_type(
    text: str, token: Token, before: _Before
) -> tuple[Token, tuple[str, Section]] | None:
    """In a header: a word where a type has to stand, or a type that does not stand in front."""
    word = before.last
    if word is None or word.type != "NAME":
        return None
    sizes = token.type == "LPAR" and _DIMS_THEN_NAME.match(text, token.start_pos or 0)
    if token.type == "NAME" or sizes:  # int A, int(N) A
        return word, (no_type(word), Section.TYPES)
    if token.type in ("LPAR", "COLON"):  # float A(N), A: float(N), A(N)
        message = f"the type stands before the name, and holds the sizes: float(M, N) {word}"
        return word, (message, Section.DEFS)
    return None


def _hint(source: Source, token: Token, accepts: frozenset[str]) -> tuple[str, Section] | None:
    """Advice for the mistakes that people make most, and its section."""
    text = source.text
    start, end = token.start_pos or 0, token.end_pos or 0
    after = text[end : end + 1]
    if token.type == "DEF" and _DEF.match(text, start):
        return f"a '}}' is missing before this def (expected {_expected(accepts)})", Section.DEFS
    if token.type in _KEYWORDS and "NAME" in accepts and token.type not in accepts:
        return f"'{token}' is a keyword and cannot be a name; rename it", Section.DEFS
    if token.type in ("MINUS", "TIMES") and after == "=" and "REDUCE" in accepts:
        advice = f"there is no '{token}='; the reductions are += *= min= max=, each also with !"
        return advice, Section.REDUCTIONS
    if token == "/" and text[start - 1 : start] == "/":
        return "comments start with '#'", Section.DEFS
    if token == "*" and text[start - 1 : start] == "*":
        return "there is no '**'; use pow(x, y)", Section.FUNCTIONS
    if token.type == "EQUAL" and "EQUALITY" in accepts:
        advice = "a comparison is written '=='; a new statement starts with its target"
        return advice, Section.OPERATORS
    if token.type == "RPAR" and "COMMA" in accepts and "RPAR" not in accepts:
        advice = "min and max take two values; the smallest and largest of many are min=! and max=!"
        return advice, Section.REDUCTIONS
    if token.type == "COLON" and _RANGE.search(text, max(0, start - 200), start):
        return "a range has no step: write 2 * i where i is read", Section.RANGES
    if token.type == "COLON" and text[max(0, start - 40) : start].rstrip()[-1:] in ("(", ","):
        return "every dimension has an index: A(m, n), which takes all its values", Section.RANGES
    if token.type in ("PLUS", "MINUS", "TIMES") and "INT" not in accepts and "COMMA" in accepts:
        return "a dimension is a name or a number; write sums of sizes in ranges", Section.DEFS
    if token.type == "RELATION" and "IN" in accepts:
        return "a where clause is a range i in 0:N, x = value, or exists T(i)", Section.WHERE
    if token.type == "AXIS" and text[start - 1 : start] != ")":
        return "a dimension is written T.0, right behind a tensor's name", Section.DEFS
    return None


def _expected(accepts: frozenset[str]) -> str:
    """A short list of what could have stood here."""
    parts = []
    if accepts >= _EXPRESSION:
        parts.append("an expression")
        accepts -= _EXPRESSION
    if accepts >= _OPERATOR:
        parts.append("an operator")
        accepts -= _OPERATOR
    parts += sorted({_WORDS.get(a, f"'{a.lower()}'") for a in accepts})
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " or " + parts[-1]
