"""One kernel: what a block does, phase by phase."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import assert_never

from tcl.codegen.cuda.cpp.types import c_type, constant
from tcl.codegen.cuda.emit.fill import Fills
from tcl.codegen.cuda.emit.pipeline import write_pipeline
from tcl.codegen.cuda.emit.scope import CudaScope
from tcl.codegen.cuda.emit.thread_body import write_thread_body
from tcl.codegen.cuda.emit.threads import Threads
from tcl.codegen.cuda.emit.writer import Accumulators, Writer, iteration, write_carry
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.guards import guarded
from tcl.codegen.loopir.unrolling import MANY, written_out
from tcl.codegen.loopir.walk import alone, chain, combines, uniform
from tcl.grammar.sizes.varying import Size


class BlockWriter:
    """Writes the statements of one kernel."""

    def __init__(self, writer: Writer, threads: Threads) -> None:
        self.writer, self.threads = writer, threads
        self.geometry, self.lines = writer.geometry, writer.lines
        self.fills = Fills(writer, threads)

    def together(self, statement: ir.Statement, scope: CudaScope) -> None:
        """A statement outside of loops over threads, which all of them run together."""
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
            case ir.Pipeline():
                write_pipeline(self.fills, statement, scope, self.together)
            case ir.Fill():
                self.fills.fill(statement, scope)
            case ir.For() | ir.Accumulate() if combines(statement):
                write_combined(self.writer, statement, scope)
            case ir.Block() | ir.For() | ir.Store() | ir.Update() | ir.Let() | ir.Accumulate():
                with self.threads.taking_part(statement, scope):
                    self._loops(statement, scope)
            case ir.First() | ir.Prefetch() | ir.Matrix() | ir.Scan():
                raise ir.IRError(f"a GPU has no {type(statement).__name__}")
            case _:
                assert_never(statement)

    def _declare(self, declare: ir.Declare) -> None:
        own = tuple(f for f in declare.over if f not in self.geometry.threads)
        name = self.writer.names.new(declare.name.replace("accumulator", "sum"))
        self.writer.accumulators[declare.name] = Accumulators(name, own)
        sizes = "".join(f"[{f.count}]" for f in own)
        count = math.prod(f.count for f in own)
        # A volatile array lies in local memory: the compiler keeps everything else in registers, so
        # that half as many threads would fit.
        type_ = "volatile " * (declare.seldom and count > MANY) + c_type(declare.type)
        if declare.start is None:
            self.lines.add(f"{type_} {name}{sizes};")
            return
        start = constant(declare.start.value, declare.type)
        self.writer.used |= {"infinity"} if "infinity" in start else set()
        if not own:
            self.lines.add(f"{type_} {name} = {start};")
            return
        self.lines.add(f"{type_} {name}{sizes};")
        self.lines.add("#pragma unroll", margin=True)
        flat = f"(&{name}{'[0]' * len(own)})[k]" if len(own) > 1 else f"{name}[k]"
        self.lines.add(f"for (int k = 0; k < {count}; ++k) {flat} = {start};")

    def _loops(self, statement: ir.Statement, scope: CudaScope) -> None:
        """Loops of one thread, from the outermost."""
        match statement:
            case ir.For() | ir.Accumulate() if combines(statement):
                write_combined(self.writer, statement, scope)
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
        """The line before a loop of one thread that lets it be written out, or some of its
        iterations; empty for a loop that stays."""
        times, count = written_out(loop), loop.loop.fold.count
        if times < 2:
            return ""
        whole = loop.pause is None and not isinstance(count, Size) and times == count
        return "#pragma unroll" + ("" if whole else f" {times}")


def write_combined(writer: Writer, statement: ir.Statement, scope: CudaScope) -> None:
    """All threads of the block take part, whether or not their points are there."""
    loops, body = chain(statement)
    if not isinstance(body, ir.Accumulate) or not isinstance(body.value, ir.Combined):
        raise ir.IRError("nothing is combined here")
    combined = body.value
    own = [x.fold for x in loops if x.kind is not ir.Kind.THREAD]
    with writer.unrolled(own, scope) as inner:
        kept = [f for f in combined.folds if f not in writer.geometry.threads]
        target = writer.accumulator(body.name, inner)
        first = inner
        for fold in kept:
            first = first.with_fold(fold, "0")
        writer.lines.add(f"{target} = {writer.text(combined.value, first)};")
        if kept:
            _rest(writer, target, combined, kept, inner)
        for fold in (f for f in combined.folds if f in writer.geometry.threads):
            _over_threads(writer, target, combined, fold, inner)


def _rest(
    writer: Writer, target: str, combined: ir.Combined, kept: list[ir.Fold], scope: CudaScope
) -> None:
    """The thread's own sums but the first one."""
    with writer.unrolled(kept, scope) as each:
        numbers = (iteration(f, each) for f in kept)
        later = " || ".join(f"{n} > 0" for n in numbers if n != "0")
        if not later:
            return  # the others have no points
        text = writer.text(combined.value, each)
        made = writer.expressions(each).merge(combined.op, target, text, combined.type)
        writer.lines.add(f"if ({later}) {target} = {made};")


def _over_threads(
    writer: Writer, target: str, combined: ir.Combined, fold: ir.Fold, scope: CudaScope
) -> None:
    """Those of the threads of one fold; all of them get the result."""
    folds = writer.geometry.space_of[fold.dim].threads
    apart = math.prod(f.count for f in folds[folds.index(fold) + 1 :])
    type_ = c_type(combined.type)
    both = writer.expressions(scope).merge(combined.op, "a", "b", combined.type)
    writer.used.add("over_threads")
    writer.lines.add(
        f"{target} = over_threads<{fold.count}, {apart}>({target}, "
        f"[]({type_} a, {type_} b) {{ return {both}; }}, ({type_} *)exchange);"
    )
