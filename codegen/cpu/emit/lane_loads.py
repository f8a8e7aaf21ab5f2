"""Lanes that lie anywhere in a tensor, each loaded on its own."""

from __future__ import annotations

from tcl.codegen.cpu.emit.across import Pointers
from tcl.codegen.cpu.emit.scope import At, i64, number
from tcl.codegen.cpu.llvm.builder import Builder, Val, memory_type, vector
from tcl.codegen.devices.features import gathers_slowly
from tcl.codegen.loopir import ir
from tcl.grammar.sizes.varying import Size

GATHERED = 4
"""Bytes of the smallest elements that processors of x86-64 gather. Of others LLVM loads each behind
a branch."""
_BITS = 32
"""Of the places of lanes in tensors below 2 GB."""


def loads_each(b: Builder, own: Val | None, layout: ir.Layout) -> bool:
    """Whether ``load_each`` takes less time than a gather of the processor: lanes of places with 32
    bits, in a tensor that is known to have an element."""
    known = not any(isinstance(x, Size) for x in (*layout.extents, *layout.strides))
    slow = gathers_slowly(b.features) or ("sse2" in b.features and layout.itemsize < GATHERED)
    return known and own is not None and own.type == f"i{_BITS}" and slow


def places_apart(step: object, lanes: int, layout: ir.Layout) -> Val | None:
    """Places of lanes that lie so many bytes apart; None where that or a tensor's size is known
    only when a kernel runs, or 32 bits are too few."""
    if type(step) is not int or isinstance(layout.bytes, Size) or layout.bytes >> (_BITS - 1):
        return None
    text = ", ".join(f"i{_BITS} {k * step}" for k in range(lanes))
    return Val(f"<{text}>", f"i{_BITS}", lanes)


def load_each(
    b: Builder,
    pointers: Pointers,
    tensor: str,
    first: At,
    own: Val,
    layout: ir.Layout,
    mask: Val,
    active: int,
) -> Val:
    """Lanes that lie ``own`` bytes behind ``first``, of which so many are ``active``. Those that
    are switched off read some element of the tensor, and give 0.

    On Zen 4, 16 float32 take 11.9 cycles in the first cache, a gather 17.9, beside which the core
    does nothing else; 8 float64 6.1 and 9.3."""
    type_, lanes = memory_type(layout.type), own.lanes
    if first.base is not None or not 0 <= first.constant <= layout.bytes - layout.itemsize:
        own = b.binary("add", own, b.convert("trunc", i64(b, first), own.type))
        first = At()
    # Elements at constant distances from the same places take these out of one vector.
    places = b.select(mask, own, Val("zeroinitializer", own.type, lanes))
    base, zero = pointers.at(tensor, first), Val("zeroinitializer", type_, lanes)
    result = zero
    for k in range(active):
        there = pointers.moved(base, wide_lane(b, places, k))
        part = b.read(tensor, there, layout.alignment, type_)
        result = b.op(f"insertelement {result}, {part}, i32 {k}", type_, lanes)
    return b.select(mask, result, zero)


def wide_lane(b: Builder, values: Val, k: int) -> Val:
    """A lane of 32-bit integers, as one of 64 bits. LLVM takes them one by one out of vectors; x86
    needs fewer instructions to take two at a time."""
    if values.lanes == 1 or "sse2" not in b.features:
        return b.convert("sext", b.lane(values, k), "i64")
    half = values.lanes // 2
    pair = b.lane(b.op(f"bitcast {values} to {vector('i64', half)}", "i64", half), k // 2)
    if k % 2 == 0:
        return b.convert("sext", b.convert("trunc", pair, values.type), "i64")
    return b.binary("ashr", pair, number(_BITS))
