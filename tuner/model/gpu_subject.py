"""Candidates for a GPU: every one is scheduled and counted, in milliseconds and without a GPU.

What a model knows of one are the counts of its kernels (``tcl.codegen.counters``): numbers of a
fixed length, for any def. A feature is a row of ``SCHEMA``; what is said of a kernel is said of the
one that takes the longest by these counts, and again as the difference to the heuristic default's.
Counts and bytes are logarithms to base 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tcl.codegen.counters.counts import KernelCounts, count_program
from tcl.codegen.counters.prediction import Prediction, needed_in_flight, predict
from tcl.codegen.counters.requests import SECTOR, Memory
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.cost import Cost, cost_of
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.schedule.gpu import plan_gpu
from tcl.common.errors import OptionsError
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.schema import Feature, Schema
from tcl.tuner.model.subject import Subject
from tcl.tuner.space.columns import Places, Rows
from tcl.tuner.space.gpu.mapping import GpuMappingSpace


@dataclass(frozen=True, slots=True)
class DescribedCandidate:
    """The kernel of a candidate that takes the longest."""

    cost: Cost
    kernels: int
    counts: KernelCounts
    prediction: Prediction


Number = Callable[[DescribedCandidate], float]
_LEAST = 2.0**-10
"""The share of a kernel's time below which it does not matter how busy a pipe is."""
_PIPES = (
    *("float32", "float64", "tensor cores", "special functions", "integers", "issue"),
    *("shared memory", "shuffles", "first cache", "second cache", "slices"),
    *("latency", "memory"),
)


def _log_base_2(of: Number) -> Number:
    """Of what is at least 1 or counts as that."""
    return lambda d: math.log2(max(of(d), 1.0))


def _share(part: Number, whole: Number) -> Number:
    """log2 of a ratio, of which neither side counts as less than 1."""
    return lambda d: math.log2(max(part(d), 1.0)) - math.log2(max(whole(d), 1.0))


def _units_a_request(*kinds: Memory) -> Number:
    return lambda d: max(d.counts.traffic[kind].each for kind in kinds)


def _busy(pipe: str, d: DescribedCandidate) -> float:
    pipes = d.prediction.pipes
    return math.log2(max(_LEAST, pipes.get(pipe, 0.0) / max(pipes.values())))


def _device(name: str) -> Number:
    return lambda d: float(getattr(d.counts.profile, name))


def _rows(*rows: tuple[str, str, str, Number]) -> tuple[Feature[DescribedCandidate], ...]:
    return tuple(Feature(*row) for row in rows)


def _flops(d: DescribedCandidate) -> float:
    return d.cost.operations


def _bytes(d: DescribedCandidate) -> float:
    return d.cost.bytes_moved


_READ_UNITS = _units_a_request(Memory.GLOBAL_READ, Memory.GLOBAL_COPY)
_SHARED_UNITS = _units_a_request(Memory.SHARED_READ, Memory.MATRIX_READ)
_FILL_UNITS = _units_a_request(Memory.SHARED_WRITE, Memory.SHARED_COPY)
SCHEMA: Schema[DescribedCandidate] = Schema(
    "cuda",
    3,
    {
        "problem": _rows(
            ("flops", "log2", "operations of a call", _log_base_2(_flops)),
            ("bytes", "log2 B", "bytes that have to move", _log_base_2(_bytes)),
            ("intensity", "log2 1/B", "operations per byte that moves", _share(_flops, _bytes)),
        ),
        "mapping": _rows(
            ("kernels", "", "that run one after the other", lambda d: d.kernels),
            ("threads", "log2", "of a block", _log_base_2(lambda d: d.counts.threads)),
            ("registers", "", "of a thread, about", lambda d: d.counts.registers),
            (
                "shared",
                "log2 B",
                "shared memory of a block",
                _log_base_2(lambda d: d.counts.shared),
            ),
            ("blocks", "log2", "in all", _log_base_2(lambda d: d.counts.blocks)),
        ),
        "interaction": _rows(
            (
                "resident",
                "",
                "blocks that fit a multiprocessor",
                lambda d: d.counts.occupancy.blocks,
            ),
            ("occupancy", "", "share of its warps in use", lambda d: d.counts.occupancy.share),
            ("waves", "log2", "times the device is full", _log_base_2(lambda d: d.counts.waves)),
            ("tail", "", "share of the busiest multiprocessor's work", lambda d: d.counts.tail),
            ("read_spread", "log2", "sectors a read request", _log_base_2(_READ_UNITS)),
            (
                *("write_spread", "log2", "likewise of what is written"),
                _log_base_2(_units_a_request(Memory.GLOBAL_WRITE)),
            ),
            ("conflicts", "log2", "wavefronts of a read of a panel", _log_base_2(_SHARED_UNITS)),
            ("fill_conflicts", "log2", "likewise of a fill", _log_base_2(_FILL_UNITS)),
            (
                *("requested", "log2", "bytes of all sectors asked for / that have to move"),
                _share(lambda d: d.counts.sectors * SECTOR, _bytes),
            ),
            (
                *("from_memory", "log2", "bytes that come from memory / that have to move"),
                _share(lambda d: d.counts.dram_read + d.counts.dram_written, _bytes),
            ),
            (
                *("in_flight", "log2", "bytes on their way / those that keep memory busy"),
                _share(lambda d: d.counts.in_flight, lambda d: needed_in_flight(d.counts.profile)),
            ),
            (
                *("instructions", "log2", "of all warps"),
                _log_base_2(lambda d: sum(d.counts.instructions.values())),
            ),
            *(
                (
                    f"{pipe}.busy",
                    "log2",
                    f"{pipe}: its time / the busiest pipe's",
                    partial(_busy, pipe),
                )
                for pipe in _PIPES
            ),
            ("seconds", "log2 us", "as predicted", lambda d: math.log2(1e6 * d.prediction.rank)),
        ),
        "hardware": _rows(
            ("multiprocessors", "", "of the device", _device("multiprocessors")),
            ("warps", "", "that a multiprocessor holds", _device("warps_per_multiprocessor")),
            (
                *("shared_memory", "log2 B", "of a multiprocessor"),
                _log_base_2(_device("shared_per_multiprocessor")),
            ),
            ("l2", "log2 B", "second cache", _log_base_2(_device("l2_bytes"))),
            ("bandwidth", "log2 B/s", "of memory", _log_base_2(_device("memory_bytes_per_second"))),
            ("float32", "log2 1/s", "operations", _log_base_2(_device("float32_flops"))),
            ("tensor", "log2 1/s", "those of tensor cores", _log_base_2(_device("tensor_flops"))),
        ),
    },
    {"time": "log2 of the predicted time over the default's"},
)
"""Every feature, in their order."""


