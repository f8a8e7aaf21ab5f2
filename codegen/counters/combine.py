"""Sums of several threads, as ``cuda.emit.combine`` has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tcl.codegen.counters.arithmetic import accumulated
from tcl.codegen.counters.places import Place
from tcl.codegen.counters.record import Record
from tcl.codegen.counters.requests import Memory
from tcl.codegen.devices.banks import WARP
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.combining import combined_of, thread_bits, together, warps_apart
from tcl.codegen.loopir.walk import chain


def record_combined(record: Record, statement: ir.Statement, place: Place) -> None:
    loops, _ = chain(statement)
    parts = combined_of(statement)
    own = [x.fold for x in loops if x.kind is not ir.Kind.THREAD]
    folds = parts[0][1].folds
    bits = thread_bits(record.geometry.space_of[folds[0].dim].threads, folds)
    each = record.scopes.entered(own, place)
    asking = record.by(record.parts.asking(statement), each)
    turn = parts[0][1].turn
    width, vectors = _handed_over(record, [c for _, c in parts], own, place)
    for name, combined in parts:
        kept = [f for f in combined.folds if f not in record.geometry.threads]
        times = math.prod(map(record.geometry.iterations, kept)) - 1
        _over_threads(record, name, combined, bits, times, each, asking)
        if warps_apart(bits):
            those = record.by(record.parts.asking(statement), vectors)
            _over_warps(record, combined, bits, width, vectors, those)
        if isinstance(combined.value, ir.Variable):  # nobody needs the thread's own sum any more
            freed = record.held_words.get(combined.value.name, 0)
            record.held_words[name] = max(0, record.held_words.get(name, 0) - freed)
    if warps_apart(bits):
        outer = record.scopes.entered(own[:turn], place)
        record.compute(outer, {"barrier": 2 if turn else 1})
        record.reading = record.parts.asking(statement)


def _handed_over(
    record: Record, parts: Sequence[ir.Combined], own: Sequence[ir.Fold], place: Place
) -> tuple[int, Place]:
    """How many neighbours a thread hands over as one, and where it does that."""
    width = min(together(own, c) for c in parts)
    if width > 1:
        last = own[-1]
        own = [*own[:-1], replace(last, step=last.step * width, count=last.count // width)]
    return width, record.scopes.entered(own, place)


def _over_threads(
    record: Record,
    name: str,
    combined: ir.Combined,
    bits: int,
    times: int,
    place: Place,
    asking: Place,
) -> None:
    """What is added up; ``times``: how often a thread adds up its own sums before; ``asking``: for
    those that need what other warps have."""
    step = accumulated(combined.op, ir.Variable(name, combined.type))
    shuffles, warps = (bits % WARP).bit_count(), warps_apart(bits)
    words = max(1, combined.type.compute.bits // 32)
    record.compute(place, {k: n * (times + shuffles) for k, n in step.items()})
    record.compute(place, {"shuffle": shuffles * words})
    if warps:
        others = (1 << warps.bit_count()) - 1
        record.compute(asking, {k: n * others for k, n in step.items()})


def _over_warps(
    record: Record, combined: ir.Combined, bits: int, width: int, place: Place, asking: Place
) -> None:
    """What is handed over, as by ``over_warps`` of the prelude, so many neighbours at once."""
    warps, size = warps_apart(bits), width * combined.type.compute.itemsize
    first = record.threads & ~warps
    if first.any() and record.addresses.is_new(("warps", warps)):
        record.compute(asking, {"integer": 1})
    record.hand_over(Memory.SHARED_WRITE, record.threads, size, place)
    for apart in range(0, warps + 1, warps & -warps):
        if not apart & ~warps:
            record.hand_over(Memory.SHARED_READ, first + apart, size, asking)
