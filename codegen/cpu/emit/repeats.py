"""Counted loops as LLVM IR, and the looks of long ones whether the call was interrupted."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tcl.codegen.cpu.emit.scope import number
from tcl.codegen.cpu.emit.sharing import SEEN, UNSEEN
from tcl.codegen.cpu.llvm.builder import Builder, Val, literals
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import statements


def stored_in(body: ir.Statement) -> Collection[str] | None:
    """The tensors that a statement stores to; None where that is not known."""
    every = list(statements(body))
    if any(isinstance(s, ir.Matrix) for s in every):
        return None
    return {s.ref.tensor for s in every if isinstance(s, ir.Store | ir.Update)}


def repeat(
    b: Builder,
    start: Val,
    end: Val,
    step: int,
    each: Callable[[Val], None],
    empty: bool,
    written: Collection[str] | None = None,
) -> None:
    """``for (x = start; x < end; x += step) each(x)``. ``empty`` says whether ``end`` may be
    ``start``; ``written``: the tensors that iterations store to, if that is known.

    The test comes after the body, where LLVM would have to move it."""
    into, out = b.new_label("body"), b.new_label("done")
    if empty:
        some = b.new_label("some")
        b.branch_if(b.compare("icmp sgt", end, start), some, out)
        b.start(some)
    before = b.block
    with b.loop(into, out, written):
        offset = b.op("phi", "i64")
        at = len(b.lines) - 1
        if ends := _ends(b, start, end, step):
            b.ends[offset.text] = ends
        each(offset)
        following = b.binary("add nuw nsw", offset, number(step))
        # Only now is it known in which block the body ends.
        pairs = f"[ {start.text}, %{before} ], [ {following.text}, %{b.block} ]"
        b.lines[at] = f"  {offset.text} = phi i64 {pairs}"
        exact = b.multiple(end) if start.text == "0" else 1
        if known := literals(start, end):
            exact = known[1] - known[0]
        # Without an order, LLVM may count down to 0: an instruction less.
        test = "icmp ne" if exact % step == 0 else "icmp slt"
        b.again_if(b.compare(test, following, end), into, out)


def _ends(b: Builder, start: Val, end: Val, step: int) -> tuple[int, int] | None:
    """The smallest and the largest offset of iterations from one to another, if these are known."""
    first, last = b.interval(start), b.interval(end)
    if first is None or last is None or last[1] <= first[0]:
        return None
    most = last[1] - 1
    if first[0] == first[1] or b.multiple(start) % step == first[0] % step == 0:
        most -= (most - first[0]) % step
    return first[0], most


def stoppable_repeat(
    b: Builder,
    end: Val,
    step: int,
    iterations: int,
    work: int,
    each: Callable[[Val], None],
    empty: bool,
    start: Val | None = None,
    written: Collection[str] | None = None,
) -> None:
    """The loop from ``start``, or 0, to ``end``, with looks whether to go on: in every iteration,
    between stretches of them, or nowhere, by the ``work`` of one of the ``iterations``
    (statements)."""
    start = start or number(0)
    if work >= SEEN:  # so much in each iteration that looking whether to go on costs nothing

        def look_and_do(own: Val) -> None:
            b.leave_if_stopped()
            each(own)

        repeat(b, start, end, step, look_and_do, empty, written)
    elif work * iterations < UNSEEN:
        repeat(b, start, end, step, each, empty, written)
    else:
        stretch = step * (SEEN // work)

        def some(begin: Val) -> None:
            b.leave_if_stopped()
            if start.text == "0":
                b.multiples[begin.text] = stretch
            stop = b.intrinsic("smin", b.binary("add nsw", begin, number(stretch)), end)
            if ends := b.interval(end):
                b.ends[stop.text] = ends
            repeat(b, begin, stop, step, each, False, written)

        repeat(b, start, end, stretch, some, empty, written)
