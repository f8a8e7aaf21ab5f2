"""Loop IR → LLVM IR text.

One function ``i32 kernel(ptr tensors, ptr error, i64 thread, i64 threads, ptr team)``: an array
with the addresses of the tensors' first elements, in the program's order; per thread, a cache
line with three int64 for the first failed check (1 if one failed, its site, the value); the
number of this thread and of all that run the call; and memory that they share, see ``threads``.
It returns 1 if a check failed in this thread. Nothing in the text comes from names of the def.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tcl.codegen import ir
from tcl.codegen.cpu.builder import Builder, Val
from tcl.codegen.cpu.load import ENTRY as ENTRY
from tcl.codegen.cpu.memory import FAIL, Site
from tcl.codegen.cpu.statements import Statements
from tcl.codegen.cpu.threads import LINE
from tcl.codegen.device import CpuProfile
from tcl.codegen.ir_verify import built
from tcl.codegen.passes.stage import ALIGNMENT
from tcl.codegen.recursion import with_room


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel as LLVM IR."""

    text: str
    sites: tuple[Site, ...]
    """By number, as the error record names them."""
    regions: int
    """Loops that threads share; without any, more than one thread must not run it."""


def emit(program: ir.Program, device: CpuProfile, *, unchecked: bool = False) -> Source:
    """The LLVM IR of a built program. ``unchecked`` leaves out the checks of data-dependent
    subscripts. Raises ``CompileError`` for a built-in that this machine's C library lacks."""
    built(program)
    return with_room(lambda: _emit(program, device, unchecked))


def private_bytes(tensor: ir.Tensor) -> int:
    """From one thread's copy of private scratch memory to the next one's: whole cache lines."""
    layout = tensor.layout
    return -(-math.prod(layout.extents) * layout.itemsize // LINE) * LINE


def _aligned(b: Builder, pointer: Val) -> Val:
    """The next place where a vector does not cross cache lines; panels have room to spare."""
    there = b.op(f"getelementptr i8, {pointer}, i64 {ALIGNMENT - 1}", "ptr")
    return b.call("llvm.ptrmask.p0.i64", "ptr", 1, there, Val(str(-ALIGNMENT), "i64"))


def _emit(program: ir.Program, device: CpuProfile, unchecked: bool) -> Source:
    b = Builder()
    own = b.op("shl i64 %thread, 6", "i64")
    b.do(f"%error = getelementptr i8, ptr %errors, {own}")
    pointers: dict[str, Val] = {}
    panels = {c.panel.tensor for n in program.nests for c in n.staged}
    for k, tensor in enumerate(program.tensors):
        at = b.op(f"getelementptr ptr, ptr %tensors, i64 {k}", "ptr")
        pointers[tensor.name] = b.op(f"load ptr, {at}, align 8", "ptr")
        if tensor.private:
            own = b.op(f"mul i64 %thread, {private_bytes(tensor)}", "i64")
            pointers[tensor.name] = b.op(f"getelementptr i8, {pointers[tensor.name]}, {own}", "ptr")
        if tensor.name in panels:
            pointers[tensor.name] = _aligned(b, pointers[tensor.name])
    sites: list[Site] = []
    regions = Statements(b, program, pointers, device, unchecked, sites).emit()
    failed = b.op("load i64, ptr %error, align 8", "i64")
    result = b.op(f"trunc {failed} to i32", "i32")
    b.do(f"ret {result}")
    arguments = "ptr noalias %tensors, ptr noalias %errors, i64 %thread, i64 %threads, ptr %team"
    wrapper = f"""define i32 @{ENTRY}(ptr %t, ptr %e) {{
  %team = alloca [256 x i64]
  %r = call i32 @tcl_all(ptr %t, ptr %e, i64 0, i64 1, ptr %team)
  ret i32 %r
}}
"""
    header = f"define i32 @tcl_all({arguments}) nounwind {{"
    body = [wrapper, header, "entry:", *b.entry, *b.lines, "}", ""]
    parts = [*b.declared.values(), "", *b.defined.values(), *([FAIL] if sites else []), *body]
    return Source("\n".join(parts), tuple(sites), regions)
