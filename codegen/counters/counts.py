"""The counts of a kernel and of all kernels of a def, and what has to come from memory."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tcl.codegen.counters.arithmetic import Instructions
from tcl.codegen.counters.places import Place
from tcl.codegen.counters.requests import SECTOR, Access, Box, Memory, Traffic, traffic_of
from tcl.codegen.counters.walk import record_of
from tcl.codegen.devices.banks import WARP
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.devices.occupancy import Occupancy, fitting, promised
from tcl.codegen.loopir import ir
from tcl.common.dataclass import dataclass

_OTHERS, _READ = 22, 0.6
"""Registers of a thread for addresses and counters, and for each word that it reads before it
computes, about. Of the suite's kernels on an H200, as ptxas 13.5 has them."""
_KEEP = 44
"""Registers beside its results with which a thread of a kernel that is promised fewer than it needs
makes do, about: with less room NVRTC 13.5 takes what it would take without the promise."""
AHEAD, _NOT_AHEAD = 100, 24
"""Words that a thread has on their way to registers, and registers for them, at most, about: in
kernels that are promised registers (``occupancy.promised``), and in others. Of 375 kernels on an
H100, as ptxas 13.5 has them."""


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
    last: KernelCounts | None = None
    """What the last block of each group asks for after all of that: of these blocks alone, and not
    in the counts above."""

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


def count_program(
    program: ir.Built, profile: GpuProfile, *, told: bool = True
) -> tuple[KernelCounts, ...]:
    """The counts of all kernels. Sizes have to be known. ``told``: whether compilers are told which
    blocks fit, as they are of our kernels."""
    found, cached = list[KernelCounts](), frozenset[str]()
    for kernel in program.kernels:
        own, cached = _count_kernel(program, kernel, profile, cached, told)
        found.append(own)
    return tuple(found)


def _count_kernel(
    program: ir.Built, kernel: ir.Kernel, profile: GpuProfile, cached: frozenset[str], told: bool
) -> tuple[KernelCounts, frozenset[str]]:
    """The counts of a kernel, and the tensors that it leaves in the second cache. ``cached``: those
    that the kernel before left there."""
    found = record_of(program, kernel, profile.idle_sums)
    held = sum(found.held_words.values())
    number = math.prod(folds[0].count for folds in kernel.grid)
    fit = promised(kernel.threads, number, kernel.shared, profile) if told else 0
    needed, ahead = registers_needed(held, found.read_words, kernel.threads, fit, profile)
    registers = min(profile.registers_per_thread, needed)
    parts: list[KernelCounts] = []
    for last in (False, True):
        accesses = [a for a in found.accesses if found.in_last(a.place) == last]
        work = [(place, own) for place, own in found.work if found.in_last(place) == last]
        if last and not work:
            continue
        fullness = fitting(kernel.threads, registers, kernel.shared, profile)
        blocks = math.prod(f[0].count for f in kernel.grid if not (last and found.among in f))
        executed = _executed(work)
        if spilled := min(held, needed - registers):  # read and written with each product
            local = 2 * spilled / held * executed.get("fma", 0)
            executed["local"] = executed.get("local", 0) + local
        asked = [(a, traffic_of(a).left(a.different)) for a in accesses]
        traffic = dict.fromkeys(Memory, Traffic())
        for access, own in asked:
            traffic[access.kind] += own
        about = blocks, fullness.blocks, profile, cached
        read, written, left = dram_bytes(program, asked, *about)
        cached = left | cached if last else left
        made = KernelCounts(
            profile=profile,
            blocks=blocks,
            threads=kernel.threads,
            shared=kernel.shared,
            registers=registers,
            occupancy=fullness,
            traffic=traffic,
            instructions=executed,
            dram_read=read,
            dram_written=written,
            loads=loads_of(program, asked, kernel.threads, ahead),
        )
        parts.append(made)
    return replace(parts[0], last=parts[1] if len(parts) > 1 else None), cached


