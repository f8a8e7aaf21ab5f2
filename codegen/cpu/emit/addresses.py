"""Where elements of tensors lie: their addresses, and subscripts that are checked for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial, reduce

from tcl.codegen.common.sites import Site
from tcl.codegen.cpu.emit.across import Pointers
from tcl.codegen.cpu.emit.lane_loads import wide_lane
from tcl.codegen.cpu.emit.lane_parts import LaneParts, Parting, divided_once
from tcl.codegen.cpu.emit.scope import (
    At,
    Scope,
    add,
    affine,
    fewer,
    i64,
    lane_values,
    number,
)
from tcl.codegen.cpu.emit.short_rows import Near, near
from tcl.codegen.cpu.llvm.builder import Builder, Val, memory_type
from tcl.codegen.cpu.llvm.convert import cast
from tcl.codegen.devices.features import permuted
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.periods import moves_others, wrapped_axes
from tcl.common.dataclass import dataclass, made_often, replace
from tcl.grammar.sizes.varying import Size, provably_at_least, provably_equal
from tcl.grammar.syntax.types import INT64, UINT64, ScalarType

Evaluate = Callable[[ir.Value, Scope], Val]


@made_often(frozen=True, slots=True)
class Address:
    """Where an element lies: bytes from the tensor's first element."""

    offset: At
    """In the first lane."""
    step: int
    """Bytes that each further lane adds."""
    own: Val | None = None
    """Bytes more in each lane, a vector, where lanes have offsets of their own."""
    of_lane: Callable[[int], Val] | None = None
    """Likewise, of one lane."""
    places: Val | None = None
    """Indices in the row that begins at ``offset``, where lanes differ in nothing else."""

    def apart(self, size: int) -> bool:
        """Whether lanes are known to add so many bytes each."""
        return provably_equal(self.step, size)

    @property
    def spread(self) -> bool:
        """Whether each lane has an offset of its own."""
        return self.own is not None


@dataclass(frozen=True, slots=True)
class Wrapped:
    """Where lanes lie that go from an end of a row on to the other one, side by side elsewhere."""

    offset: At
    """In the lane that memory has first: bytes from the tensor's first element."""
    before: Val
    """The mask of the lanes before they go on, in the order of memory."""
    back: int
    """Bytes that the others lie before where they would lie beyond the end."""
    backwards: bool
    """Whether the last lane is the one that memory has first."""


@dataclass(slots=True)
class _Row:
    """The indices of all lanes, which lie side by side in memory."""

    tensor: str
    type: ScalarType
    first: Val
    """The address of that in the first lane."""

    def lane(self, b: Builder, k: int) -> Val:
        """One of them."""
        at = b.op(f"getelementptr i8, {self.first}, i64 {k * self.type.itemsize}", "ptr")
        text = f"load {memory_type(self.type)}, {at}, align {self.type.itemsize}"
        before, b.total = b.total, False
        found = b.load(self.tensor, text, memory_type(self.type))
        b.total = before
        return cast(b, found, self.type, INT64, False)

    def copy(self, b: Builder, values: Val) -> Val:
        """The address of a copy on the stack that has other ``values``."""
        kept = b.convert("trunc", values, memory_type(self.type))
        slot = Val(b.alloca(kept.ty), "ptr")
        b.do(f"store {kept}, {slot}")
        return slot


