"""The chunks of a group of nests, and which of the nests share them, as knobs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from tcl.codegen.choose.cpu.chunk_groups import ChunkGroup, groups
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import Trials
from tcl.codegen.passes.chunk import Chunk
from tcl.codegen.passes.cpu.steps import LOOPS, MARKS
from tcl.codegen.passes.fuse import Fuse
from tcl.common.errors import OptionsError

_CACHED = 256
"""Divisions of a group whose passes' results are cached."""


@dataclass(frozen=True, slots=True)
class ChunkKnobs:
    """One size per dimension that the nests of a group have in common, and one switch per nest
    that may be joined to the one before it. A size as large as the dimension leaves it whole."""

    program: ir.Program
    device: CpuProfile
    group: ChunkGroup
    sizes: tuple[Knob, ...]
    joins: Mapping[str, Knob]
    """By nest."""
    always: frozenset[str]
    """Nests without a switch: they are fused with those before them, and share their chunks."""
    _trials: dict[object, Trials[CpuProfile] | OptionsError] = field(
        default_factory=dict, compare=False, repr=False
    )

    @staticmethod
    def all_of(
        program: ir.Program, device: CpuProfile, default: Mapping[str, NestOptions]
    ) -> tuple[ChunkKnobs, ...]:
        """The knobs of an untiled program, which can encode the sizes of ``default``."""
        found = []
        # Only neighbours can be joined.
        pairs = set(itertools.pairwise(n.name for n in program.nests))
        for group in groups(program, device):
            if not group.shared:
                continue
            first, sizes = group.nests[0], []
            for dims in group.shared:
                extent = first.dim(dims[0]).extent
                own = _chunk_size(first, default[first.name], dims[0])
                choices = sorted({1, own, extent, *(1 << p for p in range(1, extent.bit_length()))})
                fitting = tuple(c for c in choices if 1 <= c <= extent)
                sizes.append(Knob(f"{dims[0]}.chunk", fitting, extent, ordered=True))
            names = [n.name for n in group.nests]
            later = [name for before, name in itertools.pairwise(names) if (before, name) in pairs]
            always = frozenset(n.name for fused in group.fused for n in fused[1:]) & {*later}
            joins = {
                name: Knob(f"{name}.fuse", (0, 1), 0, ordered=False)
                for name in later
                if name not in always
            }
            found.append(ChunkKnobs(program, device, group, tuple(sizes), joins, always))
        return tuple(found)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """All of them."""
        return (*self.sizes, *self.joins.values())

    def fused(self, values: Mapping[str, Value]) -> frozenset[str]:
        """The nests that share the chunks of the one before them."""
        asked = frozenset(name for name, knob in self.joins.items() if values[knob.name])
        divided = any(values[k.name] != k.choices[-1] for k in self.sizes)
        return asked | self.always if divided else asked

    def chunk(self, nest: str, values: Mapping[str, Value]) -> tuple[int, ...]:
        """The option of a nest."""
        position = next(k for k, n in enumerate(self.group.nests) if n.name == nest)
        shared = [dims[position] for dims in self.group.shared]
        sizes = {name: int(values[k.name]) for name, k in zip(shared, self.sizes, strict=True)}
        whole = {d.name: d.extent for d in self.group.nests[position].dims}
        chunk = tuple(n if (n := sizes.get(d, e)) < e else 0 for d, e in whole.items())
        return chunk if any(chunk) else ()

    def from_options(self, options: Mapping[str, NestOptions]) -> dict[str, Value] | None:
        """Knob values for options of the nests; None if the knobs cannot encode them."""
        found: dict[str, Value] = {}
        for position, nest in enumerate(self.group.nests):
            for dims, knob in zip(self.group.shared, self.sizes, strict=True):
                size = _chunk_size(nest, options[nest.name], dims[position])
                if found.setdefault(knob.name, size) != size:
                    return None
            if nest.name in self.joins:
                found[self.joins[nest.name].name] = int(bool(options[nest.name].fuse))
        if any(found[k.name] not in k.choices for k in self.knobs):
            return None
        fused = self.fused(found)
        for nest in self.group.nests:
            own, chunk = options[nest.name], self.chunk(nest.name, found)
            shared = [d.name for d, size in zip(nest.dims, chunk, strict=False) if size]
            other = [d for d in nest.dims if d.name not in shared]
            whole = all(_chunk_size(nest, own, d.name) == d.extent for d in other)
            if not whole or bool(own.fuse) != (nest.name in fused):
                return None
        return found

    def trials(self, values: Mapping[str, Value]) -> Trials[CpuProfile] | OptionsError:
        """The passes after these chunks, to be tried; or the error with which chunks cannot be
        shared like this."""
        fused = self.fused(values)
        key = (*(values[k.name] for k in self.sizes), fused)
        found = self._trials.get(key)
        if found is None:
            if len(self._trials) >= _CACHED:
                self._trials.clear()
            found = self._trials[key] = self._divided(values, fused)
        return found

    def _divided(
        self, values: Mapping[str, Value], fused: frozenset[str]
    ) -> Trials[CpuProfile] | OptionsError:
        program = self.program
        names = [nest.name for nest in self.group.nests]
        try:
            for name in names:
                program = Chunk(name, self.chunk(name, values))(program)
            for name in names:
                program = Fuse(name)(program) if name in fused else program
        except OptionsError as refused:
            return refused.with_traceback(None)
        return Trials(program, (*LOOPS, *MARKS), self.device)


def _chunk_size(nest: ir.Nest, options: NestOptions, dim: str) -> int:
    """The points per chunk of a dimension; its extent if it is whole."""
    sizes = zip(nest.dims, options.chunk or (), strict=False)
    extent = nest.dim(dim).extent
    return min(next((size for d, size in sizes if d.name == dim), 0) or extent, extent)
