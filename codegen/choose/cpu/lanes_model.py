"""What all register tiles of a nest with the same lanes have alike, for the model of a core.

A search for a register tile prices hundreds of tiles with lanes along a few dimensions. What does
not depend on the tile is found once per dimension of the lanes and kept in ``Core.known``: cycles
to load a vector of each operand, cycles of arithmetic per vector, and which operands need care.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from tcl.codegen.choose.cpu.access_costs import OperandAccess
from tcl.codegen.choose.cpu.core_model import SHORT_LOOP, Core
from tcl.codegen.choose.cpu.costs import OPERATION_CYCLES
from tcl.codegen.choose.cpu.footprints import cached_bytes
from tcl.codegen.choose.cpu.operation_costs import calling_shares, decided_cycles, whole_cycles
from tcl.codegen.devices.cpu import LINE
from tcl.codegen.loopir import ir
from tcl.common.dataclass import dataclass

_SIMPLE = 2.0
"""Cycles of arithmetic per vector up to which counting iterations takes time from it."""


@dataclass(frozen=True, slots=True)
class AlongLanes:
    """What all register tiles with lanes along one dimension, or without lanes, have alike."""

    units: Mapping[str, int]
    """Points of each dimension; of that with the lanes, vectors."""
    busy: bool
    """Whether a reduction waits for little but a few instructions of arithmetic: operands are read
    again and again, in lanes or one for all of them."""
    counts: bool
    """Whether counting iterations takes time from the arithmetic: it runs beside that of dot
    products, where these are two instructions each."""
    reads: tuple[LaneRead, ...]
    alike: tuple[tuple[tuple[int, ...], int], ...]
    """Operands, by position, that read the same tensor at places that quotients and remainders
    decide, and the elements of it that there are at one point of the other dimensions: of more,
    some are the same."""
    vectors: tuple[OperandAccess, ...]
    """The operands that are read in vectors. Others the arithmetic reads from memory."""
    vector_cycles: tuple[float, ...]
    """To read each of these once, in all lanes."""
    between: int
    """Vectors of memory that each of these comes from."""
    far: tuple[tuple[OperandAccess, frozenset[str]], ...]
    """Those of them that caches do not keep, and the dimensions along which they have rows."""
    work: tuple[tuple[frozenset[str], float], ...]
    """Cycles of arithmetic per point, or vector of points, by the dimensions that it depends on."""
    added: tuple[tuple[frozenset[str], float], ...]
    """The part of it that runs beside the rest: what is one for all lanes is brought into them by
    units that multiply, too."""
    divided: tuple[tuple[frozenset[str], float], ...]
    """What the unit that divides does beside it."""
    called: tuple[tuple[frozenset[str], float], ...]
    """The part of it whose vectors a core works on in halves, and hands to functions, ..."""
    gaining: tuple[tuple[frozenset[str], float], ...]
    """... and the part of that that takes less so than half by half."""
    widened: tuple[tuple[OperandAccess, float], ...]
    """Operands that a copy may make wider, and the part of ``work`` that does so without."""
    decided: tuple[tuple[frozenset[str], float], ...]
    """As ``work``, where all points of ``Core.deciding`` are written out."""
    inside: tuple[frozenset[str], ...]
    """The dimensions of vectors that are computed before the innermost reduction, along which they
    stay the same, such as which lanes lie inside of a padded image."""
    copied: tuple[bool, ...]
    """Per operand, whether it is read from a panel, if that pays."""
    stepping: frozenset[str]
    """Dimensions along which rows of results read vectors again that the innermost reduction has
    read the step before."""
    stored: float | None
    """Cycles to write a vector of results, where its lanes are neighbours in memory, or there are
    no lanes; else that depends on the tile."""
    in_rows: tuple[bool, ...]
    """Per operand of a product, whether rows are read in place, with the lanes along or across."""
    crowded: tuple[bool, ...]
    """Per operand, whether its rows can lie in so few places of the first cache that it loses lines
    of which the next steps read more."""
    windows: tuple[dict[str, int], ...]
    """Short reductions, with their extents, that may be written out wholly, as their points share
    elements with those of neighbouring results."""
    priced: dict[tuple[tuple[str, int], ...], tuple[float, float]] = field(default_factory=dict)
    """Register tiles → cycles of the arithmetic of a step, and of stores, of those asked for."""


class LaneRead(NamedTuple):
    """An operand of these tiles."""

    access: OperandAccess
    cycles: float
    """To read it once, in all lanes."""
    far: frozenset[str]
    """Dimensions whose next points lie in other pages."""
    across: bool
    """Whether lanes are far apart, and a dimension has their neighbours in memory."""


def along_lanes(core: Core, lane: str | None) -> AlongLanes:
    """It is found once, and kept in ``core.known``."""
    try:  # asked for so often that a call of a method counts
        found: AlongLanes = core.known[lane]
    except KeyError:
        found = core.known[lane] = _found_along(core, lane)
    return found


def _found_along(core: Core, lane: str | None) -> AlongLanes:
    busy = _keeps_busy(core, lane)
    lanes = core.lanes if lane is not None else 1
    vectors = tuple(a for a in core.reads if lane is None or lane in a.strides)
    inner = core.innermost
    between = _between_lanes(core, inner, lane) if inner is not None else 1
    room = cached_bytes(core.device)
    far = tuple(a for a in vectors if a.whole + core.target.whole > room)
    work, every = _cycles_along(core, lane, core.arithmetic), frozenset(core.dims)
    work += tuple((every, OPERATION_CYCLES) for dims in core.choosing if lane in dims)
    added = _cycles_along(core, lane, core.additions)
    divided = []
    for each in core.divisions:
        turns = _turns_inside(core, lane, each.dims)
        cycles, others = each.along(lane, core.device, core.halves(lane))
        divided += [(each.dims, cycles / turns)] if cycles else []
        work += ((each.dims, others / turns),) if others else ()
    chained = core.called and core.halves(lane) > 1
    calling = calling_shares(core.nest, core.fused.points) if chained else {}
    return AlongLanes(
        units={
            name: -(-d.extent // core.lanes) if name == lane else d.extent
            for name, d in core.dims.items()
        },
        busy=busy,
        counts=busy and (core.products is None or core.products.fragment.adds),
        reads=tuple(
            LaneRead(
                access,
                cycles=_load_cycles(core, access, lane),
                far=frozenset(d for d in core.dims if not access.near(d)),
                across=any(access.transposed(d, lane, lanes) for d in core.dims),
            )
            for access in core.reads
        ),
        alike=tuple(_alike(core)),
        vectors=vectors,
        vector_cycles=tuple(a.cycles(lane, lanes) for a in vectors),
        between=between,
        far=tuple((a, frozenset(d for d, s in a.strides.items() if s > LINE)) for a in far),
        work=work,
        added=tuple((d, c) for d, c in added if lane in d),
        divided=tuple(divided),
        called=tuple((d, c) for d, c in work if d in calling and lane in d),
        gaining=tuple((d, c * calling[d]) for d, c in work if d in calling and lane in d),
        widened=tuple(_widened(core, lane)),
        decided=_cycles_along(
            core,
            lane,
            decided_cycles(
                core.nest,
                core.deciding,
                core.fused.points,
                lambda v: whole_cycles(v, core.device, lanes // core.halves(lane)),
            ),
        )
        if core.deciding
        else (),
        inside=tuple(
            d
            for d in core.arithmetic
            if core.reduces and inner is not None and lane in d and inner.name not in d
        ),
        copied=tuple(core.may_stage(access, lane) for access in core.reads),
        stepping=frozenset(
            row
            for row in core.results
            if inner is not None and row != lane
            if any(a.moves_together(inner.name, row) for a in vectors if inner.name in a.strides)
        ),
        stored=_stored(core, lane),
        in_rows=tuple(_in_rows(core, a, lane) for a in core.reads),
        crowded=tuple(_crowded(core, a, lane) for a in core.reads),
        windows=tuple(_windows(core, lane, vectors, between, bool(far))),
    )


def _stored(core: Core, lane: str | None) -> float | None:
    """As of ``AlongLanes``."""
    target, lanes = core.target, core.lanes if lane is not None else 1
    cycles = target.cycles(lane, lanes)
    transposed = lane is not None and cycles >= lanes and target.total and not target.scattered
    return None if transposed or target.is_apart(lane) or lane in target.moved else cycles


def _widened(core: Core, lane: str | None) -> Iterator[tuple[OperandAccess, float]]:
    """As of ``AlongLanes``: with the lanes along a reduction nothing is copied."""
    if lane is not None and not core.dims[lane].reduction:
        for access in core.reads:
            if access.widened:
                each = access.widened * (core.halves(lane) if lane in access.strides else 2)
                yield access, each / _turns_inside(core, lane, access.strides)


def _alike(core: Core) -> Iterator[tuple[tuple[int, ...], int]]:
    """As of ``AlongLanes``."""
    groups: dict[tuple[str, tuple[tuple[str, int], ...]], list[int]] = {}
    for k, a in enumerate(core.reads):
        if a.moved and not a.moved.keys() & a.strides.keys():
            groups.setdefault((a.tensor, tuple(sorted(a.strides.items()))), []).append(k)
    for (_, strides), places in groups.items():
        a = core.reads[places[0]]
        points = math.prod(core.dims[d].extent for d, _ in strides)
        yield tuple(places), -(-a.elements // points)


def _keeps_busy(core: Core, lane: str | None) -> bool:
    if lane is None or core.dims[lane].reduction or any(a.scattered for a in core.reads):
        return False
    simple = core.nest.point.type.is_float and core.each <= _SIMPLE
    if core.products is None and not simple:
        return False  # a product of integers takes several instructions
    return all(core.results.keys() - a.strides.keys() for a in core.reads)


def _cycles_along(
    core: Core, lane: str | None, arithmetic: Mapping[frozenset[str], float]
) -> tuple[tuple[frozenset[str], float], ...]:
    """As ``AlongLanes.work``. What is one for all lanes is brought into them; what stays the same
    along the innermost reductions is computed before them."""
    halves = core.halves(lane)
    return tuple(
        (d, c * (halves if lane is None or lane in d else 2) / _turns_inside(core, lane, d))
        for d, c in arithmetic.items()
    )


def _turns_inside(core: Core, lane: str | None, dims: Collection[str]) -> int:
    """Turns of the innermost reductions, as far as values of these dimensions stay the same."""
    found = 1
    for dim in reversed(core.reduced):
        if dim.name in dims:
            break
        found *= -(-dim.extent // core.lanes) if dim.name == lane else dim.extent
    return found


def _windows(
    core: Core, lane: str | None, vectors: Sequence[OperandAccess], between: int, far: bool
) -> Iterator[dict[str, int]]:
    """As of ``AlongLanes``."""
    if core.products is not None or core.compacted or any(a.scattered for a in core.reads):
        return
    short = [d for d in core.reduced[-2:] if d.extent <= 2 * SHORT_LOOP and d.name != lane]
    rows = [name for name in core.results if name != lane]
    for window in (*([d] for d in reversed(short)), short):
        sizes = {d.name: d.extent for d in window}
        if between > 1 and (far or core.reduced[-1].name not in sizes):
            continue
        if any(a.moves_together(d, row) for a in vectors for d in sizes for row in rows):
            yield sizes


def _between_lanes(core: Core, inner: ir.Dim, lane: str | None) -> int:
    """Steps of a reduction that read what lies between two lanes, as two of a window over
    places two apart: written out together, they are read as whole vectors and sorted. LLVM
    reads one more step with masks, element by element; 1 where lanes are neighbours."""
    found = 1
    for access in core.reads:
        step, apart = access.strides.get(inner.name, 0), access.strides.get(lane or "", 0)
        if step and apart % step == 0:
            found = max(found, abs(apart // step))
    return found


def _load_cycles(core: Core, access: OperandAccess, lane: str | None) -> float:
    """To read an operand once, in all lanes: vectors of rows that have the lanes along them,
    and those that others are put together of, in as many parts as a core loads them. Where
    others are read again and a row is not, memory decides."""
    lanes = core.lanes if lane is not None else 1
    each = access.cycles(lane, lanes)
    if access.is_apart(lane):
        return in_parts(core, each, lane)
    alike = all(core.shared) or not any(core.shared)
    return each * (core.halves(lane) if alike and _is_row(core, access, lane) else 1)


def in_parts(core: Core, cycles: float, lane: str | None) -> float:
    """Of vectors whose lanes are apart, where a core works on them in parts: no more than what
    lanes take one by one."""
    return min(cycles * core.halves(lane), max(cycles, float(core.lanes)))


def _is_row(core: Core, access: OperandAccess, lane: str | None) -> bool:
    """Whether vectors of an operand are pieces of a row that is reduced."""
    if lane is None or not core.dims[lane].reduction:
        return False
    return access.strides.get(lane) == access.itemsize


def _in_rows(core: Core, access: OperandAccess, lane: str | None) -> bool:
    """As of ``AlongLanes``."""
    across = any(access.transposed(d, lane, core.lanes) for d in core.dims)
    return all(core.shared) and (across or _is_row(core, access, lane))


def _crowded(core: Core, access: OperandAccess, lane: str | None) -> bool:
    """As of ``AlongLanes``."""
    inner = core.innermost
    if inner is None or not 0 < abs(access.strides.get(inner.name, 0)) < LINE:
        return False
    in_order = lane is not None and access.strides.get(lane) == access.itemsize
    return not in_order and any(access.strides.get(d, 1) % LINE == 0 for d in core.results)
