"""The runtime: C that is the same for all kernels, in this process.

``*.c`` beside this file are its source. What is loaded is that as LLVM IR, committed under ``ir``
and written by ``benchmarks.runtime_ir`` for x86-64; for AArch64, an instruction and the number of a
system call are replaced. It is compiled once on a machine, and kept.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tcl.codegen.cpu.object_code.load import LoadedCode, load_kept
from tcl.codegen.devices.cpu import host_cpu
from tcl.common.errors import CompileError

SOURCES = Path(__file__).parent

REPLACED: dict[str, tuple[tuple[str, str], ...]] = {
    "x86_64": (),
    "aarch64": (
        ("call void @llvm.x86.sse2.pause()", "call void @llvm.aarch64.isb(i32 15)"),
        ("declare void @llvm.x86.sse2.pause()", "declare void @llvm.aarch64.isb(i32)"),
        ("@syscall(i64 noundef 202,", "@syscall(i64 noundef 98,"),  # futex
    ),
}
"""What the text for x86-64 has, and what that of each architecture has instead. All else is the
same: sizes, places in structs, and the passing of 64-bit integers and addresses."""


def ir_file(name: str) -> Path:
    """Where a source's LLVM IR lies."""
    return SOURCES / "ir" / f"{name}.ll"


def ir_text(name: str, architecture: str) -> str:
    """A source's LLVM IR for an architecture of ``REPLACED``."""
    text = ir_file(name).read_text("utf-8")
    for old, new in REPLACED[architecture]:
        text = text.replace(old, new)
    return text


def load(name: str, symbols: Sequence[str]) -> LoadedCode:
    """One of the sources in this process, with variables of its own. Raises ``CompileError`` where
    it is not known how, as on a system that is not Linux, and where loading it fails."""
    architecture = host_cpu().architecture
    if sys.platform != "linux" or architecture not in REPLACED:
        raise CompileError(f"there is no native runtime for {sys.platform} on {architecture}")
    return load_kept(ir_text(name, architecture), symbols)
