"""What candidates for a GPU are described against: the nests of a def, scheduled for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcl.codegen.common.errors import OptionsError
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.cost import Cost, cost_of
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.passes.fuse import groups
from tcl.codegen.passes.fusion.groups import fusion_groups
from tcl.codegen.schedule.gpu import plan_gpu
from tcl.tuner.model.gpu_mapped import Mapped


@dataclass(frozen=True, slots=True)
class GpuSubject:
    """A def for its sizes on a GPU."""

    program: ir.Program
    """As it was lowered, or with dimensions that lie together as one."""
    device: GpuProfile
    cost: Cost
    merges: bool
    """Whether options have to merge dimensions to be described."""

    @staticmethod
    def of(program: ir.Program, device: GpuProfile) -> GpuSubject:
        """Of a program that has just been lowered."""
        whole = merged(program)
        return GpuSubject(whole, device, cost_of(program), whole != program)

    def choices(self, options: MappingOptions) -> tuple[Mapped, ...]:
        """The nests with all of their loops, as these options make them, which takes two or three
        milliseconds.

        ``OptionsError`` for options that cannot be applied, or do not merge dimensions.
        """
        if self.merges and not options.merges:
            raise OptionsError("dimensions are not merged, so that the nests are others")
        planned = plan_gpu(self.program, options, self.device)
        *_, (_, program) = planned.applied()
        along = set[str]().union(*(g.followers for g in fusion_groups(planned.program.nests)))
        return tuple(
            Mapped(program, nest, tuple(group), self.device)
            for group in groups(program.nests)
            for nest in group
            if nest.name not in along
        )

    def describable(
        self, options: Sequence[MappingOptions]
    ) -> list[tuple[int, tuple[Mapped, ...]]]:
        """(place, choices) of those of the options that can be applied."""
        found = []
        for place, each in enumerate(options):
            try:
                found.append((place, self.choices(each)))
            except OptionsError:
                continue
        return found
