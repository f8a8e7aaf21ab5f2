"""Dot products: points of a reduction that one instruction multiplies and adds up.

Each lane of its operands is a word of 32 bits, in which the factors of neighbouring points lie
next to each other. Words are read as they lie in memory where they lie there so, as in panels, and
put together point by point elsewhere. Of points that do not exist, factors are 0.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcl.codegen.cpu.emit.accesses import AccessEmitter
from tcl.codegen.cpu.emit.scope import At, PointRange, Scope, known_span
from tcl.codegen.cpu.emit.values import Values
from tcl.codegen.cpu.llvm.arith import arithmetic
from tcl.codegen.cpu.llvm.builder import Builder, Val, memory_type
from tcl.codegen.cpu.llvm.convert import to_memory
from tcl.codegen.cpu.llvm.transpose import joined, picked
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.fragments import Form, Fragment, fragment_of
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import dot_factors, moved_byte
from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.types import ScalarType

_WORD = 32
"""Bits of a word."""
_HIGHEST = 0x80808080
"""The highest bits of the bytes of a word."""


@dataclass(frozen=True, slots=True)
class Dots:
    """Emits what is done for all points of a dot product at once."""

    b: Builder
    device: CpuProfile
    values: Values
    memory: AccessEmitter

    def add(self, fold: ir.Fold, to: ir.Accumulate, scope: Scope) -> None:
        """Adds the products of all points to an accumulator."""
        own = scope.accumulators[to.name]
        left, right = dot_factors(to.value)
        fragment, turned = fragment_of(self.device, (left.type, right.type), fold.count)
        words = [self._words(factor, fold, scope) for factor in (left, right)]
        first, second = reversed(words) if turned else words
        old = self.values.accumulated(own, scope)
        result = self._sum(fragment, old, first, second)
        self.values.hold(own, self.values.slot(own, scope), result)

    def store(self, fold: ir.Fold, store: ir.Store, scope: Scope) -> None:
        """Writes all points to a panel: as words, with zeros for those that do not exist, if they
        are what an instruction takes."""
        if store.value.type.itemsize * 8 * fold.count == _WORD:
            words = self._words(store.value, fold, scope)
            self.memory.store_words(store.ref, words, scope.moved({}, {fold.name: At()}))
            return
        for at in self._points(fold, scope):
            self.memory.store(store.ref, self.values.value(store.value, at), at)

    def _words(self, value: ir.Value, fold: ir.Fold, scope: Scope) -> Val:
        """A value at all points, in the words of all lanes, or in one that all lanes share."""
        b, bits, points = self.b, _WORD // fold.count, _span(fold, scope)
        moved = moved_byte(value)
        load = moved if moved is not None else value
        if isinstance(load, ir.Load) and self.memory.may_read_words(load, fold, points, scope):
            words = self.memory.load_words(load, scope.moved({}, {fold.name: At()}))
            known = (1 << bits * points) - 1
            if points < fold.count:
                words = b.binary("and", words, _word(known))
            return words if moved is None else b.binary("xor", words, _word(_HIGHEST & known))
        words = _word(0)
        for k, at in enumerate(self._points(fold, scope)):
            part = self._bits(value, at)
            if k:
                part = b.binary("shl", part, _word(bits * k))
            words = b.binary("or", words, part) if k else part
        return words

    def _points(self, fold: ir.Fold, scope: Scope) -> Iterator[Scope]:
        there = scope.ranges[fold.dim].offset
        for k in range(_span(fold, scope)):
            yield scope.moved({fold.dim: PointRange(there + k, 1)}, {fold.name: At(None, k)})

    def _bits(self, value: ir.Value, scope: Scope) -> Val:
        """A value at one point, in the lowest bits of a word."""
        b = self.b
        if isinstance(value, ir.Const):
            return _word(int(value.value) & ((1 << value.type.bits) - 1))
        if isinstance(value, ir.Load):
            return b.convert("zext", self.memory.bits(value, scope), "i32")
        found = self.values.value(value, scope)
        raw = to_memory(b, found, value.type, self.values.native_half)
        return b.convert("zext", raw, "i32")

    def _sum(self, fragment: Fragment, old: Val, first: Val, second: Val) -> Val:
        """``old + first * second``, by the longest vectors that are full, or the shortest ones."""
        b, lanes = self.b, old.lanes
        forms = fragment.forms_of(self.device)
        form = next((f for f in forms if f.lanes <= lanes), forms[-1])
        parts = []
        for start in range(0, lanes, form.lanes):
            sums = self._part(old, start, form)
            operands = [
                self._as(self._part(words, start, form), type_, fragment.depth)
                for words, type_ in zip((first, second), fragment.factors, strict=True)
            ]
            if fragment.adds:
                made = b.call(form.intrinsic, sums.type, form.lanes, sums, *operands)
            else:
                made = b.call(form.intrinsic, sums.type, form.lanes, *operands)
                made = arithmetic(b, "+", sums, made, fragment.sums)
            parts.append(made)
        if parts[0].lanes > lanes:
            return b.lane(parts[0], 0) if lanes == 1 else picked(b, parts[0], range(lanes))
        return joined(b, parts)

    def _part(self, value: Val, start: int, form: Form) -> Val:
        """As many lanes as a vector of this form has, from ``start`` on; one for all is spread."""
        b = self.b
        if value.lanes == 1:
            return b.spread(value, form.lanes)
        if value.lanes == form.lanes:
            return value
        order = (start + k for k in range(form.lanes))
        picks = ", ".join(f"i32 {k}" if k < value.lanes else "i32 poison" for k in order)
        text = f"shufflevector {value}, {value.ty} poison, <{form.lanes} x i32> <{picks}>"
        return b.op(text, value.type, form.lanes)

    def _as(self, words: Val, type_: ScalarType, depth: int) -> Val:
        """Words as the elements that lie in them."""
        name = "bfloat" if type_.is_float else memory_type(type_)
        lanes = words.lanes * depth
        return self.b.op(f"bitcast {words} to <{lanes} x {name}>", name, lanes)


def _word(bits: int) -> Val:
    """A word that is known now."""
    return Val(str(bits), "i32")


def _span(fold: ir.Fold, scope: Scope) -> int:
    """The points of a dot product that exist."""
    return min(known_span(fold, scope), fold.count)
