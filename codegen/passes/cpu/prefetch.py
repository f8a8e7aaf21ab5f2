"""Operands that are asked for before they are read, so that memory works while the core does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import loads, operands, rewritten
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import map_nest, refuse
from tcl.codegen.passes.cpu.stage import overlaps
from tcl.codegen.passes.knobs import OPERANDS, Decoded, KnobSubject, OptionKnobs, Values, padded
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import Size, provably_at_least, provably_equal
from tcl.grammar.syntax.types import INT64

SOON = 192
"""Bytes up to which what is asked for is read next. 128 to 256 were measured to be as good on
Zen 4."""
_DISTANCES = (0, SOON, 1024, 2048, 4096, 16384)
"""Bytes of prefetches that are tried; besides, those to the next block that a loop reads."""
_SUBSCRIPTS = (0, 16, 32, 64, 128)
"""Likewise, of subscripts whose data select what is read."""
_PART = 8
"""The part of the second cache that a block may fill."""


@dataclass(frozen=True, slots=True)
class PrefetchOperands:
    """Marks operands of which every point asks for what it will need later.

    Processors find out by themselves that memory is read in order, but not where the next row or
    chunk begins, nor during a pass over what is in a cache already, nor which rows data will
    select. Runs after all passes that change loops.
    """

    nest: str
    ahead: tuple[int, ...]
    """Per operand, in order of appearance: how many bytes after what is read; where data select the
    element, how many bytes after the subscript that is read. 0 or a missing distance asks for
    nothing."""

    def __call__(self, program: ir.Program) -> ir.Program:
        if not any(self.ahead):
            return program
        nest = program.nest(self.nest)
        refuse("prefetch", self.nest, self._why_not_prefetched(program, nest))
        pairs = zip(operands(nest.point), self.ahead, strict=False)
        panels = {c.source.ref: ir.Prefetch(c.panel, 0) for c in nest.staged}
        found = tuple(
            replace(panels[load.ref], ahead=ahead)
            if load.ref in panels
            else _selected(program, nest, load.ref, ahead)
            or ir.Prefetch(load.ref, ahead, ahead <= SOON and read_once(program, nest, load))
            for load, ahead in pairs
            if ahead
        )
        return map_nest(program, self.nest, lambda n: replace(n, prefetched=found))

    def _why_not_prefetched(self, program: ir.Program, nest: ir.Nest) -> str | None:
        reads, lane = operands(nest.point), nest.lane
        copied = {c.source.ref for c in nest.staged}
        if len(self.ahead) > len(reads):
            return f"it has {len(reads)} operands, but {len(self.ahead)} were given"
        for position, (load, distance) in enumerate(zip(reads, self.ahead, strict=False)):
            if not distance:
                continue
            operand = f"operand {position}, {load.ref.tensor}"
            by = selecting(program, load.ref)
            if by is None:
                return f"{operand}: subscripts that are not inputs in order select the element"
            if lane is not None and any(lane.dim in ref.names for ref in by):
                return f"{operand}: each lane has an element that data select"
            if load.ref in copied:
                if nest.mma or nest.dot_product is not None:
                    return f"{operand}: it is read from a copy"
                continue
            layout = program.tensor(load.ref.tensor).layout
            if lane is not None and layout.step(load.ref, lane.dim) not in (0, 1):
                return f"{operand}: lanes along {lane.dim} are not adjacent in memory"
        return None


def read_once(program: ir.Program, nest: ir.Nest, load: ir.Load) -> bool:
    """Whether a program reads each element of an operand once, in this nest, so that no cache has
    to keep it."""
    readers = [x for n in program.nests for x in operands(n.point)]
    alone = sum(x.ref.tensor == load.ref.tensor for x in readers) == 1
    moving = {d.name for d in nest.dims if not provably_equal(d.extent, 1)}
    return alone and moving <= load.ref.names and not overlaps(nest, load)


def selecting(program: ir.Program, ref: ir.TensorRef) -> tuple[ir.TensorRef, ...] | None:
    """The data that select an element, one for each subscript that is not an index expression; none
    where there is no such subscript. None where a later point's cannot be read yet: they are not an
    input in row-major order with a known size, or there are several for a subscript."""
    found = []
    for subscript in ref.subscripts:
        if isinstance(subscript, ir.Affine):
            continue
        data = [load.ref for load in loads(subscript.value)]
        if len(data) != 1 or not _in_row_major_order(program, data[0]):
            return None
        found.append(data[0])
    return tuple(found)


def _in_row_major_order(program: ir.Program, ref: ir.TensorRef) -> bool:
    tensor = program.tensor(ref.tensor)
    layout = tensor.layout
    plain = ref.is_affine and ref.subscripts
    if tensor.role is not ir.Role.INPUT or not plain or isinstance(layout.elements, Size):
        return False
    ordered = ir.contiguous(layout.type, layout.extents, layout.origin)
    return layout.elements > 0 and layout.strides == ordered.strides


def _selected(
    program: ir.Program, nest: ir.Nest, ref: ir.TensorRef, ahead: int
) -> ir.Prefetch | None:
    """Asks for what the subscript so many bytes later selects, or the last one. It is not checked,
    as nothing is read. None where no data select the element."""
    dims = {d.name: d for d in nest.dims}

    def later(load: ir.Load) -> ir.Load:
        layout = program.tensor(load.ref.tensor).layout
        place = layout.place(load.ref)
        *outer, first = layout.origin
        steps = place.constant // layout.itemsize + max(1, ahead // layout.itemsize)
        terms = tuple((name, c // layout.itemsize) for name, c in place.terms)
        index = ir.Affine(terms, first + steps)
        last = ir.Const(first + layout.elements - 1, INT64)
        position = ir.Binary("min", ir.Position(index, INT64), last, INT64)
        if not provably_at_least(index.interval(dims)[0], first):  # a condition excludes some
            position = ir.Binary("max", position, ir.Const(first, INT64), INT64)
        row = [ir.Affine((), x) for x in outer]
        at = ir.TensorRef(load.ref.tensor, (*row, ir.Computed(position, check=False)))
        return replace(load, ref=at)

    if ref.is_affine:
        return None
    subscripts = tuple(
        s if isinstance(s, ir.Affine) else ir.Computed(rewritten(s.value, later), check=False)
        for s in ref.subscripts
    )
    return ir.Prefetch(replace(ref, subscripts=subscripts), 0)


def next_block(
    nest: ir.Nest, layout: ir.Layout, ref: ir.TensorRef, device: CpuProfile, chosen: NestOptions
) -> int:
    """Bytes from what an iteration of a loop reads to what the next one reads first, if a part of
    the second cache holds such a block, and does not hold all that loops outside of it come back
    to; else 0. Windows of neighbouring iterations may overlap, where reductions, or loops inside of
    one over tiles, go through rows that lie further apart: else all is read in order."""
    if not ref.is_affine:
        return 0
    place = layout.place(ref)
    points = {d.name: d.extent for d in nest.dims}
    size = layout.footprint(ref, points) * layout.itemsize
    for loop in loops_of(nest, chosen):
        dim, whole = loop.dim, size
        distance = abs(place.coefficient(dim.name)) * loop.step
        points[dim.name] = loop.step
        size = layout.footprint(ref, points) * layout.itemsize
        if (not distance and whole > device.l2_bytes) or (loop.tiles and dim.reduction):
            continue
        inside = (d for d in nest.dims if d.reduction or (loop.tiles and points[d.name] > 1))
        apart = any(abs(place.coefficient(d.name)) > distance for d in inside)
        if dim.reduction or distance < (LINE if apart else size):
            return 0
        if size <= device.l2_bytes // _PART:
            return distance
    return 0


class _Loop(NamedTuple):
    """As of ``loops_of``."""

    dim: ir.Dim
    step: int
    """Points of an iteration."""
    tiles: bool
    """It goes over tiles."""


def loops_of(nest: ir.Nest, chosen: NestOptions) -> Iterator[_Loop]:
    """The loops of several iterations that these options make of an untiled nest, the outermost
    first."""
    rank, inside = range(len(nest.dims)), [d.extent for d in nest.dims]
    tile, register = dict(enumerate(chosen.tile or ())), dict(enumerate(chosen.register or ()))
    position, lanes = chosen.vectorize or (-1, 1)
    for k in chosen.order or rank:
        if 0 < tile.get(k, 0) < inside[k]:
            inside[k] = tile[k]
            yield _Loop(nest.dims[k], tile[k], tiles=True)
    for k in chosen.inner_order or rank:
        step = max(1, register.get(k, 1)) * (lanes if k == position else 1)
        if step < inside[k]:
            yield _Loop(nest.dims[k], step, tiles=False)


def prefetch_knobs(on: KnobSubject) -> OptionKnobs:
    """Bytes for each operand that the second cache does not hold; 0 asks for nothing."""
    own = padded(on.default.prefetch, len(operands(on.nest.point)))
    knobs: dict[int, Knob] = {}
    seen: set[str] = set()
    for k, load in enumerate(operands(on.nest.point)):
        first = load.ref.tensor not in seen and len(knobs) < OPERANDS
        worth = own[k] or (first and on.past_second_cache(load.ref.tensor))
        if worth and on.may_have(prefetch=(*[0] * k, 1)):
            seen.add(load.ref.tensor)
            layout = on.program.tensor(load.ref.tensor).layout
            block = next_block(on.nest, layout, load.ref, on.device, on.default)
            tried = _SUBSCRIPTS if selecting(on.program, load.ref) else _DISTANCES
            distances = tuple(sorted({*tried, own[k], block}))
            knobs[k] = Knob(f"{on.nest.name}.prefetch{k}", distances, 0, ordered=True)

    def decode(values: Values, _: Decoded) -> tuple[int, ...]:
        found = [0] * (max(knobs, default=-1) + 1)
        for k, knob in knobs.items():
            found[k] = int(values[knob.name])
        return tuple(found) if any(found) else ()

    def encode(o: NestOptions) -> dict[str, Value]:
        ahead = [*(o.prefetch or ()), *[0] * len(own)]
        return {knob.name: ahead[k] for k, knob in knobs.items()}

    return OptionKnobs("prefetch", tuple(knobs.values()), decode, encode)
