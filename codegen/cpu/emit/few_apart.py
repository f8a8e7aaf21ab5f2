"""Lanes that lie a few elements apart, taken out of vectors of what lies between them."""

from __future__ import annotations

from tcl.codegen.cpu.emit.across import Pointers
from tcl.codegen.cpu.emit.addresses import Address
from tcl.codegen.cpu.emit.scope import Scope
from tcl.codegen.cpu.llvm.builder import Builder, Val, memory_type, vector
from tcl.codegen.cpu.llvm.transpose import mixed
from tcl.codegen.devices.cpu import FEW_APART
from tcl.codegen.loopir import ir
from tcl.grammar.sizes.varying import Size


def few_apart(at: Address, layout: ir.Layout) -> int:
    """How many elements lanes are apart, if that is a few; else 0."""
    if at.spread or not isinstance(at.step, int) or isinstance(at.step, Size):
        return 0
    apart, rest = divmod(at.step, layout.itemsize)
    return apart if not rest and 2 <= apart <= FEW_APART else 0


def load_few_apart(
    b: Builder,
    pointers: Pointers,
    at: Address,
    tensor: str,
    layout: ir.Layout,
    scope: Scope,
    apart: int,
) -> Val:
    """Lanes so many elements apart, out of what lies from the first to the last that exists: LLVM
    would load and put in each of them on its own. The others give any element."""
    lanes, active = scope.lanes, scope.active
    type_, pointer = memory_type(layout.type), pointers.at(tensor, at.offset)
    between = (active - 1) * apart + 1
    size = min(lanes, between)
    # The last vector begins early enough to end with the last lane.
    begin = [*range(0, between - size, size), between - size]
    found: Val | None = None
    for first in begin:
        there = pointers.advance(pointer, first * layout.itemsize)
        text = f"load {vector(type_, size)}, {there}, align {layout.alignment}"
        part = b.load(tensor, text, type_, size)
        own = [min(max(k * apart - first, 0), size - 1) for k in range(lanes)]
        part = mixed(b, part, part, own)
        if found is not None:
            picks = [k + lanes * (k * apart >= first) for k in range(lanes)]
            part = mixed(b, found, part, picks)
        found = part
    assert found is not None
    return found
