"""What a row's kernels ask of a GPU, with default options: counted, not measured."""

from __future__ import annotations

from tcl.arrays.random_inputs import input_shape
from tcl.bench.rows import Row
from tcl.codegen.counters.counts import KernelCounts, count_program
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import DEFAULT
from tcl.codegen.schedule.gpu import schedule
from tcl.grammar.ranges.inference import infer


def scheduled_of(row: Row, device: GpuProfile) -> ir.Built:
    """All kernels, as loops."""
    shapes = {t.name: input_shape(t, row.values) for t in row.checked.inputs}
    return schedule(infer(row.checked, shapes), DEFAULT, device)


def counts_of(row: Row, device: GpuProfile) -> tuple[KernelCounts, ...]:
    """Of all kernels, in order."""
    return count_program(scheduled_of(row, device), device)
