"""The loop IR: what will run. The whole tree reads as one grammar in this file.

    program   ::= tensor* nest*                  (as passes split, order and mark them)
    built     ::= tensor* kernel*                (as they run: nests are no more)
    nest      ::= space point
    kernel    ::= (fold*)* space* panel* statement
    space     ::= dim* loop*
    loop      ::= kind fold (peel | listed)?
    point     ::= let* target op value
    statement ::= block | for | pipeline | fill | first
                | let | declare | accumulate | matrix | store | prefetch | barrier
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
is wrong with a tree is said where it is built, by ``ir_verify``.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from tcl.grammar.types import ScalarType
from tcl.grammar.varying import Size, alike, largest, smallest, usual


class IRError(Exception):
    """The IR is built wrongly: a mistake in a pass, never in what a user wrote."""


# Names: dimensions, folds, and index expressions over them.


@dataclass(frozen=True, slots=True)
class Dim:
    """A named range of integers, ``first .. first + extent``."""

    name: str
    """Unique in the program."""
    first: int
    extent: int
    reduction: bool
    """Points along it are combined (in any order), not written apart."""


@dataclass(frozen=True, slots=True)
class Fold:
    """One tile level of a dimension: ``count`` ranges of up to ``step`` points each."""

    dim: str
    level: str
    """``tile``, ``point``, ``lane``, ...; unique within the dimension."""
    step: int
    """Points of the dimension that one iteration covers; 1 for the innermost fold."""
    count: int
    """Iterations when the enclosing range is full."""

    @property
    def name(self) -> str:
        """``dim.level``, unique in the program."""
        return f"{self.dim}.{self.level}"


@dataclass(frozen=True, slots=True)
class Affine:
    """``constant + sum(coefficient * name)``, exact in 64 bits."""

    terms: tuple[tuple[str, int], ...] = ()
    """(dim or fold name, coefficient), sorted by name, no zero coefficients. A dim stands for
    its value, a fold for its offset in points (``iteration * step``)."""
    constant: int = 0

    @staticmethod
    def of(name: str) -> Affine:
        """The value of one dim or fold."""
        return Affine(((name, 1),), 0)

    def __add__(self, other: Affine) -> Affine:
        terms = dict(self.terms)
        for name, coefficient in other.terms:
            terms[name] = terms.get(name, 0) + coefficient
        kept = tuple(sorted((n, c) for n, c in terms.items() if c))
        return Affine(kept, self.constant + other.constant)

    def scaled(self, factor: int) -> Affine:
        """This expression times an integer."""
        terms = tuple((n, c * factor) for n, c in self.terms) if factor else ()
        return Affine(terms, self.constant * factor)

    def coefficient(self, name: str) -> int:
        """The coefficient of ``name``, 0 when it does not occur."""
        return dict(self.terms).get(name, 0)

    def interval(self, dims: Mapping[str, Dim]) -> tuple[int, int]:
        """The smallest and the largest value, both taken, over non-empty ``dims``; terms must be
        dims."""
        low = high = self.constant
        for name, c in self.terms:
            ends = (c * dims[name].first, c * (dims[name].first + dims[name].extent - 1))
            low, high = low + smallest(*ends), high + largest(*ends)
        return low, high


# Memory.


class Role(Enum):
    """What a tensor is to the kernel."""

    INPUT = "input"
    OUTPUT = "output"
    SCRATCH = "scratch"
    """Memory the kernel needs while it runs; contents are undefined before and after."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a tensor lies in memory: the one place of positions and strides."""

    type: ScalarType
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes from one element to the next, per dimension; may be negative or 0."""
    origin: tuple[int, ...]
    """The index of the first element, per dimension."""
    alignment: int = 1
    """Every element's address is a multiple of this many bytes."""
    base: int = 1
    """The first element's address is."""

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.type.itemsize

    def offset(self, axis: int, subscript: Affine) -> Affine:
        """Bytes that this subscript adds to the address."""
        return (subscript + Affine((), -self.origin[axis])).scaled(self.strides[axis])

    def place(self, ref: TensorRef) -> Affine:
        """Bytes from the first element to this one; those that depend on data are left out."""
        total = Affine()
        for axis, subscript in enumerate(ref.subscripts):
            if isinstance(subscript, Affine):
                total = total + self.offset(axis, subscript)
        return total

    def step(self, ref: TensorRef, dim: str) -> int:
        """Elements from one point of a dimension to the next: 0 where the element stays the same, 1
        where neighbouring points, as those of lanes, are neighbours in memory; 2 or more where they
        need not be."""
        step = self.place(ref).coefficient(dim) // self.itemsize
        return max(2, usual(step)) if isinstance(step, Size) else step

    def in_order(self, ref: TensorRef) -> list[str]:
        """The dimensions along which memory is gone through from front to back."""
        return [name for name, stride in self.place(ref).terms if alike(stride, self.itemsize)]


