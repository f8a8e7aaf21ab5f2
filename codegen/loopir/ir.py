"""The loop IR: what will run. This is the grammar of the whole tree; its nodes are defined in
``expressions`` (from ``value`` down), ``statements`` (``loop`` and ``statement``) and here (the
rest), and all of them are used as ``ir.Name``.

    program   ::= tensor* nest*                  (as passes split, order and mark them)
    built     ::= tensor* kernel*                (as they run: nests are no more)
    nest      ::= space point
    kernel    ::= (fold*)* space* panel* statement
    space     ::= dim* loop*
    loop      ::= kind fold (alignment | compacted | cut)?
    point     ::= let* target op value
    statement ::= block | for | pipeline | fill | first | let | declare | accumulate | scan | carry
                | matrix | store | update | prefetch | barrier | last
    value     ::= const | position | variable | combined | load
                | unary | binary | select | call | cast
    subscript ::= affine | computed
    affine    ::= constant + (coefficient * name)*       (a name is a dim or a fold)

A dimension is a name, not a position: ``s0.m`` is index ``m`` of statement 0. It runs over
``first .. first + extent``. A *fold* is one tile level of a dimension: a loop over ``i.tile``
with step 32 hands ranges of up to 32 points to the loops of the same dimension inside it, and
the last range is as short as what is left, so ragged tiles need no notation. A dimension's value
is ``first`` plus the offsets of all its folds. Positions and strides appear only in ``Layout``.

The outermost folds may be *chunks*: pieces of the results that threads share among themselves.
Nests next to each other may share the loops over their chunks, and so run chunk by chunk.
``Build`` makes kernels of them. What runs is said there alone: emitters decide nothing.

On a GPU a chunk is the work of one block, whose threads have folds of their own. These need not
nest: of a dimension's folds, ``block 128, register 64, thread 4, lane 1`` by step, the loop over
threads lies outside of the unrolled one. Every step is a multiple of the next smaller one then,
and a point is there if its value lies in the dimension.

Values are computed in ``type.compute`` (the 16-bit floats in float32). Nodes hold fields; what
is wrong with a tree is said where it is built, by ``verify``.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import field
from typing import TypeAlias

from tcl.codegen.loopir.expressions import (
    Affine,
    Binary,
    Call,
    Cast,
    Combined,
    Computed,
    Const,
    Dim,
    Fold,
    IRError,
    Layout,
    Load,
    Position,
    Role,
    Select,
    Subscript,
    Tensor,
    TensorRef,
    Unary,
    Value,
    Variable,
    contiguous,
)
from tcl.codegen.loopir.statements import (
    TURN,
    Accumulate,
    Action,
    Ahead,
    Alignment,
    Barrier,
    Block,
    Carry,
    Compacted,
    Cut,
    Declare,
    Fill,
    First,
    For,
    Kind,
    Last,
    Let,
    Loop,
    Matrix,
    Pause,
    Pipeline,
    Prefetch,
    Scan,
    Statement,
    Store,
    Update,
    Within,
)
from tcl.common.dataclass import dataclass, replace
from tcl.grammar.syntax.types import ScalarType

# fmt: off
__all__ = [  # noqa: RUF022 - by where they are defined
    # from expressions
    "Affine", "Binary", "Call", "Cast", "Combined", "Computed", "Const", "Dim", "Fold", "IRError",
    "Layout", "Load", "Position", "Role", "Select", "Subscript", "Tensor", "TensorRef", "Unary",
    "Value", "Variable", "contiguous",
    # from statements
    "Accumulate", "Action", "Ahead", "Alignment", "Barrier", "Block", "Carry", "Cut", "Declare",
    "Fill", "First", "For", "Kind", "Last", "Let", "Compacted", "Loop", "Matrix", "Pause",
    "Pipeline", "Prefetch", "Scan", "Statement", "Store", "TURN", "Update", "Within",
    # from here
    "Built", "Grid", "Kernel", "Nest", "Panel", "Point", "Program", "Space", "Staged",
]
# fmt: on


@dataclass(frozen=True, slots=True)
class Point:
    """What happens at one point of a nest: ``target op= value``."""

    lets: tuple[Let, ...]
    """In order; each may use the ones before it."""
    target: TensorRef
    type: ScalarType
    """The target's; sums and products are accumulated in ``type.compute``."""
    op: str
    """``=``, or the reduction ``+ * min max``."""
    initialise: bool
    """The reduction starts from its identity, not from what is stored."""
    value: Value
    kept: tuple[Store, ...] = ()
    """What is stored besides, for nests that are joined to this one."""

    @property
    def scatters(self) -> bool:
        """Whether data say which element is written."""
        return any(isinstance(s, Computed) for s in self.target.subscripts)


