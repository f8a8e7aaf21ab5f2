"""Goes through a kernel as its emitter does, and notes what it asks of memory and computes.

What a thread reads at once, which points are guarded and what is written out is said by the same
functions of ``loopir`` that the emitter asks; a trace of the emulator holds the two together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from tcl.codegen.counters.addresses import divided
from tcl.codegen.counters.arithmetic import accumulated
from tcl.codegen.counters.places import Condition, Linear, Place
from tcl.codegen.counters.record import Record
from tcl.codegen.counters.requests import Memory
from tcl.codegen.counters.scopes import GRID
from tcl.codegen.counters.thread_body import record_thread_body
from tcl.codegen.devices.banks import WARP
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.combining import CombinedSums, combined_of
from tcl.codegen.loopir.unrolling import counts_buffers, long, tiles_written_out, written_out
from tcl.codegen.loopir.walk import alone, chain, copied, is_transposed, uniform

COPY = 2
"""Integer instructions of an asynchronous copy, which has no constant beside its address."""
GROUP = 3
"""Reads of nothing, which NVRTC puts before asynchronous copies that follow each other."""
_TEST = 2
"""For asking whether there is something to copy: which one it is, and a comparison."""
_AROUND = 3
"""Branches around what some threads do not do."""


def record_fill(
    record: Record, fill: ir.Fill, outside: Place, *, asynchronous: bool, ahead: int = 0
) -> None:
    """A box that is copied, so many iterations before it is needed."""
    loops, store, load, condition = copied(fill)
    place = record.taking_part(fill.body, outside)
    width = math.prod(x.fold.count for x in loops if x.kind is ir.Kind.VECTOR)
    steps = [x.fold for x in loops if x.kind in (ir.Kind.UNROLL, ir.Kind.SERIAL)]
    lanes = [x.fold.name for x in loops if x.kind is ir.Kind.VECTOR]
    place = record.scopes.entered(steps, place, known=False).at(dict.fromkeys(lanes, Linear()))
    ragged = dict.fromkeys(x.fold.dim for x in loops if record.geometry.ragged[x.fold.dim])
    source = place = record.scopes.there(ragged, place)
    if condition is not None:
        source = record.scopes.place_where(condition, place)
    kind = Memory.SHARED_COPY if asynchronous else Memory.SHARED_WRITE
    layout = record.geometry.program.tensor(fill.panel).layout
    scattered = width if is_transposed(fill, layout) else 1
    for k in range(scattered):
        each = place.at(dict.fromkeys(lanes, Linear(k))) if scattered > 1 else place
        record.access(store.ref, each, outside, width=width // scattered, kind=kind)
    kind = Memory.GLOBAL_COPY if asynchronous else Memory.GLOBAL_READ
    record.access(load.ref, source, outside, width=width, kind=kind, ahead=ahead)
    if asynchronous:
        own = {"integer": COPY + _TEST * sum(_different(x, place, outside) for x in source.tests)}
    else:  # zero where there is nothing to read; a branch around what is not there
        own = {"integer": int(source is not place), "branch": _AROUND * bool(ragged)}
        if not place.active.all():
            record.compute(outside, {"integer": 1, "branch": _AROUND})
    record.compute(place, own)


def _different(test: Condition, place: Place, outside: Place) -> float:
    """How many times a test is asked for each copy: once for those that it says the same of."""
    copies = [v for v in place.loops if v not in outside.loops]
    return 1 / math.prod(place.loops[v] for v in copies if not test.value.factors.get(v))


def record_combined(record: Record, statement: ir.Statement, place: Place) -> None:
    sums, geometry = CombinedSums.of(record.geometry, statement), record.geometry
    each, vectors = (record.scopes.entered(own, place) for own in (sums.own, sums.vectors))
    asking = record.parts.asking(statement)
    for name, combined in sums.parts:
        kept = [f for f in combined.folds if f not in geometry.threads]
        times = math.prod(map(geometry.iterations, kept)) - 1
        # What is added up: first, by a thread, its own sums.
        step = accumulated(combined.op, ir.Variable(name, combined.type))
        shuffles, words = (sums.bits % WARP).bit_count(), max(1, combined.type.compute.bits // 32)
        record.compute(each, {k: n * (times + shuffles) for k, n in step.items()})
        record.compute(each, {"shuffle": shuffles * words})
        if sums.warps:
            others = (1 << sums.warps.bit_count()) - 1
            record.compute(record.by(asking, each), {k: n * others for k, n in step.items()})
            size = sums.width * combined.type.compute.itemsize
            _over_warps(record, sums.warps, size, vectors, record.by(asking, vectors))
        if isinstance(combined.value, ir.Variable):  # nobody needs the thread's own sum any more
            freed = record.held_words.get(combined.value.name, 0)
            record.held_words[name] = max(0, record.held_words.get(name, 0) - freed)
    if sums.warps:
        outer = record.scopes.entered(sums.own[: sums.turn], place)
        record.compute(outer, {"barrier": 2 if sums.turn else 1})
        record.reading = asking


def _over_warps(record: Record, warps: int, size: int, place: Place, asking: Place) -> None:
    """What is handed over, as by ``over_warps`` of the prelude, so many bytes at once; ``asking``:
    for those that need what other warps have."""
    first = record.threads & ~warps
    if first.any() and record.addresses.is_new(("warps", warps)):
        record.compute(asking, {"integer": 1})
    record.hand_over(Memory.SHARED_WRITE, record.threads, size, place)
    for apart in range(0, warps + 1, warps & -warps):
        if not apart & ~warps:
            record.hand_over(Memory.SHARED_READ, first + apart, size, asking)


# Integer instructions, as NVRTC 13.5 has them for sm_90, about.
_BEGIN = 4
"""Of a kernel: stack, descriptor, numbers of block and thread."""
_SHARED_BASE = 3
"""For where shared memory begins."""
_SHORT_PHASE = 16
"""Instructions of some threads up to which no branch leads around them."""
TURN, FILL = 12, 11
"""For which buffer comes next and what is waited for; and for each of a turn's panels."""
TURN_COUNTED, FILL_COUNTED = 6, 7
"""The same where a loop counts its buffers."""
TURN_KNOWN = 2
"""For a turn whose buffer is known, as so many are written out as there are."""
_COUNTED, _FENCE = 6, 3
"""For the place where blocks are counted and for asking who is the last; and for a fence."""


