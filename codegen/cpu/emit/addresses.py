"""Where elements of tensors lie: their addresses, and subscripts that are checked for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from tcl.codegen.common.sites import Site
from tcl.codegen.cpu.emit.across import Pointers
from tcl.codegen.cpu.emit.scope import At, Scope, affine, i64, lane_values, number
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.loopir import ir
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_equal
from tcl.grammar.syntax.types import UINT64

Evaluate = Callable[[ir.Value, Scope], Val]


@dataclass(frozen=True, slots=True)
class Address:
    """Where an element lies: bytes from the tensor's first element."""

    offset: At
    """In the first lane; a vector where lanes have offsets of their own."""
    step: int
    """Bytes that each further lane adds, where ``offset`` is a scalar."""

    def apart(self, size: int) -> bool:
        """Whether lanes are known to add so many bytes each."""
        return provably_equal(self.step, size)

    @property
    def spread(self) -> bool:
        """Whether each lane has an offset of its own."""
        return self.offset.base is not None and self.offset.base.lanes > 1


@dataclass(slots=True)
class Addresses:
    """Emits where elements lie."""

    b: Builder
    program: ir.Built
    dims: Mapping[str, ir.Dim]
    pointers: Pointers
    unchecked: bool
    evaluate: Evaluate
    sites: list[Site]
    """Subscripts that are checked."""
    places: dict[ir.TensorRef, ir.Affine] = field(default_factory=dict)
    """As of ``Layout.place``: code that is written out asks for the same ones again and again."""

    def place(self, ref: ir.TensorRef) -> ir.Affine:
        """Bytes from the first element of a tensor to this one."""
        if ref not in self.places:
            self.places[ref] = self.program.tensor(ref.tensor).layout.place(ref)
        return self.places[ref]

    def address_of(self, ref: ir.TensorRef, scope: Scope, mask: Val | None = None) -> Address:
        """The address of an element. ``mask``: the lanes whose subscripts are checked; None for
        all."""
        b = self.b
        layout = self.program.tensor(ref.tensor).layout
        first, step = affine(b, self.place(ref), self.dims, scope)
        own: Val | None = None
        for axis, subscript in enumerate(ref.subscripts):
            if isinstance(subscript, ir.Affine):
                continue
            value = self.evaluate(subscript.value, scope)
            if subscript.check and not self.unchecked:
                of = subscript.of or (ref.tensor, axis)
                value = self._checked(value, *of, subscript, scope, mask)
            value = b.binary("sub", value, number(layout.origin[axis]))
            part = b.binary("mul", value, number(layout.strides[axis]))
            own = part if own is None else b.binary("add", own, part)
        if own is None:
            return Address(first, step)
        if own.lanes > 1:
            offset = b.binary("add", lane_values(b, i64(b, first), step, scope.lanes), own)
            return Address(At(offset), 0)
        return Address(At(b.binary("add", i64(b, first), own)), step)

    def _checked(
        self,
        value: Val,
        tensor: str,
        axis: int,
        subscript: ir.Computed,
        scope: Scope,
        mask: Val | None,
    ) -> Val:
        """``value``, or the first index where it is outside of the tensor, which is recorded."""
        b = self.b
        layout = self.program.tensor(tensor).layout
        first, extent = layout.origin[axis], layout.extents[axis]
        unsigned = subscript.value.type == UINT64
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
        record, after = b.new_label("fail"), b.new_label("checked")
        b.branch_if(failed, record, after)
        b.start(record)
        worst = value
        if lanes > 1:
            lane = b.call(f"llvm.cttz.i{lanes}", f"i{lanes}", 1, bits, Val("false", "i1"))
            worst = b.op(f"extractelement {value}, {lane}", "i64")
        # LLVM then reads a subscript once for all vectors that have it.
        b.do_besides(f"call void @tcl_fail(ptr %error, i64 {site}, {worst})")
        b.branch(after)
        b.start(after)
        return b.select(inside, value, number(first))

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
