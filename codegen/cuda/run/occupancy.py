"""What a kernel takes of a GPU, and how many of its blocks fit a multiprocessor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tcl.codegen.cuda.emit.module import Launch
from tcl.codegen.devices.gpu import GpuProfile


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes, as the assembler says."""

    kernel: str
    registers: int
    """Per thread."""
    shared: int
    """Bytes per block that the kernel has in itself; those of ``Launch.shared`` come on top."""
    spill_stores: int
    """Bytes per thread that are written to memory for want of registers."""
    spill_loads: int
    stack: int
    """Bytes per thread."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How full a multiprocessor is of one kernel, at the most."""

    blocks: int
    """At once; 0 if the kernel cannot be launched."""
    warps: int
    share: float
    """Of the warps that a multiprocessor holds."""
    limits: tuple[str, ...]
    """What lets no further block in: ``warps``, ``registers``, ``shared memory``, ``blocks``."""


REGISTER_UNIT = 256
"""Registers that a warp gets at once."""
_SCHEDULERS = 4
"""Parts of a multiprocessor, each with its share of registers and of warps."""
_NO_LIMIT = 1 << 16


def occupancy(resources: Resources, launch: Launch, profile: GpuProfile) -> Occupancy:
    """The theoretical occupancy, as ``cudaOccMaxActiveBlocksPerMultiprocessor`` of the CUDA
    toolkit's ``cuda_occupancy.h`` computes it: without a preference between shared memory and
    cache, and for at most one barrier."""
    warps = -(-launch.threads // profile.warp)
    limits = {
        "warps": _by_warps(warps, launch, profile),
        "registers": _by_registers(warps, resources.registers, profile),
        "shared memory": _by_shared(resources.shared + launch.shared, profile),
        "blocks": profile.blocks_per_multiprocessor,
    }
    blocks = min(limits.values())
    return Occupancy(
        blocks=blocks,
        warps=blocks * warps,
        share=blocks * warps / profile.warps_per_multiprocessor,
        limits=tuple(name for name, limit in limits.items() if limit == blocks),
    )


def _by_warps(warps: int, launch: Launch, profile: GpuProfile) -> int:
    if launch.threads > profile.threads_per_block:
        return 0
    return profile.warps_per_multiprocessor // warps


def _by_registers(warps: int, registers: int, profile: GpuProfile) -> int:
    """Each warp's registers lie in one part of the multiprocessor. A block is let in only if it
    would fit with as many warps in each part, which is how the hardware checks it."""
    each = _rounded(registers * profile.warp, REGISTER_UNIT)
    available = profile.registers_per_multiprocessor
    if each == 0:
        return _NO_LIMIT
    if each * _rounded(warps, _SCHEDULERS) > available or registers > REGISTER_UNIT:
        return 0
    return available // _SCHEDULERS // each * _SCHEDULERS // warps


def _by_shared(shared: int, profile: GpuProfile) -> int:
    taken = _rounded(shared + profile.shared_reserved, profile.shared_unit)
    if taken > profile.shared_per_block + profile.shared_reserved:
        return 0
    return profile.shared_per_multiprocessor // taken if taken else _NO_LIMIT


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit


_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_PROPERTIES = re.compile(r"Function properties for (\w+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_STACK = re.compile(r"(\d+) bytes cumulative stack size")


def read_resources(log: str) -> Iterator[Resources]:
    """What the assembler says of each kernel in its log, with ``-v``."""
    kernel = function = ""
    frames: dict[str, tuple[int, int, int]] = {}
    for line in log.splitlines():
        if found := _ENTRY.search(line):
            kernel = found[1]
        elif found := _PROPERTIES.search(line):
            function = found[1]
        elif found := _FRAME.search(line):
            frames[function] = int(found[1]), int(found[2]), int(found[3])
        elif kernel and (found := _USED.search(line)):
            stack, stores, loads = frames.get(kernel, (0, 0, 0))
            shared, whole = _SHARED.search(line), _STACK.search(line)
            yield Resources(
                kernel=kernel,
                registers=int(found[1]),
                shared=int(shared[1]) if shared else 0,
                spill_stores=stores,
                spill_loads=loads,
                stack=int(whole[1]) if whole else stack,
            )
            kernel = ""
