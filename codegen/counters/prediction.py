"""The time that counts ask for at least, pipe by pipe; what binds is the longest.

Every figure is of the architecture or of the device's data sheet; what is not said there stands
here, with where it is from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from tcl.codegen.counters.counts import AHEAD, KernelCounts, cache_room
from tcl.codegen.counters.requests import SECTOR, Memory
from tcl.codegen.devices.banks import WARP
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir.cost import Cost
from tcl.common.dataclass import dataclass

LATENCY = 800e-9
"""Seconds until memory answers while it is busy, about (loaded latency of HBM on an H100)."""
_NEAR_LATENCY = 300e-9
"""Likewise of the second cache."""
_BEGIN = 850e-9
"""Seconds from the beginning of a kernel until what its blocks read first is there, about: nothing
else is done meanwhile. This one and the next: of 19 spaces of kernels measured on an H100
(``benchmarks.transfer``)."""
_ARRIVING = 1.5e-6
"""Seconds until a block knows whether it is the last one: a fence waits until what it wrote is in
the second cache, and then it counts itself there."""
ACHIEVED = 0.9
"""The share of the data sheet's bandwidth that a copy reaches, about."""
L2_BYTES = 64
"""That a multiprocessor gets from the second cache in a cycle."""
WRITTEN_BYTES = 11
"""That a multiprocessor gives to the second cache in a cycle, in whole sectors, while all of them
do: a slice takes one in 1.5 of its cycles, as half of all sectors go on to the other half of the
cache (``lts__xbar2lts_cycles_active`` of an H100: 80 slices at 1.7 GHz, 132 multiprocessors at
1.98)."""
SCHEDULERS = 4
"""Instructions of warps that a multiprocessor begins in a cycle."""
_HIDING, _ALONE = 8, 0.5
"""Warps of a multiprocessor from which on what they share is always asked for something, and how
often one alone asks, about: two for each scheduler hide what an instruction waits for another
one."""
_SLOW_LANES = 16
"""Of reciprocals, roots, powers and conversions in a cycle."""
_SHUFFLE_LANES, _INTEGER_LANES = 32, 64
_LINE_SECTORS = 4
"""Sectors that the first cache takes in a cycle."""
_MMA_FLOPS = 2 * 16 * 8 * 16
"""Of one instruction for 16-bit floats; one for tf32 has half as many, at half the rate."""
_MMA_SHARES = {(9, 0): 2 / 3}
"""The share of the data sheet's rate that instructions of one warp reach, by compute capability: on
sm_90 one begins every 6 cycles, and that rate, of instructions of four warps, is one every 4 cycles
(6.0 cycles of the pipe for each HMMA of a product of 4096 on an H100, by Nsight Compute)."""
_FMA_SHARES = {(9, 0): 0.77}
"""The share of cycles in which fused products begin, at most, by compute capability: two reads of
a register file's port for three operands stand in the way. cuBLAS and the best of our kernels reach
it on an H100."""
_MEETING = 80e-9
"""Seconds from a barrier until a block's warps work again as before, about: what they read of
shared memory then is waited for by all (tiles of 32 and 64 points of 16-bit products of 4096 on an
H100)."""
APART = 0.03
"""The share of a pipe's time that no other one's covers, about."""
LAUNCH = 1.5e-6
"""Seconds between two kernels, about."""
APIECE = LAUNCH + _BEGIN
"""Seconds of each kernel that reads something, whatever it does."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a kernel takes at least: counted, not measured."""

    pipes: Mapping[str, float]
    """Seconds that each would be busy on the multiprocessor with the most blocks."""
    last: float = 0.0
    """Seconds that the last blocks take after all the others."""
    begin: float = 0.0
    """Seconds until what is read first is there."""
    apart: float = 0.0
    """Seconds in which warps wait for each other at barriers; and in which results are written and
    nothing else is done."""

    @property
    def binding(self) -> str:
        """The pipe that is busy the longest."""
        return max(self.pipes, key=lambda name: self.pipes[name])

    @property
    def waited(self) -> float:
        """Seconds in which no pipe is busy."""
        busy = max((s for name, s in self.pipes.items() if name != "latency"), default=0.0)
        return self.pipes[self.binding] - busy

    @property
    def seconds(self) -> float:
        """With the launch."""
        return self.begin + self.pipes[self.binding] + self.apart + self.last + LAUNCH

    @property
    def rank(self) -> float:
        """Seconds with some of those of all other pipes, which do not overlap wholly: what tells
        kernels apart that one pipe binds alike."""
        longest = self.pipes[self.binding]
        return self.seconds + APART * (sum(self.pipes.values()) - longest)


