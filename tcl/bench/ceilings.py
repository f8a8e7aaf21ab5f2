"""What the machine could do: small kernels that only read, only copy, or only multiply and add.

The copy writes past the caches (non-temporal stores): a plain one first reads what it is about to
overwrite, and shows half of the bandwidth. With several threads each has its own part of the
buffers and its own core.
"""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tcl.bench.arrays import aligned
from tcl.codegen.cpu.object_code.compile import compile_object, new_machine
from tcl.codegen.devices.cpu import CpuProfile, host_cpu

_BUFFER = 256 << 20
"""Bytes that are read, or copied: far more than a core's own caches."""
_CHAINS = 12
"""Independent sums: enough to hide the latency of a multiply-add on two units."""
_SECONDS = 0.02
"""How long one sample of the multiply-adds takes, about."""

_LOOP = """
declare {type} @llvm.fma.v{lanes}f32({type}, {type}, {type})
declare float @llvm.vector.reduce.fadd.v{lanes}f32(float, {type})
define float @{name}(ptr noalias %from, ptr noalias %to, i64 %count) {{
entry:
  %x = load {type}, ptr %from, align 64
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{body}
  %next = add nuw nsw i64 %i, {step}
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
{end}
}}
!0 = !{{i32 1}}
"""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Rates of one sample, of all threads together."""

    read: float
    """Bytes per second."""
    copy: float
    """Bytes per second, those read and those written both counted."""
    flops: float
    """Floating-point operations per second; a multiply-add is two."""

    @staticmethod
    def best(samples: Iterable[Ceilings]) -> Ceilings:
        """The best sample of each rate: what the machine can do when left alone."""
        rates = zip(*((s.read, s.copy, s.flops) for s in samples), strict=True)
        return Ceilings(*map(max, rates))

    def seconds(self, flops: int, read: int, written: int) -> float:
        """The least time for this much work: arithmetic or memory, whichever takes longer.

        Reading costs what the read ceiling says; writing, what the copy adds to that.
        """
        write = max(0.0, 2 / self.copy - 1 / self.read)
        return max(flops / self.flops, read / self.read + written * write)


class Meter:
    """Compiled ceiling kernels and their buffers, for a number of threads."""

    def __init__(self, cores: Sequence[int], buffer: int = _BUFFER) -> None:
        self._cores = tuple(cores)
        self._functions = _compile(host_cpu())
        part = buffer // len(cores) // 4096 * 4096
        self._part = part
        self._parts = [(aligned((part,), "uint8"), aligned((part,), "uint8")) for _ in cores]
        for source, target in self._parts:
            source.fill(0)
            target.fill(0)
        self._pool = ThreadPoolExecutor(len(cores))
        self._times = 1 << 12
        # The least of a few: one call that was disturbed would make all samples too short.
        while (seconds := min(self._run("fma", self._times) for _ in range(5))) < _SECONDS / 2:
            self._times = math.ceil(self._times * min(16.0, _SECONDS / seconds))

    def sample(self) -> Ceilings:
        """Measure each kernel once, after a call to warm up (the first touches the pages)."""
        lanes = host_cpu().vector_bits // 32
        work = len(self._cores)
        flops = 2 * lanes * _CHAINS * self._times * work
        total = self._part * work
        return Ceilings(
            read=total / self._run("read", self._part),
            copy=2 * total / self._run("copy", self._part),
            flops=flops / self._run("fma", self._times),
        )

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def _run(self, name: str, count: int) -> float:
        function = self._functions[name]
        jobs = zip(self._cores, self._parts, strict=True)
        begin = time.perf_counter()
        done = [self._pool.submit(_work, function, c, *p, count) for c, p in jobs]
        for job in done:
            job.result()
        return time.perf_counter() - begin


def _work(function: Callable[..., float], core: int, source: Any, target: Any, count: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})  # of this thread alone
    function(source.ctypes.data, target.ctypes.data, count)


def _compile(device: CpuProfile) -> dict[str, Callable[..., float]]:
    import llvmlite.binding as llvm

    prototype = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    functions: dict[str, Callable[..., float]] = {}
    session = llvm.create_lljit_compiler(new_machine(device))
    for name, text in _kernels(device.vector_bits // 32).items():
        builder = llvm.JITLibraryBuilder().add_object_img(compile_object(text, device))
        library = builder.export_symbol(name).add_current_process().link(session, f"ceiling_{name}")
        function: Any = prototype(library[name])
        function.keep = (session, library)  # the code lives as long as these
        functions[name] = function
    return functions


def _kernels(lanes: int) -> dict[str, str]:
    """Name → LLVM IR of the functions that read, copy, and multiply and add."""
    type_ = f"<{lanes} x float>"
    unrolled = 8
    reads, copies = [], []
    for k in range(unrolled):
        load = [
            f"%o{k} = add nuw nsw i64 %i, {k * lanes * 4}",
            f"%p{k} = getelementptr i8, ptr %from, i64 %o{k}",
            f"%v{k} = load {type_}, ptr %p{k}, align 64",
        ]
        reads += [*load, f"%n{k} = fadd {type_} %s{k}, %v{k}"]
        copies += [
            *load,
            f"%q{k} = getelementptr i8, ptr %to, i64 %o{k}",
            f"store {type_} %v{k}, ptr %q{k}, align 64, !nontemporal !0",
        ]
    fmas = [
        f"%n{k} = call {type_} @llvm.fma.v{lanes}f32({type_} %s{k}, {type_} %x, {type_} %x)"
        for k in range(_CHAINS)
    ]

    def loop(name: str, step: int, body: list[str], end: list[str]) -> str:
        lines = {"body": "\n".join(body), "end": "\n".join(end)}
        return _LOOP.format(name=name, step=step, type=type_, lanes=lanes, **lines)

    def chained(name: str, step: int, body: list[str], chains: int, start: str) -> str:
        """A loop that goes on with ``chains`` values, whose sum it returns so that none of them can
        be left out."""
        values = [
            f"%s{k} = phi {type_} [ {start}, %entry ], [ %n{k}, %loop ]" for k in range(chains)
        ]
        end = [f"%all0 = fadd {type_} %n0, zeroinitializer"]
        end += [f"%all{k} = fadd {type_} %all{k - 1}, %n{k}" for k in range(1, chains)]
        end += [
            f"%result = call reassoc float @llvm.vector.reduce.fadd.v{lanes}f32("
            f"float 0.0, {type_} %all{chains - 1})",
            "ret float %result",
        ]
        return loop(name, step, values + body, end)

    step = unrolled * lanes * 4
    return {
        "read": chained("read", step, reads, unrolled, "zeroinitializer"),
        "copy": loop("copy", step, copies, ["fence seq_cst", "ret float 0.0"]),
        "fma": chained("fma", 1, fmas, _CHAINS, "%x"),
    }
