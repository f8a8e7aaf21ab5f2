"""What the caller of a kernel does, as LLVM IR."""

from __future__ import annotations

from tcl.codegen.cpu.abi import (
    CLEAR,
    ERROR,
    KERNEL,
    LINE,
    OWN,
    POOL,
    TEAM,
    TENSORS,
    THREADS,
    word,
)
from tcl.codegen.cpu.threads.layout import (
    ALWAYS,
    BEGUN,
    BUSY,
    CALL,
    CALLER,
    CALLER_SPIN,
    CAUSE,
    CONDITION,
    CORE,
    CROWDED,
    DONE,
    FAILED,
    HAVE,
    LAST_CORE,
    LEVEL,
    LEVELS,
    MUTEX,
    PAUSE,
    RUN,
    SELF,
    SLEEPERS,
    SLICE,
    STARTED,
    TRIAL,
    UNTIL,
    WORKERS,
    at,
    spin,
)


def run(pause: str) -> str:
    """LLVM IR of a call: on the pool, or on this thread alone if another one has the pool."""
    look = """  %finished = load atomic i64, ptr %done acquire, align 8
  %is = icmp eq i64 %finished, %others"""
    return f"""
define i32 @{RUN}(ptr %call) {{
entry:
{word("kernel", KERNEL)}{word("tensors", TENSORS)}{word("error", ERROR)}{word("team", TEAM)}\
{word("threads", THREADS, "i64")}{word("clear", CLEAR, "i64")}{word("pool", POOL)}\
{at("done", "pool", DONE)}{at("failed", "pool", FAILED)}\
  call void @llvm.memset.p0.i64(ptr align 64 %team, i8 0, i64 %clear, i1 false)
  %taken = cmpxchg ptr %pool, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %taken, 1
  br i1 %mine, label %look.around, label %alone
look.around:
{at("until.at", "pool", UNTIL)}  %until = load i64, ptr %until.at, align 8
{at("level.at", "pool", LEVEL)}  %level = load i64, ptr %level.at, align 8
{at("crowded.at", "pool", CROWDED)}\
  %crowded = load atomic i64, ptr %crowded.at monotonic, align 8
  %one = or i64 %until, %level
  %any = or i64 %one, %crowded
  %calm = icmp eq i64 %any, 0
  br i1 %calm, label %share, label %decide
decide:
  %apart = call i1 @apart(ptr %pool, ptr %call)
  br i1 %apart, label %leave, label %share
leave:
  store atomic i64 0, ptr %pool release, align 8
  %from = call i64 @now()
  %single = call i32 %kernel(ptr %tensors, ptr %error, i64 0, i64 1, ptr %team)
  %to = call i64 @now()
  %took = sub i64 %to, %from
  %took.at = getelementptr i64, ptr %call, i64 {OWN}
  store i64 %took, ptr %took.at, align 8
  ret i32 %single
alone:
  %only = call i32 %kernel(ptr %tensors, ptr %error, i64 0, i64 1, ptr %team)
  ret i32 %only
share:
  %others = call i64 @hand_out(ptr %pool, ptr %call, i64 %threads)
  %have = add i64 %others, 1
  %own = call i32 %kernel(ptr %tensors, ptr %error, i64 0, i64 %have, ptr %team)
  br label %spin
{spin(pause, CALLER_SPIN, look)}late:
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
{_hand_out()}{_apart()}"""


def _hand_out() -> str:
    """Give a job to as many workers as there are, at most one less than ``%threads``; their
    number."""
    return f"""
define internal i64 @hand_out(ptr %pool, ptr %call, i64 %threads) noinline {{
entry:
  %wanted = sub i64 %threads, 1
{at("count.at", "pool", STARTED)}  %count = load i64, ptr %count.at, align 8
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
{at("call.at", "pool", CALL)}  store ptr %call, ptr %call.at, align 8
{at("have.at", "pool", HAVE)}  store i64 %have, ptr %have.at, align 8
{at("core.at", "pool", CORE)}  store i64 %core, ptr %core.at, align 8
{at("caller.at", "pool", CALLER)}  store i64 %self, ptr %caller.at, align 8
{at("begun.at", "pool", BEGUN)}  %now = call i64 @now()
  store i64 %now, ptr %begun.at, align 8
{at("done", "pool", DONE)}  store atomic i64 0, ptr %done monotonic, align 8
{at("failed", "pool", FAILED)}  store atomic i32 0, ptr %failed monotonic, align 4
{at("workers", "pool", WORKERS)}  br label %each
each:
  %k = phi i64 [ 0, %write ], [ %next, %give ]
  %more = icmp ult i64 %k, %others
  br i1 %more, label %check, label %wake
check:
  %offset = mul i64 %k, {LINE}
  %worker = getelementptr i8, ptr %workers, i64 %offset
{at("last.at", "worker", LAST_CORE)}  %last = load atomic i64, ptr %last.at monotonic, align 8
  %here = icmp eq i64 %last, %core
  br i1 %here, label %away, label %give
away:
{at("thread.at", "worker", SELF)}  %thread = load i64, ptr %thread.at, align 8
  call void @forbid(i64 %thread, i64 %self, i64 %core)
  br label %give
give:
  %next = add i64 %k, 1
  store atomic i64 1, ptr %worker seq_cst, align 8
  br label %each
wake:
{at("sleepers.at", "pool", SLEEPERS)}\
  %sleepers = load atomic i64, ptr %sleepers.at seq_cst, align 8
  %some = icmp ne i64 %sleepers, 0
  br i1 %some, label %call.all, label %end
call.all:
{at("mutex", "pool", MUTEX)}{at("condition", "pool", CONDITION)}\
  %a = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %c = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %end
end:
  ret i64 %others
}}
declare i64 @llvm.umin.i64(i64, i64)
"""


