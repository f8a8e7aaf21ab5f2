"""The runtime's C, compiled for tests by the compiler of the wheel that writes its LLVM IR."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tcl.codegen.cpu.runtime.library import SOURCES

SUPPORT = Path(__file__).parent


def compile_c(source: Path, out: Path, *flags: str) -> Path:
    """A shared library of a C source, which finds the runtime's."""
    command = [sys.executable, "-m", "ziglang", "cc", "-std=gnu11", "-O1", "-shared", "-fPIC"]
    includes = [f"-I{SOURCES}", f"-I{SUPPORT}"]
    command += [*includes, *flags, "-o", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out
