"""Sharing work among the threads that run a kernel at the same time.

All threads run the same function, each with its number (``%thread`` of at most ``%threads``), and
meet by the memory that they share (``%team``, see ``abi``). They take iterations of a region by
counters, and add those that they did to another one; what needs the region waits for that to reach
its end. So nobody waits for a thread that took nothing: one that comes late, or never, is not
missed.

Each thread begins at a place of its own, and goes on elsewhere when nothing is left there. So it
mostly finds in its caches what it touched in the region before, or in the call before; and two
threads seldom work on neighbours, which may share lines.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from tcl.codegen.cpu.abi import LINE
from tcl.codegen.cpu.emit.scope import number
from tcl.codegen.cpu.llvm.branches import only_if
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.cpu.llvm.entry import stopped
from tcl.grammar.sizes.varying import representative

_SHARES = 8
"""How many times a thread takes iterations, if all are as fast: more even out more, and cost
more."""


SEEN = 1 << 16
"""Statements after which a thread may look whether the call is to end: it takes a nanosecond, they
take ten microseconds or more."""
UNSEEN = 1 << 22
"""Statements for which it need not look: they take some milliseconds, at most some tenths of a
second."""


class Sharing:
    """Emits what threads do together."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.before = 0
        """Regions before the last one: shared loops, and what the first thread does alone."""
        self._done: Val | None = None
        """Iterations that this thread did of the last region."""
        self._count = 0
        """Iterations of the last region."""

    def share_among_threads(
        self,
        count: int,
        work: int,
        each: Callable[[Val], None],
        written: Collection[str] | None,
    ) -> None:
        """``each(k)``, which does so much ``work``, for all ``k < count``, by whichever thread is
        free: each takes a part of the iterations, until none is left. A thread that is alone has
        all of them as its part, and leaves the counters as they are::

            share:  for index in first .. min(first + size, count): each(index)
                    if alone: goto shared
            take:   part = tcl_take(...)
                    first = part * size
                    if part >= 0: goto share
            shared:
        """
        b = self.b
        alone = self._alone()
        size = b.binary("udiv", number(count), b.binary("mul", _THREADS, number(_SHARES)))
        size = b.intrinsic("umax", size, number(1))
        before_last = b.binary("add nsw", number(count), b.binary("sub nsw", size, number(1)))
        parts = b.binary("udiv", before_last, size)
        size = b.select(alone, number(count), size)
        b.defined["tcl_take"] = TAKE
        take, run, done = (b.new_label(x) for x in ("take", "share", "shared"))
        before = b.block
        b.branch_if(alone, run, take)
        b.start(take)
        so_far = b.op("phi", "i64")
        so_far_at = len(b.lines) - 1
        arguments = f"{self._word(0)}, {_THREAD}, {_THREADS}, {parts}"
        part = b.op(f"call i64 @tcl_take({arguments})", "i64")
        taken = b.binary("mul nsw", part, size)
        b.branch_if(b.compare("icmp sge", part, number(0)), run, done)
        b.start(run)
        first = b.op(f"phi i64 [ 0, %{before} ], [ {taken.text}, %{take} ]", "i64")
        own = b.op(f"phi i64 [ 0, %{before} ], [ {so_far.text}, %{take} ]", "i64")
        stop = b.intrinsic("smin", b.binary("add nsw", first, size), number(count))
        head, into, out = (b.new_label(x) for x in ("head", "chunk", "taken"))
        entered = b.block
        with b.loop(head, out, written):
            index = b.op("phi", "i64")
            at = len(b.lines) - 1
            b.branch_if(b.compare("icmp slt", index, stop), into, out)
            b.start(into)
            self._look_out(index, count, work)
            each(index)
            following = b.binary("add nsw", index, number(1))
            pairs = f"[ {first.text}, %{entered} ], [ {following.text}, %{b.block} ]"
            b.lines[at] = f"  {index.text} = phi i64 {pairs}"
            b.branch(head)
        more = b.binary("add nsw", own, b.binary("sub nsw", stop, first))
        b.lines[so_far_at] = (
            f"  {so_far.text} = phi i64 [ 0, %{before} ], [ {more.text}, %{b.block} ]"
        )
        b.branch_if(alone, done, take)
        b.start(done)
        self._done = b.op(f"phi i64 [ {more.text}, %{out} ], [ {so_far.text}, %{take} ]", "i64")
        self._count = count

    def _look_out(self, index: Val, count: int, work: int) -> None:
        """Leave if the call is to end. Not before every iteration if there is little in one."""
        b = self.b
        if representative(count) * work < UNSEEN:
            return
        if work >= SEEN:
            b.leave_if_stopped()
            return
        every = 1 << (SEEN // work).bit_length()

        def now() -> Val:
            rest = b.binary("and", index, number(every - 1))
            return b.compare("icmp eq", rest, number(0))

        only_if(b, now, b.leave_if_stopped, "look")

    def first_only(self, emit: Callable[[], None]) -> None:
        """What only the first thread does."""
        b = self.b
        first = b.compare("icmp eq", _THREAD, number(0))
        own, after = b.new_label("alone"), b.new_label("after")
        before = b.block
        b.branch_if(first, own, after)
        b.start(own)
        emit()
        last = b.block
        b.branch(after)
        b.start(after)
        self._done = b.op(f"phi i64 [ 0, %{before} ], [ 1, %{last} ]", "i64")
        self._count = 1

    def meet(self) -> None:
        """What comes next needs all of the last region: wait until others have done theirs."""
        b = self.b
        assert self._done is not None
        wait, after = b.new_label("meet"), b.new_label("after")
        b.branch_if(self._alone(), after, wait)
        b.start(wait)
        b.defined["tcl_meet"] = MEET
        b.declared["sched_yield"] = "declare i32 @sched_yield()"
        arguments = f"{self._word(_DONE)}, i64 {self._done.text}, i64 {number(self._count).text}"
        b.do(f"call void @tcl_meet({arguments}, ptr %errors)")
        b.leave_if_stopped()  # what comes next relies on what then was not done
        b.branch(after)
        b.start(after)
        self.before += 1

    def _word(self, offset: int) -> str:
        """One of the last region's words."""
        place = LINE * self.before + offset
        return str(self.b.op(f"getelementptr i8, ptr %team, i64 {place}", "ptr"))

    def _alone(self) -> Val:
        return self.b.compare("icmp eq", _THREADS, number(1))


_THREAD, _THREADS = Val("%thread", "i64"), Val("%threads", "i64")

_RANGES = LINE // 8 - 1
"""Ranges of iterations at most, each counted by a word of the region's line."""
_DONE = 8 * _RANGES
"""The place in that line of the number of iterations that are done."""

TAKE = f"""\
define internal i64 @tcl_take(ptr %line, i64 %thread, i64 %threads, i64 %parts) noinline nounwind {{
entry:
  %odd = add i64 %threads, 1
  %pairs = lshr i64 %odd, 1
  %few = icmp ult i64 %pairs, {_RANGES}
  %ranges = select i1 %few, i64 %pairs, i64 {_RANGES}
  %pair = lshr i64 %thread, 1
  %side = and i64 %thread, 1
  %backwards = icmp ne i64 %side, 0
  %one = select i1 %backwards, i64 {1 << 32}, i64 1
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %more, %none ]
  %place = add i64 %pair, %k
  %range = urem i64 %place, %ranges
  %scaled = mul i64 %range, %parts
  %first = udiv i64 %scaled, %ranges
  %above = add i64 %scaled, %parts
  %end = udiv i64 %above, %ranges
  %size = sub i64 %end, %first
  %at = getelementptr i64, ptr %line, i64 %range
  %before = atomicrmw add ptr %at, i64 %one monotonic
  %front = and i64 %before, {(1 << 32) - 1}
  %back = lshr i64 %before, 32
  %taken = add i64 %front, %back
  %free = icmp ult i64 %taken, %size
  br i1 %free, label %found, label %none
none:
  %more = add i64 %k, 1
  %all = icmp eq i64 %more, %ranges
  br i1 %all, label %nothing, label %look
found:
  %forth = add i64 %first, %front
  %behind = sub i64 %end, %back
  %last = sub i64 %behind, 1
  %part = select i1 %backwards, i64 %last, i64 %forth
  ret i64 %part
nothing:
  ret i64 -1
}}
"""
"""The next part of a region that is free, for one of so many threads, or -1. Each pair of threads
has a range of parts, of which one thread takes the first that is left, the other one the last; then
they help the next pair. A word counts both: those taken from the front and, in its upper half, from
the back."""

_SPINS = 1 << 14
"""Looks at the phase, some ten microseconds, before the core is offered to others."""

MEET = f"""\
define internal void @tcl_meet(ptr %done, i64 %own, i64 %count, ptr %errors) noinline nounwind {{
entry:
  %before = atomicrmw add ptr %done, i64 %own acq_rel
  %sum = add i64 %before, %own
  %last = icmp eq i64 %sum, %count
  br i1 %last, label %end, label %spin
spin:
  %looks = phi i64 [ 0, %entry ], [ %more, %again ]
  %now = load atomic i64, ptr %done acquire, align 8
  %all = icmp eq i64 %now, %count
  br i1 %all, label %end, label %again
again:
  %more = add i64 %looks, 1
  %long = icmp ugt i64 %looks, {_SPINS}
  br i1 %long, label %yield, label %spin
yield:
  call i32 @sched_yield()
  %now2 = load atomic i64, ptr %done acquire, align 8
  %all2 = icmp eq i64 %now2, %count
  br i1 %all2, label %end, label %look
look:
{stopped("leave")}  br i1 %leave, label %end, label %yield
end:
  ret void
}}
"""
