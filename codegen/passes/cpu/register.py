"""Register tiles: a few points of each dimension, written out so that each has a register."""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.fragments import fragment_of
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import dot_factors
from tcl.codegen.passes.base import map_nest, refuse, too_many
from tcl.codegen.passes.cpu.matrix import why_not_held
from tcl.grammar.sizes.varying import clipped

MAX_POINTS = 128
"""Vectors, or points without lanes, that may be written out one after the other. Accumulators
and four steps of a reduction fit; more fills the instruction cache and takes long to compile."""


@dataclass(frozen=True, slots=True)
class Register:
    """Splits the innermost loop of each dimension into loops over register tiles and an unrolled
    one inside of a tile.

    The unrolled loops go inside all others but the lanes and dot products: reductions first, so
    that accumulators are one group of independent registers; of these last the one with the lanes,
    whose vectors have accumulators of their own.
    """

    nest: str
    sizes: tuple[int, ...]
    """Per dimension; of a dimension with lanes it counts vectors, of one with dot products these,
    and what a matrix unit does at once as one.
    0, 1 or a missing size leaves the dimension as it is."""
    device: CpuProfile

    def __call__(self, program: ir.Program) -> ir.Program:
        return map_nest(program, self.nest, self._split) if any(self.sizes) else program

    def _split(self, nest: ir.Nest) -> ir.Nest:
        refuse("register", nest.name, self._why_no_register_tile(nest))
        by_dim = dict(zip((d.name for d in nest.dims), self.sizes, strict=False))
        at_once = (ir.Kind.MMA, ir.Kind.VECTOR, ir.Kind.DOT)
        serial: list[ir.Loop] = []
        unrolled: list[ir.Loop] = []
        innermost = [x for x in nest.loops if x.kind in at_once]
        for loop in (x for x in nest.loops if x not in innermost):
            fold = loop.fold
            size = clipped(by_dim.get(fold.dim, 0), fold.count)
            if fold.level != "point" or size < 2:
                serial.append(loop)
                continue
            tiles = ir.Fold(fold.dim, "point", fold.step * size, -(-fold.count // size))
            serial.append(ir.Loop(tiles))
            unrolled.append(ir.Loop(ir.Fold(fold.dim, "register", fold.step, size), ir.Kind.UNROLL))
        own = {x.fold.dim for x in innermost if x.kind is ir.Kind.VECTOR}
        at = {d.name: (not d.reduction, d.name in own, k) for k, d in enumerate(nest.dims)}
        unrolled.sort(key=lambda x: at[x.fold.dim])
        return nest.with_loops([*serial, *unrolled, *innermost])

    def _why_no_register_tile(self, nest: ir.Nest) -> str | None:
        if reason := too_many(nest, self.sizes):
            return reason
        # Of a dimension with lanes, vectors; of one with dot products or fragments, these.
        counts = {x.fold.dim: x.fold.count for x in nest.loops if x.fold.level == "point"}
        lane, has = nest.lane, self.device.vector_registers
        rows = vectors = unroll = 1
        for dim, size in zip(nest.dims, self.sizes, strict=False):
            size = clipped(max(1, size), counts[dim.name])
            if lane is not None and dim.name == lane.dim:
                vectors = size
            elif dim.reduction:
                unroll *= size
            else:
                rows *= size
        written = rows * vectors * unroll
        along = vectors > 1 and lane is not None and lane.dim == nest.running
        if written == 1:
            return None
        if nest.sequential and (nest.running is None or unroll > 1 or along):
            return nest.sequential
        if written > MAX_POINTS:
            return f"{written} points are too many to be written out, at most {MAX_POINTS} may be"
        if nest.point.op == "=":
            return None
        if nest.mma:
            return why_not_held(rows, vectors)
        if lane is not None:
            vectors *= -(-lane.count // self.device.lanes(nest.point.type))
        reduced = lane is not None and nest.dim(lane.dim).reduction
        needed = registers_needed(rows, vectors, reduced) + _for_dots(nest, vectors, self.device)
        if needed > has:
            return (
                f"{rows} x {vectors} vectors need {needed} registers, {self.device.name} has {has}"
            )
        return None


def registers_needed(rows: int, vectors: int, reduced: bool = False) -> int:
    """The vector registers of a reduction with a register tile of so many rows by vectors, whose
    lanes are of results, or are ``reduced``."""
    if reduced:
        return rows * vectors + 2  # the accumulators, and one vector of each operand
    # The accumulators, what several rows read of the operand that has the lanes, one value of the
    # other.
    return rows * vectors + (vectors if rows > 1 else 1) + 1


def _for_dots(nest: ir.Nest, vectors: int, device: CpuProfile) -> int:
    """The registers that the dot products of a nest need besides."""
    if nest.dot_product is None:
        return 0
    left, right = dot_factors(nest.point.value)
    fragment, _ = fragment_of(device, (left.type, right.type), nest.dot_product.count)
    # What is summed up to be taken off, and the constant factor of that; products to be added.
    return (vectors + 1 if nest.excess is not None else 0) + (0 if fragment.adds else 1)
