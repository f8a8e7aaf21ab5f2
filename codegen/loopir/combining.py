"""Statements that combine the sums of several threads, and how the threads of a block do it.

Threads of a warp hand each other their values directly. Those of several warps write them to the
block's memory, meet once, and read those of the other warps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tcl.codegen.common.warps import VECTOR, WARP
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import chain, in_block

EXCHANGED = 64
"""Bytes that a thread hands others at once, at most, in memory of its own."""


def combined_of(statement: ir.Statement) -> list[tuple[str, ir.Combined]]:
    """What a statement combines: each with the accumulator that gets the result; empty for others.
    One statement combines values of the same folds."""
    _, inner = chain(statement)
    parts = in_block(inner)
    found = [
        (s.name, s.value)
        for s in parts
        if isinstance(s, ir.Accumulate) and isinstance(s.value, ir.Combined)
    ]
    return found if len(found) == len(parts) else []


def thread_bits(threads: Sequence[ir.Fold], folds: Iterable[ir.Fold]) -> int:
    """The bits of a thread's number in which those differ whose values are combined: of ``folds``
    those that are among the folds ``threads`` of a space. Their counts are powers of two."""
    bits = 0
    for k, fold in enumerate(threads):
        if fold in folds:
            bits |= (fold.count - 1) * math.prod(f.count for f in threads[k + 1 :])
    return bits


def warps_apart(bits: int) -> int:
    return bits & ~(WARP - 1)


def exchange_stride(threads: int) -> int:
    """Values from those of one result to those of the next, where so many threads of a block
    hand over theirs: a power of two, so that each number that has those bits lies within."""
    return max(WARP, 1 << (threads - 1).bit_length())


def in_turn(own: Sequence[ir.Fold], itemsizes: Iterable[int], most: int) -> int:
    """Of the folds over a thread's results, so many are gone through in turn, from the outermost:
    in the others, values of these sizes are handed over at once, of so many bytes at ``most``."""
    size = sum(itemsizes)
    for k in range(len(own)):
        if size * math.prod(f.count for f in own[k:]) <= most:
            return k
    return len(own)


def together(own: Sequence[ir.Fold], combined: ir.Combined) -> int:
    """Neighbouring results of a thread, of those over these folds, that it hands over as one
    vector."""
    most = VECTOR // combined.type.compute.itemsize
    return math.gcd(own[-1].count, most) if own[combined.turn :] and most else 1
