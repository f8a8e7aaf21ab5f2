"""The runtime's C as LLVM IR, so that users need no compiler:

    python -m tcl.codegen.cpu.runtime.build

writes what is committed under ``ir``, by the Clang of the wheel ``ziglang`` (the extra ``test``
has it). Clang 20, as the oldest llvmlite that we take has LLVM 20.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tcl.codegen.cpu.runtime.library import ARCHITECTURES, SOURCES, ir_file

_FLAGS = (
    *("-std=gnu11", "-O2", "-g0", "-S", "-emit-llvm", "-Wall", "-Wextra", "-Werror"),
    *("-Wno-unused-parameter", "-Wno-unused-command-line-argument", "-fno-stack-protector"),
    *("-fno-sanitize=all", "-fexceptions", "-fno-vectorize", "-fno-slp-vectorize"),
    *("-fno-strict-aliasing", "-fomit-frame-pointer"),
)
"""``-fexceptions``: torch's pass through ``torch.c``. Vectors would be for no known machine. Words
of records are addresses and numbers in turns, which strict aliasing does not know of."""


def compile_to_ir(name: str, architecture: str) -> str:
    """LLVM IR of a source. Raises ``CalledProcessError`` with what Clang said."""
    source = SOURCES / f"{name}.c"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.ll")
        command = [sys.executable, "-m", "ziglang", "cc", "-target", f"{architecture}-linux-gnu"]
        subprocess.run([*command, *_FLAGS, "-o", str(out), str(source)], check=True)
        return _portable(out.read_text("utf-8"))


def _portable(text: str) -> str:
    """Without what only says where and by what it was compiled. The machine at hand is named when
    the module is compiled."""
    text = re.sub(r"^(; ModuleID|source_filename|target ).*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r' "(target-cpu|target-features|tune-cpu)"="[^"]*"', "", text)
    text = re.sub(r"^!llvm\.(ident|errno\.tbaa).*\n", "", text, flags=re.MULTILINE)
    return text.lstrip()


if __name__ == "__main__":
    for architecture in ARCHITECTURES:
        for source in sorted(SOURCES.glob("*.c")):
            target = ir_file(source.stem, architecture)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(compile_to_ir(source.stem, architecture), "utf-8")
