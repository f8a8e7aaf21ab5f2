"""Nests that can share a GPU's kernels, as knobs: which of them do, and their blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tcl.codegen.choose.cpu.chunk_groups import possible_groups
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.fusion.groups import FusionGroup, fusion_groups
from tcl.tuner.space.gpu.nest import BlockKnobs


@dataclass(frozen=True, slots=True)
class Member:
    """A nest with knobs, and those that are fused with it."""

    knobs: BlockKnobs
    nests: tuple[ir.Nest, ...]
    """All of them, in order."""
    sums: int
    """Accumulators of each result."""
    shared: tuple[str, ...] = ()
    """The dimensions of the nest whose chunks all members can share, in the same order for each."""

    @property
    def nest(self) -> ir.Nest:
        return self.knobs.nest

    def options(
        self, values: Mapping[str, Value], chunks: Mapping[str, int], *, joined: bool
    ) -> dict[str, NestOptions]:
        """The options that the knobs encode, by nest; ``joined``: to the kernel of the nest
        before."""
        led = self.knobs.nest_options(values, chunks)
        if led.split:
            # The parts have loops of their own; what is fused with their sum is left open.
            first = {self.nests[0].name: NestOptions(fuse=False)}
            return first | {self.nest.name: led}
        found = {}
        for position, nest in enumerate(self.nests):
            own = led
            if nest is not self.nest:
                own = replace(led, stage=(), buffers=1).of_first(len(nest.dims))
                own = replace(own, mma=()) if nest.reduces else own
            found[nest.name] = replace(own, fuse=bool(chunks) and (joined or position > 0))
        return found


@dataclass(frozen=True, slots=True)
class KernelKnobs:
    """Members that may share kernels: each joins the one before it, or begins a new kernel.

    The first of a kernel says how large chunks are. What is not shared stays whole.
    """

    members: tuple[Member, ...]
    joins: Mapping[int, Knob]
    """By position of the member."""

    @staticmethod
    def all_of(
        program: ir.Program,
        profile: GpuProfile,
        default: Mapping[str, NestOptions],
        chosen: Sequence[str],
    ) -> tuple[KernelKnobs, ...]:
        """The knobs of an untiled program, for the nests that are ``chosen``."""
        groups = {n.name: g for g in possible_groups(program) for n in g.nests}
        runs: list[list[Member]] = []
        before = None
        for fused in fusion_groups(program.nests):
            group = groups[fused.leader.name]
            if fused.leader.name not in chosen:
                before = None
                continue
            member = _member(program, fused, profile, default)
            whole = all(groups[n.name] is group for n in member.nests)
            if whole:
                place = [n.name for n in group.nests].index(fused.leader.name)
                member = replace(member, shared=tuple(dims[place] for dims in group.shared))
            if whole and group is before:
                runs[-1].append(member)
            else:
                runs.append([member])
            before = group if whole else None
        return tuple(KernelKnobs._of(run, default) for run in runs)

    @staticmethod
    def _of(run: Sequence[Member], default: Mapping[str, NestOptions]) -> KernelKnobs:
        joins = {
            k: Knob(
                f"{m.nest.name}.fuse",
                (0, 1),
                int(bool(default[m.nests[0].name].fuse)),
                ordered=False,
            )
            for k, m in enumerate(run)
            if k
        }
        return KernelKnobs(tuple(run), joins)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        own = tuple(k for m in self.members for k in m.knobs.knobs)
        return own + tuple(self.joins.values())

    def kernel_of(self, position: int, values: Mapping[str, Value]) -> list[Member]:
        """The members of the kernel that begins with this one; none if it joins another. Of the
        values it reads no more than it needs."""
        if self._joined(position, values):
            return []
        end = position + 1
        while end < len(self.members) and self._joined(end, values):
            end += 1
        return list(self.members[position:end])

    def _joined(self, position: int, values: Mapping[str, Value]) -> bool:
        """Whether a member shares the kernel of the one before it."""
        joins = position in self.joins and bool(values[self.joins[position].name])
        return joins and not self.joins_in_vain(position, values)

    def joins_in_vain(self, position: int, values: Mapping[str, Value]) -> bool:
        """Whether a member that is to join the one before it does not, as one of both is split."""
        if position not in self.joins or not values[self.joins[position].name]:
            return False
        both = self.members[position - 1 : position + 1]
        return any(m.knobs.divided.parts(values) > 1 for m in both)

    def kernels(self, values: Mapping[str, Value]) -> list[list[Member]]:
        found = (self.kernel_of(k, values) for k in range(len(self.members)))
        return [kernel for kernel in found if kernel]

    def options(self, values: Mapping[str, Value]) -> dict[str, NestOptions]:
        found = {}
        for kernel in self.kernels(values):
            chunks = chunks_of(kernel, values)
            for member, own in zip(kernel, chunks, strict=True):
                found.update(member.options(values, own, joined=member is not kernel[0]))
        return found

    def from_options(self, resolved: Mapping[str, NestOptions]) -> dict[str, Value] | None:
        """Knob values; None if the knobs cannot encode them."""
        found: dict[str, Value] = {}
        for k, member in enumerate(self.members):
            fused = bool(resolved[member.nests[0].name].fuse)
            if k in self.joins:
                found[self.joins[k].name] = int(fused)
            elif fused:
                return None
            own = member.knobs.from_options(resolved[member.nest.name], joined=fused)
            if own is None:
                return None
            found.update(own)
        found = self.canonical(found)
        return found if self._same(found, resolved) else None

    def _same(self, values: Mapping[str, Value], resolved: Mapping[str, NestOptions]) -> bool:
        """Whether chunks of joined nests are those that the knobs give them."""
        for kernel in self.kernels(values):
            for member, own in zip(kernel, chunks_of(kernel, values), strict=True):
                given = resolved[member.nest.name].chunk or ()
                for position, dim in enumerate(member.nest.dims[: len(given)]):
                    size = min(given[position] or dim.extent, dim.extent)
                    if size != min(own.get(dim.name, dim.extent), dim.extent):
                        return False
        return True

    def canonical(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """The canonical values of these knobs, among all that mean the same."""
        known = dict(values)
        for kernel in self.kernels(values):
            for member, own in zip(kernel, chunks_of(kernel, values), strict=True):
                joined = member is not kernel[0]
                known.update(member.knobs.canonical(known, own, joined=joined))
        return {k.name: known[k.name] for k in self.knobs}


def chunks_of(kernel: Sequence[Member], values: Mapping[str, Value]) -> list[dict[str, int]]:
    """Points per chunk of each member's results that are divided.

    In a kernel of several, all that is shared has chunks, if only one of all points: then it has
    room for whole units of each member.
    """
    first = kernel[0]
    own = first.knobs.chunks(values)
    if len(kernel) == 1:
        return [own]
    found: list[dict[str, int]] = [{} for _ in kernel]
    for place, name in enumerate(first.shared):
        size = own.get(name, 0)
        if not size:
            parts = [m.knobs.divided(values).unit(m.shared[place]) for m in kernel]
            whole = math.lcm(*parts)
            size = -(-first.nest.dim(name).extent // whole) * whole
        for member, chunks in zip(kernel, found, strict=True):
            chunks[member.shared[place]] = size
    return found


def _member(
    program: ir.Program, fused: FusionGroup, profile: GpuProfile, default: Mapping[str, NestOptions]
) -> Member:
    names = fused.names
    nests = tuple(n for n in program.nests if n.name in names)
    knobs = BlockKnobs.from_nest(
        program, program.nest(fused.leader.name), profile, default[fused.leader.name]
    )
    return Member(knobs, nests, fused.sums)
