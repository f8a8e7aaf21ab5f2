"""How results are best written on this machine: kernels that differ in nothing else take turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from tcl.api import compile as compile_def
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.devices.cpu_profile import LINE
from tcl.codegen.devices.measured_stores import NEVER, MeasuredStores
from tcl.codegen.options.options import MappingOptions
from tcl.tuner.measure.placement import NUMPY, aligned

_SCALED = "def scaled(float(M, N) A, float(M) X) -> (O) { O(m, n) = A(m, n) * X(m) }"
_SIZES_MB = (2, 4, 8, 16, 32)
_ROW = 1000
"""Elements of a row that is no whole number of lines, so that rows share lines ..."""
_SHORT_ROW = 100
"""... and of one that has few vectors."""
_ROUNDS = 7
_WORTH = 1.05
"""How many times as fast it has to be to count."""


def measure_stores() -> MeasuredStores:
    """Measure for one thread of the machine at hand; about a second."""
    device = host_cpu()
    streamed = NEVER
    for megabytes in reversed(_SIZES_MB):
        rows = (megabytes << 20) // (4 * _ROW)
        if _gain(rows, _ROW, device, stream=True, peel=True) < _WORTH:
            break
        streamed = megabytes << 20
    gain = 1.0
    if device.vector_bits // 8 >= LINE:
        rows = device.l2_bytes // 4 // (4 * _SHORT_ROW)
        gain = _gain(rows, _SHORT_ROW, device, stream=False, peel=True)
    return MeasuredStores(streamed, gain)


def _gain(rows: int, columns: int, device: CpuProfile, *, stream: bool, peel: bool) -> float:
    """How many times as fast such results are written with these options as without."""
    lanes = device.vector_bits // 32
    plain = MappingOptions("naive").vectorize(lanes)
    inputs = [aligned(shape, "float32", NUMPY.past) for shape in ((rows, columns), (rows,))]
    output = aligned((rows, columns), "float32", NUMPY.past)
    for array in (*inputs, output):
        array.fill(1)
    kernels = [
        compile_def(_SCALED, "scaled", options, *inputs, threads=1)
        for options in (plain, plain.stream(stream).peel(peel))
    ]
    best = [float("inf")] * 2
    for _ in range(_ROUNDS):
        for k, kernel in enumerate(kernels):
            best[k] = min(best[k], _second_call(partial(kernel, *inputs, outputs=output)))
    return best[0] / best[1]


def _second_call(call: Callable[[], object]) -> float:
    """Of the second of two calls, which finds what the first one left in the caches."""
    call()
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
