"""How a kernel is entered, and by which memory its threads meet.

Every kernel is one function that each of its threads runs::

    i32 tcl_kernel(ptr tensors, ptr error, i64 thread, i64 threads, ptr team)

``tensors``: the addresses of the tensors' first elements. ``error``: a record of three int64 for
each thread, ``LINE`` bytes apart: 1 if a check failed, its site, the value. A thread returns 1 if
its own record is set. The last word of the first line is ``STOP``: once it is not 0, threads leave
soon, wherever they are. ``team``: memory that the threads share, on a boundary of ``LINE`` bytes:
for each region a line of words, of which the last counts the iterations that are done, and the
others those that were taken. All of it is 0 when a call begins. How many threads take part is known
to nobody: any of them but the first may come late, or never.

A call of a kernel is one record of words, as one argument costs a third of five. ``tcl_alone``,
which is part of every kernel's module, runs such a record on the calling thread;
the runtime's ``pool.c`` runs it on several. ``call.h`` declares the same in C.
"""

from __future__ import annotations

from tcl.codegen.devices.cpu import LINE as LINE

ENTRY = "tcl_kernel"
"""The symbol of every kernel."""

ALONE = "tcl_alone"
"""The symbol of the function that takes a call's record and runs the kernel on this thread."""

STOP = LINE // 8 - 1
"""The word of ``error`` by which whoever called asks a call to end."""

KERNEL, TENSORS, ERROR, TEAM, THREADS, CLEAR, POOL, OWN = range(8)
"""Words of a call's record: four addresses, the number of threads, the bytes of the team's memory
that the call begins by clearing, the address of the pool of threads, and the nanoseconds that the
last call with this record took alone because of crowded cores; 0 before. Behind them is what the
pool remembers of calls with this record, 0 at first ..."""

VARIES = 15
"""... and 1 if these are of sizes that vary, of which it remembers nothing."""

PAGE = 4096
"""Bytes between addresses that agree in their last twelve bits. By these, processors tell whether a
load has to wait for a store before it: one that only looks like a store's address waits, too
("4-KByte aliasing" in Intel's optimization manual; AMD's have it as well)."""
_EIGHTHS = (4, 2, 6, 1, 5, 3, 7)
"""Where results that nobody wants begin, in eighths of a page: as far as can be from where arrays
do, in the first line or the second of a page, and from each other."""

WORDS = 16
"""Length of a call's record."""


def team_bytes(regions: int) -> int:
    """Size of the memory by which the threads of a kernel meet."""
    return LINE * regions


def apart(size: int) -> int:
    """Bytes from one thread's copy of private memory of ``size`` bytes to the next one's."""
    return -(-size // LINE) * LINE


def movable(size: int) -> int:
    """The bytes that a kernel needs for ``size`` bytes of scratch memory, from the first line on in
    which it lies: it moves them by less than a page, to where arrays of the call do not begin."""
    return size + LINE + PAGE


def spaced(begin: int, position: int) -> int:
    """The first address from ``begin`` on for a result that nobody wants, the one at ``position``
    of these and of scratch memory: on a line, and elsewhere in a page than large arrays begin that
    the system maps, and than others of these."""
    return begin + (_EIGHTHS[position % len(_EIGHTHS)] * PAGE // 8 - begin) % PAGE
