"""What candidates are described against: the nests of a def on a device, read once."""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen.choose.cpu.access_costs import Access, access_of, arithmetic
from tcl.codegen.choose.cpu.thread_worth import with_threads_worth
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.cost import Cost, cost_of
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import DEFAULT, MappingOptions
from tcl.codegen.passes.fusion.groups import fusion_groups
from tcl.codegen.schedule.cpu import plan_cpu
from tcl.common.errors import OptionsError
from tcl.tuner.model.program_subject import ProgramSubject

_OPEN = NestOptions()
_NESTS = 8
"""Nests that are described: those with the most points."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension of a tensor, as an access goes along it."""

    extent: int
    steps: tuple[tuple[int, int], ...]
    """(dimension of the nest, elements per point) of those that move it."""
    anywhere: bool
    """Its place depends on data."""


@dataclass(frozen=True, slots=True)
class Touched:
    """An operand or the target of a nest."""

    access: Access
    axes: tuple[Axis, ...]
    """From the one along which elements are neighbours in memory outwards."""
    moves: tuple[bool, ...]
    """Whether each dimension of the nest moves it."""


@dataclass(frozen=True, slots=True)
class SubjectNest:
    """A nest with loops of its own."""

    position: int
    """In the program."""
    nest: ir.Nest
    reads: tuple[Touched, ...]
    target: Touched
    work: tuple[tuple[tuple[bool, ...], float], ...]
    """Cycles of the operations of a point, by the dimensions that they depend on."""


@dataclass(frozen=True, slots=True)
class Subject(ProgramSubject[tuple[NestOptions, ...]]):
    """A def for its sizes on a CPU, with as many threads as are worth waking."""

    program: ir.Program
    """Dimensions that lie together are one."""
    device: CpuProfile
    nests: tuple[SubjectNest, ...]
    """Those that do not go along with others; at least one if the program has any."""
    cost: Cost
    merges: bool
    """Whether options have to merge dimensions to be described."""
    default: tuple[NestOptions, ...]
    """What each of ``nests`` gets where nothing is known, with nothing left open."""

    @staticmethod
    def of(program: ir.Program, device: CpuProfile) -> Subject:
        """Of a program that has just been lowered."""
        whole = merged(program)
        along = set[str]().union(*(g.followers for g in fusion_groups(whole.nests)))
        free = [i for i, n in enumerate(whole.nests) if not n.sequential and n.name not in along]
        by_points = sorted(free or range(len(whole.nests)), key=lambda i: -whole.nests[i].points)
        nests = tuple(_nest(whole, i) for i in sorted(by_points[:_NESTS]))
        used = with_threads_worth(whole, device)
        planned = plan_cpu(whole, DEFAULT, used).options
        return Subject(
            *(whole, used, nests, cost_of(program), whole != program),
            tuple(planned[n.nest.name] for n in nests),
        )

    def choices(self, options: MappingOptions) -> tuple[NestOptions, ...]:
        """What each of ``nests`` gets, with nothing left open. A candidate of a search says it
        all; what others leave open is planned, which takes milliseconds.

        ``OptionsError`` for options that cannot be planned, or do not merge dimensions.
        """
        if self.merges and not options.merges:
            raise OptionsError("dimensions are not merged, so that the nests are others")
        own = tuple(options.own(n.position) for n in self.nests)
        if options.default == _OPEN and all(o.complete_on("CPU") for o in own):
            return own
        planned = plan_cpu(self.program, options, self.device).options
        return tuple(planned[n.nest.name] for n in self.nests)


def _nest(program: ir.Program, position: int) -> SubjectNest:
    nest = program.nests[position]
    target = ir.Load(nest.point.target, nest.point.type, total=True)
    names = [d.name for d in nest.dims]
    work = tuple((tuple(n in dims for n in names), c) for dims, c in arithmetic(nest).items())
    reads = tuple(_touched(program, nest, load) for load in operands(nest.point))
    return SubjectNest(position, nest, reads, _touched(program, nest, target), work)


def _touched(program: ir.Program, nest: ir.Nest, load: ir.Load) -> Touched:
    layout, names = program.tensor(load.ref.tensor).layout, [d.name for d in nest.dims]
    access = access_of(program, nest, load)
    axes = []
    order = sorted(range(len(layout.extents)), key=lambda k: abs(layout.strides[k]))
    for k in order:
        subscript = load.ref.subscripts[k]
        affine = isinstance(subscript, ir.Affine)
        terms = subscript.terms if isinstance(subscript, ir.Affine) else ()
        steps = tuple((names.index(n), abs(c)) for n, c in terms if n in names)
        axes.append(Axis(layout.extents[k], steps, not affine))
    moved = {d for axis in axes for d, _ in axis.steps}
    everywhere = any(axis.anywhere for axis in axes)
    moves = tuple(everywhere or d in moved for d in range(len(names)))
    return Touched(access, tuple(axes), moves)