def registers_needed(
    held: int, read: float, threads: int, fit: int, profile: GpuProfile
) -> tuple[int, int]:
    """Registers of a thread, about, and words of them on their way, at most; ``held``, ``read``:
    the words that it holds and reads; ``fit``: the blocks that it is told to leave room for."""
    ahead = AHEAD if fit else _NOT_AHEAD
    needed = round(_OTHERS + held + min(ahead, _READ * read))
    room = profile.registers_per_multiprocessor // (fit * threads) if fit else 0
    if held + _KEEP <= room:  # else compilers do not keep to what they are told
        needed = min(needed, room)
    return needed, ahead


def _executed(work: Sequence[tuple[Place, Instructions]]) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    known: dict[tuple[object, ...], int] = {}
    for place, own in _instructions_by_place(work):
        at = id(place.active), id(place.tests), *place.loops.items()  # all of them are kept
        if at not in known:
            known[at] = place.warps()
        warps = known[at]
        for kind, number in own.items():
            total[kind] += number * warps
    return dict(total)


def _instructions_by_place(
    work: Iterable[tuple[Place, Instructions]],
) -> Iterable[tuple[Place, dict[str, float]]]:
    found: dict[int, tuple[Place, dict[str, float]]] = {}
    for place, own in work:
        sums = found.setdefault(id(place), (place, {}))[1]
        for kind, number in own.items():
            sums[kind] = sums.get(kind, 0.0) + number
    return found.values()


_KEPT = 0.8
"""The share of the second cache that holds what is read again, about."""


def cache_room(profile: GpuProfile) -> float:
    """Bytes that the second cache keeps until they are read again."""
    return _KEPT * profile.l2_bytes


_NEAR = 0.1
"""What a read takes that is in the first cache, of the latency of the second one, about."""
_READS = (Memory.GLOBAL_READ, Memory.GLOBAL_COPY)

Asked = Sequence[tuple[Access, Traffic]]


@dataclass(frozen=True, slots=True)
class Loads:
    """Reads of global memory that are begun before any of them is waited for."""

    in_flight: float
    """Bytes of a block."""
    times: int
    """How often one after the other, in a block."""
    bytes: int
    """In all blocks."""
    first: int
    """Of these, what no block has read before, at most."""
    waited: float = 0.0
    """How often a thread waits for the second cache, one time after the other, until what it reads
    to registers is there."""
    fills: float = 0.0
    """The share of these bytes that a block waits for with nothing else to do: all of a panel that
    is not filled ahead, the first tile of one that is."""


