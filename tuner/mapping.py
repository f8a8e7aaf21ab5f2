"""The search space of a def: mapping options as knobs, derived from its nests and the device."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tcl.codegen import ir
from tcl.codegen.device import CpuProfile
from tcl.codegen.merge import merged
from tcl.codegen.options import MappingOptions, NestOptions
from tcl.codegen.passes.units import Untiled, units
from tcl.codegen.resolve import resolve
from tcl.codegen.schedule import passes_for
from tcl.tuner.chunk_knobs import ChunkKnobs
from tcl.tuner.knobs import Value
from tcl.tuner.nest_constraints import constraints
from tcl.tuner.nest_knobs import NestKnobs
from tcl.tuner.space import Config, SearchSpace

_NESTS = 8
"""Nests that get knobs: those with the most points. The rest is mapped by the preset."""
_GROUPS = 8
"""Groups of nests that get knobs for their chunks."""


class MappingSpace:
    """Configurations that stand for ``MappingOptions`` of one program.

    Per nest: a tile size for each dimension (powers of two, and the extent divided by 2 to 8,
    rounded up; the extent itself leaves it untiled), the order of the loops over tiles and of
    those inside, the vectorised dimension and its lanes, the register tile, the staged
    operands, what is prefetched and written past the caches. Nests that can go along with others
    follow these. ``fixed``: knob name → value, for knobs that the search must leave alone;
    ``ValueError`` for one that there is not.
    """

    def __init__(
        self, program: ir.Program, device: CpuProfile, fixed: Mapping[str, Value] | None = None
    ) -> None:
        self._merge = True if merged(program) != program else None
        self._program = program = merged(program)
        self._device = device
        # Those that go along with others get their loops.
        along = set[str]().union(*(u.others for u in units(program.nests, Untiled())))
        by_points = sorted(
            (i for i, n in enumerate(program.nests) if not n.sequential and n.name not in along),
            key=lambda i: -math.prod(d.extent for d in program.nests[i].dims),
        )
        chosen = sorted(by_points[:_NESTS])
        default = resolve(program, MappingOptions("mlp"), device)
        self._chunks = ChunkKnobs.all_of(program, device, default)[:_GROUPS]
        of_nest = {n.name: (c, k) for c in self._chunks for k, n in enumerate(c.group.nests)}
        self._nests = {
            i: NestKnobs.of(program, nest, device, default[nest.name], of_nest.get(nest.name))
            for i, nest in enumerate(program.nests)
            if i in chosen
        }
        self._preset = "naive" if len(chosen) == len(by_points) and not along else "mlp"
        knobs = (
            *(k for nest in self._nests.values() for k in nest.knobs),
            *(k for group in self._chunks for k in group.knobs),
        )
        met = (
            *(c.redundant for c in self._chunks),
            *(c for nest in self._nests.values() for c in constraints(nest)),
        )
        self.fixed = dict(fixed or {})
        self._whole = SearchSpace(knobs, met, self._normal)
        self._space = self._whole.fix(self.fixed)

    @property
    def space(self) -> SearchSpace:
        """Knobs and constraints."""
        return self._space

    def to_options(self, config: Config) -> MappingOptions:
        """The options that a configuration stands for."""
        values = self._space.values(config)
        divided = self._divided(values)
        options = MappingOptions(self._preset, merge=self._merge)
        for position, nest in enumerate(self._program.nests):
            own = divided.get(nest.name, NestOptions())
            if position in self._nests:
                own = own.over(self._nests[position].to_options(values))
            options = options.with_nest(position, own)
        return options

    def _normal(self, values: Mapping[str, Value]) -> dict[str, Value]:
        return {name: v for nest in self._nests.values() for name, v in nest.normal(values).items()}

    def _divided(self, values: Mapping[str, Value]) -> dict[str, NestOptions]:
        return {name: o for c in self._chunks for name, o in c.options(values).items()}

    def from_options(self, options: MappingOptions) -> Config | None:
        """The configuration that stands for these options; None if there is none.

        ``OptionsError`` for choices for a nest that the program lacks.
        """
        config = self._from_options(options)
        return config if config is not None and self._space.contains(config) else None

    def nearest(self, options: MappingOptions) -> Config:
        """The configuration with the fixed values, and those of the options where that can be."""
        config = self._from_options(options)
        if config is not None:
            values = {**self._whole.values(config), **self.fixed}
            if self._space.valid(near := self._space.config(values)):
                return near
        return self._space.default

    def _from_options(self, options: MappingOptions) -> Config | None:
        if self._merge and not options.merges:
            return None
        resolved = resolve(self._program, options, self._device)
        values: dict[str, Value] = {}
        for group in self._chunks:
            sizes = group.values(resolved)
            if sizes is None:
                return None
            values.update(sizes)
        for position, knobs in self._nests.items():
            found = knobs.from_options(resolved[self._program.nests[position].name], values)
            if found is None:
                return None
            values.update(found)
        config = tuple(values[k.name] for k in self._whole.knobs)
        if not (self._whole.contains(config) and self._whole.valid(config)):
            return None
        # What the nests without knobs get follows from the others.
        own = (self._mapped(o) for o in (options, self.to_options(config)))
        return config if next(own) == next(own) else None

    def _mapped(self, options: MappingOptions) -> list[ir.Nest]:
        """The nests without knobs, with all of their loops."""
        program = self._program
        for name, passes in passes_for(program, options, self._device):
            for each in passes if name != "build" else ():
                program = each(program)
        return [n for i, n in enumerate(program.nests) if i not in self._nests]

    def to_json(self, options: MappingOptions) -> str:
        """The options as they are stored."""
        return options.to_json()

    def from_json(self, text: str) -> MappingOptions:
        """The inverse of ``to_json``; ``OptionsError`` if the text is not options."""
        return MappingOptions.from_json(text)
