"""What the presets choose for a nest. They only ever choose what the nest can have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import zip_longest

from tcl.codegen.choose.cpu.access_costs import LARGEST, PanelCost, access_of
from tcl.codegen.choose.cpu.chunk_groups import grouping
from tcl.codegen.choose.cpu.heuristics import heuristic, panels_within
from tcl.codegen.choose.cpu.lanes import lanes_of, lanes_within
from tcl.codegen.choose.cpu.matrix_unit import matrix_options
from tcl.codegen.choose.cpu.operation_costs import calls_functions
from tcl.codegen.choose.cpu.prefetch_distances import (
    columns_ahead,
    not_by_itself,
    prefetching,
    rows_ahead,
    selected_ahead,
    soon,
    tiles_ahead,
    windows_ahead,
)
from tcl.codegen.choose.cpu.thread_worth import worth_sharing
from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.nest_options import OPTIONS, PLAIN, NestOptions
from tcl.codegen.passes.cpu.cut import cut_wholly
from tcl.codegen.passes.cpu.stage import made_with
from tcl.codegen.passes.fuse import refs
from tcl.codegen.passes.fusion.groups import PerResult, fusion_groups
from tcl.codegen.passes.split import parts_of
from tcl.codegen.passes.vectorize import outputs
from tcl.common.dataclass import dataclass, replace
from tcl.grammar.sizes.varying import Size, provably_divides, representative

MODELLED = ("mlp", "conv")
"""The presets that go by a model of the device."""
_HIDING = 4
_LONG_ROW = 6
"""Lines of a row that shares its ends with its neighbours, from which on stores past the caches
pay."""
_ROW_LINES = 64
"""Lines of a row of results from which on beginning at a boundary was measured to pay."""
_ROW_HALVES = 96
"""Likewise, vectors of half a line. On Zen 3, polynomials of rows of 1000 floats and more take .80
to .95 of the time so in the second cache and behind it, sums of neighbours .87 to 1.01; rows of 20
and of 41 vectors 1.05 to 1.15 and 1.03. What calls functions waits for these: exponentials of sums
take 1.1 times as long, GELU 1.14."""


@dataclass(frozen=True, slots=True)
class CpuPreset:
    """What a preset chooses for the nests of a program where nothing else was chosen."""

    name: str
    device: CpuProfile
    chunks: Mapping[str, NestOptions]
    """Chunks, and whether these are shared, by nest; nothing for nests that are left whole."""
    ahead: Mapping[str, tuple[int, ...]]
    """What is prefetched how far ahead, for these chunks, by nest."""
    others: Mapping[str, int]
    """Of nests that get other lanes and register tiles than the best by the model, as of
    ``heuristic``, by name."""

    @staticmethod
    def named(
        name: str,
        program: ir.Program,
        device: CpuProfile,
        others: Mapping[str, int],
    ) -> CpuPreset:
        """For a program without any loops."""
        if name not in MODELLED:
            return CpuPreset(name, device, {}, {}, {})
        chunks = grouping(program, device)
        return CpuPreset(name, device, chunks, prefetching(program, chunks, device), others)

    @property
    def reason(self) -> str:
        """Why something was chosen."""
        return f"preset {self.name}"

    def leading(
        self,
        program: ir.Program,
        nest: ir.Nest,
        fused: PerResult,
        planned: Mapping[str, ir.Nest],
    ) -> NestOptions:
        """Choices for an untiled nest that has its chunks. ``planned``: as of ``heuristic``."""
        if nest.point.scatters:
            return PLAIN
        one = _one_chunk(nest) if nest.chunks else nest
        if self.name == "naive":
            chosen = PLAIN
        elif nest.sequential:
            chosen = _running_results(program, one, self.device)
        elif self.name in MODELLED:
            chosen = matrix_options(program, one, self.device) or heuristic(
                program, one, self.device, fused, planned, self.others.get(nest.name, 0)
            )
        else:
            chosen = _pointwise(program, one, self.device)
        if nest.chunks:
            chosen = replace(chosen, stage=_levels(program, nest, chosen, self.device))
        if self.name not in MODELLED:
            return chosen
        lines = _writes_lines(program, one, chosen)
        in_order = lines or _read_in_order(program, one, chosen)
        stream = _not_kept(program, nest, self.device) and _fills_lines(
            program, one, chosen, peels=in_order and _can_begin_anywhere(nest, chosen)
        )
        ahead = () if cut_wholly(nest) else self._ahead(program, nest, chosen, stream)
        ahead = selected_ahead(program, nest, ahead, chosen, self.device)
        columns = columns_ahead(program, one, chosen, self.device)
        ahead = tuple(max(pair) for pair in zip_longest(ahead, columns, fillvalue=0))
        wide = _wide_stores(program, one, chosen, self.device)
        peel = in_order and (stream or (wide and not _rows_end(program, one, chosen)))
        return replace(chosen, stream=stream, prefetch=ahead, peel=peel)

    def _ahead(
        self, program: ir.Program, nest: ir.Nest, chosen: NestOptions, stream: bool
    ) -> tuple[int, ...]:
        """Bytes ahead, per operand, of a nest that goes through all of its points."""
        ahead = self.ahead.get(nest.name, ())
        if self.device.reads_ahead and not stream:
            ahead = not_by_itself(program, nest, ahead, chosen, self.device)
            ahead = ahead or soon(program, nest, chosen, self.device)
        ahead = ahead or rows_ahead(program, nest, chosen, self.device)
        ahead = ahead or tiles_ahead(program, nest, chosen, self.device)
        return ahead or windows_ahead(program, nest, chosen, self.device)

    def following(
        self, program: ir.Program, led: NestOptions, leader: ir.Nest, nest: ir.Nest
    ) -> NestOptions:
        """Choices for an untiled nest that is fused with another one, which has the options
        ``led``: the same loops, or those over its results if it has no others."""
        same = {key: getattr(led, key) for key, option in OPTIONS.items() if option.followed}
        if len(nest.dims) < len(leader.dims):
            same = NestOptions(**same).of_first(len(nest.dims)).made()
        found = replace(PLAIN, **same)
        if self.name not in MODELLED:
            return found
        if led.stage and len(nest.dims) == len(leader.dims):
            one = _one_chunk(nest) if nest.chunks else nest
            found = replace(found, stage=panels_within(program, one, self.device, found))
            if nest.chunks:
                found = replace(found, stage=_levels(program, nest, found, self.device))
        one = _one_chunk(nest) if nest.chunks else nest
        peels = bool(led.peel) and _can_begin_anywhere(leader, led)
        stream = _not_kept(program, nest, self.device) and _fills_lines(program, one, found, peels)
        return replace(found, stream=stream)


def parts_for_threads(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> tuple[int, ...]:
    """Parts of the longest reduction of a nest, as many as there are threads, where it has one
    result, so that threads have nothing else to share, and takes long enough to wake them."""
    reductions = [k for k, d in enumerate(nest.dims) if d.reduction]
    fixed = not any(isinstance(d.extent, Size) for d in nest.dims)
    if not (fixed and reductions and nest.sequential is None and device.threads > 1):
        return ()
    results = math.prod(d.extent for d in outputs(nest))
    if results != 1 or not worth_sharing(program, nest, device):
        return ()
    longest = max(reductions, key=lambda k: nest.dims[k].extent)
    parts = parts_of(nest.dims[longest].extent, device.threads, 1)
    return (*[0] * longest, parts) if parts > 1 else ()


def _levels(
    program: ir.Program, nest: ir.Nest, inside: NestOptions, device: CpuProfile
) -> tuple[int, ...]:
    """Levels of staging for one chunk as levels for all: an operand that many chunks would copy
    is copied once, before them, if that takes less."""
    found = []
    made = made_with(program.nests, nest)
    position, lanes = inside.vectorize or (-1, 1)
    lane = nest.dims[position].name if lanes > 1 else None
    for level, load in zip(inside.stage or (), operands(nest.point), strict=False):
        dims = load.ref.names
        copies = math.prod(f.count for f in nest.chunks if f.dim not in dims)
        access = access_of(program, nest, load)
        cost = PanelCost(access, lane, device)
        if level < 0 or load.ref.tensor in made:
            found.append(-1 if level < 0 or access.overlapping else level + 1)
        elif access.overlapping:
            found.append(0 if access.elements <= LARGEST else -1)
        else:
            found.append(0 if cost.before(copies) < cost.cycles_inside(copies) else level + 1)
    return tuple(found)


def _not_kept(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> bool:
    """Whether caches would not keep what the nest writes beside all that it reads, nor is it read
    but by nests fused with it. On Zen 4 with 32 MB for several cores, results of 2 to 6 MB past the
    caches take .74 to .88 of the time where a nest touches 16 MB or more with two to five operands,
    .87 to 1.03 from 8 to 12 MB, 1.7 times as long with one operand of 4 MB, and 1.4 to 1.8 times
    where 2 to 6 MB are selected rows of a large table or a part of a matrix. A momentum that the
    next result is made of takes .6 (5 arrays of 4 MB)."""
    target = program.tensor(nest.point.target.tensor)
    least = 2 * device.streamed_from
    if target.layout.bytes < least // 8 or _touched(program, nest) < least:
        return False
    fused = next(group for group in fusion_groups(program.nests) if nest.name in group.names)
    # What the first nest replaces, it has to read.
    readers = (n for n in program.nests if n.name not in fused.names - {fused.leader.name})
    return all(load.ref.tensor != target.name for n in readers for load in operands(n.point))


def _can_begin_anywhere(nest: ir.Nest, chosen: NestOptions) -> bool:
    """Whether loops along the lanes can begin on a boundary. Lanes of reductions have registers of
    their own, and copies begin at the first point."""
    return not nest.reduces and all(level < 0 for level in chosen.stage or ())


def _fills_lines(program: ir.Program, nest: ir.Nest, chosen: NestOptions, peels: bool) -> bool:
    """Whether results are written one whole line after the other, but for the ends of long rows.

    Processors collect what goes past the caches in a few buffers, and write a part of a line to
    memory where they need one for another line, or where the line is read. On a virtual machine
    of a Zen 3, images whose last vectors overlap take 20 times as long so and more, rows in turns
    of half a line each 3 to 7 times as long, convolutions 2 times. Where each row shares its ends
    with its neighbours, rows of 104 bytes take 2 to 3 times as long, 176 bytes 1.2 to 2, 400 bytes
    .7 to 1, and 800 bytes .6. ``peels``: whether loops begin on boundaries."""
    position, lanes = chosen.vectorize or (-1, 1)
    if position < 0:
        return False
    layout, lane = program.tensor(nest.point.target.tensor).layout, nest.dims[position]
    sizes = {d.name: max(1, n) for d, n in zip(nest.dims, chosen.register or (), strict=False)}
    vectors = sizes.pop(lane.name, 1)
    length = representative(lane.extent)
    alone = math.prod(sizes.values()) == 1
    if peels:
        alone = alone or lanes * layout.itemsize >= LINE
        return alone and length * layout.itemsize >= _LONG_ROW * LINE
    written = vectors * lanes * layout.itemsize
    return alone and written % LINE == 0 and length % (vectors * lanes) == 0


def _touched(program: ir.Program, nest: ir.Nest) -> int:
    """Bytes of what a nest reads and writes; of rows that data select, of those alone."""
    read = dict[str, int]()
    for load in operands(nest.point):
        access = access_of(program, nest, load)
        elements = min(representative(access.elements), representative(nest.points))
        size = elements * access.itemsize
        read[access.tensor] = max(size, read.get(access.tensor, 0))
    target = program.tensor(nest.point.target.tensor)
    return representative(target.layout.bytes) + sum(
        size for name, size in read.items() if name != target.name
    )


def _wide_stores(
    program: ir.Program, nest: ir.Nest, chosen: NestOptions, device: CpuProfile
) -> bool:
    """Whether vectors as long as lines are stored behind the first cache: each of them would lie in
    two lines where the array does not begin on a boundary; or long rows of vectors half as long, of
    which every other one would."""
    target = program.tensor(nest.point.target.tensor).layout
    position, lanes = chosen.vectorize or (-1, 1)
    written = target.bytes
    rows = nest.dims[position].extent if nest.dims else 0
    vector = lanes * target.itemsize
    if vector < LINE and calls_functions(nest.point):
        return False
    least = device.peeled_vectors if vector >= LINE else _ROW_HALVES
    return 2 * vector >= LINE and written > device.l1_bytes and rows >= least * lanes


def _read_in_order(program: ir.Program, nest: ir.Nest, chosen: NestOptions) -> bool:
    """Whether no vector is put together from elements that lie apart, as where an image is
    transposed: then the pieces of rows that are left before a boundary take longer than what is
    gained by starting there."""
    position, lanes = chosen.vectorize or (-1, 1)
    if lanes == 1:
        return True
    lane = nest.dims[position].name
    accesses = [access_of(program, nest, load) for load in operands(nest.point)]
    if any(a.scattered and lane in a.moving for a in accesses):
        return False
    return all(abs(a.strides.get(lane, 0)) in (0, a.itemsize) for a in accesses)


def _rows_end(program: ir.Program, nest: ir.Nest, chosen: NestOptions) -> bool:
    """Whether vectors of an operand are pieces of rows if the first one is, as quotients and
    remainders of an index tell, and some go over the ends of rows if loops begin elsewhere. On
    Zen 4, frames of 256 numbers that are divided by a row take .66 of the time if loops begin with
    a row."""
    position, lanes = chosen.vectorize or (-1, 1)
    lane = nest.dims[position].name
    accesses = (access_of(program, nest, load) for load in operands(nest.point))
    rows = ((a.itemsize, a.moved[lane][:lanes]) for a in accesses if lane in a.moved)
    return any(places == tuple(range(0, step * len(places), step)) for step, places in rows)


def _writes_lines(program: ir.Program, nest: ir.Nest, chosen: NestOptions) -> bool:
    """Whether loops can begin where each vector of results is a line, and rows have many: what is
    transposed then goes past the caches in whole lines. On Zen 4, images of 16 to 32 MB take .43
    to .67 of the time so, and 4096 x 1024 floats that stay in the caches .94."""
    position, lanes = chosen.vectorize or (-1, 1)
    layout = program.tensor(nest.point.target.tensor).layout
    if lanes * layout.itemsize != LINE or nest.dims[position].extent < _ROW_LINES * lanes:
        return False
    lane, steps = nest.dims[position].name, dict(layout.place(nest.point.target).terms)
    in_order = steps.pop(lane, 0) == layout.itemsize
    return in_order and all(provably_divides(LINE, step) for step in steps.values())


def _one_chunk(nest: ir.Nest) -> ir.Nest:
    """What the nest is for one of its chunks."""
    sizes = {f.dim: f.step for f in nest.chunks}
    dims = tuple(replace(d, extent=sizes.get(d.name, d.extent)) for d in nest.dims)
    loops = (x for x in nest.loops if x.kind is not ir.Kind.PARALLEL)
    return replace(nest, dims=dims, joined=False).with_loops(loops)


def _pointwise(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> NestOptions:
    """Lanes alone."""
    position, lanes = _vectorize(program, nest, device)
    chosen = NestOptions(vectorize=(position, lanes)).over(PLAIN)
    if lanes == lanes_of(nest.point, device) and nest.reduces:
        # A reduction waits for its accumulator: several registers of lanes hide that.
        chosen = replace(chosen, register=(*[0] * position, _HIDING))
    return chosen


def _vectorize(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> tuple[int, int]:
    """The output dimension along which most accesses are contiguous, at the host's width."""
    best, best_score = -1, 0
    for position, dim in enumerate(outputs(nest)):
        if dim.extent < 2:
            continue
        # 1 for a contiguous access, 0 for one that stays put, less for one that has to gather.
        steps = (program.tensor(ref.tensor).layout.step(ref, dim.name) for ref in refs(nest))
        score = sum(step if step in (0, 1) else -2 for step in steps)
        if score >= best_score:
            best, best_score = position, score
    if best < 0:
        return -1, 1
    return best, min(64, lanes_within(nest.dims[best].extent, nest.point, device))


