"""Devices and defs at which choices are looked at."""

from __future__ import annotations

import warnings

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


def sized(text: str, *shapes: tuple[int, ...], **named: tuple[int, ...]) -> SizedDef:
    """The one def of a text, which may begin with its parameters, for inputs of these shapes: in
    their order, or by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (checked,) = check(text if text.lstrip().startswith("def ") else f"def f({text}").values()
    in_order = zip(checked.inputs, shapes, strict=not named)
    return infer(checked, named or {t.name: s for t, s in in_order})