def _apart() -> str:
    """Whether a call that has the pool should run alone, as calls before it were crowded. Then
    ``crowded`` says how long the longest of these took.

    How long calls are to run alone is a matter of what a try costs that is crowded again, and so
    of how long they are: a short one need not wait for as long as a long one that was crowded had
    better, nor may a long one try as often as a short one."""
    return f"""
define internal i1 @apart(ptr %pool, ptr %call) noinline {{
entry:
  %now = call i64 @now()
{at("until.at", "pool", UNTIL)}  %until = load i64, ptr %until.at, align 8
{at("level.at", "pool", LEVEL)}  %level = load i64, ptr %level.at, align 8
{at("crowded.at", "pool", CROWDED)}\
  %crowded = atomicrmw xchg ptr %crowded.at, i64 0 monotonic
{at("always.at", "pool", ALWAYS)}  %always = load i64, ptr %always.at, align 8
  %obeyed = icmp ne i64 %always, 0
  br i1 %obeyed, label %together, label %ask
ask:
  %said = icmp ne i64 %crowded, 0
  br i1 %said, label %longer, label %wait
longer:
  %up = add i64 %level, 1
  %next = call i64 @llvm.umin.i64(i64 %up, i64 {LEVELS})
  %pause = shl i64 %crowded, %next
  %again = add i64 %now, %pause
{at("busy.at", "pool", BUSY)}  %busy = atomicrmw xchg ptr %busy.at, i64 0 monotonic
{at("caused.at", "pool", CAUSE)}  store i64 %busy, ptr %caused.at, align 8
{at("length.at", "pool", PAUSE)}  store i64 %pause, ptr %length.at, align 8
  store i64 %next, ptr %level.at, align 8
  store i64 %again, ptr %until.at, align 8
  ret i1 true
wait:
{at("pause.at", "pool", PAUSE)}  %long = load i64, ptr %pause.at, align 8
{at("cause.at", "pool", CAUSE)}  %cause = load i64, ptr %cause.at, align 8
{word("own", OWN, "i64")}  %risk = add i64 %own, {SLICE}
  %spared = shl i64 %risk, %level
  %least = shl i64 %own, %level
  %shorter = call i64 @llvm.umin.i64(i64 %long, i64 %spared)
  %longer.own = call i64 @llvm.umax.i64(i64 %long, i64 %least)
  %short = icmp ult i64 %risk, %cause
  %length = select i1 %short, i64 %shorter, i64 %longer.own
  %said.at = sub i64 %until, %long
  %end.own = add i64 %said.at, %length
  %open = icmp eq i64 %until, 0
  %bound = select i1 %open, i64 0, i64 %end.own
  %early = icmp ult i64 %now, %bound
  br i1 %early, label %alone, label %try
alone:
  ret i1 true
try:
{at("trial.at", "pool", TRIAL)}  %trial = load i64, ptr %trial.at, align 8
  %first = icmp ne i64 %until, 0
  %went = icmp uge i64 %now, %trial
  %over = select i1 %first, i1 false, i1 %went
  %calmer = lshr i64 %level, 1
  %after = select i1 %over, i64 %calmer, i64 %level
  %anew = or i1 %first, %went
  %end = add i64 %now, %long
  %tried = select i1 %anew, i64 %end, i64 %trial
  store i64 %tried, ptr %trial.at, align 8
  store i64 %after, ptr %level.at, align 8
  store i64 0, ptr %until.at, align 8
  br label %together
together:
  ret i1 false
}}
declare i64 @llvm.umax.i64(i64, i64)
"""