def record_of(program: ir.Built, kernel: ir.Kernel, idle_sums: bool) -> Record:
    """What a kernel of a program does. ``idle_sums``: as in ``Record``."""
    record = Record(program, kernel, idle_sums)
    blocks = [folds[0].count for folds in kernel.grid]
    threads = {tuple(f.count for f in space.threads) for space in kernel.spaces}
    again = 2 if kernel.panels else 1  # rather than kept over a pipeline
    numbers = divided(blocks) + again * sum(map(divided, threads))
    shared = _SHARED_BASE if kernel.shared else 0
    place = record.begin
    record.compute(place, {"integer": _BEGIN + numbers + shared, "branch": 1})
    _block_statement(record, kernel.body, place)
    for begin, end in record.by_few:
        if end < len(record.work):  # the others are not done
            _predicated(record, begin, end)
    return record


def _block_statement(record: Record, statement: ir.Statement, place: Place) -> None:
    """A statement that all threads of a block run together."""
    match statement:
        case ir.Block(body=body) if not alone(statement):
            for k, s in enumerate(body):
                record.with_tile = _only_reads(s) and _begins_to_fill(body[k + 1 :])
                _block_statement(record, s, place)
        case ir.Barrier():
            record.copying = False
            record.compute(place, {"barrier": 1})
        case ir.Declare():
            record.declare(statement, place)
        case ir.Carry():
            record.carry(statement, place)
        case ir.For(loop=loop, body=body, pause=pause) if uniform(statement):
            within = record.serial(loop.fold, place, pause)
            with record.one_phase():
                _block_statement(record, body, within)
        case ir.Pipeline():
            _pipeline(record, statement, place)
        case ir.Fill():
            record.phase += not record.piped and not record.copying
            if statement.asynchronous and not record.copying:
                record.compute(place, {"integer": GROUP})
            record.copying = statement.asynchronous
            record_fill(record, statement, place, asynchronous=statement.asynchronous)
        case ir.For() | ir.Block() | ir.Accumulate() if combined_of(statement):
            record_combined(record, statement, place)
        case ir.Block() | ir.For() | ir.Store() | ir.Update() | ir.Let() | ir.Accumulate():
            record.phase += not record.piped
            taking_part = record.taking_part(statement, place)
            if not taking_part.active.all():
                _test(record, taking_part)
            begin = len(record.work)
            _loops(record, statement, taking_part)
            if not taking_part.active.all() and record.parts.of(statement) != record.reading:
                record.by_few.append((begin, len(record.work)))
        case ir.Last():
            _last(record, statement, place)
        case ir.First() | ir.Within() | ir.Prefetch() | ir.Matrix() | ir.Scan():
            raise ir.IRError(f"a GPU has no {type(statement).__name__}")
        case _:
            assert_never(statement)


def _only_reads(statement: ir.Statement) -> bool:
    """Whether it reads to registers what others need later."""
    _, inner = chain(statement)
    return isinstance(inner, ir.Accumulate) and inner.op == "=" and isinstance(inner.value, ir.Load)


def _begins_to_fill(following: Sequence[ir.Statement]) -> bool:
    """Whether panels are filled next: what is read before is on its way with their first tile."""
    rest = (s for s in following if not (isinstance(s, ir.Declare) or _only_reads(s)))
    return isinstance(next(rest, None), ir.Pipeline | ir.Fill)


