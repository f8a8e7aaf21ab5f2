"""Which operands are asked for ahead of their use, and how far, where nobody said.

What is read once, in order, and does not fit the second cache comes from memory, and memory
should not rest. Where a group of nests goes through a chunk several times, it would, in all passes
but the first: the pass with the most arithmetic asks for the next chunk. Elsewhere it is enough to
reach beyond the page at whose end processors stop looking ahead by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcl.codegen import ir
from tcl.codegen.device import CpuProfile
from tcl.codegen.ir_walk import children, indices, operands, renamed, values_of
from tcl.codegen.options import NestOptions
from tcl.codegen.passes.beside import may_go_along

NEAR = 2048
"""Bytes."""
_AGAIN = 2
"""Times that elements may be read by a nest, as by a window over neighbours."""
_CALL = 24
"""Operations that a built-in function stands for."""


def prefetching(
    program: ir.Program, plan: Mapping[str, NestOptions], device: CpuProfile
) -> dict[str, tuple[int, ...]]:
    """Bytes ahead, per operand, of the nests that should prefetch. ``plan`` says which nests
    share chunks, and how large these are."""
    found: dict[str, dict[int, int]] = {}
    for group in _groups(program, plan):
        written = {n.point.target.tensor for n in group}
        by_tensor: dict[str, list[Read]] = {}
        for nest in group:
            for read in from_memory(program, nest, device):
                by_tensor.setdefault(read.ref.tensor, []).append(read)
        for tensor, reads in by_tensor.items():
            if tensor in written:
                continue
            chosen = reads[0]
            chunk = _next_chunk(program, chosen, plan, device) if len(reads) > 1 else 0
            if chunk:
                work = _work(group)
                chosen = max(reads, key=lambda read: work[read.nest.name])
            found.setdefault(chosen.nest.name, {})[chosen.position] = chunk or NEAR
    return {
        name: tuple(ahead.get(k, 0) for k in range(max(ahead) + 1)) for name, ahead in found.items()
    }


@dataclass(frozen=True, slots=True)
class Read:
    """A nest's first operand of a tensor."""

    nest: ir.Nest
    position: int
    ref: ir.TensorRef


def from_memory(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> list[Read]:
    """The first operand of each tensor that the nest reads in order and once, and which the
    second cache does not hold."""
    found: dict[str, Read] = {}
    points = math.prod(d.extent for d in nest.dims)
    for position, load in enumerate(operands(nest.point)):
        layout = program.tensor(load.ref.tensor).layout
        elements = math.prod(layout.extents)
        if elements * layout.itemsize <= device.l2_bytes or points > _AGAIN * elements:
            continue
        whole = all(isinstance(s, ir.Affine) for s in load.ref.subscripts)
        if whole and any(c == layout.itemsize for _, c in layout.place(load.ref).terms):
            found.setdefault(load.ref.tensor, Read(nest, position, load.ref))
    return list(found.values())


def _groups(program: ir.Program, plan: Mapping[str, NestOptions]) -> list[list[ir.Nest]]:
    """The nests, those together that share chunks, but for those that go along with another."""
    found: list[list[ir.Nest]] = []
    for nest in program.nests:
        if not (found and plan.get(nest.name, NestOptions()).fuse):
            found.append([nest])
        elif not may_go_along(found[-1][-1], nest):
            found[-1].append(nest)
    return found


def _next_chunk(
    program: ir.Program, read: Read, plan: Mapping[str, NestOptions], device: CpuProfile
) -> int:
    """Bytes from a chunk to the next one; 0 where there is none, or it would leave the second
    cache before it is used."""
    sizes = plan.get(read.nest.name, NestOptions()).chunk or ()
    pairs = [(d, s) for d, s in zip(read.nest.dims, sizes, strict=False) if 0 < s < d.extent]
    if not pairs:
        return 0
    dim, size = pairs[-1]
    layout = program.tensor(read.ref.tensor).layout
    parts = math.prod(-(-d.extent // s) for d, s in pairs)
    if math.prod(layout.extents) * layout.itemsize > parts * device.l2_bytes // 4:
        return 0
    return abs(layout.place(read.ref).coefficient(dim.name)) * size


def _work(group: Sequence[ir.Nest]) -> dict[str, int]:
    """About what a point of each nest costs. Calls that do not change from point to point count
    for nothing, nor do those of an earlier nest, which keeps what it computes."""
    known: set[ir.Value] = set()
    found = {}
    for nest in group:
        names = {d.name: d.name.split(".", 1)[1] for d in nest.dims}
        moving = {names[d.name] for d in nest.dims if d.extent > 1}
        total = 0
        pending = [renamed(value, names) for value in values_of(nest.point)]
        while pending:
            value = pending.pop()
            if isinstance(value, ir.Call):
                own = {name for index in indices(value) for name, _ in index.terms}
                if value in known or not moving <= own:
                    continue
                known.add(value)
            total += _CALL if isinstance(value, ir.Call) else 1
            pending += children(value)
        found[nest.name] = total
    return found
