"""What a model knows of a candidate for a GPU: numbers of a fixed length, for any def.

They follow from the schedule, which needs no GPU. A feature is a row of ``SCHEMA``; what is said
of a nest is said of the one that takes the longest, as the analytic model of ``gpu_mapped`` has it.
It is said again as the difference to the heuristic default's. Counts and bytes are logarithms to
base 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.cost import Cost
from tcl.tuner.model.gpu_mapped import Mapped
from tcl.tuner.model.schema import Feature, Schema


@dataclass(frozen=True, slots=True)
class DescribedCandidate:
    """The nest of a candidate that takes the longest."""

    cost: Cost
    """Of the def."""
    at: Mapped
    kernels: int
    """Of the candidate."""


def _log_base_2(value: float) -> float:
    """To base 2, of what is at least 1 or counts as that."""
    return math.log2(max(value, 1.0))


def _share(part: float, whole: float) -> float:
    """log2 of a ratio, of which neither side counts as less than 1."""
    return _log_base_2(part) - _log_base_2(whole)


def _extent(d: DescribedCandidate, *, reduced: bool) -> int:
    return math.prod(x.extent for x in d.at.nest.dims if x.reduction == reduced)


def _copies(d: DescribedCandidate) -> int:
    return max((s.buffers for s in d.at.nest.staged), default=0)


def _tile(d: DescribedCandidate) -> int:
    """Points of the reductions that a block goes through between two copies, or at once."""
    at = d.at
    outer = at.folds(ir.Kind.PARALLEL)
    outer += [f for f in at.folds(ir.Kind.SERIAL) if f.level == "tile"]
    inside = at.inside(outer)
    return math.prod(inside[x.name] for x in at.nest.dims if x.reduction)


def _divides(d: DescribedCandidate, points: dict[str, int]) -> float:
    """The share of dimensions whose extents these points divide."""
    dims = d.at.nest.dims
    return sum(x.extent % max(1, points[x.name]) == 0 for x in dims) / max(1, len(dims))


def _bytes_staged_by_block(d: DescribedCandidate) -> int:
    return sum(d.at.bytes_staged(s) for s in d.at.nest.staged)


def _write_spread(d: DescribedCandidate) -> float:
    return d.at.spread(d.at.nest, d.at.nest.point.target)


def _idle(d: DescribedCandidate) -> float:
    waves = d.at.waves
    return 1 - waves / max(1, math.ceil(waves))


Row = Feature[DescribedCandidate]
SCHEMA: Schema[DescribedCandidate] = Schema(
    "cuda",
    2,
    {
        "problem": (
            Row("flops", "log2", "operations of a call", lambda d: _log_base_2(d.cost.operations)),
            Row(
                "bytes",
                "log2 B",
                "bytes that have to move",
                lambda d: _log_base_2(d.cost.bytes_moved),
            ),
            Row(
                *("intensity", "log2 1/B", "operations per byte that has to move"),
                lambda d: _share(d.cost.operations, d.cost.bytes_moved),
            ),
            Row(
                "results",
                "log2",
                "points of results",
                lambda d: _log_base_2(_extent(d, reduced=False)),
            ),
            Row(
                "depth",
                "log2",
                "points per result",
                lambda d: _log_base_2(_extent(d, reduced=True)),
            ),
            Row(
                *("dims", "", "dimensions of more than a point"),
                lambda d: sum(x.extent > 1 for x in d.at.nest.dims),
            ),
            Row("operands", "", "different elements read", lambda d: len(d.at.reads)),
            Row("itemsize", "B", "bytes of a result", lambda d: d.at.nest.point.type.itemsize),
            Row(
                *("reuse", "log2 1/B", "points of the nest per byte that it touches"),
                lambda d: _share(d.at.nest.points, d.at.least_bytes),
            ),
        ),
        "mapping": (
            Row("kernels", "", "that run one after the other", lambda d: d.kernels),
            Row("threads", "log2", "of a block", lambda d: _log_base_2(d.at.block_threads)),
            Row(
                *("sharing", "log2", "threads that have sums of the same result"),
                lambda d: _log_base_2(d.at.sharing(reduced=True)),
            ),
            Row(
                *("width", "log2", "neighbours that a thread has at once"),
                lambda d: _log_base_2(d.at.nest.lane.count if d.at.nest.lane else 1),
            ),
            Row(
                "held",
                "log2",
                "results that a thread has at once",
                lambda d: _log_base_2(d.at.held),
            ),
            Row(
                "unroll",
                "log2",
                "reduction steps written out",
                lambda d: _log_base_2(d.at.unrolled),
            ),
            Row("registers", "", "of a thread, about", lambda d: d.at.registers),
            Row("shared", "log2 B", "shared memory of a block", lambda d: _log_base_2(d.at.shared)),
            Row("staged", "", "operands copied to shared memory", lambda d: len(d.at.nest.staged)),
            Row("buffers", "", "copies of a panel, at most", _copies),
            Row(
                "tile",
                "log2",
                "reduction steps between two copies",
                lambda d: _log_base_2(_tile(d)),
            ),
            Row(
                *("block_points", "log2", "points of a block"),
                lambda d: _log_base_2(math.prod(d.at.of_block.values())),
            ),
            Row("cores", "", "tensor cores multiply", lambda d: d.at.on_cores),
            Row("joined", "", "shares blocks with other nests", lambda d: len(d.at.kernel) > 1),
        ),
        "interaction": (
            Row("blocks", "log2", "in all", lambda d: _log_base_2(d.at.block_count)),
            Row(
                *(
                    "resident",
                    "",
                    "blocks of a multiprocessor at once, by threads, registers and shared memory",
                ),
                lambda d: d.at.fullness.blocks,
            ),
            Row(
                *("occupancy", "", "share of a multiprocessor's warps in use"),
                lambda d: d.at.fullness.share,
            ),
            Row("waves", "log2", "times the device is full", lambda d: _log_base_2(d.at.waves)),
            Row("idle", "", "share of the device without a block, in all waves", _idle),
            Row("lost", "log2", "points beyond the tensors", lambda d: _log_base_2(d.at.lost)),
            Row(
                *("lost_threads", "", "share of a block's threads without points"),
                lambda d: 1 - d.at.nest.thread_count / d.at.block_threads,
            ),
            Row(
                *("block_divides", "", "share of dims cut evenly by blocks"),
                lambda d: _divides(d, d.at.of_block),
            ),
            Row(
                *("step_divides", "", "likewise by what all threads have at once"),
                lambda d: _divides(d, d.at.of_step),
            ),
            Row(
                *("read_spread", "log2", "sectors of a warp's read / sectors needed, the worst"),
                lambda d: _log_base_2(d.at.read_spread),
            ),
            Row(
                *("write_spread", "log2", "likewise of what is written"),
                lambda d: _log_base_2(_write_spread(d)),
            ),
            Row(
                *("conflicts", "", "accesses to the busiest bank of shared memory, the worst"),
                lambda d: d.at.conflicts,
            ),
            Row(
                *("block_bytes", "log2 B", "sectors that a block touches"),
                lambda d: _log_base_2(d.at.block_bytes),
            ),
            Row(
                *("block_reuse", "log2 1/B", "points of a block per byte that it touches"),
                lambda d: _share(math.prod(d.at.of_block.values()), d.at.block_bytes),
            ),
            Row(
                *("copied", "log2 B", "that a block copies to shared memory"),
                lambda d: _log_base_2(_bytes_staged_by_block(d)),
            ),
            Row(
                *("traffic", "log2", "bytes that all blocks touch / bytes touched"),
                lambda d: _share(d.at.block_count * d.at.block_bytes, d.at.least_bytes),
            ),
            Row(
                *("requests", "log2", "sectors that warps ask for, per sector touched"),
                lambda d: _share(d.at.requests * 32, d.at.least_bytes),
            ),
            Row(
                *("in_l2", "log2", "bytes touched / second cache"),
                lambda d: _share(d.at.least_bytes, d.at.device.l2_bytes),
            ),
            Row(*("seconds", "log2 us", "as estimated"), lambda d: math.log2(1e6 * d.at.seconds)),
        ),
        "hardware": (
            Row("multiprocessors", "", "of the device", lambda d: d.at.device.multiprocessors),
            Row(
                *("warps", "", "that a multiprocessor holds"),
                lambda d: d.at.device.warps_per_multiprocessor,
            ),
            Row(
                *("shared_memory", "log2 B", "of a multiprocessor"),
                lambda d: _log_base_2(d.at.device.shared_per_multiprocessor),
            ),
            Row("l2", "log2 B", "second cache", lambda d: _log_base_2(d.at.device.l2_bytes)),
            Row(
                *("bandwidth", "log2 B/s", "of memory"),
                lambda d: _log_base_2(d.at.device.memory_bytes_per_second),
            ),
            Row(
                *("float32", "log2 1/s", "operations"),
                lambda d: _log_base_2(d.at.device.float32_flops),
            ),
            Row(
                *("tensor", "log2 1/s", "operations of tensor cores"),
                lambda d: _log_base_2(d.at.device.tensor_flops),
            ),
        ),
    },
    {"time": "log2 of the analytic model's time over the default's"},
)
"""Every feature, in their order."""
