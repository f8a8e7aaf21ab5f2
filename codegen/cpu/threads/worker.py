"""What the threads of a pool do, as LLVM IR."""

from __future__ import annotations

from tcl.codegen.cpu.abi import ERROR, KERNEL, TEAM, TENSORS, word
from tcl.codegen.cpu.threads.layout import (
    ASLEEP,
    BEGUN,
    BUSY,
    CALL,
    CALLER,
    CONDITION,
    CORE,
    CREDIT,
    CROWDED,
    DONE,
    ENDED,
    FAILED,
    HAVE,
    HOME,
    INDEX,
    LAST_CORE,
    MUTEX,
    SLACK,
    SLEEPERS,
    USED,
    WORKER_SPIN,
    at,
    spin,
)


def worker(pause: str) -> str:
    """LLVM IR of a worker's life: wait, awake or asleep, until its ticket is 1; work; say so."""
    look = """  %early = load atomic i64, ptr %worker acquire, align 8
  %is = icmp ne i64 %early, 0"""
    return f"""
define internal ptr @worker(ptr %worker) {{
entry:
  %balance = alloca i64, align 8
  store i64 0, ptr %balance, align 8
{at("home", "worker", HOME)}  %pool = load ptr, ptr %home, align 8
{at("mutex", "pool", MUTEX)}{at("condition", "pool", CONDITION)}\
{at("sleepers", "pool", SLEEPERS)}{at("done", "pool", DONE)}\
{at("asleep", "worker", ASLEEP)}  call void @note(ptr %worker)
  br label %spin
{spin(pause, WORKER_SPIN, look)}late:
  store i64 %time, ptr %asleep, align 8
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
{at("begun.at", "pool", BEGUN)}  %begun = load i64, ptr %begun.at, align 8
{at("have.at", "pool", HAVE)}  %have = load i64, ptr %have.at, align 8
  call void @work(ptr %pool, ptr %worker)
  %f = atomicrmw add ptr %done, i64 1 release
  call void @account(ptr %pool, ptr %worker, ptr %balance, i64 %begun, i64 %have)
  br label %spin
}}
{_work()}{_account()}"""


def _work() -> str:
    """A worker's part of a job."""
    return f"""
define internal void @work(ptr %pool, ptr %worker) noinline {{
entry:
{at("call.at", "pool", CALL)}  %call = load ptr, ptr %call.at, align 8
{at("have.at", "pool", HAVE)}  %have = load i64, ptr %have.at, align 8
{at("core.at", "pool", CORE)}  %taken = load i64, ptr %core.at, align 8
{at("last", "worker", LAST_CORE)}  %here = call i64 @core()
  store atomic i64 %here, ptr %last monotonic, align 8
  %same = icmp eq i64 %here, %taken
  br i1 %same, label %leave, label %run
leave:
{at("caller.at", "pool", CALLER)}  %caller = load i64, ptr %caller.at, align 8
  %self = call i64 @pthread_self()
  call void @forbid(i64 %self, i64 %caller, i64 %here)
  br label %run
run:
{word("kernel", KERNEL)}{word("tensors", TENSORS)}{word("error", ERROR)}{word("team", TEAM)}\
{at("index.at", "worker", INDEX)}  %index = load i64, ptr %index.at, align 8
  %thread = add i64 %index, 1
  %result = call i32 %kernel(ptr %tensors, ptr %error, i64 %thread, i64 %have, ptr %team)
  %bad = icmp ne i32 %result, 0
  br i1 %bad, label %tell, label %end
tell:
{at("failed", "pool", FAILED)}  store atomic i32 1, ptr %failed monotonic, align 4
  br label %end
end:
  ret void
}}
"""


def _account() -> str:
    """Whether all threads gained by the last jobs, compared to one thread that does them alone, and
    notes for the next time. By a job they gain the time of the others, but lose what a worker waits
    for its core, as all wait with it. A worker that finds that more was lost says how long the job
    took, and would have without the wait, and passes over what it loses in the next one: it sleeps
    until then, and may be late."""
    return f"""
define internal void @note(ptr %worker) {{
  %now = call i64 @now()
  %used = call i64 @used()
{at("ended.at", "worker", ENDED)}  store i64 %now, ptr %ended.at, align 8
{at("used.at", "worker", USED)}  store i64 %used, ptr %used.at, align 8
{at("asleep.at", "worker", ASLEEP)}  store i64 0, ptr %asleep.at, align 8
  ret void
}}
define internal void @account(
    ptr %pool, ptr %worker, ptr %balance, i64 %begun, i64 %have) noinline {{
entry:
{at("asleep.at", "worker", ASLEEP)}  %asleep = load i64, ptr %asleep.at, align 8
{at("ended.at", "worker", ENDED)}  %before = load i64, ptr %ended.at, align 8
{at("used.at", "worker", USED)}  %used.before = load i64, ptr %used.at, align 8
  call void @note(ptr %worker)
  %now = load i64, ptr %ended.at, align 8
  %used.now = load i64, ptr %used.at, align 8
  %span = sub i64 %now, %before
  %used = sub i64 %used.now, %used.before
  %slept = icmp ne i64 %asleep, 0
  %rest = sub i64 %begun, %asleep
  %positive = call i64 @llvm.smax.i64(i64 %rest, i64 0)
  %idle = select i1 %slept, i64 %positive, i64 0
  %away = sub i64 %span, %used
  %lost = sub i64 %away, %idle
  %granted = select i1 %slept, i64 {SLACK}, i64 0
  %beyond = sub i64 %lost, %granted
  %took = sub i64 %now, %begun
  %waited = call i64 @llvm.smax.i64(i64 %beyond, i64 0)
  %harm = call i64 @llvm.smin.i64(i64 %waited, i64 %took)
  %others = sub i64 %have, 1
  %share = mul i64 %others, %took
  %whole = mul i64 %have, %harm
  %gained = sub i64 %share, %whole
  %owned = load i64, ptr %balance, align 8
  %sum = add i64 %owned, %gained
  %least = call i64 @llvm.smax.i64(i64 %gained, i64 0)
  %pass = icmp slt i64 %owned, 0
  %after = select i1 %pass, i64 %least, i64 %sum
  %crowded = icmp slt i64 %after, 0
  %most = call i64 @llvm.smin.i64(i64 %after, i64 {CREDIT})
  %kept = call i64 @llvm.smax.i64(i64 %most, i64 -1)
  store i64 %kept, ptr %balance, align 8
  br i1 %crowded, label %tell, label %end
tell:
{at("crowded.at", "pool", CROWDED)}  %longest = atomicrmw max ptr %crowded.at, i64 %took monotonic
  %busy = sub i64 %took, %harm
{at("busy.at", "pool", BUSY)}  %busiest = atomicrmw max ptr %busy.at, i64 %busy monotonic
  br label %end
end:
  ret void
}}
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
"""
