"""What the knobs of a GPU's kernels have to meet: what cannot work, or is no use trying.

A constraint reads no more values than it needs: those that it has read are drawn again where it is
not met. The default meets all of them, whatever it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.passes.cpu.stage import dims_of
from tcl.codegen.passes.gpu.bind import MAX_HELD
from tcl.codegen.passes.gpu.panel import LINE
from tcl.tuner.space.gpu.kernel_groups import KernelKnobs, Member, chunks_of, unit_of
from tcl.tuner.space.knobs import Value
from tcl.tuner.space.search_space import Constraint

Values = Mapping[str, Value]

_LINES = 8
"""Neighbours in memory that threads and lanes touch together, at least: a sector of floats."""
_WRITTEN_OUT = 1024
"""Points in a thread's code: more take long to compile."""
_ADDRESSES = 24
"""Registers for what is neither summed up nor read."""
_PADDING = 32
"""Bytes at most that are added to a row of a panel."""
_WAVES = 4
"""Blocks per multiprocessor up to which reductions are split."""
_OF_BLOCK = 4096
"""Points that are enough for a block."""


def constraints(
    knobs: KernelKnobs, program: ir.Program, profile: GpuProfile, default: Values
) -> list[Constraint]:
    """Of the kernels of some nests; each says why a configuration does not meet it."""
    found: list[Constraint] = []
    for member in knobs.members:
        nest = _Nest(member, profile)
        found += [nest.threads, nest.coalesced, nest.registers]
        if member.knobs.divided.use_cores and member.knobs.divided.split:
            found.append(nest.on_cores)
        if member.knobs.panels.knobs:
            found.append(nest.shares)
        if len(member.knobs.reductions) and member.knobs.panels.knobs:
            found.append(nest.tiles)
    for position in range(len(knobs.members)):
        kernel = _Kernel(knobs, position, program, profile, default)
        found += [kernel.joined, kernel.whole] if knobs.joins else []
        found += [kernel.levels, kernel.memory, kernel.blocks]
    own = {k.name: default[k.name] for k in knobs.knobs}
    return [partial(_unless_default, own, c) for c in found]


def _unless_default(
    default: Values, constraint: Callable[[Values], str | None], values: Values
) -> str | None:
    reason = constraint(values)
    # Looked at quietly: they need not be drawn again.
    if reason is None or any(values.get(name) != value for name, value in default.items()):
        return reason
    for name in default:
        values[name]
    return None


