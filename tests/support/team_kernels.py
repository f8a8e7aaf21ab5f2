"""Kernels written by hand, that do what only several threads can do."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from tcl.codegen.cpu.abi import LINE
from tcl.codegen.cpu.emit import sharing
from tcl.codegen.cpu.llvm.entry import OPENING, alone
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.object_code.kernel_code import KernelCode, NumberedSite, Scratch
from tcl.codegen.cpu.run.launch import Launcher, address_of
from tcl.codegen.cpu.run.native import NativeEntry
from tcl.codegen.cpu.runtime.thread_pool import team
from tcl.codegen.devices.cpu import host_cpu

DECLARED = "declare i32 @sched_yield()\ndeclare i32 @usleep(i32)\ndeclare i32 @sched_getcpu()\n"

WHO = """
  %out = load ptr, ptr %tensors, align 8
  %at = getelementptr i64, ptr %out, i64 %thread
  store i64 %threads, ptr %at, align 8
  ret i32 0
"""
"""``out[thread] = threads``"""

COUNT = """
  %in = load ptr, ptr %tensors, align 8
  %out.at = getelementptr ptr, ptr %tensors, i64 1
  %out = load ptr, ptr %out.at, align 8
  %limit = load i64, ptr %in, align 8
  br label %loop
loop:
  %i = atomicrmw add ptr %team, i64 1 monotonic
  %more = icmp ult i64 %i, %limit
  br i1 %more, label %body, label %done
body:
  %at = getelementptr i64, ptr %out, i64 %i
  %before = load i64, ptr %at, align 8
  %after = add i64 %before, 1
  store i64 %after, ptr %at, align 8
  br label %loop
done:
  ret i32 0
"""
"""``out[i] += 1`` for all ``i`` below ``in[0]``, handed out one by one."""

MEET = f"""
  %in = load ptr, ptr %tensors, align 8
  %out.at = getelementptr ptr, ptr %tensors, i64 1
  %out = load ptr, ptr %out.at, align 8
  %wrong.at = getelementptr ptr, ptr %tensors, i64 2
  %wrong = load ptr, ptr %wrong.at, align 8
  %regions = load i64, ptr %in, align 8
  %count.at = getelementptr i64, ptr %in, i64 1
  %count = load i64, ptr %count.at, align 8
  br label %region
region:
  %r = phi i64 [ 0, %entry ], [ %r.next, %meet ]
  %offset = mul i64 %r, {LINE}
  %line = getelementptr i8, ptr %team, i64 %offset
  br label %take
take:
  %own = phi i64 [ 0, %region ], [ %own.next, %body ]
  %i = atomicrmw add ptr %line, i64 1 monotonic
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %meet
body:
  %at = getelementptr i64, ptr %out, i64 %i
  %before = load i64, ptr %at, align 8
  %early = icmp ne i64 %before, %r
  %one = zext i1 %early to i64
  %ignored = atomicrmw add ptr %wrong, i64 %one monotonic
  %r.up = add i64 %r, 1
  store i64 %r.up, ptr %at, align 8
  %own.next = add i64 %own, 1
  br label %take
meet:
  %done = getelementptr i8, ptr %line, i64 8
  call void @tcl_meet(ptr %done, i64 %own, i64 %count, ptr %errors)
  %r.next = add i64 %r, 1
  %end = icmp eq i64 %r.next, %regions
  br i1 %end, label %done.all, label %region
done.all:
  ret i32 0
"""
"""``in[0]`` regions in each of which ``out[i]``, for all ``i`` below ``in[1]``, becomes one more;
``wrong[0]``: how often the one before was not done."""

FAIL = """
  %in = load ptr, ptr %tensors, align 8
  %first = load i64, ptr %in, align 8
  %bad = icmp uge i64 %thread, %first
  br i1 %bad, label %tell, label %done
tell:
  store i64 1, ptr %error, align 8
  %value.at = getelementptr i64, ptr %error, i64 2
  store i64 %thread, ptr %value.at, align 8
  ret i32 1
done:
  ret i32 0
"""
"""A failed check in the threads from ``in[0]`` on, with their number as value."""

TAKE = """
  %in = load ptr, ptr %tensors, align 8
  %own = load i64, ptr %in, align 8
  %all.at = getelementptr i64, ptr %in, i64 1
  %all = load i64, ptr %all.at, align 8
  %parts.at = getelementptr i64, ptr %in, i64 2
  %parts = load i64, ptr %parts.at, align 8
  %line.at = getelementptr ptr, ptr %tensors, i64 1
  %line = load ptr, ptr %line.at, align 8
  %out.at = getelementptr ptr, ptr %tensors, i64 2
  %out = load ptr, ptr %out.at, align 8
  %part = call i64 @tcl_take(ptr %line, i64 %own, i64 %all, i64 %parts)
  store i64 %part, ptr %out, align 8
  ret i32 0
