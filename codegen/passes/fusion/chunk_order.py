"""Orders the loops over chunks, which nests may share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.passes.base import refuse
from tcl.codegen.passes.fuse import groups
from tcl.codegen.passes.order import ordered, why_not_ordered
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class OrderChunks:
    """Orders the loops over chunks of all nests. Those that share chunks share their order: any of
    them may say it."""

    orders: Mapping[str, tuple[int, ...]]
    """By nest: positions of dimensions, outermost first; () leaves the order to others."""

    def __call__(self, program: ir.Program) -> ir.Program:
        nests = [n for group in groups(program.nests) for n in self._ordered(group)]
        return replace(program, nests=tuple(nests))

    def _ordered(self, group: list[ir.Nest]) -> list[ir.Nest]:
        places: list[int] | None = None
        for nest in group:
            order = self.orders.get(nest.name, ())
            refuse("chunk_order", nest.name, why_not_ordered(nest, order))
            if order:
                own = [nest.chunks.index(f) for f in ordered(nest, "chunk", order).chunks]
                another = "it shares its chunks with a nest that has them in another order"
                refuse("chunk_order", nest.name, another if places not in (None, own) else None)
                places = own
        return [_with_chunk_order(nest, places) for nest in group] if places else group


def _with_chunk_order(nest: ir.Nest, places: list[int]) -> ir.Nest:
    """The nest with its loops over chunks, which are its outermost ones, in other places."""
    return nest.with_loops([*(nest.loops[k] for k in places), *nest.loops[len(places) :]])