def loads_of(program: ir.Built, asked: Asked, threads: int, ahead_words: int) -> tuple[Loads, ...]:
    """The reads of a kernel, by where they are begun. ``ahead_words``: those that a thread has on
    their way to registers, at most."""
    groups: dict[tuple[int, tuple[tuple[str, int], ...]], list[tuple[Access, Traffic]]]
    groups = defaultdict(list)
    for access, own in asked:
        if access.kind in _READS:
            groups[access.phase, tuple(access.outside.loops.items())].append((access, own))
    found = []
    for (_, loops), members in groups.items():
        visits = max(1, math.prod(n for _, n in loops))
        blocks = max(1, math.prod(n for name, n in loops if name.startswith("grid ")))
        moved = sum(own.bytes for _, own in members)
        ahead = max(access.ahead for access, _ in members)
        times = max(1, visits // blocks)
        in_flight = moved / visits * min(ahead, times)
        waited = [
            (a, own) for a, own in members if a.kind is Memory.GLOBAL_READ and a.early is None
        ]
        words = sum(own.bytes for _, own in waited) / visits / threads / 4
        turns = times * max(1.0, words / ahead_words)
        turns *= max((_new(program, a, own, blocks, threads) for a, own in waited), default=0.0)
        early = {a.early for a, _ in members if a.fills}
        fills = 1.0 if False in early else 1 / times if True in early else 0.0
        first = sum(
            min(own.units * SECTOR, _bytes(program.tensor(a.tensor).layout, a.box.of_all))
            for a, own in members
            if a.box is not None
        )
        each = -(-times // ahead), moved, first, turns, fills
        found.append(Loads(in_flight, *each))
    return tuple(found)


def _new(program: ir.Built, access: Access, own: Traffic, blocks: int, threads: int) -> float:
    """The share of a block's reads, at most, that are not in the first cache yet: warps may read
    the same at once, but what one of them reads again is there."""
    if access.box is None:
        return 1.0
    box = _bytes(program.tensor(access.tensor).layout, access.box.of_block)
    asked = own.units * SECTOR / blocks / -(-threads // WARP)
    return max(_NEAR, min(1.0, box / max(1.0, asked)))


def dram_bytes(
    program: ir.Built,
    asked: Asked,
    blocks: int,
    resident: int,
    profile: GpuProfile,
    cached: frozenset[str] = frozenset(),
) -> tuple[int, int, frozenset[str]]:
    """Bytes that have to come from memory, and those that are written, at least: all that blocks
    read once, and again what the second cache cannot have kept, because too much was read since.
    ``cached``: tensors that are there at the beginning; third: those that are written and are there
    at the end."""
    by_tensor: dict[str, list[tuple[Access, Traffic]]] = defaultdict(list)
    for access, own in asked:
        if access.kind.is_global and access.box is not None:
            by_tensor[access.tensor].append((access, own))
    room = cache_room(profile)
    at_once = max(1, min(blocks, resident * profile.multiprocessors))
    layouts = {name: program.tensor(name).layout for name in by_tensor}
    whole = {
        name: max(_bytes(layouts[name], a.box.of_all) for a, _ in members if a.box)
        for name, members in by_tensor.items()
    }
    own_blocks = {
        name: max(_bytes(layouts[name], a.box.of_block) for a, _ in members if a.box)
        for name, members in by_tensor.items()
    }
    kept = sum(whole.values()) <= room
    again = at_once * sum(own_blocks.values()) > room
    read = written = 0
    for name, members in by_tensor.items():
        reads = [(a, t) for a, t in members if a.kind in _READS]
        if len(reads) < len(members):
            written += whole[name]
        if not reads:
            continue
        phases = len({a.phase for a, _ in reads}) if again and not kept else 1
        requested = sum(t.units for _, t in reads) * SECTOR
        once = whole[name]
        if not kept:
            box = max((a.box for a, _ in reads if a.box), key=lambda b: math.prod(b.of_block))
            once = _in_waves(box, reads[0][0], own_blocks[name], once, at_once)
        if not (kept and name in cached):
            read += max(min(requested, once * phases), min(requested, whole[name]))
    made = (n for n, own in by_tensor.items() if any(a.kind not in _READS for a, _ in own))
    return read, written, frozenset(made if kept else ())


def _in_waves(box: Box, access: Access, own: int, whole: int, at_once: int) -> int:
    """Bytes of a tensor that all waves of blocks read, each of its own at once."""
    loops = [(n, c) for n, c in access.outside.loops.items() if n.startswith("grid ")]
    blocks = math.prod(c for _, c in loops)
    tiles, left = 1, at_once
    for name, count in reversed(loops):
        here = min(count, max(1, left))
        left = -(-left // count)
        if name in box.grid:
            tiles *= here
    waves = -(-blocks // at_once)
    return max(whole, waves * min(whole, tiles * own))


def _bytes(layout: ir.Layout, box: Iterable[int]) -> int:
    """The bytes of a box in whole sectors of what lies in order."""
    total, row = 1, layout.itemsize
    for stride, reach in sorted(zip(map(abs, layout.strides), box, strict=True)):
        if stride == row and total == 1:
            row *= reach
        elif stride:
            total *= reach
    return total * -(-row // SECTOR) * SECTOR
