"""The AST: what was written, with spans. The whole tree reads as one grammar in this file.

    module     ::= def*
    def        ::= name params outputs statement*
    statement  ::= assign | call
    assign     ::= target indices op rhs equivalent? where*
    call       ::= targets callee arguments              (A, B = f(X, Y))
    where      ::= range | let | exists
    expr       ::= number | name | apply | dimension | unary | binary | select | cast

Nodes hold fields, no algorithms. Spans do not take part in equality, so two texts that differ
in layout alone give equal trees.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.source import Span


@dataclass(frozen=True, slots=True)
class Number:
    value: int | float
    """An int for ``12``, a float for ``1.5 .5 3. 3e-3``."""
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Name:
    """An index variable, a size symbol, a ``let`` binding or a tensor of rank 0."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """``name(arguments)``: a tensor read, a built-in, or a call of another def."""

    name: str
    arguments: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)
    name_span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Dimension:
    """``tensor.axis``: the extent of one dimension."""

    tensor: str
    axis: int
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unary:
    op: str
    """``-`` or ``!``."""
    operand: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binary:
    op: str
    """``+ - * / % < <= > >= == != && ||``, or ``min``, ``max`` for the calls ``min(a, b)``."""
    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Select:
    """``condition ? then : otherwise``."""

    condition: Expr
    then: Expr
    otherwise: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """``type(operand)``."""

    type: str
    """A type name as in ``tcl.grammar.syntax.types``, aliases resolved."""
    operand: Expr
    span: Span = field(compare=False, repr=False)


Expr: TypeAlias = Number | Name | Apply | Dimension | Unary | Binary | Select | Cast


@dataclass(frozen=True, slots=True)
class Range:
    """``index in start:stop`` of a ``where``, stop exclusive."""

    index: str
    start: Expr
    stop: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Let:
    """``name = value`` of a ``where``."""

    name: str
    value: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Exists:
    """``exists value`` of a ``where``: bounds indices, computes nothing."""

    value: Expr
    span: Span = field(compare=False, repr=False)


Where: TypeAlias = Range | Let | Exists


@dataclass(frozen=True, slots=True)
class Equivalent:
    """``<=> name(arguments)``: a note that a library call computes the same."""

    name: str
    arguments: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Assign:
    target: str
    indices: tuple[Expr, ...]
    op: str
    """``=`` or ``+= *= min= max=``, the latter four also with ``!``."""
    rhs: Expr
    equivalent: Equivalent | None
    where: tuple[Where, ...]
    span: Span = field(compare=False, repr=False)
    """Of the whole statement."""
    target_span: Span = field(compare=False, repr=False)
    op_span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """``A, B = f(X, Y)``: two or more targets. (One target parses as an ``Assign``.)"""

    targets: tuple[Name, ...]
    value: Expr
    span: Span = field(compare=False, repr=False)


Statement: TypeAlias = Assign | Call


@dataclass(frozen=True, slots=True)
class TensorType:
    scalar: str
    """A type name as in ``tcl.grammar.syntax.types``, aliases resolved."""
    dims: tuple[Number | Name, ...]
    """Size symbols or constants; empty for rank 0."""
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Param:
    """An input, or an output (whose type may be left to inference)."""

    name: str
    type: TensorType | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Def:
    name: str
    params: tuple[Param, ...]
    outputs: tuple[Param, ...]
    statements: tuple[Statement, ...]
    span: Span = field(compare=False, repr=False)
    """Of the name."""
    begin: int = field(default=0, compare=False, repr=False)
    """Offset of the def's first character."""


@dataclass(frozen=True, slots=True)
class Module:
    defs: tuple[Def, ...]