@dataclass(slots=True)
class Addresses:
    """Emits where elements lie."""

    b: Builder
    program: ir.Built
    dims: Mapping[str, ir.Dim]
    pointers: Pointers
    unchecked: bool
    evaluate: Evaluate
    parting: Parting
    sites: list[Site]
    """Subscripts that are checked."""
    places: dict[ir.TensorRef, ir.Affine] = field(default_factory=dict)
    """As of ``Layout.place``: code that is written out asks for the same ones again and again."""

    def place(self, ref: ir.TensorRef) -> ir.Affine:
        """Bytes from the first element of a tensor to this one."""
        if ref not in self.places:
            self.places[ref] = self.program.tensor(ref.tensor).layout.place(ref)
        return self.places[ref]

    def address_of(
        self, ref: ir.TensorRef, scope: Scope, mask: Val | None = None, others: bool = False
    ) -> Address:
        """The address of an element. ``mask``: the lanes whose subscripts are checked; None for
        all. ``others``: whether it is made of other data than the subscripts."""
        return self.at(self.near(ref, scope), ref, scope, mask, others)

    def at(
        self,
        close: Near,
        ref: ir.TensorRef,
        scope: Scope,
        mask: Val | None,
        others: bool = False,
    ) -> Address:
        """``address_of`` an element of which it is known what is ``near``."""
        if isinstance(close, tuple):
            return Address(*close)
        b = self.b
        layout = self.program.tensor(ref.tensor).layout
        first, step = affine(b, self.place(ref), self.dims, scope)
        found: list[tuple[int, Val, _Row | None]] = []
        for axis, subscript in enumerate(ref.subscripts):
            if isinstance(subscript, ir.Affine):
                continue
            value = self.evaluate(subscript.value, scope)
            of = subscript.of or (ref.tensor, axis)
            row = self._row(subscript, self.program.tensor(of[0]).layout.origin[of[1]], scope)
            if subscript.check and not self.unchecked:
                value = self._checked(value, *of, subscript, scope, mask, others, row)
            found.append((axis, value, row))
        if not found:
            return Address(first, step)

        def further(values: Sequence[Val]) -> Val:
            parts = []
            for (axis, _, _), value in zip(found, values, strict=True):
                value = b.binary("sub", value, number(layout.origin[axis]))
                parts.append(b.binary("mul", value, number(layout.strides[axis])))
            return reduce(partial(b.binary, "add"), parts)

        own = further([value for _, value, _ in found])
        if own.lanes == 1:
            return Address(At(b.binary("add", i64(b, first), own)), step)
        own = lane_values(b, own, step, scope.lanes)
        if not isinstance(layout.bytes, Size) and layout.bytes < 1 << 31:
            own = b.convert("trunc", own, "i32")
        places = None
        if step == 0 and permuted(b.features, layout.itemsize, layout.selected_row(ref)):
            places = b.binary("sub", found[0][1], number(layout.origin[found[0][0]]))

        computed = all(row is None for _, _, row in found)

        def of_lane(k: int) -> Val:
            if computed and own.type == "i32":
                return wide_lane(b, own, k)
            values = [
                b.lane(value, k) if row is None else row.lane(b, k) for _, value, row in found
            ]
            return b.binary("add", further(values), number(k * step))

        return Address(first, 0, own, of_lane, places)

    def near(self, ref: ir.TensorRef, scope: Scope, *, every: bool = False) -> Near:
        """As of ``short_rows.near``, of an element whose place lanes share but for what is known of
        each. ``every``: all lanes that exist read it, so that subscripts one after the other may be
        checked at once."""
        computed = {axis: s for axis, s in enumerate(ref.subscripts) if isinstance(s, ir.Computed)}
        checked = {axis for axis, s in computed.items() if s.check and not self.unchecked}
        if not computed or (checked and not (every and scope.lanes > 1)):
            return None
        if all(self.parting.parts(s.value, scope) is None for s in computed.values()):
            return None  # nothing is divided
        parts: dict[int, LaneParts] = {}
        for axis, s in computed.items():
            found = self.parting.of(s.value, scope)
            if found is not None and axis in checked:
                found = self._checked_at_once(found, ref, axis, s, scope)
            if found is None:
                return None
            parts[axis] = found
        place = affine(self.b, self.place(ref), self.dims, scope)
        return near(self.b, self.program.tensor(ref.tensor).layout, place, parts, scope)

    def stays_inside(self, ref: ir.TensorRef) -> bool:
        """Whether all index expressions of an element are inside of its tensor at every point."""
        layout = self.program.tensor(ref.tensor).layout
        for index, first, extent in zip(ref.subscripts, layout.origin, layout.extents, strict=True):
            if isinstance(index, ir.Affine):
                if not {d for d, _ in index.terms} <= self.dims.keys():
                    return False
                low, high = index.interval(self.dims)
                if not (
                    provably_at_least(low, first) and provably_at_least(first + extent, high + 1)
                ):
                    return False
        return True

    def always_inside(self, ref: ir.TensorRef) -> bool:
        """Whether an element is read inside of its tensor whatever data say: where a subscript that
        is checked is not, that is recorded, and the first index is taken."""
        layout = self.program.tensor(ref.tensor).layout
        sized = not any(isinstance(extent, Size) for extent in layout.extents)
        checked = all(s.check and not self.unchecked for s in ref.computed)
        return sized and checked and self.stays_inside(ref)

    def wrapped(self, ref: ir.TensorRef, scope: Scope) -> Wrapped | None:
        """Where the lanes of ``X((i + 1) % N)`` or ``X((N - i) % N)`` lie, if at most one of
        them is at an end; None for other places."""
        b, layout = self.b, self.program.tensor(ref.tensor).layout
        for axis, index, length in wrapped_axes(ref) if scope.lanes > 1 else ():
            named = {d for d, _ in index.terms} <= self.dims.keys()
            if length < scope.lanes or not named:
                continue
            first, step = affine(b, index, self.dims, scope)
            stride = layout.strides[axis]
            each = math.gcd(length, 1 if first.base is None else b.multiple(first.base))
            last, back = scope.lanes - 1, step == -1
            if last <= (first.constant % each if back else each - 1 - first.constant % each):
                continue  # none of them is at an end
            beside = step in (1, -1) and provably_equal(stride, layout.itemsize)
            apart = moves_others(ref, axis, (scope.lane_dim, scope.lane_fold))
            least, most = index.interval(self.dims)
            if not beside or apart or not provably_at_least(least, 0):
                continue
            start = i64(b, first)
            once = provably_at_least(2 * length, (b.interval(start) or (least, most))[1] + 1)
            begun = (
                divided_once(b, "%", start, length)
                if once
                else b.binary("urem", start, number(length))
            )
            row = (*ref.subscripts[:axis], ir.Affine(), *ref.subscripts[axis + 1 :])
            place = self.address_of(replace(ref, subscripts=row), scope).offset
            moved = b.binary("mul nsw", begun, number(stride))
            at = At(add(b, place.base, moved), place.constant)
            if back:
                others = b.binary("sub nsw", number(last), begun)
                others = b.intrinsic("smax", others, number(0))
                before = b.negation(fewer(b, scope.lanes, others))
                return Wrapped(at + -last * stride, before, -length * stride, True)
            rest = b.binary("sub nsw", number(length), begun)
            before = fewer(b, scope.lanes, b.intrinsic("umin", rest, number(scope.lanes)))
            return Wrapped(at, before, length * stride, False)
        return None

    def _checked_at_once(
        self,
        parts: LaneParts,
        ref: ir.TensorRef,
        axis: int,
        subscript: ir.Computed,
        scope: Scope,
    ) -> LaneParts | None:
        """A subscript whose lanes follow each other; where one of them is outside of the tensor,
        the first such one is recorded, and lanes begin at the first index. None for others."""
        b, layout = self.b, self.program.tensor(ref.tensor).layout
        first, extent, last = layout.origin[axis], layout.extents[axis], scope.active - 1
        sized = not isinstance(extent, Size) and extent > last
        in_turn = parts.known is not None and parts.known[: last + 1] == tuple(range(last + 1))
        if not (sized and in_turn) or subscript.of or subscript.value.type == UINT64:
            return None
        name = f"checked {parts.shared} {ref.tensor} {axis} {last}"
        value = b.known.recall(name)
        if value is None:
            at = i64(b, parts.shared)
            relative = b.binary("sub", at, number(first))
            outside = b.negation(b.compare("icmp ult", relative, number(extent - last)))
            self.sites.append(Site(ref.tensor, axis, first, extent, False))
            site = len(self.sites) - 1
            before, record, after = b.block, b.new_label("fail"), b.new_label("checked")
            with b.meeting(after):
                b.branch_if(outside, record, after)
                b.start(record)
                begins = b.compare("icmp ult", relative, number(extent))
                worst = b.select(begins, number(first + extent), at)
                b.do_besides(f"call void @tcl_fail(ptr %error, i64 {site}, {worst})")
                b.branch(after)
            value = b.known.remember(name, b.phi([(at, before), (number(first), record)]))
        return replace(parts, shared=At(value))

    def _checked(
        self,
        value: Val,
        tensor: str,
        axis: int,
        subscript: ir.Computed,
        scope: Scope,
        mask: Val | None,
        others: bool,
        row: _Row | None,
    ) -> Val:
        """``value``, or the first index where it is outside of the tensor, which is recorded. If it
        was read from a ``row`` of memory, that is a copy with this index then. What was checked
        before on every way to here is not checked again."""
        b = self.b
        name = f"checked {value} {tensor} {axis} {mask} {row is None}"
        if (known := b.known.recall(name)) is not None:
            if row is not None:
                row.first = b.known.recall(f"{name} row") or row.first
            return known
        layout = self.program.tensor(tensor).layout
        first, extent = layout.origin[axis], layout.extents[axis]
        unsigned = subscript.value.type == UINT64
        alone = mask is not None and scope.lanes == 1
        settled = not isinstance(extent, Size) and extent != 0
        if mask is not None and alone and settled and not others:
            # By two branches, LLVM would look first whether it is inside: as random as the mask. Of
            # other data, subscripts nearly always are: on Zen 4, sums by group take .82 to .96.
            value, mask = b.unforeseen(mask, value, number(first)), None
        site = len(self.sites)
        self.sites.append(Site(tensor, axis, first, extent, unsigned))
        relative = b.binary("sub", value, number(first))
        inside = b.compare("icmp ult", relative, number(extent))
        if unsigned and first < 0:
            positive = b.compare("icmp sge", value, number(0))
            inside = b.binary("and", inside, positive)
        outside = b.negation(inside)
        if mask is not None:
            # A value that all lanes share is checked if any lane uses it.
            outside = b.binary("and", outside, mask if outside.lanes > 1 else self._any(mask))
        lanes = outside.lanes
        bits = outside
        if lanes > 1:
            bits = b.op(f"bitcast {outside} to i{lanes}", f"i{lanes}")
        failed = b.compare("icmp ne", bits, Val("0", bits.type)) if lanes > 1 else outside
        before, record, after = b.block, b.new_label("fail"), b.new_label("checked")
        with b.meeting(after):
            b.branch_if(failed, record, after)
            b.start(record)
            worst = value
            if lanes > 1:
                lane = b.call(f"llvm.cttz.i{lanes}", f"i{lanes}", 1, bits, Val("false", "i1"))
                worst = b.op(f"extractelement {value}, {lane}", "i64")
            # LLVM then reads a subscript once for all vectors that have it.
            b.do_besides(f"call void @tcl_fail(ptr %error, i64 {site}, {worst})")
            slot = None if row is None else row.copy(b, b.select(inside, value, number(first)))
            b.branch(after)
        if alone:  # where the mask switches it off, nobody looks at it
            return b.known.remember(name, b.phi([(value, before), (number(first), record)]))
        if row is not None and slot is not None:
            first_ = b.phi([(row.first, before), (slot, record)])
            row.first = b.known.remember(f"{name} row", first_)
        return b.known.remember(name, b.select(inside, value, number(first)))

    def _row(self, subscript: ir.Computed, first: int, scope: Scope) -> _Row | None:
        """What a subscript is read from, if that lies side by side in memory: to load its lanes
        again takes less than to take them out of a vector (.64 of the time of gathered columns on
        Zen 4). ``first``: the index that stands for those outside of the tensor."""
        value = subscript.value.operand if isinstance(subscript.value, ir.Cast) else subscript.value
        if scope.lanes == 1 or not isinstance(value, ir.Load) or not value.type.is_integral:
            return None
        fits = not isinstance(first, Size) and 0 <= first < _SMALL
        empty = any(x == 0 for x in self.program.tensor(value.ref.tensor).layout.extents)
        if not fits or empty or not (value.total or scope.mask is None):
            return None
        at = self.address_of(value.ref, scope)
        if at.spread or not at.apart(value.type.itemsize):
            return None
        return _Row(value.ref.tensor, value.type, self.pointers.at(value.ref.tensor, at.offset))

    def _any(self, mask: Val) -> Val:
        """Whether there is some lane."""
        if mask.lanes == 1:
            return mask
        bits = self.b.op(f"bitcast {mask} to i{mask.lanes}", f"i{mask.lanes}")
        return self.b.compare("icmp ne", bits, Val("0", bits.type))

    def as_number(self, ref: ir.TensorRef, scope: Scope) -> Val:
        """Where an element lies, as a number."""
        at = self.address_of(ref, scope)
        return self.b.op(f"ptrtoint {self.pointers.at(ref.tensor, at.offset)} to i64", "i64")


_SMALL = 1 << 7
"""All integer types have the numbers below."""

FAIL = """\
define internal void @tcl_fail(ptr %error, i64 %site, i64 %value) noinline cold nounwind {
entry:
  %set = load i64, ptr %error, align 8
  %first = icmp eq i64 %set, 0
  br i1 %first, label %record, label %done
record:
  %site_at = getelementptr i64, ptr %error, i64 1
  %value_at = getelementptr i64, ptr %error, i64 2
  store i64 %site, ptr %site_at, align 8
  store i64 %value, ptr %value_at, align 8
  store i64 1, ptr %error, align 8
  br label %done
done:
  ret void
}
"""
