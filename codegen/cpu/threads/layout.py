"""How a pool of threads lies in memory, for how long who waits, and how waiting is written."""

from __future__ import annotations

from tcl.codegen.cpu.abi import LINE

RUN, RESET = "tcl_team_run", "tcl_team_reset"
"""The symbols: takes a call's record, and makes a pool of no threads out of memory."""

WORKER_SPIN = 50_000
"""Nanoseconds for which a worker waits awake for its next job. It takes a tenth of the time to
begin it then, and a caller in a loop in Python comes back sooner than that."""
CALLER_SPIN = 50_000
"""Nanoseconds after which a caller that waits for workers lets others run on its core."""

SLACK = 100_000
"""Nanoseconds without its core that a worker takes for granted where it slept: to be woken takes
less."""
CREDIT = 32_000_000
"""Nanoseconds that calls on all threads are taken to have gained at most, compared to calls alone.
What a worker waits for its core is set against that: a core that is gone now and then, for some
milliseconds as schedulers give it to others, costs less than to run alone meanwhile."""
LEVELS = 5
"""Calls run alone for 2, 4, ... ``2 ** LEVELS`` times as long as the one that was crowded took.
They have to go well together for as long before the next time that they run alone is shorter."""
SLICE = 4_000_000
"""Nanoseconds that a short call is taken to risk when it tries all threads again after a longer
one was crowded: for about as long schedulers give a core to somebody else."""

STACK = 4 << 20
PAUSES = 32
"""Pauses, and looks, between two looks at the clock."""

# Bytes from the start of a pool. What different threads write lies on different lines.
LOCK, STARTED, UNTIL, LEVEL, PAUSE, ALWAYS = 0, 8, 16, 24, 32, 40
TRIAL, CAUSE = 48, 56
CALL, HAVE, CORE, CALLER, BEGUN = 64, 72, 80, 88, 96
DONE, FAILED, CROWDED, BUSY = 128, 136, 144, 152
SLEEPERS = 192
MUTEX, CONDITION = 256, 384
WORKERS = 512
# And of a worker in it.
TICKET, LAST_CORE, INDEX, HOME, SELF, ASLEEP, ENDED, USED = 0, 8, 16, 24, 32, 40, 48, 56


def pool_bytes(threads: int) -> int:
    """Size of a pool for calls on so many threads."""
    return WORKERS + LINE * (threads - 1)


def at(name: str, base: str, offset: int) -> str:
    """LLVM IR of the address so many bytes behind ``%base``."""
    return f"  %{name} = getelementptr i8, ptr %{base}, i64 {offset}\n"


def spin(pause: str, nanoseconds: int, look: str) -> str:
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
  %many = icmp eq i64 %more, {PAUSES}
  br i1 %many, label %watch, label %look
watch:
  %time = call i64 @now()
  %spent = sub i64 %time, %begin
  %over = icmp ugt i64 %spent, {nanoseconds}
  br i1 %over, label %late, label %look
"""
