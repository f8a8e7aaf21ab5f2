"""Devices and defs at which choices are looked at."""

from __future__ import annotations

from tcl.codegen.devices.cpu import CpuProfile
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef

X86 = "x86_64-unknown-linux-gnu"
WIDE = CpuProfile("wide", "", X86, 512, 2, 48 << 10, 2 << 20, 32 << 20)
NARROW = CpuProfile("narrow", "", X86, 256, 2, 32 << 10, 512 << 10, 8 << 20)
ARM = CpuProfile("arm", "", "aarch64-unknown-linux-gnu", 128, 2, 64 << 10, 1 << 20, 8 << 20)

MATMUL = "float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
TRANSPOSED = "float(M, K) A, float(N, K) B) -> (C) { C(m, n) +=! A(m, k) * B(n, k) }"

GATHERED = "float(N, D) A, int32(B, L) I) -> (S) { S(b, d) +=! A(I(b, l), d) }"


def sized(text: str, *shapes: tuple[int, ...]) -> SizedDef:
    (checked,) = check(f"def f({text}").values()
    return infer(checked, {t.name: s for t, s in zip(checked.inputs, shapes, strict=True)})
