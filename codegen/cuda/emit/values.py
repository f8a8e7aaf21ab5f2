"""Values: every node of the IR's expressions as CUDA C++.

The text of a value has exactly the C++ type of its scalar type (``c_type``), so that the helper
functions of the prelude find theirs; what the callbacks give has to, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from tcl.codegen.cuda.cpp import arith, pieces
from tcl.codegen.cuda.cpp.arith import as_single, bare, bits_of, builtin, cast, is_rounded
from tcl.codegen.cuda.cpp.pieces import Piece
from tcl.codegen.cuda.cpp.types import (
    c_type,
    constant,
    is_half,
    to_memory,
)
from tcl.codegen.cuda.prelude.prelude import helpers_in
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import guard
from tcl.codegen.loopir.walk import children
from tcl.grammar.sizes.varying import Size
from tcl.grammar.syntax.types import ScalarType


class Expressions:
    """Writes values. Callbacks write what depends on the place: ``index`` an index expression as
    a value of a type, ``load`` an element that is read as a value (``from_memory`` of its tensor's
    type, which may be wider than the value's), ``variable`` a name's value, ``combined`` what
    accumulators give, ``size`` a number that is known at the launch, as a value of a C++ type.
    Their texts are expressions with spaces around binary operators."""

    def __init__(
        self,
        index: Callable[[ir.Affine, ScalarType], str],
        load: Callable[[ir.Load], str],
        variable: Callable[[ir.Variable], str],
        combined: Callable[[ir.Combined], str],
        size: Callable[[Size, str], Piece] | None = None,
    ) -> None:
        self.index, self.load = index, load
        self.variable, self.combined, self.size = variable, combined, size
        self.used: set[str] = set()
        """The helper functions of all texts so far."""

    def text(self, value: ir.Value) -> str:
        return self._noted(self._piece(value).text)

    def stored(self, value: ir.Value, type_: ScalarType) -> str:
        """The value, which may be of another float type, as an element of a tensor of
        ``type_``, rounded once."""
        if not is_half(type_):
            return self._noted(to_memory(cast(self._piece(value), value.type, type_).text, type_))
        value = bare(value)
        if isinstance(value, ir.Cast) and value.type == type_:
            value = bare(value.operand)
        single = as_single(self._piece(value), value.type, type_)
        return self._noted(bits_of(single, type_).text)

    def accumulate(self, op: str, target: str, value: ir.Value, type_: ScalarType) -> str:
        """The statement ``target op= value``, for ``+ * min max`` and plain ``=``. Sums of
        products of floats are fused, also where a condition chooses the products."""
        t = type_.compute
        condition, chosen = guard(op, bare(value))
        plain = bare(chosen)
        if op == "=":
            return f"{target} = {self.text(value)};"
        if op == "+" and t.is_float and isinstance(plain, ir.Binary) and plain.op == "*":
            factors = self._piece(plain.left), self._piece(plain.right)
            fused = builtin("fma", [*factors, Piece(target)], t)
            when = "" if condition is None else f"if ({self._piece(condition).text}) "
            return self._noted(f"{when}{target} = {fused.text};")
        return self._noted(arith.accumulated(op, target, self._piece(value), t))

    def merge(self, op: str, left: str, right: str, type_: ScalarType) -> str:
        """``left op right`` for two texts of values of ``type_``, by a reduction's ``op``."""
        first, second = pieces.written(left), pieces.written(right)
        return self._noted(arith.reduced(op, first, second, type_.compute).text)

    def _noted(self, text: str) -> str:
        self.used |= helpers_in(text)
        return text

    def _piece(self, value: ir.Value) -> Piece:
        # An own stack instead of recursion: expressions may nest deep.
        pending: list[tuple[ir.Value, bool]] = [(value, False)]
        done: list[Piece] = []
        while pending:
            current, ready = pending.pop()
            if isinstance(current, ir.Load):
                done.append(pieces.written(self.load(current)))
                continue
            inside = children(current)
            if ready or not inside:
                first = len(done) - len(inside)
                operands = done[first:]
                done[first:] = [self._node(current, operands)]
            else:
                pending.append((current, True))
                pending += ((v, False) for v in reversed(inside))
        return done[0]

    def _node(self, value: ir.Value, operands: list[Piece]) -> Piece:
        """A node, by the pieces of the values directly inside it."""
        match value:
            case ir.Const(value=number, type=type_):
                if isinstance(number, Size):
                    assert self.size is not None
                    return self.size(number, c_type(type_))
                text = constant(number, type_)
                return Piece(text, arith.constant_binds(text))
            case ir.Position(index=index, type=type_):
                return pieces.written(self.index(index, type_))
            case ir.Variable():
                return pieces.written(self.variable(value))
            case ir.Combined():
                return pieces.written(self.combined(value))
            case ir.Unary(op=op, type=type_):
                return arith.unary(op, operands[0], type_.compute)
            case ir.Binary(op=op, left=left):
                return arith.binary(op, operands[0], operands[1], left.type.compute)
            case ir.Select():
                return pieces.choice(*operands)
            case ir.Call(name=name, type=type_):
                return builtin(name, operands, type_.compute)
            case ir.Cast(operand=operand, type=type_):
                if is_half(type_) and is_rounded(operand, type_):
                    return operands[0]
                return cast(operands[0], operand.type, type_)
            case ir.Load():
                raise AssertionError("loads are written before")
            case _:
                assert_never(value)
