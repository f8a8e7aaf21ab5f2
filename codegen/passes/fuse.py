"""Joins nests: one after the other inside the same loops over chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import loads, moved, values_of
from tcl.codegen.passes.base import map_nest, refuse
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Fuse:
    """Lets a nest share the chunks of the nest before it, and of those which that is joined to.

    What one chunk needs of the earlier nests must have been made by the same chunk.
    """

    nest: str

    def __call__(self, program: ir.Program) -> ir.Program:
        refuse("fuse", self.nest, why_not_fused(program.nests, self.nest))
        return map_nest(program, self.nest, lambda nest: replace(nest, joined=True))


def why_not_fused(nests: Sequence[ir.Nest], name: str) -> str | None:
    """Why the nest of this name cannot be joined to those before it, or None if it can. All have
    their chunks, and those before it are joined to each other or not."""
    position = next(k for k, n in enumerate(nests) if n.name == name)
    if position == 0:
        return "there is no nest before it"
    nest = nests[position]
    if not nest.chunks:
        return "it has no chunks"
    first = position - 1
    while nests[first].joined:
        first -= 1
    leader, chunks = nests[first], nest.chunks  # those joined to it have chunks like its own
    if _shapes(leader) != _shapes(nest):
        return f"its chunks differ from those of {leader.name}"
    for a, b in zip(leader.chunks, chunks, strict=True):
        if leader.dim(a.dim).first != nest.dim(b.dim).first:
            return f"its chunks begin at other points than those of {leader.name}"
    target, own = nest.point.target.tensor, refs(nest)
    touched = {ref.tensor for ref in own}
    # What reads a tensor stands after what wrote it first.
    again = any(other.point.target.tensor == target for other in nests[:position])
    for other in nests[first:position]:
        if not again and other.point.target.tensor not in touched:
            continue
        pairs = [(a.dim, b.dim) for a, b in zip(other.chunks, chunks, strict=True)]
        tensor = _crossing(other, own, pairs) or crossing(nest, other, [p[::-1] for p in pairs])
        if tensor:
            return f"one of its chunks accesses {tensor} in other chunks of {other.name}"
    return None


def _shapes(nest: ir.Nest) -> list[tuple[int, int, int]]:
    return [(f.step, f.count, nest.dim(f.dim).extent) for f in nest.chunks]


def crossing(writer: ir.Nest, other: ir.Nest, pairs: Sequence[tuple[str, str]]) -> str | None:
    """The tensor of ``writer`` of which ``other`` touches more than its own chunk, if it does."""
    return _crossing(writer, refs(other), pairs)


def _crossing(
    writer: ir.Nest, touched: Iterable[ir.TensorRef], pairs: Sequence[tuple[str, str]]
) -> str | None:
    """Likewise, of a nest that touches these elements."""
    target = writer.point.target
    for ref in touched:
        if ref.tensor != target.tensor:
            continue
        for own, its in pairs:
            # Counted from elsewhere, where dimensions were merged.
            affine = (s if isinstance(s, ir.Affine) else ir.Affine() for s in target.subscripts)
            found = next(((k, s) for k, s in enumerate(affine) if s.coefficient(own)), None)
            if found is None or ref.subscripts[found[0]] != moved(found[1], {own: its}):
                return ref.tensor
    return None


def groups(nests: Iterable[ir.Nest]) -> list[list[ir.Nest]]:
    """The nests, with those together that share the loops over their chunks."""
    found: list[list[ir.Nest]] = []
    for nest in nests:
        if nest.joined:
            found[-1].append(nest)
        else:
            found.append([nest])
    return found


def refs(nest: ir.Nest) -> list[ir.TensorRef]:
    """All elements that a point of the nest touches."""
    reads = [load.ref for value in values_of(nest.point) for load in loads(value)]
    return [nest.point.target, *reads]
