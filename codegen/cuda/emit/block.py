"""One kernel: what a block does, phase by phase."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from tcl.codegen.cuda.cpp.types import c_type, constant
from tcl.codegen.cuda.emit.fill import Fills
from tcl.codegen.cuda.emit.module import SHARED
from tcl.codegen.cuda.emit.names import CudaScope
from tcl.codegen.cuda.emit.pipeline import write_pipeline
from tcl.codegen.cuda.emit.thread_body import write_thread_body
from tcl.codegen.cuda.emit.threads import Threads
from tcl.codegen.cuda.emit.writer import Accumulators, Writer, iteration, write_carry
from tcl.codegen.devices.banks import WARP
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.combining import CombinedSums, combined_of, exchange_stride
from tcl.codegen.loopir.thread_body import ThreadBody
from tcl.codegen.loopir.unrolling import MANY, by_rows, written_out
from tcl.codegen.loopir.walk import alone, chain, uniform
from tcl.grammar.sizes.varying import Size


def write_combined(writer: Writer, statement: ir.Statement, scope: CudaScope, asking: str) -> None:
    """All threads of the block take part, whether or not their points are there. ``asking``: the
    test of those that need what other warps have; empty for all threads."""
    sums, lines = CombinedSums.of(writer.geometry, statement), writer.lines
    parts = [_Combined(writer, sums, name, combined) for name, combined in sums.parts]
    turn = sums.turn if sums.warps else len(sums.own)
    rest = sums.own[turn:]
    with writer.unrolled(sums.own[:turn], scope) as outer:
        with writer.unrolled(rest, outer) as inner:
            for part in parts:
                part.own_sum(inner)
        if not sums.warps:
            return
        with writer.unrolled(rest, outer, sums.width) as inner:
            for part in parts:
                part.hand_over(inner)
        lines.add("__syncthreads();")
        with lines.under(asking), writer.unrolled(rest, outer, sums.width) as inner:
            for part in parts:
                part.over_warps(inner)
        if turn:  # the next ones are written there
            lines.add("__syncthreads();")


@dataclass(frozen=True, slots=True)
class _Combined:
    """Writes how the threads of a block combine the values of one accumulator."""

    writer: Writer
    sums: CombinedSums
    name: str
    combined: ir.Combined

    def own_sum(self, scope: CudaScope) -> None:
        """What a thread and its warp have."""
        writer, combined = self.writer, self.combined
        kept = [f for f in combined.folds if f not in writer.geometry.threads]
        target, first = writer.accumulator(self.name, scope), scope
        for fold in kept:
            first = first.with_fold(fold, "0")
        writer.lines.add(f"{target} = {writer.text(combined.value, first)};")
        with writer.unrolled(kept, scope) as each:
            numbers = (iteration(f, each) for f in kept)
            if later := " || ".join(f"{n} > 0" for n in numbers if n != "0"):
                text = writer.text(combined.value, each)
                made = writer.expressions(each).merge(combined.op, target, text, combined.type)
                writer.lines.add(f"if ({later}) {target} = {made};")
        if bits := self.sums.bits % WARP:
            self._reduce(f"over_warp<{bits}>", target, scope)

    def hand_over(self, scope: CudaScope) -> None:
        """Writes a thread's value, or some neighbours at once, to where others read it."""
        (place, first), width = self._exchanged(scope), self.sums.width
        own = self.writer.accumulator(self.name, scope)
        if width == 1:
            number = " + ".join(filter(None, (first, "threadIdx.x")))
            self.writer.lines.add(f"({place})[{number}] = {own};")
            return
        self.writer.used.add("store")
        there = " + ".join(filter(None, (place, first, f"threadIdx.x * {width}")))
        self.writer.lines.add(f"store<{width}>({there}, &{own});")

    def over_warps(self, scope: CudaScope) -> None:
        """What all warps handed over."""
        width, there = self.sums.width, " + ".join(filter(None, self._exchanged(scope)))
        how = f"over_warps<{self.sums.warps}{f', {width}' if width > 1 else ''}>"
        self._reduce(how, there, scope, width)

    def _reduce(self, how: str, value: str, scope: CudaScope, width: int = 1) -> None:
        """A call of a helper function for the sum of one result, or of so many neighbours."""
        type_ = c_type(self.combined.type)
        both = self.writer.expressions(scope).merge(self.combined.op, "a", "b", self.combined.type)
        how = f"vectors_{how}" if width > 1 else how
        self.writer.used.add(how.partition("<")[0])
        target = self.writer.accumulator(self.name, scope)
        op = f"[]({type_} a, {type_} b) {{ return {both}; }}"
        if width > 1:
            self.writer.lines.add(f"{how}(&{target}, {value}, {op});")
        else:
            self.writer.lines.add(f"{target} = {how}({value}, {op});")

    def _exchanged(self, scope: CudaScope) -> tuple[str, str]:
        """Where threads hand over the sums of one nest, and of these the first one of this
        result."""
        number, combined = "", self.combined
        for fold in self.sums.own[self.sums.turn :]:
            own = iteration(fold, scope)
            before = f"{number} * {fold.count}" if number not in ("", "0") else ""
            number = f"({before} + {own})" if before and own != "0" else before or own
        place = f"(exchange + {combined.place})" if combined.place else "exchange"
        stride = exchange_stride(self.writer.geometry.kernel.threads)
        first = f"{number} * {stride}" if number not in ("", "0") else ""
        return f"({c_type(combined.type)} *){place}", first


