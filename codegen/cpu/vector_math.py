"""Built-ins as formulas of a few instructions, for vectors of any number of lanes.

A scalar goes through the same formula as a lane and gets the same bits, so that the remainder of
a loop agrees with its body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcl.codegen.cpu import (
    vector_math_double,
    vector_math_single,
    vector_math_trig,
    vector_math_wide,
)
from tcl.codegen.cpu.builder import Builder, Val, suffix
from tcl.codegen.cpu.number import Number
from tcl.codegen.cpu.vector_math_tools import PURE

Formula = Callable[..., Number]

FORMULAS: dict[str, dict[str, Formula]] = {
    "float": {
        **vector_math_single.FORMULAS,
        **vector_math_trig.FORMULAS,
        **vector_math_wide.FORMULAS,
    },
    "double": vector_math_double.FORMULAS,
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
    formula = FORMULAS[real][name]
    arguments = b.level(*arguments)
    lanes = arguments[0].lanes
    symbol = f"tcl_{name}_{suffix(real, lanes)}"
    if symbol not in b.defined:
        b.defined[symbol] = ""  # claims the name while the body may ask for others
        b.defined[symbol] = _definition(b, symbol, formula, len(arguments), real, lanes)
    return b.call(symbol, real, lanes, *arguments)


def _definition(
    b: Builder, symbol: str, formula: Formula, arity: int, real: str, lanes: int
) -> str:
    inner = Builder(declared=b.declared, defined=b.defined)
    parameters = [Val(f"%a{k}", real, lanes) for k in range(arity)]
    result = formula(*(Number(inner, p) for p in parameters)).value
    inline = " alwaysinline" if len(inner.lines) < _SHORT else ""
    head = f"define internal {result.ty} @{symbol}({', '.join(map(str, parameters))})"
    end = f"  ret {result}"
    return "\n".join(
        [f"{head}{PURE}{inline} {{", "entry:", *inner.entry, *inner.lines, end, "}", ""]
    )
