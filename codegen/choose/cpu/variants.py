"""What the model of a core compares with the plain points of a reduction: dot products, and going
through the compacted indices of the points at which a condition holds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import NamedTuple

from tcl.codegen.choose.cpu.costs import (
    BARRIER_CYCLES,
    LIST_ENTRY_CYCLES,
    OPERATION_CYCLES,
)
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.fragments import Fragment
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import divides_index, index_of, is_free, parts
from tcl.codegen.loopir.cost import share_of_points
from tcl.codegen.loopir.quotients import dims_named
from tcl.codegen.loopir.terms import dot_factors, guard, guards, moved_byte
from tcl.codegen.loopir.walk import children, dims_of_lets, dims_of_values, walk, written_out
from tcl.codegen.passes.cpu.cut import cut_wholly
from tcl.codegen.passes.cpu.dot import Products, depths, products_of
from tcl.codegen.passes.cpu.skip import condition_dims, why_not_skipped
from tcl.codegen.passes.cpu.stage import made_with
from tcl.common.dataclass import dataclass, replace
from tcl.grammar.sizes.varying import representative

_PERIOD = 32
"""Points of each dimension at which it is counted how often a divided index is such a one ..."""
_DIVIDED = 3
"""... and dimensions of it, at most."""
_SELDOM = 0.5
"""The part of the points that are left, up to which lanes and rows may depend on it: with filters
as lanes for two of three columns, 28 x 28 pixels take 1.13 of the time on a Cascade Lake."""


@dataclass(frozen=True, slots=True)
class DotProducts:
    """Points of one reduction that one instruction multiplies and adds up."""

    dim: str
    depth: int
    fragment: Fragment
    in_place: frozenset[ir.TensorRef]
    """Operands that the instruction takes as they are, ..."""
    moved: frozenset[ir.TensorRef]
    """those of which it takes words with other highest bits, which copies have already ..."""
    lanes: frozenset[str]
    """... if the lanes are of one of these dimensions: where a factor has to be moved, that is the
    one which all lanes share."""

    def arithmetic_cycles(self, nest: ir.Nest) -> dict[frozenset[str], float]:
        """Cycles of one step of a vector, by the dimensions that it depends on."""
        return {frozenset(d.name for d in nest.dims): OPERATION_CYCLES * self.fragment.operations}

    @property
    def extra_registers(self) -> int:
        """Those that are needed besides."""
        return 0 if self.fragment.adds else 1


def dot_products(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> Iterator[DotProducts]:
    """For each number of points that an instruction of the device adds up, the reduction along
    which that fits best: most of all without a rest, then along memory, then the longest."""
    results = [d.name for d in nest.dims if not d.reduction]
    for depth in depths(nest, device):
        able = [d for d in nest.dims if d.reduction and d.extent >= depth]
        found: dict[Products, list[str]] = {}
        for lane in results if able else ():
            if (products := products_of(nest.point, depth, device, lane)) is not None:
                found.setdefault(products, []).append(lane)
        for products, lanes in found.items():
            factors = dot_factors(products.value)
            reads = [f for f in factors if isinstance(f, ir.Load)]
            moved = frozenset(x.ref for x in map(moved_byte, factors) if x is not None)

            def fits(
                dim: ir.Dim, depth: int = depth, reads: list[ir.Load] = reads
            ) -> tuple[float, ...]:
                filled = dim.extent / (-(-dim.extent // depth) * depth)
                steps = (program.tensor(x.ref.tensor).layout.step(x.ref, dim.name) for x in reads)
                return min(filled, _FILLED), sum(step == 1 for step in steps), dim.extent

            best = max(able, key=fits)
            in_place = frozenset(x.ref for x in reads)
            yield DotProducts(
                best.name, depth, products.fragment, in_place, moved, frozenset(lanes)
            )


_FILLED = 0.9
"""The part of the points of all dot products that there are, from which on more count little."""


_UNKNOWN_SHARE = 0.5
"""The part of the points at which a condition is taken to hold that depends on data."""
_SHORTEST = 8
"""Points of a reduction from which on a list of some of them is worth going through."""


def compacted_dims(program: ir.Program, nest: ir.Nest) -> frozenset[str]:
    """The dimensions along which the condition of an untiled nest changes, if its reduction can go
    through the points alone at which that holds, and is long enough; else none."""
    condition, _ = guard(nest.point.op, nest.point.value)
    if condition is None or nest.dot_product is not None:
        return frozenset()
    if cut_wholly(nest):
        return frozenset()  # loops end where it does, without lists
    made = made_with(program.nests, program.nest(nest.name))
    if why_not_skipped(nest, made) is not None:
        return frozenset()
    dims = condition_dims(nest, condition)
    return frozenset(d.name for d in dims) if dims[-1].extent >= _SHORTEST else frozenset()


def condition_share(nest: ir.Nest) -> float:
    """The part of the points at which the condition of a nest holds. It is counted where indices
    alone decide."""
    condition, _ = guard(nest.point.op, nest.point.value)
    assert condition is not None
    share = share_of_points(condition, {d.name: d for d in nest.dims}, {})
    return _UNKNOWN_SHARE if share is None else share


def shares_of_divided(
    nest: ir.Nest, fused: Collection[ir.Point] = ()
) -> tuple[tuple[frozenset[str], float], ...]:
    """As of ``Core.divided``."""
    if not nest.reduces:
        return ()
    lets = {let.name: let.value for let in nest.point.lets}
    conditions = [guards(p.op, p.value)[0] for p in (nest.point, *fused)]
    first, *others = ([written_out(part, lets) for part in each] for each in conditions)
    found = []
    for part in first:
        names = sorted(dims_named((part,), {}) or ()) if divides_index(part) else []
        if not 1 <= len(names) <= _DIVIDED or not all(part in other for other in others):
            continue
        dims = (replace(d, extent=min(_PERIOD, representative(d.extent))) for d in nest.dims)
        share = share_of_points(part, {d.name: d for d in dims}, {})
        if share is not None and share <= _SELDOM:
            found.append((frozenset(names), share))
    return tuple(found)


class Seldom(NamedTuple):
    """What a nest without a reduction computes where data decide it, at few of its points."""

    dims: frozenset[str]
    """Those of the condition: lanes along others leave it out together, by a branch."""
    share: float
    """The part of the points at which the condition holds."""
    otherwise: ir.Nest
    """The nest at the other points."""


def seldom_chosen(nest: ir.Nest) -> Seldom | None:
    """What this is of a nest, if there is anything. That an index is the one in a tensor, as that
    of a class, is taken to hold once along its dimension; of other data nothing is known."""
    lets, value = {let.name: let.value for let in nest.point.lets}, nest.point.value
    while isinstance(value, ir.Variable) and value.name in lets:
        value = lets[value.name]
    if nest.reduces or not isinstance(value, ir.Select) or value.then is value.otherwise:
        return None
    dims, conditions = {d.name: d for d in nest.dims}, list(parts(value.condition))
    known = [share_of_points(part, dims, lets) for part in conditions]
    shares = [
        _equal_share(part, nest) if share is None else share
        for part, share in zip(conditions, known, strict=True)
    ]
    if None not in known or math.prod(shares) > _SELDOM or is_free(value.then):
        return None
    rest = replace(value, then=value.otherwise)
    named = dims_of_values(conditions, dims_of_lets(nest.point.lets))
    otherwise = replace(nest, point=replace(nest.point, value=rest))
    return Seldom(named, math.prod(shares), otherwise)


def _equal_share(condition: ir.Value, nest: ir.Nest) -> float:
    """The part of the points at which an index is what data say, if that is the condition; 1 of
    others."""
    if not isinstance(condition, ir.Binary) or condition.op != "==":
        return 1.0
    sides = [index_of(v) for v in children(condition)]
    named = [name for index in sides if index is not None for name, _ in index.terms]
    if None not in sides or len(named) != 1:
        return 1.0
    return 1.0 / max(1, representative(nest.dim(named[0]).extent))


def compaction_cycles(whole: ir.Nest, nest: ir.Nest, device: CpuProfile) -> float:
    """Cycles, of all threads together, to make these lists, which all chunks of the ``whole`` nest
    share: the part of one chunk, ``nest``."""
    condition, _ = guard(nest.point.op, nest.point.value)
    assert condition is not None
    each = LIST_ENTRY_CYCLES + OPERATION_CYCLES * sum(1 for _ in walk(condition))
    wait = BARRIER_CYCLES * device.threads if device.threads > 1 else 0.0
    listed = math.prod(whole.dim(d.name).extent for d in condition_dims(nest, condition))
    return (listed * each + wait) * nest.points / whole.points
