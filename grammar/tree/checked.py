"""The checked definition: names resolved, types decided, calls expanded.

It is what every backend starts from. Conversions are explicit (``Cast``), operands of an
operation have the operation's type, literals have a concrete type, and each statement knows
its reduction indices. Expressions keep their spans for messages that need sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from tcl.common.dataclass import Hashed, dataclass
from tcl.grammar.syntax.errors import Diagnostic
from tcl.grammar.syntax.source import Source, Span
from tcl.grammar.syntax.types import INDEX, ScalarType


class _OfIndices:
    """A value of the type that indices and sizes have."""

    __slots__ = ()

    @property
    def type(self) -> ScalarType:
        return INDEX


@dataclass(frozen=True, slots=True)
class Const:
    value: int | float | bool
    type: ScalarType
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Index(_OfIndices):
    """An index variable of the statement, used as a value or in a subscript."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Size(_OfIndices):
    """A size symbol."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Dimension(_OfIndices):
    """``tensor.axis``."""

    tensor: str
    axis: int
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LetRef:
    """The value of a ``let`` binding of the statement."""

    name: str
    type: ScalarType
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Read(Hashed):
    """A tensor element. Subscripts are integral; a subscript may itself read tensors."""

    tensor: str
    subscripts: tuple[Expr, ...]
    type: ScalarType
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unary(Hashed):
    op: str
    """``-``, or ``!`` on a bool."""
    operand: Expr
    type: ScalarType
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binary(Hashed):
    """``+ - * / % min max`` over operands of ``type``, ``&& ||`` over bools (short-circuit), or a
    comparison ``< <= > >= == !=`` over operands of one type, giving bool."""

    op: str
    left: Expr
    right: Expr
    type: ScalarType
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Select(Hashed):
    """``condition ? then : otherwise``; only the chosen side is evaluated."""

    condition: Expr
    then: Expr
    otherwise: Expr
    type: ScalarType
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call(Hashed):
    """A built-in function; arguments have the call's type."""

    name: str
    arguments: tuple[Expr, ...]
    type: ScalarType
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cast(Hashed):
    """A conversion. Float to integer truncates, saturates, and takes NaN to 0; integer to
    integer wraps; anything to bool tests for non-zero."""

    operand: Expr
    type: ScalarType
    span: Span = field(compare=False, repr=False)


Expr: TypeAlias = (
    Const | Index | Size | Dimension | LetRef | Read | Unary | Binary | Select | Call | Cast
)


@dataclass(frozen=True, slots=True)
class Range:
    """An explicit range of an index: ``start`` to ``stop``, exclusive; sizes and constants only."""

    index: str
    start: Expr
    stop: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Let:
    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Statement:
    """``target(indices) op rhs``, over all points of the indices' ranges. Of a scatter, data say
    which element that is: ``place``."""

    target: str
    indices: tuple[str, ...]
    """Those that stand on the left by themselves."""
    op: str
    """``=``, or the reduction ``+ * min max``."""
    initialise: bool
    """The reduction starts from its identity (the ``!`` forms), not from what is stored."""
    rhs: Expr
    """Of the target's type."""
    reduction: tuple[str, ...]
    """All other indices, in order of appearance."""
    ranges: tuple[Range, ...]
    lets: tuple[Let, ...]
    """In order; each may use the ones before it. Evaluated at each point, before ``rhs``."""
    exists: tuple[Expr, ...]
    """Expressions that bound indices and are never evaluated."""
    span: Span = field(compare=False, repr=False)
    place: Read | None = None
    """The element that a scatter writes, as if it were read; None for all other statements."""

    @property
    def axes(self) -> tuple[str | None, ...]:
        """The index at which each dimension of the target is written; None where data say it."""
        if self.place is None:
            return self.indices
        return tuple(s.name if isinstance(s, Index) else None for s in self.place.subscripts)

    @property
    def all_indices(self) -> tuple[str, ...]:
        """Output indices in order, then reduction indices."""
        return self.indices + self.reduction


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of the def."""

    name: str
    type: ScalarType
    rank: int
    dims: tuple[str | int, ...] | None
    """Declared size symbols or constants; None for an output whose sizes are inferred."""
    is_input: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SizeBinding:
    """``size`` is the extent of ``tensor``'s dimension ``axis``."""

    size: str | int
    tensor: str
    axis: int
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CallBoundary:
    """Where the statements of a called def begin or end.

    The tensors that cross it start at index 0 on both sides: a call means what it means alone.
    """

    position: int
    """Number of statements before it."""
    tensors: tuple[str, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CheckedDef:
    """A definition in which every rule that needs no sizes has been checked."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    """In the order in which they are returned."""
    statements: tuple[Statement, ...]
    bindings: tuple[SizeBinding, ...]
    """Every place that ties a size symbol or constant to a dimension."""
    uninitialised: frozenset[str]
    """Outputs that are reduced into before anything is assigned: the caller must pass them."""
    source: Source = field(compare=False, repr=False)
    warnings: tuple[Diagnostic, ...] = field(compare=False, repr=False)
    text: str = field(compare=False, repr=False)
    """Of this def and those that it calls: without the others of ``source``."""
    boundaries: tuple[CallBoundary, ...] = ()
    """Of the calls that were expanded, in order."""
    tensors: Mapping[str, Tensor] = field(init=False, compare=False, repr=False)
    """All tensors by name, inputs first."""

    def __post_init__(self) -> None:
        by_name = {t.name: t for t in self.inputs + self.outputs}
        object.__setattr__(self, "tensors", by_name)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The size symbols of the inputs, in order of appearance."""
        dims = (d for tensor in self.inputs for d in tensor.dims or ())
        return tuple(dict.fromkeys(d for d in dims if isinstance(d, str)))
