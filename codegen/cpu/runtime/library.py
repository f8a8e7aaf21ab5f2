"""The runtime: C that is the same for all kernels, in this process.

``*.c`` beside this file are its source. What is loaded is that as LLVM IR, committed under ``ir``
and written by ``build.py``; it is compiled once on a machine, and kept.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tcl.codegen.cpu.object_code.kept import load_kept
from tcl.codegen.cpu.object_code.load import LoadedCode
from tcl.codegen.devices.cpu import host_cpu
from tcl.common.errors import CompileError

ARCHITECTURES = ("x86_64", "aarch64")
SOURCES = Path(__file__).parent


def ir_file(name: str, architecture: str) -> Path:
    """Where a source's LLVM IR lies."""
    return SOURCES / "ir" / architecture / f"{name}.ll"


def load(name: str, symbols: Sequence[str]) -> LoadedCode:
    """One of the sources in this process, with variables of its own. Raises ``CompileError`` where
    it is not known how, as on a system that is not Linux, and where loading it fails."""
    architecture = host_cpu().architecture
    if sys.platform != "linux" or architecture not in ARCHITECTURES:
        raise CompileError(f"there is no native runtime for {sys.platform} on {architecture}")
    return load_kept(ir_file(name, architecture).read_text("utf-8"), symbols)
