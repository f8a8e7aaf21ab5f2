"""The runtime's C as LLVM IR, so that users need no compiler:

    python -m benchmarks.runtime_ir

writes what is committed under ``ir``, by the Clang of the wheel ``ziglang`` (the extra ``test``
has it). Clang 20, as the oldest llvmlite that we take has LLVM 20.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tcl.codegen.cpu.runtime.library import SOURCES, ir_file

_FLAGS = (
    *("-std=gnu11", "-O2", "-g0", "-S", "-emit-llvm", "-Wall", "-Wextra", "-Werror"),
    *("-Wno-unused-parameter", "-Wno-unused-command-line-argument", "-fno-stack-protector"),
    *("-fno-sanitize=all", "-fexceptions", "-fno-vectorize", "-fno-slp-vectorize"),
    *("-fno-strict-aliasing", "-fomit-frame-pointer"),
)
"""``-fexceptions``: torch's pass through ``torch.c``. Vectors would be for no known machine. Words
of records are addresses and numbers in turns, which strict aliasing does not know of."""


def compile_to_ir(name: str) -> str:
    """LLVM IR of a source. Raises ``CalledProcessError`` with what Clang said."""
    return portable(clang(name, "x86_64", *_FLAGS))


def clang(name: str, architecture: str, *flags: str) -> str:
    """What Clang makes of a source."""
    source = SOURCES / f"{name}.c"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.ll")
        command = [sys.executable, "-m", "ziglang", "cc", "-target", f"{architecture}-linux-gnu"]
        subprocess.run([*command, *flags, "-o", str(out), str(source)], check=True)
        return out.read_text("utf-8")


def portable(text: str) -> str:
    """Without what says where and by what it was compiled, and what is of one architecture alone.
    The machine at hand is named when the module is compiled. A returned truth value has one bit:
    AArch64 leaves open what is above it, so nothing may be known of that."""
    text = re.sub(r"^(; ModuleID|source_filename|target ).*\n", "", text, flags=re.MULTILINE)
    of_cpus = "target-cpu|target-features|tune-cpu|min-legal-vector-width"
    text = re.sub(f' "({of_cpus})"="[^"]*"', "", text)
    text = re.sub(r"zeroext (?=i1 [%@])", "", text)
    text = re.sub(r"^!llvm\.(ident|errno\.tbaa).*\n", "", text, flags=re.MULTILINE)
    return text.lstrip()


if __name__ == "__main__":
    for source in sorted(SOURCES.glob("*.c")):
        ir_file(source.stem).write_text(compile_to_ir(source.stem), "utf-8")
