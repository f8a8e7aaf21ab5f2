"""Dot products in vector registers: Intel's manual, volume 2, "VPDPBUSD", "VPDPWSSD", "VDPBF16PS".

Each lane of 32 bits adds up the products of its four bytes, two words or two bfloat16 numbers.
"""

from __future__ import annotations

import re

FEATURES = ("avx512vnni", "avxvnni", "avxvnniint8", "avx10.2", "avx512bf16")
"""LLVM's names of the features that have them: those of ``tcl.codegen.devices.fragments``."""

_INTEGERS = re.compile(r"llvm\.x86\.avx(?:2|512|10)\.vpdp(b|w(?=ss))([us])([us])d\.(128|256|512)")
_BFLOAT16 = re.compile(r"llvm\.x86\.avx512bf16\.dpbf16ps\.(128|256|512)")


def dot_definition(name: str, function: str) -> str | None:
    """The function that stands for an intrinsic, with the types that LLVM 22 gives it; None for
    one that is none of these."""
    if found := _INTEGERS.fullmatch(name):
        words, left, right, bits = found.groups()
        return _integers(function, 8 if words == "b" else 16, left, right, int(bits) // 32)
    if found := _BFLOAT16.fullmatch(name):
        return _bfloat16(function, int(found[1]) // 32)
    return None


def _integers(function: str, bits: int, left: str, right: str, lanes: int) -> str:
    parts, sums = 32 // bits, f"<{lanes} x i32>"
    type_ = f"<{lanes * parts} x i{bits}>"
    lines = [f"  %x = bitcast {type_} %left to {sums}", f"  %y = bitcast {type_} %right to {sums}"]
    total = "%sums"
    for k in range(parts):
        for name, kind in (("x", left), ("y", right)):
            shift = "ashr" if kind == "s" else "lshr"
            lines.append(
                f"  %{name}{k}.high = shl {sums} %{name}, splat (i32 {32 - bits * (k + 1)})"
            )
            lines.append(f"  %{name}{k} = {shift} {sums} %{name}{k}.high, splat (i32 {32 - bits})")
        lines.append(f"  %product{k} = mul {sums} %x{k}, %y{k}")
        lines.append(f"  %total{k} = add {sums} {total}, %product{k}")
        total = f"%total{k}"
    return _define_function(sums, function, type_, lines, total)


def _bfloat16(function: str, lanes: int) -> str:
    """The second product of a pair is added first, and each sum rounded."""
    words, sums, type_ = f"<{lanes} x i32>", f"<{lanes} x float>", f"<{2 * lanes} x bfloat>"
    lines, total = [], "%sums"
    for name in ("left", "right"):
        lines += [
            f"  %{name}.words = bitcast {type_} %{name} to {words}",
            f"  %{name}.high = and {words} %{name}.words, splat (i32 -65536)",
            f"  %{name}.low = shl {words} %{name}.words, splat (i32 16)",
        ]
    for part in ("high", "low"):
        for name in ("left", "right"):
            lines += [
                f"  %{name}.{part}.float = bitcast {words} %{name}.{part} to {sums}",
                f"  %{name}.{part}.value = call {sums} @tcl_flushed.v{lanes}"
                f"({sums} %{name}.{part}.float)",
            ]
        lines += [
            f"  %{part}.exact = call {sums} @llvm.fma.v{lanes}f32({sums} %left.{part}.value, "
            f"{sums} %right.{part}.value, {sums} {total})",
            f"  %{part}.total = call {sums} @tcl_flushed.v{lanes}({sums} %{part}.exact)",
        ]
        total = f"%{part}.total"
    # Where no instruction is for bfloat16, vectors of it are passed to functions by conversions.
    return _define_function(sums, function, type_, lines, total, "alwaysinline")


def _define_function(
    sums: str, name: str, type_: str, lines: list[str], result: str, inline: str = "noinline"
) -> str:
    opening = (
        f"define internal {sums} @{name}({sums} %sums, {type_} %left, {type_} %right) "
        f"{inline} nounwind {{"
    )
    return "\n".join((opening, "entry:", *lines, f"  ret {sums} {result}", "}"))