def contiguous(type_: ScalarType, extents: Iterable[int], origin: Iterable[int]) -> Layout:
    """The row-major layout."""
    shape = tuple(extents)
    itemsize = type_.itemsize
    strides: list[int] = []
    for extent in reversed(shape):
        strides.append(itemsize)
        itemsize *= largest(1, extent)
    return Layout(type_, shape, tuple(reversed(strides)), tuple(origin))


@dataclass(frozen=True, slots=True)
class Tensor:
    """An argument of the kernel, or scratch memory."""

    name: str
    role: Role
    layout: Layout
    private: bool = False
    """Scratch of which each thread has its own."""
    shared: bool = False
    """Scratch of which each block of threads has its own."""


@dataclass(frozen=True, slots=True)
class Computed:
    """A subscript that depends on data, or is not affine."""

    value: Value
    """Of type int64, or uint64 for a plain value of that type."""
    check: bool
    """Outside the tensor, the failure is recorded and a safe element read instead."""


Subscript: TypeAlias = Affine | Computed


@dataclass(frozen=True, slots=True)
class TensorRef:
    """One element of a tensor, by its indices (not yet shifted by the origin)."""

    tensor: str
    subscripts: tuple[Subscript, ...]


# Values.


@dataclass(frozen=True, slots=True)
class Const:
    value: int | float | bool
    type: ScalarType

    def __eq__(self, other: object) -> bool:
        """Whether both are the same bits: zeros of either sign are not."""
        return (
            isinstance(other, Const)
            and self.type == other.type
            and alike(self.value, other.value)
            and (
                not self.type.is_float
                or math.copysign(1, self.value) == math.copysign(1, other.value)
            )
        )


@dataclass(frozen=True, slots=True)
class Position:
    """An index expression as a value; wraps to ``type`` (int32, or int64 in subscripts)."""

    index: Affine
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Variable:
    """What a ``Let`` of the nest holds, or its accumulator for this iteration."""

    name: str
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Combined:
    """What accumulators give in all iterations of these folds, reduced to one value, in any
    order."""

    value: Value
    """Of accumulators that have one each, and of variables."""
    op: str
    folds: tuple[Fold, ...]
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Load:
    ref: TensorRef
    type: ScalarType
    total: bool
    """In bounds at every point of the nest: may be read where its value is not needed."""


@dataclass(frozen=True, slots=True)
class Unary:
    op: str
    """``-``, or ``!`` on a bool."""
    operand: Value
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Binary:
    """As ``tcl.grammar.checked.Binary``: arithmetic, ``min max``, comparison, ``&& ||``."""

    op: str
    left: Value
    right: Value
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Select:
    """Only the chosen side is evaluated."""

    condition: Value
    then: Value
    otherwise: Value
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in function."""

    name: str
    arguments: tuple[Value, ...]
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion, rounding to 16 bits where ``type`` is a 16-bit float."""

    operand: Value
    type: ScalarType


Value: TypeAlias = (
    Const | Position | Variable | Combined | Load | Unary | Binary | Select | Call | Cast
)


