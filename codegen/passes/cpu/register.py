"""Register tiles: a few points of each dimension, written out so that each has a register."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tcl.codegen.common.errors import OptionsError
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.passes.base import map_nest

MAX_POINTS = 128
"""Vectors, or points without lanes, that may be written out one after the other. Accumulators
and four steps of a reduction fit; more fills the instruction cache and takes long to compile."""


@dataclass(frozen=True, slots=True)
class Register:
    """Splits the innermost loop of each dimension into loops over register tiles and an unrolled
    one inside of a tile.

    The unrolled loops go inside all others but the lanes: reductions first, so that accumulators
    are one group of independent registers; of these last the one with the lanes, whose vectors
    have accumulators of their own.
    """

    nest: str
    sizes: tuple[int, ...]
    """Per dimension; of a dimension with lanes it counts vectors. 0, 1 or a missing size leaves
    the dimension as it is."""
    device: CpuProfile

    def __call__(self, program: ir.Program) -> ir.Program:
        return map_nest(program, self.nest, self._split) if any(self.sizes) else program

    def _split(self, nest: ir.Nest) -> ir.Nest:
        reason = why_not_registers(nest, self.sizes, self.device)
        if reason:
            raise OptionsError(f"register: nest {nest.name}: {reason}")
        sizes = dict(zip((d.name for d in nest.dims), self.sizes, strict=False))
        outer: list[ir.Loop] = []
        unrolled: list[ir.Loop] = []
        for loop in nest.loops:
            fold = loop.fold
            size = min(sizes.get(fold.dim, 0), fold.count)
            if fold.level != "point" or size < 2:
                outer.append(loop)
                continue
            outer.append(
                ir.Loop(ir.Fold(fold.dim, "point", fold.step * size, -(-fold.count // size)))
            )
            part = ir.Fold(fold.dim, "register", fold.step, size)
            unrolled.append(ir.Loop(part, ir.Kind.UNROLL))
        lanes = [x for x in outer if x.kind is ir.Kind.VECTOR]
        own = {x.fold.dim for x in lanes}
        at = {d.name: (not d.reduction, d.name in own, k) for k, d in enumerate(nest.dims)}
        unrolled.sort(key=lambda x: at[x.fold.dim])
        serial = [x for x in outer if x.kind is not ir.Kind.VECTOR]
        return nest.with_loops([*serial, *unrolled, *lanes])


def vector_registers(device: CpuProfile) -> int:
    """How many vector registers the device has."""
    if device.triple.startswith(("aarch64", "arm64")):
        return 32
    return 32 if device.vector_bits >= 512 else 16


def why_not_registers(nest: ir.Nest, sizes: Sequence[int], device: CpuProfile) -> str | None:
    """Why a nest, vectorised or not, cannot have this register tile, or None if it can."""
    if len(sizes) > len(nest.dims):
        return f"it has {len(nest.dims)} dimensions, {len(sizes)} sizes were given"
    split = [
        (d, min(max(1, size), nest.folds(d.name)[_at_points(nest, d)].count))
        for d, size in zip(nest.dims, sizes, strict=False)
    ]
    if all(size == 1 for _, size in split):
        return None
    if nest.sequential:
        return nest.sequential
    points = math.prod(size for _, size in split)
    if points > MAX_POINTS:
        return f"{points} points are too many to be written out, at most {MAX_POINTS} may be"
    if nest.point.op == "=":
        return None
    lanes = next((x.fold for x in nest.loops if x.kind is ir.Kind.VECTOR), None)
    per_vector = -(-lanes.count // device.lanes(nest.point.type)) if lanes else 1
    vectors = per_vector * math.prod(
        size for d, size in split if lanes is not None and d.name == lanes.dim
    )
    rows = math.prod(
        size for d, size in split if not d.reduction and not (lanes and d.name == lanes.dim)
    )
    if lanes is not None and nest.dim(lanes.dim).reduction:
        needed = rows * vectors + 2  # the accumulators, and one vector of each operand
    else:
        # The accumulators, a row of the operand that has the lanes, one value of the other.
        needed = rows * vectors + vectors + 1
    has = vector_registers(device)
    if needed > has:
        return f"{rows} x {vectors} vectors need {needed} registers, {device.name} has {has}"
    return None


def _at_points(nest: ir.Nest, dim: ir.Dim) -> int:
    return next(k for k, f in enumerate(nest.folds(dim.name)) if f.level == "point")
