"""Where a sum may run beyond the end of a dimension, as only zeros are added there."""

from __future__ import annotations

from typing import assert_never

from tcl.codegen.cuda.emit.scope import Geometry
from tcl.codegen.loopir import ir


def zero_beyond(geometry: Geometry, dim: str, accumulate: ir.Accumulate) -> bool:
    """Whether a sum gets zeros at the points of a reduction that are not there.

    All that depends on the reduction has to be zero there: an operand in a panel whose axis ends
    where the dimension does, or one that is read only at points that are there. Then so is a
    product of two such operands, but not one with anything else, which may be infinite.
    """
    return accumulate.op == "+" and _zero(geometry, dim, accumulate.value)


def _zero(geometry: Geometry, dim: str, value: ir.Value) -> bool:
    match value:
        case ir.Load():
            return _read_as_zero(geometry, dim, value)
        case ir.Const(value=number):
            return not number
        case ir.Binary(op="*" | "+" | "-", left=left, right=right):
            return _zero(geometry, dim, left) and _zero(geometry, dim, right)
        case ir.Unary(op="-", operand=operand) | ir.Cast(operand=operand):
            return _zero(geometry, dim, operand)
        case ir.Select(then=then, otherwise=otherwise):
            return _zero(geometry, dim, then) and _zero(geometry, dim, otherwise)
        case ir.Binary() | ir.Unary() | ir.Position() | ir.Variable() | ir.Combined() | ir.Call():
            return False
        case _:
            assert_never(value)


def _read_as_zero(geometry: Geometry, dim: str, load: ir.Load) -> bool:
    """Whether what is read at points beyond the dimension is zero: where threads fill a panel, by
    the panel's own axis for the dimension; elsewhere as fragments are zero where a point is not
    there."""
    tensor = geometry.program.tensor(load.ref.tensor)
    if tensor.shared:
        return dim in geometry.kernel.panel(tensor.name).zero_beyond
    if not load.total or any(isinstance(s, ir.Computed) for s in load.ref.subscripts):
        return False
    return any(f.dim == dim for f, _ in geometry.strides(tensor.layout.place(load.ref)))
