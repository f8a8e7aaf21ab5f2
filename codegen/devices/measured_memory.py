"""What memory and caches of the machine at hand are like, where that was measured: no data sheet
tells it, and machines with the same processor differ. ``tcl devices --measure`` measures and keeps
it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tcl.common.dataclass import dataclass
from tcl.common.folder import cache_folder, keep, read_kept

if TYPE_CHECKING:
    from tcl.codegen.devices.cpu_profile import CpuProfile

_FILE = "memory.json"
_VERSION = 2
"""Of how it is measured: what was found otherwise is not asked."""
NEVER = 1 << 62
"""More bytes than any result has."""


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """How results are best written, and what reading costs one core."""

    streamed_from: int
    """Bytes of results, beside an operand of that size, from which on stores past the caches pay;
    ``NEVER`` if none."""
    boundary_gain: float
    """How many times as fast short rows in the second cache were written whose vectors, as long as
    cache lines, begin on boundaries."""
    cached_bytes: int
    """Bytes of the largest array that a core reads again from its caches, but for a fifth: what it
    really has of the last one."""
    bytes_per_cycle: float
    """From memory, read in order, in a cycle of a unit that multiplies and adds."""


def kept_memory(device: CpuProfile, folder: Path | None = None) -> MeasuredMemory | None:
    """What was measured of this processor with these instructions; None if nothing was."""
    found = read_kept(folder or cache_folder(), _FILE).get(_identity(device), {})
    try:
        memory = MeasuredMemory(
            int(found["streamed_from"]),
            float(found["boundary_gain"]),
            int(found["cached_bytes"]),
            float(found["bytes_per_cycle"]),
        )
    except (TypeError, KeyError, ValueError, OverflowError):
        return None
    positive = memory.streamed_from > 0 and memory.cached_bytes > 0
    likely = 0.1 < memory.boundary_gain < 10 and 0.01 < memory.bytes_per_cycle < 1000
    return memory if positive and likely else None


def keep_memory(device: CpuProfile, memory: MeasuredMemory, folder: Path | None = None) -> None:
    """Keep what was measured, where there is a place for it."""
    keep(folder or cache_folder(), _FILE, {_identity(device): asdict(memory)})


def _identity(device: CpuProfile) -> str:
    caches = f"L2 {device.l2_bytes >> 10} KiB; L3 {device.l3_bytes >> 10} KiB"
    return f"{device.identity}; {caches}; {_VERSION}"
