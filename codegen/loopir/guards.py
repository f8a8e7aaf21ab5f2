"""Where a statement of a GPU's thread may do what it does only at points that are there."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import assert_never

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.fragments import hoistable
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.walk import in_block, loads, values_in, walk


def guarded(
    geometry: Geometry, body: ir.Statement, loops: Sequence[ir.Loop], around: Container[str]
) -> tuple[str, ...]:
    """The dimensions with points that are not there, at which the statements inside of some
    unrolled loops and lanes must not do what they do: write, read what cannot be read before the
    loops, or add to a sum what is not zero. ``around``: the folds of loops around all of them."""
    found = set[str]()
    for statement in in_block(body):
        found |= set(_touching(geometry, statement, loops))
        if isinstance(statement, ir.Accumulate):
            found |= set(_adding(geometry, statement, loops, around))
    return tuple(d for d in geometry.dims if d in found and geometry.ragged[d])


def _touching(
    geometry: Geometry, statement: ir.Statement, loops: Sequence[ir.Loop]
) -> Iterator[str]:
    """Dimensions at whose points memory is touched."""
    around = [x.fold.dim for x in loops]
    if isinstance(statement, ir.Store | ir.Update):
        yield from around
        yield from map(geometry.dim_of, statement.ref.names)
    for value in values_in(statement):
        for v in walk(value):
            if isinstance(v, ir.Load) and not (hoistable(v) and loops):
                yield from map(geometry.dim_of, v.ref.names)
                if not hoistable(v):
                    yield from around


def _adding(
    geometry: Geometry, accumulate: ir.Accumulate, loops: Sequence[ir.Loop], around: Container[str]
) -> Iterator[str]:
    """The reductions of which a point is added here, unless it is zero where it is not there."""
    own = {x.fold.name for x in loops}
    tensors = (geometry.program.tensor(x.ref.tensor) for x in loads(accumulate.value))
    read = bool(loops) or all(t.shared for t in tensors)
    for name, dim in geometry.dims.items():
        here = dim.reduction and all(
            f.name in own or f.name in around for f in geometry.folds[name]
        )
        if here and not (read and zero_beyond(geometry, name, accumulate)):
            yield name


def zero_beyond(geometry: Geometry, dim: str, accumulate: ir.Accumulate) -> bool:
    """Whether a sum gets zeros at the points of a reduction that are not there.

    All that depends on the reduction has to be zero there: an operand in a panel whose axis ends
    where the dimension does, or one that is read only at points that are there. Then so is a
    product of two such operands, but not one with anything else, which may be infinite.
    """
    if accumulate.op == "=" and isinstance(accumulate.value, ir.Load):
        return _read_as_zero(geometry, dim, accumulate.value)  # it is kept, not added
    return accumulate.op == "+" and zero_if(
        accumulate.value, lambda load: _read_as_zero(geometry, dim, load)
    )


def zero_if(value: ir.Value, zero: Callable[[ir.Load], bool]) -> bool:
    """Whether a value is zero wherever those of its reads are of which ``zero`` says so."""
    match value:
        case ir.Load():
            return zero(value)
        case ir.Const(value=number):
            return not number
        case ir.Binary(op="*" | "+" | "-", left=left, right=right):
            return zero_if(left, zero) and zero_if(right, zero)
        case ir.Unary(op="-", operand=operand) | ir.Cast(operand=operand):
            return zero_if(operand, zero)
        case ir.Select(then=then, otherwise=otherwise):
            return zero_if(then, zero) and zero_if(otherwise, zero)
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
    if not load.total or not load.ref.is_affine:
        return False
    return any(f.dim == dim for f, _ in geometry.strides(tensor.layout.place(load.ref)))
