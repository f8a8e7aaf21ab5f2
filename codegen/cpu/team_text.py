"""The pool of threads, as LLVM IR: it runs without Python, and needs nothing but POSIX threads.

A job is handed over by setting the *ticket* of each worker that takes part. A worker looks at its
ticket for a while after its last job, then sleeps. Before it does, it counts itself among the
sleepers and looks once more: so either it sees that the ticket was set, or the caller sees that
somebody has to be woken.

On Linux, workers keep off the caller's core. The kernel of the system likes to wake a thread where
its waker runs, where it then waits until the caller has done its part alone. A worker that finds
itself there forbids itself that core, and the caller forbids its core to workers that last ran on
it, as happens when it was moved.
"""

from __future__ import annotations

import signal
import sys
import time

from tcl.codegen.cpu.entry import CLEAR, ERROR, KERNEL, LINE, POOL, TEAM, TENSORS, THREADS, word

RUN, RESET = "tcl_team_run", "tcl_team_reset"
"""The symbols: takes a call's record, and makes a pool of no threads out of memory."""

WORKER_SPIN = 50_000
"""Nanoseconds for which a worker waits awake for its next job. It takes a tenth of the time to
begin it then, and a caller in a loop in Python comes back sooner than that."""
CALLER_SPIN = 50_000
"""Nanoseconds after which a caller that waits for workers lets others run on its core."""

_STACK = 4 << 20
_PAUSES = 32
"""Pauses, and looks, between two looks at the clock."""

# Bytes from the start of a pool. What different threads write lies on different lines.
_LOCK, _STARTED = 0, 8
_CALL, _HAVE, _CORE, _CALLER = 64, 72, 80, 88
_DONE, _FAILED = 128, 136
_SLEEPERS = 192
_MUTEX, _CONDITION = 256, 384
_WORKERS = 512
# And of a worker in it.
_TICKET, _LAST_CORE, _INDEX, _HOME, _SELF = 0, 8, 16, 24, 32


def pool_bytes(threads: int) -> int:
    """Size of a pool for calls on so many threads."""
    return _WORKERS + LINE * (threads - 1)


def text(triple: str) -> str:
    """The module, for a target with POSIX threads."""
    pause, declared = _pause(triple)
    parts = [_DECLARED, declared, *(_AFFINITY if sys.platform == "linux" else _NO_AFFINITY)]
    parts += [_clock(), _reset(), _grow(), _worker(pause), _run(pause)]
    return "\n".join(parts)


def _pause(triple: str) -> tuple[str, str]:
    """An instruction for loops that wait, and its declaration."""
    if triple.startswith(("x86_64", "i686")):
        return "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"
    if triple.startswith(("aarch64", "arm64")):
        return "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
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


def _at(name: str, base: str, offset: int) -> str:
    return f"  %{name} = getelementptr i8, ptr %{base}, i64 {offset}\n"


def _clock() -> str:
    return f"""
define internal i64 @now() {{
  %time = alloca [2 x i64], align 8
  %ignored = call i32 @clock_gettime(i32 {getattr(time, "CLOCK_MONOTONIC", 1)}, ptr %time)
  %seconds = load i64, ptr %time, align 8
{_at("fraction", "time", 8)}  %nanoseconds = load i64, ptr %fraction, align 8
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
{_at("mutex", "pool", _MUTEX)}{_at("condition", "pool", _CONDITION)}\
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
{_at("count.at", "pool", _STARTED)}  %started = load i64, ptr %count.at, align 8
  %a = call i32 @sigfillset(ptr %all)
  %b = call i32 @pthread_sigmask(i32 {mask}, ptr %all, ptr %before)
  %c = call i32 @pthread_attr_init(ptr %how)
  %d = call i32 @pthread_attr_setdetachstate(ptr %how, i32 {detached})
  %e = call i32 @pthread_attr_setstacksize(ptr %how, i64 {_STACK})
{_at("workers", "pool", _WORKERS)}  br label %check
check:
  %count = phi i64 [ %started, %entry ], [ %more, %next ]
  %enough = icmp uge i64 %count, %wanted
  br i1 %enough, label %done, label %start
start:
  %offset = mul i64 %count, {LINE}
  %worker = getelementptr i8, ptr %workers, i64 %offset
  store i64 0, ptr %worker, align 8
{_at("last", "worker", _LAST_CORE)}  store i64 -1, ptr %last, align 8
{_at("index", "worker", _INDEX)}  store i64 %count, ptr %index, align 8
{_at("home", "worker", _HOME)}  store ptr %pool, ptr %home, align 8
  %f = call i32 @pthread_create(ptr %id, ptr %how, ptr @worker, ptr %worker)
  %went = icmp eq i32 %f, 0
  br i1 %went, label %next, label %done
next:
  %thread = load i64, ptr %id, align 8
{_at("self", "worker", _SELF)}  store i64 %thread, ptr %self, align 8
  %more = add i64 %count, 1
  store i64 %more, ptr %count.at, align 8
  br label %check
done:
  %g = call i32 @pthread_attr_destroy(ptr %how)
  %h = call i32 @pthread_sigmask(i32 {mask}, ptr %before, ptr null)
  ret i64 %count
}}
"""


