"""What the loop IR does: loops, and the statements inside of them.

The grammar of the whole tree stands in ``ir``, through which these nodes are used.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from tcl.codegen.loopir.expressions import Affine, Const, Fold, TensorRef, Value
from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.types import ScalarType


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
class Alignment:
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
class Compacted:
    """The iterations that a serial loop goes through, compacted: one list for each combination of
    the dimensions outside of it that decide which these are."""

    condition: Value
    """Where it does not hold, there is nothing to be done. Only dimensions of the lists, and of the
    loop, are named in it."""
    count: TensorRef
    offset: TensorRef
    """The offset of one of them; the last subscript is ``TURN``."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Iterations that a serial loop may leave out: those at no point of which all bounds hold. They
    change nothing."""

    bounds: tuple[tuple[Affine, int], ...]
    """Index expressions over dimensions, each less than a number."""
    apart: bool
    """Whether iterations at all points of which they hold are done apart, without looking."""


@dataclass(frozen=True, slots=True)
class Loop:
    fold: Fold
    kind: Kind = Kind.SERIAL
    alignment: Alignment | None = None
    compacted: Compacted | None = None
    cut: Cut | None = None


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
    seldom: bool = False
    """Whether they are used seldom, so that they need not be in registers."""


@dataclass(frozen=True, slots=True)
class Accumulate:
    """``accumulator op= value``, in any order and with any rounding in between."""

    name: str
    op: str
    """``+ * min max``, or ``=`` for the first value."""
    value: Value


@dataclass(frozen=True, slots=True)
class Scan:
    """``accumulator op= value``, and what the accumulator then holds: in lanes of the reduction one
    after the other, where the accumulator is that of all lanes."""

    name: str
    op: str
    """``+ * min max``."""
    value: Value
    result: str
    """The variable with what it holds at this point."""


@dataclass(frozen=True, slots=True)
class Carry:
    """Adds what accumulators of floats hold to those of the same iterations called ``total``, and
    sets them to 0: all that are declared by this name, inside of their loops or outside."""

    name: str
    total: str
    lost: str | None
    """Accumulators with what rounding took from the total so far, which is made up for; None if
    nothing is kept of that."""


@dataclass(frozen=True, slots=True)
class Pause:
    """What is done between stretches of a serial loop's iterations. It may be done more often."""

    every: int
    """Iterations of a stretch, at most."""
    then: Statement
    after_last: bool
    """Whether it is also done after the last stretch: where the loop comes again."""


class Action(Enum):
    """What becomes of a matrix of accumulators."""

    CLEAR = "clear"
    """All of them are 0, in the matrix unit."""
    TAKE = "take"
    """The matrix unit has them from now on."""
    GIVE = "give"
    """The matrix unit no longer has them."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Accumulators go to the registers of a CPU's matrix unit, or come from there: those of all
    iterations of lanes and of loops of kind ``MMA``, for this iteration of those that are
    unrolled. While it has them, nothing but sums of products is added to them."""

    name: str
    action: Action
    at: TensorRef | None = None
    """Whole fragments of memory that they are taken from, or given to: the element of each of
    them. None: where they can be used one by one."""


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
class Update:
    """``element op= value``, one after the other: what a scatter does, whose subscripts depend on
    data. Where the value is one under a condition (see ``terms.guard``) that does not hold, the
    element is not touched, nor its subscripts checked."""

    ref: TensorRef
    op: str
    """``+ * min max``."""
    value: Value


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Asks for what lies ``ahead`` bytes after an element, so that it is near when it is read.
    Nothing is touched: it need not lie in the tensor."""

    ref: TensorRef
    ahead: int
    once: bool = False
    """It is read soon, and never again, so that it passes by all caches but the first."""


@dataclass(frozen=True, slots=True)
class For:
    loop: Loop
    body: Statement
    pause: Pause | None = None


@dataclass(frozen=True, slots=True)
class Fill:
    """All threads of a block copy a box of an operand to a panel."""

    panel: str
    body: Statement
    """Loops around one store."""
    asynchronous: bool = False
    """Whether no thread waits for memory before it has begun all of its copies."""


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
    pause: Pause | None = None
    steps: Fold | None = None
    """The loop of each thread in which fragments for tensor cores are read one iteration ahead:
    those of its first iteration in the pipeline's iteration before. None where none are."""
    unfinished: bool = False
    """Whether warpgroups still add up the products of an iteration when the next one begins: its
    panels are filled one iteration later."""

    @property
    def copies_ahead(self) -> int:
        """The iterations that asynchronous copies are ahead."""
        return self.buffers - 1 - self.unfinished


@dataclass(frozen=True, slots=True)
class First:
    """``then`` while all of these loops are in their first iteration, ``otherwise`` after that."""

    folds: tuple[Fold, ...]
    then: Statement
    otherwise: Statement
    last: bool = False
    """``then`` once all of them are in their last iteration, ``otherwise`` before that."""
    every: int = 0
    """If not 0, of one loop without a remainder: the first, or last, of each so many iterations,
    and the last of all."""


@dataclass(frozen=True, slots=True)
class Within:
    """A statement in two versions: ``then`` where all bounds hold at all points of the loops
    inside, so that nothing in it asks for them."""

    bounds: tuple[tuple[Affine, int], ...]
    """As of ``Cut``."""
    then: Statement
    otherwise: Statement


@dataclass(frozen=True, slots=True)
class Block:
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Barrier:
    """All threads of a block get here before any goes on."""


@dataclass(frozen=True, slots=True)
class Last:
    """What one block does after it and all those that differ from it in one chunk alone have come
    here: the last of them, which sees what all of them wrote before."""

    among: Fold
    """Of the grid: the blocks of its iterations wait for nobody, but count each other."""
    arrived: str
    """A tensor that is ``zeroed``: how many have come here, for each group of blocks."""
    body: Statement


Statement: TypeAlias = (
    Block
    | For
    | Fill
    | Pipeline
    | First
    | Within
    | Let
    | Declare
    | Accumulate
    | Scan
    | Carry
    | Matrix
    | Store
    | Update
    | Prefetch
    | Barrier
    | Last
)
