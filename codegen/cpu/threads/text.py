"""The pool of threads, as LLVM IR: it runs without Python, and needs nothing but POSIX threads.

A job is handed over by setting the *ticket* of each worker that takes part. A worker looks at its
ticket for a while after its last job, then sleeps. Before it does, it counts itself among the
sleepers and looks once more: so either it sees that the ticket was set, or the caller sees that
somebody has to be woken.

On Linux, workers keep off the caller's core. The kernel of the system likes to wake a thread where
its waker runs, where it then waits until the caller has done its part alone. A worker that finds
itself there forbids itself that core, and the caller forbids its core to workers that last ran on
it, as happens when it was moved.

Where other processes keep the cores busy, a call that waits for workers can take many times as long
as one thread would. A worker that had so little of its core in the last jobs that one thread would
have been faster says so; the next calls then run alone, for longer and longer as long as that
happens again.
"""

from __future__ import annotations

import signal
import sys
import time

from tcl.codegen.cpu.abi import LINE
from tcl.codegen.cpu.threads.caller import run
from tcl.codegen.cpu.threads.layout import (
    CONDITION,
    HOME,
    INDEX,
    LAST_CORE,
    MUTEX,
    RESET,
    SELF,
    STACK,
    STARTED,
    WORKERS,
    at,
)
from tcl.codegen.cpu.threads.worker import worker


def text(architecture: str) -> str:
    """The module, for a machine with POSIX threads."""
    pause, declared = _pause(architecture)
    parts = [_DECLARED, declared, *(_AFFINITY if sys.platform == "linux" else _NO_AFFINITY)]
    parts += [_clock(), _reset(), _grow(), worker(pause), run(pause)]
    return "\n".join(parts)


def _pause(architecture: str) -> tuple[str, str]:
    """An instruction for loops that wait, and its declaration."""
    if architecture == "x86_64":
        return "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"
    if architecture == "aarch64":  # "yield" does nothing on most cores, a barrier takes a while
        return "call void @llvm.aarch64.isb(i32 15)", "declare void @llvm.aarch64.isb(i32)"
    return "fence seq_cst", ""


_DECLARED = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i64 @pthread_self()
declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

_NO_AFFINITY = (
    """
define internal i64 @core() { ret i64 -1 }
define internal void @forbid(i64 %thread, i64 %caller, i64 %core) { ret void }
""",
)


_AFFINITY = (
    """
declare i32 @sched_getcpu()
declare i32 @pthread_getaffinity_np(i64, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)

define internal i64 @core() {
  %number = call i32 @sched_getcpu()
  %core = sext i32 %number to i64
  ret i64 %core
}

; Let a thread run where the caller may, but not on this core, if there is another one.
define internal void @forbid(i64 %thread, i64 %caller, i64 %core) noinline {
entry:
  %set = alloca [16 x i64], align 8
  call void @llvm.memset.p0.i64(ptr %set, i8 0, i64 128, i1 false)
  %known = icmp ult i64 %core, 1024
  br i1 %known, label %ask, label %done
ask:
  %asked = call i32 @pthread_getaffinity_np(i64 %caller, i64 128, ptr %set)
  %ok = icmp eq i32 %asked, 0
  br i1 %ok, label %clear, label %done
clear:
  %word = lshr i64 %core, 6
  %bit = and i64 %core, 63
  %one = shl i64 1, %bit
  %others = xor i64 %one, -1
  %at = getelementptr i64, ptr %set, i64 %word
  %before = load i64, ptr %at, align 8
  %after = and i64 %before, %others
  store i64 %after, ptr %at, align 8
  br label %look
look:
  %k = phi i64 [ 0, %clear ], [ %next, %more ]
  %each = getelementptr i64, ptr %set, i64 %k
  %cores = load i64, ptr %each, align 8
  %some = icmp ne i64 %cores, 0
  br i1 %some, label %move, label %more
more:
  %next = add i64 %k, 1
  %left = icmp ult i64 %next, 16
  br i1 %left, label %look, label %done
move:
  %moved = call i32 @pthread_setaffinity_np(i64 %thread, i64 128, ptr %set)
  br label %done
done:
  ret void
}
""",
)