def _last(record: Record, last: ir.Last, place: Place) -> None:
    """What one of several blocks does in the end, as ``last_of`` of the prelude and after it.
    Its registers are those that the others are done with."""
    record.compute(place, {"barrier": 2, "integer": _COUNTED, "branch": 2})
    record.compute(place.by(record.threads == 0), {"memory": 1, "integer": 2 * _FENCE})
    record.among = last.among
    number = next(k for k, folds in enumerate(record.kernel.grid) if last.among in folds)
    loops = {v: n for v, n in place.loops.items() if v != f"{GRID}{number}"}
    held, record.held_words = record.held_words, {}
    record.begin = replace(place, loops=loops)
    _block_statement(record, last.body, record.begin)
    record.held_words = max(held, record.held_words, key=lambda words: sum(words.values()))


def _loops(record: Record, statement: ir.Statement, place: Place) -> None:
    """Loops of one thread, from the outermost."""
    match statement:
        case ir.For() | ir.Block() | ir.Accumulate() if combined_of(statement):
            record_combined(record, statement, place)
        case ir.Declare():
            record.declare(statement, place)
        case ir.Carry():
            record.carry(statement, place)
        case ir.For(loop=loop, body=body) if loop.kind is ir.Kind.THREAD:
            _loops(record, body, place)
        case ir.For(loop=loop, body=body, pause=pause) if loop.kind is ir.Kind.SERIAL:
            times = written_out(statement, record.geometry)
            _loops(record, body, record.serial(loop.fold, place, pause, times))
        case ir.For():
            record_thread_body(record, *chain(statement), place)
        case ir.Block(body=parts) if not alone(statement):
            for s in parts:
                _loops(record, s, place)
        case _:
            record_thread_body(record, (), statement, place)


def _test(record: Record, part: Place) -> None:
    """Who takes part is asked once."""
    if record.addresses.is_new(part.active.tobytes()):
        record.compute(record.begin, {"integer": 1})


def _pipeline(record: Record, pipeline: ir.Pipeline, place: Place) -> None:
    if pipeline.meet:
        record.compute(place, {"barrier": 1})
    asynchronous = pipeline.ahead is ir.Ahead.ASYNCHRONOUS
    within = record.serial(pipeline.loop.fold, place, pipeline.pause)
    ahead = pipeline.copies_ahead if asynchronous else 1
    count = record.geometry.iterations(pipeline.loop.fold)
    loop, known = long(pipeline, count), tiles_written_out(pipeline, count, record.geometry) > 1
    counted = counts_buffers(pipeline, record.geometry)
    of_turn, of_fill = (TURN_COUNTED, FILL_COUNTED) if counted else (TURN, FILL)
    turn = (TURN_KNOWN if known else of_turn) * (loop and count > pipeline.buffers)
    record.compute(within, {"barrier": 1, "integer": turn})
    # The first ones are filled before; all of these take about as much as one in the loop.
    # Addresses of those whose buffers are known have constants beside what is there.
    filled = loop * len(pipeline.fills) * (1 + (0 if known else max(0, count - ahead)))
    record.compute(place, {"integer": of_fill * filled})
    if asynchronous:
        groups = 1 + max(0, count - ahead)
        record.compute(place, {"integer": GROUP * groups})
    begin = len(record.work)
    with record.one_phase():
        for fill in pipeline.fills:
            record_fill(record, fill, within, asynchronous=asynchronous, ahead=ahead)
            if pipeline.ahead is ir.Ahead.REGISTERS:
                own = (x for x in chain(fill.body)[0] if x.kind is not ir.Kind.THREAD)
                record.held_words[fill.panel] = math.prod(x.fold.count for x in own)
        if asynchronous and loop:
            once = _of_thread(record, begin, within)
            if once <= _SHORT_PHASE:  # no branch leads around what the last turns do not copy
                record.compute(place, {"integer": ahead * once})
        _block_statement(record, pipeline.body, within)
    if pipeline.steps is not None:
        record.held_words[pipeline.steps.name] = 2 * record.read_words  # two sets
        # Each step has places of its own, and two buffers of each panel are read.
        record.compute(within, {"integer": TURN * len(pipeline.fills)})


def _of_thread(record: Record, begin: int, place: Place) -> float:
    """Instructions noted from there on, of a thread that comes once to a place."""
    return sum(
        sum(own.values()) * math.prod(n for v, n in at.loops.items() if v not in place.loops)
        for at, own in record.work[begin:]
        if all(v in at.loops for v in place.loops)
    )


def _predicated(record: Record, begin: int, end: int) -> None:
    """What some threads do takes a turn of all warps, if it is short."""
    own = record.work[begin:end]
    count = (
        sum(n.values()) * math.prod(k for v, k in p.loops.items() if not v.startswith(GRID))
        for p, n in own
    )
    if sum(count) <= _SHORT_PHASE:
        for place, instructions in own:
            record.idle(place, replace(place, active=record.begin.active), instructions)
