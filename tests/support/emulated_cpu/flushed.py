"""Subnormal numbers as zeros, as instructions take and give them that know no others."""

from __future__ import annotations

import re

_SMALLEST = "0x3810000000000000"
"""2^-126, the smallest normal float, as LLVM writes it."""


def flushed(text: str) -> str:
    """A module of LLVM IR with a definition of each ``@tcl_flushed.vN`` that it calls, which takes
    and gives N floats; and of the multiplication that goes with it."""
    widths = sorted({int(n) for n in re.findall(r"@tcl_flushed\.v(\d+)\(", text)})
    return "\n".join((text, *map(_definition, widths)))


def _definition(lanes: int) -> str:
    type_ = f"<{lanes} x float>"
    names = {f"llvm.fabs.v{lanes}f32": 1, f"llvm.fma.v{lanes}f32": 3}
    names[f"llvm.copysign.v{lanes}f32"] = 2
    declared = "\n".join(
        f"declare {type_} @{n}({', '.join([type_] * count)})" for n, count in names.items()
    )
    return f"""\
define internal {type_} @tcl_flushed.v{lanes}({type_} %value) alwaysinline nounwind {{
entry:
  %size = call {type_} @llvm.fabs.v{lanes}f32({type_} %value)
  %small = fcmp olt {type_} %size, splat (float {_SMALLEST})
  %zero = call {type_} @llvm.copysign.v{lanes}f32({type_} zeroinitializer, {type_} %value)
  %kept = select <{lanes} x i1> %small, {type_} %zero, {type_} %value
  ret {type_} %kept
}}
{declared}"""
