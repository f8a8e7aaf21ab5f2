"""Panels that are transposed on the way to shared memory.

Threads that hold many results of a product read both operands in vectors along these. Where no
operand lies in order along the results that are written in vectors, those that lie so along the
reduction are transposed: vectors along it would keep several of its points in registers for each
result, and results would be written one by one.
"""

from __future__ import annotations

from collections.abc import Collection

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import axis_order
from tcl.codegen.loopir.walk import operands
from tcl.grammar.sizes.varying import provably_equal

LEAST = 4
"""Words that a thread reads at once, and results along which it does."""
_HELD = 128
"""Results of a thread from which on it pays: a product of 2048 x 2048 float32 takes .91 (NT, TT) of
the time then, on an H100. If the right factor is in order (NN), transposing the left one gains
nothing."""


def transposed_axis(
    program: ir.Program, nest: ir.Nest, ref: ir.TensorRef, kept: Collection[str], held: int
) -> int | None:
    """The axis along which the rows of a panel of an operand go if that is transposed, None if it
    is not. ``kept``: dimensions of which a thread has several vectors' results; ``held``: all of
    its results."""
    if held < _HELD or reads_in_order(program, nest):
        return None
    return axis_of_vectors(program, nest, ref, kept, held)


def axis_of_vectors(
    program: ir.Program, nest: ir.Nest, ref: ir.TensorRef, kept: Collection[str], held: int
) -> int | None:
    """The same where no operand lies in order along results that do."""
    source = program.tensor(ref.tensor).layout
    if held < _HELD or source.itemsize != LEAST:
        return None
    order = axis_order(source)
    if not order or not provably_equal(source.strides[order[-1]], LEAST):
        return None
    reductions = {d.name for d in nest.dims if d.reduction}
    along = ref.subscripts[order[-1]]
    if not isinstance(along, ir.Affine) or [
        factor for name, factor in along.terms if name in reductions or name in kept
    ] != [1]:  # a part of a reduction, which is split over blocks, is beside it
        return None
    names = [_alone(s) for s in ref.subscripts]
    found = [k for k in order if names[k] in kept and names[k] not in reductions]
    return found[0] if len(found) == 1 else None


def reads_in_order(program: ir.Program, nest: ir.Nest) -> bool:
    """Whether an operand lies in order along results that do."""
    target = nest.point.target
    written = set(program.tensor(target.tensor).layout.in_order(target))
    reads = (x.ref for x in operands(nest.point))
    return any(written & set(program.tensor(r.tensor).layout.in_order(r)) for r in reads)


def _alone(subscript: object) -> str | None:
    """The dimension that a subscript is, if it is nothing else."""
    if isinstance(subscript, ir.Affine) and len(subscript.terms) == 1 and not subscript.constant:
        ((name, factor),) = subscript.terms
        return name if factor == 1 else None
    return None
