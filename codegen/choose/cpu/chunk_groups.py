"""Which nests share their chunks, and how large those are, where nobody said.

Nests are joined as long as they can be and touch the same memory, so that what one makes is
still in a cache, or in that of the same core, when the next one reads it. One that contracts waits
for no memory, and chunks part what it would have used together: it is joined only to what makes
something for it, or takes what it makes. One that is alone is divided so that all threads are busy
to the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from tcl.codegen.choose.cpu.costs import BOUNDARY_CYCLES, CACHE_BYTES_PER_CYCLE, STREAMS
from tcl.codegen.choose.cpu.footprints import memory_rate
from tcl.codegen.choose.cpu.lanes import lanes_of
from tcl.codegen.choose.cpu.matrix_unit import MatrixWay
from tcl.codegen.choose.cpu.register_tiles import TileChoice, fastest
from tcl.codegen.choose.cpu.thread_chunks import (
    balanced,
    boundary_cycles,
    fastest_way,
    in_lanes,
    reuses,
)
from tcl.codegen.choose.cpu.thread_worth import cycles
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import dims_of_lets, dims_of_values
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.fuse import crossing, refs
from tcl.codegen.passes.fusion.groups import fusion_groups
from tcl.common.dataclass import dataclass, replace

_POINTS = 4096
"""Points of a chunk below which loops would cost more than caches save."""
_MOST = 16
"""Nests of a group: with more, what the first made is no longer near, and there is no end of
comparing."""
_ROWS = 4
"""Rows that are better read side by side, if the first cache has room."""
_HEAVY = 8
"""What is less than one part in so many counts for nothing."""
_WORTH = 0.03
"""The part of a group's work that chunks have to save."""
_ROOM = 256 << 10
"""Bytes that a chunk may touch, if the second cache is twice as large: in fewer rows the operands
that all chunks read would be read too often. Of a large cache, a quarter is enough."""
_LONGEST = 1 << 30
"""Points of a dimension in a chunk at most; options take no more than twice as many."""
_REUSED = 2
"""Points for each element that a nest touches, up to which it waits for caches."""
_PIECE = 4096
"""Bytes of a row of memory that are worth reading on their own: processors read ahead within a
page, and once they have seen where it goes."""
_TORN_CYCLES = 80.0
"""In which the first lines of a short piece of memory come, which nothing has asked for ahead."""
_FAR = 4
"""The part of the second cache above which a tensor is not in it, where nests touch more than it
holds. On Zen 4 with 1 MB, a reaction and diffusion of four tensors of 554 KB."""
_LINES = 4
"""Vectors that a chunk has at least of a dimension along which memory lies in order."""


def grouping(program: ir.Program, device: CpuProfile) -> dict[str, NestOptions]:
    """Chunks, and whether they are shared with the nest before, by nest."""
    found: dict[str, NestOptions] = {}
    for group in groups(program, device):
        sizes = group.chunk(program, device)
        extents = group.extents
        if group.count(sizes) == 1:
            continue
        for position, nest in enumerate(group.nests):
            shared = zip(group.shared, sizes, extents, strict=True)
            by_dim = {d[position]: min(s, _LONGEST) for d, s, extent in shared if s < extent}
            chunk = tuple(by_dim.get(d.name, 0) for d in nest.dims)
            found[nest.name] = NestOptions(chunk=chunk, fuse=position > 0)
    return found


def groups(program: ir.Program, device: CpuProfile) -> list[ChunkGroup]:
    """The nests, those together for which it pays to share chunks."""
    fused_with = _fused_with(program)
    found: list[ChunkGroup] = []
    for group in _joined_groups(program, program.nests, fused_with):
        if len(group.fused) == 1 or group.pays(program, device):
            found.append(group)
            continue
        for fused_nests in group.fused:
            its = [n for n in group.nests if n in fused_nests]
            found += _joined_groups(program, its, fused_with)
    return found


def possible_groups(program: ir.Program) -> list[ChunkGroup]:
    """The nests, those together that can share chunks, whether or not that pays."""
    return _joined_groups(program, program.nests, _fused_with(program))


def _fused_with(program: ir.Program) -> dict[str, tuple[ir.Nest, ...]]:
    """The nests that are fused with each other, by each of their names."""
    fused_with: dict[str, tuple[ir.Nest, ...]] = {}
    for fused in fusion_groups(program.nests):
        names = fused.names
        fused_with |= dict.fromkeys(names, tuple(program.nest(name) for name in sorted(names)))
    return fused_with