def _spin(pause: str, nanoseconds: int, look: str) -> str:
    """Blocks from ``spin`` on: ``look`` sets ``%is``, and when that is so, they go on at ``ready``;
    at ``late`` when the time is over."""
    return f"""spin:
  %begin = call i64 @now()
  br label %look
look:
  %count = phi i64 [ 0, %spin ], [ %more, %pause ], [ 0, %watch ]
{look}
  br i1 %is, label %ready, label %pause
pause:
  {pause}
  %more = add i64 %count, 1
  %many = icmp eq i64 %more, {_PAUSES}
  br i1 %many, label %watch, label %look
watch:
  %time = call i64 @now()
  %spent = sub i64 %time, %begin
  %over = icmp ugt i64 %spent, {nanoseconds}
  br i1 %over, label %late, label %look
"""


def _worker(pause: str) -> str:
    """A worker's life: wait, awake or asleep, until its ticket is 1; work; say so."""
    look = """  %early = load atomic i64, ptr %worker acquire, align 8
  %is = icmp ne i64 %early, 0"""
    return f"""
define internal ptr @worker(ptr %worker) {{
entry:
{_at("home", "worker", _HOME)}  %pool = load ptr, ptr %home, align 8
{_at("mutex", "pool", _MUTEX)}{_at("condition", "pool", _CONDITION)}\
{_at("sleepers", "pool", _SLEEPERS)}{_at("done", "pool", _DONE)}  br label %spin
{_spin(pause, WORKER_SPIN, look)}late:
  %a = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = atomicrmw add ptr %sleepers, i64 1 seq_cst
  br label %again
again:
  %job = load atomic i64, ptr %worker seq_cst, align 8
  %woken = icmp ne i64 %job, 0
  br i1 %woken, label %up, label %sleep
sleep:
  %c = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %again
up:
  %d = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  %e = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %ready
ready:
  store atomic i64 0, ptr %worker monotonic, align 8
  call void @work(ptr %pool, ptr %worker)
  %f = atomicrmw add ptr %done, i64 1 release
  br label %spin
}}
{_work()}"""


def _work() -> str:
    """A worker's part of a job."""
    return f"""
define internal void @work(ptr %pool, ptr %worker) noinline {{
entry:
{_at("call.at", "pool", _CALL)}  %call = load ptr, ptr %call.at, align 8
{_at("have.at", "pool", _HAVE)}  %have = load i64, ptr %have.at, align 8
{_at("core.at", "pool", _CORE)}  %taken = load i64, ptr %core.at, align 8
{_at("last", "worker", _LAST_CORE)}  %here = call i64 @core()
  store atomic i64 %here, ptr %last monotonic, align 8
  %same = icmp eq i64 %here, %taken
  br i1 %same, label %leave, label %run
leave:
{_at("caller.at", "pool", _CALLER)}  %caller = load i64, ptr %caller.at, align 8
  %self = call i64 @pthread_self()
  call void @forbid(i64 %self, i64 %caller, i64 %here)
  br label %run
run:
{word("kernel", KERNEL)}{word("tensors", TENSORS)}{word("error", ERROR)}{word("team", TEAM)}\
{_at("index.at", "worker", _INDEX)}  %index = load i64, ptr %index.at, align 8
  %thread = add i64 %index, 1
  %result = call i32 %kernel(ptr %tensors, ptr %error, i64 %thread, i64 %have, ptr %team)
  %bad = icmp ne i32 %result, 0
  br i1 %bad, label %tell, label %end
tell:
{_at("failed", "pool", _FAILED)}  store atomic i32 1, ptr %failed monotonic, align 4
  br label %end
end:
  ret void
}}
"""


