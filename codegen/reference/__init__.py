"""The reference backend: a def as plain sequential loops in Python, compiled by Numba.

It defines meaning. It shares no code with the passes and backends that are compared with it.
"""

from __future__ import annotations

from tcl.codegen.reference.compiled import ReferenceKernel, compile_reference
from tcl.codegen.reference.rounding import roundings
from tcl.codegen.reference.sample import ComputedElements, compute, compute_briefly

__all__ = [
    "ComputedElements",
    "ReferenceKernel",
    "compile_reference",
    "compute",
    "compute_briefly",
    "roundings",
]
