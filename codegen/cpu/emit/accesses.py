"""Reading and writing tensors: lanes, masks, and stores past the caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from tcl.codegen.cpu.emit.across import Across, Pointers, TransposedBlock
from tcl.codegen.cpu.emit.addresses import Address, Addresses, Wrapped
from tcl.codegen.cpu.emit.lane_loads import GATHERED, load_each, loads_each, places_apart
from tcl.codegen.cpu.emit.scope import Scope, i64, lane_values, leading, number
from tcl.codegen.cpu.emit.short_rows import ShortRow, load_lanes
from tcl.codegen.cpu.llvm.builder import Builder, Val, memory_type, suffix, vector
from tcl.codegen.cpu.llvm.convert import from_memory, to_memory
from tcl.codegen.cpu.llvm.permute import taken
from tcl.codegen.cpu.llvm.transpose import fenced, mixed, picked
from tcl.codegen.devices.cpu import FEW_APART, LINE, SHORTEST_STREAM
from tcl.codegen.loopir import ir
from tcl.common.dataclass import dataclass, replace
from tcl.grammar.sizes.varying import Size, provably_equal, representative
from tcl.grammar.syntax.types import INT32

_REGISTER = 32
"""Bytes of the longest registers of x86 without masks of their own."""
_CONSTANT_LANES = 32
"""Lanes of a vector that may be constant but for the first ones. LLVM 22 never ends with a
conjunction of two comparisons of 64 such numbers of 32 or 64 bits, for AVX-512."""
_WORD_BYTES = 8
"""Of the longest register that is no vector."""
_WORD = INT32
"""What dot products read several elements as."""


@dataclass(slots=True)
class AccessEmitter:
    b: Builder
    program: ir.Built
    pointers: Pointers
    addresses: Addresses
    native_half: bool
    masks: bool
    """Whether the processor writes some lanes of a vector as fast as all of them."""
    ends_soon: bool
    """Whether the line in which a row ends is asked for when the row begins. Intel's streamer takes
    the direction of a page from the first lines that are asked for: softmax of 4096 x 1024 on
    Cascade Lake, where results begin in some quarters of a page, takes 1.3 to 1.5 times as long."""
    asked: set[tuple[str, str, str, int]] = field(default_factory=set)
    """Lines of memory that were prefetched, each by the block of code that did."""
    read: dict[int, tuple[ir.Load, list[str] | None]] = field(default_factory=dict)
    """By identity of a load: that, and what its address depends on, unless data selects it."""
    delayed: list[Callable[[], None]] | None = None
    """Stores that are to come after all that is emitted before them; see ``stores_last``."""
    across: Across = field(init=False)

    def __post_init__(self) -> None:
        self.across = Across(self.b, self.pointers)

    def load(self, load: ir.Load, scope: Scope) -> Val:
        """The value of an element, in the type it is computed in."""
        tensor = load.ref.tensor
        where = self._where(load, scope)
        found = self.b.known.recall_load(tensor, where) if where else None
        if found is None:
            layout = self.program.tensor(tensor).layout
            raw = self._raw(load, layout, scope)
            found = from_memory(self.b, raw, layout.type, self.native_half)
            if scope.there is not None and (raw.text, scope.there.text) in self.b.zeroed:
                self.b.zeroed.add((found.text, scope.there.text))
            if where:
                self.b.known.remember_load(tensor, where, found)
        return found

    def _where(self, load: ir.Load, scope: Scope) -> tuple[object, ...]:
        """All that the value of an element depends on in a block of code that does not write to its
        tensor: the points of a register tile ask for the same ones again and again. Empty where
        data selects the element."""
        if id(load) not in self.read:
            terms = self.addresses.place(load.ref).terms
            names = [name for name, _ in terms] if load.ref.is_affine else None
            self.read[id(load)] = load, names
        names = self.read[id(load)][1]
        if names is None:
            return ()
        parts: list[object] = [id(load), scope.lanes, scope.lane_dim, scope.lane_fold, scope.active]
        parts += [None if mask is None else mask.text for mask in (scope.mask, scope.there)]
        for name in names:
            at = scope.folds.get(name)
            if at is None:
                at = scope.ranges[name].offset
            parts += (at.base and at.base.text, _comparable(at.constant))
            if name in scope.written_out:
                whole = scope.written_out[name]
                parts += (_comparable(whole.offset.constant), _comparable(whole.span))
        return tuple(parts)

    def may_read_words(self, load: ir.Load, fold: ir.Fold, points: int, scope: Scope) -> bool:
        """Whether an element and those of the next points of a dot product, of which so many
        exist, lie in memory as one word, which has nothing in common with other lanes' words."""
        tensor = self.program.tensor(load.ref.tensor)
        index = self.addresses.place(load.ref)
        step = index.coefficient(fold.dim) + index.coefficient(fold.name)
        in_order = provably_equal(step, tensor.layout.itemsize)
        apart = index.coefficient(scope.lane_dim) + index.coefficient(scope.lane_fold)
        shared = scope.lanes > 1 and 0 < abs(representative(apart)) < _WORD.itemsize
        empty = any(x == 0 for x in tensor.layout.extents)
        # Panels have room behind the last point.
        whole = points == fold.count or tensor.role is ir.Role.SCRATCH
        there = load.total and load.ref.is_affine and not empty
        return there and in_order and whole and not shared

    def load_words(self, load: ir.Load, scope: Scope) -> Val:
        """The words that begin at an element."""
        layout = replace(self.program.tensor(load.ref.tensor).layout, type=_WORD)
        return self._raw(load, layout, scope)

    def store_words(self, ref: ir.TensorRef, words: Val, scope: Scope) -> None:
        """Writes the words that begin at an element."""
        layout = replace(self.program.tensor(ref.tensor).layout, type=_WORD)
        self._write(ref, layout, self.addresses.address_of(ref, scope), words, scope)

    def _raw(self, load: ir.Load, layout: ir.Layout, scope: Scope) -> Val:
        """What lies at an element, as the type of the layout."""
        before, self.b.total = self.b.total, load.total
        found = self._read(load, layout, scope)
        self.b.total = before
        return found

    def _read(self, load: ir.Load, layout: ir.Layout, scope: Scope) -> Val:
        mask = None if load.total and not scope.ragged else scope.mask
        computed = not load.ref.is_affine
        if computed and not load.total and scope.written is not None and scope.lanes > 1:
            # Of lanes that are not written, subscripts may come from what has been overwritten.
            inside = self._inside(scope)
            mask = inside if mask is None else self.b.binary("and", mask, inside)
        tensor = self.program.tensor(load.ref.tensor)
        single = layout is tensor.layout or layout.itemsize == tensor.layout.itemsize
        wrapped = self.masks and computed and single and self.addresses.wrapped(load.ref, scope)
        if wrapped:
            return self._load_wrapped(wrapped, load.ref.tensor, layout, mask)
        checked = None if load.total else mask
        if any(x == 0 for x in layout.extents):  # nothing that could be touched
            self.addresses.address_of(load.ref, scope, checked)  # what data select is an error
            return self.b.constant(0, memory_type(layout.type))
        every = checked is None or checked == leading(scope.lanes, scope.active)
        close = self.addresses.near(load.ref, scope, every=every)
        rows = close if isinstance(close, list) and single else ()
        if rows and (found := self._load_near(rows, load, layout, scope)):
            return found
        at = self.addresses.at(close, load.ref, scope, checked)
        in_rows = load.total and not computed and not _few_apart(at, layout)
        if in_rows and (block := self._block(load.ref, layout, at, scope)):
            return self.across.load(block, scope.lanes)
        if at.places and (mask is None or self.addresses.stays_inside(load.ref)):
            return self._load_from_row(at, at.places, load.ref, layout)
        same = at.apart(0) and not at.spread
        first = mask == leading(scope.lanes, scope.active)
        # The first lane's is there for all, and so is one element inside of the tensor.
        one = scope.lanes > 1 and self.addresses.always_inside(load.ref)
        if mask is None or (same and (load.total or first or one)):
            return self._load(at, load.ref.tensor, layout, scope)
        if load.total and not at.spread and (not at.apart(layout.itemsize) or scope.active == 1):
            return self._load_leading(at, load.ref.tensor, layout, scope)
        if at.spread and first:
            return self._load_leading(at, load.ref.tensor, layout, scope)
        wide = scope.lanes * layout.itemsize > _REGISTER and layout.itemsize >= GATHERED
        wide = wide and not self.masks and "avx" in self.b.features
        if wide and not first and scope.ranges[scope.lane_dim].offset.base is None:
            mask = _hidden(self.b, mask, layout)
        found = self._load_masked(at, load.ref.tensor, layout, mask, scope.active)
        if scope.there is not None and at.apart(layout.itemsize) and not at.spread:
            self.b.zeroed.add((found.text, scope.there.text))
        return found

    def _load_near(
        self, rows: Sequence[ShortRow], load: ir.Load, layout: ir.Layout, scope: Scope
    ) -> Val | None:
        """Lanes of short rows, if the machine can load these. Those that do not exist give any
        element."""
        several = len(load.ref.computed) > 1
        if not load.total and (several or not self.addresses.stays_inside(load.ref)):
            return None
        known = not scope.ragged or scope.there == leading(scope.lanes, scope.active)
        begin = [self.pointers.at(load.ref.tensor, row.offset) for row in rows]
        return load_lanes(self.b, load.ref.tensor, begin, rows, layout, load.total and known)

    def _first_lanes(self, value: Val, lanes: int) -> Val:
        """The first lanes of a value, and 0 in those that it does not have."""
        zero = Val("zeroinitializer", value.type, value.lanes)
        return mixed(self.b, value, zero, [min(k, value.lanes) for k in range(lanes)])

    def bits(self, load: ir.Load, scope: Scope) -> Val:
        """An element as it lies in memory."""
        return self._raw(load, self.program.tensor(load.ref.tensor).layout, scope)

    def store(
        self,
        ref: ir.TensorRef,
        value: Val,
        scope: Scope,
        streamed: int = 0,
        padded: bool = False,
    ) -> None:
        """Writes an element, or one per lane that exists. ``streamed`` vectors go past the caches,
        if they lie where the processor can do that; ``padded`` ones have 0 in other lanes."""
        if self.delayed is not None:
            args = (ref, value, scope, streamed, padded)
            self.delayed.append(lambda: self.store(*args))
            return
        layout = self.program.tensor(ref.tensor).layout
        at = self.addresses.address_of(ref, scope)
        raw = to_memory(self.b, value, layout.type, self.native_half)
        if padded and scope.ragged:
            raw, scope = self._zero_filled(raw, scope)
        self._write(ref, layout, at, raw, scope, streamed)

    def stores_last(self, emit: Callable[[], None]) -> None:
        """Emits code without branches; what it stores is stored behind all of it."""
        stores = self.delayed = []
        emit()
        self.delayed = None
        for store in stores:
            store()

    def update(
        self,
        ref: ir.TensorRef,
        change: Callable[[Val], Val],
        scope: Scope,
        where: Val | None = None,
        others: bool = False,
    ) -> None:
        """Makes something else of an element, or of one per lane that exists. These are different
        ones. ``where``: whether an element is to change, without a branch; ``others``: of which it
        is made, as of ``Addresses.address_of``."""
        layout = self.program.tensor(ref.tensor).layout
        at = self.addresses.address_of(ref, scope, where, others)
        if any(x == 0 for x in layout.extents):
            return  # there is nothing that could be touched
        if where is not None:
            self._update_one(ref.tensor, layout, at, change, where)
            return
        if scope.there is None or (at.apart(0) and not at.spread):
            old = self._load(at, ref.tensor, layout, scope)
        else:
            old = self._load_masked(at, ref.tensor, layout, scope.there, scope.active)
        new = change(from_memory(self.b, old, layout.type, self.native_half))
        self._write(ref, layout, at, to_memory(self.b, new, layout.type, self.native_half), scope)

    def _update_one(
        self,
        tensor: str,
        layout: ir.Layout,
        at: Address,
        change: Callable[[Val], Val],
        where: Val,
    ) -> None:
        """Makes something else of an element where a condition holds, or of a place of its own on
        the stack. A branch that is taken at random takes ten times as long as an update."""
        b, type_ = self.b, memory_type(layout.type)
        spare = Val(b.alloca(type_), "ptr")
        pointer = b.unforeseen(where, self.pointers.at(tensor, at.offset), spare)
        old = b.read(tensor, pointer, layout.alignment, type_)
        new = change(from_memory(b, old, layout.type, self.native_half))
        raw = to_memory(b, new, layout.type, self.native_half)
        b.store(tensor, f"store {raw}, {pointer}, align {layout.alignment}")

    def copy_elements(self, ref: ir.TensorRef, load: ir.Load, scope: Scope, padded: bool) -> bool:
        """Writes an element of the same type to a panel, bit by bit; whether it is such a one."""
        to, source = (self.program.tensor(r.tensor) for r in (ref, load.ref))
        if to.role is not ir.Role.SCRATCH or to.layout.type != source.layout.type:
            return False
        raw = self.bits(load, scope)
        at = self.addresses.address_of(ref, scope)
        if padded and scope.ragged:
            raw, scope = self._zero_filled(raw, scope)
        self._write(ref, to.layout, at, raw, scope)
        return True

    def _zero_filled(self, raw: Val, scope: Scope) -> tuple[Val, Scope]:
        """All lanes, with 0 in those that do not exist."""
        assert scope.there is not None
        raw = self.b.select(scope.there, raw, Val("0", raw.type))
        return raw, replace(scope, active=scope.lanes, there=None, mask=None)

    def _write(
        self,
        ref: ir.TensorRef,
        layout: ir.Layout,
        at: Address,
        raw: Val,
        scope: Scope,
        streamed: int = 0,
    ) -> None:
        """Writes what is to lie at an address, of the type of the layout."""
        b = self.b
        if scope.written is None and (block := self._block(ref, layout, at, scope)):
            self.across.store(block, b.spread(raw, scope.lanes))
            return
        apart = scope.written is None and not at.apart(layout.itemsize)
        base = self.pointers.at(ref.tensor, at.offset, scope.active if apart else 1)
        note = f", align {layout.alignment}"
        if scope.lanes == 1:
            b.store(ref.tensor, f"store {raw}, {base}{note}")
        elif at.apart(layout.itemsize) and scope.ragged and scope.active > 1:
            value = b.spread(raw, scope.lanes)
            self.pointers.write(ref.tensor, value, base, scope.active, layout, scope.there)
        elif scope.written is not None:
            self._write_some(
                b.spread(raw, scope.lanes), base, at.step, ref.tensor, layout, scope, streamed > 0
            )
        elif at.apart(layout.itemsize) and not scope.ragged:
            text = f"store {b.spread(raw, scope.lanes)}, {base}"
            if not streamed:
                b.store(ref.tensor, f"{text}{note}")
            elif scope.aligned == ref:
                self._past(text, ref.tensor, streamed)
            else:
                self._stream(text, note, ref.tensor, base, streamed)
        else:
            for k in range(scope.active):
                there = self.pointers.advance(base, k * at.step)
                b.store(ref.tensor, f"store {b.lane(raw, k)}, {there}{note}")

    def prefetch(self, wanted: ir.Prefetch, scope: Scope) -> None:
        """Asks for the lines of memory that lie so many bytes after those of all lanes; for one
        that code which is written out has asked for already, not again."""
        ref, ahead = wanted.ref, wanted.ahead
        at = self.addresses.address_of(ref, scope)
        base = "" if at.offset.base is None else at.offset.base.text
        for byte in range(0, max(1, scope.lanes * representative(at.step)), LINE):
            offset = at.offset + (ahead + byte)
            line = self.b.block, ref.tensor, base, offset.constant // LINE
            if line in self.asked:
                continue
            self.asked.add(line)
            there = self.pointers.at(ref.tensor, offset)
            read, data = Val("0", "i32"), Val("1", "i32")
            near = Val("0" if wanted.once else "3", "i32")
            self.b.do(self.b.call_text("llvm.prefetch.p0", "void", there, read, near, data))

    def _write_some(
        self,
        raw: Val,
        there: Val,
        step: int,
        tensor: str,
        layout: ir.Layout,
        scope: Scope,
        streamed: bool,
    ) -> None:
        """Writes those lanes of a vector that are to be written, so many bytes apart. ``streamed``:
        whole vectors beside it go past the caches."""
        b, lanes = self.b, scope.lanes
        assert scope.written is not None
        point = i64(b, scope.ranges[scope.lane_dim].offset)
        if step == layout.itemsize and (streamed or not self.masks):
            # Stores under a mask take some processors hundreds of cycles: those of AVX AMD's, and
            # those of AVX-512 Zen 4, while stores past the caches are on their way. Without masks
            # of the processor's own, LLVM makes a branch of each lane.
            low, high = (
                b.intrinsic(
                    "smin", b.intrinsic("smax", b.binary("sub", x, point), number(0)), number(lanes)
                )
                for x in scope.written
            )
            slot = Val(b.alloca(vector(raw.type, lanes)), "ptr")
            b.do(f"store {raw}, {slot}, align {layout.alignment}")
            first, size = (
                b.binary("mul", x, number(step)) for x in (low, b.binary("sub", high, low))
            )
            source, target = (b.op(f"getelementptr i8, {p}, {first}", "ptr") for p in (slot, there))
            self._copy(source, target, size, tensor, lanes * step, step)
            return
        inside = self._inside(scope)
        align, short = Val(str(layout.alignment), "i32"), suffix(raw.type, raw.lanes)
        if step == layout.itemsize:
            name = f"llvm.masked.store.{short}.p0"
        else:
            name = f"llvm.masked.scatter.{short}.v{lanes}p0"
            there = self._lane_places(there, step, lanes)
        b.store(tensor, b.call_text(name, "void", raw, there, align, inside))

    def _copy(self, source: Val, target: Val, size: Val, tensor: str, most: int, unit: int) -> None:
        """Copies so many bytes, a multiple of ``unit`` and at most ``most``: the first ones and the
        last ones, in the longest pieces of which there is one. A call of ``memcpy`` would take all
        vectors out of their registers."""
        b, after, piece = self.b, self.b.new_label("after"), most // 2
        while piece >= unit:
            some, fewer = b.new_label("some"), b.new_label("fewer")
            b.branch_if(b.compare("icmp uge", size, number(piece)), some, fewer)
            b.start(some)
            type_ = f"i{8 * piece}" if piece <= _WORD_BYTES else f"<{piece} x i8>"
            ends = number(0), b.binary("sub", size, number(piece))
            places = [(b.op(f"getelementptr i8, {source}, {k}", "ptr"), k) for k in ends]
            values = [(b.op(f"load {type_}, {at}, align 1", type_), k) for at, k in places]
            for value, k in values:
                to = b.op(f"getelementptr i8, {target}, {k}", "ptr")
                b.store(tensor, f"store {type_} {value.text}, {to}, align 1")
            b.branch(after)
            b.start(fewer)
            piece //= 2
        b.branch(after)
        b.start(after)

    def _inside(self, scope: Scope) -> Val:
        """The mask of the lanes that are to be written."""
        b, lanes = self.b, scope.lanes
        assert scope.written is not None
        point = i64(b, scope.ranges[scope.lane_dim].offset)
        points = lane_values(b, b.spread(point, lanes), 1, lanes)
        low, high = (b.spread(limit, lanes) for limit in scope.written)
        return b.binary(
            "and", b.compare("icmp sge", points, low), b.compare("icmp slt", points, high)
        )

    def _lane_places(self, first: Val, step: int, lanes: int) -> Val:
        """The addresses of all lanes, so many bytes apart."""
        if isinstance(step, Size):
            return self.b.gather_lanes(
                [self.pointers.advance(first, k * step) for k in range(lanes)]
            )
        ladder = ", ".join(f"i64 {k * step}" for k in range(lanes))
        text = f"getelementptr i8, {first}, <{lanes} x i64> <{ladder}>"
        return self.b.op(text, "ptr", lanes)

    def soon(self, ref: ir.TensorRef, scope: Scope) -> None:
        """Asks for the line of an element that is to be written, if ``ends_soon``."""
        if not self.ends_soon:
            return
        at = self.addresses.address_of(ref, scope)
        there = self.pointers.at(ref.tensor, at.offset)
        write, near, data = Val("1", "i32"), Val("3", "i32"), Val("1", "i32")
        self.b.do(self.b.call_text("llvm.prefetch.p0", "void", there, write, near, data))

    def _past(self, text: str, tensor: str, size: int) -> None:
        """A store past the caches, on a boundary of so many bytes."""
        b = self.b
        b.store(tensor, f"{text}, align {size}{b.metadata('nontemporal', 'i32 1')}")

    def _stream(self, text: str, note: str, tensor: str, there: Val, unit: int) -> None:
        """A store past the caches: whole where it goes to a boundary, in the smallest pieces where
        it goes to one of those; else a plain one."""
        b = self.b
        address = b.op(f"ptrtoint {there} to i64", "i64")
        after = b.new_label("after")
        for size in dict.fromkeys((unit, SHORTEST_STREAM)):
            beyond = b.binary("and", address, number(size - 1))
            past, other = b.new_label("past"), b.new_label("other")
            b.branch_if(b.compare("icmp eq", beyond, number(0)), past, other)
            b.start(past)
            self._past(text, tensor, size)
            b.branch(after)
            b.start(other)
        b.store(tensor, f"{text}{note}")
        b.branch(after)
        b.start(after)

    def _load(self, at: Address, tensor: str, layout: ir.Layout, scope: Scope) -> Val:
        b, type_, lanes = self.b, memory_type(layout.type), scope.lanes
        pointer = self.pointers.at(tensor, at.offset)
        if at.apart(0) and not at.spread:
            return b.read(tensor, pointer, layout.alignment, type_)
        if at.apart(layout.itemsize):
            return b.read(tensor, pointer, layout.alignment, type_, lanes)
        if at.apart(-layout.itemsize):
            low = self.pointers.advance(pointer, at.step * (lanes - 1))
            return _backwards(b, b.read(tensor, low, layout.alignment, type_, lanes))
        if apart := _few_apart(at, layout):
            return _load_few_apart(b, self.pointers, at, tensor, layout, apart, scope.active, lanes)
        if at.of_lane is None:
            pointer = self.pointers.at(tensor, at.offset, lanes - 1)  # one was asked for above
        there = [self._lane_pointer(pointer, at, k) for k in range(lanes)]
        return b.gather_lanes([b.read(tensor, p, layout.alignment, type_) for p in there])

    def _load_from_row(self, at: Address, places: Val, ref: ir.TensorRef, layout: ir.Layout) -> Val:
        """Lanes that take elements of one row. Those that do not exist give any of them."""
        b, type_, row = self.b, memory_type(layout.type), layout.selected_row(ref)
        size, pointer = 1 << (row - 1).bit_length(), self.pointers.at(ref.tensor, at.offset)
        mask = leading(size, row) if size > row else None
        found = b.read(ref.tensor, pointer, layout.alignment, type_, size, mask)
        return taken(b, found, places)

    def _lane_pointer(self, first: Val, at: Address, lane: int) -> Val:
        """The address in one lane; ``first`` is that in the first one, without its own offset."""
        if at.of_lane is None:
            return self.pointers.advance(first, lane * at.step)
        return self.pointers.moved(first, at.of_lane(lane))

    def _load_leading(self, at: Address, tensor: str, layout: ir.Layout, scope: Scope) -> Val:
        """Lanes that do not exist touch nothing, and give 0 or any element."""
        b, type_ = self.b, memory_type(layout.type)
        if apart := _worth_sorting(at, layout, scope.active, scope.lanes):
            return _load_few_apart(
                b, self.pointers, at, tensor, layout, apart, scope.active, scope.lanes
            )
        uses = scope.active if at.of_lane is None else 1
        pointer = self.pointers.at(tensor, at.offset, uses)
        result = Val("zeroinitializer", type_, scope.lanes)
        for k in range(scope.active):
            there = self._lane_pointer(pointer, at, k)
            part = b.read(tensor, there, layout.alignment, type_)
            if k == 0 and scope.lanes > _CONSTANT_LANES:
                result = b.spread(part, scope.lanes)
                continue
            result = b.op(f"insertelement {result}, {part}, i32 {k}", type_, scope.lanes)
        return result

    def _load_wrapped(self, at: Wrapped, tensor: str, layout: ir.Layout, mask: Val | None) -> Val:
        """Lanes from an end of a row, and from its beginning. Those that are switched off touch
        nothing and give 0."""
        b, type_, lanes = self.b, memory_type(layout.type), at.before.lanes
        if mask is not None and at.backwards:
            mask = _mask_backwards(b, mask, layout)
        result = Val("zeroinitializer", type_, lanes)
        for back, there in ((0, at.before), (at.back, b.negation(at.before))):
            pointer = self.pointers.at(tensor, at.offset + -back)
            there = there if mask is None else b.binary("and", there, mask)
            result = b.read(tensor, pointer, layout.alignment, type_, lanes, there, result)
        return _backwards(b, result) if at.backwards else result

    def _load_masked(
        self, at: Address, tensor: str, layout: ir.Layout, mask: Val, active: int
    ) -> Val:
        """Lanes that are switched off touch nothing and give 0; ``active`` is as of ``Scope``."""
        b, type_, lanes = self.b, memory_type(layout.type), mask.lanes
        few = max(2, 1 << (active - 1).bit_length())
        beside = at.apart(layout.itemsize) and not at.spread and not self.masks
        if beside and few < lanes and lanes * layout.itemsize > _REGISTER:
            # Of a vector of several registers, LLVM 22 reads all of one whose lanes are known to be
            # switched off.
            some = self._first_lanes(mask, few)
            return self._first_lanes(self._load_masked(at, tensor, layout, some, active), lanes)
        if self.masks and (apart := _worth_sorting(at, layout, active, lanes)):
            found = _load_few_apart(
                b, self.pointers, at, tensor, layout, apart, active, lanes, mask
            )
            return (
                found
                if active == lanes
                else b.select(mask, found, Val("zeroinitializer", type_, lanes))
            )
        if at.apart(-layout.itemsize) and (self.masks or layout.itemsize >= GATHERED):
            low = self.pointers.at(tensor, at.offset + at.step * (lanes - 1))
            there = _mask_backwards(b, mask, layout)
            return _backwards(b, b.read(tensor, low, layout.alignment, type_, lanes, there))
        own = at.own
        if own is None and layout.itemsize < GATHERED and not at.apart(layout.itemsize):
            own = places_apart(at.step, lanes, layout)
        if own is not None and lanes > 1 and loads_each(b, own, layout):
            return load_each(b, self.pointers, tensor, at.offset, own, layout, mask, active)
        pointer = self.pointers.at(tensor, at.offset)
        if at.own is not None:
            pointer = self.pointers.moved(pointer, at.own)
        elif at.apart(layout.itemsize):
            narrow = layout.itemsize < GATHERED and lanes * layout.itemsize <= _REGISTER
            if narrow and not self.masks and mask == leading(lanes, active):
                return self._load_pieces(pointer, tensor, layout, lanes, active)
            return b.read(tensor, pointer, layout.alignment, type_, lanes, mask)
        else:
            pointer = self._lane_places(pointer, at.step, lanes)
        name = f"llvm.masked.gather.{suffix(type_, lanes)}.v{lanes}p0"
        align, zero = Val(str(layout.alignment), "i32"), Val("zeroinitializer", type_, lanes)
        text = b.call_text(name, zero.ty, pointer, align, mask, zero)
        return b.load(tensor, text, type_, lanes)

    def _load_pieces(
        self, pointer: Val, tensor: str, layout: ir.Layout, lanes: int, active: int
    ) -> Val:
        """The first lanes, and 0 in the others, in the longest pieces of which there is one: LLVM
        reads numbers of a byte or two under a mask lane by lane."""
        b, type_ = self.b, memory_type(layout.type)
        found = Val("zeroinitializer", type_, lanes)
        for count in (lanes >> k for k in range(1, lanes.bit_length())):
            if not active & count:
                continue
            before, size = active & -2 * count, count * layout.itemsize
            there = self.pointers.advance(pointer, before * layout.itemsize)
            if size > _WORD_BYTES:  # the first half
                half = b.read(tensor, there, layout.alignment, type_, count)
                found = self._first_lanes(half, lanes)
                continue
            word, words = f"i{8 * size}", lanes // count
            part = b.read(tensor, there, layout.alignment, word)
            whole = b.op(f"bitcast {found} to <{words} x {word}>", word, words)
            whole = b.op(f"insertelement {whole}, {part}, i32 {before // count}", word, words)
            found = b.op(f"bitcast {whole} to {vector(type_, lanes)}", type_, lanes)
        return found

    def _block(
        self, ref: ir.TensorRef, layout: ir.Layout, at: Address, scope: Scope
    ) -> TransposedBlock | None:
        """The neighbours in memory that unrolled loops go through, where lanes lie apart."""
        if at.spread or any(map(at.apart, (0, layout.itemsize, -layout.itemsize))):
            return None
        index = self.addresses.place(ref)
        itemsize = self.program.tensor(ref.tensor).layout.itemsize
        depth = layout.itemsize // itemsize  # points of a word
        for dim, whole in scope.written_out.items():
            in_order = dim != scope.lane_dim and provably_equal(index.coefficient(dim), itemsize)
            if in_order and isinstance(whole.span, int) and whole.span >= 2 * depth:
                points = scope.ranges[dim].offset.constant - whole.offset.constant
                start = at.offset + -points * itemsize
                return TransposedBlock(
                    ref.tensor,
                    layout,
                    start,
                    at.step,
                    scope.active,
                    points // depth,
                    whole.span // depth,
                )
        return None