@dataclass(frozen=True, slots=True)
class Staged:
    """An operand that is copied, piece by piece, to where the inner loops read it in order."""

    source: Load
    value: Value
    """What is copied: the source, or what all that reads it makes of it alone."""
    panel: TensorRef
    """The copy of ``value``; its subscript names only folds inside of ``inside``."""
    inside: Fold | None
    """The loop in each iteration of which a piece is copied; None for all at once, before."""
    across: str = ""
    """The dim along which the source lies in memory in order, where it does not along the lanes:
    the copy goes through some points of it at once."""
    fill: Nest | None = None
    """What copies a box of the source, for all threads of a block; with dimensions of its own."""
    buffers: int = 1
    """Copies of the panel that there are: so many fills less one run ahead of the loop."""


@dataclass(frozen=True, slots=True)
class Space:
    """The points that loops go through, from the outermost loop to the innermost."""

    name: str
    dims: tuple[Dim, ...]
    """Output dims in the target's order, then reduction dims."""
    loops: tuple[Loop, ...]

    def dim(self, name: str) -> Dim:
        """The dimension of this name; ``IRError`` if there is none."""
        for d in self.dims:
            if d.name == name:
                return d
        raise IRError(f"nest {self.name} has no dimension {name}")

    def folds(self, dim: str) -> tuple[Fold, ...]:
        """The folds of a dimension, outermost first."""
        self.dim(dim)
        return tuple([x.fold for x in self.loops if x.fold.dim == dim])

    def reach(self, dim: str, outer: Container[Fold] = ()) -> int:
        """The points that the folds of a dimension that are not ``outer`` go through: more than
        there are where some iterations lie beyond the dimension."""
        return 1 + sum(f.step * (f.count - 1) for f in self.folds(dim) if f not in outer)

    @property
    def points(self) -> int:
        return math.prod(d.extent for d in self.dims)

    @property
    def reduces(self) -> bool:
        return any(d.reduction for d in self.dims)

    @property
    def lane(self) -> Fold | None:
        return next((x.fold for x in self.loops if x.kind is Kind.VECTOR), None)

    @property
    def dot_product(self) -> Fold | None:
        """The fold of the points that one instruction multiplies and adds up."""
        return next((x.fold for x in self.loops if x.kind is Kind.DOT), None)

    @property
    def mma(self) -> tuple[Fold, ...]:
        """The folds of what a matrix unit does at once, beside the lanes and the dot products."""
        return tuple([x.fold for x in self.loops if x.kind is Kind.MMA])

    @property
    def compacted(self) -> Loop | None:
        """The loop that goes through some of its iterations alone."""
        return next((x for x in self.loops if x.compacted is not None), None)

    @property
    def chunks(self) -> tuple[Fold, ...]:
        """The folds of the loops over chunks, outermost first."""
        return tuple([x.fold for x in self.loops if x.kind is Kind.PARALLEL])

    @property
    def threads(self) -> tuple[Fold, ...]:
        """The folds of a block's threads, the one that changes fastest last."""
        return tuple([x.fold for x in self.loops if x.kind is Kind.THREAD])

    @property
    def thread_count(self) -> int:
        """The threads of a block that have points."""
        return math.prod(f.count for f in self.threads)


