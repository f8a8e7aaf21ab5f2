"""Panels that are filled, as ``cuda.emit.fill`` has it."""

from __future__ import annotations

import math

from tcl.codegen.counters.places import Condition, Linear, Place
from tcl.codegen.counters.record import Record
from tcl.codegen.counters.requests import Memory
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import chain, is_transposed

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
    loops, store = chain(fill.body)
    if not isinstance(store, ir.Store):
        raise ir.IRError("a panel is filled by one store")
    place = record.taking_part(fill.body, outside)
    width = math.prod(x.fold.count for x in loops if x.kind is ir.Kind.VECTOR)
    steps = [x.fold for x in loops if x.kind in (ir.Kind.UNROLL, ir.Kind.SERIAL)]
    lanes = [x.fold.name for x in loops if x.kind is ir.Kind.VECTOR]
    place = record.scopes.entered(steps, place, known=False).at(dict.fromkeys(lanes, Linear()))
    ragged = dict.fromkeys(x.fold.dim for x in loops if record.geometry.ragged[x.fold.dim])
    place = record.scopes.there(ragged, place)
    value, source = store.value, place
    if isinstance(value, ir.Select):
        source, value = record.scopes.place_where(value.condition, place), value.then
    if not isinstance(value, ir.Load):
        raise ir.IRError(f"{store.ref.tensor} is filled with what is no copy")
    kind = Memory.SHARED_COPY if asynchronous else Memory.SHARED_WRITE
    layout = record.geometry.program.tensor(fill.panel).layout
    scattered = width if is_transposed(fill, layout) else 1
    for k in range(scattered):
        each = place.at(dict.fromkeys(lanes, Linear(k))) if scattered > 1 else place
        record.access(store.ref, each, outside, width=width // scattered, kind=kind)
    kind = Memory.GLOBAL_COPY if asynchronous else Memory.GLOBAL_READ
    record.access(value.ref, source, outside, width=width, kind=kind, ahead=ahead)
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
