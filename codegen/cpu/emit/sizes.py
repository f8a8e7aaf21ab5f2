"""Sizes that a kernel is given when it runs: what depends on them is worked out once, before all
else. They lie behind the tensors' addresses, in the order of their names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tcl.codegen.loopir import ir
from tcl.grammar.sizes.polynomials import Atom, Symbol, Terms, terms_text
from tcl.grammar.sizes.varying import Size, symbols_of

_NAME = re.compile(r'%"([^"]+)"')
_NAMED: dict[str, Size] = {}


def named_sizes(size: Size) -> str:
    """What a kernel's text names a size."""
    text = str(size)
    _NAMED[text] = size
    return f'%"{text}"'


def sizes_of(program: ir.Built) -> tuple[Symbol, ...]:
    """The sizes that a program's kernels are given, in order."""
    layouts = (t.layout for t in program.tensors)
    found = symbols_of(iter([n for x in layouts for n in (*x.extents, *x.strides)]))
    return tuple(found[name] for name in sorted(found))


def definitions(program: ir.Built, body: Iterable[str]) -> list[str]:
    """What works out the sizes, and expressions of sizes, that a kernel's text names."""
    lines: list[str] = []
    symbols = sizes_of(program)
    if not symbols:
        return lines
    places = {s.name: len(program.tensors) + k for k, s in enumerate(symbols)}
    known: dict[str, str] = {}
    count = 0

    def operation(text: str) -> str:
        nonlocal count
        count += 1
        lines.append(f"  %n{count} = {text}")
        return f"%n{count}"

    def atom(one: Atom) -> str:
        key = f"atom {one}"
        if key in known:
            return known[key]
        if isinstance(one, Symbol):
            at = operation(f"getelementptr i64, ptr %tensors, i64 {places[one.name]}")
            found, divisor = operation(f"load i64, ptr {at}, align 8"), one.multiple
        else:
            found, divisor = polynomial(one.terms), one.divisor
        if divisor > 1:
            found = operation(f"udiv i64 {found}, {divisor}")
        known[key] = found
        return found

    def polynomial(terms: Terms) -> str:
        key = terms_text(terms)
        if key in known:
            return known[key]
        total = ""
        for monomial, coefficient in terms:
            term = str(coefficient)
            for one in monomial:
                factor = atom(one)
                term = factor if term == "1" else operation(f"mul nsw i64 {term}, {factor}")
            total = operation(f"add nsw i64 {total}, {term}") if total else term
        known[key] = total
        return total

    for text in dict.fromkeys(name for line in body for name in _NAME.findall(line)):
        lines.append(f'  %"{text}" = add i64 {polynomial(_NAMED[text].terms)}, 0')
    return lines
