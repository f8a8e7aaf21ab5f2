"""Where a kernel's own memory begins in a page: elsewhere than the arrays of a call do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcl.codegen.cpu.abi import PAGE
from tcl.codegen.cpu.emit.scope import number
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.loopir import ir
from tcl.grammar.sizes.varying import Size

_PARTS = 8
"""Places in a page where a piece may begin."""
_BEFORE = 192
"""Bytes before a piece at which an array begins too near. On Zen 4 (softmax of 4096 x 1024, which
reads its input while it writes a piece, and the piece while it writes its output), an input takes
1.35 to 1.65 times as long from 112 bytes before a piece to 16 behind it, an output 1.1 to 1.65
times from 16 to 272 bytes behind; both together 2.4 times."""
_FARTHEST = _PARTS // 2
"""The first part that is tried, counted from the one in which large arrays begin that the system
maps for them."""


def moved_apart(
    b: Builder, tensors: Sequence[ir.Tensor], pointers: Mapping[str, Val]
) -> dict[str, Val]:
    """The addresses of scratch tensors, each moved by less than a page, for which there is room:
    to a part of a page where neither an array of this call nor another of these begins, while
    there are such parts. What a kernel writes there is then not taken for what it reads from an
    array, or the other way round: see ``PAGE``."""
    scratch = [t for t in tensors if t.role is ir.Role.SCRATCH]
    if not scratch:
        return {}
    one, taken, step = number(1), number(0), PAGE // _PARTS
    for tensor in tensors:
        size = tensor.layout.bytes
        if tensor.role is not ir.Role.SCRATCH and (isinstance(size, Size) or size >= PAGE):
            address = b.op(f"ptrtoint {pointers[tensor.name]} to i64", "i64")
            begin = b.binary("add", address, number(_BEFORE + _FARTHEST * step))
            part = b.binary("and", b.binary("udiv", begin, number(step)), number(_PARTS - 1))
            taken = b.binary("or", taken, b.binary("shl", one, part))
    found = {}
    for tensor in scratch:
        pointer = pointers[tensor.name]
        full = b.compare("icmp eq", taken, number((1 << _PARTS) - 1))
        taken = b.select(full, number(0), taken)
        free = b.binary("xor", taken, number(-1))
        part = b.op(b.call_text("llvm.cttz.i64", "i64", free, Val("true", "i1")), "i64")
        place = b.binary("mul", b.binary("add", part, number(_FARTHEST)), number(step))
        address = b.op(f"ptrtoint {pointer} to i64", "i64")
        move = b.binary("and", b.binary("sub", place, address), number(PAGE - 1))
        found[tensor.name] = b.op(f"getelementptr i8, {pointer}, {move}", "ptr")
        taken = b.binary("or", taken, b.binary("shl", one, part))
    return found
