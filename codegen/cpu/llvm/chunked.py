"""A kernel that calls a user's C function on a range of numbers, chunk by chunk, as LLVM IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcl.codegen.cpu.llvm.entry import OPENING, alone, stopped, word

_FUNCTION, _TOTAL, _CHUNK, ARGUMENTS = range(4)
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


def chunked(bound: Word, arguments: Sequence[Word]) -> str:
    """LLVM IR of the kernel, the same for all functions with such arguments."""
    loaded = [
        word(f"a{k}", ARGUMENTS + k, each.llvm, "%tensors") for k, each in enumerate(arguments)
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