@dataclass(frozen=True, slots=True)
class ChunkGroup:
    nests: tuple[ir.Nest, ...]
    shared: tuple[tuple[str, ...], ...]
    """Dimensions that go together, one of each nest."""
    fused: tuple[tuple[ir.Nest, ...], ...]
    """Nests that are fused with each other."""

    def joined(
        self, program: ir.Program, nest: ir.Nest, along: tuple[ir.Nest, ...]
    ) -> ChunkGroup | None:
        """The group with one more nest, fused with these; None if they have no chunks in common."""
        pairs = ((n, f) for n in self.nests for f in along)
        near = along in self.fused or any(_near(program, *pair) for pair in pairs)
        if len(self.nests) >= _MOST or _in_order(nest) or not near:
            return None
        shared = []
        taken: set[str] = set()
        for dims in self.shared:
            partner = self._partner(dims, nest, taken)
            if partner is not None:
                taken.add(partner)
                shared.append((*dims, partner))
        if not _keeps_order(nest, shared):
            return None
        fused = self.fused if along in self.fused else (*self.fused, along)
        return ChunkGroup((*self.nests, nest), tuple(shared), fused)

    def _partner(self, dims: Sequence[str], nest: ir.Nest, taken: Iterable[str]) -> str | None:
        """The dimension of a nest whose chunks need nothing of others' chunks of these."""
        first = self.nests[0].dim(dims[0])
        fitting = [
            d.name
            for d in nest.dims
            if not d.reduction and (d.first, d.extent) == (first.first, first.extent)
            if d.name not in taken and self._independent(dims, nest, d.name)
        ]
        fitting.sort(key=lambda name: name.split(".")[-1] != dims[0].split(".")[-1])
        return fitting[0] if fitting else None

    def _independent(self, dims: Sequence[str], nest: ir.Nest, dim: str) -> bool:
        return not any(
            crossing(n, nest, [(own, dim)]) or crossing(nest, n, [(dim, own)])
            for n, own in zip(self.nests, dims, strict=True)
        )

    def pays(self, program: ir.Program, device: CpuProfile) -> bool:
        """Whether what chunks save in traffic counts beside the arithmetic."""
        everything = self.bytes(program, {})
        if everything <= device.l1_bytes:
            return False
        far = everything > device.l2_bytes
        speed = memory_rate(device) if far else CACHE_BYTES_PER_CYCLE
        each = [{r.tensor: _bytes(program, n, r, {}) for r in refs(n)} for n in self.nests]
        again = sum(sum(sizes.values()) for sizes in each) - everything
        work = sum(n.points / lanes_of(n.point, device) / 2 for n in self.nests)
        saved = again / speed - _WORTH * work
        if saved <= 0:
            return False
        own = self._of_one_thread(program, device)
        if self._affine and self.bytes(program, self._spans(own)) > device.l2_bytes:
            return False  # it is gone before the next nest reads it
        sizes = self._for_threads(own, device)
        # As much lost where the writing of threads meets as they gain, more than at the few places
        # that chunks of whole rows have.
        few = BOUNDARY_CYCLES * device.threads * len(self.nests)
        alone = sum(cycles(program, nest, device) for nest in self.nests)
        lost = boundary_cycles(program, self.nests, self.shared, sizes, device.threads, alone)
        if lost > few + alone * (1 - 1 / device.threads):
            return False
        if far and self._in_pieces(program, sizes, device):
            return False
        if far and self._torn_cycles(program, sizes, everything, device) >= _WORTH * work:
            return False
        return saved > self._lost_reuse(program, sizes, device, saved)

    def _lost_reuse(
        self, program: ir.Program, sizes: Sequence[int], device: CpuProfile, enough: float
    ) -> float:
        """Cycles that chunks of fewer points than a register tile add to nests that read operands
        again, whose rows share what is then loaded and computed for each chunk, and to those that
        reduce nothing, whose rows of memory chunks of columns tear; or some, if they are ``enough``
        already."""
        lost = 0.0
        most = max(n.points for n in self.nests)
        for position, nest in enumerate(self.nests):
            counts = reuses(nest) if nest.reduces else nest.points * _HEAVY >= most
            if nest.sequential or not counts or lost >= enough:
                continue
            whole = fastest_way(program, nest, device)
            if not isinstance(whole, TileChoice):
                continue
            cut = {dims[position]: n for dims, n in zip(self.shared, sizes, strict=True)}
            shorter = [d for d, n in cut.items() if n < min(whole.unit(d), nest.dim(d).extent)]
            if shorter:
                dims = tuple(replace(d, extent=cut.get(d.name, d.extent)) for d in nest.dims)
                part = fastest(program, replace(nest, dims=dims), device)
                lost += max(0.0, part.cycles * self.count(sizes) - whole.cycles)
        return lost

    def _torn_cycles(
        self, program: ir.Program, sizes: Sequence[int], everything: int, device: CpuProfile
    ) -> float:
        """Cycles that chunks wait for short pieces, on pages of their own, of tensors that come
        from behind the second cache, beyond those in which nests would read again what they share.
        On Zen 4, the best of 14 days of 300 x 310 pixels take .8 of the time without chunks of one
        row, 37 columns of 41 x 45 levels .8."""
        pieces = dict[tuple[str, int], int]()
        made = {nest.point.target.tensor for nest in self.nests}
        for nest in self.nests:
            for ref in refs(nest):
                layout = program.tensor(ref.tensor).layout
                far = layout.bytes > device.l2_bytes // _FAR and ref.tensor not in made
                if far and ref.is_affine:
                    own = _pieces(layout, ref, nest, self._spans(sizes))
                    page = ref.tensor, layout.place(ref).constant // _PIECE
                    pieces[page] = max(pieces.get(page, 0), own)
        torn = self.count(sizes) * max(0, sum(pieces.values()) - STREAMS)
        # Nests that are fused with each other read together what both of them read.
        each = [
            {r.tensor: _bytes(program, n, r, {}) for n in f for r in refs(n)} for f in self.fused
        ]
        again = sum(sum(read.values()) for read in each) - everything
        return _TORN_CYCLES * torn - again / memory_rate(device)

    def _in_pieces(self, program: ir.Program, sizes: Sequence[int], device: CpuProfile) -> bool:
        """Whether chunks would cut the rows of a tensor that the second cache does not hold beside
        the others, so that it is read in short pieces which are far apart."""
        for dims, size, extent in zip(self.shared, sizes, self.extents, strict=True):
            if size == extent:
                continue
            for nest, dim in zip(self.nests, dims, strict=True):
                for ref in refs(nest):
                    layout = program.tensor(ref.tensor).layout
                    far = _bytes(program, nest, ref, {}) > device.l2_bytes // _FAR
                    if far and size * layout.itemsize < _PIECE and dim in layout.in_order(ref):
                        return True
        return False

    @property
    def _affine(self) -> bool:
        """Whether no values decide what is read, so that it is known how much that is."""
        return all(r.is_affine for n in self.nests for r in refs(n))

    @property
    def extents(self) -> tuple[int, ...]:
        """Of the shared dimensions."""
        return tuple(self.nests[0].dim(dims[0]).extent for dims in self.shared)

    def count(self, sizes: Sequence[int]) -> int:
        return math.prod(-(-e // s) for e, s in zip(self.extents, sizes, strict=True))

    def chunk(self, program: ir.Program, device: CpuProfile) -> tuple[int, ...]:
        """Points per chunk of the shared dimensions.

        A nest that is alone, but for those that are fused with it, needs chunks for threads only.
        Others have as few as loops stay worth their while, unless the first cache would lose what
        one nest reads before the next one does; more of those along which operands are used again
        or lanes or windows go, as long as a chunk fits into a part of the second cache.
        """
        if len(self.fused) == 1:
            return balanced(program, self.nests, self.shared, device)
        return self._for_threads(self._of_one_thread(program, device), device)

    def _for_threads(self, sizes: Sequence[int], device: CpuProfile) -> tuple[int, ...]:
        """As ``chunk``, where chunks of such sizes would do for one thread."""
        while device.threads > 1 and self.count(sizes) < 4 * device.threads:
            k = max(range(len(sizes)), key=lambda k: (sizes[k] > 1, -k))
            if sizes[k] == 1:
                break
            sizes = [*sizes[:k], -(-sizes[k] // 2), *sizes[k + 1 :]]
        return tuple(sizes)

    def _of_one_thread(self, program: ir.Program, device: CpuProfile) -> list[int]:
        """As ``chunk``, of a group for its caches alone."""
        extents = self.extents
        sizes = [
            min(extent, self._least(program, dims, device))
            for dims, extent in zip(self.shared, extents, strict=True)
        ]
        room = max(device.l2_bytes // 4, min(device.l2_bytes // 2, _ROOM))
        contracts = any(_contracts(program, nest) for nest in self.nests)
        for k in reversed(range(len(sizes))):
            while sizes[k] < extents[k]:
                more = [*sizes[:k], min(2 * sizes[k], extents[k]), *sizes[k + 1 :]]
                spans = self._spans(sizes)
                again = self._rereads(program, self.shared[k], spans)
                again = again and (contracts or self._fits_l1(program, more, device, written=False))
                few = sizes[k] < _ROWS or self._most_points(sizes) < _POINTS
                wanted = again or self._has_lanes_or_window(program, k)
                wanted = wanted or (few and self._fits_l1(program, more, device))
                if not wanted or self.bytes(program, self._spans(more)) > room:
                    break
                sizes = more
        return self._of_whole_tiles(program, device, sizes, room)

    def _of_whole_tiles(
        self, program: ir.Program, device: CpuProfile, sizes: list[int], room: int
    ) -> list[int]:
        """Chunks that have at least the rows of a register tile of the nests with most work, if
        these do not touch more than ``room`` bytes. Fewer would bound the tile, which then reads
        what its rows share more often."""
        most = max(n.points for n in self.nests)
        for position, nest in enumerate(self.nests):
            if nest.points * _HEAVY < most or nest.sequential or not reuses(nest):
                continue
            work: MatrixWay | TileChoice | None = None
            for k, extent in enumerate(self.extents):
                dim = self.shared[k][position]
                if sizes[k] == extent or all(dim in r.names for r in refs(nest)):
                    continue
                work = work or fastest_way(program, nest, device)
                rows = work.unit(dim)
                more = [*sizes[:k], min(rows, extent), *sizes[k + 1 :]]
                if rows > sizes[k] and self.bytes(program, self._spans(more)) <= room:
                    sizes = more
        return sizes

    def _least(self, program: ir.Program, dims: Sequence[str], device: CpuProfile) -> int:
        """Points that the nests with the most work need to be done in lanes."""
        most = max(n.points for n in self.nests)
        for nest, dim in zip(self.nests, dims, strict=True):
            if nest.points * _HEAVY < most:
                continue
            in_order = in_lanes(program, nest)
            if in_order and in_order <= set(self._shared_of(nest)) and dim in in_order:
                return _LINES * lanes_of(nest.point, device)
        return 1

    def _shared_of(self, nest: ir.Nest) -> list[str]:
        position = self.nests.index(nest)
        return [dims[position] for dims in self.shared]

    def _rereads(self, program: ir.Program, dims: Sequence[str], spans: Mapping[str, int]) -> bool:
        """Whether a chunk reads much that stays the same along the dimension."""
        for nest, dim in zip(self.nests, dims, strict=True):
            sizes = {r: _bytes(program, nest, r, spans) for r in refs(nest)}
            same = [b for r, b in sizes.items() if dim not in r.names]
            if sum(same) * _HEAVY > sum(sizes.values()) and nest.points > max(same, default=0):
                return True
        return False

    def _fits_l1(
        self, program: ir.Program, sizes: Sequence[int], device: CpuProfile, *, written: bool = True
    ) -> bool:
        """Whether the first cache holds what a chunk reads, and what the next one will read, and,
        if ``written``, their results, among them small ones of whole rows. On Cascade Lake,
        softmax of 4096 x 1024 takes .95 of the time by two rows of what it takes by four, and .92
        by one; of 100 x 1024 .93 by two, and 1.0 by one."""
        touched = self.bytes(program, self._spans(sizes), written=written)
        return 2 * touched <= device.l1_bytes + written * device.l1_bytes // 16

    def _has_lanes_or_window(self, program: ir.Program, k: int) -> bool:
        """Whether a nest of much work has its lanes or a window along these dimensions."""
        most = max(n.points for n in self.nests)
        for nest, dim in zip(self.nests, self.shared[k], strict=True):
            if nest.points * _HEAVY < most:
                continue
            lanes = in_lanes(program, nest)
            if dim in lanes and lanes <= set(self._shared_of(nest)):
                return True
            subscripts = (s for r in refs(nest) for s in r.affine)
            if any(s.coefficient(dim) and len(s.terms) > 1 for s in subscripts):
                return True
        return False

    def _spans(self, sizes: Sequence[int]) -> dict[str, int]:
        return {d: s for dims, s in zip(self.shared, sizes, strict=True) for d in dims}

    def _most_points(self, sizes: Sequence[int]) -> int:
        """Points of a chunk of the nest that has most."""
        spans = self._spans(sizes)
        counts = (math.prod(spans.get(d.name, d.extent) for d in n.dims) for n in self.nests)
        return max(counts)

    def bytes(self, program: ir.Program, spans: Mapping[str, int], *, written: bool = True) -> int:
        """What the nests touch, where some dimensions have fewer points; unless ``written``,
        without what they make."""
        found: dict[str, int] = {}
        for nest in self.nests:
            for ref in refs(nest):
                size = _bytes(program, nest, ref, spans)
                found[ref.tensor] = max(found.get(ref.tensor, 0), size)
        made = () if written else {n.point.target.tensor for n in self.nests}
        return sum(size for tensor, size in found.items() if tensor not in made)


def _pieces(layout: ir.Layout, ref: ir.TensorRef, nest: ir.Nest, spans: Mapping[str, int]) -> int:
    """Pieces of memory, each shorter than a page and on one of its own, of so many points."""
    row, found = layout.itemsize, 1
    for name, step in sorted(layout.place(ref).terms, key=lambda term: abs(term[1])):
        points = spans.get(name, nest.dim(name).extent)
        if abs(step) <= max(row, _PIECE):
            row = max(row, abs(step) * points)
        else:
            found *= points
    return found if row < _PIECE else 0


def _contracts(program: ir.Program, nest: ir.Nest) -> bool:
    """Whether a nest has many points for each element that it touches, so that what comes from the
    second cache is there in time."""
    return nest.points > _REUSED * max(_elements(program, nest, r, {}) for r in refs(nest))


def _joined_groups(
    program: ir.Program,
    nests: Iterable[ir.Nest],
    fused_with: Mapping[str, tuple[ir.Nest, ...]],
) -> list[ChunkGroup]:
    groups: list[ChunkGroup] = []
    for nest in nests:
        along = fused_with[nest.name]
        joined = groups[-1].joined(program, nest, along) if groups else None
        if joined is not None:
            groups[-1] = joined
            continue
        if groups and 0 < sum(n in along for n in groups[-1].nests) < len(groups[-1].nests):
            # Chunks with nests before them would part those that are fused: on Zen 4, a step of
            # shallow water takes .69 of the time with two speeds in one pass.
            torn = [n for n in groups[-1].nests if n in along]
            before = [n for n in groups.pop().nests if n not in along]
            groups += _joined_groups(program, before, fused_with)
            groups += _joined_groups(program, [*torn, nest], fused_with)
            continue
        results = [d for d in nest.dims if not d.reduction and d.extent > 1]
        shared = tuple((d.name,) for d in results) if not _in_order(nest) else ()
        groups.append(ChunkGroup((nest,), shared, (along,)))
    return groups


def _in_order(nest: ir.Nest) -> bool:
    """Whether no two of its points may run at once."""
    return nest.sequential is not None and nest.running is None


def _keeps_order(nest: ir.Nest, shared: Sequence[tuple[str, ...]]) -> bool:
    """Whether a nest has its shared dimensions in the group's order, and any at all."""
    order = [d.name for d in nest.dims]
    places = [order.index(dims[-1]) for dims in shared]
    return bool(places) and places == sorted(places)


def _near(program: ir.Program, one: ir.Nest, other: ir.Nest) -> bool:
    """Whether memory that one nest touches is worth keeping in a cache for a later one."""
    own, its = ({r.tensor for r in refs(nest)} for nest in (one, other))
    if _contracts(program, one) or _contracts(program, other):
        return one.point.target.tensor in its
    return bool(own & its)


def _bytes(program: ir.Program, nest: ir.Nest, ref: ir.TensorRef, spans: Mapping[str, int]) -> int:
    """What the nest touches by this access, where some dimensions have fewer points."""
    itemsize = program.tensor(ref.tensor).layout.itemsize
    return _elements(program, nest, ref, spans) * itemsize


def _elements(
    program: ir.Program, nest: ir.Nest, ref: ir.TensorRef, spans: Mapping[str, int]
) -> int:
    """As ``_bytes``; where data decide, no more than there are points that can say which."""
    points = {d.name: spans.get(d.name, d.extent) for d in nest.dims}
    found = program.tensor(ref.tensor).layout.footprint(ref, points)
    computed = [s.value for s in ref.computed]
    if not computed:
        return found
    chosen_by = dims_of_values(computed, dims_of_lets(nest.point.lets))
    return min(found, math.prod(points[name] for name in chosen_by | ref.names))
