"""Loop IR → LLVM IR text.

One function, entered as ``tcl.codegen.cpu.abi`` says, and beside it the one that runs it on a
single thread. Nothing in the text comes from names of the def.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tcl.codegen.common.recursion import with_room
from tcl.codegen.cpu.abi import OPENING, alone, apart
from tcl.codegen.cpu.emit.accesses import FAIL
from tcl.codegen.cpu.emit.statements import Statements
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.sites import Site


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel as LLVM IR."""

    text: str
    sites: tuple[Site, ...]
    """By number, as the error record names them."""
    regions: int = 0
    """Loops whose iterations threads share; a kernel that has none runs on one thread."""


def emit(program: ir.Built, device: CpuProfile, *, unchecked: bool = False) -> Source:
    """The LLVM IR of a built program. ``unchecked`` leaves out the checks of data-dependent
    subscripts. Raises ``CompileError`` for a built-in that this machine's C library lacks."""
    return with_room(lambda: _emit(program, device, unchecked))


def _size(tensor: ir.Tensor) -> int:
    return math.prod(tensor.layout.extents) * tensor.layout.itemsize


def _aligned(b: Builder, pointer: Val, base: int) -> Val:
    """The next multiple of so many bytes; memory that has to begin there has room to spare."""
    there = b.op(f"getelementptr i8, {pointer}, i64 {base - 1}", "ptr")
    return b.call("llvm.ptrmask.p0.i64", "ptr", 1, there, Val(str(-base), "i64"))


def _emit(program: ir.Built, device: CpuProfile, unchecked: bool) -> Source:
    b = Builder(features=device.present)
    pointers: dict[str, Val] = {}
    for k, tensor in enumerate(program.tensors):
        at = b.op(f"getelementptr ptr, ptr %tensors, i64 {k}", "ptr")
        pointers[tensor.name] = b.op(f"load ptr, {at}, align 8", "ptr")
        if tensor.private:
            own = b.op(f"mul i64 %thread, {apart(_size(tensor))}", "i64")
            pointers[tensor.name] = b.op(f"getelementptr i8, {pointers[tensor.name]}, {own}", "ptr")
        if tensor.role is ir.Role.SCRATCH and tensor.layout.base > 1:
            pointers[tensor.name] = _aligned(b, pointers[tensor.name], tensor.layout.base)
    sites: list[Site] = []
    b.set_apart([t.name for t in program.tensors])
    regions = Statements(b, program, pointers, device, unchecked, sites).emit()
    failed = b.op("load i64, ptr %error, align 8", "i64")
    result = b.op(f"trunc {failed} to i32", "i32")
    b.do(f"ret {result}")
    body = [*OPENING, *b.entry, *b.lines, "}", "", alone()]
    parts = [*b.declared.values(), "", *b.defined.values(), *([FAIL] if sites else []), *body]
    return Source("\n".join(parts), tuple(sites), regions)
