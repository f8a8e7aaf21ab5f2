"""Loops whose panels are filled ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from tcl.codegen.cuda.emit.fill import Fills
from tcl.codegen.cuda.emit.mma import tensor_cores
from tcl.codegen.cuda.emit.scope import CudaScope
from tcl.codegen.cuda.emit.writer import iteration
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import chain
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
        self._first_copies(scope)
        with self.fills.threads.serial(fold, scope, self.pipeline.pause) as inner:
            self._arrived()
            following, test = self._following(inner, ahead)
            with lines.block(f"if ({test}) {{"):
                self._into(self._buffer(inner, ahead), following, self.fills.fill_async)
            lines.add("commit_copies();")
            self._work(inner)

    def with_fragments_ahead(self, steps: ir.Fold, scope: CudaScope) -> None:
        """Likewise; before tensor cores multiply, the fragments of the next step are read. Copies
        begin in several steps, as each takes a part of the time in which fragments can be read."""
        lines, fold, ahead = self.fills.lines, self.pipeline.loop.fold, self.pipeline.buffers - 1
        threads, writer, copy = self.fills.threads, self.fills.writer, self.fills.fill_async
        loops, point = chain(self.pipeline.body)
        while isinstance(point, ir.Block) and isinstance(point.body[0], ir.For):
            more, point = chain(point.body[0])
            loops += more
        product = tensor_cores(writer, [x for x in loops if x.fold != steps], point)
        assert product is not None  # as the pass has seen
        factors = product.factors()

        def read(buffer: str, at: CudaScope, step: str, to: str) -> None:
            self._at(buffer)
            with threads.taking_part(self.pipeline.body, at):
                for factor in factors:
                    product.read(factor, at.with_fold(steps, step), f"[{to}]")

        self._first_copies(scope)
        for factor in factors:
            product.declare(factor, 2)
        self._arrived()
        read("0", scope.with_fold(fold, "0"), "0", "0")
        with threads.serial(fold, scope) as inner:
            following, test = self._following(inner, ahead)
            next_one, is_one = self._following(inner, 1)
            with writer.unrolled([steps], inner) as each:
                step = each.folds[steps.name]
                number = iteration(steps, each)
                for k, fill in enumerate(self.pipeline.fills):
                    when = min(k, steps.count - 2)
                    with lines.block(f"if ({number} == {when} && {test}) {{"):
                        self._into(self._buffer(inner, ahead), following, copy, (fill,))
                with lines.block(f"if ({number} < {steps.count - 1}) {{"):
                    after = f"{step} + {steps.step}"
                    read(self._buffer(inner, 0), inner, after, f"({number} + 1) % 2")
                with lines.block("else {"):
                    lines.add("commit_copies();")
                    with lines.block(f"if ({is_one}) {{"):
                        self._arrived()
                        read(self._buffer(inner, 1), next_one, "0", "0")
                with threads.taking_part(self.pipeline.body, each):
                    product.multiply(factors, each, f"[{number} % 2]")

    def _arrived(self) -> None:
        """Waits until the first copies that were begun are there, for all threads."""
        self.fills.lines.add(f"wait_copies<{self.pipeline.buffers - 2}>();")
        self.fills.lines.add("__syncthreads();")

    def _first_copies(self, scope: CudaScope) -> None:
        """Begins the copies of the first iterations."""
        lines, fold, copy = self.fills.lines, self.pipeline.loop.fold, self.fills.fill_async
        for k in range(self.pipeline.buffers - 1):
            at = scope.with_fold(fold, str(k * fold.step))
            if provably_at_least(self.count, k + 1):
                self._into(str(k), at, copy)
            elif not provably(lambda k=k: k >= self.count):
                with lines.block(f"if ({k * fold.step} < {self._end_offset}) {{"):
                    self._into(str(k), at, copy)
            lines.add("commit_copies();")

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

    def _into(
        self,
        buffer: str,
        scope: CudaScope,
        write: Write,
        fills: Sequence[ir.Fill] | None = None,
    ) -> None:
        """``fills``: some of them, else all."""
        self._at(buffer)
        for fill in self.pipeline.fills if fills is None else fills:
            write(fill, scope)

    def _at(self, buffer: str) -> None:
        """From here on, panels mean this buffer of theirs."""
        memory = self.fills.memory
        for fill in self.pipeline.fills:
            panel = self.fills.threads.kernel.panel(fill.panel)
            size = panel.size // memory.type(fill.panel).itemsize
            known = buffer.isdigit()
            memory.buffer[fill.panel] = str(int(buffer) * size) if known else f"({buffer}) * {size}"
