"""Statements that combine the sums of several threads, and how the threads of a block do it.

Threads of a warp hand each other their values directly. Those of several warps write them to the
block's memory, meet once, and read those of the other warps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tcl.codegen.common.warps import VECTOR, WARP
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.walk import chain, in_block
from tcl.common.dataclass import dataclass

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


@dataclass(frozen=True, slots=True)
class CombinedSums:
    """What a statement combines, and how."""

    parts: tuple[tuple[str, ir.Combined], ...]
    """As ``combined_of`` has them."""
    own: list[ir.Fold]
    """The folds over a thread's results."""
    bits: int
    """As of ``thread_bits``."""

    @staticmethod
    def of(geometry: Geometry, statement: ir.Statement) -> CombinedSums:
        (loops, _), parts = chain(statement), tuple(combined_of(statement))
        folds = parts[0][1].folds
        bits = thread_bits(geometry.space_of[folds[0].dim].threads, folds)
        return CombinedSums(parts, [x.fold for x in loops if x.kind is not ir.Kind.THREAD], bits)

    @property
    def warps(self) -> int:
        """The bits in which the numbers of warps differ; 0 where no other warp has a part."""
        return warps_apart(self.bits)

    @property
    def turn(self) -> int:
        """How many of the folds are gone through in turn."""
        return self.parts[0][1].turn

    @property
    def width(self) -> int:
        """Neighbouring results of a thread that it hands over as one vector."""
        most = min(VECTOR // combined.type.compute.itemsize for _, combined in self.parts)
        return math.gcd(self.own[-1].count, most) if self.own[self.turn :] and most else 1

    @property
    def vectors(self) -> list[ir.Fold]:
        """The folds over these vectors."""
        if self.width == 1:
            return self.own
        *outer, last = self.own
        return [*outer, replace(last, step=last.step * self.width, count=last.count // self.width)]
