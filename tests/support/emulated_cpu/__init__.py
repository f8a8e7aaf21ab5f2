"""Instructions that a processor lacks, as functions: so that kernels with them run anywhere.

A profile says what is emulated (``CpuProfile.emulated``). What it has so is chosen, scheduled and
emitted as on a machine that has it; only then, right before LLVM compiles a kernel, its calls of
the target's intrinsics become calls of functions with the meaning that Intel's manual gives the
instructions. That shows results right, not fast.
"""

from __future__ import annotations

from dataclasses import replace

from emulated_cpu.instructions import emulating
from tcl.codegen.cpu.object_code import compile as compiling
from tcl.codegen.devices.cpu import CpuProfile, host_cpu

compiling.emulating = emulating


def host_with(features: str, vector_bits: int = 0) -> CpuProfile:
    """This machine, with features such as ``+amx-tile,+amx-int8`` that are emulated."""
    host = host_cpu()
    return replace(host, emulated=features, vector_bits=vector_bits or host.vector_bits)
