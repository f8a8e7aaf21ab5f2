"""Staging: boxes of operands in shared memory, filled by all threads of a block.

One mechanism serves products, whose boxes are tiles, and convolutions, whose boxes have a halo.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import all_of, parts
from tcl.codegen.loopir.guards import zero_if
from tcl.codegen.loopir.layouts import axis_order
from tcl.codegen.loopir.terms import guard
from tcl.codegen.loopir.walk import loads, operands
from tcl.codegen.passes.cpu.stage import why_not_copied
from tcl.codegen.passes.fuse import groups
from tcl.codegen.passes.gpu.bind import BlockFolds
from tcl.codegen.passes.gpu.panel import Footprint, extent, moving, panel_order
from tcl.common.dataclass import dataclass
from tcl.common.errors import OptionsError
from tcl.grammar.sizes.varying import (
    largest,
    provably,
    provably_at_least,
    provably_divides,
    provably_equal,
    smallest,
)
from tcl.grammar.syntax.types import BOOL, INT32, INT64

VECTOR = 16
"""Bytes that a thread moves at once."""
UNROLLED = 16
"""Copies of a thread that are written out."""


@dataclass(frozen=True, slots=True)
class StageShared:
    """Stages operands of a nest that is bound to threads, as are those that share its blocks."""

    nest: str
    levels: tuple[int, ...]
    """Per operand, in order of appearance: how many loops are outside of the copying, where those
    over chunks count as one and the others that all threads run together follow; -1 or a missing
    level leaves the operand where it is."""
    buffers: int = 1
    """Copies of each panel that is filled in a loop."""

    def __call__(self, program: ir.Program) -> ir.Program:
        if not any(level >= 0 for level in self.levels):
            return program
        nest = program.nest(self.nest)
        loops = len(uniform_loops(nest))
        if reason := why_not_staged(nest, self.levels, nest.thread_count, loops):
            raise OptionsError(reason)
        group = next(group for group in groups(program.nests) if nest in group)
        threads = max(n.thread_count for n in group)
        panels: list[ir.Tensor] = []
        staged: list[ir.Staged] = []
        pairs = zip(operands(nest.point), self.levels, strict=False)
        for position, (load, level) in enumerate(pairs):
            if level < 0:
                continue
            box = _Box(program, nest, load, level, self.buffers if level > 1 else 1)
            panel, one = box.panel(position, threads)
            panels.append(panel)
            staged.append(one)
        changed = replace(nest, staged=tuple(staged))
        nests = tuple(changed if n is nest else n for n in program.nests)
        return ir.Program(program.name, (*program.tensors, *panels), nests)


def uniform_loops(nest: ir.Nest) -> list[ir.Fold]:
    """The loops inside of the chunks that all threads of a block run together."""
    found = []
    for loop in nest.loops:
        if loop.kind is not ir.Kind.PARALLEL:
            if loop.kind is not ir.Kind.SERIAL:
                break
            if not provably_equal(loop.fold.count, 1):
                found.append(loop.fold)
    return found


def why_not_staged(nest: ir.Nest, levels: Sequence[int], threads: int, loops: int) -> str | None:
    """Why operands cannot be staged at these levels in a nest of so many ``threads``, which run so
    many ``loops`` together inside of the chunks; None if they can."""
    reads = operands(nest.point)
    if len(levels) > len(reads):
        many = f"it has {len(reads)} operands, but {len(levels)} were given"
        return f"stage: nest {nest.name}: {many}"
    for position, (load, level) in enumerate(zip(reads, levels, strict=False)):
        if level >= 0 and (reason := why_no_panel(nest, load, level, threads, loops)):
            operand = f"operand {position}, {load.ref.tensor}"
            return f"stage: nest {nest.name}: {operand}: {reason}"
    return None


def why_no_panel(nest: ir.Nest, load: ir.Load, level: int, threads: int, loops: int) -> str | None:
    """As ``why_not_staged``, for one operand, and without what it is of."""
    if reason := why_not_copied(nest, load, partly=True):
        return reason
    if not load.ref.subscripts:
        return "it is a single element"
    if threads <= 1:
        return "the nest has no threads that could share it"
    if level == 0:
        return "blocks share no memory: the least level is 1, inside of the chunks"
    if level > loops + 1:
        return f"there are {loops} loops inside of the chunks, not {level - 1}"
    return None


def without_needless_condition(nest: ir.Nest) -> ir.Nest:
    """A nest that reads its panels, without conditions of its sum that fail only where all that is
    read for a point is zero: so is what is added there."""
    point = nest.point
    condition, value = guard(point.op, point.value)
    if point.op != "+" or condition is None or not all(load.total for load in loads(value)):
        return nest
    within = {staged.panel.tensor: _zero_outside(staged) for staged in nest.staged}

    def needless(limit: _Limit | None) -> bool:
        return zero_if(value, lambda load: limit in within.get(load.ref.tensor, ()))

    left = all_of(part for part in parts(condition) if not needless(_limit(part)))
    if left is not None:
        assert isinstance(point.value, ir.Select)  # as it has a condition
        value = replace(point.value, condition=left)
    return replace(nest, point=replace(point, value=value))


_Axis: TypeAlias = tuple[ir.Affine, ir.Affine, int]
"""The box's first index along an axis, the place in the box, and its extent."""
_Limit: TypeAlias = tuple[str, ir.Affine]
"""A comparison of an index expression with zero."""


