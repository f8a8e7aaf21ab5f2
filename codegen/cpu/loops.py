"""Loops, accumulators and stores of one nest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from tcl.codegen import ir
from tcl.codegen.cpu.arith import arithmetic
from tcl.codegen.cpu.builder import Builder, Val
from tcl.codegen.cpu.memory import Memory, Site
from tcl.codegen.cpu.scope import Range, Scope, add, i64
from tcl.codegen.cpu.values import Values
from tcl.codegen.device import CpuProfile
from tcl.grammar.types import ScalarType


class NestEmitter:
    """Emits one nest at the end of a builder's function."""

    def __init__(
        self,
        b: Builder,
        program: ir.Program,
        nest: ir.Nest,
        pointers: dict[str, Val],
        device: CpuProfile,
        unchecked: bool,
        sites: list[Site],
    ) -> None:
        self.b, self.nest = b, nest
        native_half = device.has("f16c") or device.triple.startswith(("aarch64", "arm64"))
        self.values = Values(b, nest, native_half)
        self.memory = Memory(
            b, program, nest, pointers, native_half, unchecked, self.values.value, sites
        )
        self.values.memory = self.memory
        self.types: dict[str, ScalarType] = {}
        """Accumulator → its type."""

    def emit(self) -> None:
        """The nest's body, from its first to its last point."""
        if self.nest.body is None:
            raise ir.IRError(f"nest {self.nest.name} has no body yet")
        ranges = {d.name: Range(0, d.extent) for d in self.nest.dims}
        self.statement(self.nest.body, Scope(ranges))

    def statement(self, statement: ir.Statement, scope: Scope) -> None:
        match statement:
            case ir.Block(body=body):
                inner = scope.copied()
                for s in body:
                    self.statement(s, inner)
            case ir.For(loop=loop, body=body):
                self.loop(loop, body, scope)
            case ir.Let(name=name, value=value):
                scope.variables[name] = self.values.value(value, scope)
            case ir.Declare(name=name, value=value):
                self.declare(name, value, scope)
            case ir.Accumulate(name=name, op=op, value=value):
                slot, like = scope.accumulators[name]
                new = self.values.value(value, scope)
                old = self.b.op(f"load {like.ty}, ptr {slot}", like.type, like.lanes)
                result = arithmetic(self.b, op, old, new, self.types[name])
                self.b.do(f"store {self.b.spread(result, like.lanes)}, ptr {slot}")
            case ir.Store(ref=ref, value=value):
                self.memory.store(ref, self.stored(value, scope), scope)
            case _:
                assert_never(statement)

    def declare(self, name: str, value: ir.Value, scope: Scope) -> None:
        start = self.b.spread(self.values.value(value, scope), scope.lanes)
        slot = self.b.alloca(start.ty)
        self.b.do(f"store {start}, ptr {slot}")
        scope.accumulators[name] = slot, start
        self.types[name] = value.type

    def stored(self, value: ir.Value, scope: Scope) -> Val:
        if isinstance(value, ir.Variable) and value.name in scope.accumulators:
            slot, like = scope.accumulators[value.name]
            return self.b.op(f"load {like.ty}, ptr {slot}", like.type, like.lanes)
        return self.values.value(value, scope)

    # Loops.

    def loop(self, loop: ir.Loop, body: ir.Statement, scope: Scope) -> None:
        match loop.kind:
            case ir.Kind.SERIAL:
                self.serial(loop.fold, body, scope)
            case ir.Kind.VECTOR:
                self.lanes(loop.fold, body, scope)
            case _:
                assert_never(loop.kind)

    def serial(self, fold: ir.Fold, body: ir.Statement, scope: Scope) -> None:
        """Iterations one after the other; a last, shorter one on its own if that lets the lanes
        inside of it be known."""
        start, span, step = scope.ranges[fold.dim].offset, scope.ranges[fold.dim].span, fold.step
        if isinstance(span, int):
            full, rest = divmod(span, step)
            if full and rest and fold == self.above_lanes(fold.dim):
                self.counted(fold, body, scope, start, full * step, step)
                tail = add(self.b, start, full * step)
                self.iteration(fold, body, scope, tail, rest)
            elif rest == 0:
                self.counted(fold, body, scope, start, span, step)
            else:
                self.counted(fold, body, scope, start, span, None)
        else:
            self.counted(fold, body, scope, start, span, step if step == 1 else None)

    def above_lanes(self, dim: str) -> ir.Fold | None:
        """The fold that hands out ranges of lanes, if ``dim`` is vectorised."""
        loops = [x for x in self.nest.loops if x.fold.dim == dim]
        if len(loops) > 1 and loops[-1].kind is ir.Kind.VECTOR:
            return loops[-2].fold
        return None

    def counted(
        self,
        fold: ir.Fold,
        body: ir.Statement,
        scope: Scope,
        start: Val | int,
        span: Val | int,
        inner: int | None,
    ) -> None:
        """The loop from ``start`` over ``span`` points. ``inner`` is the span of an iteration;
        None where the last one may be shorter."""
        if span == 0:
            return
        if isinstance(span, int) and span <= fold.step:
            self.iteration(fold, body, scope, start, span)
            return
        b = self.b
        end = i64(add(b, start, span))

        def each(offset: Val) -> None:
            part: Val | int | None = inner
            if part is None:
                left = b.binary("sub nsw", end, offset)
                part = b.intrinsic("smin", left, i64(fold.step))
            self.iteration(fold, body, scope, offset, part)

        self.repeat(i64(start), end, fold.step, each)

    def repeat(self, start: Val, end: Val, step: int, each: Callable[[Val], None]) -> None:
        """``for (x = start; x < end; x += step) each(x)``"""
        b = self.b
        head, into, out = (b.new_label(x) for x in ("head", "body", "done"))
        before = b.block
        b.branch(head)
        b.start(head)
        offset = b.op("phi", "i64")
        at = len(b.lines) - 1
        b.branch_if(b.compare("icmp slt", offset, end), into, out)
        b.start(into)
        each(offset)
        following = b.binary("add nsw", offset, i64(step))
        pairs = f"[ {start.text}, %{before} ], [ {following.text}, %{b.block} ]"
        b.lines[at] = f"  {offset.text} = phi i64 {pairs}"
        b.branch(head)
        b.start(out)

    def iteration(
        self,
        fold: ir.Fold,
        body: ir.Statement,
        scope: Scope,
        offset: Val | int,
        span: Val | int,
    ) -> None:
        """The body once. ``offset`` is from the start of the dim, ``span`` what is handed on."""
        outer = scope.ranges[fold.dim].offset
        own: Val | int = offset
        if isinstance(offset, int) and isinstance(outer, int):
            own = offset - outer
        elif outer != 0:
            own = self.b.binary("sub nsw", i64(offset), i64(outer))
        inner = replace(
            scope.copied(),
            ranges={**scope.ranges, fold.dim: Range(offset, span)},
            folds={**scope.folds, fold.name: own},
        )
        self.statement(body, inner)

    def lanes(self, fold: ir.Fold, body: ir.Statement, scope: Scope) -> None:
        """All lanes at once where the range is full, else one point after the other."""
        b, span = self.b, scope.ranges[fold.dim].span
        if isinstance(span, int):
            if span == fold.count:
                self.vector(fold, body, scope)
            else:
                self.serial(fold, body, scope)
            return
        full, rest, after = (b.new_label(x) for x in ("lanes", "rest", "after"))
        b.branch_if(b.compare("icmp eq", span, i64(fold.count)), full, rest)
        b.start(full)
        self.vector(fold, body, scope)
        b.branch(after)
        b.start(rest)
        self.serial(fold, body, scope)
        b.branch(after)
        b.start(after)

    def vector(self, fold: ir.Fold, body: ir.Statement, scope: Scope) -> None:
        self.statement(
            body, replace(scope.copied(), lanes=fold.count, lane_dim=fold.dim, mask=None)
        )