class BlockWriter:
    """Writes the statements of one kernel."""

    def __init__(self, writer: Writer, threads: Threads) -> None:
        self.writer, self.threads = writer, threads
        self.geometry, self.lines = writer.geometry, writer.lines
        self.fills = Fills(writer, threads)

    def together(self, statement: ir.Statement, scope: CudaScope) -> None:
        """A statement outside of loops over threads, which all of them run together."""
        if not isinstance(statement, ir.Fill | ir.Declare | ir.Block):
            self.fills.wait()
        match statement:
            case ir.Block(body=body) if not alone(statement):
                for s in body:
                    self.together(s, scope)
            case ir.Barrier():
                self.lines.add("__syncthreads();")
            case ir.Declare():
                self._declare(statement)
            case ir.Carry():
                write_carry(self.writer, statement)
            case ir.For(loop=loop, body=body, pause=pause) if uniform(statement):
                with self.threads.serial(loop.fold, scope, pause) as inner:
                    self.together(body, inner)
                    self.fills.wait()
            case ir.Pipeline():
                write_pipeline(self.fills, statement, scope, self.together)
            case ir.Fill():
                self.fills.alone(statement, scope)
            case ir.For() | ir.Block() | ir.Accumulate() if combined_of(statement):
                self._combined(statement, scope)
            case ir.Block() | ir.For() | ir.Store() | ir.Update() | ir.Let() | ir.Accumulate():
                with self.threads.taking_part(statement, scope):
                    self._loops(statement, scope)
            case ir.Last(among=among, arrived=arrived, body=body):
                self.writer.used.add("last_of")
                count = self.writer.sizes.index_number(among.count)
                place = f"{self.writer.memory.name(arrived)} + {self.threads.group(among)}"
                with self.lines.block(f"if (last_of({count}, {place})) {{"):
                    self.together(body, scope)
            case ir.First() | ir.Within() | ir.Prefetch() | ir.Matrix() | ir.Scan():
                raise ir.IRError(f"a GPU has no {type(statement).__name__}")
            case _:
                assert_never(statement)

    def _combined(self, statement: ir.Statement, scope: CudaScope) -> None:
        asking = self.threads.test(self.threads.parts.asking(statement), scope)
        write_combined(self.writer, statement, scope, asking)

    def _declare(self, declare: ir.Declare) -> None:
        own = tuple(f for f in declare.over if f not in self.geometry.threads)
        name = self.writer.names.new(declare.name.replace("accumulator", "sum"))
        made, type_ = Accumulators(name, own), c_type(declare.type)
        start = None if declare.start is None else constant(declare.start.value, declare.type)
        self.writer.used |= {"infinity"} if start and "infinity" in start else set()
        kernel, count = self.geometry.kernel, math.prod(f.count for f in own)
        if (offset := kernel.totals.get(declare.name)) is not None:
            width = 16 // declare.type.compute.itemsize
            made = replace(made, threads=kernel.threads, together=width)
            first = f"({type_} *)({SHARED} + {offset}) + threadIdx.x * {width}"
            self.lines.add(f"{type_} *const {name} = {first};")
        else:
            # A volatile array lies in local memory: the compiler keeps everything else in
            # registers, so that half as many threads would fit.
            type_ = "volatile " * (declare.seldom and count > MANY) + type_
            sizes = "".join(f"[{f.count}]" for f in own)
            begin = "" if own or start is None else f" = {start}"
            self.lines.add(f"{type_} {name}{sizes}{begin};")
        self.writer.accumulators[declare.name] = made
        if own and start is not None:
            self.lines.add("#pragma unroll", margin=True)
            each = f"for (int k = 0; k < {count}; ++k)"
            self.lines.add(f"{each} {made.element('k')} = {start};")

    def _loops(self, statement: ir.Statement, scope: CudaScope) -> None:
        """Loops of one thread, from the outermost."""
        match statement:
            case ir.For() | ir.Block() | ir.Accumulate() if combined_of(statement):
                self._combined(statement, scope)
            case ir.Declare():
                self._declare(statement)
            case ir.Carry():
                write_carry(self.writer, statement)
            case ir.For(loop=loop, body=body) if loop.kind is ir.Kind.THREAD:
                self._loops(body, scope)
            case ir.For(loop=loop, body=body, pause=pause) if loop.kind is ir.Kind.SERIAL:
                unroll = self._unroll(statement)
                with self.threads.serial(loop.fold, scope, pause, unroll) as inner:
                    self._loops(body, inner)
            case ir.For():
                self._thread_body(*chain(statement), scope)
            case ir.Block(body=parts) if not alone(statement):
                for s in parts:
                    self._loops(s, scope)
            case _:
                self._thread_body((), statement, scope)

    def _thread_body(self, loops: Sequence[ir.Loop], body: ir.Statement, scope: CudaScope) -> None:
        write_thread_body(
            self.writer, ThreadBody.of(self.geometry, loops, body, scope.folds), scope
        )

    def _unroll(self, loop: ir.For) -> str:
        """The line before a loop of one thread that says how many of its iterations are written
        out; empty where that is left to compilers."""
        times, count = written_out(loop, self.geometry), loop.loop.fold.count
        if times < 2:
            return "#pragma unroll 1" if by_rows(loop.body, self.geometry) else ""
        whole = loop.pause is None and not isinstance(count, Size) and times == count
        return "#pragma unroll" + ("" if whole else f" {times}")