def _backwards(b: Builder, lanes: Val) -> Val:
    """A vector from its last lane to its first one."""
    return picked(b, lanes, range(lanes.lanes)[::-1])


def _mask_backwards(b: Builder, mask: Val, layout: ir.Layout) -> Val:
    """A mask from its last lane to its first one. LLVM 22 would reverse single bits, which x86 has
    to pack and to unpack."""
    wide = b.convert("sext", mask, f"i{8 * layout.itemsize}")
    zero = Val("zeroinitializer", wide.type, wide.lanes)
    return b.compare("icmp slt", _backwards(b, wide), zero)


def _hidden(b: Builder, mask: Val, layout: ir.Layout) -> Val:
    """A mask of which LLVM knows nothing. Of a vector of several registers, LLVM 22 reads all of
    one whose lanes it finds late to be switched off, maybe beyond the end of an array, or it ends
    with a failed assertion."""
    wide = fenced(b, b.convert("sext", mask, f"i{8 * layout.itemsize}"), layout.itemsize)
    return b.compare("icmp slt", wide, Val("zeroinitializer", wide.type, wide.lanes))


def _comparable(value: object) -> object:
    """What stands for a value in a key: sizes that vary cannot always be compared."""
    return value if type(value) is int else repr(value)


def _few_apart(at: Address, layout: ir.Layout) -> int:
    """How many elements lanes are apart, if that is a few; else 0."""
    if at.spread or not isinstance(at.step, int) or isinstance(at.step, Size):
        return 0
    apart, rest = divmod(at.step, layout.itemsize)
    return apart if not rest and 2 <= apart <= FEW_APART else 0