# Loops and statements.


class Kind(Enum):
    """How the iterations of a loop are run."""

    SERIAL = "serial"
    UNROLL = "unroll"
    """Written out one after the other, so that each iteration has registers of its own."""
    VECTOR = "vector"
    """As lanes of vector registers; the innermost fold of a dim."""
    DOT = "dot"
    """By one instruction: neighbours of a reduction, inside of the lanes, each point's factors
    lying next to each other in the words of vector registers."""
    MMA = "mma"
    """By one instruction of a CPU's matrix unit, along with the lanes and the dot products inside:
    rows of results, or neighbouring dot products of a reduction."""
    PARALLEL = "parallel"
    """By whichever thread is free, or by a block; a loop over chunks, outside of all others."""
    THREAD = "thread"
    """By the threads of a block, each one iteration. No thread sees what another one wrote before
    both met at a barrier."""


@dataclass(frozen=True, slots=True)
class Peel:
    """Where a serial loop along the lanes begins: at the first point whose element lies at a
    multiple of so many bytes, which is known only when the kernel runs."""

    ref: TensorRef
    """An element that is written, whose neighbours along the lanes are neighbours in memory."""
    boundary: int
    """Bytes, a power of two."""
    points: int
    """Of a vector, or between boundaries if these are further apart. The loop goes through a
    multiple of so many. At either end, values of so many are computed apart, of which those are
    written that the loop leaves out."""


TURN = "turn"
"""The variable with the number of an iteration in a list of them."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The iterations that a serial loop goes through, one list for each combination of the
    dimensions outside of it that decide which these are."""

    condition: Value
    """Where it does not hold, there is nothing to be done. Only dimensions of the lists, and of the
    loop, are named in it."""
    count: TensorRef
    """How many iterations there are."""
    offset: TensorRef
    """The offset of one of them; the last subscript is ``TURN``."""


@dataclass(frozen=True, slots=True)
class Loop:
    fold: Fold
    kind: Kind = Kind.SERIAL
    peel: Peel | None = None
    listed: Listed | None = None


@dataclass(frozen=True, slots=True)
class Let:
    """A value with a name, computed once at each point."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Declare:
    """Accumulators in registers: one for each combination of iterations of ``over``."""

    name: str
    type: ScalarType
    over: tuple[Fold, ...] = ()
    """Unrolled folds and lanes. Which of its accumulators a name means is decided by the
    iterations of these folds at the place where it is used."""
    start: Const | None = None
    """The first value of all of them, if they have one."""


@dataclass(frozen=True, slots=True)
class Accumulate:
    """``accumulator op= value``, in any order and with any rounding in between."""

    name: str
    op: str
    """``+ * min max``, or ``=`` for the first value."""
    value: Value


class Action(Enum):
    """What becomes of a matrix of accumulators."""

    CLEAR = "clear"
    """All of them are 0, in the matrix unit."""
    TAKE = "take"
    """The matrix unit has them from now on."""
    GIVE = "give"
    """They can be used one by one again."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Accumulators go to the registers of a CPU's matrix unit, or come from there: those of all
    iterations of lanes and of loops of kind ``MMA``, for this iteration of those that are
    unrolled. While it has them, nothing but sums of products is added to them."""

    name: str
    action: Action


@dataclass(frozen=True, slots=True)
class Store:
    """Writes an element, rounding to the tensor's type."""

    ref: TensorRef
    value: Value
    streamed: int = 0
    """Past the caches, vectors that begin at multiples of this many bytes, counted from the
    tensor's first element; 0 for plain stores."""
    padded: bool = False
    """Where lanes, or dot products in a loop of kind ``MMA``, do not exist, 0 is written to their
    place, for which there is room."""


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Asks for what lies ``ahead`` bytes after an element, so that it is near when it is read.
    Nothing is touched: it need not lie in the tensor."""

    ref: TensorRef
    ahead: int


@dataclass(frozen=True, slots=True)
class For:
    loop: Loop
    body: Statement


@dataclass(frozen=True, slots=True)
class Fill:
    """All threads of a block copy a box of an operand to a panel."""

    panel: str
    body: Statement
    """Loops around one store."""


class Ahead(Enum):
    """How a copy of a panel is filled while there is work on another one."""

    ASYNCHRONOUS = "asynchronously"
    REGISTERS = "through registers"
    """Read before that work, and written to the panel after it."""
    DIRECT = "before the work"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A loop that all threads of a block run together, whose panels are filled ahead, so that no
    thread waits for memory. With ``buffers`` copies of each panel, fills run so many iterations
    less one ahead; threads meet in each iteration."""

    loop: Loop
    fills: tuple[Fill, ...]
    body: Statement
    """What is done with the panels."""
    buffers: int
    ahead: Ahead
    meet: bool
    """Whether threads have to meet before the first fill."""


