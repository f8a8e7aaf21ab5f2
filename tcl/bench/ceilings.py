"""What the machine could do: small kernels that only read, only copy, or only multiply and add,
in float32 and, by the instructions in ``codegen.cpu.emit.peaks``, in narrow types.

The copy writes past the caches (non-temporal stores): a plain one first reads what it is about to
overwrite, and shows half of the bandwidth. With several threads each has its own part of the
buffers and its own core. And how results are best written, where kernels that differ in nothing
else take turns; and what a core reads from its caches, and from memory.
"""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from tcl.api import compile as compile_def
from tcl.codegen.choose.cpu.costs import OPERATION_CYCLES
from tcl.codegen.cpu.emit import peaks
from tcl.codegen.cpu.object_code.compile import compile_object, new_session
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.devices.cpu_profile import LINE
from tcl.codegen.devices.measured_memory import NEVER, MeasuredMemory
from tcl.codegen.loopir.cost import Cost
from tcl.codegen.options.options import MappingOptions
from tcl.tuner.measure.placement import NUMPY, aligned

_BUFFER = 256 << 20
"""Bytes that are read, or copied: far more than a core's own caches."""
_SECONDS = 0.001
"""How long one reading of the multiply-adds takes, about: less than the time for which systems let
a process run, so that on a machine with other work many a reading is undisturbed."""
_LONG = 0.1
"""Seconds, after which no other reading is tried: threads that wait for each other in turns may
have one core."""
_READINGS = 4
"""Of each rate in a sample, of which the best counts; of memory each reads another part of the
buffers."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Rates of one sample, of all threads together."""

    read: float
    """Bytes per second."""
    copy: float
    """Bytes per second, those read and those written both counted."""
    flops: float
    """Floating-point operations per second in float32; a multiply-add is two."""
    products: Mapping[str, float] = field(default_factory=dict)
    """Operations per second in sums of products of narrow numbers, by type, where the machine has
    instructions for them. Others it makes wider first, and does as it does float32's."""
    core_to_core: float = 0.0
    """Seconds in which a cache line goes from one core to the next; 0 with one thread."""

    @staticmethod
    def best(samples: Iterable[Ceilings]) -> Ceilings:
        """The best sample of each rate: what the machine can do when left alone."""
        found = list(samples)
        products: dict[str, float] = {}
        for sample in found:
            for type_, rate in sample.products.items():
                products[type_] = max(rate, products.get(type_, 0.0))
        return Ceilings(
            read=max(s.read for s in found),
            copy=max(s.copy for s in found),
            flops=max(s.flops for s in found),
            products=products,
            core_to_core=min((s.core_to_core for s in found if s.core_to_core), default=0.0),
        )

    def peak(self, type_: str) -> float:
        """Operations per second in sums of products of numbers of this type. Those of 8 bits can be
        made ones of 16 bits, and each can be made float32."""
        found = [self.flops, self.products.get(type_, 0.0)]
        if type_ == "int8":
            found.append(self.products.get("int16", 0.0))
        return max(found)

    def computing(self, cost: Cost) -> float:
        """The least seconds for the arithmetic of this work."""
        narrow = sum(n / self.peak(type_) for type_, n in cost.products.items())
        return cost.single / self.flops + narrow

    def moving(self, cost: Cost) -> float:
        """The least seconds to bring this work's data from memory, and its results there.

        Reading costs what the read ceiling says; writing, what the copy adds to that.
        """
        write = max(0.0, 2 / self.copy - 1 / self.read)
        return cost.read / self.read + cost.written * write

    def seconds(self, cost: Cost) -> float:
        """The least time for this work: arithmetic or memory, whichever takes longer."""
        return max(self.computing(cost), self.moving(cost))


