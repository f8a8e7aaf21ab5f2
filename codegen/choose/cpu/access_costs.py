"""What a nest does at one point, for the model of a core: its accesses and its operations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

import numpy as np

from tcl.codegen.choose.cpu.costs import (
    ASKED_CYCLES,
    ASKED_LANE_CYCLES,
    BARRIER_CYCLES,
    COPY_APART_CYCLES,
    COPY_FROM_FAR_FACTOR,
    COPY_IN_ORDER_CYCLES,
    COPY_TRANSPOSED_CYCLES,
    GATHERED_LANE_CYCLES,
    LISTED_LANE_CYCLES,
    OPERATION_CYCLES,
    PANEL_BEHIND_L2_CYCLES,
    PANEL_OTHER_L2_CYCLES,
    PANEL_OWN_L2_CYCLES,
    PANEL_WRITTEN_CYCLES,
    REMAINDER_CYCLES,
    SCALAR_LOAD_CYCLES,
    SELECTED_BYTES,
    SELECTED_LANE_CYCLES,
    SHUFFLE_CYCLES,
    SORTED_APART,
    VECTOR_LOAD_CYCLES,
    WORD_PART_CYCLES,
    WRAPPED_LOAD_CYCLES,
)
from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.devices.features import MASKED_STORES, permuted
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import index_of
from tcl.codegen.loopir.periods import moves_others, wrapped_axes
from tcl.codegen.loopir.quotients import dims_named, index_at, short_rows
from tcl.codegen.loopir.walk import (
    behind_names,
    dims_of_lets,
    dims_of_values,
    values_of,
    walk,
)
from tcl.codegen.passes.cpu.stage import overlaps, why_not_copied
from tcl.common.dataclass import dataclass, replace
from tcl.grammar.sizes.varying import provably_equal, representative

PAGE = 4096
_FEW = 4
"""Points of a register tile along a dimension, as a rule."""
_POINTS = 64
"""Points along a dimension of which is known where quotients and remainders are: two vectors."""


@dataclass(frozen=True, slots=True)
class OperandAccess:
    """An operand or the target, by what moving along each dimension does to its address."""

    tensor: str
    first: int
    """Bytes from the first element of the tensor to the one where all dimensions are 0."""
    strides: Mapping[str, int]
    """Bytes per point, of the dimensions that move it."""
    itemsize: int
    scattered: bool
    """Its place depends on data."""
    checked: frozenset[str] | None
    """The dimensions that decide which data that is, if the place has to be checked."""
    elements: int
    """Those that the nest touches."""
    span: int
    """Bytes from the first to the last one of them, where no data decides."""
    whole: int
    """Bytes of the tensor."""
    stageable: bool
    """It can be copied to a panel without becoming larger."""
    overlapping: bool = False
    """Neighbours are read through a window: a box of the tensor can be copied before all loops."""
    wrapped: Mapping[str, int] = field(default_factory=dict)
    """Of the dimensions along which it lies side by side but for the end of a row, from which it
    goes on to the beginning: the elements of the row."""
    depth: int = 1
    """Elements that are read at once, as a word of a dot product, ..."""
    in_place: bool = True
    """... which lies so in memory, or is put together, ..."""
    turned: bool = False
    """... and whose highest bits are turned where it is read."""
    selecting: frozenset[str] = frozenset()
    """The dimensions that decide which data select it."""
    moving: frozenset[str] = frozenset()
    """The dimensions that decide which element it is."""
    in_row: frozenset[str] = frozenset()
    """The dimensions that decide which element of a row data selects, and nothing else, if
    registers hold the row."""

    moved: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Where quotients and remainders of indices decide its place, and no data: the bytes that the
    first points along each of the dimensions that they name add."""
    movable: int = 0
    """Elements of the longest row that registers hold, as of ``permuted``."""
    total: bool = True
    """Whether it is there whatever a condition says: others are not read in pieces of rows."""
    gathered: bool = False
    """Whether each element is loaded by itself, although ``moved`` tells where it is: several
    subscripts are computed under a condition, outside of which it may not be there."""
    asked: bool = False
    """Whether data decide if it is there."""
    bounded: frozenset[str] = frozenset()
    """The dimensions of indices of which the smaller or larger one decides its place: ``moved``
    tells of points in the middle then, and lanes are moved as where these end."""
    widened: float = 0.0
    """Cycles to make a vector of it wider for each product, which a copy saves."""
    listed: frozenset[str] = frozenset()
    """The dimensions of results along which the elements that data selects are listed in memory one
    after the other, and nothing is computed of that list. (Along a reduction, elements that are
    added one by one need not be put into lanes.)"""
    following: frozenset[str] = frozenset()
    """The dimensions along which it goes on in order from an element that data select, as
    ``X(Start(n) + k)`` along ``k``."""

    def cycles(self, lane: str | None, lanes: int, vectors: int = 1) -> float:
        """To read it once, in all lanes; of so many ``vectors`` side by side, of each."""
        if self.turned:
            return replace(self, turned=False).cycles(lane, lanes, vectors) + OPERATION_CYCLES
        overlap = 0 < abs(self.strides.get(lane or "", 0)) < self.itemsize
        if self.depth > 1 and (overlap or not self.in_place):
            element = replace(self, itemsize=self.itemsize // self.depth, depth=1, in_place=True)
            return self.depth * (element.cycles(lane, lanes) + WORD_PART_CYCLES)
        stride = self.strides.get(lane or "", 0)
        wraps = self.wrapped.get(lane or "", 0) >= lanes
        if lanes > 1 and lane is not None and lane in self.moved:
            bounded = lane in self.bounded
            found = self._from_row(self.moved[lane][: 2 * lanes], lanes, bounded=bounded)
            if vectors > 1 and not (bounded or self.gathered):
                found = min(found, self._of_period(self.moved[lane], lanes, vectors))
            return min(found, WRAPPED_LOAD_CYCLES) if wraps else found
        if lanes > 1 and wraps:
            return WRAPPED_LOAD_CYCLES
        if lanes > 1 and lane in self.in_row:
            return VECTOR_LOAD_CYCLES + SHUFFLE_CYCLES
        if lanes > 1 and lane in self.following:
            return VECTOR_LOAD_CYCLES
        if self.scattered and not self.moved and stride != self.itemsize:
            if lanes == 1 or lane not in self.moving:
                return 2 * SCALAR_LOAD_CYCLES
            if self.selects_for_all(lane, lanes):
                return SELECTED_LANE_CYCLES * lanes
            return lanes * (LISTED_LANE_CYCLES if lane in self.listed else GATHERED_LANE_CYCLES)
        if stride and stride != self.itemsize:
            # A few apart, they are taken out of the vectors that they lie in.
            between = abs(stride) / self.itemsize
            taken = between * (VECTOR_LOAD_CYCLES + SHUFFLE_CYCLES)
            return min(float(lanes), taken) if between <= SORTED_APART else float(lanes)
        if (self.gathered or self.asked) and not stride:  # whether it is there is asked for each
            return SCALAR_LOAD_CYCLES + ASKED_CYCLES
        return VECTOR_LOAD_CYCLES if stride else SCALAR_LOAD_CYCLES

    def _from_row(self, places: Sequence[int], lanes: int, *, bounded: bool) -> float:
        """Cycles to read lanes at such places, and the next ones likewise: at once if they are
        neighbours in memory, which are moved to their lanes."""
        first, following = places[:lanes], places[lanes:]
        apart = {y - x for x, y in pairwise(first)}
        if apart <= {0}:
            return SCALAR_LOAD_CYCLES
        if apart == {self.itemsize} and not bounded:
            return VECTOR_LOAD_CYCLES
        steps = {y - x for x, y in zip(first, following, strict=False)}
        alike = len(steps) <= 1 and not bounded
        rows = short_rows(first, self.itemsize, lanes) or []
        longest = max((count for _, count in rows), default=0)
        if self.gathered or not rows or not (alike or (len(rows) == 1 and longest <= self.movable)):
            return (GATHERED_LANE_CYCLES + self.gathered * ASKED_LANE_CYCLES) * lanes
        found = sum(VECTOR_LOAD_CYCLES * -(-count // lanes) + SHUFFLE_CYCLES for _, count in rows)
        return found if alike else found + REMAINDER_CYCLES

    def _of_period(self, places: Sequence[int], lanes: int, vectors: int) -> float:
        """As ``_from_row``, where lanes of so many vectors take the same of the next ones, as three
        of ``X(i / 3)`` do: where these lie is known then."""
        period = lanes * vectors
        if len({y - x for x, y in zip(places, places[period:], strict=False)}) != 1:
            return math.inf
        rows = [
            short_rows(places[k : k + lanes], self.itemsize, lanes) for k in range(0, period, lanes)
        ]
        if not all(rows):
            return math.inf
        counts = [count for each in rows for _, count in each or ()]
        found = sum(VECTOR_LOAD_CYCLES * -(-n // lanes) + SHUFFLE_CYCLES for n in counts)
        return found / vectors

    def has_period(self, lane: str, lanes: int, vectors: int) -> bool:
        """Whether so many vectors are read in less than one by one."""
        return self.cycles(lane, lanes, vectors) < self.cycles(lane, lanes)

    def shares(self, dim: str) -> bool:
        """Whether points next to each other along a dimension may read the same."""
        if self.moved:
            return dim not in self.strides and len(set(self.moved.get(dim, ())[:_FEW])) < _FEW
        return not self.scattered and dim not in self.strides

    def in_words(self, dim: str, depth: int, in_place: bool, turned: bool = False) -> OperandAccess:
        """The words of dot products along a dimension, each of so many elements. ``in_place``:
        they can be read as they lie in memory, where their elements are neighbours, ``turned`` or
        not."""
        stride = self.strides.get(dim, 0)
        in_place = in_place and stride == self.itemsize
        return replace(
            self,
            strides={**self.strides, **({dim: stride * depth} if stride else {})},
            itemsize=self.itemsize * depth,
            elements=-(-self.elements // depth),
            depth=depth,
            in_place=in_place,
            turned=in_place and turned,
        )

    @property
    def is_made(self) -> bool:
        """Whether words are put together, or turned, unless a panel has them so."""
        return not self.in_place or self.turned

    def copying(self, lane: str | None, near: int) -> float:
        """Cycles to copy an element to a panel; ``near`` are the bytes of the second cache."""
        far = self.elements * self.itemsize > near
        if self.is_made and lane not in self.strides:
            return COPY_IN_ORDER_CYCLES
        if self.strides.get(lane or "") == self.itemsize:
            return COPY_IN_ORDER_CYCLES * COPY_FROM_FAR_FACTOR if far else COPY_IN_ORDER_CYCLES
        neighbours = self.itemsize in self.strides.values()
        return COPY_APART_CYCLES if far or not neighbours else COPY_TRANSPOSED_CYCLES

    def selects_for_all(self, lane: str, lanes: int) -> bool:
        """Whether data select an element of each lane's row alike, and the first cache holds these
        rows, which are a fixed distance apart. What a condition guards is gathered under a mask."""
        apart = 0 if lane in self.selecting else lanes * abs(self.strides.get(lane, 0))
        fits = 0 < apart <= SELECTED_BYTES and self.itemsize >= 4
        return self.scattered and fits and (self.total or self.checked is not None)

    def in_tile(
        self,
        lane: str | None,
        lanes: int,
        sizes: Mapping[str, int],
        masked: bool = True,
        *,
        stored: bool = False,
        halves: float = 1.0,
    ) -> float:
        """As ``cycles``, for each vector of a register tile: where lanes are apart and other points
        of the tile are neighbours in memory, these are transposed, and each lane's row of them is
        read or written, its rest in one piece if that can be ``masked``, else in powers of two.
        ``stored``: what lies between lanes is left as it is, so that lanes a few apart are written
        at once only with all of that. ``halves`` of a vector are shuffled one after the other."""
        cycles = self.cycles(lane, lanes, sizes.get(lane or "", 1))
        row = max((s for d, s in sizes.items() if self.strides.get(d) == self.itemsize), default=1)
        if stored and self.is_apart(lane) and self.strides.get(lane or "") != row * self.itemsize:
            cycles = float(lanes)
        if cycles < lanes or lane is None or self.scattered or not self.total:
            return cycles  # nothing is transposed
        if row == 1:
            return cycles
        size = min(lanes, 1 << (row - 1).bit_length())
        whole, rest = divmod(row, size)
        pieces = whole + (min(rest, 1) if masked else rest.bit_count())
        return min(cycles, halves * math.log2(size) + lanes * pieces / row)

    def between(self, lane: str | None, sizes: Mapping[str, int]) -> int:
        """Elements of a register tile from one lane to the next, if these are all; else 0."""
        apart = self.strides.get(lane or "", 0)
        inside = math.prod(n for d, n in sizes.items() if 0 < self.strides.get(d, 0) < apart)
        return inside if self.is_apart(lane) and inside * self.itemsize == apart else 0

    def transposed(self, dim: str, lane: str | None, lanes: int) -> bool:
        """Whether lanes are far apart, and neighbours along ``dim`` lie side by side."""
        if lane is None or self.scattered or not self.total:
            return False
        if self.strides.get(dim) != self.itemsize:
            return False
        return self.cycles(lane, lanes) >= lanes

    def is_apart(self, lane: str | None) -> bool:
        """Whether lanes move it, and are no neighbours in memory, but at a fixed distance."""
        fixed = self.in_place and not self.scattered
        return fixed and self.strides.get(lane or "", self.itemsize) != self.itemsize

    @property
    def has_gaps(self) -> bool:
        """Whether there is memory between what the nest touches that it does not."""
        return self.span > self.elements * self.itemsize

    def near(self, dim: str) -> bool:
        """Whether points next to each other lie in one page."""
        return abs(self.strides.get(dim, 0)) < PAGE

    def count(self, sizes: Mapping[str, int]) -> int:
        """Different elements, or vectors of them, in a register tile."""
        found = 1
        for dim, size in sizes.items():  # asked for so often that how it is written counts
            if dim in self.moved and not self.gathered:
                found *= len(set(self.moved[dim][:size]))
            elif dim in self.moving:
                found *= size
        return found

    def lines(self, points: Mapping[str, int]) -> int:
        """Different lines of the cache, about, that so many points along dimensions come to."""
        moves: dict[int, int] = {}  # of those that go the same way, one reaches further
        for dim, count in points.items():
            if (stride := abs(self.strides.get(dim, 0))) and count > 1:
                moves[stride] = moves.get(stride, 0) + count - 1
        found, beside, apart, step = 1, self.itemsize, 1, 0
        for stride, more in sorted(moves.items()):
            if stride < LINE or (apart == 1 and stride <= beside):
                beside += stride * more
            elif step and stride % step == 0 and stride // step <= apart:
                apart += stride // step * more
            else:
                found *= apart
                apart, step = more + 1, stride
        return found * apart * -(-beside // LINE)

    def vectors(self, lane: str | None, lanes: int, sizes: Mapping[str, int]) -> int:
        """As ``count``, where vectors along the lanes may be the same ones, as of remainders."""
        if lane is None or lane not in self.moved or sizes.get(lane, 1) * lanes > _POINTS:
            return self.count(sizes)
        places, size = self.moved[lane], sizes.get(lane, 1)
        different = {places[k * lanes : (k + 1) * lanes] for k in range(size)}
        return len(different) * self.count({d: n for d, n in sizes.items() if d != lane})

    def is_window(self, dims: Mapping[str, ir.Dim]) -> bool:
        """Whether several points of its dimensions, which are some of these, read the same."""
        return math.prod(dims[name].extent for name in self.strides) > self.elements

    def moves_together(self, dim: str, row: str) -> bool:
        """Whether points along both dimensions, such as rows of a window and of results, come to
        the same elements."""
        one, other = sorted(self.strides.get(d, 0) for d in (dim, row))
        return one > 0 and other % one == 0

    def count_shared(
        self, lane: str | None, sizes: Mapping[str, int], window: Mapping[str, int]
    ) -> int:
        """As ``count``, of all points of a window together: what several of them come to counts
        once. Vectors that overlap are read one by one. What is one for all lanes is brought into
        them anew for each step that is shorter than a row's, and what data selects for each."""
        if self.scattered:
            return self.count(sizes) * math.prod(window.values())
        left = {dim: extent for dim, extent in window.items() if dim in self.strides}
        if not left:
            return self.count(sizes)
        found = 1
        vector = lane is None or lane in self.strides
        for row, size in sizes.items():
            if row not in self.strides:
                continue
            every, dims = size, left if row != lane else ()
            for dim in dims:
                if vector or self.strides[dim] >= self.strides[row]:
                    shared = self._together((row, size), (dim, left[dim]))
                    if shared < size * left[dim]:
                        every = shared
                        del left[dim]
                        break
            found *= every
        return found * math.prod(left.values())

    def _together(self, *pair: tuple[str, int]) -> int:
        """Different elements of the points along two dimensions."""
        (step, many), (long, few) = sorted((self.strides[dim], size) for dim, size in pair)
        # ``few`` points, that many steps of the others' apart.
        apart = long // step if step > 0 and long % step == 0 else many
        return many + min(apart, many) * (few - 1)


def access_of(
    program: ir.Program, nest: ir.Nest, load: ir.Load, device: CpuProfile | None = None
) -> OperandAccess:
    """``device``: what it is read on, whose instructions for it count then."""
    tensor = program.tensor(load.ref.tensor)
    layout, total = tensor.layout, tensor.layout.place(load.ref)
    scattered = not load.ref.is_affine
    # Where two dimensions move along one axis, a panel would hold elements more than once. What
    # chunks keep for themselves has none.
    copied = why_not_copied(nest, load) is None and not tensor.private
    apart = not overlaps(nest, load)
    elements = layout.footprint(load.ref, {d.name: d.extent for d in nest.dims})
    whole = layout.bytes
    span = layout.itemsize + sum(abs(c) * (nest.dim(d).extent - 1) for d, c in total.terms)
    strides = dict(total.terms)
    computed = load.ref.computed
    selecting = dims_of_values((s.value for s in computed), dims_of_lets(nest.point.lets))
    present = device.present if device is not None else ()
    held = permuted(present, layout.itemsize, layout.selected_row(load.ref))
    return OperandAccess(
        load.ref.tensor, total.constant, strides, layout.itemsize, scattered,
        selecting if any(s.check for s in computed) else None, elements, span, whole,
        stageable=copied and apart, overlapping=copied and not apart,
        wrapped=_wrapped(layout, load.ref) if MASKED_STORES in present else {},
        selecting=selecting,
        moving=selecting.union(strides),
        in_row=selecting - strides.keys() if held else frozenset(),
        moved=_moved(layout, load.ref, program.nest(nest.name), nest.point) if computed else {},
        movable=max(permuted(present, layout.itemsize, 2), default=0),
        total=load.total,
        gathered=not load.total and len(computed) > 1,
        asked=not load.total and _data_decide(nest.point),
        bounded=_bounded(load.ref, nest.point) if computed else frozenset(),
        listed=_listed(program, nest, load.ref),
        following=_following(layout, load.ref, nest.point),
    )  # fmt: skip


def _listed(program: ir.Program, nest: ir.Nest, ref: ir.TensorRef) -> frozenset[str]:
    """As of ``OperandAccess``."""
    values = [s.value.operand if isinstance(s.value, ir.Cast) else s.value for s in ref.computed]
    lists = [value.ref for value in values if isinstance(value, ir.Load) and value.ref.is_affine]
    if len(values) != 1 or not lists:
        return frozenset()
    layout = program.tensor(lists[0].tensor).layout
    steps = dict(layout.place(lists[0]).terms)
    results = (d.name for d in nest.dims if not d.reduction)
    return frozenset(d for d in results if provably_equal(steps.get(d, 0), layout.itemsize))


def _following(layout: ir.Layout, ref: ir.TensorRef, point: ir.Point) -> frozenset[str]:
    """As of ``OperandAccess``: those that are added, and decide nothing else of the place. Where
    places are checked under a condition, each lane's is found by itself."""
    axes = zip(ref.subscripts, layout.strides, strict=True)
    own = [s for s, stride in axes if provably_equal(stride, layout.itemsize)]
    asked = any(isinstance(v, ir.Select) for each in values_of(point) for v in walk(each))
    checked = asked and any(s.check for s in ref.computed)
    if len(own) != 1 or checked or not isinstance(own[0], ir.Computed):
        return frozenset()
    lets, steps, others = {let.name: let.value for let in point.lets}, Counter[str](), list[Any]()
    pending: list[tuple[ir.Value, int]] = [(own[0].value, 1)]
    while pending:
        value, sign = pending.pop()
        index = index_of(value)
        if index is not None:
            steps.update({name: sign * c for name, c in index.terms})
            continue
        match value:
            case ir.Variable(name=name) if name in lets:
                pending.append((lets[name], sign))
            case ir.Cast(operand=operand, type=type_) if (
                type_.is_integral and operand.type.is_integral and type_.bits >= operand.type.bits
            ):
                pending.append((operand, sign))
            case ir.Binary(op="+" | "-" as op, left=left, right=right):
                pending += [(left, sign), (right, sign if op == "+" else -sign)]
            case _:
                others.append(value)
    others += [s.value for s in ref.computed if s is not own[0]]
    elsewhere = dims_of_values(others, dims_of_lets(point.lets)).union(
        dict(layout.place(ref).terms)
    )
    return frozenset(name for name, step in steps.items() if step == 1 and name not in elsewhere)


def _data_decide(point: ir.Point) -> bool:
    """Whether a condition is of what is read."""
    conditions = [v.condition for v in walk(point.value) if isinstance(v, ir.Select)]
    return any(isinstance(v, ir.Load) for condition in conditions for v in walk(condition))


def _bounded(ref: ir.TensorRef, point: ir.Point) -> frozenset[str]:
    """As of ``OperandAccess``."""
    lets = {let.name: let.value for let in point.lets}
    values = behind_names((s.value for s in ref.computed), lets)
    found = [v for v in values if isinstance(v, ir.Binary) and v.op in ("min", "max")]
    return frozenset(dims_of_values(found, dims_of_lets(point.lets)))


def _moved(
    layout: ir.Layout, ref: ir.TensorRef, nest: ir.Nest, point: ir.Point
) -> dict[str, tuple[int, ...]]:
    """As of ``OperandAccess``, of a point of a nest that is no chunk."""
    lets = {let.name: let.value for let in point.lets}
    values = [
        (s.value, representative(stride))
        for s, stride in zip(ref.subscripts, layout.strides, strict=True)
        if isinstance(s, ir.Computed)
    ]
    if any(s.check for s in ref.computed):
        return {}
    named = dims_named((value for value, _ in values), lets)
    if named is None:
        return {}
    start = {d.name: representative(d.first) for d in nest.dims}
    for name in _bounded(ref, point):
        start[name] += representative(nest.dim(name).extent) // 2 // _POINTS * _POINTS
    place, found = layout.place(ref), dict[str, tuple[int, ...]]()
    for dim in named:
        steps = np.arange(_POINTS)
        at = {**start, dim: start[dim] + steps}
        total = steps * representative(place.coefficient(dim))
        for value, stride in values:
            total = total + index_at(value, at, lets) * stride
        found[dim] = tuple((total - total[0]).tolist())
    return found


def _wrapped(layout: ir.Layout, ref: ir.TensorRef) -> dict[str, int]:
    """As of ``OperandAccess``."""
    return {
        name: length
        for axis, index, length in wrapped_axes(ref)
        for name, c in index.terms
        if c in (1, -1)
        and provably_equal(layout.strides[axis], layout.itemsize)
        and not moves_others(ref, axis, (name,))
    }


LARGEST = 1 << 24
"""Elements of a panel that may be kept for the whole call."""


@dataclass(frozen=True, slots=True)
class PanelCost:
    """An operand of a nest with these lanes, in cycles of all threads together."""

    access: OperandAccess
    lane: str | None
    device: CpuProfile

    def cycles_inside(self, copies: int) -> float:
        """Every chunk copies its part; ``copies`` is how many chunks share an element."""
        each = self.access.copying(self.lane, self.device.l2_bytes)
        return copies * self.access.elements * each

    def before(self, copies: int) -> float:
        """All of it is copied before the chunks."""
        if self.access.elements > LARGEST:
            return math.inf
        near = self.access.elements * self.access.itemsize <= self.device.l2_bytes
        once = (
            self.cycles_inside(1) + (0.0 if near else PANEL_WRITTEN_CYCLES) * self.access.elements
        )
        threads = self.device.threads
        if near:
            again = (
                PANEL_OWN_L2_CYCLES
                if threads == 1
                else min(copies, threads) * PANEL_OTHER_L2_CYCLES
            )
        else:
            again = copies * PANEL_BEHIND_L2_CYCLES
        wait = BARRIER_CYCLES * threads if threads > 1 else 0.0
        return once + again * self.access.elements + wait

    def more(self, copies: int) -> float:
        """The cheaper of both, beyond a single copy."""
        return min(self.cycles_inside(copies), self.before(copies)) - self.cycles_inside(1)