"""
"""``out[0]``: what thread ``in[0]`` of ``in[1]`` takes next of ``in[2]`` parts, by the counters of
``line``."""

PRIVATE = """
  %in = load ptr, ptr %tensors, align 8
  %out.at = getelementptr ptr, ptr %tensors, i64 1
  %out = load ptr, ptr %out.at, align 8
  %scratch.at = getelementptr ptr, ptr %tensors, i64 2
  %scratch = load ptr, ptr %scratch.at, align 8
  %size = load i64, ptr %in, align 8
  %offset = mul i64 %size, %thread
  %own = getelementptr i8, ptr %scratch, i64 %offset
  %up = add i64 %thread, 1
  %byte = trunc i64 %up to i8
  call void @llvm.memset.p0.i64(ptr %own, i8 %byte, i64 %size, i1 false)
  call void @tcl_meet(ptr %team, i64 1, i64 %threads, ptr %errors)
  %last.at = getelementptr i8, ptr %own, i64 8
  %found = load i8, ptr %last.at, align 1
  %wide = zext i8 %found to i64
  %at = getelementptr i64, ptr %out, i64 %thread
  store i64 %wide, ptr %at, align 8
  ret i32 0
"""
"""``out[thread] = thread + 1``, by way of ``in[0]`` bytes of the thread's own memory."""

SLEEP = """
  %in = load ptr, ptr %tensors, align 8
  %micros = load i64, ptr %in, align 8
  %short = trunc i64 %micros to i32
  %ignored = call i32 @usleep(i32 %short)
  %out.at = getelementptr ptr, ptr %tensors, i64 1
  %out = load ptr, ptr %out.at, align 8
  %at = getelementptr i64, ptr %out, i64 %thread
  store i64 %threads, ptr %at, align 8
  ret i32 0
"""
"""As ``WHO``, after ``in[0]`` microseconds."""

WAIT = """
  %in = load ptr, ptr %tensors, align 8
  %out.at = getelementptr ptr, ptr %tensors, i64 1
  %out = load ptr, ptr %out.at, align 8
  %at = getelementptr i64, ptr %out, i64 %thread
  store i64 %threads, ptr %at, align 8
  br label %look
look:
  %tries = phi i64 [ 0, %entry ], [ %next, %wait ]
  %word = load atomic i64, ptr %in monotonic, align 8
  %open = icmp ne i64 %word, 0
  %long = icmp eq i64 %tries, 60000
  %end = or i1 %open, %long
  br i1 %end, label %done, label %wait
wait:
  %ignored = call i32 @usleep(i32 1000)
  %next = add i64 %tries, 1
  br label %look
done:
  ret i32 0
"""
"""As ``WHO``, and then waits until ``in[0]`` is set, but not for ever."""

CORES = """
  %out = load ptr, ptr %tensors, align 8
  %core = call i32 @sched_getcpu()
  %wide = sext i32 %core to i64
  %at = getelementptr i64, ptr %out, i64 %thread
  store i64 %wide, ptr %at, align 8
  ret i32 0
"""
"""``out[thread]``: the core that the thread runs on."""

LATE = """
  %in = load ptr, ptr %tensors, align 8
  %micros = load i64, ptr %in, align 8
  %short = trunc i64 %micros to i32
  %out.at = getelementptr ptr, ptr %tensors, i64 1
  %out = load ptr, ptr %out.at, align 8
  %at = getelementptr i64, ptr %out, i64 %thread
  store atomic i64 %threads, ptr %at monotonic, align 8
  %first = icmp eq i64 %thread, 0
  br i1 %first, label %come, label %wait
come:
  %tries = phi i64 [ 0, %entry ], [ %next, %again ]
  %last = sub i64 %threads, 1
  %other.at = getelementptr i64, ptr %out, i64 %last
  %other = load atomic i64, ptr %other.at monotonic, align 8
  %came = icmp ne i64 %other, 0
  %long = icmp eq i64 %tries, 600000
  %end = or i1 %came, %long
  br i1 %end, label %done, label %again
again:
  %slept = call i32 @usleep(i32 100)
  %next = add i64 %tries, 1
  br label %come
wait:
  %ignored = call i32 @usleep(i32 %short)
  br label %done
done:
  ret i32 0
"""
"""As ``WHO``, but all threads except the first lose their core for ``in[0]`` microseconds, and the
first one waits until the last one has come, but not for ever."""


def keep_together(always: bool = True) -> None:
    """Whether calls run on all of their threads however little of their cores these have."""
    found = team()
    if found is not None:
        found.together(always)


def kernel(
    body: str, arguments: int, *, threads: int, regions: int = 1, scratch: tuple[Scratch, ...] = ()
) -> Launcher:
    """A kernel with this body."""
    names = [f"T{k}" for k in range(arguments)]
    sites = (NumberedSite(0, 0, 0, 1, False),)
    return Launcher(KernelCode(_object(body), sites, scratch, regions, threads), names)


class Caller:
    """What a user of a kernel as a C function does."""

    def __init__(self, launcher: Launcher, entry: NativeEntry | None = None) -> None:
        self.entry = entry or NativeEntry(launcher)
        type_ = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
        self.function = type_(self.entry.address)

    def __call__(self, arrays: Sequence[Any]) -> None:
        addresses = (ctypes.c_uint64 * len(arrays))(*map(address_of, arrays))
        error = (ctypes.c_int64 * 2)()
        status = self.function(addresses, error)
        if status:
            raise self.entry.error(status, *error)


@functools.cache
def _object(body: str) -> bytes:
    text = "\n".join([*OPENING, body, "}", sharing.MEET, sharing.TAKE, DECLARED, alone()])
    return compile_object(text, host_cpu())
