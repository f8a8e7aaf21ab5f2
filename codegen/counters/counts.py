"""The counts of a kernel, and of all kernels of a def."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from tcl.codegen.counters.accesses import Memory
from tcl.codegen.counters.arithmetic import Instructions
from tcl.codegen.counters.dram import Loads, dram_bytes, loads_of
from tcl.codegen.counters.places import Place
from tcl.codegen.counters.traffic import Traffic, traffic_of
from tcl.codegen.counters.walk import Walk
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.devices.occupancy import Occupancy, fitting
from tcl.codegen.loopir import ir
from tcl.common.dataclass import dataclass

_OTHERS, _READ = 22, 0.6
"""Registers of a thread for addresses and counters, and for each word that it reads before it
computes, about: of the suite's kernels on an H200, as ptxas 13.5 has them."""


@dataclass(frozen=True, slots=True)
class KernelCounts:
    """What one launch asks of a GPU: counted, not measured."""

    profile: GpuProfile
    blocks: int
    threads: int
    """Of a block."""
    shared: int
    """Bytes of shared memory of a block."""
    registers: int
    """Of a thread, about."""
    occupancy: Occupancy
    """With so many registers."""
    traffic: Mapping[Memory, Traffic]
    """Of all blocks."""
    instructions: Mapping[str, float]
    """Those of all warps by kind, as in ``arithmetic.KINDS``; ``integer`` and ``branch``
    about."""
    dram_read: int
    """Bytes that have to come from memory, at least."""
    dram_written: int
    loads: tuple[Loads, ...]
    """What is on its way from global memory at once."""

    @property
    def resident(self) -> int:
        """Blocks that a multiprocessor has at once."""
        each = -(-self.blocks // self.profile.multiprocessors)
        return max(1, min(self.occupancy.blocks, each))

    @property
    def waves(self) -> float:
        """How many times the device is filled with blocks, the last time in part."""
        return self.blocks / (max(1, self.occupancy.blocks) * self.profile.multiprocessors)

    @property
    def busiest(self) -> int:
        """Blocks of the multiprocessor that has the most."""
        return -(-self.blocks // self.profile.multiprocessors)

    @property
    def tail(self) -> float:
        """The share of all multiprocessors' time that is worked, if all blocks take the same."""
        return self.blocks / (self.busiest * self.profile.multiprocessors)

    @property
    def in_flight(self) -> float:
        """Bytes that a multiprocessor has on their way from global memory at once, the most."""
        return self.resident * max((x.in_flight for x in self.loads), default=0.0)

    @property
    def shared_wavefronts(self) -> int:
        """Of all blocks."""
        return sum(t.units for kind, t in self.traffic.items() if not kind.is_global)

    @property
    def sectors(self) -> int:
        """Of global memory."""
        return sum(t.units for kind, t in self.traffic.items() if kind.is_global)


def count_program(program: ir.Built, profile: GpuProfile) -> tuple[KernelCounts, ...]:
    """The counts of all kernels. Sizes have to be known."""
    return tuple(count_kernel(program, kernel, profile) for kernel in program.kernels)


def count_kernel(program: ir.Built, kernel: ir.Kernel, profile: GpuProfile) -> KernelCounts:
    """The counts of a kernel. Sizes have to be known."""
    found = Walk(program, kernel, profile.idle_sums).run()
    blocks = math.prod(folds[0].count for folds in kernel.grid)
    registers = min(profile.registers_per_thread, _registers(found))
    fullness = fitting(kernel.threads, registers, kernel.shared, profile)
    asked = [(a, traffic_of(a).left(a.different)) for a in found.accesses]
    traffic = dict.fromkeys(Memory, Traffic())
    for access, own in asked:
        traffic[access.kind] += own
    read, written = dram_bytes(program, asked, blocks, fullness.blocks, profile)
    return KernelCounts(
        profile=profile,
        blocks=blocks,
        threads=kernel.threads,
        shared=kernel.shared,
        registers=registers,
        occupancy=fullness,
        traffic=traffic,
        instructions=_executed(found.work),
        dram_read=read,
        dram_written=written,
        loads=loads_of(asked, kernel.threads),
    )


def _registers(found: Walk) -> int:
    return round(_OTHERS + sum(found.held_words.values()) + _READ * found.read_words)


def _executed(work: Sequence[tuple[Place, Instructions]]) -> dict[str, float]:
    """The instructions of all warps."""
    total: dict[str, float] = defaultdict(float)
    for place, own in _instructions_by_place(work):
        warps = place.warps()
        for kind, number in own.items():
            total[kind] += number * warps
    return dict(total)


def _instructions_by_place(
    work: Iterable[tuple[Place, Instructions]],
) -> Iterable[tuple[Place, dict[str, float]]]:
    """The instructions at each place."""
    found: dict[int, tuple[Place, dict[str, float]]] = {}
    for place, own in work:
        sums = found.setdefault(id(place), (place, {}))[1]
        for kind, number in own.items():
            sums[kind] = sums.get(kind, 0.0) + number
    return found.values()
