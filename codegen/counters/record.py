"""What is noted of a kernel while it is gone through: its accesses, its instructions, and what its
threads hold. ``walk.py`` goes through the statements of a block, ``thread_body.py`` through what
each thread does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial

import numpy as np

from tcl.codegen.counters.addresses import GATHERED, UNIFORM, Addresses, far_apart
from tcl.codegen.counters.arithmetic import Instructions
from tcl.codegen.counters.places import Linear, Place
from tcl.codegen.counters.requests import Access, Memory
from tcl.codegen.counters.scopes import GRID, Scopes
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.taking_part import Part, TakingPart
from tcl.codegen.loopir.unrolling import MANY
from tcl.codegen.loopir.walk import statements
from tcl.common.dataclass import dataclass

MOST_THREADS = 1024
"""Of a block."""


@dataclass(slots=True)
class Record:
    """What was found of a kernel so far."""

    program: ir.Built
    kernel: ir.Kernel
    idle_sums: bool
    """Whether threads without a part in a sum add up what the first ones do."""
    geometry: Geometry = field(init=False)
    parts: TakingPart = field(init=False)
    accesses: list[Access] = field(default_factory=list)
    work: list[tuple[Place, Instructions]] = field(default_factory=list)
    """Instructions of a thread at places."""
    held: dict[str, tuple[tuple[ir.Fold, ...], int]] = field(default_factory=dict)
    """Accumulators: those that a thread has for itself, and the 32-bit words of one."""
    held_words: dict[str, int] = field(default_factory=dict)
    """The words of all of those that are in registers."""
    read_words: int = 0
    """Words that a thread reads before it computes, the most."""
    phase: int = 0
    among: ir.Fold | None = None
    """The blocks of which the last does something in the end."""
    written_out: dict[str, int] = field(default_factory=dict)
    """Variables of serial loops → iterations that are written out at once."""
    piped: bool = False
    """Inside of a loop whose iterations are all of one phase."""
    with_tile: bool = False
    """Whether what is read to registers is on its way together with a panel's first tile."""
    copying: bool = False
    """Whether copies were begun that nobody has waited for yet."""
    begin: Place = field(init=False)
    written: frozenset[str] = frozenset()
    """Tensors that the kernel changes."""
    addresses: Addresses = field(init=False)
    scopes: Scopes = field(init=False)
    starting: dict[str, Place] = field(default_factory=dict)
    """Accumulators that have not been added to in a loop, and where they were declared."""
    reading: tuple[Part, ...] = ()
    """Who read what other warps had: what the same threads do then is no short branch."""
    by_few: list[tuple[int, int]] = field(default_factory=list)
    """From where to where ``work`` is of some threads."""
    lasting: frozenset[str] = frozenset()
    """Accumulators that have one value only, once it is known."""
    known_values: set[ir.Value] = field(default_factory=set)
    """What was made of ``lasting`` alone, and is not made again."""
    threads: np.ndarray[tuple[int], np.dtype[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        self.geometry = Geometry(self.program, self.kernel)
        self.parts = TakingPart(self.geometry, idle_sums=self.idle_sums)
        self.scopes, self.addresses = Scopes(self.geometry), Addresses(self.written_out)
        self.threads = np.arange(self.kernel.threads)
        loops, scope = dict[str, int](), dict[str, Linear]()
        for k, folds in enumerate(self.kernel.grid):
            loops[f"{GRID}{k}"] = folds[0].count
            scope |= {f.name: Linear(0, {f"{GRID}{k}": f.step}) for f in folds}
        for space in self.kernel.spaces:
            after = space.thread_count
            for fold in space.threads:
                after //= fold.count
                scope[fold.name] = Linear(0, {}, self.threads // after % fold.count * fold.step)
        self.begin = Place(self.threads >= 0, loops, scope=scope)
        inner = tuple(statements(self.kernel.body))
        self.written = frozenset(s.ref.tensor for s in inner if isinstance(s, ir.Store | ir.Update))
        given = Counter((s.name, s.op) for s in inner if isinstance(s, ir.Accumulate))
        several = {name for name, op in given if op != "="}
        self.lasting = frozenset(n for (n, _), times in given.items() if times == 1) - several

    def furthest(self, dim: str, place: Place) -> int:
        """The last point that compilers think of: they know no more of the numbers of threads than
        that there are 1,024 at most."""
        value = self.scopes.linear_index(ir.Affine.variable(dim), place)
        leading = {
            space.threads[0]: space.thread_count for space in self.kernel.spaces if space.threads
        }
        more = sum(
            f.step * (MOST_THREADS * f.count // n - f.count)
            for f, n in leading.items()
            if f.dim == dim and f.name in place.scope
        )
        return value.most(place.loops) + more

    def in_last(self, place: Place) -> bool:
        """Whether only the last block of each group comes to a place."""
        grid = len(self.kernel.grid)
        return self.among is not None and sum(v.startswith(GRID) for v in place.loops) < grid

    def layout_of(self, ref: ir.TensorRef) -> ir.Layout:
        return self.program.tensor(ref.tensor).layout

    def access(
        self,
        ref: ir.TensorRef,
        place: Place,
        outside: Place,
        *,
        width: int = 1,
        write: bool = False,
        kind: Memory | None = None,
        ahead: int | None = None,
    ) -> None:
        """A read or a write of ``width`` neighbours. ``outside``: around the loops that are written
        out; ``ahead``: iterations before they are needed, of what fills panels."""
        tensor = self.program.tensor(ref.tensor)
        layout = tensor.layout
        offset = self.scopes.linear_index(layout.place(ref), place)
        computed = [s.value for s in ref.computed]
        if computed:
            offset += self.scopes.linear_index(far_apart(computed), place)
            place = replace(place, exact=False)
        if kind is None and tensor.shared:
            kind = Memory.SHARED_WRITE if write else Memory.SHARED_READ
        elif kind is None:
            kind = Memory.GLOBAL_WRITE if write else Memory.GLOBAL_READ
        size = width * layout.itemsize
        box = self.scopes.box(ref, layout, place.scope) if kind.is_global else None
        filling = ahead is not None
        around = [self.written_out[v] for v in outside.loops if v in self.written_out]
        early = (self.with_tile or None) if ahead is None else ahead > 0
        ahead = max(ahead or 1, math.prod(around))
        different = 1.0 if write else self.addresses.different(offset, place, outside)
        if kind is Memory.GLOBAL_READ and not computed and ref.tensor not in self.written:
            loops = (v for v in outside.loops if not v.startswith(GRID))
            still = (v for v in loops if not offset.factors.get(v) and v not in self.written_out)
            different /= math.prod(outside.loops[v] for v in still)
        self.accesses.append(
            Access(
                *(kind, ref.tensor, size, place, offset, outside, box, ahead, early, self.phase),
                different=different,
                swizzle=layout.swizzle,
                slabs=layout.slabs,
                fills=filling,
            )
        )
        if kind is not Memory.GLOBAL_COPY:  # one instruction reads and writes
            self.compute(place, {"memory": different})
        if computed:
            self.compute(place, {"integer": GATHERED})
        elif kind not in (Memory.GLOBAL_COPY, Memory.SHARED_COPY):
            if kind is Memory.GLOBAL_READ and self.addresses.is_uniform(offset, outside):
                self.compute(place, {"integer": UNIFORM * different})
            terms = partial(self.scopes.terms, layout.place(ref), place)
            for where, own in self.addresses.needed(
                tensor, offset, terms, place, outside, self.begin
            ):
                self.compute(where, own)

    def compute(self, place: Place, instructions: Instructions) -> None:
        if instructions:
            self.work.append((place, instructions))

    @contextmanager
    def one_phase(self) -> Iterator[None]:
        """Inside of a loop whose iterations are all of one phase."""
        around = self.piped
        self.phase += not around
        self.piped = True
        yield
        self.piped = around

    def declare(self, declare: ir.Declare, place: Place) -> None:
        own = tuple(f for f in declare.over if f not in self.geometry.threads)
        words, count = max(1, declare.type.compute.bits // 32), math.prod(f.count for f in own)
        self.held[declare.name] = own, words
        if not declare.seldom or count <= MANY:
            self.held_words[declare.name] = words * count
        self.starting.pop(declare.name, None)
        if declare.start is not None and declare.name in self.held_words:
            self.starting[declare.name] = place
        elif declare.start is not None:
            self.move(declare.name, place)

    def goes_on(self, name: str, place: Place) -> None:
        """An accumulator is added to: it is set to its start before loops. Where all iterations are
        written out, compilers know what the first one adds to."""
        begin = self.starting.get(name)
        loops = (v for v in place.loops if begin is not None and v not in begin.loops)
        if begin is not None and any(self.written_out.get(v) != place.loops[v] for v in loops):
            self.move(name, begin)
            del self.starting[name]

    def move(self, name: str, place: Place, kind: Memory = Memory.SHARED_WRITE) -> None:
        """What it takes to set some accumulators, or to read them from where they lie. An
        instruction sets two registers."""
        folds, words = self.held[name]
        count = words * math.prod(f.count for f in folds)
        if name in self.held_words:
            self.compute(place, {"integer": -(-count // 2)})
        elif name in self.kernel.totals:
            each = place.within(f"{name} together", -(-count // 4))
            self.hand_over(kind, self.threads, 16, each)
        else:
            self.compute(place, {"local": count})

    def hand_over(
        self,
        kind: Memory,
        numbers: np.ndarray[tuple[int], np.dtype[np.int64]],
        size: int,
        place: Place,
    ) -> None:
        """So many bytes of each thread, at the place of one of these numbers in the memory of a
        block."""
        self.accesses.append(Access(kind, "", size, place, Linear(0, {}, numbers * size), place))
        self.compute(place, {"memory": 1})

    def carry(self, carry: ir.Carry, place: Place) -> None:
        folds, words = self.held[carry.name]
        count = math.prod(f.count for f in folds)
        kind = "double" if words > 1 else "float"
        self.compute(place, {kind: count * (1 if carry.lost is None else 6)})
        for name in (carry.total, carry.lost or ""):
            self.goes_on(name, place)
        if carry.total not in self.held_words:
            self.move(carry.total, place, Memory.SHARED_READ)
            self.move(carry.total, place)
        self.move(carry.name, place)  # zero again

    def serial(
        self, fold: ir.Fold, place: Place, pause: ir.Pause | None = None, times: int = 1
    ) -> Place:
        """Inside of a serial loop, of which ``times`` iterations are written out at once."""
        count = self.geometry.iterations(fold)
        if pause is not None and count > 1:
            stretches = -(-count // pause.every) - (not pause.after_last)
            for s in statements(pause.then):
                if isinstance(s, ir.Carry) and stretches:
                    self.carry(s, place.within(f"{fold.name} stretch", stretches))
        if times > 1:
            self.written_out[fold.name] = times
        if count > 1 and times < count:
            turns = -(-count // times)
            turn = place.within(fold.name, turns)
            self.compute(turn, {"integer": 2, "branch": 1})
        return self.scopes.entered([fold], place)

    def taking_part(self, statement: ir.Statement, place: Place) -> Place:
        """For the threads that have a part in what each one does on its own."""
        return self.by(self.parts.of(statement), place)

    def by(self, parts: Iterable[Part], place: Place) -> Place:
        some = []
        for part in parts:
            own = self.threads < (self.kernel.threads if part.below is None else part.below)
            for fold in part.firsts:
                iteration = place.scope[fold.name].threads
                own = own if iteration is None else own & (iteration == 0)
            some.append(own)
        return place.by(np.any(some, axis=0)) if some else place

    def idle(self, place: Place, outside: Place, instructions: Instructions) -> None:
        """Instructions under a test take a turn of all warps that come to it, where no branch leads
        around them."""
        turns = sum(instructions.values())
        self.compute(outside, {"integer": turns})
        self.compute(place, {"integer": -turns})
