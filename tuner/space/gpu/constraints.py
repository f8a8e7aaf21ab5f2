"""What can be scheduled on a GPU: a configuration meets these constraints just where no pass
refuses its options. They are the passes' own functions, called with what the knobs say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.passes.gpu.bind import (
    BlockFolds,
    contiguity,
    why_not_bound,
    why_not_combined,
    why_not_whole,
)
from tcl.codegen.passes.gpu.limits import most_exchanged, why_too_large
from tcl.codegen.passes.gpu.mma_panels import why_not_fed
from tcl.codegen.passes.gpu.mma_shape import Sizes
from tcl.codegen.passes.gpu.panel import Panel, panel_bytes, points_inside, uniform_dims
from tcl.codegen.passes.gpu.split import Split
from tcl.codegen.passes.gpu.stage_shared import why_not_staged
from tcl.tuner.space.gpu.block_threads import Division
from tcl.tuner.space.gpu.encode import longest
from tcl.tuner.space.gpu.kernel_groups import KernelKnobs, Member, chunks_of
from tcl.tuner.space.knobs import Value
from tcl.tuner.space.search_space import Constraint

Values = Mapping[str, Value]


def constraints(knobs: KernelKnobs, program: ir.Program, profile: GpuProfile) -> list[Constraint]:
    """Of the kernels of some nests; each gives the sentence with which options are refused."""
    nests = [_Nest(member, program, profile) for member in knobs.members]
    found: list[Constraint] = [nest.bound for nest in nests]
    for position in range(len(nests)):
        kernel = _Kernel(knobs, position, nests)
        found += [kernel.whole] if knobs.joins else []
        found.append(kernel.panels)
    return found


@dataclass(frozen=True, slots=True)
class _Bound:
    """A nest as a block has it."""

    nest: ir.Nest
    sizes: Sizes
    mma: tuple[int, ...]

    @property
    def threads(self) -> int:
        """Of the block."""
        return math.prod(count for _, count, _ in self.sizes.values())

    @property
    def exchanges(self) -> bool:
        """Whether threads have sums of the same result."""
        return any(d.reduction and self.sizes[d.name][1] > 1 for d in self.nest.dims)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The nest of a whole reduction, or of its parts."""

    nest: ir.Nest
    order: Mapping[str, tuple[int, int]]
    """Its ``contiguity``."""
    reads: tuple[ir.Load, ...]


