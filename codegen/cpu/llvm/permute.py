"""Lanes that each take any element of a short row, which registers hold: one instruction of x86."""

from __future__ import annotations

from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.cpu.llvm.transpose import joined, mixed
from tcl.codegen.devices.features import permuted

_NAMES = {
    (32, 8): "llvm.x86.avx2.permd",
    (32, 16): "llvm.x86.avx512.permvar.si.512",
    (64, 4): "llvm.x86.avx512.permvar.di.256",
    (64, 8): "llvm.x86.avx512.permvar.di.512",
}
"""Bits of an element, elements of a register → the instruction."""


def taken(b: Builder, row: Val, places: Val) -> Val:
    """The elements of a ``row`` at ``places``, one per lane, where 0 is the first; places outside
    of it give any value. ``permuted`` has to have registers for the row."""
    bits = 64 if row.type in ("double", "i64") else 32
    sizes = permuted(b.features, bits // 8, row.lanes)
    unit = max((n for n in sizes if n <= places.lanes), default=sizes[0])
    real = row.type in ("float", "double")
    wide = b.convert("bitcast" if real else "zext", row, f"i{bits}")
    wide = mixed(b, wide, wide, [k % row.lanes for k in range(unit)])
    indices = b.convert("trunc", places, f"i{bits}")
    parts = []
    for first in range(0, places.lanes, unit):
        part = mixed(b, indices, indices, [(first + k) % places.lanes for k in range(unit)])
        parts.append(b.call(_NAMES[bits, unit], wide.type, unit, wide, part))
    found = joined(b, parts)
    if found.lanes > places.lanes:
        found = mixed(b, found, found, range(places.lanes))
    return b.convert("bitcast" if real else "trunc", found, row.type)
