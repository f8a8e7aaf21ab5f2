"""Loops: counted ones, unrolled ones, and lanes, with what is left over at ragged ends.

How many points an iteration hands to the loops inside of it is known now, or is one of a few
numbers. Loops that are written out (unrolled, lanes) need to know; where they are inside, the
last, shorter iteration is emitted on its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from tcl.codegen.cpu.emit.peeled import Peeled
from tcl.codegen.cpu.emit.repeats import stoppable_repeat
from tcl.codegen.cpu.emit.scope import (
    At,
    Lengths,
    Range,
    Scope,
    Span,
    add,
    i64,
    known_span,
    leading,
    number,
)
from tcl.codegen.cpu.emit.sharing import Sharing
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import statements, straight
from tcl.grammar.types import INT32, INT64
from tcl.grammar.varying import usual


class Loops:
    """Emits loops around what ``emit`` does in them."""

    def __init__(
        self,
        b: Builder,
        program: ir.Built,
        emit: Callable[[ir.Statement, Scope], None],
        address: Callable[[ir.TensorRef, Scope], Val],
        soon: Callable[[ir.TensorRef, Scope], None],
        value: Callable[[ir.Value, Scope], Val],
    ) -> None:
        self.b, self.emit, self.value = b, emit, value
        self.peeled = Peeled(b, program, address, self._serial, soon)
        self.above_fixed = {
            outer.fold
            for kernel in program.kernels
            for outer, inner in _neighbours(kernel.body)
            if outer.kind is ir.Kind.SERIAL and inner.kind is not ir.Kind.SERIAL
        }
        """Folds whose iterations have to be of known length."""
        self.reduced = {d.name: d.reduction for s in program.spaces for d in s.dims}
        self.pauses = {
            id(s.body): s.pause
            for kernel in program.kernels
            for s in statements(kernel.body)
            if isinstance(s, ir.For) and s.pause is not None
        }
        """By identity of a body: what is done between stretches of its iterations."""
        self.straight: dict[int, bool] = {}
        """By identity of a body: whether nothing branches in it."""
        self.works: dict[int, int] = {}
        """By identity of a body: what ``_work`` says of it."""

    def loop(self, loop: ir.Loop, body: ir.Statement, scope: Scope) -> None:
        """The loop, from where the loops around it stand."""
        match loop.kind:
            case ir.Kind.SERIAL if loop.peel is not None:
                self.peeled.loop(loop.fold, loop.peel, body, scope)
            case ir.Kind.SERIAL if loop.listed is not None:
                self._listed(loop.fold, loop.listed, body, scope)
            case ir.Kind.SERIAL:
                self._serial(loop.fold, body, scope)
            case ir.Kind.UNROLL:
                self._unrolled(loop.fold, body, scope)
            case ir.Kind.VECTOR:
                self._lanes(loop.fold, body, scope)
            case ir.Kind.PARALLEL | ir.Kind.THREAD:
                raise ir.IRError(f"{loop.fold.name} is shared among threads inside of a loop")
            case ir.Kind.DOT | ir.Kind.MMA:
                raise ir.IRError(f"{loop.fold.name} is no loop, but done by one instruction")
            case _:
                assert_never(loop.kind)

    def first(self, first: ir.First, scope: Scope) -> None:
        """One or the other statement, whichever iteration it is."""
        b = self.b
        offsets = [i64(b, scope.folds[f.name]) for f in first.folds]
        if not any(o.text.startswith("%") for o in offsets):
            self.emit(first.then if all(o.text == "0" for o in offsets) else first.otherwise, scope)
            return
        all_ = offsets[0]
        for o in offsets[1:]:
            all_ = b.binary("or", all_, o)
        self._either(b.compare("icmp eq", all_, number(0)), first.then, first.otherwise, scope)

    def _either(
        self, condition: Val, then: ir.Statement, otherwise: ir.Statement, scope: Scope
    ) -> None:
        b = self.b
        labels = b.new_label("first"), b.new_label("later")
        after = b.new_label("after")
        b.branch_if(condition, *labels)
        for label, side in zip(labels, (then, otherwise), strict=True):
            b.start(label)
            self.emit(side, scope.copied())
            b.branch(after)
        b.start(after)

    # Loops over chunks.

    def shared(self, kernel: ir.Kernel, threads: Sharing, scope: Scope) -> None:
        """A kernel's loops over chunks as one loop over all of them."""

        def each(index: Val) -> None:
            b, rest = self.b, index
            ranges: dict[str, Range] = {}
            offsets: dict[str, At] = {}
            for folds in reversed(kernel.grid):
                count = number(folds[0].count)
                own = b.binary("mul nsw", b.binary("urem", rest, count), number(folds[0].step))
                rest = b.binary("udiv", rest, count)
                for fold in folds:
                    span = scope.ranges[fold.dim].span
                    ranges[fold.dim] = Range(At(own), self._chunk(fold, span, own))
                    offsets[fold.name] = At(own)
            self.emit(kernel.body, scope.moved(ranges, offsets))

        count = math.prod(folds[0].count for folds in kernel.grid)
        threads.share(count, self._work(kernel.body), each)

    def _work(self, body: ir.Statement) -> int:
        """How many statements it does, at most."""
        match body:
            case ir.For(loop=loop, body=inner):
                at_once = loop.kind in (ir.Kind.VECTOR, ir.Kind.DOT, ir.Kind.MMA)
                times = 1 if at_once else usual(loop.fold.count)
                found = self.works.get(id(body)) or max(1, times * self._work(inner))
            case ir.Block(body=several):
                found = self.works.get(id(body)) or max(1, sum(map(self._work, several)))
            case ir.First(then=then, otherwise=otherwise):
                found = max(self._work(then), self._work(otherwise))
            case _:
                return 1
        self.works[id(body)] = found
        return found

    def _chunk(self, fold: ir.Fold, span: Span | int, own: Val) -> Span | int:
        """The points of the chunk that begins at ``own``."""
        parts = _parts(fold, span)
        if not isinstance(parts, Lengths) and len(parts) == 1:
            return parts[0]
        left = self.b.binary("sub nsw", _value(span), own)
        return Span(self.b.intrinsic("smin", left, number(fold.step)), parts)

    # Serial loops.

    def _serial(self, fold: ir.Fold, body: ir.Statement, scope: Scope) -> None:
        span, step = scope.ranges[fold.dim].span, fold.step
        if fold in self.above_fixed:
            if isinstance(span, int):
                rest = span % fold.step
                self._counted(fold, body, scope, number(span - rest), fold.step)
                if rest:
                    offset = scope.ranges[fold.dim].offset + (span - rest)
                    self._iteration(fold, body, scope, offset, rest, At(None, span - rest))
            else:
                self._full_and_rests(fold, body, scope, span)
        elif isinstance(span, int) and (span <= step or span % step == 0):
            self._counted(fold, body, scope, number(span), min(span, step))
        elif step == 1:
            self._counted(fold, body, scope, _value(span), 1)
        else:
            self._counted(fold, body, scope, _value(span), None)

    def _full_and_rests(self, fold: ir.Fold, body: ir.Statement, scope: Scope, span: Span) -> None:
        b = self.b
        rests = sorted(span.remainders(fold.step) - {0})
        if not rests:
            self._counted(fold, body, scope, span.value, fold.step)
            return
        rest = b.binary("urem", span.value, number(fold.step))
        full = b.binary("sub nsw", span.value, rest)
        if span.reaches(fold.step):
            empty = span.least < fold.step
            self._counted(fold, body, scope, full, fold.step, empty)
        offset = scope.ranges[fold.dim].offset
        tail = At(add(b, offset.base, full), offset.constant)
        apart = _APART_OF_MANY if isinstance(span.choices, Lengths) else _APART
        least = math.gcd(*rests)
        if len(rests) > apart and not self.reduced[fold.dim] and _in_halves(fold, body, least):
            self._pieces(fold, body, scope, tail, At(full), rest, least)
            return
        for points in rests:
            then, after = b.new_label("rest"), b.new_label("after")
            b.branch_if(b.compare("icmp eq", rest, number(points)), then, after)
            b.start(then)
            self._iteration(fold, body, scope, tail, points, At(full))
            b.branch(after)
            b.start(after)

    def _pieces(
        self,
        fold: ir.Fold,
        body: ir.Statement,
        scope: Scope,
        tail: At,
        own: At,
        rest: Val,
        least: int,
    ) -> None:
        """The last, shorter iteration, of any multiple of ``least`` points, in pieces of 1, 2, 4
        and so on times as many: few enough to be written out each."""
        b, begun = self.b, number(0)
        piece = least << ((fold.step - 1) // least).bit_length() - 1
        while piece >= least:
            left = b.binary("sub nsw", rest, begun)
            there = b.compare("icmp sge", left, number(piece))
            then, after = b.new_label("piece"), b.new_label("after")
            b.branch_if(there, then, after)
            b.start(then)
            offset = At(add(b, tail.base, begun), tail.constant)
            self.emit(body, self._inside(fold, scope, Range(offset, piece, At(begun)), own))
            b.branch(after)
            b.start(after)
            begun = b.select(there, b.binary("add nsw", begun, number(piece)), begun)
            piece //= 2

    def _counted(
        self,
        fold: ir.Fold,
        body: ir.Statement,
        scope: Scope,
        span: Val,
        inner: int | None,
        empty: bool = False,
    ) -> None:
        """The loop over ``span`` points, which may be ``empty``. ``inner`` is the span of an
        iteration; None where the last one may be shorter."""
        b, range_ = self.b, scope.ranges[fold.dim]
        if span.text == "0":
            return
        if inner is not None and span.text == str(inner):
            self._iteration(fold, body, scope, range_.offset, inner, At())
            return

        def each(own: Val) -> None:
            part: Span | int | None = inner
            if part is None:
                left = b.intrinsic("smin", b.binary("sub nsw", span, own), number(fold.step))
                part = Span(left, _parts(fold, range_.span))
            offset = At(add(b, range_.offset.base, own), range_.offset.constant)
            self._iteration(fold, body, scope, offset, part, At(own))

        self._repeat(fold, body, scope, span, each, empty)

    def _listed(self, fold: ir.Fold, listed: ir.Listed, body: ir.Statement, scope: Scope) -> None:
        """The loop over the iterations in a list, which may be empty."""
        b, range_ = self.b, scope.ranges[fold.dim]

        def known(ref: ir.TensorRef, at: Scope) -> Val:
            return self.value(ir.Cast(ir.Load(ref, INT32, total=True), INT64), at)

        def each(turn: Val) -> None:
            inner = scope.copied()
            inner.variables[ir.TURN] = turn
            own = known(listed.offset, inner)
            offset = At(add(b, range_.offset.base, own), range_.offset.constant)
            self._iteration(fold, body, scope, offset, 1, At(own))

        self._repeat(fold, body, scope, known(listed.count, scope), each, empty=True)

    def _repeat(
        self,
        fold: ir.Fold,
        body: ir.Statement,
        scope: Scope,
        span: Val,
        each: Callable[[Val], None],
        empty: bool,
    ) -> None:
        """``each`` iteration over ``span`` points, with looks whether to go on."""
        b, work, count, step = self.b, self._work(body), usual(fold.count), fold.step
        pause = self.pauses.get(id(body))
        if pause is None:
            stoppable_repeat(b, span, step, count, work, each, empty)
            return
        stretch = step * pause.every

        def some(start: Val) -> None:
            end = b.intrinsic("smin", b.binary("add nsw", start, number(stretch)), span)
            stoppable_repeat(b, end, step, pause.every, work, each, False, start)
            self.emit(pause.then, scope)

        count = -(-count // pause.every)
        stoppable_repeat(b, span, stretch, count, work * pause.every, some, empty)

    def padded(self, fold: ir.Fold, body: ir.Statement, scope: Scope) -> None:
        """A loop whose iterations beyond the end of the dimension run, too, with no points."""
        range_, whole = scope.ranges[fold.dim], fold.step * fold.count
        span = self._known(fold, scope)
        rest = span % fold.step
        self._counted(fold, body, scope, number(span - rest), fold.step)
        for own in range(span - rest, whole, fold.step):
            points = min(rest, fold.step) if own == span - rest else 0
            self._iteration(fold, body, scope, range_.offset + own, points, At(None, own))

    # Loops that are written out.

    def _unrolled(self, fold: ir.Fold, body: ir.Statement, scope: Scope) -> None:
        offset, span = scope.ranges[fold.dim].offset, self._known(fold, scope)
        if id(body) not in self.straight:
            self.straight[id(body)] = straight(body)
        if self.straight[id(body)]:
            whole = {fold.dim: scope.ranges[fold.dim], **scope.written_out}
            scope = replace(scope, written_out=whole)
        for own in range(0, span, fold.step):
            part = min(fold.step, span - own)
            self._iteration(fold, body, scope, offset + own, part, At(None, own))

    def _lanes(self, fold: ir.Fold, body: ir.Statement, scope: Scope) -> None:
        """All lanes at once; those behind the end of the dimension switched off."""
        span, lanes = self._known(fold, scope), fold.count
        inside = replace(
            scope,
            folds={**scope.folds, fold.name: scope.ranges[fold.dim].begun},
            variables=dict(scope.variables),
            accumulators=dict(scope.accumulators),
            lanes=lanes,
            lane_dim=fold.dim,
            lane_fold=fold.name,
            active=min(span, lanes),
            mask=None if span >= lanes else leading(lanes, span),
        )
        if span:
            self.emit(body, inside)

    def _known(self, fold: ir.Fold, scope: Scope) -> int:
        return known_span(fold, scope)

    def _iteration(
        self,
        fold: ir.Fold,
        body: ir.Statement,
        scope: Scope,
        offset: At,
        span: Span | int,
        own: At,
    ) -> None:
        """The body once. ``offset`` is from the start of the dim, ``own`` from where the loop
        begins, ``span`` what is handed on."""
        self.emit(body, self._inside(fold, scope, Range(offset, span), own))

    def _inside(self, fold: ir.Fold, scope: Scope, range_: Range, own: At) -> Scope:
        """The place that an iteration hands on: the points before it are this loop's as far as it
        steps over them, and the next one's else."""
        b, begun = self.b, scope.ranges[fold.dim].begun.base
        if begun is not None and fold.step > 1:
            rest = b.binary("urem", begun, number(fold.step))
            range_ = replace(range_, begun=At(rest))
            begun = b.binary("sub nsw", begun, rest)
        place = At(add(b, begun, own.base), own.constant)
        return scope.moved({fold.dim: range_}, {fold.name: place})


_APART = 3
"""Lengths of a last, shorter iteration of which each has code of its own."""
_APART_OF_MANY = 31
"""Likewise in code for many sizes, where the last iteration may be most of the work, and each piece
of it would read the other operands once more."""


def _neighbours(body: ir.Statement) -> Iterator[tuple[ir.Loop, ir.Loop]]:
    """Loops of the same dim, one right inside the other, everywhere in a body."""
    pending: list[tuple[ir.Statement, dict[str, ir.Loop]]] = [(body, {})]
    while pending:
        statement, around = pending.pop()
        match statement:
            case ir.For(loop=loop, body=body):
                if loop.fold.dim in around:
                    yield around[loop.fold.dim], loop
                pending.append((body, {**around, loop.fold.dim: loop}))
            case ir.Block(body=several):
                pending += [(s, around) for s in several]
            case ir.First(then=then, otherwise=otherwise):
                pending += [(then, around), (otherwise, around)]


def _in_halves(fold: ir.Fold, body: ir.Statement, least: int) -> bool:
    """Whether pieces of a range, each half as long as the one before, lie within single iterations
    of the loops inside that are longer."""
    for statement in statements(body):
        if isinstance(statement, ir.For) and statement.loop.fold.dim == fold.dim:
            steps, rest = divmod(statement.loop.fold.step, least)
            if statement.loop.kind in (ir.Kind.MMA, ir.Kind.DOT):
                return False
            if statement.loop.fold.step > 1 and (rest or steps & (steps - 1)):
                return False
    return True


def _parts(fold: ir.Fold, span: Span | int) -> tuple[int, ...] | Lengths:
    """The numbers of points that iterations of the loop may have."""
    whole = (span,) if isinstance(span, int) else span.choices
    if isinstance(whole, Lengths):
        each = math.gcd(whole.multiple, fold.step)
        if each == fold.step:
            return (each,)
        return whole if whole.most <= fold.step else Lengths(each, each, fold.step)
    parts = {c % fold.step for c in whole} - {0}
    if any(c >= fold.step for c in whole):
        parts.add(fold.step)
    return tuple(sorted(parts))


def _value(span: Span | int) -> Val:
    return number(span) if isinstance(span, int) else span.value
