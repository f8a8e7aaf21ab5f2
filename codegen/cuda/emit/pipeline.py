"""Loops whose panels are filled ahead, so that no thread waits for memory.

With ``buffers`` copies of each panel, fills run so many iterations less one ahead. From sm_80 on
the copies are asynchronous; before that, or where elements are too small for them, a thread reads
its part of the next panel to registers, computes, and then writes it to the other copy; without
the registers for that it writes it there before it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcl.codegen.cuda.emit.scope import Scope
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import loads, statements, values_in
from tcl.codegen.passes.gpu.panel import panel_bytes

if TYPE_CHECKING:
    from tcl.codegen.cuda.emit.block import Kernel


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A loop that all threads run together, and the panels that are filled in it."""

    kernel: Kernel
    fold: ir.Fold
    fills: tuple[ir.Statement, ...]
    rest: tuple[ir.Statement, ...]
    """What is done with the panels."""
    panels: tuple[str, ...]
    buffers: int

    def write(self, scope: Scope, *, again: bool) -> None:
        """The loop, and the fills before it. ``again``: some may still use what it left before."""
        # What the kernel itself makes, other threads may have written just now.
        if again or self._sources() & self.kernel.written:
            self.kernel.lines.add("__syncthreads();")
        if self.kernel.async_copies and all(map(self.kernel.fills.can_be_async, self.fills)):
            self._asynchronous(scope)
        elif self.kernel.fills.can_be_held(self.fills):
            self._by_registers(scope)
        else:
            self._at_once(scope)
        for panel in self.panels:
            self.kernel.memory.buffer.pop(panel, None)

    def _sources(self) -> set[str]:
        """The tensors that panels are filled from."""
        values = (v for f in self.fills for s in statements(f) for v in values_in(s))
        return {load.ref.tensor for v in values for load in loads(v)}

    @property
    def _count(self) -> int:
        """Iterations that the loop has. What is filled for any other is waited for by nobody."""
        return self.kernel.geometry.iterations(self.fold)

    def _asynchronous(self, scope: Scope) -> None:
        lines, fold, ahead = self.kernel.lines, self.fold, self.buffers - 1
        fills = self.kernel.fills
        for k in range(ahead):
            if k < self._count:
                self._into(str(k), scope.with_fold(fold, str(k * fold.step)), fills.fill_async)
            lines.add("commit_copies();")
        with self.kernel.serial(fold, scope) as inner:
            lines.add(f"wait_copies<{ahead - 1}>();")
            lines.add("__syncthreads();")
            now = self._iteration(inner)
            following, test = self._following(inner, ahead)
            with lines.block(f"if ({test}) {{"):
                self._into(self._copy(now, ahead), following, fills.fill_async)
            lines.add("commit_copies();")
            self._compute(now, inner)

    def _by_registers(self, scope: Scope) -> None:
        lines, fold, fills = self.kernel.lines, self.fold, self.kernel.fills
        for fill in self.fills:
            fills.declare(fill)
        first = scope.with_fold(fold, "0")
        self._into("0", first, fills.fetch)
        self._into("0", first, fills.put)
        with self.kernel.serial(fold, scope) as inner:
            lines.add("__syncthreads();")
            now = self._iteration(inner)
            following, test = self._following(inner, 1)
            with lines.block(f"if ({test}) {{"):
                self._into("0", following, fills.fetch)
            self._compute(now, inner)
            with lines.block(f"if ({test}) {{"):
                self._into(self._copy(now, 1), following, fills.put)

    def _at_once(self, scope: Scope) -> None:
        """More than there are registers for: copied before what is there is computed with."""
        lines, fold, fill = self.kernel.lines, self.fold, self.kernel.fills.fill
        self._into("0", scope.with_fold(fold, "0"), fill)
        with self.kernel.serial(fold, scope) as inner:
            lines.add("__syncthreads();")
            now = self._iteration(inner)
            following, test = self._following(inner, 1)
            with lines.block(f"if ({test}) {{"):
                self._into(self._copy(now, 1), following, fill)
            self._compute(now, inner)

    def _iteration(self, scope: Scope) -> str:
        offset = scope.folds[self.fold.name]
        return offset if self.fold.step == 1 else f"{offset} / {self.fold.step}"

    def _copy(self, now: str, ahead: int) -> str:
        """The copy that an iteration has which is so many further."""
        return f"({now} + {ahead}) % {self.buffers}" if ahead else f"{now} % {self.buffers}"

    def _following(self, scope: Scope, ahead: int) -> tuple[Scope, str]:
        """The place so many iterations further, and the test that there is one."""
        offset = scope.folds[self.fold.name]
        further = f"{offset} + {ahead * self.fold.step}"
        test = f"{further} < {self.fold.step * self._count}"
        return scope.with_fold(self.fold, further), test

    def _compute(self, now: str, scope: Scope) -> None:
        self._at(self._copy(now, 0))
        for statement in self.rest:
            self.kernel.together(statement, scope)

    def _into(self, copy: str, scope: Scope, write: Callable[[ir.Statement, Scope], None]) -> None:
        self._at(copy)
        for fill in self.fills:
            self.kernel.of_thread(fill, scope, write)

    def _at(self, copy: str) -> None:
        """From here on, panels mean this copy of theirs."""
        for panel in self.panels:
            layout = self.kernel.geometry.program.tensor(panel).layout
            size = panel_bytes(layout) // layout.itemsize
            text = copy if copy.isdigit() else f"({copy})"
            self.kernel.memory.buffer[panel] = (
                str(int(copy) * size) if copy.isdigit() else f"{text} * {size}"
            )


def pipeline(kernel: Kernel, loop: ir.For, body: Sequence[ir.Statement]) -> Pipeline | None:
    """The loop as one whose panels are filled ahead; None if it is none."""
    staged = {
        c.fill.name: c
        for n in kernel.geometry.program.nests
        for c in n.staged
        if c.fill is not None and c.inside == loop.loop.fold and c.buffers > 1
    }
    fills, rest = [], []
    for statement in body:
        nest = kernel.nest_of(statement)
        if nest is not None and nest.name in staged:
            fills.append(statement)
        elif not isinstance(statement, ir.Barrier):
            rest.append(statement)
    if not fills:
        return None
    panels = tuple(c.panel.tensor for c in staged.values())
    buffers = max(c.buffers for c in staged.values())
    return Pipeline(kernel, loop.loop.fold, tuple(fills), tuple(rest), panels, buffers)