@dataclass(frozen=True, slots=True)
class First:
    """``then`` while all of these loops are in their first iteration, ``otherwise`` after that."""

    folds: tuple[Fold, ...]
    then: Statement
    otherwise: Statement


@dataclass(frozen=True, slots=True)
class Block:
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """All threads of a block get here before any goes on."""


Statement: TypeAlias = (
    Block
    | For
    | Fill
    | Pipeline
    | First
    | Let
    | Declare
    | Accumulate
    | Matrix
    | Store
    | Prefetch
    | Barrier
)


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
        return tuple(x.fold for x in self.loops if x.fold.dim == dim)

    def reach(self, dim: str, outer: Container[Fold] = ()) -> int:
        """The points that the folds of a dimension that are not ``outer`` go through: more than
        there are where some iterations lie beyond the dimension."""
        return 1 + sum(f.step * (f.count - 1) for f in self.folds(dim) if f not in outer)

    @property
    def points(self) -> int:
        """How many there are."""
        return math.prod(d.extent for d in self.dims)

    @property
    def reduces(self) -> bool:
        """Whether there is a reduction."""
        return any(d.reduction for d in self.dims)

    @property
    def lane(self) -> Fold | None:
        """The fold of the lanes."""
        return next((x.fold for x in self.loops if x.kind is Kind.VECTOR), None)

    @property
    def dot(self) -> Fold | None:
        """The fold of the points that one instruction multiplies and adds up."""
        return next((x.fold for x in self.loops if x.kind is Kind.DOT), None)

    @property
    def mma(self) -> tuple[Fold, ...]:
        """The folds of what a matrix unit does at once, beside the lanes and the dot products."""
        return tuple(x.fold for x in self.loops if x.kind is Kind.MMA)

    @property
    def listed(self) -> Loop | None:
        """The loop that goes through some of its iterations alone."""
        return next((x for x in self.loops if x.listed is not None), None)

    @property
    def chunks(self) -> tuple[Fold, ...]:
        """The folds of the loops over chunks, outermost first."""
        return tuple(x.fold for x in self.loops if x.kind is Kind.PARALLEL)

    @property
    def threads(self) -> tuple[Fold, ...]:
        """The folds of a block's threads, the one that changes fastest last."""
        return tuple(x.fold for x in self.loops if x.kind is Kind.THREAD)

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
    staged: tuple[Staged, ...] = ()
    """Operands that are read from copies."""
    prefetched: tuple[Prefetch, ...] = ()
    """What each point asks for."""
    joined: bool = False
    """It shares the loops over chunks with the nest before it."""
    streamed: int = 0
    """As its store's."""
    excess: Value | None = None
    """What each point's value has too much, where an instruction takes only such factors: the sum
    of it is taken off the sum of the values."""

    @property
    def space(self) -> Space:
        """Its points alone."""
        return Space(self.name, self.dims, self.loops)

    def with_loops(self, loops: Iterable[Loop]) -> Nest:
        """The same nest with other loops."""
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
"""Loops over chunks, outermost first, each with the folds that go along with each other."""


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

    def panel(self, tensor: str) -> Panel:
        """The panel of this name."""
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
