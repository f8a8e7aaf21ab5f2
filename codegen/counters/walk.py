"""Goes through a kernel as its emitter does, and notes what it asks of memory and computes.

What a thread reads at once, which points are guarded and what is written out is said by the same
functions of ``loopir`` that the emitter asks; a trace of the emulator holds the two together.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import assert_never

import numpy as np

from tcl.codegen.counters.addresses import GATHERED, UNIFORM, Addresses, divided, far_apart
from tcl.codegen.counters.arithmetic import (
    Instructions,
    accumulated,
    constants_of,
    conversion,
    inside,
    instructions_of,
)
from tcl.codegen.counters.dependence import Dependence
from tcl.codegen.counters.places import Condition, Linear, Place
from tcl.codegen.counters.requests import Access, Memory
from tcl.codegen.counters.scopes import GRID, Scopes
from tcl.codegen.devices.banks import WARP
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.combining import combined_of, in_turn, thread_bits, warps_apart
from tcl.codegen.loopir.conditions import bounds_of
from tcl.codegen.loopir.fragments import Fragment, fragments
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.guards import guarded
from tcl.codegen.loopir.taking_part import Part, TakingPart
from tcl.codegen.loopir.terms import factors
from tcl.codegen.loopir.unrolling import MANY, long, tiles_written_out, written_out
from tcl.codegen.loopir.walk import (
    alone,
    chain,
    children,
    is_transposed,
    statements,
    uniform,
    values_in,
    walk,
)
from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.types import FLOAT32

# Integer instructions, as NVRTC 13.5 has them for sm_90, about.
_BEGIN = 4
"""Of a kernel: stack, descriptor, numbers of block and thread."""
_SHARED_BASE = 3
"""For where shared memory begins."""
_TEST = 2
"""For asking whether a point is there: which one it is, and a comparison."""
_WORTH = 8
"""Points from which on a branch leads around those that are not there."""
_SHORT_PHASE = 16
"""Instructions of some threads up to which no branch leads around them."""
_CONSTANTS = 2
"""For what an exponential or a division by a constant multiplies by: once."""
_AROUND = 3
"""Branches around what some threads do not do."""
TURN, FILL, COPY = 12, 11, 2
"""For which buffer comes next and what is waited for; for each of a turn's panels; and for each
asynchronous copy, which has no constant beside its address."""
TURN_KNOWN = 2
"""For a turn whose buffer is known, as so many are written out as there are."""
_COUNTED, _FENCE = 6, 3
"""For the place where blocks are counted and for asking who is the last; and for a fence."""


@dataclass(slots=True)
class Walk:
    """What was found so far."""

    program: ir.Built
    kernel: ir.Kernel
    idle_sums: bool
    """Whether threads without a part in a sum add up what the first ones do."""
    geometry: Geometry = field(init=False)
    _parts: TakingPart = field(init=False)
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
    _piped: bool = False
    _begin: Place = field(init=False)
    _written: frozenset[str] = frozenset()
    """Tensors that the kernel changes."""
    _addresses: Addresses = field(init=False)
    _scopes: Scopes = field(init=False)
    _starting: dict[str, Place] = field(default_factory=dict)
    """Accumulators that have not been added to in a loop, and where they were declared."""
    _reading: tuple[Part, ...] = ()
    """Who read what other warps had: what the same threads do then is no short branch."""
    _by_few: list[tuple[int, int]] = field(default_factory=list)
    """From where to where ``work`` is of some threads."""
    _lasting: frozenset[str] = frozenset()
    """Accumulators that have one value only, once it is known."""
    _known: set[ir.Value] = field(default_factory=set)
    """What was made of nothing else, and is not made again."""
    _threads: np.ndarray[tuple[int], np.dtype[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        self.geometry = Geometry(self.program, self.kernel)
        self._parts = TakingPart(self.geometry, idle_sums=self.idle_sums)
        self._scopes, self._addresses = Scopes(self.geometry), Addresses(self.written_out)
        self._threads = np.arange(self.kernel.threads)

    def run(self) -> Walk:
        """Goes through the kernel."""
        loops, scope = dict[str, int](), dict[str, Linear]()
        for k, folds in enumerate(self.kernel.grid):
            loops[f"{GRID}{k}"] = folds[0].count
            scope |= {f.name: Linear(0, {f"{GRID}{k}": f.step}) for f in folds}
        for space in self.kernel.spaces:
            after = space.thread_count
            for fold in space.threads:
                after //= fold.count
                scope[fold.name] = Linear(0, {}, self._threads // after % fold.count * fold.step)
        place = Place(self._threads >= 0, loops, scope=scope)
        self._begin = place
        inner = tuple(statements(self.kernel.body))
        self._written = frozenset(
            s.ref.tensor for s in inner if isinstance(s, ir.Store | ir.Update)
        )
        given = Counter((s.name, s.op) for s in inner if isinstance(s, ir.Accumulate))
        several = {name for name, op in given if op != "="}
        self._lasting = frozenset(n for (n, _), times in given.items() if times == 1) - several
        blocks = [folds[0].count for folds in self.kernel.grid]
        threads = {tuple(f.count for f in space.threads) for space in self.kernel.spaces}
        again = 2 if self.kernel.panels else 1  # rather than kept over a pipeline
        numbers = divided(blocks) + again * sum(map(divided, threads))
        shared = _SHARED_BASE if self.kernel.shared else 0
        self._compute(place, {"integer": _BEGIN + numbers + shared, "branch": 1})
        self._block_statement(self.kernel.body, place)
        for begin, end in self._by_few:
            if end < len(self.work):  # the others are not done
                self._predicated(begin, end)
        return self

    def in_last(self, place: Place) -> bool:
        """Whether only the last block of each group comes to a place."""
        grid = len(self.kernel.grid)
        return self.among is not None and sum(v.startswith(GRID) for v in place.loops) < grid

    # Where things are.

    def _layout_of(self, ref: ir.TensorRef) -> ir.Layout:
        return self.program.tensor(ref.tensor).layout

    # What is noted.

    def _access(
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
        tensor = self.program.tensor(ref.tensor)
        layout = tensor.layout
        offset = self._scopes.linear_index(layout.place(ref), place)
        computed = [s.value for s in ref.subscripts if isinstance(s, ir.Computed)]
        if computed:
            offset += self._scopes.linear_index(far_apart(computed), place)
            place = replace(place, exact=False)
        if kind is None and tensor.shared:
            kind = Memory.SHARED_WRITE if write else Memory.SHARED_READ
        elif kind is None:
            kind = Memory.GLOBAL_WRITE if write else Memory.GLOBAL_READ
        size = width * layout.itemsize
        box = self._scopes.box(ref, layout, place.scope) if kind.is_global else None
        around = [self.written_out[v] for v in outside.loops if v in self.written_out]
        early = None if ahead is None else ahead > 0
        ahead = max(ahead or 1, math.prod(around))
        different = 1.0 if write else self._addresses.different(offset, place, outside)
        if kind is Memory.GLOBAL_READ and not computed and ref.tensor not in self._written:
            loops = (v for v in outside.loops if not v.startswith(GRID))
            still = (v for v in loops if not offset.factors.get(v) and v not in self.written_out)
            different /= math.prod(outside.loops[v] for v in still)
        self.accesses.append(
            Access(
                *(kind, ref.tensor, size, place, offset, outside, box, ahead, early, self.phase),
                different=different,
                swizzle=layout.swizzle,
            )
        )
        if kind is not Memory.GLOBAL_COPY:  # one instruction reads and writes
            self._compute(place, {"memory": different})
        if computed:
            self._compute(place, {"integer": GATHERED})
        elif kind not in (Memory.GLOBAL_COPY, Memory.SHARED_COPY):
            if kind is Memory.GLOBAL_READ and self._addresses.is_uniform(offset, outside):
                self._compute(place, {"integer": UNIFORM * different})
            for where, own in self._addresses.needed(tensor, offset, outside, self._begin):
                self._compute(where, own)

    def _compute(self, place: Place, instructions: Instructions) -> None:
        if instructions:
            self.work.append((place, instructions))

    # Statements, as ``cuda.emit.block`` has them.

    def _block_statement(self, statement: ir.Statement, place: Place) -> None:
        """A statement that all threads of a block run together."""
        match statement:
            case ir.Block(body=body) if not alone(statement):
                for s in body:
                    self._block_statement(s, place)
            case ir.Barrier():
                self._compute(place, {"barrier": 1})
            case ir.Declare():
                self._declare(statement, place)
            case ir.Carry():
                self._carry(statement, place)
            case ir.For(loop=loop, body=body, pause=pause) if uniform(statement):
                within = self._serial(loop.fold, place, pause)
                with self._one_phase():
                    self._block_statement(body, within)
            case ir.Pipeline():
                self._pipeline(statement, place)
            case ir.Fill():
                self.phase += not self._piped
                self._panel_fill(statement, place, asynchronous=statement.asynchronous)
            case ir.For() | ir.Block() | ir.Accumulate() if combined_of(statement):
                self._combined(statement, place)
            case ir.Block() | ir.For() | ir.Store() | ir.Update() | ir.Let() | ir.Accumulate():
                self.phase += not self._piped
                taking_part = self._taking_part(statement, place)
                if not taking_part.active.all():
                    self._test(taking_part)
                begin = len(self.work)
                self._loops(statement, taking_part)
                if not taking_part.active.all() and self._parts.of(statement) != self._reading:
                    self._by_few.append((begin, len(self.work)))
            case ir.Last():
                self._last(statement, place)
            case ir.First() | ir.Within() | ir.Prefetch() | ir.Matrix() | ir.Scan():
                raise ir.IRError(f"a GPU has no {type(statement).__name__}")
            case _:
                assert_never(statement)

    def _last(self, last: ir.Last, place: Place) -> None:
        """What one of several blocks does in the end, as ``last_of`` of the prelude and after it.
        Its registers are those that the others are done with."""
        self._compute(place, {"barrier": 2, "integer": _COUNTED, "branch": 2})
        self._compute(place.by(self._threads == 0), {"memory": 1, "integer": 2 * _FENCE})
        self.among = last.among
        number = next(k for k, folds in enumerate(self.kernel.grid) if last.among in folds)
        loops = {v: n for v, n in place.loops.items() if v != f"{GRID}{number}"}
        held, self.held_words = self.held_words, {}
        self._begin = replace(place, loops=loops)
        self._block_statement(last.body, self._begin)
        self.held_words = max(held, self.held_words, key=lambda words: sum(words.values()))

    @contextmanager
    def _one_phase(self) -> Iterator[None]:
        """Inside of a loop whose iterations are all of one phase."""
        around = self._piped
        self.phase += not around
        self._piped = True
        yield
        self._piped = around

    def _loops(self, statement: ir.Statement, place: Place) -> None:
        """Loops of one thread, from the outermost."""
        match statement:
            case ir.For() | ir.Block() | ir.Accumulate() if combined_of(statement):
                self._combined(statement, place)
            case ir.Declare():
                self._declare(statement, place)
            case ir.Carry():
                self._carry(statement, place)
            case ir.For(loop=loop, body=body) if loop.kind is ir.Kind.THREAD:
                self._loops(body, place)
            case ir.For(loop=loop, body=body, pause=pause) if loop.kind is ir.Kind.SERIAL:
                times = written_out(statement)
                self._loops(body, self._serial(loop.fold, place, pause, times))
            case ir.For():
                self._thread_body(*chain(statement), place)
            case ir.Block(body=parts) if not alone(statement):
                for s in parts:
                    self._loops(s, place)
            case _:
                self._thread_body((), statement, place)

    def _declare(self, declare: ir.Declare, place: Place) -> None:
        own = tuple(f for f in declare.over if f not in self.geometry.threads)
        words, count = max(1, declare.type.compute.bits // 32), math.prod(f.count for f in own)
        self.held[declare.name] = own, words
        if not declare.seldom or count <= MANY:
            self.held_words[declare.name] = words * count
        self._starting.pop(declare.name, None)
        if declare.start is not None and declare.name in self.held_words:
            self._starting[declare.name] = place
        elif declare.start is not None:
            self._compute(place, self._moved(declare.name))

    def _goes_on(self, name: str, place: Place) -> None:
        """An accumulator is added to: it is set to its start before loops. Where all iterations are
        written out, compilers know what the first one adds to."""
        begin = self._starting.get(name)
        loops = (v for v in place.loops if begin is not None and v not in begin.loops)
        if begin is not None and any(self.written_out.get(v) != place.loops[v] for v in loops):
            self._compute(begin, self._moved(name))
            del self._starting[name]

    def _moved(self, name: str) -> Instructions:
        """What it takes to set some accumulators, or to read them from local memory. An instruction
        sets two registers."""
        folds, words = self.held[name]
        count = words * math.prod(f.count for f in folds)
        return {"integer": -(-count // 2)} if name in self.held_words else {"local": count}

    def _carry(self, carry: ir.Carry, place: Place) -> None:
        folds, words = self.held[carry.name]
        count = math.prod(f.count for f in folds)
        kind = "double" if words > 1 else "float"
        self._compute(place, {kind: count * (1 if carry.lost is None else 6)})
        for name in (carry.total, carry.lost or ""):
            self._goes_on(name, place)
        for name in (carry.total, carry.total, carry.name):  # read, written; zero again
            if name != carry.total or name not in self.held_words:
                self._compute(place, self._moved(name))

    def _serial(
        self, fold: ir.Fold, place: Place, pause: ir.Pause | None = None, times: int = 1
    ) -> Place:
        """Inside of a serial loop, of which ``times`` iterations are written out at once."""
        count = self.geometry.iterations(fold)
        if pause is not None and count > 1:
            stretches = -(-count // pause.every) - (not pause.after_last)
            for s in statements(pause.then):
                if isinstance(s, ir.Carry) and stretches:
                    self._carry(s, place.within(f"{fold.name} stretch", stretches))
        if times > 1:
            self.written_out[fold.name] = times
        if count > 1 and times < count:
            turns = -(-count // times)
            turn = place.within(fold.name, turns)
            self._compute(turn, {"integer": 2, "branch": 1})
        return self._scopes.entered([fold], place)

    def _taking_part(self, statement: ir.Statement, place: Place) -> Place:
        """For the threads that have a part in what each one does on its own."""
        return self._by(self._parts.of(statement), place)

    def _test(self, part: Place) -> None:
        """Who takes part is asked once."""
        if self._addresses.is_new(part.active.tobytes()):
            self._compute(self._begin, {"integer": 1})

    def _by(self, parts: Iterable[Part], place: Place) -> Place:
        """For the threads of any of these parts."""
        some = []
        for part in parts:
            own = self._threads < (self.kernel.threads if part.below is None else part.below)
            for fold in part.firsts:
                iteration = place.scope[fold.name].threads
                own = own if iteration is None else own & (iteration == 0)
            some.append(own)
        return place.by(np.any(some, axis=0)) if some else place

    # Panels, as ``cuda.emit.pipeline`` and ``cuda.emit.fill`` have them.

    def _pipeline(self, pipeline: ir.Pipeline, place: Place) -> None:
        if pipeline.meet:
            self._compute(place, {"barrier": 1})
        asynchronous = pipeline.ahead is ir.Ahead.ASYNCHRONOUS
        within = self._serial(pipeline.loop.fold, place, pipeline.pause)
        ahead = pipeline.buffers - 1 if asynchronous else 1
        count = self.geometry.iterations(pipeline.loop.fold)
        loop, known = long(pipeline, count), tiles_written_out(pipeline, count) > 1
        turn = (TURN_KNOWN if known else TURN) * (loop and count > pipeline.buffers)
        self._compute(within, {"barrier": 1, "integer": turn})
        # The first ones are filled before; all of these take about as much as one in the loop.
        # Addresses of those whose buffers are known have constants beside what is there.
        filled = loop * len(pipeline.fills) * (1 + (0 if known else max(0, count - ahead)))
        self._compute(place, {"integer": FILL * filled})
        with self._one_phase():
            for fill in pipeline.fills:
                self._panel_fill(fill, within, asynchronous=asynchronous, ahead=ahead)
                if pipeline.ahead is ir.Ahead.REGISTERS:
                    own = [s.loop for s in statements(fill.body) if isinstance(s, ir.For)]
                    self.held_words[fill.panel] = math.prod(
                        x.fold.count for x in own if x.kind is not ir.Kind.THREAD
                    )
            self._block_statement(pipeline.body, within)
        if pipeline.steps is not None:
            self.held_words[pipeline.steps.name] = 2 * self.read_words  # two sets
            # Each step has places of its own, and two buffers of each panel are read.
            self._compute(within, {"integer": TURN * len(pipeline.fills)})

    def _panel_fill(
        self, fill: ir.Fill, outside: Place, *, asynchronous: bool, ahead: int = 0
    ) -> None:
        """A box that is copied, so many iterations before it is needed."""
        loops, store = chain(fill.body)
        if not isinstance(store, ir.Store):
            raise ir.IRError("a panel is filled by one store")
        place = self._taking_part(fill.body, outside)
        width = math.prod(x.fold.count for x in loops if x.kind is ir.Kind.VECTOR)
        steps = [x.fold for x in loops if x.kind in (ir.Kind.UNROLL, ir.Kind.SERIAL)]
        lanes = [x.fold.name for x in loops if x.kind is ir.Kind.VECTOR]
        place = self._scopes.entered(steps, place, known=False).at(dict.fromkeys(lanes, Linear()))
        ragged = dict.fromkeys(x.fold.dim for x in loops if self.geometry.ragged[x.fold.dim])
        place = self._scopes.there(ragged, place)
        value, source = store.value, place
        if isinstance(value, ir.Select):
            source, value = self._scopes.place_where(value.condition, place), value.then
        if not isinstance(value, ir.Load):
            raise ir.IRError(f"{store.ref.tensor} is filled with what is no copy")
        kind = Memory.SHARED_COPY if asynchronous else Memory.SHARED_WRITE
        layout = self.geometry.program.tensor(fill.panel).layout
        scattered = width if is_transposed(fill, layout) else 1
        for k in range(scattered):
            each = place.at(dict.fromkeys(lanes, Linear(k))) if scattered > 1 else place
            self._access(store.ref, each, outside, width=width // scattered, kind=kind)
        kind = Memory.GLOBAL_COPY if asynchronous else Memory.GLOBAL_READ
        self._access(value.ref, source, outside, width=width, kind=kind, ahead=ahead)
        if asynchronous:
            own = {"integer": COPY + len(source.tests)}
        else:  # zero where there is nothing to read; a branch around what is not there
            own = {"integer": int(source is not place), "branch": _AROUND * bool(ragged)}
            if not place.active.all():
                self._compute(outside, {"integer": 1, "branch": _AROUND})
        self._compute(place, own)

    # Sums of several threads.

    def _combined(self, statement: ir.Statement, place: Place) -> None:
        loops, _ = chain(statement)
        parts = combined_of(statement)
        own = [x.fold for x in loops if x.kind is not ir.Kind.THREAD]
        folds = parts[0][1].folds
        bits = thread_bits(self.geometry.space_of[folds[0].dim].threads, folds)
        each = self._scopes.entered(own, place)
        asking = self._by(self._parts.asking(statement), each)
        turn = in_turn(own, (c.type.compute.itemsize for _, c in parts))
        for name, combined in parts:
            kept = [f for f in combined.folds if f not in self.geometry.threads]
            times = math.prod(map(self.geometry.iterations, kept)) - 1
            self._over_threads(name, combined, bits, times, each, asking)
        if warps_apart(bits):
            outer = self._scopes.entered(own[:turn], place)
            self._compute(outer, {"barrier": 2 if turn else 1})
            self._reading = self._parts.asking(statement)

    def _over_threads(
        self, name: str, combined: ir.Combined, bits: int, times: int, place: Place, asking: Place
    ) -> None:
        """As ``over_warp`` and ``over_warps`` of the prelude; ``times``: how often a thread adds up
        its own sums before; ``asking``: for those that need what other warps have."""
        step = accumulated(combined.op, ir.Variable(name, combined.type))
        shuffles, warps = (bits % WARP).bit_count(), warps_apart(bits)
        words = max(1, combined.type.compute.bits // 32)
        self._compute(place, {k: n * (times + shuffles) for k, n in step.items()})
        self._compute(place, {"shuffle": shuffles * words})
        if not warps:
            return
        size, first = combined.type.compute.itemsize, self._threads & ~warps
        if first.any() and self._addresses.is_new(("warps", warps)):
            self._compute(asking, {"integer": 1})
        self._exchanged(Memory.SHARED_WRITE, self._threads, size, place)
        for apart in range(0, warps + 1, warps & -warps):
            if not apart & ~warps:
                self._exchanged(Memory.SHARED_READ, first + apart, size, asking)
        others = (1 << warps.bit_count()) - 1
        self._compute(asking, {k: n * others for k, n in step.items()})

    def _exchanged(
        self,
        kind: Memory,
        numbers: np.ndarray[tuple[int], np.dtype[np.int64]],
        size: int,
        place: Place,
    ) -> None:
        offset = Linear(0, {}, numbers * size)
        self.accesses.append(Access(kind, "", size, place, offset, place))
        self._compute(place, {"memory": 1})

    # What a thread does at points of its own, as ``cuda.emit.thread_body`` has it.

    def _thread_body(self, loops: Sequence[ir.Loop], body: ir.Statement, place: Place) -> None:
        if any(x.fold.level == "mma" for x in loops):
            self._tensor_cores(loops, body, place)
            return
        geometry = self.geometry
        dims = guarded(geometry, body, loops, place.scope)
        parts = body.body if isinstance(body, ir.Block) else (body,)
        lane = loops[-1].fold if loops and loops[-1].kind is ir.Kind.VECTOR else None
        if lane is None or lane.dim not in dims:
            self._body(geometry, loops, parts, dims, place, lane, partial=False)
            return
        dim = geometry.dims[lane.dim]
        reach = sum(x.fold.step * (x.fold.count - 1) for x in loops if x.fold.dim == lane.dim)
        partial = dim.extent % lane.count != 0
        if not partial or reach >= dim.extent:
            self._body(geometry, loops, parts, dims, place, lane, partial=partial)
            return
        first = self._scopes.linear_index(ir.Affine.variable(lane.dim), place)
        whole = Condition(first + Linear(reach), dim.first + dim.extent)
        rest = tuple(d for d in dims if d != lane.dim)
        there = geometry.all_there(lane.dim)
        self._body(there, loops, parts, rest, place.where(whole), lane, partial=False)
        edge = place.where(whole.negated())
        self._body(geometry, loops, parts, dims, edge, lane, partial=True)

    def _body(
        self,
        geometry: Geometry,
        loops: Sequence[ir.Loop],
        parts: Sequence[ir.Statement],
        dims: Collection[str],
        place: Place,
        lane: ir.Fold | None,
        *,
        partial: bool,
    ) -> None:
        """What is read, then the loops."""
        begin = len(self.work)
        found = fragments(geometry, loops, parts)
        for fragment in found:
            self._read_fragment(fragment, place)
        kept = {s.value for s in parts if isinstance(s, ir.Accumulate) and s.op == "="}
        words = (
            math.prod(f.count for f in x.over) * x.length * x.load.type.bits / 32
            for x in found
            if x.load not in kept
        )
        self.read_words = max(self.read_words, math.ceil(sum(words)))
        inside = math.prod(self.geometry.iterations(x.fold) for x in loops)
        tested = self._tested([x.fold for x in loops if x.fold != lane], dims, place)
        branches = tested if inside >= _WORTH * tested else 0
        if dims:
            asked = any(f.guarded for f in found)  # which point it is, where it is read
            test = 1 if asked else _TEST
            self._compute(place, {"integer": test * tested, "branch": branches})
        within = self._scopes.entered([x.fold for x in loops if x.fold != lane], place)
        outside = [d for d in dims if lane is None or d != lane.dim]
        if lane is not None and lane.dim in dims and not partial:
            outside.append(lane.dim)
            within = within.at({lane.name: Linear()})
        within = self._scopes.there(outside, within)
        known = {f.load.ref for f in found}
        gathered: dict[ir.TensorRef, int] = {}
        if lane is not None:
            rest = [d for d in dims if d not in outside]
            gathered = {} if lane.dim in rest else _gathered(geometry, parts, lane)
            for ref, width in gathered.items():
                steps = ir.Fold(lane.dim, lane.level, width, lane.count // width)
                each = self._scopes.entered([steps], within, known=False)
                self._access(ref, each, place, width=width, write=True)
            within = self._scopes.there(rest, self._scopes.entered([lane], within))
        self._count_points(geometry, loops, parts, within, place, known, gathered)
        if dims and not branches:
            for under, own in self.work[begin:]:
                if len(under.tests) > len(place.tests):
                    self._idle(under, replace(under, tests=place.tests), own)

    def _tested(self, loops: Sequence[ir.Fold], dims: Iterable[str], place: Place) -> int:
        """Iterations of these loops of which some threads' points may not be there."""
        found = 1
        for name in dims:
            own = [f for f in loops if f.dim == name]
            dim = self.geometry.dims[name]
            around = place.at({f.name: Linear() for f in own})
            furthest = self._scopes.linear_index(ir.Affine.variable(name), around).most(place.loops)
            counts = [range(self.geometry.iterations(f)) for f in own]
            reached = (
                sum(k * f.step for k, f in zip(turn, own, strict=True))
                for turn in itertools.product(*counts)
            )
            found *= sum(furthest + more >= dim.first + dim.extent for more in reached)
        return found

    def _predicated(self, begin: int, end: int) -> None:
        """What some threads do takes a turn of all warps, if it is short."""
        own = self.work[begin:end]
        count = (
            sum(n.values()) * math.prod(k for v, k in p.loops.items() if not v.startswith(GRID))
            for p, n in own
        )
        if sum(count) <= _SHORT_PHASE:
            for place, instructions in own:
                self._idle(place, replace(place, active=self._begin.active), instructions)

    def _idle(self, place: Place, outside: Place, instructions: Instructions) -> None:
        """Instructions under a test take a turn of all warps that come to it, where no branch leads
        around them."""
        turns = sum(instructions.values())
        self._compute(outside, {"integer": turns})
        self._compute(place, {"integer": -turns})

    def _read_fragment(self, fragment: Fragment, place: Place) -> None:
        """An operand that is read before the loops."""
        around = self._scopes.entered(fragment.over, place)
        row = {f.name: Linear() for f, _ in fragment.row}
        for width, group in itertools.groupby(fragment.pieces(), key=lambda piece: piece[1]):
            first, *others = (begin for begin, _ in group)
            within = around
            if fragment.row:
                name = fragment.row[0][0].name
                turns = {name: width} if others else {}
                within = around.at({**row, name: Linear(first, turns)})
                within = within.within(name, 1 + len(others)) if others else within
            within = self._scopes.there(fragment.guarded, within)
            self._access(fragment.load.ref, within, place, width=width)
            if fragment.guarded:
                self._compute(within, {"integer": len(fragment.guarded)})

    def _count_points(
        self,
        geometry: Geometry,
        loops: Sequence[ir.Loop],
        parts: Sequence[ir.Statement],
        place: Place,
        outside: Place,
        known: Collection[ir.TensorRef],
        gathered: Collection[ir.TensorRef],
    ) -> None:
        """The statements of one point. ``known``: what was read before; ``gathered``: what is
        written in vectors."""
        depends = Dependence(geometry, [x.fold for x in loops], self.held)
        read = dict.fromkeys(known, -1)
        for statement in _flat(parts):
            for value in values_in(statement):
                self._in_place(value, place, outside, read)
            match statement:
                case ir.Let(name=name, value=value):
                    depends.lets[name] = depends.folds(value)
                    made = instructions_of((value,), depends.times, self._known)
                case ir.Accumulate(name=name, op=op, value=value):
                    self._goes_on(name, outside)
                    made = instructions_of(inside(op, value), depends.times, self._known)
                    for kind, number in accumulated(op, value).items():
                        made[kind] += number * depends.all
                case ir.Store(ref=ref, value=value):
                    made = instructions_of((value,), depends.times, self._known)
                    if ref not in gathered:
                        self._access(ref, place, outside, write=True)
                    kept = self.program.tensor(ref.tensor).layout.type
                    for kind, number in conversion(value.type.compute, kept).items():
                        made[kind] += number * depends.all
                case ir.Update(ref=ref, op=op, value=value):
                    made = instructions_of((value,), depends.times, self._known)
                    for kind, number in accumulated(op, value).items():
                        made[kind] += number * depends.all
                    self._access(ref, place, outside)
                    self._access(ref, place, outside, write=True)
                case _:
                    raise ir.IRError(f"{type(statement).__name__} lies in an unrolled loop")
            for constants in {k for v in values_in(statement) for k in constants_of(v)}:
                if self._addresses.is_new(("constant", constants)):
                    self._compute(self._begin.by(place.active), {"integer": _CONSTANTS})
            if all(v.startswith(GRID) or v in self.written_out for v in outside.loops):
                inner = (v for value in values_in(statement) for v in walk(value))
                self._known |= {v for v in inner if self._lasts(v)}
            # Of all iterations that are written out, each takes its share.
            share = {k: n / depends.all for k, n in made.items() if n}
            self._compute(place, share)

    def _lasts(self, value: ir.Value) -> bool:
        """Whether a value is made of nothing but what lasts."""
        leaves = [v for v in walk(value) if not children(v)]
        return all(
            isinstance(v, ir.Const) or (isinstance(v, ir.Variable) and v.name in self._lasting)
            for v in leaves
        )

    def _in_place(
        self, value: ir.Value, place: Place, outside: Place, read: dict[ir.TensorRef, int]
    ) -> None:
        """What is read where it is used. ``read``: elements → their accesses; -1 for those that
        were read before."""
        match value:
            case ir.Select(condition=condition, then=then, otherwise=otherwise):
                self._in_place(condition, place, outside, read)
                holds = self._scopes.place_where(condition, place)
                self._in_place(then, holds, outside, read)
                bounds = bounds_of(condition)
                if bounds is not None and len(bounds) == 1:
                    failed = place.where(holds.tests[-1].negated())
                else:
                    failed = replace(place, exact=False)
                self._in_place(otherwise, failed, outside, read)
                return
            case ir.Binary(op="&&" | "||", left=left, right=right):
                self._in_place(left, place, outside, read)
                self._in_place(right, replace(place, exact=False), outside, read)
                return
            case ir.Load(ref=ref) if ref not in read:
                read[ref] = len(self.accesses)
                self._access(ref, place, outside)
            case ir.Load(ref=ref) if read[ref] >= 0 and self.accesses[read[ref]].place != place:
                # Under another condition: compilers read it again, or do not.
                before = self.accesses[read[ref]]
                unsure = replace(before, place=replace(before.place, exact=False))
                self.accesses[read[ref]] = unsure
        for inner in children(value):
            self._in_place(inner, place, outside, read)

    # Tensor cores, as ``cuda.emit.mma`` has them.

    def _tensor_cores(self, loops: Sequence[ir.Loop], body: ir.Statement, place: Place) -> None:
        step = body.body[0] if isinstance(body, ir.Block) else body
        assert isinstance(step, ir.Accumulate)
        found = factors(step.value)
        assert found is not None
        rows = next(x.fold.dim for x in loops if x.fold.level == "half")
        columns = next(x.fold.dim for x in loops if x.kind is ir.Kind.VECTOR)
        depth = next(x.fold for x in loops if x.fold.level == "mma")
        over, _ = self.held[step.name]
        kept = {f.dim: f for f in over if f.level == "register"}
        terms = self._layout_of(found[0].ref).place(found[0].ref).terms
        first = any(self.geometry.dim_of(n) == rows for n, _ in terms)
        by_row, by_column = found if first else (found[1], found[0])
        for load, dim, count in ((by_row, rows, 4), (by_column, columns, 2)):
            self._matrix_fragments(load, dim, depth, kept.get(dim), count, place)
        self._goes_on(step.name, place)
        self._compute(self._scopes.entered(kept.values(), place), {"mma": 1})
        words = sum(n * (kept[d].count if d in kept else 1) for d, n in ((rows, 4), (columns, 2)))
        self.read_words = max(self.read_words, words)

    def _matrix_fragments(
        self,
        load: ir.Load,
        dim: str,
        depth: ir.Fold,
        kept: ir.Fold | None,
        count: int,
        place: Place,
    ) -> None:
        lane = self._threads % WARP
        if load.type == FLOAT32:
            within = self._scopes.entered([kept] if kept else [], place)
            for k in range(count):
                row = lane // 4 + (8 * (k % 2) if count == 4 else 0)
                point = lane % 4 + 4 * (k // 2 if count == 4 else k)
                at = self._fragment_place(within, dim, row, depth, point)
                self._access(load.ref, at, place)
                self._compute(at, {"convert": 1})
            return
        pairs = count == 2 and kept is not None and kept.count % 2 == 0
        if kept is not None and pairs:
            kept = ir.Fold(dim, kept.level, 2 * kept.step, kept.count // 2)
        within = self._scopes.entered([kept] if kept else [], place, known=not pairs)
        along = self._layout_of(load.ref).step(load.ref, depth.name) == 1
        if pairs:
            row = lane // 16 * 8 + (lane % 8 if along else 0)
            point = lane // 8 % 2 * 8 if along else lane % 16
        elif count == 4:
            row = lane % 16 if along else lane // 8 % 2 * 8
            point = lane // 16 * 8 + (0 if along else lane % 8)
        else:
            row = lane % 8 if along else 0 * lane
            point = lane // 8 % 2 * 8 if along else lane % 16
        at = self._fragment_place(within, dim, row, depth, point)
        layout = self._layout_of(load.ref)
        offset = self._scopes.linear_index(layout.place(load.ref), at)
        self.accesses.append(
            Access(
                *(Memory.MATRIX_READ, load.ref.tensor, 16, within, offset, place),
                matrices=4 if pairs else count,
                swizzle=layout.swizzle,
            )
        )
        self._compute(within, {"memory": 1})

    def _fragment_place(
        self,
        place: Place,
        dim: str,
        row: np.ndarray[tuple[int], np.dtype[np.int64]],
        depth: ir.Fold,
        point: np.ndarray[tuple[int], np.dtype[np.int64]],
    ) -> Place:
        """The place with what a thread has of a dimension and of the reduction."""
        found = dict[str, Linear]()
        for fold in self.geometry.folds[dim]:
            if fold.level in ("thread", "half", "lane"):
                found[fold.name] = Linear(0, {}, row) if fold.level == "thread" else Linear()
        return place.at({**found, depth.name: Linear(0, {}, point)})


def _gathered(
    geometry: Geometry, parts: Sequence[ir.Statement], lane: ir.Fold
) -> dict[ir.TensorRef, int]:
    """Elements that are written in vectors, and how many at once."""
    found = {}
    for statement in parts:
        if isinstance(statement, ir.Store):
            ref, layout = statement.ref, geometry.program.tensor(statement.ref.tensor).layout
            if all(isinstance(s, ir.Affine) for s in ref.subscripts):
                width = geometry.width(layout, layout.place(ref), [lane])
                if width > 1:
                    found[ref] = width
    return found


def _flat(parts: Iterable[ir.Statement]) -> Iterable[ir.Statement]:
    for s in parts:
        if isinstance(s, ir.Block):
            yield from _flat(s.body)
        else:
            yield s