@dataclass(frozen=True, slots=True)
class Nest(Space):
    """One statement: its points, and what happens at each. Passes split, order and mark its
    loops; ``Build`` makes statements of them."""

    point: Point
    sequential: str | None = None
    """Why the points must run in the order of ``dims`` (the statement reads what it writes),
    or None when any order will do."""
    running: str | None = None
    """The dimension along which results run: what is written at a point is the reduction over the
    points up to there. It is a reduction, which the target's subscripts name. Why its points must
    run in order is said by ``sequential``; other dimensions may have any loops around them."""
    staged: tuple[Staged, ...] = ()
    """Operands that are read from copies."""
    prefetched: tuple[Prefetch, ...] = ()
    """What each point asks for."""
    joined: bool = False
    """It shares the loops over chunks with the nest before it."""
    fragments: bool = False
    """Whether its results in memory are whole fragments of a matrix unit, rows of neighbours."""
    streamed: int = 0
    """As its store's."""
    excess: Value | None = None
    """What each point's value has too much, where an instruction takes only such factors: the sum
    of it is taken off the sum of the values."""

    @staticmethod
    def over(name: str, dims: Iterable[Dim], point: Point, sequential: str | None = None) -> Nest:
        """A nest with one loop over the points of each dimension, in order."""
        every = tuple(dims)
        loops = tuple(Loop(Fold(d.name, "point", 1, d.extent)) for d in every)
        return Nest(name, every, loops, point, sequential)

    @property
    def space(self) -> Space:
        """Its points alone."""
        return Space(self.name, self.dims, self.loops)

    def with_loops(self, loops: Iterable[Loop]) -> Nest:
        return replace(self, loops=tuple(loops))


@dataclass(frozen=True, slots=True)
class Panel:
    """Where the threads of a block find an operand in the memory that they share."""

    tensor: str
    source: str
    """The tensor that is copied."""
    space: str
    """The points of the copy."""
    offset: int
    """Bytes from the beginning of the block's memory."""
    size: int
    """Bytes of one of its buffers, which follow each other."""
    zero_beyond: tuple[str, ...]
    """Dimensions of the operand: it is zero at points that they do not have."""


Grid: TypeAlias = tuple[tuple[Fold, ...], ...]
"""Loops over chunks, outermost first, each with the folds that advance together."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What runs before what comes next begins."""

    grid: Grid
    """Threads or blocks share its iterations; where there are no loops, one of them does all."""
    body: Statement
    """What is done in each chunk."""
    spaces: tuple[Space, ...]
    """All dimensions that the body names, and the loops over them."""
    points: tuple[Point, ...]
    """What is computed, for people who read the source."""
    threads: int = 1
    """Of a block."""
    panels: tuple[Panel, ...] = ()
    exchange: int | None = None
    """Where in the memory of a block its threads hand each other their sums; None if they do
    not."""
    shared: int = 0
    """Bytes of the memory of a block."""
    totals: Mapping[str, int] = field(default_factory=dict)
    """Where totals of accumulators lie in the memory of a block, by name, if they do: all numbers
    of a thread, 16 bytes of each thread beside those of the next one."""

    def panel(self, tensor: str) -> Panel:
        return next(p for p in self.panels if p.tensor == tensor)


@dataclass(frozen=True, slots=True)
class _Memory:
    """A def for one set of sizes: what it works on."""

    name: str
    tensors: tuple[Tensor, ...]
    """Inputs, outputs, scratch, in the order in which the kernel takes their addresses."""
    by_name: Mapping[str, Tensor] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {t.name: t for t in self.tensors})

    def tensor(self, name: str) -> Tensor:
        """The tensor of this name; ``IRError`` if there is none."""
        try:
            return self.by_name[name]
        except KeyError:
            raise IRError(f"program {self.name} has no tensor {name}") from None


@dataclass(frozen=True, slots=True)
class Program(_Memory):
    """A def before its loops are built: nests that run one after the other."""

    nests: tuple[Nest, ...]

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The nests, and those that fill their panels."""
        return (*self.nests, *(c.fill for n in self.nests for c in n.staged if c.fill))

    def nest(self, name: str) -> Nest:
        """The nest of this name; ``IRError`` if there is none."""
        for nest in self.nests:
            if nest.name == name:
                return nest
        raise IRError(f"program {self.name} has no nest {name}")


@dataclass(frozen=True, slots=True)
class Built(_Memory):
    """A def as it runs: kernels, one after the other."""

    kernels: tuple[Kernel, ...]

    @property
    def spaces(self) -> tuple[Space, ...]:
        """Those of all kernels."""
        return tuple({s.name: s for k in self.kernels for s in k.spaces}.values())
