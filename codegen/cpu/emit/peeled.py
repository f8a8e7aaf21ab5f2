"""Loops that begin on a boundary of memory, and the points before and behind their vectors."""

from __future__ import annotations

from collections.abc import Callable

from tcl.codegen.cpu.emit.accesses import AccessEmitter
from tcl.codegen.cpu.emit.repeats import repeat, stoppable_repeat, stored_in
from tcl.codegen.cpu.emit.scope import At, Lengths, PointCount, PointRange, Scope, add, i64, number
from tcl.codegen.cpu.llvm.branches import only_if
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import dims_of_lets, dims_of_values, statements, straight, walk
from tcl.common.dataclass import dataclass, replace
from tcl.grammar.sizes.varying import representative

_SIMPLE = (ir.For, ir.Block, ir.Let, ir.Store, ir.Prefetch)
_GROUP = 4
"""Iterations of which all are computed before any is stored."""
_FEWEST = 256
"""Points from which on that pays."""
_MOST = 24
"""Values of an iteration, as many as fit the registers, and are written out in little code."""


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
    memory: AccessEmitter

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

        there = replace(scope, aligned=alignment.ref)

        def vectors() -> None:
            longest = lengths.most if isinstance(lengths, Lengths) else max(lengths)
            if self._in_groups(fold, alignment.points, body, longest):
                self._groups(fold, body, there, before, inside)
            else:
                self.serial(fold, body, self._part(there, fold, before, known))

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
        self.memory.soon(alignment.ref, behind)
        if reached and missed:
            self._unless_zero(inside, vectors)
        elif reached:
            vectors()
        repeat(self.b, number(0), number(2), 1, end, False, stored_in(body))

    def _in_groups(self, fold: ir.Fold, points: int, body: ir.Statement, most: int) -> bool:
        """Whether what several iterations read is read before anything is stored. Where results lie
        a line or two further in their page than an operand, a load looks like one of what was
        stored just before, and waits: layernorm of 4096 x 1024 takes 1.4 times as long on Zen 4 if
        one iteration follows the other."""
        if fold.step != points or most < _FEWEST or not straight(body):
            return False
        every = list(statements(body))
        if not all(isinstance(s, _SIMPLE) for s in every):
            return False
        lets = dims_of_lets(s for s in every if isinstance(s, ir.Let))
        made = [s.value for s in every if isinstance(s, ir.Store | ir.Let)]
        values = [v for value in made for v in walk(value)]
        stored = {s.ref.tensor for s in every if isinstance(s, ir.Store)}
        apart = all(v.ref.tensor not in stored for v in values if isinstance(v, ir.Load))
        calls = any(
            isinstance(v, ir.Call) and fold.dim in dims_of_values([v], lets) for v in values
        )
        return apart and not calls and len(values) <= _MOST

    def _groups(
        self, fold: ir.Fold, body: ir.Statement, scope: Scope, before: Val, inside: Val
    ) -> None:
        """The loop over the points inside: several iterations at a time, of which all are computed
        before any is stored; then those that are left."""
        b, step, group = self.b, fold.step, _GROUP * fold.step
        many = b.binary("and", inside, number(-group))
        b.multiples[many.text] = group

        def one(own: Val) -> None:
            at = b.binary("add nsw", before, own)
            self.serial(fold, body, self._part(scope, fold, at, step))

        def several(own: Val) -> None:
            def computed() -> None:
                for k in range(0, group, step):
                    one(b.binary("add nuw nsw", own, number(k)))

            self.memory.stores_last(computed)

        count = representative(fold.count) // _GROUP
        work = _GROUP * len(list(statements(body)))
        written = stored_in(body)
        stoppable_repeat(b, many, group, count, work, several, True, None, written)
        repeat(b, many, inside, step, one, True, written)

    def _part(self, scope: Scope, fold: ir.Fold, own: Val, span: PointCount | int) -> Scope:
        """A part of the range of a loop: so many points, from ``own`` on."""
        offset = scope.ranges[fold.dim].offset
        at = At(add(self.b, offset.base, own), offset.constant)
        return scope.moved({fold.dim: PointRange(at, span)}, {})

    def _unless_zero(self, count: Val, emit: Callable[[], None]) -> None:
        only_if(self.b, lambda: self.b.compare("icmp ne", count, number(0)), emit, "some")
