"""The search space of a def on a CPU: mapping options as knobs, derived from its nests and the
device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.passes.fusion.groups import fusion_groups
from tcl.codegen.schedule.cpu import plan_cpu
from tcl.tuner.space.columns import Column, Rows
from tcl.tuner.space.cpu.chunks import ChunkKnobs
from tcl.tuner.space.cpu.constraints import constraints, heuristics, sharing
from tcl.tuner.space.cpu.nest import NestKnobs
from tcl.tuner.space.knobs import Value
from tcl.tuner.space.program_space import ProgramSpace
from tcl.tuner.space.search_space import Constraint

_NESTS = 8
"""Nests that get knobs: those with the most points. The rest is mapped by the preset."""
_GROUPS = 8
"""Groups of nests that get knobs for their chunks."""


class MappingSpace(ProgramSpace):
    """Configurations that stand for ``MappingOptions`` of one program on a CPU.

    Per nest: a tile size for each dimension (powers of two, and the extent divided by 2 to 8,
    rounded up; the extent itself leaves it untiled), the order of the loops over tiles and of
    those inside, the vectorised dimension and its lanes, the register tile, the staged
    operands, what is prefetched and written past the caches. Nests that can go along with others
    follow these. For ``fixed`` see ``ProgramSpace``.
    """

    def __init__(
        self, program: ir.Program, device: CpuProfile, fixed: Mapping[str, Value] | None = None
    ) -> None:
        super().__init__(program, fixed)
        program = self._program
        self._device = device
        # Those that go along with others get their loops.
        along = set[str]().union(*(u.followers for u in fusion_groups(program.nests)))
        by_points = sorted(
            (i for i, n in enumerate(program.nests) if not n.sequential and n.name not in along),
            key=lambda i: -math.prod(d.extent for d in program.nests[i].dims),
        )
        chosen = sorted(by_points[:_NESTS])
        default = plan_cpu(program, DEFAULT, device).options
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
        legal = [sharing(c) for c in self._chunks]
        worth: list[Constraint] = []
        for nest in self._nests.values():
            legal += constraints(program, nest, device)
            worth += heuristics(nest)
        self._declare(knobs, legal, worth)

    def _choices(self, values: Mapping[str, Value]) -> dict[str, NestOptions]:
        divided = {name: o for c in self._chunks for name, o in c.options(values).items()}
        for position, knobs in self._nests.items():
            name = self._program.nests[position].name
            divided[name] = divided.get(name, NestOptions()).over(knobs.to_options(values))
        return divided

    @property
    def positions(self) -> frozenset[int]:
        """Of the nests with knobs."""
        return frozenset(self._nests)

    def columns(self, rows: Rows) -> dict[int, dict[str, Column[Any]]]:
        """What each row of this space's configurations says, by position of the nest and name of
        the option, of nests with knobs: as ``to_options`` does it for one."""
        return {position: knobs.columns(rows) for position, knobs in self._nests.items()}

    def _normal(self, values: Mapping[str, Value]) -> dict[str, Value]:
        return {name: v for nest in self._nests.values() for name, v in nest.normal(values).items()}

    def _resolved(self, options: MappingOptions) -> dict[str, NestOptions]:
        return plan_cpu(self._program, options, self._device).options

    def _said(self, resolved: Mapping[str, NestOptions]) -> dict[str, Value] | None:
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
        return values

    def _mapped(self, options: MappingOptions) -> list[ir.Nest]:
        if len(self._nests) == len(self._program.nests):
            return []
        *_, (_, program) = plan_cpu(self._program, options, self._device).applied()
        return [n for i, n in enumerate(program.nests) if i not in self._nests]
