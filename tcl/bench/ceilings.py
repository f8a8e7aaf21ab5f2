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
from collections.abc import Callable, Sequence
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

_READ = """
declare float @llvm.vector.reduce.fadd.v{lanes}f32(float, {type})
define float @read(ptr noalias %from, ptr noalias %to, i64 %bytes) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{body}
  %next = add nuw nsw i64 %i, {step}
  %more = icmp ult i64 %next, %bytes
  br i1 %more, label %loop, label %done
done:
{total}
  %result = call reassoc float @llvm.vector.reduce.fadd.v{lanes}f32(float 0.0, {type} %all{last})
  ret float %result
}}
"""

_COPY = """
define float @copy(ptr noalias %from, ptr noalias %to, i64 %bytes) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{body}
  %next = add nuw nsw i64 %i, {step}
  %more = icmp ult i64 %next, %bytes
  br i1 %more, label %loop, label %done
done:
  fence seq_cst
  ret float 0.0
}}
!0 = !{{i32 1}}
"""

_FMA = """
declare {type} @llvm.fma.v{lanes}f32({type}, {type}, {type})
declare float @llvm.vector.reduce.fadd.v{lanes}f32(float, {type})
define float @fma(ptr noalias %from, ptr noalias %to, i64 %times) {{
entry:
  %x = load {type}, ptr %from, align 64
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{body}
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %times
  br i1 %more, label %loop, label %done
done:
{total}
  %result = call reassoc float @llvm.vector.reduce.fadd.v{lanes}f32(float 0.0, {type} %all{last})
  ret float %result
}}
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

    lanes = device.vector_bits // 32
    prototype = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    functions: dict[str, Callable[..., float]] = {}
    session = llvm.create_lljit_compiler(new_machine(device))
    for name, text in (("read", _read(lanes)), ("copy", _copy(lanes)), ("fma", _fma(lanes))):
        builder = llvm.JITLibraryBuilder().add_object_img(compile_object(text, device))
        library = builder.export_symbol(name).add_current_process().link(session, f"ceiling_{name}")
        function: Any = prototype(library[name])
        function.keep = (session, library)  # the code lives as long as these
        functions[name] = function
    return functions


def _read(lanes: int) -> str:
    type_ = f"<{lanes} x float>"
    chains = 8
    body = [
        line
        for k in range(chains)
        for line in (
            f"%o{k} = add nuw nsw i64 %i, {k * lanes * 4}",
            f"%p{k} = getelementptr i8, ptr %from, i64 %o{k}",
            f"%v{k} = load {type_}, ptr %p{k}, align 64",
            f"%n{k} = fadd {type_} %s{k}, %v{k}",
        )
    ]
    return _READ.format(
        step=chains * lanes * 4,
        type=type_,
        lanes=lanes,
        phis=_phis(type_, chains, "zeroinitializer"),
        body="\n".join(body),
        total=_total(type_, chains),
        last=chains - 1,
    )


def _copy(lanes: int) -> str:
    type_ = f"<{lanes} x float>"
    steps = 8
    body = [
        line
        for k in range(steps)
        for line in (
            f"%o{k} = add nuw nsw i64 %i, {k * lanes * 4}",
            f"%p{k} = getelementptr i8, ptr %from, i64 %o{k}",
            f"%q{k} = getelementptr i8, ptr %to, i64 %o{k}",
            f"%v{k} = load {type_}, ptr %p{k}, align 64",
            f"store {type_} %v{k}, ptr %q{k}, align 64, !nontemporal !0",
        )
    ]
    return _COPY.format(step=steps * lanes * 4, body="\n".join(body))


def _fma(lanes: int) -> str:
    type_ = f"<{lanes} x float>"
    body = [
        f"%n{k} = call {type_} @llvm.fma.v{lanes}f32({type_} %s{k}, {type_} %x, {type_} %x)"
        for k in range(_CHAINS)
    ]
    return _FMA.format(
        type=type_,
        lanes=lanes,
        phis=_phis(type_, _CHAINS, "%x"),
        body="\n".join(body),
        total=_total(type_, _CHAINS),
        last=_CHAINS - 1,
    )


def _phis(type_: str, count: int, start: str) -> str:
    return "\n".join(
        f"  %s{k} = phi {type_} [ {start}, %entry ], [ %n{k}, %loop ]" for k in range(count)
    )


def _total(type_: str, count: int) -> str:
    """The sum of all chains, so that none can be left out."""
    lines = [f"  %all0 = fadd {type_} %n0, zeroinitializer"]
    lines += [f"  %all{k} = fadd {type_} %all{k - 1}, %n{k}" for k in range(1, count)]
    return "\n".join(lines)