@dataclass(frozen=True, slots=True)
class _Nest:
    """One nest's own, and that of those which go along with it."""

    member: Member
    program: ir.Program
    profile: GpuProfile
    _split: dict[int, _Parts] = field(default_factory=dict)
    """By the number of parts."""

    def parts(self, divided: Division) -> _Parts:
        """The nest with the knobs, or what it is split into."""
        found = self._split.get(divided.parts)
        if found is None:
            nest, program = self.member.nest, self.program
            if divided.parts > 1:
                program = Split(nest.name, (*[0] * longest(nest), divided.parts))(program)
                nest = program.nest(nest.name)
            found = _Parts(nest, contiguity(program, nest), operands(nest.point))
            self._split[divided.parts] = found
        return found

    def leader(self, divided: Division) -> _Bound:
        """The same, with what the knobs say."""
        nest = self.parts(divided).nest
        if nest is self.member.nest:
            return _Bound(nest, divided.sizes, divided.mma)
        sizes = {nest.dims[0].name: (1, 1, 1), **divided.sizes}
        return _Bound(nest, sizes, tuple(k + 1 for k in divided.mma))

    def all(self, divided: Division) -> list[_Bound]:
        """All nests that get what the knobs say."""
        leader = self.leader(divided)
        if divided.parts > 1:
            return [leader]
        sizes, found = list(divided.sizes.values()), []
        for nest in self.member.nests:
            if nest is leader.nest:
                found.append(leader)
                continue
            own = {d.name: size for d, size in zip(nest.dims, sizes, strict=False)}
            reduced = nest.reduces
            found.append(_Bound(nest, own, () if reduced else divided.mma[:2]))
        return found

    def bound(self, values: Values) -> str | None:
        """Threads, and what each of them holds."""
        for each in self.all(self.member.knobs.divided(values)):
            reason = why_not_bound(each.nest, each.sizes, each.mma, self.profile)
            if reason is None:
                reason = why_not_combined(each.nest, each.sizes)
            if reason is not None:
                return reason
        return None

    def panels(
        self, values: Values, chunks: Mapping[str, int], divided: Division
    ) -> tuple[int, str | None]:
        """Bytes of all panels, and why these cannot be, or feed tensor cores; None if they can."""
        knobs, parts, leader = self.member.knobs, self.parts(divided), self.leader(divided)
        nest, sizes = leader.nest, leader.sizes
        tiles = knobs.tiles(values)
        if nest is not self.member.nest:
            chunks = {**chunks, nest.dims[0].name: 1}  # each part is a block's
        loops = uniform_dims(nest.dims, sizes, chunks, tiles)
        levels = knobs.levels(values, loops)
        if not (levels or leader.mma):
            return 0, None
        listed = [levels.get(k, -1) for k in range(len(parts.reads))]
        if reason := why_not_staged(nest, listed, divided.threads, len(loops)):
            return 0, reason
        dims = (d.name for d in nest.dims)
        folds = BlockFolds.of(nest, dims, sizes, leader.mma, parts.order)
        total, panels = 0, {}
        for k, level in levels.items():
            ref = parts.reads[k].ref
            inside = points_inside(nest.dims, sizes, chunks, tiles, loops[: level - 1])
            panel = Panel.of(self.program.tensor(ref.tensor).layout, ref, inside, folds)
            copies = knobs.panels.copies(values) if level > 1 else 1
            total += copies * panel_bytes(panel.layout)
            panels[ref] = panel
        return total, why_not_fed(nest, leader.mma, panels, folds)


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What nests that share a kernel have together."""

    knobs: KernelKnobs
    position: int
    """Of the member that it begins with, if it does."""
    nests: Sequence[_Nest]
    """Of all members."""

    def whole(self, values: Values) -> str | None:
        """All members can have the chunks of the first."""
        for own, chunks in self._members(values)[1:]:
            divided = own.member.knobs.divided(values)
            for each in own.all(divided):
                along = zip(each.nest.dims, own.member.nest.dims, strict=False)
                shared = [(a.name, chunks[b.name]) for a, b in along if b.name in chunks]
                steps = (("chunk", name, size) for name, size in shared)
                if reason := why_not_whole(each.nest.name, steps, each.sizes):
                    return reason
        return None

    def panels(self, values: Values) -> str | None:
        """What is copied can be, lies as tensor cores need it, and fits into shared memory; there
        are not too many blocks."""
        members = self._members(values)
        if not members:
            return None
        needed, bound = 0, []
        for own, chunks in members:
            divided = own.member.knobs.divided(values)
            size, reason = own.panels(values, chunks, divided)
            if reason is not None:
                return reason
            needed += size
            # Without chunks, each nest has a kernel of its own.
            bound += own.all(divided) if chunks else [own.leader(divided)]
        widths = [b.nest.point.type.compute.itemsize for b in bound if b.exchanges]
        needed += most_exchanged(widths, (b.threads for b in bound))
        first, chunks = members[0]
        divided = first.member.knobs.divided(values)
        counts = (-(-divided.extents[name] // size) for name, size in chunks.items())
        blocks = divided.parts * math.prod(counts)
        return why_too_large([b.nest.name for b in bound], blocks, needed, first.profile)

    def _members(self, values: Values) -> list[tuple[_Nest, dict[str, int]]]:
        """The members of the kernel, each with its chunks."""
        kernel = self.knobs.kernel(self.position, values)
        nests = self.nests[self.position : self.position + len(kernel)]
        return list(zip(nests, chunks_of(kernel, values), strict=True)) if kernel else []
