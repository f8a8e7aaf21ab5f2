"""How a kernel begins, and what it is called by, as LLVM IR: see ``abi``."""

from __future__ import annotations

from tcl.codegen.cpu.abi import ALONE, CLEAR, ENTRY, ERROR, LINE, STOP, TEAM, TENSORS

ALIGNED = '"stackrealign"'
"""The attribute of a function that keeps vectors on its stack: it begins on a line of the cache.
LLVM has it begin where the caller's ends, so that a vector lies in one line or two by where a
process has its stack, which all that it forks inherit. On Zen 4, kernels that call functions for
vectors of doubles took up to 1.6 times as long in two of three processes."""

OPENING = (
    f"define i32 @{ENTRY}"
    "(ptr noalias %tensors, ptr noalias %errors, i64 %thread, i64 %threads, ptr noalias %team) "
    f"nounwind {ALIGNED} {{",
    "entry:",
    f"  %error = getelementptr [{LINE} x i8], ptr %errors, i64 %thread",
)
"""The first lines of a kernel; ``%error`` is the thread's own record."""


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
