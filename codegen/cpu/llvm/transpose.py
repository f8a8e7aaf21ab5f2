"""Transposing in registers: rows of memory in, lanes across the rows out."""

from __future__ import annotations

from collections.abc import Sequence

from tcl.codegen.cpu.llvm.builder import Builder, Val, suffix, vector

ROW = 64
"""Bytes of a row at most."""
_QUARTER = 16
"""Bytes of the parts of a vector register between which moving elements costs more."""


def transposed(b: Builder, rows: Sequence[Val], itemsize: int) -> list[Val]:
    """The squares of ``len(rows)`` lanes side by side in ``rows``, each transposed.

    One step per bit of a row's number. A step mixes rows that differ in that bit: the low steps
    interleave the halves of each quarter of a register, the high ones take every other quarter,
    which are single instructions. Afterwards the columns lie in another order.

    The places of an unrolled loop ask for the same squares, each for a column of its own: the
    builder remembers them.
    """
    size, parts = len(rows), list(rows)
    name = f"transposed {itemsize} {' '.join(row.text for row in rows)}"
    columns = [f"{name} {column}" for column in range(size)]
    known = [found for column in columns if (found := b.known.recall(column)) is not None]
    if len(known) == size:
        return known
    within = min(size, max(1, _QUARTER // itemsize))
    for bit in range(size.bit_length() - 1):
        masks = _masks(1 << bit, size, within, parts[0].lanes)
        for low in range(size):
            if low & 1 << bit:
                continue
            high = low | 1 << bit
            pair = parts[low], parts[high]
            parts[low], parts[high] = (mixed(b, *pair, mask) for mask in masks)
        if 2 << bit == within < size:
            parts = [fenced(b, part, itemsize) for part in parts]
    return [
        b.known.remember(name, parts[_final_column(column, within)])
        for column, name in enumerate(columns)
    ]


def joined(b: Builder, parts: Sequence[Val]) -> Val:
    """Vectors behind each other in one."""
    while len(parts) > 1:
        both = range(2 * parts[0].lanes)
        parts = [mixed(b, *pair, both) for pair in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def mixed(b: Builder, left: Val, right: Val, lanes: Sequence[int]) -> Val:
    """The vector of these lanes of two; those of the right one are counted on from the left's."""
    order = ", ".join(f"i32 {k}" for k in lanes)
    text = f"shufflevector {left}, {right}, <{len(lanes)} x i32> <{order}>"
    return b.op(text, left.type, len(lanes))


def picked(b: Builder, value: Val, lanes: Sequence[int]) -> Val:
    """The vector of these lanes of one."""
    return mixed(b, value, Val("poison", value.type, value.lanes), lanes)


def interleaved(b: Builder, parts: Sequence[Val], itemsize: int) -> list[Val]:
    """The first lanes of three or four vectors, then their second ones, and so on. In registers one
    after the other, where an instruction takes any lanes of two: stores that lie in two lines each
    take up to 1.3 times as long from the last to the first, as LLVM writes longer vectors. Else in
    one vector, of which it knows better shuffles (``st3`` on Arm)."""
    lanes, count = parts[0].lanes, len(parts)
    places = [(k, lane) for lane in range(lanes) for k in range(count)]
    permutes = {1: "avx512vbmi", 2: "avx512bw"}.get(itemsize, "avx512f")
    if lanes * itemsize == ROW and permutes in b.features:
        return [_picked(b, parts, places[k : k + lanes]) for k in range(0, len(places), lanes)]
    low = joined(b, parts[:2])
    high = joined(b, [parts[2], parts[3] if count > 3 else Val("poison", low.type, lanes)])
    return [mixed(b, low, high, [k * lanes + lane for k, lane in places])]


def _picked(b: Builder, parts: Sequence[Val], places: Sequence[tuple[int, int]]) -> Val:
    """The vector of these lanes, each given by its part and its place there: all of two parts at
    once, and then those of one more after the other."""
    lanes = parts[0].lanes
    found = parts[0]
    for k, part in enumerate(parts[1:], 1):
        known = [at if k == 1 else lane for lane, (_, at) in enumerate(places)]
        order = [
            lanes + at if p == k else before for (p, at), before in zip(places, known, strict=True)
        ]
        found = mixed(b, found, part, order)
    return found


def fenced(b: Builder, part: Val, itemsize: int) -> Val:
    """The same vector, behind which LLVM does not look for other shuffles that do the same: that
    takes half of the time of compiling a kernel, and finds none."""
    words = part.lanes * itemsize // 4
    if words < 4:
        return part
    name = f"llvm.arithmetic.fence.{suffix('float', words)}"
    same = b.call(name, "float", words, _as(b, part, "float", words))
    return _as(b, same, part.type, part.lanes)


def _as(b: Builder, part: Val, type_: str, lanes: int) -> Val:
    """The same bits as another vector."""
    if part.type == type_:
        return part
    return b.op(f"bitcast {part} to {vector(type_, lanes)}", type_, lanes)


def _masks(unit: int, size: int, within: int, lanes: int) -> tuple[list[int], list[int]]:
    """The lanes of the two results of a step, of which ``unit`` in a row stay together."""
    masks: tuple[list[int], list[int]] = [], []
    for upper, mask in enumerate(masks):
        for lane in range(lanes):
            if unit < within:
                start, at = lane - lane % within, lane % within
                other = at // unit % 2
                source = start + at // (2 * unit) * unit + upper * within // 2 + at % unit
            else:
                start, at = lane - lane % size, lane % size
                other = at // (size // 2)
                quarter = 2 * (at % (size // 2) // within) + upper
                source = start + quarter * within + at % within
            mask.append(source + other * lanes)
    return masks


def _final_column(column: int, within: int) -> int:
    """Where a column is in the end: its low bits come out in reverse."""
    place, bit = column & ~(within - 1), within >> 1
    while bit:
        place |= bit if column & 1 else 0
        column, bit = column >> 1, bit >> 1
    return place
