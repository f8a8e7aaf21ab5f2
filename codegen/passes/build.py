"""Builds the loops of a nest out of its list, with accumulators in registers where they fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcl.codegen import ir
from tcl.grammar.types import Kind, ScalarType

ACCUMULATOR = "accumulator"


@dataclass(frozen=True, slots=True)
class Build:
    """Gives every nest its ``body``.

    The innermost reduction loops run over an accumulator in a register. If a reduction loop
    lies outside an output loop, the target holds partial results in between (set to the
    identity by loops of their own first); a 16-bit float target has them in float32 scratch
    memory, so that it is rounded once.
    """

    def __call__(self, program: ir.Program) -> ir.Program:
        scratch: list[ir.Tensor] = []
        nests = tuple(replace(n, body=_body(n, scratch)) for n in program.nests)
        return ir.Program(program.name, (*program.tensors, *scratch), nests)


def identity(op: str, type_: ScalarType) -> ir.Const:
    """The value from which a reduction starts."""
    match op, type_.kind:
        case "+", Kind.BOOL:
            return ir.Const(False, type_)
        case "*", Kind.BOOL:
            return ir.Const(True, type_)
        case "+", kind:
            return ir.Const(0.0 if kind is Kind.FLOAT else 0, type_)
        case "*", kind:
            return ir.Const(1.0 if kind is Kind.FLOAT else 1, type_)
        case "min", Kind.FLOAT:
            return ir.Const(math.inf, type_)
        case "max", Kind.FLOAT:
            return ir.Const(-math.inf, type_)
        case "min", Kind.BOOL:
            return ir.Const(True, type_)
        case "max", Kind.BOOL:
            return ir.Const(False, type_)
        case "min", _:
            return ir.Const(type_.limits[1], type_)
        case "max", _:
            return ir.Const(type_.limits[0], type_)
    raise ir.IRError(f"{op} is no reduction")


def _body(nest: ir.Nest, scratch: list[ir.Tensor]) -> ir.Statement:
    point = nest.point
    if point.op == "=":
        return _wrap(nest.loops, ir.Block((*point.lets, ir.Store(point.target, point.value))))
    split = len(nest.loops)
    if not (nest.sequential and any(d.reduction for d in nest.dims)):
        while split > 0 and nest.dim(nest.loops[split - 1].fold.dim).reduction:
            split -= 1
    outer, inner = nest.loops[:split], nest.loops[split:]
    if all(not nest.dim(x.fold.dim).reduction for x in outer):
        start: ir.Value = _stored(point.target, point.type)
        if point.initialise:
            start = identity(point.op, point.type)
        return _wrap(outer, _reduce(point, inner, point.target, start))
    return _through_memory(nest, outer, inner, scratch)


def _reduce(
    point: ir.Point, inner: Sequence[ir.Loop], into: ir.TensorRef, start: ir.Value
) -> ir.Block:
    update = ir.Accumulate(ACCUMULATOR, point.op, point.value)
    return ir.Block(
        (
            ir.Declare(ACCUMULATOR, start),
            _wrap(inner, ir.Block((*point.lets, update))),
            ir.Store(into, ir.Variable(ACCUMULATOR, start.type)),
        )
    )


def _through_memory(
    nest: ir.Nest, outer: Sequence[ir.Loop], inner: Sequence[ir.Loop], scratch: list[ir.Tensor]
) -> ir.Block:
    point = nest.point
    results = [x for x in nest.loops if not nest.dim(x.fold.dim).reduction]
    start = identity(point.op, point.type) if point.initialise else None
    if point.type.compute == point.type:
        update = _wrap(
            outer, _reduce(point, inner, point.target, _stored(point.target, point.type))
        )
        if start is None:
            return ir.Block((update,))
        return ir.Block((_wrap(results, ir.Store(point.target, start)), update))
    dims = [d for d in nest.dims if not d.reduction]
    wide = point.type.compute
    layout = ir.contiguous(wide, (d.extent for d in dims), (d.first for d in dims))
    partial = ir.Tensor(f"{nest.name}.partial", ir.Role.SCRATCH, layout)
    scratch.append(partial)
    at = ir.TensorRef(partial.name, point.target.subscripts)
    return ir.Block(
        (
            _wrap(results, ir.Store(at, start or _stored(point.target, point.type))),
            _wrap(outer, _reduce(point, inner, at, _stored(at, wide))),
            _wrap(results, ir.Store(point.target, _stored(at, wide))),
        )
    )


def _stored(ref: ir.TensorRef, type_: ScalarType) -> ir.Load:
    return ir.Load(ref, type_, total=True)


def _wrap(loops: Sequence[ir.Loop], body: ir.Statement) -> ir.Statement:
    for loop in reversed(loops):
        body = ir.For(loop, body)
    return body
