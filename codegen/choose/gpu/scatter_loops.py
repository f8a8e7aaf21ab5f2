"""The loops of a scatter on a GPU: which thread updates what. Each thread has results, or a copy,
of its own, so that nothing is updated by two of them."""

from __future__ import annotations

from tcl.codegen.loopir import ir
from tcl.codegen.passes.scatter import side_by_side
from tcl.grammar.sizes.varying import representative

_THREADS = 128
"""Of a block."""


def with_loops(program: ir.Program, nest: ir.Nest) -> ir.Nest:
    """A scatter that has been taken apart, with its loops: blocks and their threads over results,
    in each of which all points of reductions come in order."""
    results = [d for d in nest.dims if not d.reduction]
    target = nest.point.target
    layout = program.tensor(target.tensor).layout
    beside = side_by_side(nest)
    rows = [d for d in results if d.name in beside and layout.step(target, d.name) == 1]
    rows = rows or sorted(results, key=lambda d: representative(d.extent))[-1:]
    blocks, threads, inner = [], [], []
    for d in nest.dims:
        if d.reduction:
            inner.append(ir.Loop(ir.Fold(d.name, "point", 1, d.extent)))
            continue
        count = min(_THREADS, max(1, representative(d.extent))) if d in rows else 1
        chunk = ir.Fold(d.name, "chunk", count, -(-d.extent // count))
        blocks.append(ir.Loop(chunk, ir.Kind.PARALLEL))
        threads.append(ir.Loop(ir.Fold(d.name, "thread", 1, count), ir.Kind.THREAD))
    return nest.with_loops([*blocks, *threads, *inner])
