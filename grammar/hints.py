"""Syntax errors in words: what was found, what was expected, what to do."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from lark import Token, UnexpectedToken

from tcl.grammar.errors import Diagnostic, TclSyntaxError
from tcl.grammar.source import Source

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
        found = f"unexpected '{_short(token)}'"
    state: Any = error.interactive_parser  # Lark has no annotations here
    accepts = frozenset(state.accepts() if state else ())
    hint = _hint(source, token, accepts)
    if hint is None:
        hint = f"expected {_expected(accepts)}"
    return TclSyntaxError(source, [Diagnostic(f"{found}; {hint}", span)])


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _hint(source: Source, token: Token, accepts: frozenset[str]) -> str | None:
    """Advice for the mistakes that people make most."""
    text = source.text
    start, end = token.start_pos or 0, token.end_pos or 0
    after = text[end : end + 1]
    if token.type == "DEF" and _DEF.match(text, start):
        return f"a '}}' is missing before this def (expected {_expected(accepts)})"
    if token.type in _KEYWORDS and "NAME" in accepts and token.type not in accepts:
        return f"'{token}' is a keyword and cannot be a name; rename it"
    if token.type in ("MINUS", "TIMES") and after == "=" and "REDUCE" in accepts:
        return f"there is no '{token}='; the reductions are += *= min= max=, each also with !"
    if token == "/" and text[start - 1 : start] == "/":
        return "comments start with '#'"
    if token == "*" and text[start - 1 : start] == "*":
        return "there is no '**'; use pow(x, y)"
    if token.type == "EQUAL" and "EQUALITY" in accepts:
        return "a comparison is written '=='; a new statement starts with its target"
    if token.type == "AXIS" and text[start - 1 : start] != ")":
        return "a dimension is written T.0, right behind a tensor's name"
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
