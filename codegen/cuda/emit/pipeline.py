"""Loops whose panels are filled ahead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from tcl.codegen.cuda.emit.fill import Fills
from tcl.codegen.cuda.emit.scope import CudaScope
from tcl.codegen.loopir import ir
from tcl.grammar.sizes.varying import provably, provably_at_least

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


@dataclass(frozen=True, slots=True)
class _Pipeline:
    fills: Fills
    pipeline: ir.Pipeline
    work: Callable[[ir.Statement, CudaScope], None]

    @property
    def count(self) -> int:
        """Iterations that the loop has. What is filled for any other is waited for by nobody."""
        return self.fills.writer.geometry.iterations(self.pipeline.loop.fold)

    @property
    def _end_offset(self) -> str:
        """The offset at which the loop ends."""
        return self.fills.writer.sizes.index_number(self.pipeline.loop.fold.step * self.count)

    def asynchronous(self, scope: CudaScope) -> None:
        """Copies that nobody waits for, as many iterations ahead as there are buffers."""
        lines, fold, ahead = self.fills.lines, self.pipeline.loop.fold, self.pipeline.buffers - 1
        copy = self.fills.fill_async
        for k in range(ahead):
            at = scope.with_fold(fold, str(k * fold.step))
            if provably_at_least(self.count, k + 1):
                self._into(str(k), at, copy)
            elif not provably(lambda k=k: k >= self.count):
                with lines.block(f"if ({k * fold.step} < {self._end_offset}) {{"):
                    self._into(str(k), at, copy)
            lines.add("commit_copies();")
        with self.fills.threads.serial(fold, scope, self.pipeline.pause) as inner:
            lines.add(f"wait_copies<{ahead - 1}>();")
            lines.add("__syncthreads();")
            following, test = self._following(inner, ahead)
            with lines.block(f"if ({test}) {{"):
                self._into(self._buffer(inner, ahead), following, copy)
            lines.add("commit_copies();")
            self._work(inner)

    def one_ahead(self, scope: CudaScope, before: Write, after: Write | None) -> None:
        """One iteration ahead: what is written before the work, and after it."""
        lines, fold = self.fills.lines, self.pipeline.loop.fold
        first = scope.with_fold(fold, "0")
        self._into("0", first, before)
        if after is not None:
            self._into("0", first, after)
        with self.fills.threads.serial(fold, scope, self.pipeline.pause) as inner:
            lines.add("__syncthreads();")
            following, test = self._following(inner, 1)
            with lines.block(f"if ({test}) {{"):
                self._into("0" if after else self._buffer(inner, 1), following, before)
            self._work(inner)
            if after is not None:
                with lines.block(f"if ({test}) {{"):
                    self._into(self._buffer(inner, 1), following, after)

    def _buffer(self, scope: CudaScope, ahead: int) -> str:
        """The buffer of an iteration so many further."""
        fold = self.pipeline.loop.fold
        offset = scope.folds[fold.name]
        now = offset if fold.step == 1 else f"{offset} / {fold.step}"
        return (
            f"({now} + {ahead}) % {self.pipeline.buffers}"
            if ahead
            else (f"{now} % {self.pipeline.buffers}")
        )

    def _following(self, scope: CudaScope, ahead: int) -> tuple[CudaScope, str]:
        """The place so many iterations further, and the test that there is one."""
        fold = self.pipeline.loop.fold
        further = f"{scope.folds[fold.name]} + {ahead * fold.step}"
        return scope.with_fold(fold, further), f"{further} < {self._end_offset}"

    def _work(self, scope: CudaScope) -> None:
        self._at(self._buffer(scope, 0))
        self.work(self.pipeline.body, scope)

    def _into(self, buffer: str, scope: CudaScope, write: Write) -> None:
        self._at(buffer)
        for fill in self.pipeline.fills:
            write(fill, scope)

    def _at(self, buffer: str) -> None:
        """From here on, panels mean this buffer of theirs."""
        memory = self.fills.memory
        for fill in self.pipeline.fills:
            panel = self.fills.threads.kernel.panel(fill.panel)
            size = panel.size // memory.type(fill.panel).itemsize
            known = buffer.isdigit()
            memory.buffer[fill.panel] = str(int(buffer) * size) if known else f"({buffer}) * {size}"
