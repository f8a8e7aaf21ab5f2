"""Operands that are asked for before they are read, so that memory works while the core does."""

from __future__ import annotations

from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.passes.base import map_nest, refuse
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Prefetch:
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
        reads = operands(nest.point)
        copied = {c.source.ref for c in nest.staged}
        stage = tuple(0 if load.ref in copied else -1 for load in reads)
        reason = why_not_prefetched(
            program, nest, self.ahead, nest.lane.dim if nest.lane else None, stage
        )
        refuse("prefetch", self.nest, reason)
        pairs = zip(reads, self.ahead, strict=False)
        found = tuple(ir.Prefetch(load.ref, ahead) for load, ahead in pairs if ahead)
        return map_nest(program, self.nest, lambda n: replace(n, prefetched=found))


def why_not_prefetched(
    program: ir.Program,
    nest: ir.Nest,
    ahead: tuple[int, ...],
    lane: str | None,
    stage: tuple[int, ...],
) -> str | None:
    """Why a nest, whatever its loops, cannot ask for its operands so far ahead, or None if it can.

    ``program`` says how they lie in memory; ``lane`` is the dimension with the lanes, ``stage`` as
    of ``Stage``.
    """
    reads = operands(nest.point)
    if len(ahead) > len(reads):
        return f"it has {len(reads)} operands, {len(ahead)} were given"
    for position, (load, distance) in enumerate(zip(reads, ahead, strict=False)):
        if not distance:
            continue
        operand = f"operand {position}, {load.ref.tensor}"
        layout = program.tensor(load.ref.tensor).layout
        if not all(isinstance(s, ir.Affine) for s in load.ref.subscripts):
            return f"{operand}: which element is read depends on data"
        if position < len(stage) and stage[position] >= 0:
            return f"{operand}: it is read from a copy"
        if lane and layout.step(load.ref, lane) not in (0, 1):
            return f"{operand}: lanes along {lane} do not lie next to each other"
    return None
