"""What features of candidates for a CPU need of a nest, read once: where it lies in memory."""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen.choose.cpu.access_costs import OperandAccess, access_of, arithmetic_cycles
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands


@dataclass(frozen=True, slots=True)
class AccessAxis:
    """A dimension of a tensor, as an access goes along it."""

    extent: int
    steps: tuple[tuple[int, int], ...]
    """(dimension of the nest, elements per point) of those that move it."""
    anywhere: bool
    """Its place depends on data."""


@dataclass(frozen=True, slots=True)
class Touched:
    """An operand or the target of a nest."""

    access: OperandAccess
    axes: tuple[AccessAxis, ...]
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


def read_nest(program: ir.Program, position: int) -> SubjectNest:
    """The nest in this place."""
    nest = program.nests[position]
    target = ir.Load(nest.point.target, nest.point.type, total=True)
    names = [d.name for d in nest.dims]
    work = tuple(
        (tuple(n in dims for n in names), c) for dims, c in arithmetic_cycles(nest).items()
    )
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
        axes.append(AccessAxis(layout.extents[k], steps, not affine))
    moved = {d for axis in axes for d, _ in axis.steps}
    everywhere = any(axis.anywhere for axis in axes)
    moves = tuple(everywhere or d in moved for d in range(len(names)))
    return Touched(access, tuple(axes), moves)