def _limit(condition: ir.Value) -> _Limit | None:
    match condition:
        case ir.Binary(op=op, left=ir.Position(index, type_), right=ir.Const(value=bound)) if (
            type_ in (INT32, INT64) and not isinstance(bound, float)
        ):
            return op, index + ir.Affine((), -bound)
    return None


def _zero_outside(staged: ir.Staged) -> set[_Limit | None]:
    """The limits, in dimensions of the nest, outside of any of which a panel is zero."""
    assert staged.fill is not None
    condition, value = guard("+", staged.fill.point.value)
    found = set[_Limit | None]()
    if condition is not None and isinstance(value, ir.Load):
        read = dict(zip(value.ref.subscripts, staged.source.ref.subscripts, strict=True))
        for part in parts(condition):
            assert isinstance(part, ir.Binary) and isinstance(part.left, ir.Position)  # _compare
            index = read.get(part.left.index)
            if isinstance(index, ir.Affine):  # else it is of one dimension of several
                found.add(_limit(replace(part, left=replace(part.left, index=index))))
    return found


@dataclass(frozen=True)
class _Box:
    """The footprint of an operand inside of so many loops."""

    program: ir.Program
    nest: ir.Nest
    load: ir.Load
    level: int
    buffers: int

    @property
    def inside(self) -> ir.Fold | None:
        """The loop in each iteration of which the box is copied; None: the block's whole work."""
        return uniform_loops(self.nest)[self.level - 2] if self.level > 1 else None

    @functools.cached_property
    def outer(self) -> tuple[ir.Fold, ...]:
        """The folds outside of the copying."""
        return (*self.nest.chunks, *uniform_loops(self.nest)[: self.level - 1])

    def axes(self) -> Iterator[_Axis]:
        """Per axis of the tensor: the box's first index, the place in the box, and its extent."""
        outer, inside = self.outer, self.points
        for subscript in self.load.ref.subscripts:
            assert isinstance(subscript, ir.Affine)
            first, least = subscript.constant, 0
            around, within = list[tuple[str, int]](), list[tuple[str, int]]()
            for name, c in subscript.terms:
                first += c * self.nest.dim(name).first
                for fold in self.nest.folds(name):
                    (around if fold in outer else within).append((fold.name, c))
                if c < 0:
                    reach = -c * (inside[name] - 1)
                    first, least = first - reach, least + reach
            base, place = (ir.Affine(tuple(sorted(x))) for x in (around, within))
            yield (
                base + ir.Affine((), first),
                place + ir.Affine((), least),
                extent(subscript, inside),
            )

    @functools.cached_property
    def points(self) -> dict[str, int]:
        """The points that each dimension goes through inside of the loops."""
        outer, nest = self.outer, self.nest
        return {d.name: nest.reach(d.name, outer) for d in nest.dims}

    def panel(self, position: int, threads: int) -> tuple[ir.Tensor, ir.Staged]:
        axes = list(self.axes())
        ref = self.load.ref
        order = panel_order(self.program, self.nest, ref, BlockFolds.of_bound(self.nest))
        name = f"{self.nest.name}.panel{position}"
        places = ir.TensorRef(name, tuple(axes[k][1] for k in order))
        layout = Footprint.from_layout(self.program, self.nest, ref, self.points).layout
        tensor = ir.Tensor(name, ir.Role.SCRATCH, layout, shared=True)
        fill = self._fill(position, axes, order, tensor, threads)
        staged = ir.Staged(self.load, self.load, places, self.inside, "", fill, self.buffers)
        return tensor, staged

    def _fill(
        self,
        position: int,
        axes: list[_Axis],
        order: list[int],
        panel: ir.Tensor,
        threads: int,
    ) -> ir.Nest:
        """The nest that copies: a point for each element of the box. ``order``: the tensor's axes
        as the panel has them."""
        source = self.program.tensor(self.load.ref.tensor).layout
        # Loops over one point are outermost: rows are those of the axis that lies in order.
        target_order, own = order, axis_order(source)
        order, rows_last = (sorted(x, key=lambda k: axes[k][2] > 1) for x in (own, target_order))
        copied = panel if order == rows_last else None
        name = f"{self.nest.name}.fill{position}"
        axes = self._whole_vectors(axes, order, copied)
        dims = {k: ir.Dim(f"{name}.{k}", 0, axes[k][2], False) for k in order}
        at = [axes[k][0] + ir.Affine.variable(dims[k].name) for k in range(len(axes))]
        conditions: list[ir.Value] = []
        width = self._width(axes, order, copied)
        for k in range(len(axes)):
            base, _, extent = axes[k]
            low, high = self._wanted(k)
            least, most = self._interval(base)
            step = width if k == order[-1] else 1
            below, above = (
                not provably_at_least(least, low),
                not provably_at_least(high, most + extent),
            )
            if (below and not provably_divides(step, low - least)) or not provably_divides(
                step, high - least
            ):
                width = 1
            if below:
                conditions.append(_compare(">=", at[k], low))
            if (ending := self._own_end(k, axes[k])) is not None:
                index, end, there = ending
                width = width if provably_divides(step, end - index.constant) else 1
                conditions.append(_compare("<", index + ir.Affine.variable(dims[k].name), end))
                above = above and not provably_at_least(high, there)
            if above:
                conditions.append(_compare("<", at[k], high))
        ref = ir.TensorRef(self.load.ref.tensor, tuple(at))
        value: ir.Value = ir.Load(ref, source.type, total=not conditions)
        if (inside := all_of(conditions)) is not None:
            zero = ir.Const(False if source.type.is_bool else 0, source.type)
            value = ir.Select(inside, value, zero, source.type)
        places = tuple(ir.Affine.variable(dims[k].name) for k in target_order)
        target = ir.TensorRef(panel.name, places)
        point = ir.Point((), target, source.type, "=", False, value)
        shape = [dims[k] for k in order]
        return ir.Nest(name, tuple(shape), tuple(_shared_loops(shape, width, threads)), point)

    def _own_end(self, axis: int, found: _Axis) -> tuple[ir.Affine, int, int] | None:
        """Where one of several dimensions of a subscript, which alone moves in a block, ends inside
        of a box: the first index of the box along it, its end, and the largest index that all of
        them come to before that, plus one. None where it does not: a panel need not be zero."""
        subscript = self.load.ref.subscripts[axis]
        assert isinstance(subscript, ir.Affine)
        name = moving(self.nest, subscript)
        if name is None or len(subscript.terms) == 1:
            return None
        dim, (base, _, extent) = self.nest.dim(name), found
        own = {f.name for f in self.nest.folds(name)}
        index = ir.Affine(tuple(x for x in base.terms if x[0] in own), dim.first)
        others = ir.Affine(tuple(x for x in base.terms if x[0] not in own))
        end = dim.first + dim.extent
        if provably_at_least(end, self._interval(index)[1] + extent):
            return None
        rest = base.constant - dim.first
        return index, end, rest + self._interval(others)[1] + end

    def _whole_vectors(
        self, axes: list[_Axis], order: list[int], panel: ir.Tensor | None
    ) -> list[_Axis]:
        """The axes, with rows that end with a whole vector where these can be copied at once, and
        the panel has room: zeros, or more of the tensor, are there then, and nobody reads them."""
        between = _between_rows(panel)
        if panel is None or not between:
            return axes
        last, size = order[-1], panel.layout.itemsize
        base, place, extent = axes[last]
        (low, high), (least, _) = self._wanted(last), self._interval(base)
        room = between[-1] // size
        for width in (VECTOR // size, VECTOR // size // 2):
            if width < 2 or not all(provably_divides(width, x - least) for x in (low, high)):
                continue
            whole = list(axes)
            whole[last] = base, place, -(-extent // width) * width
            if whole[last][2] <= room and self._width(whole, order, panel) == width:
                return whole
        return axes

    def _wanted(self, axis: int) -> tuple[int, int]:
        """The first index along an axis that is copied, and the one after the last; elsewhere the
        panel is zero."""
        layout = self.program.tensor(self.load.ref.tensor).layout
        low, high = layout.origin[axis], layout.origin[axis] + layout.extents[axis]
        subscript = self.load.ref.subscripts[axis]
        assert isinstance(subscript, ir.Affine)
        if len(subscript.terms) == 1:
            # No further than the dimension goes: sums count on zeros beyond it.
            (first, last) = subscript.interval({d.name: d for d in self.nest.dims})
            low, high = largest(low, first), smallest(high, last + 1)
        return low, high

    def _interval(self, base: ir.Affine) -> tuple[int, int]:
        """The smallest and the largest value of the first index of the box."""
        reach = ((f.name, f.step * (f.count - 1) + 1) for f in self.outer)
        return base.interval({name: ir.Dim(name, 0, points, False) for name, points in reach})

    def _width(
        self,
        axes: list[_Axis],
        order: list[int],
        panel: ir.Tensor | None,
    ) -> int:
        """Elements that can be copied at once: in both memories they follow each other, and begin
        at multiples of their size. Without a ``panel``: that can be read at once, as it is
        transposed."""
        source = self.program.tensor(self.load.ref.tensor).layout
        last, size = order[-1] if order else -1, source.itemsize
        if last < 0 or not provably_equal(source.strides[last], size) or source.base < size:
            return 1
        steps = _between_rows(panel)
        steps += [source.strides[k] for k in order[:-1] if axes[k][2] > 1]
        for k in order:
            base = axes[k][0] + ir.Affine((), -source.origin[k])
            terms = (c * self._step(name) for name, c in base.terms)
            steps += [x * source.strides[k] for x in (base.constant, *terms)]
        width = VECTOR // size
        while width > 1 and (
            axes[last][2] % width
            or source.base % (width * size)
            or not all(provably_divides(width * size, s) for s in steps)
        ):
            width //= 2
        return max(1, width)

    def _step(self, name: str) -> int:
        return next(f.step for f in self.outer if f.name == name)


def _between_rows(panel: ir.Tensor | None) -> list[int]:
    """Bytes from one index to the next one of the axes of a panel, but for its rows."""
    if panel is None:
        return []
    pairs = zip(panel.layout.strides, panel.layout.extents, strict=True)
    return [step for step, extent in pairs if extent > 1][:-1]


def _compare(op: str, index: ir.Affine, bound: int) -> ir.Value:
    # Indices of a box lie near those of its tensor.
    type_ = INT32 if provably(lambda: abs(bound) < 1 << 30) else INT64
    return ir.Binary(op, ir.Position(index, type_), ir.Const(bound, type_), BOOL)


def _shared_loops(dims: list[ir.Dim], width: int, threads: int) -> Iterator[ir.Loop]:
    """Loops over a box whose elements the threads of a block divide among themselves, in as few
    steps as can be."""
    counts = [d.extent for d in dims]
    if counts:
        counts[-1] //= width
    shares = _threads_per_axis(tuple(counts), threads)
    steps = [width if k == len(dims) - 1 else 1 for k in range(len(dims))]
    for dim, share, step in zip(dims, shares, steps, strict=True):
        if share > 1:
            yield ir.Loop(ir.Fold(dim.name, "thread", step, share), ir.Kind.THREAD)
    folds = [
        ir.Fold(dim.name, "point", step * share, -(-count // share))
        for dim, count, share, step in zip(dims, counts, shares, steps, strict=True)
    ]
    for k, fold in enumerate(folds):
        inside = math.prod(f.count for f in folds[k:])
        yield ir.Loop(fold, ir.Kind.UNROLL if inside <= UNROLLED else ir.Kind.SERIAL)
    if width > 1:
        yield ir.Loop(ir.Fold(dims[-1].name, "lane", 1, width), ir.Kind.VECTOR)


@functools.lru_cache(maxsize=1024)
def _threads_per_axis(counts: tuple[int, ...], threads: int) -> tuple[int, ...]:
    """Threads per axis: the fewest steps, and of these with the most threads along the last axes,
    where memory is contiguous."""

    @functools.cache
    def best(axis: int, left: int) -> tuple[int, tuple[int, ...]]:
        """Steps and threads of the axes up to this one, which share so many threads."""
        if axis < 0:
            return 1, ()
        found: tuple[int, tuple[int, ...]] | None = None
        for share in _shares(counts[axis], left):  # the largest first
            steps, before = best(axis - 1, left // share)
            steps *= -(-counts[axis] // share)
            if found is None or steps < found[0]:
                found = steps, (*before, share)
        assert found is not None  # one thread is always there
        return found

    return best(len(counts) - 1, threads)[1]


def _shares(count: int, most: int) -> list[int]:
    """The fewest threads for each number of steps that so many elements can take."""
    steps = {-(-count // share) for share in range(1, min(count, most) + 1)}
    return sorted({-(-count // s) for s in steps}, reverse=True)
