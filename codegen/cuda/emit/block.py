"""One kernel: what a block does, phase by phase."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from tcl.codegen.cuda.cpp.types import c_type, constant
from tcl.codegen.cuda.emit.combine import write_combined
from tcl.codegen.cuda.emit.fill import Fills
from tcl.codegen.cuda.emit.module import SHARED
from tcl.codegen.cuda.emit.pipeline import write_pipeline
from tcl.codegen.cuda.emit.scope import CudaScope
from tcl.codegen.cuda.emit.thread_body import write_thread_body
from tcl.codegen.cuda.emit.threads import Threads
from tcl.codegen.cuda.emit.writer import Accumulators, Writer, write_carry
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.combining import combined_of
from tcl.codegen.loopir.guards import guarded
from tcl.codegen.loopir.unrolling import MANY, by_rows, written_out
from tcl.codegen.loopir.walk import alone, chain, uniform
from tcl.grammar.sizes.varying import Size


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
                loops, innermost = chain(statement)
                self._thread_body(loops, innermost, scope)
            case ir.Block(body=parts) if not alone(statement):
                for s in parts:
                    self._loops(s, scope)
            case _:
                self._thread_body((), statement, scope)

    def _thread_body(self, loops: Sequence[ir.Loop], body: ir.Statement, scope: CudaScope) -> None:
        dims = guarded(self.geometry, body, loops, scope.folds)
        write_thread_body(self.writer, loops, body, dims, scope)

    def _unroll(self, loop: ir.For) -> str:
        """The line before a loop of one thread that says how many of its iterations are written
        out; empty where that is left to compilers."""
        times, count = written_out(loop, self.geometry), loop.loop.fold.count
        if times < 2:
            return "#pragma unroll 1" if by_rows(loop.body, self.geometry) else ""
        whole = loop.pause is None and not isinstance(count, Size) and times == count
        return "#pragma unroll" + ("" if whole else f" {times}")
