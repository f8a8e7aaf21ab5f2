"""What candidates for a GPU are described against: the nests of a def, scheduled for each."""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.cost import Cost, cost_of
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.passes.fuse import groups
from tcl.codegen.passes.fusion.groups import fusion_groups
from tcl.codegen.schedule.gpu import plan_gpu
from tcl.common.errors import OptionsError
from tcl.tuner.model.gpu_mapped import Mapped
from tcl.tuner.model.program_subject import ProgramSubject


@dataclass(frozen=True, slots=True)
class GpuSubject(ProgramSubject[tuple[Mapped, ...]]):
    """A def for its sizes on a GPU."""

    program: ir.Program
    """As it was lowered, or with dimensions that lie together as one."""
    device: GpuProfile
    cost: Cost
    merges: bool
    """Whether options have to merge dimensions to be described."""
    default: tuple[Mapped, ...]
    """The nests as they are where nothing is known."""

    @staticmethod
    def of(program: ir.Program, device: GpuProfile) -> GpuSubject:
        """Of a program that has just been lowered."""
        whole = merged(program)
        made = _mapped(whole, DEFAULT, device)
        return GpuSubject(whole, device, cost_of(program), whole != program, made)

    def choices(self, options: MappingOptions) -> tuple[Mapped, ...]:
        """The nests with all of their loops, as these options make them, which takes two or three
        milliseconds.

        ``OptionsError`` for options that cannot be applied, or do not merge dimensions.
        """
        if self.merges and not options.merges:
            raise OptionsError("dimensions are not merged, so that the nests are others")
        return _mapped(self.program, options, self.device)

    @staticmethod
    def timed(nests: tuple[Mapped, ...]) -> list[Mapped]:
        """Those that take time."""
        return [m for m in nests if m.nest.points and not m.nest.sequential]


def _mapped(program: ir.Program, options: MappingOptions, device: GpuProfile) -> tuple[Mapped, ...]:
    """The nests that have loops of their own, after all passes."""
    planned = plan_gpu(program, options, device)
    *_, (_, built) = planned.applied()
    along = set[str]().union(*(g.followers for g in fusion_groups(planned.program.nests)))
    return tuple(
        Mapped(built, nest, tuple(group), device)
        for group in groups(built.nests)
        for nest in group
        if nest.name not in along
    )