def _clock() -> str:
    wall = getattr(time, "CLOCK_MONOTONIC", 1)
    used = getattr(time, "CLOCK_THREAD_CPUTIME_ID", wall)
    return f"""
define internal i64 @now() {{
  %now = call i64 @clock(i32 {wall})
  ret i64 %now
}}
define internal i64 @used() {{
  %used = call i64 @clock(i32 {used})
  ret i64 %used
}}
define internal i64 @clock(i32 %which) {{
  %time = alloca [2 x i64], align 8
  %ignored = call i32 @clock_gettime(i32 %which, ptr %time)
  %seconds = load i64, ptr %time, align 8
{at("fraction", "time", 8)}  %nanoseconds = load i64, ptr %fraction, align 8
  %scaled = mul i64 %seconds, 1000000000
  %now = add i64 %scaled, %nanoseconds
  ret i64 %now
}}
"""


def _reset() -> str:
    """All is 0 but what the system's initialisers write."""
    return f"""
define void @{RESET}(ptr %pool, i64 %bytes) {{
  call void @llvm.memset.p0.i64(ptr align 64 %pool, i8 0, i64 %bytes, i1 false)
{at("mutex", "pool", MUTEX)}{at("condition", "pool", CONDITION)}\
  %first = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %second = call i32 @pthread_cond_init(ptr %condition, ptr null)
  ret void
}}
"""


def _grow() -> str:
    """Start workers until there are ``%wanted``; the number that there are then. They block all
    signals, which are the main thread's, and end with the process."""
    mask = int(getattr(signal, "SIG_SETMASK", 2))
    detached = 2 if sys.platform == "darwin" else 1
    return f"""
define internal i64 @grow(ptr %pool, i64 %wanted) noinline {{
entry:
  %all = alloca [128 x i8], align 16
  %before = alloca [128 x i8], align 16
  %how = alloca [128 x i8], align 16
  %id = alloca i64, align 8
{at("count.at", "pool", STARTED)}  %started = load i64, ptr %count.at, align 8
  %a = call i32 @sigfillset(ptr %all)
  %b = call i32 @pthread_sigmask(i32 {mask}, ptr %all, ptr %before)
  %c = call i32 @pthread_attr_init(ptr %how)
  %d = call i32 @pthread_attr_setdetachstate(ptr %how, i32 {detached})
  %e = call i32 @pthread_attr_setstacksize(ptr %how, i64 {STACK})
{at("workers", "pool", WORKERS)}  br label %check
check:
  %count = phi i64 [ %started, %entry ], [ %more, %next ]
  %enough = icmp uge i64 %count, %wanted
  br i1 %enough, label %done, label %start
start:
  %offset = mul i64 %count, {LINE}
  %worker = getelementptr i8, ptr %workers, i64 %offset
  store i64 0, ptr %worker, align 8
{at("last", "worker", LAST_CORE)}  store i64 -1, ptr %last, align 8
{at("index", "worker", INDEX)}  store i64 %count, ptr %index, align 8
{at("home", "worker", HOME)}  store ptr %pool, ptr %home, align 8
  %f = call i32 @pthread_create(ptr %id, ptr %how, ptr @worker, ptr %worker)
  %went = icmp eq i32 %f, 0
  br i1 %went, label %next, label %done
next:
  %thread = load i64, ptr %id, align 8
{at("self", "worker", SELF)}  store i64 %thread, ptr %self, align 8
  %more = add i64 %count, 1
  store i64 %more, ptr %count.at, align 8
  br label %check
done:
  %g = call i32 @pthread_attr_destroy(ptr %how)
  %h = call i32 @pthread_sigmask(i32 {mask}, ptr %before, ptr null)
  ret i64 %count
}}
"""
