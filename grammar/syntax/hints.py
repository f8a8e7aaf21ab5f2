"""Syntax errors in words: what was found, what was expected, what to do."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence, Set
from itertools import chain, count
from typing import TypeAlias

from tcl.grammar.syntax.errors import Diagnostic, TclSyntaxError
from tcl.grammar.syntax.meant import OF_BOOLS, STATEMENTS, known_type, no_reduction, no_type
from tcl.grammar.syntax.reference import Section
from tcl.grammar.syntax.source import Source
from tcl.grammar.syntax.tokens import END, Token
from tcl.grammar.syntax.types import scalar_type, zero_text

_DEF = re.compile(r"def\s+\w+\s*\(")
_KEYWORDS = frozenset({"def", "where", "in", "exists", "min", "max", "SCALAR"})

_EXPRESSION = frozenset({"INT", "FLOAT", "NAME", "SCALAR", "min", "max", "(", "-", "!"})
_OPERATOR = frozenset({"OR", "AND", "EQUALITY", "RELATION", "+", "-", "TIMES", "?"})

_WORDS = {
    "NAME": "a name",
    "INT": "an integer",
    "SCALAR": "a type",
    "REDUCE": "a reduction (+= *= min= max=, each also with !)",
    "AXIS": "a dimension such as '.0'",
    END: "the end of the text",
}
"""Kinds of tokens as a person calls them, but for those that are their own text."""

_CHARACTERS = {
    "[": "tensors are indexed with parentheses: A(i, j); their sizes, too: float(M, N) A",
    ";": "statements need no ';'; ',' separates the clauses of a where, and inputs",
    "&": "the logical and is '&&'; there are no operators on bits: of an unsigned x, x % 16 is "
    "the lowest four",
    "|": "the logical or is '||'; there are no operators on bits: x + 16 * y puts y above four "
    "bits of x",
    "^": "a power is written pow(x, y), the exclusive or of bools x != y; there are no operators "
    "on bits",
    "~": "there are no operators on bits; the logical not is '!'",
    "'": "the language has no strings; comments start with '#'",
    '"': "the language has no strings; comments start with '#'",
    ".": "a dimension is written T.0, without spaces; a number needs a digit next to its dot",
}
_DIMENSIONS = re.compile(r"\(([^():#]*)\)\s*([A-Za-z_]\w*)")
"""Those of a declaration, and the name behind them."""
_MEANT = dict(
    zip(
        "−–—‐×·÷∧∨¬²√…≤≥≠→（），：\u00a0\ufeff\u200b",
        "- - - - * * / && || ! x*x sqrt(x) A(i) <= >= != -> ( ) , : space nothing nothing".split(),
        strict=True,
    )
)
"""Characters of documents → what is written instead."""


def unexpected_character(source: Source, position: int) -> TclSyntaxError:
    """The error for a character that starts no token."""
    c = source.text[position]
    span = source.span_at(position, position + 1)
    if c == "." and _RANGE_START.search(source.text, max(0, position - 40), position):
        message = f"unexpected '.'; {_TWO_ENDS[0]}"
    elif c == "[" and _IN.search(source.text, max(0, position - 40), position):
        message = f"unexpected '['; {_TWO_ENDS[0]}"
    elif found := _DOTTED.match(source.text, position):
        write = f"names have no prefix, and tensors no methods: write {found[1]}; an extent is T.0"
        if found[1] in ("T", "mT"):
            write = "tensors have no methods: swap the indices, A(j, i), to transpose"
        message = f"unexpected '.'; {write if found[1] else _EVERY_INDEX[0]}"
    elif c in OF_BOOLS and _REDUCTION.match(source.text, position + 1):
        advice, section = no_reduction(c)
        return TclSyntaxError(source, [Diagnostic(advice, span, section=section)])
    elif c in _CHARACTERS:
        message = f"unexpected '{c}': {_CHARACTERS[c]}"
        if character := _CHARACTER.match(source.text, position):
            message += f"; write the character's code, {ord(character[2])} for {character[0]}"
    elif c.isdigit() and c.isascii() and (number := _NOT_DECIMAL.match(source.text, position)):
        message = f"unexpected '{c}': numbers are decimal, without '_'; write "
        message += f"{int(number[0], 0)} for {number[0]}"
    elif number := _WITH_SUFFIX.match(source.text, position):
        message = f"unexpected '{c}': numbers have no suffix; write {number[1]}"
    elif c.isdigit() and c.isascii():
        message = f"unexpected '{c}': a number runs into a name; put an operator or a space between"
    elif c.isascii() and c.isprintable():
        message = f"unexpected '{c}'; it has no meaning in the language"
    else:
        name = unicodedata.name(c, f"character code {ord(c)}")
        message = f"unexpected {name}; names and operators are plain ASCII"
        message += f": write {_MEANT[c]}" if c in _MEANT else ""
    return TclSyntaxError(source, [Diagnostic(message, span)])


def unexpected_token(
    source: Source,
    token: Token,
    accepted: Set[str],
    read: Sequence[Token],
    *,
    inside: bool,
    in_expression: bool,
) -> TclSyntaxError:
    """The error for a token that cannot stand where it stands. ``accepted``: the kinds that could;
    ``read``: what stands before it in the header or, if it is ``inside`` a body, in the statement,
    whose last token may be a name ``in_expression``."""
    if token.kind == END:
        end = len(source.text.rstrip())
        span = source.span_at(max(0, end - 1), end)
        found = "the text ends too early"
    else:
        span = token.span
        found = f"unexpected '{token.text if len(token.text) <= 40 else token.text[:37] + '...'}'"
    if inside:
        meant = _other_language(source, token, read, in_expression)
    else:
        meant = _not_a_type(source.text, token, read)
    if meant is not None:
        word, (message, section) = meant
        return TclSyntaxError(source, [Diagnostic(message, word.span, section=section)])
    expected = f"expected {_expected(accepted)}", Section.GRAMMAR
    advice, section = _hint(source.text, token, accepted, read) or expected
    return TclSyntaxError(source, [Diagnostic(f"{found}; {advice}", span, section=section)])


_Meant: TypeAlias = tuple[Token, tuple[str, Section]] | None
"""A word of another language that an error comes from, and what is written here instead."""


def _other_language(
    source: Source, token: Token, read: Sequence[Token], in_expression: bool
) -> _Meant:
    after, last = source.text[token.span.end :], read[-1] if read else None
    if token.kind == "NAME" and last is not None and not in_expression and known_type(last.text):
        return last, STATEMENTS["let"]  # int x = ...
    closed = 0
    if token.text in OF_BOOLS and token.kind == "NAME" and _REDUCTION.match(after):
        return token, no_reduction(token.text)
    for word in (token, *reversed(read)):
        name = word.text.lower() if word in (token, last) else word.text
        if word.kind == "NAME" and name in STATEMENTS and not closed:
            return word, STATEMENTS[name]
        if word is not token:
            closed = max(0, closed + (word.kind == ")") - (word.kind == "("))
    if token.kind == "NAME" and _REDUCTION.match(after):
        return token, no_reduction(token.text)
    if token.kind == "SCALAR" and _DECLARED.match(after):
        return token, STATEMENTS["let"]  # float x = ...
    if token.kind == ")" and last is not None and last.kind == "SCALAR":
        return last, (f"a cast is written as a call: {last.text}(x)", Section.ARITHMETIC)
    start = read[0].span.start if read else 0
    if found := _BEFORE.search(source.text, max(0, start - 40), start):  # not X(i), two statements
        word = Token("NAME", found[0], source.span_at(*found.span(1)))
        return word, STATEMENTS[found[1].lower()]
    return None


_EVERY_INDEX = "give every dimension an index, which takes all its values: A(m, n)", Section.RANGES
_DOTTED = re.compile(r"(?<!\b\d)\.(?:([A-Za-z_]\w*)|\.\.)")
_WITH_SUFFIX = re.compile(r"(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)[fFdDlLuU]+\b(?!\()")
_ASSIGNS = re.compile(r"(?:min|max)?[-+*!:=<>]+(?: =!?)?")
_REDUCTION = re.compile(r"\s*=!?(?!=)")
_BEFORE = re.compile(r"\b(not|if)[ \t]+\Z", re.IGNORECASE)
_DECLARED = re.compile(r"\s+[A-Za-z_]")
_NOT_DECIMAL = re.compile(
    r"(0[xX][0-9a-fA-F]{1,40}|0[bB][01]{1,99}|0[oO][0-7]{1,50}|[1-9]\d{0,40}(_\d{1,40}){1,9})\b(?!\.)"
)
_CHARACTER = re.compile(r"(['\"])(?!['\"])([ -~])\1")
_RANGE = re.compile(r"\bin\b[^:,{}]*:[^:,{}]*$")
_RANGE_START = re.compile(r"\bin\s*-?[\w.]*\Z")
_IN = re.compile(r"\bin\s*\Z")
_ENCLOSED = re.compile(r"\bin\s*\([^:,{}]*\Z")
_WITHOUT_END = re.compile(r"\bin\b[^:,{}]*\Z")
_TWO_ENDS = "a range has two ends, with ':' between them: i in 0:N", Section.RANGES
_BOUND = re.compile(r"(\bwhere|,)\s*\w+\s*=[^=,:{}?]*\Z")
_WHERE = re.compile(r"\s*where\b")
_PLACES = re.compile(r"\s*([1-5]?\d|6[0-3])\b(?!\s*[-+*/%.])")
"""By how many bits a literal shifts."""
_DIMS_THEN_NAME = re.compile(r"\([^()]*\)\s*[A-Za-z_]")


def _not_a_type(text: str, token: Token, read: Sequence[Token]) -> _Meant:
    """In a header: a word where a type has to stand, or a type that does not stand in front."""
    if not read or read[-1].kind != "NAME":
        return None
    word = read[-1]
    sizes = token.kind == "(" and _DIMS_THEN_NAME.match(text, token.span.start)
    if token.kind == "NAME" and len(read) > 1 and read[-2].kind == "SCALAR":  # float N A
        message = f"sizes stand in parentheses: {read[-2].text}({word.text}) {token.text}"
        return word, (message, Section.DEFS)
    if token.kind == "NAME" or sizes:  # int A, int(N) A
        return word, (no_type(word.text), Section.TYPES)
    if token.kind in ("(", ":"):  # float A(N), A: float(N), A(N)
        message = f"the type comes before the name and contains the sizes: float(M, N) {word.text}"
        return word, (message, Section.DEFS)
    return None


def _third_value(read: Sequence[Token]) -> str | None:
    """The ``min`` or ``max`` of which what comes next would be a third value."""
    depth = commas = 0
    for place in range(len(read) - 1, 0, -1):
        kind = read[place].kind
        depth += (kind == ")") - (kind == "(")
        commas += kind == "," and not depth
        if depth < 0:
            name = read[place - 1].kind
            return name if commas == 1 and name in ("min", "max") else None
    return None


def _twice(token: Token, text: str) -> tuple[str, Section] | None:
    """Advice where an operator stands that other languages write otherwise, or with the same sign
    twice."""
    start = token.span.start
    for wrong, right in (("<>", "!="), ("=<", "<="), ("=>", ">="), ("===", "==")):
        if wrong in text[start - len(wrong) + 1 : start + len(wrong)]:
            return f"write {right} for {wrong}", Section.OPERATORS
    if text[start - 1 : start] != token.text:
        return None
    match token.text:
        case "/":
            message = "integers are divided with one '/', which truncates; comments start with '#'"
            return message, Section.ARITHMETIC
        case "*":
            return "there is no '**'; use pow(x, y)", Section.FUNCTIONS
        case "<" | ">":
            places = _PLACES.match(text, token.span.end)
            if places is None:
                shift = "x * int32(exp2(double(n))) for a shift by n"
                if token.text == ">":
                    shift = (
                        "x / uint32(exp2(double(n))) for a shift by n of an unsigned x, "
                        "int32(floor(x / exp2(double(n)))) of a signed x"
                    )
            else:
                power = 2 ** int(places[1])
                shift = f"x {'*' if token.text == '<' else '/'} {power}"
                if token.text == ">":
                    shift += " of an unsigned x"
                    if power < 2**63:  # larger ones are no int64
                        shift += f", x / {power} - (x % {power} < 0 ? 1 : 0) of a signed x"
            return f"there is no '{2 * token.text}'; write {shift}", Section.OPERATORS
    return None


def _assigning(
    text: str, token: Token, accepted: Set[str], read: Sequence[Token]
) -> tuple[str, Section] | None:
    """Advice for what stands in the place of ``=`` or a reduction, or of which ``=`` is a part."""
    start, last = token.span.start, read[-1] if read else None
    if last is not None and (last.kind, last.span.end) == ("=", start):
        start = last.span.start
    elif not accepted >= {"=", "REDUCE"}:
        return None
    found = _ASSIGNS.match(text, start)
    if found is None or found[0] == "=" or not re.search("(?<!-)=|<-|->", found[0]):
        return None
    op = next((op for op in ("min", "max", "+", "*") if op in found[0]), "")
    bang = "!" if op and "!" in found[0] else ""
    return f"write {op}={bang} for {found[0]}", Section.REDUCTIONS if op else Section.STATEMENTS


def _where(
    text: str, token: Token, accepted: Set[str], read: Sequence[Token]
) -> tuple[str, Section] | None:
    """Advice about the clauses of a ``where``."""
    kind, start, end = token.kind, token.span.start, token.span.end
    if kind == "where" and text[end : end + 1] == "(" and "INT" in accepted:
        return "choose between values: condition ? a : b", Section.GUARDS
    if kind == "where" and any(each.kind == "where" for each in read):
        return "a statement has one where; put ',' between its clauses", Section.WHERE
    if kind == "where" and "}" in accepted:
        advice = "a where stands at the end of its statement: O(i) = x * x where x = A(i)"
        return advice, Section.WHERE
    if kind == "," and "where" in accepted and _WHERE.match(text, end):
        return "no ',' stands before where", Section.WHERE
    if kind == "(" and accepted == {"=", "in"}:
        return "a name that a where binds has no subscripts: x = A(i)", Section.WHERE
    if kind == ":" and any(r.search(text, max(0, start - 200), start) for r in (_BOUND, _ENCLOSED)):
        return "a range is written i in 0:N", Section.WHERE
    clause = accepted >= {"exists", "NAME"} and kind in ("INT", "FLOAT", "-", "!", "(")
    if clause or (kind == "RELATION" and "in" in accepted):
        advice = (
            "a where clause is a range i in 0:N, x = value, or exists T(i); a condition is "
            "written with ? :"
        )
        return advice, Section.WHERE
    return None


def _hint(
    text: str, token: Token, accepted: Set[str], read: Sequence[Token]
) -> tuple[str, Section] | None:
    """Advice for the mistakes that people make most, and its section."""
    kind, start, end = token.kind, token.span.start, token.span.end
    before, after = text[start - 1 : start], text[end : end + 1]
    if kind == "def" and _DEF.match(text, start):
        return f"a '}}' is missing before this def (expected {_expected(accepted)})", Section.DEFS
    found = _where(text, token, accepted, read) or _assigning(text, token, accepted, read)
    if found is not None:
        return found
    if kind in _KEYWORDS and "NAME" in accepted and kind not in accepted:
        return f"'{token.text}' is a keyword and cannot be a name; rename it", Section.DEFS
    if kind in ("-", "TIMES", "OR", "AND") and after == "=" and "REDUCE" in accepted:
        return no_reduction(token.text)
    if "->" not in accepted and (found := _twice(token, text)) is not None:
        return found
    if kind == "," and (name := _third_value(read)):
        return f"{name} takes two values; write {name}({name}(x, y), z)", Section.OPERATORS
    if kind == "=" and "EQUALITY" in accepted and {"=", "REDUCE"} & {t.kind for t in read}:
        advice = "a comparison is written '=='; a new statement starts with its target"
        return advice, Section.OPERATORS
    if token.text == "/" and after in ("/", "*"):
        return "comments start with '#'", Section.GRAMMAR
    if kind == ")" and accepted >= {*_OPERATOR, ","} and ")" not in accepted:
        advice = (
            "min and max take two values; for the smallest or largest of many, use min=! and max=!"
        )
        return advice, Section.REDUCTIONS
    if kind == ":" and _RANGE.search(text, max(0, start - 200), start):
        return "a range has no step: write 2 * i where i is read", Section.RANGES
    sides = text[max(0, start - 40) : start].rstrip()[-1:] in ("(", ",")
    if kind == ":" and (sides or accepted >= {")", ","}):
        return _EVERY_INDEX
    if kind in ("+", "-", "TIMES") and "INT" not in accepted and "," in accepted:
        advice = "a dimension is a name or a number; "
        advice += _assigned_first(text, read) or _new_size(text, read)
        return advice, Section.DEFS
    if ":" in accepted and _WITHOUT_END.search(text, max(0, start - 200), start):
        return _TWO_ENDS
    if kind == "AXIS" and read and read[-1].kind == "INT" and after.isalpha():
        return f"numbers have no suffix; write {read[-1].text}{token.text}", Section.LITERALS
    if kind == "AXIS" and before != ")":
        return "a dimension is written T.0, directly after a tensor's name", Section.DEFS
    return _missing(token, accepted, read)


def _assigned_first(text: str, read: Sequence[Token]) -> str | None:
    """What gives an output these dimensions, which its declaration cannot."""
    kinds = [token.kind for token in read]
    if "(" not in kinds:
        return None
    place = len(kinds) - 1 - kinds[::-1].index("(")
    found = _DIMENSIONS.match(text, read[place].span.start)
    if "->" not in kinds[:place] or kinds[place - 1] != "SCALAR" or found is None:
        return None
    dims, name = found[1].split(","), found[2]
    indices = [f"i{k}" for k in range(len(dims))] if len(dims) > 1 else ["i"]
    ranges = ", ".join(f"{i} in 0:{d.strip()}" for i, d in zip(indices, dims, strict=True))
    zero = zero_text(scalar_type(read[place - 1].text))
    return (
        f"declare {name} without a type, and assign all of it first: "
        f"{name}({', '.join(indices)}) = {zero} where {ranges}"
    )


def _new_size(text: str, read: Sequence[Token]) -> str:
    """A name for a dimension that is made of others, which nothing in the text has."""
    taken = {*re.findall(r"[A-Za-z_]\w*", text)}
    names = chain("KLMNPQRST", (f"K{k}" for k in count(1)))
    name = next(name for name in names if name not in taken)
    advice = f"write a new name, such as {name}"
    if "->" not in [token.kind for token in read]:
        advice += "; a call checks the sizes where an index runs over several dimensions"
    return advice


def _missing(token: Token, accepted: Set[str], read: Sequence[Token]) -> tuple[str, Section] | None:
    """Advice where something has to stand before the token, or does not belong there."""
    closing = ("}", "where", "=", "REDUCE", END)
    if accepted >= {")", *_OPERATOR} and token.kind in closing:
        return "a ')' is missing before it", Section.GRAMMAR
    if accepted >= {":", *_OPERATOR} and token.kind in closing:
        return "the other value is missing: condition ? a : b", Section.GUARDS
    if "->" in accepted:
        return "expected '->' before the outputs: def f(inputs) -> (O) { ... }", Section.DEFS
    if token.kind == "," and accepted >= {"}", "where"}:
        advice = "statements need no ','; it separates the clauses of a where, and inputs"
        return advice, Section.STATEMENTS
    if "REDUCE" in accepted and token.kind == "in":
        advice = f"clauses are separated by ',': where ..., {read[0].text[:40]} in ..."
        return advice, Section.WHERE
    if "REDUCE" in accepted:
        advice = (
            f"'{read[0].text[:40]}' begins a statement, so = or a reduction has to follow it (+= "
            "*= min= max=, each also with !); or an operator such as * is missing before it"
        )
        return advice, Section.STATEMENTS
    if accepted >= _OPERATOR and token.kind in _EXPRESSION:
        comma = " or a comma" if "," in accepted else ""
        return f"expected an operator such as *{comma} before it", Section.OPERATORS
    if accepted >= _OPERATOR and token.kind == ")":
        return "no '(' is open here", Section.GRAMMAR
    if accepted >= _OPERATOR and token.kind == END:
        return "a '}' is missing", Section.GRAMMAR
    return None


def _expected(accepted: Set[str]) -> str:
    """A short list of what could have stood here."""
    parts = []
    for kinds, words in ((_EXPRESSION, "an expression"), (_OPERATOR, "an operator")):
        if accepted >= kinds:
            parts.append(words)
            accepted = accepted - kinds
    parts += sorted({_WORDS.get(a, f"'{a}'") for a in accepted})
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " or " + parts[-1]
