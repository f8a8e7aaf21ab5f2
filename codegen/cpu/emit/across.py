"""Accesses whose lanes lie apart, at neighbours that unrolled loops go through: a row of memory
per lane, transposed in registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tcl.codegen.cpu.emit.scope import At, leading, number
from tcl.codegen.cpu.llvm.builder import Builder, Val, memory_type, suffix
from tcl.codegen.cpu.llvm.transpose import ROW, interleaved, joined, mixed, transposed
from tcl.codegen.devices.features import MASKED_STORES
from tcl.codegen.loopir import ir
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_equal


@dataclass(frozen=True, slots=True)
class Pointers:
    """Addresses in tensors."""

    b: Builder
    tensors: Mapping[str, Val]
    """Tensor → address of its first element."""

    def at(self, tensor: str, offset: At, uses: int = 1) -> Val:
        """The address this many bytes from the first element. ``uses``: the accesses at constant
        distances from it, as of lanes that lie apart."""
        pointer = self.tensors[tensor]
        if offset.base is not None:
            pointer = self.b.opaque(self.moved(pointer, offset.base), uses)
        return self.advance(pointer, offset.constant)

    def moved(self, pointer: Val, offset: Val) -> Val:
        """An address some bytes further; one per lane of the offset."""
        return self.b.op(f"getelementptr i8, {pointer}, {offset}", "ptr", offset.lanes)

    def advance(self, pointer: Val, offset: int) -> Val:
        """An address some bytes further."""
        if provably_equal(offset, 0):
            return pointer
        return self.moved(pointer, number(offset))

    def write(
        self,
        tensor: str,
        value: Val,
        pointer: Val,
        count: int,
        layout: ir.Layout,
        there: Val | None = None,
    ) -> None:
        """The first ``count`` lanes of a value, one after the other from there on; of those the
        ones that are ``there``, if a mask says so.

        Some of the lanes are written under a mask where that is one plain instruction, and in
        pieces elsewhere: AVX2's masked stores take some AMD processors as long as twelve others,
        and what has no masked stores at all would write lane by lane."""
        b, note = self.b, f", align {layout.alignment}"
        if count == value.lanes and there is None:
            b.store(tensor, f"store {value}, {pointer}{note}")
        elif count > 1 and MASKED_STORES in b.features:
            name = f"llvm.masked.store.{suffix(value.type, value.lanes)}.p0"
            align, mask = Val(str(layout.alignment), "i32"), there or leading(value.lanes, count)
            b.store(tensor, b.call_text(name, "void", value, pointer, align, mask))
        else:
            start = 0
            while start < count:
                lanes = 1 << (count - start).bit_length() - 1
                piece = b.lane(value, start)
                if lanes > 1:
                    piece = mixed(b, value, value, range(start, start + lanes))
                there = self.advance(pointer, start * layout.itemsize)
                b.store(tensor, f"store {piece}, {there}{note}")
                start += lanes


@dataclass(frozen=True, slots=True)
class TransposedBlock:
    """Elements of a tensor: lanes that lie apart, and neighbours of each of them."""

    tensor: str
    layout: ir.Layout
    start: At
    """Where the first element of the first lane lies."""
    step: int
    """Bytes from lane to lane."""
    active: int
    """The leading lanes that exist."""
    place: int
    """Which neighbours are meant here, of ``span``."""
    span: int

    def size(self, lanes: int) -> int:
        """Neighbours that are transposed at once, those behind the end included."""
        row = max(1, ROW // self.layout.itemsize)
        return min(lanes, 1 << (self.span - 1).bit_length(), row)


_BETWEEN = 3, 4
"""Results between two lanes that are written with those of all lanes. (Of two, LLVM puts the stores
of rows together.)"""


@dataclass(slots=True)
class Across:
    """Emits reads and writes of blocks."""

    b: Builder
    pointers: Pointers
    waiting: dict[tuple[str, int], list[Val]] = field(default_factory=dict)
    """Values to be written once the last of their neighbours is there, by where they go. Of their
    offset only what is known now says so: the rest is the same for all that is written out at
    once, but may be computed again after code that branches."""

    def load(self, block: TransposedBlock, lanes: int) -> Val:
        """The elements at this place; what is read for it serves its neighbours, too. Lanes that
        do not exist touch nothing and give 0."""
        size, layout = block.size(lanes), block.layout
        first = block.place // size * size
        there = min(size, block.span - first)
        pointer = self.pointers.at(block.tensor, block.start + first * layout.itemsize)
        names = [
            f"{k} of {there} from {pointer} by {block.step}, {lanes}, {block.active}, {layout.type}"
            for k in range(size)
        ]
        if self.b.known.recall_load(block.tensor, names[0]) is None:
            rows = [
                self._row(block, self.pointers.advance(pointer, lane * block.step), size, there)
                if lane < block.active
                else Val("zeroinitializer", memory_type(layout.type), size)
                for lane in range(lanes)
            ]
            groups = [joined(self.b, rows[k::size]) for k in range(size)]
            columns = transposed(self.b, groups, layout.itemsize)
            for name, column in zip(names, columns, strict=True):
                self.b.known.remember_load(block.tensor, name, column)
        found = self.b.known.recall_load(block.tensor, names[block.place - first])
        assert found is not None
        return found

    def _row(self, block: TransposedBlock, pointer: Val, size: int, there: int) -> Val:
        b, type_, align = self.b, memory_type(block.layout.type), block.layout.alignment
        if there == 1 < size:
            zero = Val("zeroinitializer", type_, size)
            one = b.read(block.tensor, pointer, align, type_)
            return b.op(f"insertelement {zero}, {one}, i32 0", type_, size)
        mask = None if there == size else leading(size, there)
        return b.read(block.tensor, pointer, align, type_, size, mask)

    def store(self, block: TransposedBlock, value: Val) -> None:
        """Writes one value per lane, together with its neighbours, which come in order."""
        size, itemsize = block.size(value.lanes), block.layout.itemsize
        first = block.place // size * size
        there = min(size, block.span - first)
        start = block.start + first * itemsize
        key = block.tensor, start.constant
        values = self.waiting.setdefault(key, [])
        values.append(value)
        if len(values) < there:
            return
        del self.waiting[key]
        in_order = provably_equal(block.step, there * itemsize) and block.active == value.lanes
        if in_order and there == block.span in _BETWEEN:
            pointer = self.pointers.at(block.tensor, start)
            for row in interleaved(self.b, values, itemsize):
                self._write(block, pointer, row, row.lanes)
                pointer = self.pointers.advance(pointer, row.lanes * itemsize)
            return
        values += [Val("poison", value.type, value.lanes)] * (size - there)
        columns = transposed(self.b, values, itemsize)
        pointer = self.pointers.at(block.tensor, start)
        for lane in range(block.active):
            at = self.pointers.advance(pointer, lane * block.step)
            begin = lane // size * size
            row = mixed(
                self.b, columns[lane - begin], columns[lane - begin], range(begin, begin + size)
            )
            self._write(block, at, row, there)

    def settle(self) -> None:
        """Makes sure that nothing is waiting any longer."""
        for tensor, _ in self.waiting:
            raise ir.IRError(f"not all of {tensor} has been written")

    def _write(self, block: TransposedBlock, pointer: Val, row: Val, there: int) -> None:
        self.pointers.write(block.tensor, row, pointer, there, block.layout)