Kernels = tuple[KernelCounts, ...]


@dataclass(frozen=True, slots=True)
class GpuSubject(Subject[Kernels, GpuMappingSpace]):
    """A def for its sizes on a GPU."""

    schema = SCHEMA
    title = "GPUs"
    count = 100

    program: ir.Program
    """As it was lowered, or with dimensions that lie together as one."""
    device: GpuProfile
    cost: Cost
    merges: bool
    """Whether options have to merge dimensions to be described."""
    default: Kernels
    """The kernels where nothing is known."""

    @classmethod
    def read(cls, program: ir.Program, device: GpuProfile) -> GpuSubject:
        whole = merged(program)
        default = _counted(whole, DEFAULT, device)
        return cls(whole, device, cost_of(program), whole != program, default)

    @staticmethod
    def space(program: ir.Program, device: GpuProfile) -> GpuMappingSpace:
        return GpuMappingSpace(program, device)

    def covered_by(self, space: GpuMappingSpace) -> bool:
        return bool(space.space.knobs) and bool(self.default)

    def choices(self, options: MappingOptions) -> Kernels:
        """The counts of the kernels that these options make.

        ``OptionsError`` for options that cannot be applied, or do not merge dimensions.
        """
        if self.merges and not options.merges:
            raise OptionsError("dimensions are not merged, so the nests are different")
        return _counted(self.program, options, self.device)

    def extract(self, choices: Sequence[Kernels]) -> tuple[Floats, Floats]:
        schema = self.schema
        usual, before = self._longest(self.default)
        rows, seconds = np.zeros((len(choices), len(schema.names))), np.ones(len(choices))
        for k, kernels in enumerate(choices):
            own, seconds[k] = self._longest(kernels)
            change = own[schema.compared] - usual[schema.compared]
            rows[k] = *own, *change, math.log2(seconds[k] / before)
        return rows, seconds

    def extract_rows(self, space: GpuMappingSpace, rows: Rows) -> tuple[Places, Floats]:
        configs = [(k, rows.config(k)) for k in range(len(rows.places))]
        valid = [(k, space.to_options(c)) for k, c in configs if space.space.valid(c)]
        described = self.describable([options for _, options in valid])
        places = np.array([valid[place][0] for place, _ in described], np.intp)
        return places, self.extract([choices for _, choices in described])[0]

    def _longest(self, kernels: Kernels) -> tuple[Floats, float]:
        """The features of the kernel that takes the longest, and the seconds of all of them."""
        if not kernels:
            return np.zeros(len(self.schema.features)), 1.0
        predicted = [(counts, predict(counts)) for counts in kernels]
        longest = max(predicted, key=lambda each: each[1].rank)
        described = DescribedCandidate(self.cost, len(kernels), *longest)
        row = np.array([float(f.of(described)) for f in self.schema.features])
        return row, sum(prediction.rank for _, prediction in predicted)


def _counted(program: ir.Program, options: MappingOptions, device: GpuProfile) -> Kernels:
    plan = plan_gpu(program, options, device)
    *_, (_, mapped) = plan.applied()  # not verified, which takes as long again
    counts = count_program(plan.build(mapped), device)
    return tuple(c for c in counts if c.blocks and any(c.instructions.values()))
