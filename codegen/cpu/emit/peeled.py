"""Loops that begin on a boundary of memory, and the points before and behind their vectors."""

from __future__ import annotations

from collections.abc import Callable

from tcl.codegen.cpu.emit.repeats import repeat
from tcl.codegen.cpu.emit.scope import At, Lengths, PointCount, PointRange, Scope, add, i64, number
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.loopir import ir
from tcl.common.dataclass import dataclass, replace


@dataclass(frozen=True, slots=True)
class Peeled:
    """Emits loops that have an ``Alignment``.

    Where the first boundary is becomes known when the code runs; how many points its vectors have
    is then one of a few numbers. Points at the ends are done last, by code that stands there once
    for both ends.
    """

    b: Builder
    program: ir.Built
    address: Callable[[ir.TensorRef, Scope], Val]
    """Where an element lies."""
    serial: Callable[[ir.Fold, ir.Statement, Scope], None]
    """The loop as if it began with the first point of its range."""
    soon: Callable[[ir.TensorRef, Scope], None]
    """Asks for the line of an element that is to be written."""

    def loop(
        self, fold: ir.Fold, alignment: ir.Alignment, body: ir.Statement, scope: Scope
    ) -> None:
        """The loop, from where the loops around it stand."""
        b, points = self.b, scope.ranges[fold.dim].span
        given = points if isinstance(points, PointCount) else PointCount(number(points), (points,))
        span, lengths = given.value, given.choices
        itemsize = self.program.tensor(alignment.ref.tensor).layout.itemsize
        beyond = b.binary("sub", number(0), self.address(alignment.ref, scope))
        beyond = b.binary("and", beyond, number(alignment.boundary - 1))
        before = b.binary("udiv", beyond, number(itemsize))
        most = alignment.boundary // itemsize - 1
        if given.least < most:
            before = b.intrinsic("smin", before, span)
            most = most if isinstance(lengths, Lengths) else max(lengths)
        left = b.binary("sub nsw", span, before)
        inside = b.binary("and", left, number(-alignment.points))
        if isinstance(lengths, Lengths):
            reached, missed = (
                lengths.most >= alignment.points,
                lengths.least < most + alignment.points,
            )
            known = PointCount(inside, Lengths(alignment.points, alignment.points, lengths.most))
        else:
            choices = {
                (n - k) // alignment.points * alignment.points
                for n in lengths
                for k in range(min(most, n) + 1)
            }
            reached, missed = choices != {0}, 0 in choices
            known = PointCount(inside, tuple(sorted(choices - {0})))

        def vectors() -> None:
            self.serial(
                fold, body, replace(self._part(scope, fold, before, known), aligned=alignment.ref)
            )

        def end(which: Val) -> None:
            first = b.compare("icmp eq", which, number(0))
            stop = b.binary("add nsw", before, inside)
            begin = b.select(first, number(0), b.binary("sub nsw", span, number(alignment.points)))
            low, high = b.select(first, number(0), stop), b.select(first, before, span)

            def some() -> None:
                part = self._part(scope, fold, begin, alignment.points)
                offset = scope.ranges[fold.dim].offset
                limits = (i64(b, At(add(b, offset.base, k), offset.constant)) for k in (low, high))
                self.serial(fold, body, replace(part, written=(next(limits), next(limits))))

            self._unless_zero(b.binary("sub nsw", high, low), some)

        behind = self._part(scope, fold, b.binary("sub nsw", span, number(1)), 1)
        self.soon(alignment.ref, behind)
        if reached and missed:
            self._unless_zero(inside, vectors)
        elif reached:
            vectors()
        repeat(self.b, number(0), number(2), 1, end, empty=False)

    def _part(self, scope: Scope, fold: ir.Fold, own: Val, span: PointCount | int) -> Scope:
        """A part of the range of a loop: so many points, from ``own`` on."""
        offset = scope.ranges[fold.dim].offset
        at = At(add(self.b, offset.base, own), offset.constant)
        return scope.moved({fold.dim: PointRange(at, span)}, {})

    def _unless_zero(self, count: Val, emit: Callable[[], None]) -> None:
        b = self.b
        some, after = b.new_label("some"), b.new_label("after")
        b.branch_if(b.compare("icmp ne", count, number(0)), some, after)
        b.start(some)
        emit()
        b.branch(after)
        b.start(after)