def predict(counts: KernelCounts) -> Prediction:
    """What these counts come to on their device."""
    own, begin = _pipes(counts), _BEGIN if counts.loads else 0.0
    apart = _apart(counts, own)
    if counts.last is None:
        return Prediction(own, begin=begin, apart=apart)
    last = _ARRIVING + max(_pipes(counts.last).values(), default=0.0)
    return Prediction(own, last, begin, apart)


def _pipes(counts: KernelCounts) -> dict[str, float]:
    """Seconds of each pipe that has something to do."""
    profile, n = counts.profile, counts.instructions
    blocks = max(1, counts.blocks)
    warps = counts.resident * -(-counts.threads // WARP)
    clock = counts.busiest / blocks / profile.clock
    """Seconds for one cycle's work of all blocks' sums."""
    cycle, common = clock / scheduled(warps), clock / hidden(warps)

    def lanes(count: float, width: int) -> float:
        return count * WARP / width * cycle

    asked = counts.traffic
    written = asked[Memory.GLOBAL_WRITE]
    first = asked[Memory.GLOBAL_READ].lines + max(written.requests, written.units / _LINE_SECTORS)
    tensor = profile.tensor_flops / profile.multiprocessors / profile.clock
    products = n.get("mma", 0) / _MMA_SHARES.get(profile.capability, 1.0) + n.get("wgmma", 0)
    float32 = n.get("fma", 0) + n.get("float", 0)
    begun = sum(n.values()) + n.get("fma", 0) * (fma_cycles(profile) - 1)
    begun -= n.get("wgmma", 0) + n.get("panel", 0)
    wavefronts = counts.shared_wavefronts + n.get("panel", 0)
    pipes = {
        "float32": lanes(float32, profile.float32_lanes),
        "float64": lanes(n.get("double", 0), profile.float64_lanes),
        "tensor cores": products * _MMA_FLOPS / tensor * cycle,
        "special functions": lanes(n.get("mufu", 0) + n.get("convert", 0), _SLOW_LANES),
        "integers": lanes(n.get("integer", 0), _INTEGER_LANES),
        "issue": begun / SCHEDULERS * cycle,
        "shared memory": wavefronts * common,
        "shuffles": n.get("shuffle", 0) * WARP / _SHUFFLE_LANES * common,
        "first cache": (first + n.get("local", 0) + wavefronts) * common,
        "second cache": counts.sectors * SECTOR / L2_BYTES * common,
    }
    work = max(pipes.values())
    pipes["slices"] = _slice_seconds(counts)
    pipes["memory"], filling = _memory_seconds(counts)
    pipes["latency"] = _waiting(counts, work + filling)
    return {name: seconds for name, seconds in pipes.items() if seconds}


def _slice_seconds(counts: KernelCounts) -> float:
    """Seconds in which slices of the second cache take results, each sector as often as a warp
    writes a part of it."""
    profile = counts.profile
    written = counts.traffic[Memory.GLOBAL_WRITE].units * SECTOR
    rate = WRITTEN_BYTES * profile.clock * profile.multiprocessors
    return written / rate


def _apart(counts: KernelCounts, pipes: Mapping[str, float]) -> float:
    """Seconds that nothing covers: after barriers, where a multiprocessor has no other block, and
    while results are written. Of parts that a last block adds up, that is in what it waits for."""
    warps = -(-counts.threads // WARP) * max(1, counts.blocks)
    barriers = counts.instructions.get("barrier", 0) / warps * counts.busiest / counts.resident
    if "wgmma" in counts.instructions and not counts.traffic[Memory.SHARED_WRITE].requests:
        barriers = 0  # warpgroups still multiply meanwhile
    work = max((s for name, s in pipes.items() if name not in ("slices", "memory")), default=0.0)
    slices = pipes.get("slices", 0.0) if counts.last is None else 0.0
    alone = in_turn(work + _MEETING * barriers, slices, counts.busiest, counts.resident)
    return max(0.0, alone - max(pipes.values(), default=0.0))


def in_turn(work: float, slices: float, blocks: int, resident: int) -> float:
    """The time of both, where a multiprocessor has so many blocks, some ``resident`` at once. What
    begins together works together and then writes, all of it; of the turns after the first one, all
    of these blocks but one go on meanwhile."""
    turns = max(1.0, blocks / resident)
    covered = 1 + (turns - 1) * (1 - 1 / resident)
    return max(work, slices) + min(work, slices) / covered


def fma_cycles(profile: GpuProfile) -> float:
    """Cycles of a scheduler from one fused product to the next, at least."""
    return 1 / _FMA_SHARES.get(profile.capability, 1.0)


def scheduled(warps: int) -> float:
    """The share of cycles in which a multiprocessor's schedulers can go on with one of their warps:
    all of them, until the one with the most is done."""
    most = SCHEDULERS * -(-warps // SCHEDULERS)
    return hidden(most) * warps / most


def hidden(warps: int) -> float:
    """The share of cycles in which some of a multiprocessor's warps can go on."""
    return min(1.0, _ALONE + (1 - _ALONE) * warps / _HIDING)


def memory_rate(profile: GpuProfile) -> float:
    """Bytes that memory moves in a second, about."""
    return ACHIEVED * profile.memory_bytes_per_second


def _moving_rate(moved: float, profile: GpuProfile) -> float:
    """Bytes in a second of what one kernel writes, so many bytes, and the next one reads."""
    near = L2_BYTES * profile.multiprocessors * profile.clock
    return near if moved <= cache_room(profile) else memory_rate(profile)


def adding_up_seconds(
    parts: int, results: int, of_block: int, threads: int, profile: GpuProfile
) -> tuple[float, float]:
    """Seconds to add up so many parts of the results: by a second kernel, and by the last block of
    each group; ``results``, ``of_block``: bytes of one part of all results, and of one block's,
    which has so many ``threads``."""
    near = L2_BYTES * profile.clock
    second = APIECE + (parts + 1) * results / _moving_rate(parts * results, profile)
    groups = -(-results // of_block)
    busiest = -(-groups // profile.multiprocessors)
    waits = max(1.0, parts * of_block / threads / (4 * AHEAD))
    last = _ARRIVING + busiest * (waits * _NEAR_LATENCY + (parts + 1) * of_block / near)
    return second, last


def needed_in_flight(profile: GpuProfile) -> float:
    """Bytes that a multiprocessor has to have on their way so that memory is always busy: Little's
    law."""
    return memory_rate(profile) * LATENCY / profile.multiprocessors


def _waiting(counts: KernelCounts, work: float) -> float:
    """Seconds that blocks wait for the second cache, one read after the other. Where threads wait
    until what they read is there, they do ``work`` after that: warps began together, and wait
    together."""
    turns = -(-counts.busiest // counts.resident)
    times = sum(x.waited + math.ceil(x.times * x.fills) for x in counts.loads)
    waited = turns * times * _NEAR_LATENCY
    ahead = turns * sum(x.times for x in counts.loads) * _NEAR_LATENCY
    return max(ahead, waited + work if waited else 0.0)


def _memory_seconds(counts: KernelCounts) -> tuple[float, float]:
    """Seconds that memory takes, where reads keep it busy, longer where they do not; and those of
    panels or first tiles that a block waits for."""
    profile = counts.profile
    rate = memory_rate(profile)
    used = min(profile.multiprocessors, counts.blocks)
    seconds = counts.dram_written / rate
    filling, moved = 0.0, sum(x.first for x in counts.loads)
    for group in counts.loads:
        own = counts.dram_read * group.first / moved if moved else 0
        reached = group.in_flight * counts.resident * used / LATENCY
        taken = own / max(1.0, min(rate, reached))
        seconds += taken
        filling += taken * group.fills
    return seconds, filling


def roofline(cost: Cost, profile: GpuProfile) -> float:
    """Seconds that nobody can do the work of a def in less: of its operations at the peaks of the
    data sheet, or of memory."""
    products = sum(n for kind, n in cost.products.items() if "float" in kind)
    computing = cost.single / profile.float32_flops + products / profile.tensor_flops
    return max(computing, cost.bytes_moved / memory_rate(profile))


def share(cost: Cost, predictions: Iterable[Prediction], profile: GpuProfile) -> float:
    """The roofline's time over the predicted one."""
    return roofline(cost, profile) / sum(p.seconds for p in predictions)
