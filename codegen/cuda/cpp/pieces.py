"""Pieces of C++ expressions that know how tightly they bind, so that only needed parentheses are
written, and those that a reader would miss."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum


class Binds(IntEnum):
    """How tightly an expression's outermost operator binds, loosest first."""

    CHOICE = 0
    OR = 1
    AND = 2
    COMPARISON = 3
    SUM = 4
    PRODUCT = 5
    UNARY = 6
    PRIMARY = 7


@dataclass(frozen=True, slots=True)
class Piece:
    """An expression's text."""

    text: str
    binds: Binds = Binds.PRIMARY

    def within(self, least: Binds) -> str:
        """The text, in parentheses if it binds less tightly."""
        return self.text if self.binds >= least else f"({self.text})"


def call(name: str, *arguments: Piece) -> Piece:
    return Piece(f"{name}({', '.join(a.text for a in arguments)})")


def converted(type_name: str, operand: Piece) -> Piece:
    """A conversion in C's notation."""
    return Piece(f"({type_name}){operand.within(Binds.UNARY)}", Binds.UNARY)


def prefix(op: str, operand: Piece) -> Piece:
    least = Binds.PRIMARY if operand.text.startswith(op) else Binds.UNARY
    return Piece(op + operand.within(least), Binds.UNARY)


def infix(op: str, left: Piece, right: Piece, binds: Binds) -> Piece:
    """A binary operator. ``&&`` inside of ``||`` and comparisons of comparisons are set off."""
    if binds in (Binds.AND, Binds.OR):
        texts = [x.text if x.binds == binds else x.within(Binds.COMPARISON) for x in (left, right)]
    elif binds is Binds.COMPARISON:
        texts = [x.within(Binds.SUM) for x in (left, right)]
    else:  # groups to the left
        texts = [left.within(binds), right.within(Binds(binds + 1))]
    return Piece(f" {op} ".join(texts), binds)


def choice(condition: Piece, then: Piece, otherwise: Piece) -> Piece:
    """``condition ? then : otherwise``; a chain of them needs no parentheses."""
    first, second = condition.within(Binds.OR), then.within(Binds.OR)
    return Piece(f"{first} ? {second} : {otherwise.text}", Binds.CHOICE)


_BRACKETS = re.compile(r"\([^()\[\]]*\)|\[[^()\[\]]*\]")
_OPERATORS = (
    (re.compile(r" \? "), Binds.CHOICE),
    (re.compile(r" \|\| "), Binds.OR),
    (re.compile(r" && "), Binds.AND),
    (re.compile(r" (==|!=|<=?|>=?) "), Binds.COMPARISON),
    (re.compile(r" [-+] "), Binds.SUM),
    (re.compile(r" [*/%] "), Binds.PRODUCT),
    (re.compile(r" "), Binds.CHOICE),  # something else
    (re.compile(r"^([-+!~*&]|@[\w@])"), Binds.UNARY),
)


def written(text: str) -> Piece:
    """A text made elsewhere, with spaces around its binary operators and nowhere else."""
    outside, inside = text, ""
    while outside != inside:  # its brackets, from the innermost ones
        outside, inside = _BRACKETS.sub("@", outside), outside
    for operator, binds in _OPERATORS:
        if operator.search(outside):
            return Piece(text, binds)
    return Piece(text)


def wrapped(statement: str, indent: str, width: int = 100) -> str:
    """A statement in lines of at most ``width`` characters, where its words allow; the lines after
    the first are indented further."""
    if len(indent) + len(statement) <= width:
        return indent + statement
    return textwrap.fill(
        statement,
        width,
        initial_indent=indent,
        subsequent_indent=indent + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


class Lines:
    """Source that is being written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 1
        self._ended: tuple[str, int, int] | None = None
        """The last test that a block was under, its depth, and the lines at its end."""

    def add(self, text: str, *, margin: bool = False) -> None:
        """A line, of which a ``margin`` one is not indented."""
        self.lines.append(text if margin else wrapped(text, "    " * self._depth))

    def open(self, text: str) -> None:
        """A line after which a block begins; ``nested`` and ``block`` end it."""
        self.add(text)
        self._depth += 1

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Ends all blocks that are opened inside."""
        depth = self._depth
        yield
        while self._depth > depth:
            self._depth -= 1
            self.add("}")

    @contextmanager
    def block(self, text: str) -> Iterator[None]:
        """Inside of a block that begins with this line."""
        with self.nested():
            self.open(text)
            yield

    @contextmanager
    def under(self, test: str) -> Iterator[None]:
        """Inside of a block for those for whom a test holds, of what never changes; empty: for all.
        A block with the same test that has just ended goes on."""
        with self.nested():
            if test and self._ended == (test, self._depth, len(self.lines)):
                self.lines.pop()
                self._depth += 1
            elif test:
                self.open(f"if ({test}) {{")
            yield
        self._ended = (test, self._depth, len(self.lines))
