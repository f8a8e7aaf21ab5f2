"""Staging: operands copied into panels that the inner loops read from front to back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from tcl.codegen.devices.cpu import LINE
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.layouts import axis_order, packed
from tcl.codegen.loopir.terms import dot_factors
from tcl.codegen.loopir.walk import children, loads, operands, replaced, values_of, walk
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import refuse
from tcl.codegen.passes.knobs import OPERANDS, Decoded, KnobSubject, OptionKnobs, Values, padded
from tcl.codegen.passes.vectorize import vectorized
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import Size, representative
from tcl.grammar.syntax.types import ScalarType

MAX_BYTES = 1 << 28
_DOT_BYTES = 2
"""Of the widest factors of dot products."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Marks operands to be copied, at a level of the loops over tiles.

    A panel has an axis for each loop inside of its level over a dimension of the operand, in the
    order of the loops. Runs after all passes that change loops.
    """

    nest: str
    levels: tuple[int, ...]
    """Per operand, in order of appearance: how many loops are outside of the copying, where those
    over chunks count as one and those over tiles follow; -1 or a missing level leaves the
    operand where it is."""

    def __call__(self, program: ir.Program) -> ir.Program:
        if not any(level >= 0 for level in self.levels):
            return program
        nest = program.nest(self.nest)
        made = made_with(program.nests, nest)
        refuse("stage", self.nest, why_not_staged(nest, self.levels, made))
        panels: list[ir.Tensor] = []
        staged: list[ir.Staged] = []
        for position, load in enumerate(operands(nest.point)[: len(self.levels)]):
            if self.levels[position] >= 0:
                inside = levels_of(nest)[self.levels[position]]
                name = f"{nest.name}.panel{position}"
                if inside is None and overlaps(nest, load):
                    panel, copied = _box(program, nest, load, name)
                    panels.append(panel)
                    staged.append(copied)
                    continue
                value = copied_of(nest, load)
                type_ = _panel_type(nest, value)
                axes, size = packed(_axes(nest, load, inside))
                extents = (size + LINE // type_.itemsize,)
                layout = replace(ir.contiguous(type_, extents, (0,)), base=LINE)
                private = inside is not None and bool(nest.chunks)
                panel = ir.Tensor(name, ir.Role.SCRATCH, layout, private)
                panels.append(panel)
                at = ir.TensorRef(panel.name, (axes,))
                staged.append(ir.Staged(load, value, at, inside, _across(program, nest, load)))
        changed = replace(nest, staged=tuple(staged))
        nests = tuple(changed if n is nest else n for n in program.nests)
        return ir.Program(program.name, (*program.tensors, *panels), nests)


def why_not_staged(nest: ir.Nest, levels: tuple[int, ...], made: Set[str]) -> str | None:
    """Why operands of a nest with all of its loops cannot be copied at these levels, or None if
    they can. ``made``: the tensors that nests whose chunks it shares write before it."""
    reads = operands(nest.point)
    if len(levels) > len(reads):
        return f"it has {len(reads)} operands, but {len(levels)} were given"
    places = levels_of(nest)
    for position, (load, level) in enumerate(zip(reads, levels, strict=False)):
        if level < 0:
            continue
        operand = f"operand {position}, {load.ref.tensor}"
        if reason := why_not_copied(nest, load):
            return f"{operand}: {reason}"
        if level >= len(places):
            return (
                f"{operand}: there are {len(places) - 1} loops over chunks and tiles, not {level}"
            )
        if level == 0 and load.ref.tensor in made:
            return f"{operand}: a nest that shares its chunks writes it"
        boxed = places[level] is None and overlaps(nest, load)
        size = elements_of(nest, load) if boxed else packed(_axes(nest, load, places[level]))[1]
        # What is made of an operand is no wider than what is computed with, or dot products take:
        # most of the time it need not be known.
        if (
            representative(size) * max(_panel_type(nest, load).itemsize, _DOT_BYTES) + LINE
            > MAX_BYTES
            and representative(size) * _panel_type(nest, copied_of(nest, load)).itemsize + LINE
            > MAX_BYTES
        ):
            return f"{operand}: its panel would need {size} elements"
    return None


def overlaps(nest: ir.Nest, load: ir.Load) -> bool:
    """Whether an operand that can be copied is read through a window: several dimensions move along
    one of its axes. A copy with an axis for each of these would hold most elements several times,
    so that before all loops a box of the tensor is copied instead."""
    return nest.dot_product is None and any(len(s.terms) > 1 for s in load.ref.affine)


def elements_of(nest: ir.Nest, load: ir.Load) -> int:
    """Elements of the box of a tensor that an operand touches, whose place no data decides."""
    return math.prod(last - first + 1 for first, last in _intervals(nest, load))


def _intervals(nest: ir.Nest, load: ir.Load) -> list[tuple[int, int]]:
    """The first and the last index of an operand along each axis of its tensor."""
    dims = {d.name: d for d in nest.dims}
    return [s.interval(dims) for s in load.ref.affine]


def _box(
    program: ir.Program, nest: ir.Nest, load: ir.Load, name: str
) -> tuple[ir.Tensor, ir.Staged]:
    """A panel with the axes of the tensor, in the order in which these lie in memory, and its copy:
    all that the nest reads, once."""
    value = copied_of(nest, load)
    type_ = _panel_type(nest, value)
    order = axis_order(program.tensor(load.ref.tensor).layout)
    shape = [
        ir.Dim(f"{name}.{axis}", first, last - first + 1, False)
        for axis, (first, last) in enumerate(_intervals(nest, load))
    ]
    dims = tuple(shape[k] for k in order)
    layout = ir.contiguous(type_, (d.extent for d in dims), (d.first for d in dims))
    panel = ir.Tensor(name, ir.Role.SCRATCH, replace(layout, base=LINE))

    def at(tensor: str, axes: Iterable[ir.Dim]) -> ir.TensorRef:
        return ir.TensorRef(tensor, tuple(ir.Affine.variable(d.name) for d in axes))

    element = replace(load, ref=at(load.ref.tensor, shape))
    point = ir.Point((), at(name, dims), type_, "=", False, replaced(value, load, element))
    # The longest loops are outside, so that threads can share them.
    moving = sorted(dims, key=lambda d: d.extent == 1)
    loops = (ir.Loop(ir.Fold(d.name, "point", 1, d.extent)) for d in moving)
    fill = ir.Nest(name, dims, tuple(loops), point)
    if nest.lane is not None and dims[-1].extent >= nest.lane.count:
        fill = vectorized(fill, len(dims) - 1, nest.lane.count)
    place = ir.TensorRef(name, tuple(load.ref.subscripts[k] for k in order))
    return panel, ir.Staged(load, value, place, None, fill=fill)


def why_not_copied(nest: ir.Nest, load: ir.Load, *, partly: bool = False) -> str | None:
    """Why a nest, whatever its loops, cannot read an operand from a copy, or None if it can.
    ``partly``: who copies leaves out what is not there."""
    if nest.sequential:
        return nest.sequential
    if not load.ref.is_affine:
        return "data select the element that is read"
    if not load.total and not partly:
        return "it is read only under a condition, and may be out of range"
    if load.ref.tensor == nest.point.target.tensor:
        return "the nest writes it"
    if nest.points == 0:
        return "there is nothing to read"
    return None


def levels_of(nest: ir.Nest) -> list[ir.Fold | None]:
    """The loops in which operands may be copied, by level; None stands for before all of them."""
    tiles = [x.fold for x in nest.loops if x.fold.level == "tile"]
    return [None, *nest.chunks[-1:], *tiles]


def made_with(nests: Sequence[ir.Nest], nest: ir.Nest) -> set[str]:
    """The tensors written by those of the nests before this one that share its chunks."""
    position = nests.index(nest)
    found: set[str] = set()
    while nests[position].joined:
        position -= 1
        found.add(nests[position].point.target.tensor)
    return found


def copied_of(nest: ir.Nest, load: ir.Load) -> ir.Value:
    """What is copied of an operand: what dot products take, where that is made of it alone; else
    what the point makes of it."""
    if nest.dot_product is not None:
        for factor in dot_factors(nest.point.value):
            if set(loads(factor)) == {load} and not _moves(factor):
                return factor
    return made_of(nest.point, load)


def made_of(point: ir.Point, load: ir.Load) -> ir.Value:
    """The largest value that a point makes of an operand alone, wherever it reads it: what is
    copied, so that what reads the copy need not compute it. It is no wider than the operand. Of
    ``exp(x) * (1 - exp(x))``, that is ``exp(x)``."""
    found: list[ir.Value] = []
    for value in values_of(point):
        if _maker(value, load, found) == _OPERAND:
            found.append(value)
    value = next((v for v in found if all(v in walk(other) for other in found)), load)
    narrow = value.type.compute.bits <= load.type.compute.bits
    return value if narrow and not value.type.is_bool else load


_NOTHING, _OPERAND, _MORE = range(3)


def _maker(value: ir.Value, load: ir.Load, found: list[ir.Value]) -> int:
    """What a value is made of. If that is more than the operand, then the parts that are made of it
    alone are ``found``."""
    match value:
        case ir.Load(ref=ref):
            return _OPERAND if ref == load.ref else _MORE
        case ir.Const():
            return _NOTHING
        case ir.Binary(op="/" | "%", type=type_) if not type_.is_float:
            own = _MORE  # a condition may keep it from being computed
        case ir.Position() | ir.Variable() | ir.Combined():
            own = _MORE
        case _:
            own = _NOTHING
    parts = children(value)
    known = [_maker(part, load, found) for part in parts]
    own = max(own, *known, _NOTHING)
    if own == _MORE:
        found += [part for part, of in zip(parts, known, strict=True) if of == _OPERAND]
    return own


def _panel_type(nest: ir.Nest, value: ir.Value) -> ScalarType:
    """The type of a copy: what is computed with, or what dot products take."""
    return value.type if nest.dot_product is not None else value.type.compute


def _moves(value: ir.Value) -> bool:
    """Whether a value depends on where it is computed, beside what it reads there."""
    return any(isinstance(v, ir.Position | ir.Variable | ir.Combined) for v in walk(value))


def natural_level(tiles: Iterable[str], ref: ir.TensorRef) -> int:
    """The level right inside of the last loop over tiles (given by dims) that moves the operand."""
    dims = ref.names
    return max((k for k, dim in enumerate(tiles, 1) if dim in dims), default=0)


def _across(program: ir.Program, nest: ir.Nest, load: ir.Load) -> str:
    """The dim along which an operand lies in memory in order, if the lanes lie apart."""
    layout = program.tensor(load.ref.tensor).layout
    if nest.lane is None or abs(layout.step(load.ref, nest.lane.dim)) <= 1:
        return ""
    # Each length of a rest has code of its own: where sizes vary, of words too much.
    varies = any(isinstance(nest.dim(name).extent, Size) for name in load.ref.names)
    words = nest.dot_product.dim if varies and nest.dot_product is not None else None
    in_order = (nest.dim(name) for name in layout.in_order(load.ref) if name != words)
    longest = max(in_order, key=lambda d: representative(d.extent), default=None)
    return longest.name if longest is not None and representative(longest.extent) > 1 else ""


def _axes(nest: ir.Nest, load: ir.Load, inside: ir.Fold | None) -> list[ir.Fold]:
    """The axes of a panel: those of the folds inside of this one that move it."""
    dims = load.ref.names
    folds = [x.fold for x in nest.loops]
    inner = [f for f in folds[folds.index(inside) + 1 if inside else 0 :] if f.dim in dims]
    shared = nest.lane is None or nest.lane.dim not in dims
    if nest.dot_product is not None and shared and not nest.mma:
        # What all lanes share is copied along the reduction. A matrix unit reads fragments: rows
        # that lie far apart would fall into the same sets of the caches.
        own = [f for f in inner if f.dim == nest.dot_product.dim and f.level != "tile"]
        inner = [*(f for f in inner if f not in own), *own]
    return inner


def stage_knobs(on: KnobSubject) -> OptionKnobs:
    """For each of the first operands, and those that the default copies: 0 leaves it; 1 copies it
    inside of all loops over chunks and tiles that move it (further out a panel would be larger,
    further in it would be copied more often); 2 copies all of it once, before all loops."""
    reads, dims = operands(on.nest.point), on.nest.dims
    copied = {k for k, level in enumerate(on.default.stage or ()) if level >= 0}

    def read_again(load: ir.Load) -> bool:
        return math.prod(on.nest.dim(d).extent for d in load.ref.names) < on.nest.points

    able = [
        k
        for k, load in enumerate(reads)
        if why_not_copied(on.nest, load) is None and read_again(load)
    ]
    knobs = {
        k: Knob(f"{on.nest.name}.stage{k}", (0, 1, 2), 0, ordered=True)
        for k in sorted({*able[:OPERANDS], *copied})
    }

    def level_inside(
        k: int, tile: Sequence[int], order: Sequence[int], chunk: Sequence[int]
    ) -> int:
        """The level of an operand inside of all loops that move it."""
        points, sizes = on.points_inside(tuple(chunk), ()), padded(tile, len(dims))
        tiled = [dims[d].name for d in order or range(len(dims)) if 0 < sizes[d] < points[d]]
        return natural_level(tiled, reads[k].ref) + any(chunk)

    def decode(values: Values, decoded: Decoded) -> tuple[int, ...]:
        chosen = {k: int(values[knob.name]) for k, knob in knobs.items()}
        if not any(chosen.values()):
            return ()
        levels = [-1] * len(reads)
        for k, choice in chosen.items():
            if choice:
                levels[k] = (
                    level_inside(k, decoded.tile, decoded.order, decoded.chunk)
                    if choice == 1
                    else 0
                )
        return tuple(levels)

    def encode(o: NestOptions) -> dict[str, Value]:
        levels = [*(o.stage or ()), *[-1] * len(reads)]
        natural = {k: level_inside(k, o.tile or (), o.order or (), o.chunk or ()) for k in knobs}
        return {
            knob.name: 0 if levels[k] < 0 else 1 if levels[k] == natural[k] else 2
            for k, knob in knobs.items()
        }

    def redundant(values: Values, decoded: Decoded) -> str | None:
        before = [k for k, knob in knobs.items() if values[knob.name] == 2]
        if any(not level_inside(k, decoded.tile, decoded.order, decoded.chunk) for k in before):
            return "operands are copied before all loops, and none of these moves them"
        return None

    return OptionKnobs("stage", tuple(knobs.values()), decode, encode, redundant=redundant)
