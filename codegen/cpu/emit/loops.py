"""Loops: counted ones, unrolled ones, and lanes, with what is left over at ragged ends.

How many points an iteration hands to the loops inside of it is known now, or is one of a few
numbers. Loops that are written out (unrolled, lanes) need to know; where they are inside, the
last, shorter iteration is emitted on its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import assert_never

from tcl.codegen.cpu.emit.accesses import AccessEmitter
from tcl.codegen.cpu.emit.cuts import Cuts
from tcl.codegen.cpu.emit.overlaps import adds_little, may_be_done_again
from tcl.codegen.cpu.emit.peeled import Peeled
from tcl.codegen.cpu.emit.ragged import Ragged, in_halves, neighbours
from tcl.codegen.cpu.emit.repeats import repeat, stoppable_repeat, stored_in
from tcl.codegen.cpu.emit.scope import (
    At,
    Lengths,
    PointCount,
    PointRange,
    Scope,
    add,
    fewer,
    i64,
    known_span,
    leading,
    number,
)
from tcl.codegen.cpu.emit.sharing import Sharing
from tcl.codegen.cpu.llvm.branches import only_if
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import statements, straight
from tcl.common.dataclass import replace
from tcl.grammar.sizes.varying import Size, representative
from tcl.grammar.syntax.types import INT32, INT64


class LoopEmitter:
    """Emits loops around what ``emit`` does in them."""

    def __init__(
        self,
        b: Builder,
        program: ir.Built,
        emit: Callable[[ir.Statement, Scope], None],
        address: Callable[[ir.TensorRef, Scope], Val],
        memory: AccessEmitter,
        value: Callable[[ir.Value, Scope], Val],
        ragged: Ragged,
    ) -> None:
        self.b, self.emit, self.value, self.ragged = b, emit, value, ragged
        self.program = program
        self.cuts = Cuts(b, {d.name: d for s in program.spaces for d in s.dims})
        self.peeled = Peeled(b, program, address, self._serial, memory)
        self.above_fixed = {
            outer.fold
            for kernel in program.kernels
            for outer, inner in neighbours(kernel.body)
            if outer.kind is ir.Kind.SERIAL and inner.kind is not ir.Kind.SERIAL
        }
        """Folds whose iterations have to be of known length."""
        self.reduced = {d.name: d.reduction for s in program.spaces for d in s.dims}
        self.extents = {d.name: d.extent for s in program.spaces for d in s.dims}
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
        """By identity of a body: what ``_statements_at_most`` says of it."""

    def loop(self, loop: ir.Loop, body: ir.Statement, scope: Scope) -> None:
        """The loop, from where the loops around it stand."""
        match loop.kind:
            case ir.Kind.SERIAL if loop.alignment is not None:
                self.peeled.loop(loop.fold, loop.alignment, body, scope)
            case ir.Kind.SERIAL if loop.compacted is not None:
                self._compacted(loop.fold, loop.compacted, body, scope)
            case ir.Kind.SERIAL if loop.cut is not None:
                self._cut(loop.fold, loop.cut, body, scope)
            case ir.Kind.SERIAL:
                self._serial(loop.fold, body, scope)
            case ir.Kind.UNROLL | ir.Kind.VECTOR if dim := self._unknown(loop, body, scope):
                self._each_length(dim, loop, body, scope)
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

    def either(self, either: ir.First | ir.Within, scope: Scope) -> None:
        """One or the other statement, whichever iteration or place it is."""
        b = self.b
        if isinstance(either, ir.Within):
            holds = self.cuts.everywhere(either.bounds, scope)
            self._either(holds, either.then, either.otherwise, scope)
            return
        if either.every:
            self._either(self._of_every(either, scope), either.then, either.otherwise, scope)
            return
        offsets = [
            self._behind(f.dim, scope) if either.last else i64(b, scope.folds[f.name])
            for f in either.folds
        ]
        if not any(o.text.startswith("%") for o in offsets):
            self.emit(
                either.then if all(o.text == "0" for o in offsets) else either.otherwise, scope
            )
            return
        all_ = offsets[0]
        for o in offsets[1:]:
            all_ = b.binary("or", all_, o)
        self._either(b.compare("icmp eq", all_, number(0)), either.then, either.otherwise, scope)

    def _of_every(self, either: ir.First, scope: Scope) -> Val:
        """Whether it is the first or last of so many iterations."""
        b, (fold,) = self.b, either.folds
        offset = i64(b, scope.folds[fold.name])
        if either.last:
            offset = b.binary("add nuw nsw", offset, number(fold.step))
        within = b.binary("urem", offset, number(either.every * fold.step))
        at = b.compare("icmp eq", within, number(0))
        if either.last and fold.count % either.every:
            ended = b.compare("icmp eq", offset, number(fold.count * fold.step))
            at = b.binary("or", at, ended)
        return at

    def _behind(self, dim: str, scope: Scope) -> Val:
        """The points of a dimension that come after those that the loops around this place hand
        on."""
        range_, extent = scope.ranges[dim], self.extents[dim]
        offset, span = range_.offset, range_.span
        if isinstance(span, int) and not isinstance(extent, Size) and offset.base is None:
            return number(extent - offset.constant - span)
        begun = self.b.binary("sub nsw", number(extent), i64(self.b, offset))
        return self.b.binary("sub nsw", begun, _value(span))

    def _either(
        self, condition: Val, then: ir.Statement, otherwise: ir.Statement, scope: Scope
    ) -> None:
        b = self.b
        labels = b.new_label("first"), b.new_label("later")
        after = b.new_label("after")
        b.branch_if(condition, *labels)
        for label, side in zip(labels, (then, otherwise), strict=True):
            b.start(label)
            self.emit(side, scope)
            b.branch(after)
        b.start(after)

    # Loops over chunks.

    def shared(self, kernel: ir.Kernel, threads: Sharing, scope: Scope) -> None:
        """A kernel's loops over chunks as one loop over all of them."""

        def each(index: Val) -> None:
            b, rest = self.b, index
            ranges: dict[str, PointRange] = {}
            offsets: dict[str, At] = {}
            for folds in reversed(kernel.grid):
                count = number(folds[0].count)
                own = b.binary("mul nsw", b.binary("urem", rest, count), number(folds[0].step))
                b.multiples[own.text] = folds[0].step
                if not isinstance(folds[0].count, Size):
                    b.ends[own.text] = 0, (folds[0].count - 1) * folds[0].step
                rest = b.binary("udiv", rest, count)
                for fold in folds:
                    span = scope.ranges[fold.dim].span
                    ranges[fold.dim] = PointRange(At(own), self._chunk(fold, span, own))
                    offsets[fold.name] = At(own)
            self.emit(kernel.body, scope.moved(ranges, offsets))

        count = math.prod(folds[0].count for folds in kernel.grid)
        work = self._statements_at_most(kernel.body)
        some = not isinstance(count, Size) and count > 0
        threads.share_among_threads(count, work, each, stored_in(kernel.body) if some else None)

    def _statements_at_most(self, body: ir.Statement) -> int:
        """How many statements it does, at most."""
        match body:
            case ir.For(loop=loop, body=inner):
                at_once = loop.kind in (ir.Kind.VECTOR, ir.Kind.DOT, ir.Kind.MMA)
                times = 1 if at_once else representative(loop.fold.count)
                found = self.works.get(id(body)) or max(1, times * self._statements_at_most(inner))
            case ir.Block(body=several):
                found = self.works.get(id(body)) or max(
                    1, sum(map(self._statements_at_most, several))
                )
            case (
                ir.First(then=then, otherwise=otherwise) | ir.Within(then=then, otherwise=otherwise)
            ):
                found = max(self._statements_at_most(then), self._statements_at_most(otherwise))
            case _:
                return 1
        self.works[id(body)] = found
        return found

    def _chunk(self, fold: ir.Fold, span: PointCount | int, own: Val) -> PointCount | int:
        """The points of the chunk that begins at ``own``."""
        parts = _lengths(fold, span)
        if not isinstance(parts, Lengths) and len(parts) == 1:
            return parts[0]
        left = self.b.binary("sub nsw", _value(span), own)
        return PointCount(self.b.intrinsic("smin", left, number(fold.step)), parts)

    # Serial loops.

    def _serial(self, fold: ir.Fold, body: ir.Statement, scope: Scope) -> None:
        span, step = scope.ranges[fold.dim].span, fold.step
        many = self._statements_at_most(body) >= _OVERLAPPING
        if many and self._overlaps(fold, body, scope):
            self._overlapping(fold, body, scope)
        elif fold in self.above_fixed:
            if isinstance(span, int):
                rest = span % fold.step
                self._counted(fold, body, scope, number(span - rest), fold.step)
                if rest and self.ragged.scalar(fold, body) and self._overlaps(fold, body, scope):
                    rest = fold.step
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

    def _overlaps(self, fold: ir.Fold, body: ir.Statement, scope: Scope) -> bool:
        """Whether the last iteration is as long as the others, and does some points again."""
        range_, special = scope.ranges[fold.dim], scope.aligned or scope.written
        span = range_.span
        if type(span) is not int or span <= fold.step or span % fold.step == 0:
            return False
        if special or range_.begun != At() or self.reduced[fold.dim]:
            return False
        return adds_little(fold, body, span) and may_be_done_again(self.program, fold, body)

    def _overlapping(self, fold: ir.Fold, body: ir.Statement, scope: Scope) -> None:
        """As ``_serial``, of such a loop."""
        b, range_, span = self.b, scope.ranges[fold.dim], known_span(fold, scope)

        def each(own: Val) -> None:
            own = b.intrinsic("smin", own, number(span - fold.step))
            b.ends[own.text] = 0, span - fold.step
            offset = At(add(b, range_.offset.base, own), range_.offset.constant)
            self._iteration(fold, body, scope, offset, fold.step, At(own))

        self._repeat(fold, body, scope, number(span), each, False)

    def _full_and_rests(
        self, fold: ir.Fold, body: ir.Statement, scope: Scope, span: PointCount
    ) -> None:
        b = self.b
        rests = sorted(span.remainders(fold.step) - {0})
        if not rests:
            self._counted(fold, body, scope, span.value, fold.step)
            return
        many = isinstance(span.choices, Lengths)
        unit = self.ragged.unit(fold, body) if many else 1
        if unit == 0:
            self._counted(fold, body, scope, span.value, None)
            return
        rest = b.binary("urem", span.value, number(fold.step))
        full = b.binary("sub nsw", span.value, rest)
        b.multiples[full.text] = fold.step
        groups = [tuple(each) for _, each in groupby(rests, lambda rest: -(-rest // unit))]
        begun, empty = len(b.lines), span.least < fold.step
        longest = () if span.reaches(fold.step) or not many else groups.pop()
        if span.reaches(fold.step):
            self._counted(fold, body, scope, full, fold.step, empty)
        offset = scope.ranges[fold.dim].offset
        tail = At(add(b, offset.base, full), offset.constant)
        each_apart = replace(scope, rest=True) if many else scope

        def written_out(lengths: tuple[int, ...]) -> None:
            points = PointCount(rest, lengths) if len(lengths) > 1 else lengths[0]
            each = partial(self._iteration, fold, body, each_apart, tail, points, At(full))
            only_if(self.b, partial(self._among, rest, lengths), each, "rest")

        if longest:
            written_out(longest)
        lines = len(b.lines) - begun
        least, reduced = math.gcd(*rests), self.reduced[fold.dim]
        in_pieces = len(groups) > (_APART_OF_MANY if many else _APART) and not reduced
        fewer = len(groups) > (fold.step // least - 1).bit_length()
        if many and fewer and len(groups) * lines > _LINES:
            in_pieces = not (reduced and empty)  # the first one begins sums
        if in_pieces and in_halves(fold, body, least, reduced):
            left = b.select(self._among(rest, longest), number(0), rest) if longest else rest
            self._pieces(fold, body, scope, tail, At(full), left, least)
            return
        for lengths in groups:
            written_out(lengths)

    def _among(self, found: Val, lengths: tuple[int, ...]) -> Val:
        """Whether a length is one of these, which no other one lies between."""
        b, first, most = self.b, lengths[0], lengths[-1]
        if first == most:
            return b.compare("icmp eq", found, number(first))
        return b.compare("icmp ule", b.binary("sub", found, number(first)), number(most - first))

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

            def each(begun: Val = begun, piece: int = piece) -> None:
                offset = At(add(b, tail.base, begun), tail.constant)
                self.emit(
                    body, self._inside(fold, scope, PointRange(offset, piece, At(begun)), own)
                )

            def is_there(there: Val = there) -> Val:
                return there

            only_if(self.b, is_there, each, "piece")
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
            b.multiples[own.text] = inner or fold.step
            part: PointCount | int | None = inner
            if part is None:
                left = b.intrinsic("smin", b.binary("sub nsw", span, own), number(fold.step))
                part = PointCount(left, _lengths(fold, range_.span))
            offset = At(add(b, range_.offset.base, own), range_.offset.constant)
            self._iteration(fold, body, scope, offset, part, At(own))

        self._repeat(fold, body, scope, span, each, empty)

    def _cut(self, fold: ir.Fold, cut: ir.Cut, body: ir.Statement, scope: Scope) -> None:
        """The loop without iterations that change nothing; those apart in which all bounds hold."""
        b, range_, step = self.b, scope.ranges[fold.dim], fold.step
        span = range_.span
        if step > 1 and not isinstance(span, int):
            self._serial(fold, body, scope)
            return
        full, rest = _value(span), 0
        if isinstance(span, int):
            full, rest = number(span - span % step), span % step
        found = self.cuts.pieces(cut, fold, scope, full)
        known = replace(scope, holds=(*scope.holds, *cut.bounds))
        pause = self.pauses.get(id(body))

        def piece(start: Val, stop: Val, inner: Scope) -> None:
            if start.text == stop.text:
                return

            def each(own: Val) -> None:
                offset = At(add(b, range_.offset.base, own), range_.offset.constant)
                self._iteration(fold, body, inner, offset, step, At(own))

            self._repeat(fold, body, inner, stop, each, True, start)
            if pause is not None:
                self.emit(pause.then, scope)

        if full.text != "0":
            if cut.apart:
                piece(found.start, found.whole, scope)
                piece(found.whole, found.mixed, known)
                piece(found.mixed, found.stop, scope)
            else:
                piece(found.start, found.stop, scope)
        if rest:
            assert isinstance(span, int)
            offset = range_.offset + (span - rest)
            last = partial(self._iteration, fold, body, scope, offset, rest, At(None, span - rest))
            only_if(self.b, lambda: found.last, last, "rest")

    def _compacted(
        self, fold: ir.Fold, compacted: ir.Compacted, body: ir.Statement, scope: Scope
    ) -> None:
        """The loop over the iterations in a list, which may be empty."""
        b, range_ = self.b, scope.ranges[fold.dim]

        def known(ref: ir.TensorRef, at: Scope) -> Val:
            return self.value(ir.Cast(ir.Load(ref, INT32, total=True), INT64), at)

        def each(turn: Val) -> None:
            inner = scope.copied()
            inner.variables[ir.TURN] = turn
            own = known(compacted.offset, inner)
            offset = At(add(b, range_.offset.base, own), range_.offset.constant)
            self._iteration(fold, body, scope, offset, 1, At(own))

        self._repeat(fold, body, scope, known(compacted.count, scope), each, empty=True)

    def _repeat(
        self,
        fold: ir.Fold,
        body: ir.Statement,
        scope: Scope,
        span: Val,
        each: Callable[[Val], None],
        empty: bool,
        start: Val | None = None,
    ) -> None:
        """``each`` iteration over ``span`` points, with looks whether to go on."""
        b, work, count, step = (
            self.b,
            self._statements_at_most(body),
            representative(fold.count),
            fold.step,
        )
        pause, written = self.pauses.get(id(body)), stored_in(body)
        if pause is None:
            stoppable_repeat(b, span, step, count, work, each, empty, start, written)
            return
        stretch = step * pause.every

        def some(start: Val) -> None:
            end = b.intrinsic("smin", b.binary("add nsw", start, number(stretch)), span)
            stoppable_repeat(b, end, step, pause.every, work, each, False, start, written)
            then = partial(self.emit, pause.then, scope)
            if pause.after_last:
                then()
            else:
                only_if(self.b, lambda: b.compare("icmp slt", end, span), then, "between")

        count = -(-count // pause.every)
        stoppable_repeat(b, span, stretch, count, work * pause.every, some, empty, start)

    def padded(self, fold: ir.Fold, body: ir.Statement, scope: Scope) -> None:
        """A loop whose iterations beyond the end of the dimension run, too, with no points. Those
        of the others whose number is known are written out: then rows of memory can be transposed
        in registers."""
        range_, whole = scope.ranges[fold.dim], fold.step * fold.count
        if isinstance(range_.span, PointCount):
            self._padded(fold, body, scope, range_.span)
            return
        span = known_span(fold, scope)
        rest = span % fold.step
        if span > rest:
            self._unrolled(
                fold, body, scope.moved({fold.dim: replace(range_, span=span - rest)}, {})
            )
        for own in range(span - rest, whole, fold.step):
            points = min(rest, fold.step) if own == span - rest else 0
            self._iteration(fold, body, scope, range_.offset + own, points, At(None, own))

    def _padded(self, fold: ir.Fold, body: ir.Statement, scope: Scope, span: PointCount) -> None:
        """As ``padded``, of a number of points that is known only when the code runs."""
        b, offset = self.b, scope.ranges[fold.dim].offset

        def each(points: int, own: Val) -> None:
            at = At(add(b, offset.base, own), offset.constant)
            self._iteration(fold, body, scope, at, points, At(own))

        rest = b.binary("urem", span.value, number(fold.step))
        full = b.binary("sub nsw", span.value, rest)
        repeat(b, number(0), full, fold.step, partial(each, fold.step), span.least < fold.step)
        for points in sorted(span.remainders(fold.step) - {0}):
            there = partial(self._among, rest, (points,))
            only_if(self.b, there, partial(each, points, full), "rest")
        begun = b.binary("sub nsw", number(fold.step * fold.count), span.value)
        left = b.binary("sub nsw", begun, b.binary("urem", begun, number(fold.step)))
        start = b.binary("sub nsw", number(fold.step * fold.count), left)
        repeat(b, start, number(fold.step * fold.count), fold.step, partial(each, 0), True)

    # Loops that are written out.

    def _unknown(self, loop: ir.Loop, body: ir.Statement, scope: Scope) -> str | None:
        """A dimension whose length has to be known in a loop, and is one of several."""
        for dim in self.ragged.exact(loop, body):
            span = scope.ranges[dim].span
            if isinstance(span, PointCount) and isinstance(span.choices, tuple):
                return dim
        return None

    def _each_length(self, dim: str, loop: ir.Loop, body: ir.Statement, scope: Scope) -> None:
        """The loop once for each length of a dimension."""
        range_ = scope.ranges[dim]
        assert isinstance(range_.span, PointCount)
        assert isinstance(range_.span.choices, tuple)
        for points in range_.span.choices:
            there = partial(self._among, range_.span.value, (points,))
            known = scope.moved({dim: replace(range_, span=points)}, {})
            only_if(self.b, there, partial(self.loop, loop, body, known), "rest")

    def _unrolled(self, fold: ir.Fold, body: ir.Statement, scope: Scope) -> None:
        offset, span = scope.ranges[fold.dim].offset, scope.ranges[fold.dim].span
        lengths: tuple[int, ...] = ()
        if isinstance(span, PointCount) and not isinstance(span.choices, Lengths):
            lengths = span.choices
        known = max(lengths) if lengths else known_span(fold, scope)
        least, begun = min(lengths, default=known), 0
        whole = least - least % fold.step
        several = whole > fold.step and not scope.written_out
        large = not lengths and self._statements_at_most(body) >= _COPIES
        looped = large or (scope.rest and known % fold.step == 0)
        if several and looped and self.ragged.copies(fold, body):
            self._counted(fold, body, scope, number(whole), fold.step)
            begun = whole
        if id(body) not in self.straight:
            self.straight[id(body)] = straight(body)
        if self.straight[id(body)]:
            written = {fold.dim: scope.ranges[fold.dim], **scope.written_out}
            scope = replace(scope, written_out=written)
        for own in range(begun, known, fold.step):
            part: PointCount | int = min(fold.step, known - own)
            if isinstance(span, PointCount) and least < own + fold.step:
                left = self.b.binary("sub nsw", span.value, number(own))
                part = PointCount(left, tuple(length - own for length in lengths))
            self._iteration(fold, body, scope, offset + own, part, At(None, own))

    def _lanes(self, fold: ir.Fold, body: ir.Statement, scope: Scope) -> None:
        """All lanes at once; those behind the end of the dimension switched off."""
        span, lanes, there = scope.ranges[fold.dim].span, fold.count, None
        if isinstance(span, PointCount) and self.ragged.masks:
            there, active = fewer(self.b, lanes, span.value), lanes
        else:
            active = min(known_span(fold, scope), lanes)
            there = leading(lanes, active) if active < lanes else None
        inside = replace(
            scope,
            folds={**scope.folds, fold.name: scope.ranges[fold.dim].begun},
            lanes=lanes,
            lane_dim=fold.dim,
            lane_fold=fold.name,
            active=active,
            there=there,
            mask=there,
        )
        if active:
            self.emit(body, inside)

    def _iteration(
        self,
        fold: ir.Fold,
        body: ir.Statement,
        scope: Scope,
        offset: At,
        span: PointCount | int,
        own: At,
    ) -> None:
        """The body once. ``offset`` is from the start of the dim, ``own`` from where the loop
        begins, ``span`` what is handed on."""
        self.emit(body, self._inside(fold, scope, PointRange(offset, span), own))

    def _inside(self, fold: ir.Fold, scope: Scope, range_: PointRange, own: At) -> Scope:
        """The place that an iteration hands on: the points before it are this loop's as far as it
        steps over them, and the next one's else."""
        b, begun = self.b, scope.ranges[fold.dim].begun.base
        if begun is not None and fold.step > 1:
            rest = b.binary("urem", begun, number(fold.step))
            range_ = replace(range_, begun=At(rest))
            begun = b.binary("sub nsw", begun, rest)
        place = At(add(b, begun, own.base), own.constant)
        return scope.moved({fold.dim: range_}, {fold.name: place})


_OVERLAPPING = 128
"""Statements of an iteration from which on it takes nothing to ask whether it is the last one: rows
of few take 1.05 to 1.1 times as long, as each address is computed anew."""
_COPIES = 8
"""Vectors that an iteration copies from which on the end of a loop takes nothing beside them: it is
not written out."""
_APART = 3
"""Lengths of a last, shorter iteration of which each has code of its own."""
_APART_OF_MANY = 31
"""Likewise in code for many sizes, where the last iteration may be most of the work, and each piece
of it would read the other operands once more."""
_LINES = 2000
"""Lines of LLVM code of all such lengths together from which on there are pieces: where several
sizes vary, each length of one has code for each length of another. With all sizes varying, 79 defs
of strangers have .42 MB of code in the mean instead of .94, and take as long within 3 %."""


def _lengths(fold: ir.Fold, span: PointCount | int) -> tuple[int, ...] | Lengths:
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


def _value(span: PointCount | int) -> Val:
    return number(span) if isinstance(span, int) else span.value