def _run(pause: str) -> str:
    """A call: on the pool, or on this thread alone if another one has the pool."""
    look = """  %finished = load atomic i64, ptr %done acquire, align 8
  %is = icmp eq i64 %finished, %others"""
    return f"""
define i32 @{RUN}(ptr %call) {{
entry:
{word("kernel", KERNEL)}{word("tensors", TENSORS)}{word("error", ERROR)}{word("team", TEAM)}\
{word("threads", THREADS, "i64")}{word("clear", CLEAR, "i64")}{word("pool", POOL)}\
{_at("done", "pool", _DONE)}{_at("failed", "pool", _FAILED)}\
  call void @llvm.memset.p0.i64(ptr align 64 %team, i8 0, i64 %clear, i1 false)
  %taken = cmpxchg ptr %pool, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %taken, 1
  br i1 %mine, label %share, label %alone
alone:
  %only = call i32 %kernel(ptr %tensors, ptr %error, i64 0, i64 1, ptr %team)
  ret i32 %only
share:
  %others = call i64 @hand_out(ptr %pool, ptr %call, i64 %threads)
  %have = add i64 %others, 1
  %own = call i32 %kernel(ptr %tensors, ptr %error, i64 0, i64 %have, ptr %team)
  br label %spin
{_spin(pause, CALLER_SPIN, look)}late:
  %a = call i32 @sched_yield()
  %last = load atomic i64, ptr %done acquire, align 8
  %all = icmp eq i64 %last, %others
  br i1 %all, label %ready, label %late
ready:
  %theirs = load atomic i32, ptr %failed monotonic, align 4
  %result = or i32 %own, %theirs
  store atomic i64 0, ptr %pool release, align 8
  ret i32 %result
}}
{_hand_out()}"""


def _hand_out() -> str:
    """Give a job to as many workers as there are, at most one less than ``%threads``; their
    number."""
    return f"""
define internal i64 @hand_out(ptr %pool, ptr %call, i64 %threads) noinline {{
entry:
  %wanted = sub i64 %threads, 1
{_at("count.at", "pool", _STARTED)}  %count = load i64, ptr %count.at, align 8
  %few = icmp ult i64 %count, %wanted
  br i1 %few, label %start, label %write
start:
  %grown = call i64 @grow(ptr %pool, i64 %wanted)
  br label %write
write:
  %are = phi i64 [ %count, %entry ], [ %grown, %start ]
  %others = call i64 @llvm.umin.i64(i64 %are, i64 %wanted)
  %have = add i64 %others, 1
  %core = call i64 @core()
  %self = call i64 @pthread_self()
{_at("call.at", "pool", _CALL)}  store ptr %call, ptr %call.at, align 8
{_at("have.at", "pool", _HAVE)}  store i64 %have, ptr %have.at, align 8
{_at("core.at", "pool", _CORE)}  store i64 %core, ptr %core.at, align 8
{_at("caller.at", "pool", _CALLER)}  store i64 %self, ptr %caller.at, align 8
{_at("done", "pool", _DONE)}  store atomic i64 0, ptr %done monotonic, align 8
{_at("failed", "pool", _FAILED)}  store atomic i32 0, ptr %failed monotonic, align 4
{_at("workers", "pool", _WORKERS)}  br label %each
each:
  %k = phi i64 [ 0, %write ], [ %next, %give ]
  %more = icmp ult i64 %k, %others
  br i1 %more, label %check, label %wake
check:
  %offset = mul i64 %k, {LINE}
  %worker = getelementptr i8, ptr %workers, i64 %offset
{_at("last.at", "worker", _LAST_CORE)}  %last = load atomic i64, ptr %last.at monotonic, align 8
  %here = icmp eq i64 %last, %core
  br i1 %here, label %away, label %give
away:
{_at("thread.at", "worker", _SELF)}  %thread = load i64, ptr %thread.at, align 8
  call void @forbid(i64 %thread, i64 %self, i64 %core)
  br label %give
give:
  %next = add i64 %k, 1
  store atomic i64 1, ptr %worker seq_cst, align 8
  br label %each
wake:
{_at("sleepers.at", "pool", _SLEEPERS)}\
  %sleepers = load atomic i64, ptr %sleepers.at seq_cst, align 8
  %some = icmp ne i64 %sleepers, 0
  br i1 %some, label %call.all, label %end
call.all:
{_at("mutex", "pool", _MUTEX)}{_at("condition", "pool", _CONDITION)}\
  %a = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %c = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %end
end:
  ret i64 %others
}}
declare i64 @llvm.umin.i64(i64, i64)
"""
