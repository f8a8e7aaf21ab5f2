"""Which operands are asked for ahead of their use, and how far, where nobody said.

What is read once, in order, and does not fit the second cache comes from memory, and memory
should not rest. Where a group of nests goes through a chunk several times, it would, in all passes
but the first: the pass with the most arithmetic asks for the next chunk. Elsewhere it is enough to
reach beyond the page at whose end processors stop looking ahead by themselves. What is read again
and again, but one block after the other, is asked for a block ahead. Which rows data select, no
processor finds out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from tcl.codegen.choose.cpu.costs import PRODUCTS_PER_CYCLE, UNASKED_BYTES_PER_CYCLE
from tcl.codegen.choose.cpu.footprints import READ_AHEAD, cached_bytes, surely_cached
from tcl.codegen.choose.cpu.lanes import lanes_of
from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import children, dims_of_values, operands, renamed, values_of
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.cpu.prefetch import SOON, loops_of, next_block, read_once, selecting
from tcl.codegen.passes.fusion.groups import fusion_groups
from tcl.common.dataclass import dataclass

NEAR = 2048
"""Bytes."""
_FAR = 8192
"""Bytes that the last cache hands over in the time of an access to memory: 30 to 90 GB/s by 100 ns.
So far ahead has to be asked where the last cache lost some of the lines: nobody knows which."""
_ROWS_AHEAD = 128
"""Bytes, of rows side by side whose elements are read one by one."""
_ROWS = 1024
"""Bytes of short rows between which memory has something else, or of rows and planes that windows
move across: so many are asked for ahead. Of
rows of 64 bytes that are 512 apart, 8 or 16 KB ahead take .88 to .95 of the time of 2 KB on a
Cascade Lake."""
_SHORT = 4096
"""Bytes of chunks that are read before what one asks for from the next one is there. On Zen 4,
which reads ahead into that by itself, layernorm of rows of 4 KB takes .8 to .87 of the time without
asking, from the last cache and from memory; rows of 8 KB take 1.2 times as long."""
_AGAIN = 2
"""Times that elements may be read by a nest, as by a window over neighbours."""
_LARGE = 4
"""Times the second cache: from there on, blocks of a tensor were measured to come too late ..."""
_KEPT = 3
"""... and smaller ones, where processors do not read ahead from block to block, if this part of the
first cache holds one: on a Cascade Lake, batches of products of matrices of 24 to 48 numbers take
.88 to .96 of the time so, and matrices of 64 floats, which are half of it, 1.1 times as long."""
_WORTH = 0.1
"""The part of the arithmetic's time that asking for blocks has to save."""
_SELECTED_LINES, _SELECTED_ROWS = 64, 32
"""Lines and rows that data select, at most, between what is asked for and what is read. On Zen 4,
sums of rows of 1 to 16 lines of a table that the last cache does not keep take .5 to .85 of the
time, with half or twice as much up to 1.4 times as long as with these: the first TLB has 72 pages,
and each row is on another one. FBGEMM's sums ask for 16 rows ahead."""
_SELECTED_ROW = 4 * LINE
"""Bytes of such a row from which on asking for it in the last cache pays. Of shorter ones, and of
rows that are reduced, of which several are read side by side, the core has enough under way by
itself, and processors read ahead in long ones. On a Cascade Lake, sums of rows of 64 bytes take 1.1
to 1.2 times as long with it, products of rows 1.05 to 1.1 times, images 1.04 times."""
_FOLLOWED = 4
"""Runs of memory that a processor surely follows at once."""
_CALL = 24
"""Operations that a built-in function stands for."""


def prefetching(
    program: ir.Program, plan: Mapping[str, NestOptions], device: CpuProfile
) -> dict[str, tuple[int, ...]]:
    """Bytes ahead, per operand, of the nests that should prefetch. ``plan`` says which nests
    share chunks, and how large these are."""
    found: dict[str, dict[int, int]] = {}
    for nests in _chunk_sharing(program, plan):
        written = {n.point.target.tensor for n in nests}
        group = [fused.leader for fused in fusion_groups(nests)]
        by_tensor: dict[str, list[StreamedRead]] = {}
        for nest in group:
            for read in streamed_reads(program, nest, device):
                by_tensor.setdefault(read.ref.tensor, []).append(read)
        for tensor, reads in by_tensor.items():
            if tensor in written:
                continue
            chosen = reads[0]
            chunk = _next_chunk(program, chosen, plan, device) if len(reads) > 1 else 0
            if device.reads_ahead and 0 < chunk <= _SHORT:
                continue
            if chunk:
                work = _work_per_point(group)
                chosen = max(reads, key=lambda read: work[read.nest.name])
            if chunk or _row_after_row(program, chosen):
                ahead = chunk or _near(program, chosen)
                found.setdefault(chosen.nest.name, {})[chosen.position] = ahead
    return {name: _by_position(ahead) for name, ahead in found.items()}


