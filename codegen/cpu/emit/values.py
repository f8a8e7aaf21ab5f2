"""Values: every node of the IR's expressions as instructions.

In lanes, a value that all lanes share stays a scalar until it meets one that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import assert_never

from tcl.codegen.cpu.emit.accesses import AccessEmitter
from tcl.codegen.cpu.emit.lane_parts import Parting
from tcl.codegen.cpu.emit.repeats import repeat
from tcl.codegen.cpu.emit.scope import (
    AccumulatorRegisters,
    At,
    Scope,
    affine,
    i64,
    lane_values,
    number,
)
from tcl.codegen.cpu.llvm.arith import COMPARISONS, arithmetic, compare, settled, unary
from tcl.codegen.cpu.llvm.builder import Builder, Val, register_type, vector
from tcl.codegen.cpu.llvm.convert import cast
from tcl.codegen.cpu.llvm.transpose import picked
from tcl.codegen.cpu.math import builtins as math
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import is_free
from tcl.codegen.loopir.walk import indices, walk
from tcl.grammar.sizes.varying import Size, provably_equal
from tcl.grammar.syntax.types import BOOL, INT64, Kind, ScalarType


class Values:
    memory: AccessEmitter

    def __init__(self, b: Builder, dims: Mapping[str, ir.Dim], native_half: bool) -> None:
        self.b, self.dims, self.native_half = b, dims, native_half
        self.partial_cache: dict[int, bool] = {}
        self.parting = Parting(b, dims, self.value)

    def let(self, value: ir.Value, scope: Scope) -> Val:
        parted = ("+", "-", "min", "max")
        if isinstance(value, ir.Binary) and value.op in parted and value.type == INT64:
            made = self.parting.value(value, scope)
            if made is not None:
                return made
        return self.value(value, scope)

    def value(self, value: ir.Value, scope: Scope) -> Val:
        """``value`` at this place: a scalar or one value per lane."""
        b = self.b
        match value:  # the most frequent ones first
            case ir.Load():
                return self.memory.load(value, scope)
            case ir.Binary():
                return self._binary(value, scope)
            case ir.Variable(name=name):
                if name in scope.accumulators:
                    return self.accumulated(scope.accumulators[name], scope)
                return scope.variables[name]
            case ir.Const(value=Size() as size, type=type_):
                return b.convert("trunc", number(size), register_type(type_))
            case ir.Const(value=constant, type=type_):
                return b.constant(constant, register_type(type_))
            case ir.Position(index=index, type=type_):
                first, step = affine(b, index, self.dims, scope)
                apart = (
                    first.constant if first.base is not None and not provably_equal(step, 0) else 0
                )
                place = i64(b, first + -apart)
                own = b.convert("trunc", place, register_type(type_))
                found = lane_values(b, own, step, scope.lanes, apart)
                if ends := self._ends(place, apart, step, scope.lanes, type_):
                    b.ends[found.text] = ends
                return found
            case ir.Combined():
                return self._combined(value, scope)
            case ir.Unary(op=op, operand=operand, type=type_):
                return unary(b, op, self.value(operand, scope), type_)
            case ir.Select(condition=condition, then=then, otherwise=otherwise):
                return self._choose(self.value(condition, scope), then, otherwise, scope)
            case ir.Call(name=name, arguments=arguments, type=type_):
                operands = [self.value(a, scope) for a in arguments]
                return math.call(b, name, operands, type_)
            case ir.Cast(operand=operand, type=type_):
                inner = self.value(operand, scope)
                return cast(b, inner, operand.type, type_, self.native_half)
            case _:
                assert_never(value)

    def slot(self, accumulators: AccumulatorRegisters, scope: Scope) -> str:
        """The stack slot of the accumulator for this iteration."""
        key = tuple([scope.folds[name].constant for name in accumulators.names])
        slot, rows = self.slot_at(accumulators, key), accumulators.rows
        if rows is None:
            return slot
        row = i64(self.b, scope.folds[rows.name])
        type_ = vector(accumulators.type, accumulators.lanes)
        return self.b.op(f"getelementptr {type_}, ptr {slot}, {row}", "ptr").text

    def slot_at(self, accumulators: AccumulatorRegisters, key: tuple[int, ...]) -> str:
        """The stack slot of the accumulator for the iterations at these offsets."""
        if key not in accumulators.slots:
            type_ = vector(accumulators.type, accumulators.lanes)
            if accumulators.rows is not None:
                type_ = f"[{accumulators.rows.count} x {type_}]"
            accumulators.slots[key] = self.b.alloca(type_)
        return accumulators.slots[key]

    def each_row(
        self,
        own: AccumulatorRegisters,
        key: tuple[int, ...],
        each: Callable[[Callable[[AccumulatorRegisters], str]], None],
    ) -> None:
        """What is done with the accumulators for the iterations at these offsets, of all rows of a
        matrix: ``each`` gets what says where those of a name are."""
        b = self.b
        if own.rows is None:
            each(lambda some: self.slot_at(some, key))
            return
        type_ = vector(own.type, own.lanes)

        def row(index: Val) -> None:
            each(
                lambda some: (
                    b.op(
                        f"getelementptr {type_}, ptr {self.slot_at(some, key)}, {index}", "ptr"
                    ).text
                )
            )

        repeat(b, number(0), number(own.rows.count), 1, row, empty=False)

    def accumulated(self, accumulators: AccumulatorRegisters, scope: Scope) -> Val:
        """What the accumulator for this iteration holds."""
        return self.held(accumulators, self.slot(accumulators, scope))

    def held(self, accumulators: AccumulatorRegisters, slot: str) -> Val:
        """What one of its slots holds."""
        type_, lanes = accumulators.type, accumulators.lanes
        if accumulators.rows is None:
            return self.b.held_in(slot, type_, lanes)
        return self.b.op(f"load {vector(type_, lanes)}, ptr {slot}", type_, lanes)

    def hold(self, accumulators: AccumulatorRegisters, slot: str, value: Val) -> None:
        """Puts a value into one of its slots. Rows of a matrix are memory to the matrix unit."""
        if accumulators.rows is None:
            self.b.hold(slot, value)
        else:
            self.b.do(f"store {value}, ptr {slot}")

    def _combined(self, value: ir.Combined, scope: Scope) -> Val:
        b = self.b
        names = (v.name for v in walk(value.value) if isinstance(v, ir.Variable))
        own = next(scope.accumulators[name] for name in names if name in scope.accumulators)
        written_out = [f for f in value.folds if f in own.over]
        parts = []
        for each in product(*(range(0, f.step * f.count, f.step) for f in written_out)):
            at = {f.name: At(None, k) for f, k in zip(written_out, each, strict=True)}
            parts.append(b.spread(self.value(value.value, scope.moved({}, at)), own.lanes))
        while len(parts) > 1:  # in pairs, so that no sum waits for all others
            pairs = list(zip(parts[::2], parts[1::2], strict=False))
            sums = [arithmetic(b, value.op, x, y, value.type) for x, y in pairs]
            parts = sums + parts[2 * len(pairs) :]
        return self._over_lanes(parts[0], value) if scope.lanes < own.lanes else parts[0]

    def _over_lanes(self, part: Val, value: ir.Combined) -> Val:
        """The lanes of a vector, combined by halves."""
        b = self.b
        while part.lanes > 1:
            half = part.lanes // 2
            low, high = (
                picked(b, part, range(first, first + half)) if half > 1 else b.lane(part, first)
                for first in (0, half)
            )
            part = arithmetic(b, value.op, low, high, value.type)
        return part

    def _binary(self, value: ir.Binary, scope: Scope) -> Val:
        if value.op in ("/", "%") and value.type.is_integral:
            made = self.parting.value(value, scope) or self.parting.wrapping_once(value, scope)
            if made is not None:
                return made
        left = self.value(value.left, scope)
        if value.op == "&&":
            return self._choose(left, value.right, ir.Const(False, BOOL), scope)
        if value.op == "||":
            return self._choose(left, ir.Const(True, BOOL), value.right, scope)
        match value:
            case ir.Binary(
                op="/" | "%" as op,
                right=ir.Select(condition, ir.Const() as then, ir.Const() as otherwise),
                type=type_,
            ) if type_.is_integral:
                # By each of both: vectors have no division by a number that is not known.
                holds = self.value(condition, scope)
                divisors = (self.value(each, scope) for each in (then, otherwise))
                quotients = (arithmetic(self.b, op, left, each, type_) for each in divisors)
                return self.b.select(holds, *quotients)
        right = self.value(value.right, scope)
        if value.op in COMPARISONS:
            one, other = (self._numbers(each, value.left.type) for each in (left, right))
            known = settled(value.op, one, other) if one and other else None
            if known is not None:
                return self.b.constant(known, "i1")
            return compare(self.b, value.op, left, right, value.left.type)
        return arithmetic(self.b, value.op, left, right, value.type)

    def _numbers(self, value: Val, type_: ScalarType) -> tuple[int, int] | None:
        """The smallest and the largest number of a type that a value may be, if these are known."""
        ends = self.b.interval(value)
        if ends is None or ends[0] >= 0 or type_.kind is not Kind.UINT:
            return ends
        return (ends[0] + (1 << type_.bits), ends[1] + (1 << type_.bits)) if ends[1] < 0 else None

    def _ends(
        self, first: Val, start: int, step: int, lanes: int, type_: ScalarType
    ) -> tuple[int, int] | None:
        """The smallest and the largest index in lanes, of which the first one's is ``start`` more
        than a value, if these are known, and are numbers of the type."""
        ends = self.b.interval(first)
        if ends is None or isinstance(step, Size) or isinstance(start, Size):
            return None
        far = step * (lanes - 1)
        low, high = ends[0] + start + min(far, 0), ends[1] + start + max(far, 0)
        return (low, high) if type_.limits[0] <= low and high <= type_.limits[1] else None

    def _choose(self, condition: Val, then: ir.Value, otherwise: ir.Value, scope: Scope) -> Val:
        b = self.b
        condition = b.settled(condition)
        if condition.text in ("true", "false"):
            return self.value(then if condition.text == "true" else otherwise, scope)
        if condition.lanes > 1:
            # Both sides for all lanes, except where that would read what must not be read.
            not_taken = b.negation(condition) if self._partial(otherwise) else None
            yes = self.value(then, self.lanes_where(condition, then, scope))
            no = self.value(
                otherwise,
                scope if not_taken is None else self.lanes_where(not_taken, otherwise, scope),
            )
            return b.select(condition, yes, no)
        if all(is_free(side) or self._before_loop(side, scope) for side in (then, otherwise)):
            yes, no = self.value(then, scope), self.value(otherwise, scope)
            return b.select(condition, yes, no)
        return self._branch(condition, then, otherwise, scope)

    def _before_loop(self, value: ir.Value, scope: Scope) -> bool:
        """Whether all of a value is computed before the innermost loop around this place."""
        known = self.b.known
        if not known.around:
            return False
        loop = known.around[-1]

        def within(base: Val | None) -> bool:
            return base is not None and known.depths.get(base.text, 0) == len(known.around)

        for v in walk(value):
            match v:
                case ir.Combined():
                    return False
                case ir.Binary(op="/" | "%", type=type_) if type_.is_integral:
                    return False  # as it is where it may divide by 0
                case ir.Variable(name=name) if name in scope.accumulators or within(
                    scope.variables[name]
                ):
                    return False
                case ir.Load(ref=ref, total=total) if not (
                    total
                    and ref.is_affine
                    and loop.begins == known.scope
                    and loop.written is not None
                    and ref.tensor not in loop.written
                ):
                    return False
        for index in indices(value):
            for name, _ in index.terms:
                if name in (scope.lane_dim, scope.lane_fold):
                    return False
                at = scope.folds.get(name)
                if within((scope.ranges[name].offset if at is None else at).base):
                    return False
        return True

    def _branch(self, condition: Val, then: ir.Value, otherwise: ir.Value, scope: Scope) -> Val:
        b = self.b
        labels = b.new_label("then"), b.new_label("else")
        after = b.new_label("chosen")
        incoming: list[tuple[Val, str]] = []
        with b.meeting(after):
            b.branch_if(condition, *labels)
            for label, side in zip(labels, (then, otherwise), strict=True):
                b.start(label)
                result = b.spread(self.value(side, scope), scope.lanes)
                incoming.append((result, b.block))
                b.branch(after)
        return b.phi(incoming)

    def lanes_where(self, condition: Val, side: ir.Value, scope: Scope) -> Scope:
        """The scope in which ``side`` runs only for the lanes of ``condition``."""
        if not self._partial(side):
            return scope
        if scope.mask is None:
            return scope.under(condition)
        both = self.b.op(f"select {scope.mask}, {condition}, {_none(condition)}", "i1", scope.lanes)
        return scope.under(both)

    def _partial(self, value: ir.Value) -> bool:
        """Whether it reads something that may not be there."""
        known = self.partial_cache.get(id(value))
        if known is None:
            known = any(isinstance(v, ir.Load) and not v.total for v in walk(value))
            self.partial_cache[id(value)] = known
        return known


def _none(like: Val) -> str:
    return f"{like.ty} zeroinitializer"
