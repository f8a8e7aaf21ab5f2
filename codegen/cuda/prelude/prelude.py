"""The functions that CUDA C++ lacks and the kernels' source defines, each only where it is used.

They need no header. Where one holds PTX, the emulator supplies it instead, in plain C++.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tcl.codegen.cuda.prelude import bessel as prelude_bessel
from tcl.codegen.cuda.prelude import conversions as prelude_conversions
from tcl.codegen.cuda.prelude import functions as prelude_functions
from tcl.codegen.cuda.prelude import memory as prelude_memory
from tcl.codegen.cuda.prelude import numbers as prelude_numbers

HELPERS: dict[str, str] = {
    **prelude_numbers.HELPERS,
    **prelude_conversions.HELPERS,
    **prelude_functions.HELPERS,
    **prelude_bessel.HELPERS,
    **prelude_memory.HELPERS,
}
"""Name → definition, each after those that it uses."""

_WORD = re.compile(r"[A-Za-z_]\w*")


def helpers_in(source: str) -> frozenset[str]:
    """The helper functions that a piece of source calls itself."""
    return frozenset(_WORD.findall(source)) & HELPERS.keys()


def prelude(used: Iterable[str]) -> str:
    """The definitions of these helper functions, and of those that they use in turn. Raises
    ``KeyError`` for a name that is none."""
    needed: set[str] = set()
    pending = set(used)
    while pending:
        name = pending.pop()
        needed.add(name)
        pending |= helpers_in(HELPERS[name]) - needed
    return "\n".join(text for name, text in HELPERS.items() if name in needed)
