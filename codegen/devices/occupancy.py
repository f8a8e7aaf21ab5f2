"""How many blocks of a kernel fit a multiprocessor of a GPU."""

from __future__ import annotations

from tcl.codegen.devices.gpu import GpuProfile
from tcl.common.dataclass import dataclass


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
_FEW = 128
"""Threads of a block that may have all registers that a thread can have: two such blocks still
fit."""
_MANY = 128
"""Registers of a thread that leave room for what it reads ahead."""


def fitting(threads: int, registers: int, shared: int, profile: GpuProfile) -> Occupancy:
    """The theoretical occupancy by blocks of so many threads, each with so many registers, and
    bytes of shared memory, as ``cudaOccMaxActiveBlocksPerMultiprocessor`` of the CUDA toolkit's
    ``cuda_occupancy.h`` computes it: without a preference between shared memory and cache, and for
    at most one barrier."""
    warps = -(-threads // profile.warp)
    limits = {
        "warps": _by_warps(warps, threads, profile),
        "registers": _by_registers(warps, registers, profile),
        "shared memory": _by_shared(shared, profile),
        "blocks": profile.blocks_per_multiprocessor,
    }
    blocks = min(limits.values())
    return Occupancy(
        blocks=blocks,
        warps=blocks * warps,
        share=blocks * warps / profile.warps_per_multiprocessor,
        limits=tuple(name for name, limit in limits.items() if limit == blocks),
    )


def promised(threads: int, blocks: int | None, shared: int, profile: GpuProfile) -> int:
    """How many blocks of a kernel compilers are told to fit into a multiprocessor: where there are
    so few, by their number and shared memory, that registers are left for each thread. 0: nothing.

    In a kernel that it is told this of, NVRTC 13 has many reads on their way at once; in others it
    reads little before it needs it, so that more blocks may fit. ``blocks``: in all, if known.
    """
    if threads <= _FEW:
        return 1
    if blocks is None:
        return 0
    room = fitting(threads, 0, shared, profile).blocks
    there = max(1, min(room, -(-blocks // profile.multiprocessors)))
    return there if there * threads * _MANY <= profile.registers_per_multiprocessor else 0


def _by_warps(warps: int, threads: int, profile: GpuProfile) -> int:
    if threads > profile.threads_per_block:
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
