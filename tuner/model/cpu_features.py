"""What a model knows of a candidate: numbers of a fixed length, for any def.

They follow from the def, the options and the device; nothing is scheduled or compiled for them. A
feature is a row of ``SCHEMA``. What is said of a nest is said of the one that counts: of those that
are not as in the heuristic default, the one that takes the longest there, as ``estimate`` has it;
of the default, the longest of all. It is said again as the difference to the default's. Counts and
bytes are logarithms to base 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tcl.codegen.loopir.cost import Cost
from tcl.codegen.options.nest_options import OPTIONS
from tcl.tuner.model.estimate import Estimate
from tcl.tuner.model.loops import TOLD, Bools, Floats, LoopColumns
from tcl.tuner.model.schema import Feature, Schema

_VERSION = 1
"""Of the meanings: a feature that comes to mean something else has another one."""


@dataclass(frozen=True, slots=True)
class DescribedNest:
    cost: Cost
    nests: int
    """Of the def, those that are described."""
    loops: LoopColumns
    estimate: Estimate


def _log_base_2(values: Floats | float) -> Floats:
    """To base 2, of what is at least 1 or counts as that."""
    found: Floats = np.log2(np.maximum(values, 1.0))
    return found


def _log_ratio(part: Floats | float, whole: Floats | float) -> Floats:
    """log2 of a ratio, of which neither side counts as less than 1."""
    return _log_base_2(part) - _log_base_2(whole)


def _option_feature(option: str, d: DescribedNest) -> Floats:
    return d.loops.told[option]


def _share_in_order(d: DescribedNest) -> Floats:
    """The share of operands that the lanes read one after the other, or all of which read one."""
    loops, found = d.loops, np.zeros(d.loops.count)
    for k, touched in enumerate(loops.subject.reads):
        strides = [touched.access.strides.get(x.name, 0) for x in loops.subject.nest.dims]
        step = np.array([*strides, 0])[loops.lane]
        found += (loops.stage[:, k] >= 0) | (step == 0) | (step == touched.access.itemsize)
    return found / max(1, len(loops.subject.reads))


def _target_in_order(d: DescribedNest) -> Bools:
    loops, access = d.loops, d.loops.subject.target.access
    strides = [access.strides.get(x.name, 0) for x in loops.subject.nest.dims]
    found: Bools = np.array([*strides, 0])[loops.lane] == access.itemsize
    return found


def _innermost_reduced(d: DescribedNest) -> Bools:
    found: Bools = d.loops.reduced[d.loops.point_order[:, -1]]
    return found


def _outermost_reduced(d: DescribedNest) -> Bools:
    loops = d.loops
    several = np.take_along_axis(loops.tile < loops.chunk, loops.tile_order, axis=1)
    first = np.take_along_axis(loops.tile_order, several.argmax(axis=1)[:, None], axis=1)[:, 0]
    found: Bools = loops.reduced[first] & several.any(axis=1)
    return found


def _turns(d: DescribedNest) -> Floats:
    """Of the innermost loop, in a tile that is not cut short."""
    loops = d.loops
    at = loops.point_order[:, -1:]
    tile, unit = (np.take_along_axis(x, at, axis=1)[:, 0] for x in (loops.tile, loops.unit))
    found: Floats = np.ceil(tile / unit)
    return found


def _stride(d: DescribedNest) -> Floats:
    """Bytes between what two turns of the innermost loop touch, where that is most."""
    loops = d.loops
    every = (*loops.subject.reads, loops.subject.target)
    names = [dim.name for dim in loops.subject.nest.dims]
    most = [max(abs(t.access.strides.get(name, 0)) for t in every) for name in names]
    at = loops.point_order[:, -1:]
    bytes_ = np.array(most)[at] * np.take_along_axis(loops.unit, at, axis=1)
    found: Floats = bytes_[:, 0].astype(np.float64)
    return found


def _lane_reduced(d: DescribedNest) -> Bools:
    found: Bools = d.loops.reduced[d.loops.lane] & (d.loops.lane >= 0)
    return found


def _vectors(d: DescribedNest, *, reduced: bool) -> Floats:
    loops = d.loops
    found: Floats = np.where(loops.reduced == reduced, loops.vectors, 1).prod(axis=1).astype(float)
    return found


def _live(d: DescribedNest) -> Floats:
    """Vector registers that accumulators take, a vector of the lanes' operand and one value."""
    loops = d.loops
    hardware = np.ceil(loops.width / d.loops.device.lanes(loops.subject.nest.point.type))
    at_lanes = np.where(loops.lane >= 0, loops.along(loops.vectors), 1.0)
    found: Floats = (_vectors(d, reduced=False) + at_lanes) * hardware + 1
    return found


