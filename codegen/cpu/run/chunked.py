"""A C function over a range of numbers, chunk by chunk, on our threads.

The function is the user's, ``void f(int64_t begin, int64_t end, ...)``, and knows nothing of us.
What is emitted here is a kernel like ours, whose threads take one chunk after the other from a
counter that they share, until none is left, and call the function on each.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence

from tcl.codegen.cpu.abi import ALONE, ENTRY
from tcl.codegen.cpu.llvm.chunked import ARGUMENTS, Word, chunked
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.cpu.object_code.load import load_kept
from tcl.codegen.cpu.run.launch import LONG, Launcher


class ChunkedCall:
    """Calls of one C function. Raises ``CompileError`` where no code can be loaded."""

    def __init__(
        self, address: int, bound: Word, arguments: Sequence[Word], threads: int = 1
    ) -> None:
        """``bound``: what ``begin`` and ``end`` are; ``arguments``: those that follow them."""
        self._address = address
        text = chunked(bound, arguments)
        names = [f"word {k}" for k in range(ARGUMENTS + len(arguments))]
        code = KernelCode(b"", regions=1, threads=threads)
        self._launcher = Launcher(code, names, load_kept(text, (ENTRY, ALONE)))
        self.threads = self._launcher.threads
        """That a call runs on: one where there is no pool of threads."""

    def __call__(self, total: int, chunk: int, words: Sequence[int]) -> None:
        """The function on all of ``range(total)``, ``chunk`` numbers at a time. ``words`` hold the
        bytes of the arguments; they are not checked."""
        launcher = self._launcher
        frame = launcher.frame()
        for position, value in enumerate((self._address, total, chunk, *words)):
            frame.pointers[position] = value
        begun = time.perf_counter()
        run = launcher.call if launcher.long is False else launcher.attentive
        run(frame.at)
        launcher.long = time.perf_counter() - begun > LONG
        launcher.frames.append(frame)


def word_of(value: ctypes._SimpleCData[object]) -> int:
    """The bytes of a value of C's as a word."""
    return int.from_bytes(bytes(value).ljust(8, b"\0"), "little")
