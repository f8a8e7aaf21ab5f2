"""Operands that are asked for before they are read, so that memory works while the core does."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcl.codegen.common.errors import OptionsError
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.passes.base import map_nest


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
        nest = program.nest(self.nest)
        reads = operands(nest.point)
        if len(self.ahead) > len(reads):
            raise self._refused(f"it has {len(reads)} operands, {len(self.ahead)} were given")
        found = []
        for position, (load, ahead) in enumerate(zip(reads, self.ahead, strict=False)):
            if not ahead:
                continue
            reason = why_not_prefetched(program, nest, load)
            if reason:
                raise self._refused(f"operand {position}, {load.ref.tensor}: {reason}")
            found.append(ir.Prefetch(load.ref, ahead))
        if not found:
            return program
        return map_nest(program, self.nest, lambda n: replace(n, prefetched=tuple(found)))

    def _refused(self, reason: str) -> OptionsError:
        return OptionsError(f"prefetch: nest {self.nest}: {reason}")


def why_not_prefetched(program: ir.Program, nest: ir.Nest, load: ir.Load) -> str | None:
    """Why a nest that has its lanes cannot ask for an operand, or None if it can."""
    layout = program.tensor(load.ref.tensor).layout
    lane = next((x.fold.dim for x in nest.loops if x.kind is ir.Kind.VECTOR), None)
    if not all(isinstance(s, ir.Affine) for s in load.ref.subscripts):
        return "which element is read depends on data"
    if any(c.source.ref == load.ref for c in nest.staged):
        return "it is read from a copy"
    if lane and layout.place(load.ref).coefficient(lane) not in (0, layout.itemsize):
        return f"lanes along {lane} do not lie next to each other"
    return None
