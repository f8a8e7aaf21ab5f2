"""Operands that are asked for before they are read, so that memory works while the core does."""

from __future__ import annotations

from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.passes.base import map_nest, refuse
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PrefetchOperands:
    """Marks operands of which every point asks for what it will need later.

    Processors find out by themselves that memory is read in order, but not where the next row or
    chunk begins, nor during a pass over what is in a cache already. Runs after all passes that
    change loops.
    """

    nest: str
    ahead: tuple[int, ...]
    """Per operand, in order of appearance: how many bytes after what is read; 0 or a missing
    distance asks for nothing."""

    def __call__(self, program: ir.Program) -> ir.Program:
        if not any(self.ahead):
            return program
        nest = program.nest(self.nest)
        refuse("prefetch", self.nest, self._why_not_prefetched(program, nest))
        pairs = zip(operands(nest.point), self.ahead, strict=False)
        found = tuple(ir.Prefetch(load.ref, ahead) for load, ahead in pairs if ahead)
        return map_nest(program, self.nest, lambda n: replace(n, prefetched=found))

    def _why_not_prefetched(self, program: ir.Program, nest: ir.Nest) -> str | None:
        reads, lane = operands(nest.point), nest.lane
        copied = {c.source.ref for c in nest.staged}
        if len(self.ahead) > len(reads):
            return f"it has {len(reads)} operands, {len(self.ahead)} were given"
        for position, (load, distance) in enumerate(zip(reads, self.ahead, strict=False)):
            if not distance:
                continue
            operand = f"operand {position}, {load.ref.tensor}"
            if not all(isinstance(s, ir.Affine) for s in load.ref.subscripts):
                return f"{operand}: which element is read depends on data"
            if load.ref in copied:
                return f"{operand}: it is read from a copy"
            layout = program.tensor(load.ref.tensor).layout
            if lane is not None and layout.step(load.ref, lane.dim) not in (0, 1):
                return f"{operand}: lanes along {lane.dim} do not lie next to each other"
        return None
