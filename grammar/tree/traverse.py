"""Traversals of the checked tree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from tcl.grammar.syntax import walk as nodes
from tcl.grammar.syntax.types import INDEX, INT64, UINT32, UINT64
from tcl.grammar.tree import checked as c

_Facts = TypeVar("_Facts")

children: Callable[[c.Expr], tuple[c.Expr, ...]] = nodes.children
walk: Callable[[c.Expr], Iterator[c.Expr]] = nodes.walk


def evaluated(statement: c.Statement) -> tuple[c.Expr, ...]:
    """The expressions that a statement evaluates at each point: lets, where it writes as far as
    data say that, then the right-hand side."""
    return (*(let.value for let in statement.lets), *computed(statement), statement.rhs)


def computed(statement: c.Statement) -> tuple[c.Expr, ...]:
    """The subscripts on the left that are more than an index."""
    places = () if statement.place is None else statement.place.subscripts
    return tuple(s for s in places if not isinstance(s, c.Index))


def reads(statement: c.Statement) -> Iterator[c.Read]:
    """Every tensor read that a statement evaluates."""
    for expr in evaluated(statement):
        for node in walk(expr):
            if isinstance(node, c.Read):
                yield node


def subscripts(
    expr: c.Expr, known: _Facts, under: Callable[[_Facts, c.Expr, bool], _Facts]
) -> Iterator[tuple[c.Read, int, _Facts]]:
    """Every subscript below ``expr``, by its read and axis, and what is known where it stands:
    ``under`` adds what follows from a condition that is true there, or false."""
    match expr:
        case c.Read():
            for axis, subscript in enumerate(expr.subscripts):
                yield expr, axis, known
                yield from subscripts(subscript, known, under)
        case c.Select(condition=condition, then=then, otherwise=otherwise):
            yield from subscripts(condition, known, under)
            for side, holds in ((then, True), (otherwise, False)):
                yield from subscripts(side, under(known, condition, holds), under)
        case c.Binary(op="&&" | "||" as op, left=left, right=right):
            yield from subscripts(left, known, under)
            yield from subscripts(right, under(known, left, op == "&&"), under)
        case _:
            for child in children(expr):
                yield from subscripts(child, known, under)


def is_index_arithmetic(expr: c.Expr, lets: Collection[str]) -> bool:
    """Whether a value is made of indices and sizes alone, in a type in which it does not wrap."""
    return expr.type in (INDEX, INT64) and made_of_indices(expr, lets)


def index_lets(lets: Mapping[str, c.Expr]) -> frozenset[str]:
    """The names of lets that are made of indices and sizes alone. ``lets``: their values."""
    found = frozenset[str]()
    for name, value in lets.items():
        if made_of_indices(value, found):
            found |= {name}
    return found


def made_of_indices(expr: c.Expr, lets: Collection[str]) -> bool:
    """Whether an integer or a bool is made of indices and sizes alone, as those ``lets`` are.

    Data may decide which of two such values is taken.
    """
    match expr:
        case c.LetRef(name=name):
            return name in lets
        case c.Read() | c.Call():
            return False
        case c.Select(then=then, otherwise=otherwise):
            return made_of_indices(then, lets) and made_of_indices(otherwise, lets)
        case _:
            parts = children(expr)
            return not expr.type.is_float and all(made_of_indices(part, lets) for part in parts)


def is_exact(expr: c.Expr) -> bool:
    """Whether a subscript computes this node in 64 bits, whatever its type; otherwise the node has
    the value that it has elsewhere: unsigned numbers of 32 and 64 bits wrap, as hashes need."""
    if not expr.type.is_integral or expr.type in (UINT32, UINT64):
        return False
    if isinstance(expr, c.Cast):
        return expr.type.holds(expr.operand.type)
    return not isinstance(expr, c.Read | c.Call)


def rename(
    statement: c.Statement, tensors: Mapping[str, str], sizes: Mapping[str, str]
) -> c.Statement:
    """The statement with tensors and size symbols renamed."""

    def leaf(expr: c.Expr) -> c.Expr:
        match expr:
            case c.Read(tensor=name):
                return replace(expr, tensor=tensors[name])
            case c.Dimension(tensor=name):
                return replace(expr, tensor=tensors[name])
            case c.Size(name=name):
                return replace(expr, name=sizes[name])
            case _:
                return expr

    def renamed(expr: c.Expr) -> c.Expr:
        return rebuild(expr, leaf)

    return replace(
        statement,
        target=tensors[statement.target],
        rhs=renamed(statement.rhs),
        place=None
        if statement.place is None
        else c.Read(
            tensors[statement.target],
            tuple(map(renamed, statement.place.subscripts)),
            statement.place.type,
            statement.place.span,
        ),
        ranges=tuple(
            replace(r, start=renamed(r.start), stop=renamed(r.stop)) for r in statement.ranges
        ),
        lets=tuple(c.Let(let.name, renamed(let.value)) for let in statement.lets),
        exists=tuple(renamed(e) for e in statement.exists),
    )


def rebuild(expr: c.Expr, change: Callable[[c.Expr], c.Expr]) -> c.Expr:
    """``expr`` with ``change`` applied to every node, children first."""
    changed: dict[str, Any] = {}
    for name in nodes.parts(type(expr)):
        part = getattr(expr, name)
        if isinstance(part, tuple):
            changed[name] = tuple(rebuild(each, change) for each in part)
        else:
            changed[name] = rebuild(part, change)
    return change(replace(expr, **changed) if changed else expr)
