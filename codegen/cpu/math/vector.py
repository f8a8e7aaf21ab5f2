"""Built-ins as formulas of a few instructions, for vectors of any number of lanes.

A scalar goes through the same formula as a lane and gets the same bits, so that the remainder of
a loop agrees with its body, and results do not depend on the width of the machine.

Worst errors in units in the last place, measured:

    float32     exp 0.89   exp2 0.87   exp10 1.08  expm1 1.54  log 0.89    log2 1.29   log10 1.24
                tanh 1.59  erf 1.07    rsqrt 1.49  sin 1.53    cos 1.48    sinpi 0.97  cospi 0.87
                expit 1.48
                all others 0.51 (see ``float32_wide``; tan likewise)
    float64     exp 0.91   exp2 0.87   exp10 1.15  expm1 1.78  log 0.84    log2 1.21   log10 1.25
                log1p 0.85 tanh 1.55   sinh 2.73   cosh 2.29   sin 1.47    cos 1.45    erf 1.04
                pow 1.08   rsqrt 1.50  cbrt 0.51   expit 1.44  tan 2.35    atan 1.37   atan2 1.52
                asin 1.38  acos 1.20   asinh 1.76  acosh 2.41  atanh 1.85

For float32, exp, log, log2, tanh, erf and sin over all 2**32 arguments, log10, exp2, exp10, expm1
and rsqrt over every 7th, the others of one argument over every 31st, against glibc's float64
functions; float64 over six million points of all sizes against 80-bit arithmetic (erf over 60,000
against mpmath). ``pytest -m slow tests/codegen/cpu/test_vector_math.py`` repeats it for every 61st
float32.
Results are right for zeros, infinities, NaN and subnormal numbers, and subnormal results are as
exact as others. float32 sin, cos and tan reduce every finite argument exactly enough; float64 sin,
cos and tan call the C library from 2**21 on.

Formulas use fused multiply-adds throughout, which ``llvm.expanded`` makes of others on machines
without; errors are larger there by a hundredth of a unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcl.codegen.cpu.llvm.builder import Builder, Val, suffix
from tcl.codegen.cpu.math import float32, float32_wide, float64, trigonometric
from tcl.codegen.cpu.math.formula import Number
from tcl.codegen.cpu.math.tools import call_formula

Formula = Callable[..., Number]

FORMULAS: dict[str, dict[str, Formula]] = {
    "float": {
        **float32.FORMULAS,
        **trigonometric.FORMULAS,
        **float32_wide.FORMULAS,
    },
    "double": float64.FORMULAS,
}
"""LLVM type → name of the built-in → its formula."""
_SHORT = 60
"""Formulas with fewer instructions are inlined wherever they are called."""


def covers(name: str, real: str) -> bool:
    """Whether there is a formula for the built-in ``name`` in the LLVM type ``real``."""
    return name in FORMULAS[real]


def call(b: Builder, name: str, arguments: Sequence[Val], real: str) -> Val:
    """The built-in on arguments of LLVM type ``real``, scalars or lanes. Its function is added to
    the module when first needed. Raises ``KeyError`` for what ``covers`` denies."""
    arguments = b.level(*arguments)
    symbol = f"tcl_{name}_{suffix(real, arguments[0].lanes)}"
    return call_formula(b, symbol, FORMULAS[real][name], arguments, inlined=_SHORT)