def _running_results(program: ir.Program, nest: ir.Nest, device: CpuProfile) -> NestOptions:
    """Lanes for an untiled nest whose points run in order: along the dimension whose elements lie
    next to each other in what it writes, be it that along which they run."""
    if nest.running is None:
        return PLAIN
    layout = program.tensor(nest.point.target.tensor).layout
    reduced = [d.name for d in nest.dims if d.reduction]
    for k, dim in enumerate(nest.dims):
        if abs(layout.step(nest.point.target, dim.name)) != 1 or (dim.name in reduced[1:]):
            continue
        along = dim.name == nest.running
        if along and len(reduced) > 1:
            continue
        lanes = lanes_within(dim.extent, nest.point, device)
        if lanes < 2:
            continue
        vectors = min(_running_vectors(nest, lanes, device), dim.extent // lanes)
        register = () if along or vectors < 2 else (*[0] * k, vectors)
        return replace(PLAIN, vectorize=(k, lanes), register=register)
    return PLAIN


def _running_vectors(nest: ir.Nest, lanes: int, device: CpuProfile) -> int:
    """Vectors of running reductions side by side: as many as half of the registers hold, as pieces
    of rows that are on pages of their own are better read long. On Cascade Lake, sums of 500 rows
    of 3735 and of 459 of 2704 numbers take .5 and .85 of the time with 16 vectors, compared with
    8."""
    each = -(-lanes * nest.point.type.compute.itemsize * 8 // device.vector_bits)
    return max(1, device.vector_registers // 2 // each)
