"""Fills panels ahead, in the loops that have several buffers for them, so that no thread waits for
memory.

From sm_80 on the copies are asynchronous; before that, or where elements are too small for them, a
thread reads its part of the next panel to registers, works, and then writes it to another buffer;
without the registers for that it writes it there before it works. Copies of a panel that is not
filled ahead are asynchronous, too: else a thread waits for memory at each one under a condition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import mma_type
from tcl.codegen.loopir.unrolling import written_out
from tcl.codegen.loopir.walk import chain, is_transposed, loads, statements, uniform, values_in
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_equal
from tcl.grammar.syntax.types import FLOAT32

LEAST_ASYNC = 4
"""Bytes that a copy has at least which no thread waits for."""
MAX_HELD = 256
"""Bytes that a thread may have read before it writes them to panels."""
_READ_AND_FILLED = 2
"""Buffers with which no copy can be under way while warpgroups still read the panels before."""
_OTHERS = 50
"""Registers of a thread beside its sums and two sets of fragments, at most, as ptxas has them."""


@dataclass(frozen=True, slots=True)
class Pipelining:
    """Makes pipelines of the loops of a block. What barriers there were in these is what threads
    do in every pipeline: they meet once in each iteration."""

    program: ir.Program
    buffers: Mapping[str, int]
    written: frozenset[str]
    """The tensors that the block writes."""
    asynchronous: bool
    registers: int
    """That a thread can have at most."""

    @staticmethod
    def from_copies(
        program: ir.Program,
        copies: Sequence[ir.Staged],
        body: ir.Statement,
        profile: GpuProfile,
        threads: int,
    ) -> Pipelining:
        """For the panels of a block of so many threads."""
        stores = (s for s in statements(body) if isinstance(s, ir.Store | ir.Update))
        written = frozenset(s.ref.tensor for s in stores)
        buffers = {c.panel.tensor: c.buffers for c in copies}
        registers = min(
            profile.registers_per_thread, profile.registers_per_multiprocessor // threads
        )
        return Pipelining(program, buffers, written, profile.async_copies, registers)

    def __call__(self, statement: ir.Statement, again: bool = False) -> ir.Statement:
        """``again``: whether it is in a loop that all threads run together."""
        if isinstance(statement, ir.Block):
            return ir.Block(tuple(self(s, again) for s in statement.body))
        if isinstance(statement, ir.Fill):
            return replace(statement, asynchronous=self._unwaited(statement))
        if not isinstance(statement, ir.For) or not uniform(statement):
            return statement
        loop, body = statement.loop, statement.body
        parts = body.body if isinstance(body, ir.Block) else (body,)
        fills = tuple(s for s in parts if isinstance(s, ir.Fill) and self.buffers[s.panel] > 1)
        if not fills:
            made = self(body, again or not provably_equal(loop.fold.count, 1))
            return replace(statement, body=made)
        rest = tuple(s for s in parts if s not in fills and not isinstance(s, ir.Barrier))
        # What the kernel itself makes, other threads may have written just now.
        meet = again or bool(_sources(fills) & self.written)
        buffers = max(self.buffers[f.panel] for f in fills)
        made = self(ir.Block(rest), again)
        ahead, pause = self._ahead(fills), statement.pause
        asynchronous = ahead is ir.Ahead.ASYNCHRONOUS and pause is None
        steps = self._steps(made) if asynchronous else None
        unfinished = asynchronous and buffers > _READ_AND_FILLED and self._by_warpgroups(fills)
        return ir.Pipeline(loop, fills, made, buffers, ahead, meet, pause, steps, unfinished)

    def _by_warpgroups(self, fills: Sequence[ir.Fill]) -> bool:
        """Whether warpgroups read the panels."""
        return any(self.program.tensor(f.panel).layout.slabs for f in fills)

    def _steps(self, body: ir.Statement) -> ir.Fold | None:
        """The loop inside of which tensor cores add up products of 16-bit factors, if it does
        nothing else: it is written out, fragments of two iterations fit into registers, and which
        of both sets an iteration has is known."""
        while True:
            if isinstance(body, ir.Block) and len(body.body) == 1:
                body = body.body[0]
            elif isinstance(body, ir.For) and body.loop.kind is ir.Kind.THREAD:
                body = body.body
            else:
                break
        if not isinstance(body, ir.For) or body.loop.kind is not ir.Kind.SERIAL:
            return None
        steps, (loops, point) = body.loop.fold, chain(body.body)
        folds = [x.fold for x in loops if x.kind is not ir.Kind.SERIAL]
        if len(folds) < len(loops) or not any(f.level == "mma" for f in folds):
            return None
        if body.pause is not None or written_out(body) != steps.count or steps.count % 2:
            return None
        if any(mma_type(v) == FLOAT32 for s in statements(point) for v in values_in(s)):
            return None
        kept = {f.dim: f.count for f in folds if f.level == "register"}
        rows = kept.pop(next(f.dim for f in folds if f.level == "half"), 1)
        columns = math.prod(kept.values())
        words = 4 * rows * columns + 2 * (4 * rows + 2 * columns)
        return steps if words + _OTHERS <= self.registers else None

    def _ahead(self, fills: Sequence[ir.Fill]) -> ir.Ahead:
        if all(map(self._unwaited, fills)):
            return ir.Ahead.ASYNCHRONOUS
        loops = [x for f in fills for x in _loops(f)]
        # No register is found by a number that is not known before: loops have to be unrolled.
        unrolled = all(x.kind is not ir.Kind.SERIAL for x in loops)
        held = sum(
            self._copied(f, 4)
            * math.prod(x.fold.count for x in _loops(f) if x.kind is ir.Kind.UNROLL)
            for f in fills
        )
        return ir.Ahead.REGISTERS if unrolled and held <= MAX_HELD else ir.Ahead.DIRECT

    def _unwaited(self, fill: ir.Fill) -> bool:
        """Whether copies can be asynchronous."""
        layout = self.program.tensor(fill.panel).layout
        whole = self._copied(fill) >= LEAST_ASYNC and not is_transposed(fill, layout)
        return self.asynchronous and whole

    def _copied(self, fill: ir.Fill, least: int = 1) -> int:
        """Bytes that a thread copies at once, where an element takes so many at least."""
        size = max(least, self.program.tensor(fill.panel).layout.itemsize)
        return size * math.prod(x.fold.count for x in _loops(fill) if x.kind is ir.Kind.VECTOR)


def _loops(fill: ir.Fill) -> list[ir.Loop]:
    return [s.loop for s in statements(fill.body) if isinstance(s, ir.For)]


def _sources(fills: Sequence[ir.Fill]) -> set[str]:
    """The tensors that panels are filled from."""
    values = (v for f in fills for s in statements(f) for v in values_in(s))
    return {load.ref.tensor for v in values for load in loads(v)}
