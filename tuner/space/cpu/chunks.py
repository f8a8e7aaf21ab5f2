"""The chunks of a group of nests, and which of the nests share them, as knobs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tcl.codegen.choose.cpu.chunk_groups import Group, groups
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import refusal
from tcl.codegen.passes.chunk import chunked
from tcl.codegen.passes.fuse import why_not_fused
from tcl.tuner.space.knobs import Knob, Value


@dataclass(frozen=True, slots=True)
class ChunkKnobs:
    """One size per dimension that the nests of a group have in common, and one switch per nest
    that may be joined to the one before it. A size as large as the dimension leaves it whole."""

    group: Group
    sizes: tuple[Knob, ...]
    joins: Mapping[str, Knob]
    """By nest."""
    always: frozenset[str]
    """Nests without a switch: they go along with those before them, and share their chunks."""

    @staticmethod
    def all_of(
        program: ir.Program, device: CpuProfile, chosen: Mapping[str, NestOptions]
    ) -> tuple[ChunkKnobs, ...]:
        """The knobs of an untiled program. ``chosen`` are options whose sizes are among the
        choices."""
        found = (g for g in groups(program, device) if g.shared)
        return tuple(ChunkKnobs._of(g, program, chosen) for g in found)

    @staticmethod
    def _of(group: Group, program: ir.Program, chosen: Mapping[str, NestOptions]) -> ChunkKnobs:
        first = group.nests[0]
        sizes = []
        for dims in group.shared:
            extent = first.dim(dims[0]).extent
            own = _size(first, chosen[first.name], dims[0])
            choices = sorted({1, own, extent, *(1 << p for p in range(1, extent.bit_length()))})
            kept = tuple(c for c in choices if 1 <= c <= extent)
            sizes.append(Knob(f"{dims[0]}.chunk", kept, extent, ordered=True))
        # Only neighbours can be joined.
        pairs = set(itertools.pairwise(n.name for n in program.nests))
        names = [n.name for n in group.nests]
        later = [name for before, name in itertools.pairwise(names) if (before, name) in pairs]
        always = frozenset(n.name for fused in group.fused for n in fused[1:]).intersection(later)
        joins = {
            name: Knob(f"{name}.fuse", (0, 1), 0, ordered=False)
            for name in later
            if name not in always
        }
        return ChunkKnobs(group, tuple(sizes), joins, always)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """All of them."""
        return (*self.sizes, *self.joins.values())

    def options(self, values: Mapping[str, Value]) -> dict[str, NestOptions]:
        """Chunks and joins, by nest."""
        found, fused = {}, self.fused(values)
        for position, nest in enumerate(self.group.nests):
            sizes = self.spans(values, position)
            chunk = tuple(sizes.get(d.name, 0) for d in nest.dims) if sizes else ()
            found[nest.name] = NestOptions(chunk=chunk, fuse=nest.name in fused)
        return found

    def fused(self, values: Mapping[str, Value]) -> frozenset[str]:
        """The nests that share the chunks of the one before them."""
        asked = frozenset(name for name, knob in self.joins.items() if values[knob.name])
        return asked | self.always if any(self.divided(values)) else asked

    def divided(self, values: Mapping[str, Value]) -> tuple[bool, ...]:
        """Which of the dimensions are not left whole."""
        return tuple(values[k.name] != k.choices[-1] for k in self.sizes)

    def spans(self, values: Mapping[str, Value], position: int) -> dict[str, int]:
        """Points per chunk, of the dimensions of a nest that are not left whole."""
        names = [dims[position] for dims in self.group.shared]
        found = {name: self.span(values, position, name) for name in names}
        return {name: size for name, size in found.items() if size is not None}

    def span(self, values: Mapping[str, Value], position: int, dim: str) -> int | None:
        """Points per chunk of one dimension of a nest; None if it is left whole. Of the knobs it
        looks at that one only, so that no other is drawn again for it."""
        for dims, knob in zip(self.group.shared, self.sizes, strict=True):
            if dims[position] == dim:
                size = int(values[knob.name])
                return size if size < self.group.nests[position].dim(dim).extent else None
        return None

    def values(self, options: Mapping[str, NestOptions]) -> dict[str, Value] | None:
        """Knob values for options of the nests; None if the knobs cannot say it."""
        found: dict[str, Value] = {}
        for position, nest in enumerate(self.group.nests):
            for dims, knob in zip(self.group.shared, self.sizes, strict=True):
                size = _size(nest, options[nest.name], dims[position])
                if found.setdefault(knob.name, size) != size:
                    return None
            if nest.name in self.joins:
                found[self.joins[nest.name].name] = int(bool(options[nest.name].fuse))
        same = self.options(found)
        if any(not _same(same[n.name], options[n.name]) for n in self.group.nests):
            return None
        return found if all(found[k.name] in k.choices for k in self.knobs) else None

    def why_not_shared(self, divided: tuple[bool, ...], fused: frozenset[str]) -> str | None:
        """Why these nests cannot share the chunks of those before them if these of ``sizes`` divide
        their dimensions, or None if they can."""
        nests: list[ir.Nest] = []
        for position, nest in enumerate(self.group.nests):
            pairs = zip(self.group.shared, divided, strict=True)
            names = {dims[position] for dims, some in pairs if some}
            nests.append(chunked(nest, tuple(int(d.name in names) for d in nest.dims)))
            if nest.name in fused:
                if reason := why_not_fused(nests, nest.name):
                    return refusal("fuse", nest.name, reason)
                nests[-1] = replace(nests[-1], joined=True)
        return None

    def made_before(self, nest: ir.Nest) -> set[str]:
        """The tensors that nests before this one in its group write."""
        position = self.group.nests.index(nest)
        return {n.point.target.tensor for n in self.group.nests[:position]}

    def made_with(self, values: Mapping[str, Value], nest: ir.Nest) -> set[str]:
        """Those of them that nests write whose chunks it then shares."""
        position, fused, found = self.group.nests.index(nest), self.fused(values), set[str]()
        while self.group.nests[position].name in fused:
            position -= 1
            found.add(self.group.nests[position].point.target.tensor)
        return found


def _size(nest: ir.Nest, options: NestOptions, dim: str) -> int:
    """The points per chunk of a dimension; its extent if it is whole."""
    position = next(k for k, d in enumerate(nest.dims) if d.name == dim)
    chunk: Sequence[int] = options.chunk or ()
    extent = nest.dims[position].extent
    return min(chunk[position] or extent, extent) if position < len(chunk) else extent


def _same(one: NestOptions, other: NestOptions) -> bool:
    """Whether two choices of chunks and joins mean the same."""
    chunks = [tuple(o.chunk or ()) for o in (one, other)]
    longest = max(map(len, chunks))
    first, second = (c + (0,) * (longest - len(c)) for c in chunks)
    return first == second and bool(one.fuse) == bool(other.fuse)