def _by_position(found: Mapping[int, int]) -> tuple[int, ...]:
    """What was found for some operands, 0 for others."""
    return tuple(found.get(k, 0) for k in range(max(found, default=-1) + 1))


def rows_ahead(
    program: ir.Program, nest: ir.Nest, chosen: NestOptions, device: CpuProfile
) -> tuple[int, ...]:
    """Bytes ahead, per operand, of a nest that reads what the second cache does not hold row after
    row: each register tile whole ones, of a line at least, one at a time."""
    if device.reads_ahead or chosen.tile or nest.sequential:
        return ()
    tile, staged, found = _Tile.from_options(nest, chosen), chosen.stage or (), dict[int, int]()
    for read in streamed_reads(program, nest, device):
        layout = program.tensor(read.ref.tensor).layout
        along = [nest.dim(d) for d in layout.in_order(read.ref)]
        whole = bool(along) and all(tile.turns(d) == 1 for d in along)
        lines = _row_bytes(nest, layout, read.ref) >= LINE
        copied = read.position < len(staged) and staged[read.position] >= 0
        if whole and lines and not copied and tile.rows(layout, read.ref) == 1:
            found[read.position] = _near(program, read)
    return _by_position(found)


def _near(program: ir.Program, read: StreamedRead) -> int:
    """Bytes ahead that reach beyond a page, or beyond some rows between which memory has
    something else."""
    layout = program.tensor(read.ref.tensor).layout
    steps = {name: abs(step) for name, step in layout.place(read.ref).terms if step}
    along, row = layout.in_order(read.ref), _row_bytes(read.nest, layout, read.ref)
    moving = [d.name for d in read.nest.dims if d.extent > 1 and steps.get(d.name)]
    apart = next((steps[d] for d in reversed(moving) if d not in along), row)
    return max(NEAR, -(-_ROWS // row) * apart) if row < min(apart, _ROWS) else NEAR


def _row_bytes(nest: ir.Nest, layout: ir.Layout, ref: ir.TensorRef) -> int:
    """Of what lies in order."""
    return math.prod(nest.dim(d).extent for d in layout.in_order(ref)) * layout.itemsize


def tiles_ahead(
    program: ir.Program, nest: ir.Nest, chosen: NestOptions, device: CpuProfile
) -> tuple[int, ...]:
    """Bytes ahead, per operand, of a nest with this register tile: one that the tile needs but
    once, if loops go as memory lies, or one that is read block by block."""
    if nest.sequential:
        return ()
    loops = list(loops_of(nest, chosen))
    dims = [loop.dim for loop in loops]
    untiled = all(loop.step == 1 for loop in loops if loop.tiles)
    as_memory_lies = untiled and dims == [d for d in nest.dims if d in dims]
    staged = chosen.stage or ()
    points = nest.points
    cycles = points / lanes_of(nest.point, device) / PRODUCTS_PER_CYCLE
    tile = _Tile.from_options(nest, chosen)
    found: dict[int, int] = {}
    asked = 0
    near: list[tuple[int, int, bool]] = []
    for position, load in enumerate(operands(nest.point)):
        layout = program.tensor(load.ref.tensor).layout
        size = layout.bytes
        copied = position < len(staged) and staged[position] >= 0
        if copied or size <= device.l2_bytes or points <= _AGAIN * layout.elements:
            continue
        lines = tile.lines(layout, load.ref)
        once = tile.reads_per_element(load.ref) <= _AGAIN and _in_order(nest, layout, load.ref)
        ahead = next_block(nest, layout, load.ref, device, chosen)
        short = _is_short_part(nest, layout, load.ref, ahead)
        if as_memory_lies and once and not short:
            again = tile.comes_again(layout, load.ref) and size <= surely_cached(device)
            near.append((position, lines, again))
        elif ahead and (untiled or short):
            kept = ahead <= device.l1_bytes // _KEPT and _is_shared_block(nest, layout, load.ref)
            if size <= _LARGE * device.l2_bytes and (device.reads_ahead or not kept):
                continue
            saved = size / UNASKED_BYTES_PER_CYCLE - tile.asking(lines)
            if saved >= _WORTH * cycles:
                found[position] = ahead
                asked += lines
    for position, lines, again in near:
        # What the processor has in time by itself may cost nothing, nor lines of the last cache
        # that are asked for again in each step: on a Cascade Lake, products of 16 to 256 numbers
        # in tiles of 14 by 1 take .6 to .7 of the time without, from memory 1.02 to 1.28.
        if not ((device.reads_ahead or again) and tile.asking(asked + lines)):
            found[position] = NEAR
            asked += lines
    return _by_position(found)


def columns_ahead(
    program: ir.Program, nest: ir.Nest, chosen: NestOptions, device: CpuProfile
) -> tuple[int, ...]:
    """Bytes ahead, per operand, of a reduction that takes all rows of results for one column of
    register tiles after the other, where the second cache does not hold the rows beside the panel
    of the column, and the arithmetic hides asking for both. Processors that do not read ahead by
    themselves from page to page have neither in time: on a Cascade Lake, 20 products of 128 to 2000
    numbers in each dimension take .90 to 1.01 of the time, .95 in the mean. Where the second cache
    holds the rows, reductions took .9 to 1.26 if they asked for panels."""
    position, lanes = chosen.vectorize or (-1, 1)
    if device.reads_ahead or not nest.reduces or position < 0:
        return ()
    if chosen.skip or chosen.mma or any(chosen.dot or ()):
        return ()
    tile, lane = _Tile.from_options(nest, chosen), nest.dims[position].name
    item = nest.point.type.compute.itemsize
    levels = chosen.stage or ()
    tiled = dict(zip((d.name for d in nest.dims), chosen.tile or (), strict=False))
    inside = {d.name: tiled.get(d.name) or d.extent for d in nest.dims if d.reduction}
    wanted: list[tuple[int, int, int]] = []
    column = rows = 0
    for k, load in enumerate(operands(nest.point)):
        layout, dims = program.tensor(load.ref.tensor).layout, load.ref.names
        staged = k < len(levels) and levels[k] >= 0
        if staged and lane in dims:
            points = math.prod(inside.get(d) or tile.sizes.get(d, 1) for d in dims)
            column += points * lanes * item
            wanted.append((k, NEAR, tile.count(dims) * lanes * item // LINE))
        elif not staged and lane not in dims and _goes_along(nest, layout, load.ref):
            rows += math.prod(d.extent for d in nest.dims if d.name in dims) * layout.itemsize
            wanted.append((k, _ROWS_AHEAD, tile.lines(layout, load.ref)))
    asked = sum(lines for _, _, lines in wanted)
    far = column > device.l1_bytes and rows and rows + column > device.l2_bytes
    if not far or tile.asking(asked):
        return ()
    return _by_position({k: ahead for k, ahead, _ in wanted})


def windows_ahead(
    program: ir.Program, nest: ir.Nest, chosen: NestOptions, device: CpuProfile
) -> tuple[int, ...]:
    """Bytes ahead, per operand, of a reduction through windows that come from behind the second
    cache, if the arithmetic hides asking, and a register tile goes through more rows or planes than
    processors follow at once. Measured on Zen 3 alone: convolutions of 3 x 3 with 8 to 64 channels
    of 14 to 112 rows take .89 of the time in the mean, .53 to 1.09; with 4 channels 1.0 to 1.1."""
    if not (device.reads_ahead and nest.reduces):
        return ()
    tile, staged, found = _Tile.from_options(nest, chosen), chosen.stage or (), dict[int, int]()
    for position, load in enumerate(operands(nest.point)):
        layout = program.tensor(load.ref.tensor).layout
        copied = position < len(staged) and staged[position] >= 0
        if copied or not load.ref.is_affine or layout.bytes <= device.l2_bytes:
            continue
        points = math.prod(d.extent for d in nest.dims if d.name in load.ref.names)
        lines = tile.lines(layout, load.ref)
        window = points > _AGAIN * layout.elements
        if window and tile.runs(layout, load.ref) > _FOLLOWED and not tile.asking(lines):
            found[position] = _ROWS
    return _by_position(found)


def _goes_along(nest: ir.Nest, layout: ir.Layout, ref: ir.TensorRef) -> bool:
    """Whether the innermost loop goes along rows of an operand, each of several lines."""
    inner = nest.dims[-1]
    long = inner.extent * layout.itemsize >= 2 * _ROWS_AHEAD
    return ref.is_affine and inner.reduction and long and layout.step(ref, inner.name) == 1


def soon(
    program: ir.Program, nest: ir.Nest, chosen: NestOptions, device: CpuProfile
) -> tuple[int, ...]:
    """Bytes ahead, per operand, of a reduction on one thread, for processors that read ahead by
    themselves: of what caches do not keep and nothing reads again. Asked for past the caches, it
    pushes nothing out of them. On Zen 4, sums of rows that come from memory take .8 to 1 of the
    time, sums of columns .9 to 1; products along columns 1.06 times as long.

    Of more than half of what was measured to fit, the last cache has lost a part, and the core
    waits for each such line. On Zen 3, of 16 MB, asking far ahead takes .85 of the time of a
    maximum over 10 MB, .5 over 12 and 14, .64 over 16, and .8 to .9 of that of sums; it makes no
    difference over 5 to 8 MB, and what memory has alone takes 1.0 to 1.2 times as long so. Where
    vectors are as long as lines, a core looks as many lines ahead of one row as loads: on Zen 4, of
    24 MB, maxima over 12 to 22 MB take 1.1 to 1.3 times as long, four rows .8 of the time."""
    if not (device.reads_ahead and device.threads == 1 and nest.reduces):
        return ()
    loads, kept = operands(nest.point), cached_bytes(device)
    sizes = {x.ref.tensor: program.tensor(x.ref.tensor).layout.bytes for x in loads}
    tile, short = _Tile.from_options(nest, chosen), device.vector_bits // 8 < LINE
    beside = any(tile.rows(program.tensor(x.ref.tensor).layout, x.ref) > 1 for x in loads)
    partly = (short or beside) and kept // 2 < sum(sizes.values()) <= kept
    far = {
        read.position: _FAR if partly else SOON
        for read in streamed_reads(program, nest, device)
        if (partly or sizes[read.ref.tensor] > kept)
        and (partly or read_once(program, nest, loads[read.position]))
        and ((len(loads) == 1 and not partly) or _row_after_row(program, read))
    }
    return _by_position(far)


def not_by_itself(
    program: ir.Program,
    nest: ir.Nest,
    ahead: Sequence[int],
    chosen: NestOptions,
    device: CpuProfile,
) -> tuple[int, ...]:
    """Distances without those to what is read next in order, for processors that read ahead by
    themselves. Some rows side by side they do not follow well from the last cache: on Zen 4 the
    maxima of rows of 1 KB took 1.2 to 1.5 times as long without being asked for. One row after the
    other took .75 to .95 of the time. On Zen 3, maxima of rows of 4 KB, two at a time, take .85 of
    the time of NEAR from 5 to 10 MB, and .8 to .95 of that of SOON from memory; products with rows
    of 256 bytes, eight at a time, 1.1 times as long."""
    tile = _Tile.from_options(nest, chosen)
    found = []
    for load, distance in zip(operands(nest.point), ahead, strict=False):
        layout = program.tensor(load.ref.tensor).layout
        beside = layout.bytes > 2 * device.l2_bytes and tile.rows(layout, load.ref) > 1
        if distance and beside and _row_bytes(nest, layout, load.ref) >= _ROWS:
            found.append(max(distance, _FAR))
        else:
            again = beside and layout.bytes < cached_bytes(device)
            found.append(distance if again or distance > NEAR else 0)
    return tuple(found) if any(found) else ()


def selected_ahead(
    program: ir.Program,
    nest: ir.Nest,
    ahead: Sequence[int],
    chosen: NestOptions,
    device: CpuProfile,
) -> tuple[int, ...]:
    """``ahead``, and bytes of subscripts for operands of which data select whole vectors, where
    caches do not keep the tensor and subscripts are read in order. From the last cache, rows come
    in time by themselves on Zen 4, where it made no difference for a table of 6 MB. On a Cascade
    Lake, maxima of rows of 400 bytes out of 5 MB take .67 of the time, sums of 256 bytes .8. Rows
    that lie anywhere in more than half of the last cache come late, even where a core was measured
    to read all of it again in order: on Zen 5, of 32 MB, sums of 256 bytes out of 25 MB take .54 to
    .77 of the time, of 64 bytes out of 20 MB .68, out of 12 MB 1.2 times as long."""
    tile = _Tile.from_options(nest, chosen)
    kept = min(cached_bytes(device), max(2 * device.l2_bytes, device.l3_bytes // 2))
    near = kept if device.reads_ahead else 2 * device.l2_bytes
    found = dict(enumerate(ahead))
    for position, load in enumerate(operands(nest.point)):
        by = selecting(program, load.ref)
        layout = program.tensor(load.ref.tensor).layout
        if not by or layout.bytes <= near or found.get(position):
            continue
        moving = [d for d in nest.dims if d.extent > 1 and any(d.name in x.names for x in by)]
        if not moving or tile.lane in [d.name for d in moving]:
            continue
        subscripts = program.tensor(by[0].tensor).layout
        reduced = any(nest.dim(d).reduction for d in layout.in_order(load.ref))
        by_itself = reduced or not _SELECTED_ROW <= _row_bytes(nest, layout, load.ref) < NEAR
        if layout.bytes <= kept and by_itself:
            continue
        rows = max(1, min(_SELECTED_ROWS, _SELECTED_LINES // tile.lines(layout, load.ref)))
        in_order = subscripts.step(by[0], moving[-1].name) == 1
        if in_order and math.prod(d.extent for d in moving) > rows:
            found[position] = rows * subscripts.itemsize
    return _by_position(found)


@dataclass(frozen=True, slots=True)
class _Tile:
    """A register tile of a nest that is not tiled otherwise."""

    nest: ir.Nest
    sizes: Mapping[str, int]
    """Points, or vectors of them along ``lane``, by dimension."""
    lane: str | None
    lanes: int

    @staticmethod
    def from_options(nest: ir.Nest, chosen: NestOptions) -> _Tile:
        position, lanes = chosen.vectorize or (-1, 1)
        lane = nest.dims[position].name if position >= 0 else None
        sizes = zip(nest.dims, chosen.register or (), strict=False)
        return _Tile(nest, {d.name: max(1, size) for d, size in sizes}, lane, lanes)

    def turns(self, dim: ir.Dim) -> int:
        """How many tiles there are along a dimension."""
        return -(-dim.extent // (self.sizes.get(dim.name, 1) * self._lanes_along(dim.name)))

    def reads_per_element(self, ref: ir.TensorRef) -> int:
        """How often register tiles come back to an element."""
        return math.prod(self.turns(d) for d in self.nest.dims if d.name not in ref.names)

    def rows(self, layout: ir.Layout, ref: ir.TensorRef) -> int:
        """Rows of an operand that are read side by side."""
        apart = (d for d in ref.names if layout.step(ref, d) != 1)
        return math.prod(self.sizes.get(d, 1) for d in apart)

    def lines(self, layout: ir.Layout, ref: ir.TensorRef) -> int:
        along = layout.in_order(ref)
        found = 1
        for name in ref.names:
            size = self.sizes.get(name, 1)
            if name in along:
                size = -(-size * self._lanes_along(name) * layout.itemsize // LINE)
            found *= size
        return found

    def runs(self, layout: ir.Layout, ref: ir.TensorRef) -> int:
        """Runs of memory, each with no gap that processors do not read across, that all steps of
        a tile come to."""
        found, span = 1, layout.itemsize
        for name, step in sorted(layout.place(ref).terms, key=lambda term: abs(term[1])):
            dim = self.nest.dim(name)
            points = self.sizes.get(name, 1) * self._lanes_along(name)
            if dim.reduction:
                points = max(points, dim.extent)
            if points > 1 and abs(step) - span >= READ_AHEAD:
                found *= points
            span += abs(step) * (points - 1)
        return found

    def comes_again(self, layout: ir.Layout, ref: ir.TensorRef) -> bool:
        """Whether the next tiles come to the same lines of an operand."""
        return any(
            self.sizes.get(name, 1) * self._lanes_along(name) * layout.itemsize < LINE
            for name in layout.in_order(ref)
        )

    def asking(self, lines: int) -> float:
        """Cycles that it takes to ask for so many lines in every tile: none, as long as the
        arithmetic takes longer than the loads and these together."""
        loads = sum(self.count(x.ref.names) for x in operands(self.nest.point))
        busy = max(loads, self.count(self.sizes))
        steps = math.prod(self.turns(d) for d in self.nest.dims)
        return steps * max(0, loads + lines - busy) / PRODUCTS_PER_CYCLE

    def count(self, dims: Iterable[str]) -> int:
        """Points or vectors of these dimensions in a tile."""
        return math.prod(self.sizes.get(name, 1) for name in dims)

    def _lanes_along(self, dim: str) -> int:
        return self.lanes if dim == self.lane else 1


def _in_order(nest: ir.Nest, layout: ir.Layout, ref: ir.TensorRef) -> bool:
    """Whether the dimensions that move an operand go through memory in order, and once."""
    moving = ref.names
    points = math.prod(d.extent for d in nest.dims if d.name in moving)
    return ref.is_affine and points <= _AGAIN * layout.elements and bool(layout.in_order(ref))


def _is_short_part(nest: ir.Nest, layout: ir.Layout, ref: ir.TensorRef, block: int) -> bool:
    """Whether reductions go through rows that hold blocks of so many bytes side by side, too short
    for processors to read ahead in one."""
    steps = dict(layout.place(ref).terms)
    across = any(abs(steps.get(d.name, 0)) > block for d in nest.dims if d.reduction)
    return across and 0 < block < READ_AHEAD


def _is_shared_block(nest: ir.Nest, layout: ir.Layout, ref: ir.TensorRef) -> bool:
    """Whether an operand is read in order, and for several results before the next block is, as a
    matrix of a batch."""
    results = {d.name for d in nest.dims if not d.reduction and d.extent > 1}
    return _in_order(nest, layout, ref) and not results <= ref.names


@dataclass(frozen=True, slots=True)
class StreamedRead:
    """The operand of a tensor that is first to come to what a nest reads of it."""

    nest: ir.Nest
    position: int
    ref: ir.TensorRef


def streamed_reads(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> list[StreamedRead]:
    """The operand of each tensor that is furthest ahead in memory, of tensors that the nest reads
    in order and once, and which the second cache does not hold."""
    found: dict[str, StreamedRead] = {}
    places: dict[str, int] = {}
    points = nest.points
    for position, load in enumerate(operands(nest.point)):
        layout = program.tensor(load.ref.tensor).layout
        if layout.bytes <= device.l2_bytes or points > _AGAIN * layout.elements:
            continue
        if not load.ref.is_affine or not layout.in_order(load.ref):
            continue
        name, place = load.ref.tensor, layout.place(load.ref).constant
        if name not in found or place > places[name]:
            found[name], places[name] = StreamedRead(nest, position, load.ref), place
    return list(found.values())


def _row_after_row(program: ir.Program, read: StreamedRead) -> bool:
    """Whether the innermost dimension goes along rows. Where it goes across them, many rows are
    read side by side: then processors ask for what comes next, and do it better."""
    moving = [d.name for d in read.nest.dims if d.extent > 1]
    layout = program.tensor(read.ref.tensor).layout
    return bool(moving) and layout.step(read.ref, moving[-1]) == 1


def _chunk_sharing(program: ir.Program, plan: Mapping[str, NestOptions]) -> list[list[ir.Nest]]:
    """The nests, those together that share chunks."""
    found: list[list[ir.Nest]] = []
    for nest in program.nests:
        if found and plan.get(nest.name, NestOptions()).fuse:
            found[-1].append(nest)
        else:
            found.append([nest])
    return found


def _next_chunk(
    program: ir.Program, read: StreamedRead, plan: Mapping[str, NestOptions], device: CpuProfile
) -> int:
    """Bytes from a chunk to the next one; 0 where there is none, or it would leave the second
    cache before it is used."""
    sizes = plan.get(read.nest.name, NestOptions()).chunk or ()
    pairs = [(d, s) for d, s in zip(read.nest.dims, sizes, strict=False) if 0 < s < d.extent]
    if not pairs:
        return 0
    dim, size = pairs[-1]
    layout = program.tensor(read.ref.tensor).layout
    parts = math.prod(-(-d.extent // s) for d, s in pairs)
    if layout.bytes > parts * device.l2_bytes // 4:
        return 0
    return abs(layout.place(read.ref).coefficient(dim.name)) * size


def _work_per_point(group: Sequence[ir.Nest]) -> dict[str, int]:
    """About what a point of each nest costs. Calls that do not change from point to point count
    for nothing, nor do those of an earlier nest, which keeps what it computes."""
    known: set[ir.Value] = set()
    found = {}
    for nest in group:
        names = {d.name: d.name.split(".", 1)[1] for d in nest.dims}
        moving = {names[d.name] for d in nest.dims if d.extent > 1}
        total = 0
        pending = [renamed(value, names) for value in values_of(nest.point)]
        while pending:
            value = pending.pop()
            if isinstance(value, ir.Call):
                own = dims_of_values([value])
                if value in known or not moving <= own:
                    continue
                known.add(value)
            total += _CALL if isinstance(value, ir.Call) else 1
            pending += children(value)
        found[nest.name] = total
    return found
