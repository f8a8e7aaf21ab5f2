"""How a kernel is entered, and by which memory its threads meet.

Every kernel is one function that each of its threads runs::

    i32 tcl_kernel(ptr tensors, ptr error, i64 thread, i64 threads, ptr team)

``tensors``: the addresses of the tensors' first elements. ``error``: a record of three int64 for
each thread, ``LINE`` bytes apart: 1 if a check failed, its site, the value. A thread returns 1 if
its own record is set. The last word of the first line is ``STOP``: once it is not 0, threads leave
soon, wherever they are. ``team``: memory that the threads share, on a boundary of ``LINE`` bytes:
the barrier's two words, each on a line of its own, then one line with a counter for each region
whose iterations are handed out one by one. All of it is 0 when a call begins.

A call of a kernel is one record of words, as one argument costs a third of five. ``tcl_alone``,
which is part of every kernel's module, runs such a record on the calling thread;
``tcl.codegen.cpu.threads.thread_pool`` runs it on several.
"""

from __future__ import annotations

from tcl.codegen.devices.cpu import LINE as LINE

ENTRY = "tcl_kernel"
"""The symbol of every kernel."""

ALONE = "tcl_alone"
"""The symbol of the function that takes a call's record and runs the kernel on this thread."""

STOP = LINE // 8 - 1
"""The word of ``error`` by which whoever called asks a call to end."""

BARRIER_LINES = 2
"""Lines of the team's memory before the counters of regions."""

KERNEL, TENSORS, ERROR, TEAM, THREADS, CLEAR, POOL, OWN = range(8)
"""Words of a call's record: four addresses, the number of threads, the bytes of the team's memory
that the call begins by clearing, the address of the pool of threads, and the nanoseconds that the
last call with this record took alone because of crowded cores; 0 before."""

WORDS = 8
"""Length of a call's record."""

OPENING = (
    f"define i32 @{ENTRY}"
    "(ptr noalias %tensors, ptr noalias %errors, i64 %thread, i64 %threads, ptr noalias %team) "
    "nounwind {",
    "entry:",
    f"  %error = getelementptr [{LINE} x i8], ptr %errors, i64 %thread",
)
"""The first lines of a kernel; ``%error`` is the thread's own record."""

ALIGNED = (OPENING[0].replace("nounwind", 'nounwind "stackrealign"'), *OPENING[1:])
"""As ``OPENING``, of a kernel with vectors on its stack that it reads and writes often: LLVM has
them begin anywhere else, most of them in two lines of the cache."""


def stopped(name: str) -> str:
    """LLVM IR that looks whether the call is to end: ``%name``."""
    return (
        f"  %{name}.at = getelementptr i64, ptr %errors, i64 {STOP}\n"
        f"  %{name}.word = load volatile i64, ptr %{name}.at, align 8\n"
        f"  %{name} = icmp ne i64 %{name}.word, 0\n"
    )


def word(name: str, position: int, type_: str = "ptr", record: str = "%call") -> str:
    """LLVM IR that loads a word of a record, such as a call's: ``%name``."""
    return (
        f"  %{name}.at = getelementptr i64, ptr {record}, i64 {position}\n"
        f"  %{name} = load {type_}, ptr %{name}.at, align 8\n"
    )


def alone() -> str:
    """LLVM IR of ``tcl_alone``, for the module of a kernel."""
    return (
        f"define i32 @{ALONE}(ptr noalias %call) nounwind {{\n"
        "entry:\n"
        f"{word('tensors', TENSORS)}{word('error', ERROR)}{word('team', TEAM)}"
        f"{word('clear', CLEAR, 'i64')}"
        "  %none = icmp eq i64 %clear, 0\n"
        "  br i1 %none, label %run, label %zero\n"
        "zero:\n"
        "  call void @llvm.memset.p0.i64(ptr align 64 %team, i8 0, i64 %clear, i1 false)\n"
        "  br label %run\n"
        "run:\n"
        f"  %result = tail call i32 @{ENTRY}"
        "(ptr %tensors, ptr %error, i64 0, i64 1, ptr %team) noinline\n"
        "  ret i32 %result\n"
        "}\n"
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
    )


def team_bytes(regions: int) -> int:
    """Size of the memory by which the threads of a kernel meet; 0 for one that has no need."""
    return LINE * (BARRIER_LINES + regions) if regions else 0


def apart(size: int) -> int:
    """Bytes from one thread's copy of private memory of ``size`` bytes to the next one's."""
    return -(-size // LINE) * LINE