def _worth_sorting(at: Address, layout: ir.Layout, active: int, lanes: int) -> int:
    """As ``_few_apart``, if the vectors that hold so many active lanes take fewer instructions than
    each of these by itself; else 0."""
    apart = _few_apart(at, layout)
    return apart if 2 * -(-active * apart // lanes) < active else 0


def _load_few_apart(
    b: Builder,
    pointers: Pointers,
    at: Address,
    tensor: str,
    layout: ir.Layout,
    apart: int,
    active: int,
    lanes: int,
    mask: Val | None = None,
) -> Val:
    """Lanes so many elements apart, out of what lies from the first to the last that exists: LLVM
    would load and put in each of them on its own, after a branch for each if there is a ``mask`` of
    those to be read, and no gather of their type. The others give any element; those of the active
    ones that are switched off touch nothing, and give 0."""
    type_, pointer = memory_type(layout.type), pointers.at(tensor, at.offset)
    between = (active - 1) * apart + 1
    size = min(lanes, between)
    # The last vector begins early enough to end with the last lane.
    begin = [*range(0, between - size, size), between - size]
    found: Val | None = None
    for first in begin:
        there = pointers.advance(pointer, first * layout.itemsize)
        there_is = None
        if mask is not None:
            off = Val("zeroinitializer", mask.type, lanes)
            places = [divmod(first + j, apart) for j in range(size)]
            there_is = mixed(b, mask, off, [lanes if rest else k for k, rest in places])
        part = b.read(tensor, there, layout.alignment, type_, size, there_is)
        own = [min(max(k * apart - first, 0), size - 1) for k in range(lanes)]
        part = mixed(b, part, part, own)
        if found is not None:
            picks = [k + lanes * (k * apart >= first) for k in range(lanes)]
            part = mixed(b, found, part, picks)
        found = part
    assert found is not None
    return found
