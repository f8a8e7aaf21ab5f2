"""Index values of lanes, as what all lanes share and what each adds to it: ``x / 8`` and ``x % 8``
are such where ``x`` goes along lanes, and ``max(x - 1, 0)``. What lanes add is known now where the
first one begins at a multiple of the divisor, and else as soon as its remainder is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field

from tcl.codegen.cpu.emit.scope import At, Scope, add, affine, i64, number, scale
from tcl.codegen.cpu.llvm.builder import Builder, Val, register_type
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import index_of
from tcl.codegen.loopir.periods import interval_of
from tcl.codegen.loopir.quotients import COMPARISONS
from tcl.common.dataclass import dataclass, replace
from tcl.grammar.sizes.varying import Size, provably_at_least
from tcl.grammar.syntax.types import INT64

_MOST = 64
"""Values of lanes apart from the first one's, up to which these are worth computing on their own
where they are not known now: rows of more elements fit into no register."""

_LARGEST = 1 << 24
"""Divisors up to which i32 has all remainders and what lanes add to them."""


@dataclass(frozen=True, slots=True)
class LaneParts:
    """An index value in all lanes."""

    shared: At
    own: tuple[int, ...] | Val
    """What each lane adds, which is not negative: known now, or a vector of i32."""
    most: int
    """No lane adds more."""

    @property
    def lanes(self) -> int:
        return self.own.lanes if isinstance(self.own, Val) else len(self.own)

    @property
    def known(self) -> tuple[int, ...] | None:
        """What each lane adds, if that is known now."""
        return None if isinstance(self.own, Val) else self.own


def _of_lanes(shared: At, own: tuple[int, ...]) -> LaneParts:
    least = min(own)
    return LaneParts(shared + least, tuple([k - least for k in own]), max(own) - least)


def _selected(
    holds: Callable[[int, int], bool],
    compared: tuple[LaneParts | None, LaneParts | None],
    sides: tuple[LaneParts | None, LaneParts | None],
) -> LaneParts | None:
    """One of two sides in each lane, where it is known now which one, and lanes of both share the
    same but for a number."""
    (one, other), (then, otherwise) = map(_in_lanes, compared), map(_in_lanes, sides)
    if one is None or other is None or then is None or otherwise is None:
        return None
    if one[0] != other[0] or then[0] != otherwise[0]:
        return None
    lanes = zip(one[1], other[1], then[1], otherwise[1], strict=True)
    own = tuple([x if holds(a, b) else y for a, b, x, y in lanes])
    return _of_lanes(At(then[0]), own)


def _in_lanes(parts: LaneParts | None) -> tuple[Val | None, tuple[int, ...]] | None:
    """What lanes share that is not known now, and the number that each of them adds to it, if these
    are known."""
    if parts is None or parts.known is None:
        return None
    return parts.shared.base, tuple([parts.shared.constant + k for k in parts.known])


@dataclass(slots=True)
class Parting:
    """Finds the parts of index values."""

    b: Builder
    dims: Mapping[str, ir.Dim]
    evaluate: Callable[[ir.Value, Scope], Val]
    variables: dict[str, LaneParts] = field(default_factory=dict)
    """By the text of a variable's value."""

    def value(self, value: ir.Value, scope: Scope) -> Val | None:
        """A quotient or remainder of an index by a constant, computed from its parts."""
        parts = self.parts(value, scope)
        if parts is None:
            return None
        b, type_ = self.b, register_type(value.type)
        shared = b.convert("trunc", i64(b, parts.shared), type_)
        if isinstance(parts.own, Val):
            widen = "zext" if int(type_[1:]) > 32 else "trunc"
            made = b.binary("add", shared, b.convert(widen, parts.own, type_))
        elif parts.most == 0:
            made = shared
        else:
            ladder = ", ".join(f"{type_} {k}" for k in parts.own)
            own = Val(f"<{ladder}>", type_, scope.lanes)
            made = own if shared.text == "0" else b.binary("add", shared, own)
        if made.text.startswith("%"):
            self.variables[made.text] = parts
        return made

    def wrapping_once(self, value: ir.Binary, scope: Scope) -> Val | None:
        """A quotient or remainder by a constant, of an index that comes to no second multiple of
        it: without a division."""
        by, found = index_of(value.right), interval_of(value.left, self.dims, scope.lets)
        if by is None or by.terms or found is None or not provably_at_least(found[0], 0):
            return None
        if not provably_at_least(2 * by.constant, found[1] + 1):
            return None
        left = self.evaluate(value.left, scope)
        if provably_at_least(by.constant, found[1] + 1):
            return left if value.op == "%" else self.b.constant(0, left.type)
        return divided_once(self.b, value.op, left, by.constant)

    def parts(self, value: ir.Value, scope: Scope) -> LaneParts | None:
        """The parts of an integer; None for one that has none, or is computed as others are."""
        match value:
            case ir.Position(index=index):
                first, step = affine(self.b, index, self.dims, scope)
                if any(isinstance(x, Size) for x in (first.constant, step)):
                    return None
                return _of_lanes(first, tuple([step * k for k in range(scope.lanes)]))
            case ir.Const(value=int(constant)) if not isinstance(constant, bool | Size):
                return LaneParts(At(None, constant), (0,) * scope.lanes, 0)
            case ir.Variable(name=name) if name in scope.variables:
                found = self.variables.get(scope.variables[name].text)
                if found is not None and found.lanes < scope.lanes:  # the same in all lanes
                    return replace(found, own=(0,) * scope.lanes) if found.most == 0 else None
                return found
            case ir.Binary(op="+" | "-" as op, left=left, right=right):
                one, other = self.of(left, scope), self.of(right, scope)
                return None if one is None or other is None else self._sum(op, one, other)
            case ir.Binary(op="*", left=left, right=ir.Position(index=ir.Affine((), factor))):
                return self._scaled(self.parts(left, scope), factor)
            case ir.Binary(op="*", left=ir.Position(index=ir.Affine((), factor)), right=right):
                return self._scaled(self.parts(right, scope), factor)
            case ir.Binary(op="/" | "%" as op, left=left, right=right):
                divisor, ends = _divisor(right), interval_of(left, self.dims, scope.lets)
                if divisor is None or ends is None or not provably_at_least(ends[0], 0):
                    return None
                of, once = self.parts(left, scope), provably_at_least(2 * divisor, ends[1] + 1)
                return None if of is None else self._divided(op, of, divisor, once)
            case ir.Binary(op="min" | "max" as op, left=left, right=right, type=type_) if (
                type_ == INT64 and scope.lanes > 1
            ):
                one, other = self.of(left, scope), self.of(right, scope)
                return None if one is None or other is None else self._bounded(op, one, other)
            case ir.Select(condition=ir.Binary(op=op, left=left, right=right)) if op in COMPARISONS:
                sides = self.parts(value.then, scope), self.parts(value.otherwise, scope)
                compared = self.parts(left, scope), self.parts(right, scope)
                return _selected(COMPARISONS[op], compared, sides)
        return None

    def of(self, value: ir.Value, scope: Scope) -> LaneParts | None:
        """The parts of an integer, all of it for one that lanes share."""
        found = self.parts(value, scope)
        if found is None:
            made = self.evaluate(value, scope)
            if made.lanes == 1 and made.type == "i64":
                narrow = isinstance(value, ir.Cast) and value.operand.type.bits < 64
                if not narrow and interval_of(value, self.dims, scope.lets) is None:
                    self.b.wrapping.add(made.text)
                return LaneParts(At(made), (0,) * scope.lanes, 0)
        return found

    def _sum(self, op: str, one: LaneParts, other: LaneParts) -> LaneParts | None:
        b, sign = self.b, 1 if op == "+" else -1
        base = add(b, one.shared.base, scale(b, other.shared.base, sign))
        shared = At(base, one.shared.constant + sign * other.shared.constant)
        if one.known is not None and other.known is not None:
            pairs = zip(one.known, other.known, strict=True)
            return _of_lanes(shared, tuple([x + sign * y for x, y in pairs]))
        if other.most == 0:
            return LaneParts(shared, one.own, one.most)
        if one.most == 0 and op == "+":
            return LaneParts(shared, other.own, other.most)
        return None

    def _scaled(self, parts: LaneParts | None, factor: int) -> LaneParts | None:
        if parts is None or parts.known is None or isinstance(factor, Size):
            return None
        shared = At(scale(self.b, parts.shared.base, factor), parts.shared.constant * factor)
        return _of_lanes(shared, tuple([k * factor for k in parts.known]))

    def _divided(self, op: str, of: LaneParts, divisor: int, once: bool) -> LaneParts | None:
        """A quotient, or a remainder, of what is not negative; ``once``: and below twice the
        divisor, in lanes that exist."""
        b, base, constant = self.b, of.shared.base, of.shared.constant
        if of.known is not None and (base is None or b.multiple(base) % divisor == 0):
            begun, rest = divmod(constant, divisor)
            if op == "%":
                return _of_lanes(At(), tuple([(rest + k) % divisor for k in of.known]))
            if base is not None:
                base = self.quotient(base, divisor)
            return _of_lanes(At(base, begun), tuple([(rest + k) // divisor for k in of.known]))
        begins = of.known is not None and of.known[0] == 0

        def divide(op: str, first: Val) -> Val:
            if once and begins:
                return divided_once(b, op, first, divisor)
            return b.binary("udiv" if op == "/" else "urem", first, number(divisor))

        each = math.gcd(1 if base is None else b.multiple(base), divisor)
        rest = constant % each
        if of.most == 0 and each == 1:
            return None  # lanes share it, and nothing is known of it
        if rest + of.most < each:
            # Lanes that begin at such a multiple come to no multiple of the divisor.
            first = divide(op, i64(b, of.shared + -rest))
            if op == "/":
                return LaneParts(At(first), (0,) * of.lanes, 0)
            b.multiples[first.text] = each
            return LaneParts(At(first, rest), of.own, of.most)
        most = (divisor - 1 + of.most) // divisor if op == "/" else divisor - 1
        if most > _MOST or divisor > _LARGEST:
            return None
        # What lanes share may be below 0 where the lane that adds nothing does not exist.
        more = 0 if begins else -(-of.most // divisor)
        first = i64(b, of.shared + more * divisor)
        times, left = divide("/", first), divide("%", first)
        lanes = of.own if isinstance(of.own, Val) else _vector(of.own)
        own = b.binary("add", b.convert("trunc", left, "i32"), lanes)
        if of.most <= divisor:
            own = divided_once(b, op, own, divisor)
        else:
            own = b.binary("udiv" if op == "/" else "urem", own, Val(str(divisor), "i32"))
        return LaneParts(At(times, -more) if op == "/" else At(), own, most)

    def _bounded(self, op: str, one: LaneParts, other: LaneParts) -> LaneParts | None:
        """The smaller or larger of two, of which lanes share one."""
        if one.most == 0:
            one, other = other, one
        if other.most or not 0 < one.most <= _MOST:
            return None
        b, first, bound = self.b, i64(self.b, one.shared), i64(self.b, other.shared)
        shared = b.intrinsic(f"s{op}", first, bound)
        apart = (bound, shared) if op == "min" else (shared, first)
        # Lanes that are as many apart, or more, have the bound, or have it not.
        few = b.intrinsic("umin", b.binary("sub", *apart), number(one.most))
        lanes = one.own if isinstance(one.own, Val) else _vector(one.own)
        few = b.spread(b.convert("trunc", few, "i32"), lanes.lanes)
        own = b.intrinsic("umin" if op == "min" else "usub.sat", lanes, few)
        return LaneParts(At(shared), own, one.most)

    def quotient(self, base: Val, divisor: int) -> Val:
        """That of an index value that is a multiple of the divisor."""
        b = self.b
        found = b.binary("sdiv exact", base, number(divisor))
        b.multiples[found.text] = b.multiple(base) // divisor
        return found


def divided_once(b: Builder, op: str, value: Val, divisor: int) -> Val:
    """The quotient or remainder of an integer from 0 on, below twice the divisor. Of such a number
    and what it is more than the divisor, the remainder is the smaller one, as what is below 0 is
    large among unsigned numbers."""
    by = b.convert("trunc", number(divisor), value.type)
    if not isinstance(divisor, Size) and not divisor & (divisor - 1):
        return b.binary("udiv" if op == "/" else "urem", value, by)  # bits of it
    if op == "/":
        return b.convert("zext", b.compare("icmp uge", value, by), value.type)
    return b.intrinsic("umin", value, b.binary("sub", value, by))


def _divisor(value: ir.Value) -> int | None:
    """A constant that is no size, and above 0."""
    match value:
        case ir.Position(index=ir.Affine((), int(constant))) | ir.Const(value=int(constant)):
            return constant if not isinstance(constant, Size) and constant > 0 else None
    return None


def _vector(each: tuple[int, ...]) -> Val:
    """The vector of these lanes, of i32."""
    return Val(f"<{', '.join(f'i32 {k}' for k in each)}>", "i32", len(each))