class Meter:
    """Compiled ceiling kernels and their buffers, for a number of threads."""

    def __init__(self, cores: Sequence[int], buffer: int = _BUFFER) -> None:
        self._cores = tuple(cores)
        self._dots = peaks.dots(host_cpu())
        loops = peaks.peak_loops(host_cpu().vector_bits // 32)
        loops |= {dot.name: peaks.products_loop(dot) for dot in self._dots}
        self._functions = _compile(host_cpu(), loops)
        whole = 4096 * _READINGS
        part = buffer // len(cores) // whole * whole
        self._part = part
        self._parts = [(aligned((part,), "uint8"), aligned((part,), "uint8")) for _ in cores]
        for source, target in self._parts:
            source.fill(0)
            target.fill(0)
        self._pool = ThreadPoolExecutor(len(cores))
        self._times = {dot.name: self._long_enough(dot.name) for dot in self._dots}
        self._times["fma"] = self._long_enough("fma")

    def _long_enough(self, name: str) -> int:
        """How often a loop has to run for a sample."""
        times = 1 << 12
        # The least of a few: one call that was disturbed would make all samples too short.
        while (seconds := min(self._run(name, times) for _ in range(5))) < _SECONDS / 2:
            times = math.ceil(times * min(16.0, _SECONDS / seconds))
        return times

    def sample(self) -> Ceilings:
        """The best of several short readings of each rate."""
        products: dict[str, float] = {}
        for dot in self._dots:
            rate = self._rate(dot.name, dot.operations)
            products[dot.type] = max(rate, products.get(dot.type, 0.0))
        return Ceilings(
            read=self._moved("read", peaks.STREAMS),
            copy=2 * self._moved("copy", 1),
            flops=self._rate("fma", 2 * host_cpu().vector_bits // 32),
            products=products,
            core_to_core=core_to_core(self._cores),
        )

    def _rate(self, name: str, operations: int) -> float:
        """Operations per second of a loop of instructions that do so many each."""
        times = self._times[name]
        least = min(self._run(name, times) for _ in range(_READINGS))
        return operations * peaks.CHAINS * times * len(self._cores) / least

    def _moved(self, name: str, streams: int) -> float:
        """Bytes per second that are read in so many places side by side."""
        size = self._part // _READINGS
        least = min(self._run(name, size // streams, k * size) for k in range(_READINGS))
        return size * len(self._cores) / least

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def _run(self, name: str, count: int, first: int = 0) -> float:
        """Seconds from when the first thread begins to when the last one ends. ``first``: the byte
        of the buffers to begin at."""
        function = self._functions[name]
        done = [
            self._pool.submit(
                _work, function, core, source.ctypes.data + first, target.ctypes.data + first, count
            )
            for core, (source, target) in zip(self._cores, self._parts, strict=True)
        ]
        times = [job.result() for job in done]
        return max(end for _, end in times) - min(begin for begin, _ in times)


def _work(
    function: Callable[..., float], core: int, source: int, target: int, count: int
) -> tuple[float, float]:
    """When a call of a kernel begins, and when it ends."""
    with suppress(AttributeError, OSError):  # no system needs to have it, or grant it
        os.sched_setaffinity(0, {core})  # of this thread alone
    begin = time.perf_counter()
    function(source, target, count)
    return begin, time.perf_counter()


def core_to_core(cores: Sequence[int]) -> float:
    """Seconds in which a cache line that one core has written reaches another, of the first two
    cores; 0 if there is only one.

    Hypervisors move cores: on one host it was 30 ns, seconds later 170, and short calls on two
    threads took up to three times as long. Times on several threads compare where this does.
    """
    if len(cores) < 2:
        return 0.0
    function, counter = _turns(), aligned((LINE // 8,), "int64")
    place, found = counter.ctypes.data, []
    with ThreadPoolExecutor(2) as pool:
        for _ in range(2 * _READINGS):  # the best, as Python may hold up a thread before it calls
            counter.fill(0)
            jobs = [
                pool.submit(_work, function, core, place, place, own)
                for own, core in enumerate(cores[:2])
            ]
            times = [job.result() for job in jobs]
            found.append(max(end for _, end in times) - max(begin for begin, _ in times))
            if found[-1] > _LONG:
                break
    return min(found) / peaks.TURNS


@cache
def _turns() -> Callable[..., float]:
    return _compile(host_cpu(), {"turns": peaks.turns_loop()})["turns"]


def _compile(device: CpuProfile, kernels: Mapping[str, str]) -> dict[str, Callable[..., float]]:
    """The function ``ceiling`` of each text, by name."""
    import llvmlite.binding as llvm

    prototype = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    functions: dict[str, Callable[..., float]] = {}
    session = new_session(device)
    for name, text in kernels.items():
        builder = llvm.JITLibraryBuilder().add_object_img(compile_object(text, device))
        builder.export_symbol("ceiling").add_current_process()
        library = builder.link(session, f"ceiling_{name}")
        function: Any = prototype(library["ceiling"])
        function.keep = (session, library)  # the code lives as long as these
        functions[name] = function
    return functions


_SCALED = "def scaled(float(M, N) A, float(M) X) -> (O) { O(m, n) = A(m, n) * X(m) }"
_SIZES_MB = (2, 4, 8, 16, 32)
_ROW = 1000
"""Elements of a row that is no whole number of lines, so that rows share lines ..."""
_SHORT_ROW = 100
"""... and of one that has few vectors."""
_ROUNDS = 7
_WORTH = 1.2
"""How many times as fast it has to be to count: this def, which does next to nothing else, gains
most. On a Zen 3 where it was 1.02 for 2 MB and 1.35 for 4, softmax, polynomials and updates of
weights that touch 6 to 8 MB took 1.07 to 1.1 times as long past the caches."""
_WORTH_FAR = 1.05
"""Likewise where results and one operand as large are more than what surely comes from the caches:
kernels with other work between lose more there than this def, whose second call finds a part of
both. On Zen 4, where it was 1.2 for 16 MB, a stencil and a layernorm of as many took 1.9 and 1.4
times as long in the caches; on Zen 5, where it is 1.1 to 1.3 from 12 to 128 MB, 1.1 to 1.2 and 1.4
to 1.6 times, group norm, softmax and pointwise work 1.15 to 1.35 times."""
_LARGEST = 64 << 20
"""Bytes of the largest share of a last cache that is looked for ..."""
_STEPS = 2
"""... in so many steps from one size to its double, ..."""
_PASSES = 5
"""... each read so often, of which the best counts."""
_PARTS = 4
"""Of as much memory, each read once, of which the best counts."""
_MISSED = 0.2
"""The part of an array's bytes that may come from memory if the caches are said to keep it."""


def measure_memory() -> MeasuredMemory:
    """Measure for one thread of the machine at hand; about half a second."""
    device = host_cpu()
    kept, rate = _reading(device)
    gains = [
        (mb, _gain((mb << 20) // (4 * _ROW), _ROW, device, stream=True))
        for mb in reversed(_SIZES_MB)
    ]
    far = max(streamed_from(gains, _WORTH_FAR), int(kept * (1 - _MISSED) / 2))
    streamed = min(streamed_from(gains), far)
    gain = 1.0
    if device.vector_bits // 8 >= LINE:
        rows = device.l2_bytes // 4 // (4 * _SHORT_ROW)
        gain = _gain(rows, _SHORT_ROW, device, stream=False)
    return MeasuredMemory(streamed, gain, kept, rate)


def streamed_from(gains: Iterable[tuple[float, float]], worth: float = _WORTH) -> int:
    """Bytes from which on stores past the caches are ``worth`` times as fast, between the sizes (in
    MB, the largest first) for which it is known how many times as fast they were."""
    streamed, before = NEVER, worth
    for megabytes, gain in gains:
        if gain < worth:
            if streamed == NEVER:
                break
            gone = math.log(before / worth) / math.log(before / gain)
            return int(streamed * (megabytes * (1 << 20) / streamed) ** gone)
        streamed, before = int(megabytes * (1 << 20)), gain
    return streamed


def _gain(rows: int, columns: int, device: CpuProfile, *, stream: bool) -> float:
    """How many times as fast such results are written by loops that are peeled, and stream, as by
    plain ones."""
    lanes = device.vector_bits // 32
    plain = MappingOptions("naive").vectorize(lanes)
    inputs = [aligned(shape, "float32", NUMPY.past) for shape in ((rows, columns), (rows,))]
    output = aligned((rows, columns), "float32", NUMPY.past)
    for array in (*inputs, output):
        array.fill(1)
    kernels = [
        compile_def(_SCALED, "scaled", options, *inputs, threads=1)
        for options in (plain, plain.stream(stream).peel(True))
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


def _reading(device: CpuProfile) -> tuple[int, float]:
    """Bytes that a core reads again from its caches, and bytes per cycle from memory.

    Arrays of growing sizes are read in order, again and again, as kernels read: from the last cache
    that takes the same time per byte, until it does not keep them. A chase of pointers would find
    the sizes of caches, too, but no option depends on its time per step.
    """
    functions = _compile(device, peaks.peak_loops(device.vector_bits // 32))
    read = functions["read"]
    least = 2 * device.l2_bytes
    most = max(2 * least, min(2 * device.l3_bytes, 2 * _LARGEST))
    buffer = aligned((most,), "uint8")
    buffer.fill(0)

    def rate(size: int) -> float:
        """Bytes per second."""
        passes = range(_PASSES + 1)  # the first one brings it there
        return size / min([_seconds(read, buffer, size // peaks.STREAMS) for _ in passes][1:])

    steps = round(_STEPS * math.log2(most / 2 / least))  # half of it, at most
    sizes = [int(least * 2 ** (k / _STEPS)) // 4096 * 4096 for k in range(steps + 1)]
    rates = [rate(size) for size in sizes]
    part = most // 2 // _PARTS // 4096 * 4096
    parts = [buffer[most // 2 + k * part :] for k in range(_PARTS)]  # which nobody has read
    memory = part / min(_seconds(read, each, part // peaks.STREAMS) for each in parts)
    border = 1 / ((1 - _MISSED) / max(rates) + _MISSED / memory)
    kept = max(size for size, found in zip(sizes, rates, strict=True) if found >= border)
    count = 1 << 14
    seconds = min(_seconds(functions["fma"], buffer, count) for _ in range(_READINGS))
    cycles = count * peaks.CHAINS * OPERATION_CYCLES * (2 if device.halves_vectors else 1)
    return kept, memory * seconds / cycles


def _seconds(function: Callable[..., float], buffer: Any, count: int) -> float:
    begin = time.perf_counter()
    function(buffer.ctypes.data, buffer.ctypes.data, count)
    return time.perf_counter() - begin
