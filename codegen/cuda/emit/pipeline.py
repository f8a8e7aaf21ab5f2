"""Loops whose panels are filled ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from tcl.codegen.cuda.emit.fill import Fills
from tcl.codegen.cuda.emit.mma import TensorCores, tensor_cores
from tcl.codegen.cuda.emit.names import CudaScope
from tcl.codegen.cuda.emit.writer import iteration
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.unrolling import counts_buffers, tiles_written_out
from tcl.codegen.loopir.walk import chain, in_block
from tcl.grammar.sizes.varying import (
    provably,
    provably_at_least,
    provably_divides,
    representative,
)

Write = Callable[[ir.Fill, CudaScope], None]


def write_pipeline(
    fills: Fills,
    pipeline: ir.Pipeline,
    scope: CudaScope,
    work: Callable[[ir.Statement, CudaScope], None],
) -> None:
    """The loop, and the fills before it. ``work`` writes what is done with the panels."""
    made = _Pipeline(fills, pipeline, work)
    if pipeline.meet:
        fills.lines.add("__syncthreads();")
    match pipeline.ahead:
        case ir.Ahead.ASYNCHRONOUS if pipeline.steps is not None:
            made.with_fragments_ahead(pipeline.steps, scope)
        case ir.Ahead.ASYNCHRONOUS:
            made.asynchronous(scope)
        case ir.Ahead.REGISTERS:
            for fill in pipeline.fills:
                fills.declare(fill)
            made.one_ahead(scope, fills.fetch, fills.put)
        case ir.Ahead.DIRECT:
            made.one_ahead(scope, fills.fill, None)
        case _:
            assert_never(pipeline.ahead)
    for fill in pipeline.fills:
        fills.memory.buffer.pop(fill.panel, None)


@dataclass(slots=True)
class _Pipeline:
    fills: Fills
    pipeline: ir.Pipeline
    work: Callable[[ir.Statement, CudaScope], None]
    known: str = ""
    """The variable that has the buffer of an iteration, if there is one."""

    @property
    def by_warpgroups(self) -> bool:
        """Whether warpgroups read the panels."""
        memory = self.fills.memory
        return any(memory.layout_of(fill.panel).slabs for fill in self.pipeline.fills)

    @property
    def count(self) -> int:
        """Iterations that the loop has. What is filled for any other is waited for by nobody."""
        return self.fills.writer.geometry.iterations(self.pipeline.loop.fold)

    @property
    def _end_offset(self) -> str:
        return self.fills.writer.sizes.index_number(self.pipeline.loop.fold.step * self.count)

    def asynchronous(self, scope: CudaScope) -> None:
        """Copies that nobody waits for, as many iterations ahead as there are buffers."""
        lines, fold, ahead = self.fills.lines, self.pipeline.loop.fold, self.pipeline.copies_ahead
        self._first_copies(scope)
        counted = self._counted_buffers()
        writer, last = self.fills.writer, self.pipeline.buffers - 1
        with self.fills.threads.serial(fold, scope, self.pipeline.pause) as inner:
            self.arrived()
            following, test = self.following(inner, ahead)
            now, next_ = counted or (self.buffer(inner, 0), self.buffer(inner, ahead))
            with lines.block(f"if ({test}) {{"):
                self.into(next_, following, self.fills.fill_async)
            lines.add("commit_copies();")
            self.at(now)
            writer.unfinished = "" if self.pipeline.unfinished else None
            self.work(self.pipeline.body, inner)
            unfinished, writer.unfinished = writer.unfinished, None
            for name in counted:
                lines.add(f"{name} = {name} == {last} ? 0 : {name} + 1;")
        if unfinished:
            lines.add(f"end_products({unfinished});")

    def _counted_buffers(self) -> tuple[str, ...]:
        """Variables that have the buffer that is read and the one that is filled; empty for a loop
        that does not count these."""
        if not counts_buffers(self.pipeline, self.fills.writer.geometry):
            return ()
        names = tuple(self.fills.writer.names.new(n) for n in ("reading", "filling"))
        self.fills.lines.add(f"int {names[0]} = 0, {names[1]} = {self.pipeline.copies_ahead};")
        return names

    def with_fragments_ahead(self, steps: ir.Fold, scope: CudaScope) -> None:
        """Likewise; before tensor cores multiply, the fragments of the next step are read. Each
        step begins a part of the copies, so that these do not delay the fragments. The last
        iterations, which copy nothing, are a loop of their own: copies under a condition that does
        not hold take eight times as many wavefronts as others (32 each, measured on an H100)."""
        lines, fold = self.fills.lines, self.pipeline.loop.fold
        loops, point = chain(self.pipeline.body)
        while isinstance(point, ir.Block) and isinstance(point.body[0], ir.For):
            more, point = chain(point.body[0])
            loops += more
        product = tensor_cores(
            self.fills.writer, [x for x in loops if x.fold != steps], in_block(point)
        )
        assert isinstance(product, TensorCores)  # as the pass has seen
        self._first_copies(scope)
        for number in range(2):
            product.declare(number, 2)
        made = _Steps(self, steps, product)
        self.arrived()
        made.read("0", scope.with_fold(fold, "0"), "0", "0")
        name = self.fills.writer.names.new(f"{fold.dim.rpartition('.')[2]}_{fold.level}")
        inner = scope.with_fold(fold, name)
        lines.add(f"{self.fills.writer.integer} {name} = 0;")
        _, more_to_copy = self.following(inner, self.pipeline.buffers - 1)
        for test, copies in ((more_to_copy, True), (f"{name} < {self._end_offset}", False)):
            lines.add("#pragma unroll 1", margin=True)
            with lines.block(f"for (; {test}; {name} += {fold.step}) {{"):
                made.write(inner, copies=copies)

    def arrived(self) -> None:
        """Waits until the first copies that were begun are there, for all threads."""
        self.fills.lines.add(f"wait_copies<{self.pipeline.copies_ahead - 1}>();")
        self.fills.fence(self.by_warpgroups)
        self.fills.lines.add("__syncthreads();")

    def _first_copies(self, scope: CudaScope) -> None:
        """Begins the copies of the first iterations."""
        lines, fold, copy = self.fills.lines, self.pipeline.loop.fold, self.fills.fill_async
        for k in range(self.pipeline.copies_ahead):
            at = scope.with_fold(fold, str(k * fold.step))
            if provably_at_least(self.count, k + 1):
                self.into(str(k), at, copy)
            elif not provably(lambda k=k: k >= self.count):
                with lines.block(f"if ({k * fold.step} < {self._end_offset}) {{"):
                    self.into(str(k), at, copy)
            lines.add("commit_copies();")

    def one_ahead(self, scope: CudaScope, before: Write, after: Write | None) -> None:
        """One iteration ahead: what is written before the work, and after it."""
        lines, fold = self.fills.lines, self.pipeline.loop.fold
        first = scope.with_fold(fold, "0")
        self.into("0", first, before)
        if after is not None:
            self.into("0", first, after)
        with self._iterations(scope) as inner:
            self.fills.fence(self.by_warpgroups)
            lines.add("__syncthreads();")
            following, test = self.following(inner, 1)
            with lines.block(f"if ({test}) {{"):
                self.into("0" if after else self.buffer(inner, 1), following, before)
            self._work(inner)
            if after is not None:
                with lines.block(f"if ({test}) {{"):
                    self.into(self.buffer(inner, 1), following, after)

    @contextmanager
    def _iterations(self, scope: CudaScope) -> Iterator[CudaScope]:
        """Inside of the loop; as many iterations as there are buffers are written out, where that
        makes all addresses in these constants."""
        fold, pause, threads = self.pipeline.loop.fold, self.pipeline.pause, self.fills.threads
        geometry = self.fills.writer.geometry
        each = tiles_written_out(self.pipeline, representative(self.count), geometry)
        if each == 1:
            with threads.serial(fold, scope, pause) as inner:
                yield inner
            return
        group = replace(fold, step=each * fold.step, count=-(-fold.count // each))
        if pause is not None:
            pause = replace(pause, every=pause.every // each)
        lines, number = self.fills.lines, self.fills.writer.names.new("buffer")
        with threads.serial(group, scope, pause) as around, lines.nested():
            lines.add("#pragma unroll", margin=True)
            lines.open(f"for (int {number} = 0; {number} < {each}; ++{number}) {{")
            inner = around.with_fold(fold, f"{around.folds[group.name]} + {number} * {fold.step}")
            whole = provably_divides(each, self.count)
            with lines.under("" if whole else f"{inner.folds[fold.name]} < {self._end_offset}"):
                self.known = number
                yield inner
                self.known = ""

    def buffer(self, scope: CudaScope, ahead: int) -> str:
        """The buffer of an iteration so many further."""
        fold = self.pipeline.loop.fold
        offset = scope.folds[fold.name]
        now = self.known or (offset if fold.step == 1 else f"{offset} / {fold.step}")
        return (
            f"({now} + {ahead}) % {self.pipeline.buffers}"
            if ahead
            else (f"{now} % {self.pipeline.buffers}")
        )

    def following(self, scope: CudaScope, ahead: int) -> tuple[CudaScope, str]:
        """The place so many iterations further, and the test that there is one."""
        fold = self.pipeline.loop.fold
        further = f"{scope.folds[fold.name]} + {ahead * fold.step}"
        return scope.with_fold(fold, further), f"{further} < {self._end_offset}"

    def _work(self, scope: CudaScope) -> None:
        self.at(self.buffer(scope, 0))
        self.work(self.pipeline.body, scope)

    def into(self, buffer: str, scope: CudaScope, write: Write) -> None:
        self.at(buffer)
        for fill in self.pipeline.fills:
            write(fill, scope)

    def at(self, buffer: str) -> None:
        """From here on, panels mean this buffer of theirs."""
        memory = self.fills.memory
        for fill in self.pipeline.fills:
            panel = self.fills.threads.kernel.panel(fill.panel)
            size = panel.size // memory.type(fill.panel).itemsize
            known = buffer.isdigit()
            memory.buffer[fill.panel] = str(int(buffer) * size) if known else f"({buffer}) * {size}"


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps of an iteration whose fragments are read a step ahead."""

    outer: _Pipeline
    steps: ir.Fold
    product: TensorCores

    def read(self, buffer: str, scope: CudaScope, step: str, to: str) -> None:
        """Reads the fragments of a step to one of both sets."""
        self.outer.at(buffer)
        with self.outer.fills.threads.taking_part(self.outer.pipeline.body, scope):
            for number in range(2):
                self.product.read(number, scope.with_fold(self.steps, step), f"[{to}]")

    def write(self, scope: CudaScope, *, copies: bool) -> None:
        """All steps of an iteration. ``copies``: whether panels are filled for a later one."""
        outer, steps, lines = self.outer, self.steps, self.outer.fills.lines
        further, test = outer.following(scope, 1)
        with outer.fills.writer.unrolled([steps], scope) as each:
            step, number = each.folds[steps.name], iteration(steps, each)
            with lines.block(f"if ({number} < {steps.count - 1}) {{"):
                after = f"{step} + {steps.step}"
                self.read(outer.buffer(each, 0), each, after, f"({number} + 1) % 2")
                if copies:
                    self._copy(each)
            with lines.block("else {"):
                if copies:
                    self._copy(each)
                lines.add("commit_copies();")
                with lines.under("" if copies else test):
                    outer.arrived()
                    self.read(outer.buffer(each, 1), further, "0", "0")
            with outer.fills.threads.taking_part(outer.pipeline.body, each):
                self.product.multiply(each, f"[{number} % 2]")

    def _copy(self, scope: CudaScope) -> None:
        """Begins this step's part of the copies."""
        outer, ahead = self.outer, self.outer.pipeline.buffers - 1
        part = iteration(self.steps, scope), self.steps.count
        copy = partial(outer.fills.fill_async, part=part)
        outer.into(outer.buffer(scope, ahead), outer.following(scope, ahead)[0], copy)
