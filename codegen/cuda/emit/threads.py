"""Where the blocks and threads of a kernel are, and which of them has a part in what is done."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tcl.codegen.cuda.emit.names import CudaScope
from tcl.codegen.cuda.emit.writer import Writer, write_carry
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.taking_part import Part, TakingPart
from tcl.codegen.loopir.walk import statements
from tcl.grammar.sizes.varying import provably_equal


class Threads:
    """Writes where threads are, and loops and tests that depend on it."""

    def __init__(self, writer: Writer, kernel: ir.Kernel, *, idle_sums: bool) -> None:
        self.writer, self.kernel = writer, kernel
        self.geometry, self.lines, self.integer = writer.geometry, writer.lines, writer.integer
        self.parts = TakingPart(writer.geometry, idle_sums=idle_sums)
        self.copies = {p.space for p in kernel.panels}
        self.offsets: dict[str, str] = {}
        """Expression of a block's or thread's offset → its variable."""

    def bind(self) -> CudaScope:
        """The offsets of blocks and threads, as variables."""
        scope = CudaScope({})
        counts = [folds[0].count for folds in self.kernel.grid]
        for k, folds in enumerate(self.kernel.grid):
            after = math.prod(counts[k + 1 :])
            text = self._iteration("blockIdx.x", after, counts[k], outermost=k == 0)
            name = self._offset(folds[0], text, "block")
            for fold in folds:
                scope = scope.with_fold(fold, name)
        for space in self.kernel.spaces:
            after = space.thread_count
            whole = after == self.kernel.threads
            for k, fold in enumerate(space.threads):
                after //= fold.count
                text = self._iteration("threadIdx.x", after, fold.count, outermost=whole and k == 0)
                scope = scope.with_fold(fold, self._offset(fold, text, fold.level))
        return scope

    def group(self, among: ir.Fold) -> str:
        """The number of the blocks that differ in the iteration of this fold alone."""
        counts = [folds[0].count for folds in self.kernel.grid]
        at = next(k for k, folds in enumerate(self.kernel.grid) if among in folds)
        before, after = math.prod(counts[:at]), math.prod(counts[at + 1 :])
        number = self.writer.sizes.index_number
        if provably_equal(before * after, 1):
            return "0"
        inner = f"blockIdx.x % {number(after)}"
        if provably_equal(before, 1):
            return inner
        outer = f"blockIdx.x / {number(among.count * after)}"
        return f"{outer} * {number(after)} + {inner}"

    def _offset(self, fold: ir.Fold, text: str, what: str) -> str:
        """The variable of a fold's offset, from its iteration."""
        if provably_equal(fold.count, 1):
            return "0"
        index = fold.dim.rpartition(".")[2]
        if self.geometry.space_of[fold.dim].name in self.copies:
            index = f"copy{index}"
        step = f" * {fold.step}" if fold.step != 1 else ""
        cast = f"({self.integer})"
        text = f"{cast}({text}){step}" if " " in text else f"{cast}{text}{step}"
        if text not in self.offsets:  # nests that share a block often have the same
            name = self.offsets[text] = self.writer.names.new(f"{index}_{what}")
            self.lines.add(f"const {self.integer} {name} = {text};")
        return self.offsets[text]

    @contextmanager
    def serial(
        self, fold: ir.Fold, scope: CudaScope, pause: ir.Pause | None = None, unroll: str = ""
    ) -> Iterator[CudaScope]:
        """Inside of a serial loop, with what is done between stretches of its iterations.
        ``unroll``: a line before it."""
        count = self.geometry.iterations(fold)
        with self.lines.nested():
            if provably_equal(count, 1):
                yield scope.with_fold(fold, "0")
                return
            index = fold.dim.rpartition(".")[2]
            wish = index if fold.step == 1 and fold.level == "point" else f"{index}_{fold.level}"
            name = self.writer.names.new(wish)
            begin, end = "0", self.writer.sizes.index_number(fold.step * count)
            further = last = ""
            if pause is not None:
                begin, stretch = self.writer.names.new(f"{name}_part"), fold.step * pause.every
                self._for(begin, "0", end, stretch)
                stop = self.writer.names.new(f"{name}_end")
                further = f"{begin} + {stretch}"
                self.lines.add(
                    f"const {self.integer} {stop} = {further} < {end} ? {further} : {end};"
                )
                last, end = end, stop
            with self.lines.nested():
                if unroll:
                    self.lines.add(unroll, margin=True)
                self._for(name, begin, end, fold.step)
                yield scope.with_fold(fold, name)
            if pause is not None:
                with self.lines.nested():
                    if not pause.after_last:
                        self.lines.open(f"if ({further} < {last}) {{")
                    for carry in statements(pause.then):
                        if isinstance(carry, ir.Carry):
                            write_carry(self.writer, carry)

    def _for(self, name: str, begin: str, end: str, step: int) -> None:
        self.lines.open(
            f"for ({self.integer} {name} = {begin}; {name} < {end}; {name} += {step}) {{"
        )

    @contextmanager
    def taking_part(self, statement: ir.Statement, scope: CudaScope) -> Iterator[None]:
        """Inside of a test that a thread has a part in what each one does on its own."""
        with self.lines.under(self.test(self.parts.of(statement), scope)):
            yield

    def test(self, parts: Sequence[Part], scope: CudaScope) -> str:
        """That a thread is in any of these parts; empty for all threads."""
        found = []
        for part in parts:
            tests = [f"{scope.folds[f.name]} == 0" for f in part.firsts]
            if part.below is not None:
                compared = "== 0" if part.below == 1 else f"< {part.below}"
                tests.insert(0, f"threadIdx.x {compared}")
            found.append(" && ".join(tests))
        different = list(dict.fromkeys(found))
        return " || ".join(f"({t})" if different[1:] and " && " in t else t for t in different)

    def _iteration(self, of: str, after: int, count: int, *, outermost: bool) -> str:
        """The iteration of a fold, each of which goes through ``after`` others."""
        sizes = self.writer.sizes
        text = of if provably_equal(after, 1) else f"{of} / {sizes.index_number(after)}"
        return text if outermost else f"{text} % {sizes.index_number(count)}"