def _lost(d: DescribedNest, unit: str) -> Floats:
    """log2 of (points with those that pieces at the ends lack / points), over all dimensions."""
    size = getattr(d.loops, unit)
    whole = (np.ceil(d.loops.extents / size) * size / d.loops.extents).prod(axis=1)
    found: Floats = np.log2(whole)
    return found


def _lost_lanes(d: DescribedNest) -> Floats:
    loops = d.loops
    unit = np.where(loops.along_lanes, loops.width[:, None], 1)
    found: Floats = np.log2((loops.pieces(unit) * unit / loops.extents).prod(axis=1))
    return found


def _divides(d: DescribedNest, unit: str) -> Floats:
    """The share of dimensions whose extent these sizes divide."""
    found: Floats = (d.loops.extents % getattr(d.loops, unit) == 0).mean(axis=1)
    return found


def _footprint(d: DescribedNest, level: int) -> Floats:
    """Bytes inside of 0: register tiles, 1: tiles, 2: chunks, 3: the nest."""
    found: Floats = d.estimate.footprints[level * d.loops.rank]
    return found


def _widest_panel(d: DescribedNest) -> Floats:
    """Bytes of the largest operand that is copied, of what is touched inside of a tile."""
    found = np.zeros(d.loops.count)
    for k, read in enumerate(d.loops.subject.reads):
        size = d.loops.touched[k][0][d.loops.rank] * read.access.itemsize
        found = np.maximum(found, np.where(d.loops.stage[:, k] >= 0, size, 0.0))
    return found


def _per_point(d: DescribedNest, cycles: Floats) -> Floats:
    """log2 of cycles for each point of the nest."""
    points = float(d.loops.extents.prod())
    found: Floats = np.log2(np.maximum(cycles / points, 1e-4))
    return found


def _cycles(name: str, d: DescribedNest) -> Floats:
    """Of a part of the estimate, by its name, for each point of the nest."""
    return _per_point(d, getattr(d.estimate, name))


def _beyond(cache: int, d: DescribedNest) -> Floats:
    """Bytes from behind a cache over those that have to be touched."""
    return _log_ratio(d.estimate.traffic[cache], _least(d))


def _extents(d: DescribedNest, *, reduced: bool) -> float:
    return float(np.where(d.loops.reduced == reduced, d.loops.extents, 1).prod())


def _least(d: DescribedNest) -> float:
    """Bytes that all accesses touch, each element once."""
    loops = d.loops.subject
    every = (*loops.reads, loops.target)
    return float(sum(t.access.elements * t.access.itemsize for t in every))


def _columns(d: DescribedNest) -> Floats:
    """Vectors along the lanes, if these are results."""
    return np.where(_lane_reduced(d), 1.0, d.loops.along(d.loops.vectors))