@dataclass(frozen=True, slots=True)
class _Nest:
    """One nest's own."""

    member: Member
    profile: GpuProfile

    def _says(self, reason: str) -> str:
        return f"nest {self.member.nest.name}: {reason}"

    def threads(self, values: Values) -> str | None:
        """Whole warps, where there are points for them, and no more than a block has."""
        threads, most = _thread_count(self.member, values), self.profile.threads_per_block
        if threads > most:
            return self._says(f"{threads} threads are more than the {most} of a block")
        room = math.prod(int(k.threads.choices[-1]) for k in self.member.knobs.dims)
        if threads < min(self.profile.warp, room):
            return self._says(f"{threads} threads are less than a warp")
        counts = self.member.knobs.divided(values).threads
        if any(counts[k.position] > 1 for k in self.member.knobs.reductions):
            uneven = [count for count in counts.values() if count & (count - 1)]
            if uneven:
                return self._says(f"where sums are combined, {uneven[0]} is no power of two")
        return None

    def coalesced(self, values: Values) -> str | None:
        """Neighbouring threads touch neighbours in memory of some tensor."""
        divided = self.member.knobs.divided
        along = [k for k in divided.dims if k.dim.name in divided.in_order]
        if not along:
            return None
        found = divided(values)
        for each in along:
            together = found.threads[each.position] * found.lanes[each.position]
            if together >= min(_LINES, each.dim.extent // 2):
                return None
        return self._says("no memory is read in lines")

    def registers(self, values: Values) -> str | None:
        """What threads hold fits into their registers."""
        knobs, divided = self.member.knobs, self.member.knobs.divided(values)
        held = {k.dim.name: divided.points(k) for k in knobs.dims}
        points = math.prod(held.values())
        if points > _WRITTEN_OUT:
            return self._says(f"{points} points are many to be written out")
        own = {k.dim.name: held[k.dim.name] for k in knobs.results}
        lanes = {k.dim.name: divided.lanes[k.position] for k in knobs.reductions}
        words = 0
        if self.member.nest.point.op != "=":
            words = math.prod(own.values()) * _words(self.member.nest.point.type.compute.bits)
            words *= self.member.sums
            if words > MAX_HELD:
                return self._says(f"{words} words of results are more than a thread can hold")
        for load in knobs.panels.reads:
            dims = dims_of(load.ref)
            count = math.prod(n for name, n in (own | lanes).items() if name in dims)
            words += count * _words(load.type.compute.bits)
        threads = -(-_thread_count(self.member, values) // self.profile.warp) * self.profile.warp
        most = self.profile.registers_per_multiprocessor // max(1, threads)
        most = min(most, self.profile.registers_per_thread)
        if words + _ADDRESSES > most:
            return self._says(f"a thread needs more than {words} registers of {most}")
        return None

    def on_cores(self, values: Values) -> str | None:
        """Tensor cores add up all of a reduction."""
        divided = self.member.knobs.divided(values)
        if divided.mma and divided.parts > 1:
            return self._says("what tensor cores add up is not split")
        return None

    def shares(self, values: Values) -> str | None:
        """There are threads that could share a panel."""
        if self.member.knobs.staged(values) and _thread_count(self.member, values) == 1:
            return self._says("it has no threads that could share a panel")
        return None

    def tiles(self, values: Values) -> str | None:
        """Reductions are tiled for panels."""
        knobs = self.member.knobs
        if self.member.knobs.staged(values):
            return None
        tiled = next(iter(knobs.tiles(values)), None)
        return None if tiled is None else self._says(f"nothing is copied for tiles of {tiled}")


def _words(bits: int) -> int:
    return max(1, bits // 32)


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What nests that share a kernel have together."""

    knobs: KernelKnobs
    position: int
    """Of the member that it begins with, if it does."""
    program: ir.Program
    profile: GpuProfile
    default: Values

    def joined(self, values: Values) -> str | None:
        """All members can have the chunks of the first."""
        kernel = self.knobs.kernel(self.position, values)
        if len(kernel) < 2:
            return None
        first = kernel[0]
        own = first.knobs.chunks(values)
        for name in own:
            if name not in first.shared:
                return f"nest {kernel[1].nest.name}: it has nothing like the chunks of {name}"
        for place, name in enumerate(first.shared):
            for member in kernel[1:] if name in own else ():
                unit = unit_of(member, member.shared[place], values)
                if own[name] % unit:
                    which = member.shared[place]
                    return f"{which}: chunks of {own[name]} points are no multiple of {unit}"
        return None

    def whole(self, values: Values) -> str | None:
        """What is split has kernels of its own."""
        kernel = self.knobs.kernel(self.position, values)
        for member in kernel if len(kernel) > 1 else ():
            if member.knobs.divided(values).parts > 1:
                return f"nest {member.nest.name}: nests that share a kernel are not split"
        return None

    def levels(self, values: Values) -> str | None:
        """There are the loops in which operands are copied."""
        for member, chunks in self._members(values):
            if not member.knobs.staged(values):
                continue
            loops = member.knobs.loops(values, chunks)
            for level in member.knobs.levels(values, loops).values():
                if level > len(loops) + 1:
                    return f"nest {member.nest.name}: it has no {level - 1} loops in a block"
        return None

    def memory(self, values: Values) -> str | None:
        """Panels fit into shared memory."""
        most, members = self.profile.shared_per_block, self._members(values)
        needed = sum(self._panels(member, values, chunks) for member, chunks in members)
        needed += _exchange([member for member, _ in members], values)
        if needed > most:
            name = self.knobs.members[self.position].nest.name
            return f"nest {name}: panels of {needed} bytes are more than the {most} of a block"
        return None

    def _members(self, values: Values) -> list[tuple[Member, dict[str, int]]]:
        """The members of the kernel, each with its chunks."""
        kernel = self.knobs.kernel(self.position, values)
        return list(zip(kernel, chunks_of(kernel, values), strict=True)) if kernel else []

    def _panels(self, member: Member, values: Values, chunks: Mapping[str, int]) -> int:
        knobs, panels = member.knobs, member.knobs.panels
        if not member.knobs.staged(values):
            return 0
        loops = knobs.loops(values, chunks)
        total = 0
        for k, level in knobs.levels(values, loops).items():
            inside = _inside(member, values, chunks, loops[: level - 1])
            copies = panels.copies(values) if level > 1 else 1
            total += copies * self._room(panels.reads[k].ref, inside)
        return total

    def _room(self, ref: ir.TensorRef, inside: Mapping[str, int]) -> int:
        """Bytes of a panel, at most."""
        layout = self.program.tensor(ref.tensor).layout
        axes = sorted(zip(layout.strides, ref.subscripts, strict=True), key=lambda x: -abs(x[0]))
        extents = [
            1 + sum(abs(c) * (inside.get(name, 1) - 1) for name, c in s.terms)
            for _, s in axes
            if isinstance(s, ir.Affine)
        ] or [1]
        row = extents[-1] * layout.itemsize + (_PADDING if len(extents) > 1 else 0)
        return -(-math.prod(extents[:-1]) * row // LINE) * LINE

    def blocks(self, values: Values) -> str | None:
        """Blocks for much of the device, where there is work for them."""
        members = self._members(values)
        if not members:
            return None
        blocks, parts = self._blocks(members, values)
        name = members[0][0].nest.name
        if parts > 1 and blocks * parts > _WAVES * self.profile.multiprocessors:
            return f"nest {name}: {blocks} blocks need not be {parts} times as many"
        points = max(math.prod(d.extent for d in m.nest.dims) for m, _ in members)
        enough = min(self.profile.multiprocessors // 2, points // _OF_BLOCK)
        enough = min(enough, math.prod(k.dim.extent for k in members[0][0].knobs.results))
        if blocks * parts < enough and blocks * parts < self._of_default():
            return f"nest {name}: {blocks} blocks leave most of the device idle"
        return None

    def _blocks(
        self, members: list[tuple[Member, dict[str, int]]], values: Values
    ) -> tuple[int, int]:
        """Blocks, and parts that each of them is split into."""
        first, chunks = members[0]
        extents = {k.dim.name: k.dim.extent for k in first.knobs.results}
        blocks = math.prod(-(-extents[name] // size) for name, size in chunks.items())
        return blocks, first.knobs.divided(values).parts

    def _of_default(self) -> int:
        """The preset's blocks: so few are enough."""
        members = self._members(self.default)
        return math.prod(self._blocks(members, self.default)) if members else 1 << 30


def _thread_count(member: Member, values: Values) -> int:
    return math.prod(member.knobs.divided(values).threads.values())


def _exchange(kernel: Sequence[Member], values: Values) -> int:
    """Bytes in which threads hand each other sums: ``limits.exchange_bytes``, from knobs."""
    widths = []
    for member in kernel:
        threads = member.knobs.divided(values).threads
        if any(threads[k.position] > 1 for k in member.knobs.reductions):
            widths.append(member.nest.point.type.compute.bits // 8)
    if not widths:
        return 0
    return max(1, *widths) * max(_thread_count(member, values) for member in kernel)


def _inside(
    member: Member, values: Values, chunks: Mapping[str, int], outer: list[str]
) -> dict[str, int]:
    """The points of each dimension that are gone through inside of some loops."""
    knobs = member.knobs
    found, divided = {}, knobs.divided(values)
    tiles = knobs.tiles(values)
    for each in knobs.dims:
        name, unit = each.dim.name, divided.unit(each)
        if not each.dim.reduction:
            points = unit if name in outer else chunks.get(name, each.dim.extent)
        else:
            extent = divided.extents[each.position]
            points = tiles.get(name, extent)
            if name in tiles and name not in outer:
                points = -(-extent // points) * points
        found[name] = -(-points // unit) * unit
    return found
