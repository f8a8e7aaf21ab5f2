"""A C function over a range of numbers, chunk by chunk, on our threads.

The function is the user's, ``void f(int64_t begin, int64_t end, ...)``, and knows nothing of us.
What is emitted here is a kernel like ours, whose threads take one chunk after the other from a
counter that they share, until none is left, and call the function on each.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tcl.codegen.cpu.abi import ALONE, ENTRY
from tcl.codegen.cpu.llvm.entry import OPENING, alone, stopped, word
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.cpu.object_code.load import load_kept
from tcl.codegen.cpu.run.launch import LONG, Launcher

_FUNCTION, _TOTAL, _CHUNK, _ARGUMENTS = range(4)
"""Words of a call: the function's address, where the range ends, how many numbers a chunk has,
and the first of the function's arguments."""


@dataclass(frozen=True, slots=True)
class Word:
    """An argument of a C function that fits a register."""

    llvm: str
    """Its type in LLVM IR: ``ptr``, ``i8`` to ``i64``, ``float`` or ``double``."""
    unsigned: bool = False

    @property
    def passed(self) -> str:
        """The type as a call has it: callers extend what is shorter than 32 bits."""
        short = self.llvm in ("i8", "i16", "i32")
        return f"{self.llvm} {'zeroext' if self.unsigned else 'signext'}" if short else self.llvm


def _kernel_text(bound: Word, arguments: Sequence[Word]) -> str:
    """LLVM IR of the kernel, the same for all functions with such arguments."""
    loaded = [
        word(f"a{k}", _ARGUMENTS + k, each.llvm, "%tensors") for k, each in enumerate(arguments)
    ]
    passed = "".join(f", {each.passed} %a{k}" for k, each in enumerate(arguments))
    if bound.llvm == "i64":
        narrow, names = "", ("%begin", "%end")
    else:
        narrow = "".join(
            f"  %{name}.short = trunc i64 %{name} to {bound.llvm}\n" for name in ("begin", "end")
        )
        names = ("%begin.short", "%end.short")
    opening = "\n".join(OPENING)
    return f"""{opening}
{word("function", _FUNCTION, record="%tensors")}{word("total", _TOTAL, "i64", "%tensors")}\
{word("chunk", _CHUNK, "i64", "%tensors")}{"".join(loaded)}\
  br label %next
next:
{stopped("stop")}  br i1 %stop, label %done, label %take
take:
  %begin = atomicrmw add ptr %team, i64 %chunk monotonic
  %more = icmp ult i64 %begin, %total
  br i1 %more, label %run, label %done
run:
  %rest = sub i64 %total, %begin
  %size = call i64 @llvm.umin.i64(i64 %rest, i64 %chunk)
  %end = add i64 %begin, %size
{narrow}  call void %function({bound.passed} {names[0]}, {bound.passed} {names[1]}{passed})
  br label %next
done:
  ret i32 0
}}
declare i64 @llvm.umin.i64(i64, i64)
{alone()}"""


class ChunkedCall:
    """Calls of one C function. Raises ``CompileError`` where no code can be loaded."""

    def __init__(
        self, address: int, bound: Word, arguments: Sequence[Word], threads: int = 1
    ) -> None:
        """``bound``: what ``begin`` and ``end`` are; ``arguments``: those that follow them."""
        self._address = address
        text = _kernel_text(bound, arguments)
        names = [f"word {k}" for k in range(_ARGUMENTS + len(arguments))]
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