_GROUPS: dict[str, tuple[Feature[DescribedNest], ...]] = {
    "problem": (
        Feature("flops", "log2", "operations of a call", lambda d: _log_base_2(d.cost.operations)),
        Feature(
            "bytes", "log2 B", "bytes that have to move", lambda d: _log_base_2(d.cost.bytes_moved)
        ),
        Feature(
            *("intensity", "log2 1/B", "operations per byte that has to move"),
            lambda d: _log_ratio(d.cost.operations, d.cost.bytes_moved),
        ),
        Feature("nests", "", "nests with loops of their own", lambda d: d.nests),
        Feature(
            "results",
            "log2",
            "points of results",
            lambda d: _log_base_2(_extents(d, reduced=False)),
        ),
        Feature(
            "depth", "log2", "points per result", lambda d: _log_base_2(_extents(d, reduced=True))
        ),
        Feature(
            "dims", "", "dimensions of more than a point", lambda d: (d.loops.extents > 1).sum()
        ),
        Feature("operands", "", "different elements read", lambda d: len(d.loops.subject.reads)),
        Feature(
            *("itemsize", "B", "bytes of a result"),
            lambda d: d.loops.subject.target.access.itemsize,
        ),
        Feature(
            *("work", "cycles", "arithmetic of a point, on one vector"),
            lambda d: sum(cycles for _, cycles in d.loops.subject.work),
        ),
        Feature(
            *("reuse", "log2 1/B", "points of the nest per byte that it touches"),
            lambda d: _log_ratio(float(d.loops.extents.prod()), _least(d)),
        ),
        Feature(
            *("scattered", "", "operands whose place depends on data"),
            lambda d: sum(t.access.scattered for t in d.loops.subject.reads),
        ),
    ),
    "mapping": (
        Feature("width", "log2", "lanes", lambda d: _log_base_2(d.loops.width.astype(float))),
        Feature("lanes_reduced", "", "lanes are of a reduction", _lane_reduced),
        Feature("in_order", "", "share of operands that lanes read in order", _share_in_order),
        Feature("writes_in_order", "", "lanes write in order", _target_in_order),
        Feature(
            *("accumulators", "log2", "results in a register tile, vectors as one"),
            lambda d: _log_base_2(_vectors(d, reduced=False)),
        ),
        Feature(
            *("rows", "log2", "those that lie not along the lanes"),
            lambda d: _log_ratio(_vectors(d, reduced=False), _columns(d)),
        ),
        Feature(
            *("unroll", "log2", "reduction steps that are written out"),
            lambda d: _log_base_2(_vectors(d, reduced=True)),
        ),
        Feature(
            *("registers", "", "share of the vector registers in use"),
            lambda d: _live(d) / d.loops.device.vector_registers,
        ),
        Feature(
            *("tile_points", "log2", "points in a tile"),
            lambda d: _log_base_2(d.loops.inside[d.loops.rank].prod(axis=1)),
        ),
        Feature(
            *("tile_lanes", "log2", "points of a tile along the lanes, 1 without these"),
            lambda d: _log_base_2(d.loops.along(d.loops.tile)),
        ),
        Feature(
            *("tile_reduced", "log2", "points of a tile along reductions"),
            lambda d: _log_base_2(np.where(d.loops.reduced, d.loops.tile, 1).prod(axis=1)),
        ),
        Feature(
            *("stride", "log2 B", "from turn to turn of the innermost loop, where that is most"),
            lambda d: _log_base_2(_stride(d)),
        ),
        Feature("turns", "log2", "turns of the innermost loop", lambda d: _log_base_2(_turns(d))),
        Feature(
            *("chunk_points", "log2", "points in a chunk"),
            lambda d: _log_base_2(d.loops.inside[2 * d.loops.rank].prod(axis=1)),
        ),
        Feature("innermost_reduced", "", "the innermost loop is a reduction", _innermost_reduced),
        Feature(
            *("outermost_reduced", "", "the outermost loop over tiles is a reduction"),
            _outermost_reduced,
        ),
        Feature("held", "log2", "steps between two stores", lambda d: _log_base_2(d.estimate.held)),
        Feature("staged", "", "operands copied", lambda d: (d.loops.stage >= 0).sum(axis=1)),
        Feature(
            *("stage_level", "", "loops outside of the innermost copying, -1 without any"),
            lambda d: d.loops.stage.max(axis=1, initial=-1),
        ),
        Feature(
            "panel",
            "log2 B",
            "the largest panel, of a tile",
            lambda d: _log_base_2(_widest_panel(d)),
        ),
        *(
            Feature(name, kind.unit, OPTIONS[name].feature, partial(_option_feature, name))
            for name, kind in TOLD.items()
        ),
        Feature(
            *("prefetched", "", "operands that are asked for ahead"),
            lambda d: (d.loops.prefetch > 0).sum(axis=1),
        ),
        Feature(
            *("prefetch", "log2 B", "how far ahead memory is asked for, at most"),
            lambda d: _log_base_2(d.loops.prefetch.max(axis=1, initial=0)),
        ),
    ),
    "interaction": (
        Feature("steps", "log2", "register tiles in all", lambda d: _log_base_2(d.estimate.steps)),
        Feature(
            *("tiles", "log2", "tiles in a chunk, parts counted as such"),
            lambda d: _log_base_2((d.loops.chunk / d.loops.tile).prod(axis=1)),
        ),
        Feature(
            "chunks", "log2", "pieces that threads share", lambda d: _log_base_2(d.estimate.chunks)
        ),
        Feature("waves", "log2", "chunks of one thread", lambda d: _log_base_2(d.estimate.waves)),
        Feature(
            *("idle", "", "share of the threads' time without a chunk, in the last wave"),
            lambda d: 1 - d.estimate.chunks / (d.estimate.waves * d.loops.device.threads),
        ),
        Feature("lost_lanes", "log2", "lanes without a point", _lost_lanes),
        Feature(
            "lost_tile", "log2", "points that tiles at the ends lack", lambda d: _lost(d, "tile")
        ),
        Feature(
            *("lost_chunk", "log2", "points that chunks at the ends lack"),
            lambda d: _lost(d, "chunk"),
        ),
        Feature("unit_divides", "", "share of dims cut evenly", lambda d: _divides(d, "unit")),
        Feature("tile_divides", "", "likewise by tiles", lambda d: _divides(d, "tile")),
        Feature("chunk_divides", "", "likewise by chunks", lambda d: _divides(d, "chunk")),
        Feature(
            *("unit_in_l1", "log2", "what a register tile touches / first cache"),
            lambda d: _log_ratio(_footprint(d, 0), d.loops.device.l1_bytes),
        ),
        Feature(
            *("tile_in_l1", "log2", "what a tile touches / first cache"),
            lambda d: _log_ratio(_footprint(d, 1), d.loops.device.l1_bytes),
        ),
        Feature(
            *("tile_in_l2", "log2", "what a tile touches / second cache"),
            lambda d: _log_ratio(_footprint(d, 1), d.loops.device.l2_bytes),
        ),
        Feature(
            *("chunk_in_l2", "log2", "what a chunk touches / second cache"),
            lambda d: _log_ratio(_footprint(d, 2), d.loops.device.l2_bytes),
        ),
        Feature(
            *("nest_in_l3", "log2", "what the nest touches / third cache"),
            lambda d: _log_ratio(_footprint(d, 3), d.loops.device.l3_bytes),
        ),
        *(
            Feature(
                *(f"beyond_l{k + 1}", "log2", f"bytes from behind cache {k + 1} / bytes touched"),
                partial(_beyond, k),
            )
            for k in range(3)
        ),
        *(
            Feature(
                *(
                    f"{name}_cycles",
                    "log2 cycles",
                    f"{meaning} per point, as the core model has it",
                ),
                partial(_cycles, name),
            )
            for name, meaning in (
                ("arithmetic", "operations"),
                ("loads", "loads"),
                ("latency", "waiting for accumulators"),
                ("stores", "storing results"),
                ("copies", "copying to panels"),
            )
        ),
        Feature(
            *("cycles", "log2 cycles", "all of it per point, as estimated"),
            lambda d: _per_point(d, d.estimate.cycles),
        ),
    ),
    "hardware": (
        Feature("l1", "log2 B", "first cache", lambda d: _log_base_2(d.loops.device.l1_bytes)),
        Feature("l2", "log2 B", "second cache", lambda d: _log_base_2(d.loops.device.l2_bytes)),
        Feature("l3", "log2 B", "third cache", lambda d: _log_base_2(d.loops.device.l3_bytes)),
        Feature(
            "vector", "log2 bit", "a vector", lambda d: _log_base_2(d.loops.device.vector_bits)
        ),
        Feature("cores", "", "of the machine", lambda d: d.loops.device.cores),
        Feature("threads", "", "that are woken", lambda d: d.loops.device.threads),
        Feature("fused", "", "multiplies and adds at once", lambda d: d.loops.device.fused),
    ),
}
_WHOLE = {
    "time": "log2 of the analytic model's time over the default's",
    "nest_time": "log2 of that of the nest over the default's",
    "share": "part of the default's time that is the nest's",
    "nests_changed": "nests that are not as in the default",
}
SCHEMA: Schema[DescribedNest] = Schema("cpu", _VERSION, _GROUPS, _WHOLE)
"""Every feature, in their order."""
