"""The matrix unit of a CPU: rows by lanes of results, and a piece of a reduction, at once.

One instruction multiplies a fragment (``tcl.codegen.devices.fragments``): its columns are the
lanes, its words dot products of neighbouring points. In folds by step: 16 rows of 1; 16 lanes of 1;
16 dot products of four 8-bit integers or two bfloat16 numbers. A fragment is one more kind of
register tile: sums of several are kept in the matrix unit, as those of several vectors are in
vector registers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.fragments import MATRIX_REGISTERS, Fragment, fragments
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import dot_factors
from tcl.codegen.loopir.walk import loads, operands
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import map_nest, refuse, why_not_along
from tcl.codegen.passes.cpu.dot import dotted, matrix_dots, matrix_fragment, why_not_dotted
from tcl.codegen.passes.cpu.stage import copied_of, why_not_copied
from tcl.codegen.passes.knobs import (
    NONE,
    Decoded,
    KnobSubject,
    OptionKnobs,
    Values,
    as_numbers,
    as_text,
)
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import Size, provably_divides, provably_equal, representative


@dataclass(frozen=True, slots=True)
class UseMatrixUnit:
    """Splits the innermost loops of the rows and of the reduction into loops over fragments and
    those that an instruction does at once.

    These go around the lanes, rows first: so a panel of the rows' factor has the points of a
    reduction next to each other, and one of the other factor the columns, as the instruction wants
    them. What is fused with results has the rows alone.
    """

    nest: str
    mma: tuple[int, ...]
    lanes: tuple[int, int]
    """As of ``Vectorize``."""
    device: CpuProfile

    def __call__(self, program: ir.Program) -> ir.Program:
        return map_nest(program, self.nest, self._split) if self.mma else program

    def _split(self, nest: ir.Nest) -> ir.Nest:
        refuse("mma", nest.name, why_no_matrix(nest, self.mma, self.lanes, self.device))
        return with_matrix(nest, self.mma, self.device)


def why_no_matrix(
    nest: ir.Nest, mma: tuple[int, ...], lanes: tuple[int, int], device: CpuProfile
) -> str | None:
    """Why the matrix unit cannot be used in a nest that has its dot products, and these lanes (as
    of ``Vectorize``), or None if it can."""
    if not mma:
        return None
    fragment = next(fragments(device, matrix=True), None)
    if fragment is None:
        return f"{device.name} has no matrix unit (AMX)"
    if reason := why_not_along(nest, mma):
        return reason
    dims = [nest.dims[k] for k in mma]
    if lanes != (mma[1], fragment.columns):
        return f"columns must be lanes: vectorize {fragment.columns} points of {dims[1].name}"
    return _why_no_product(nest, dims) if nest.reduces else None


def _why_no_product(nest: ir.Nest, dims: Sequence[ir.Dim]) -> str | None:
    rows, columns, depth = (d.name for d in dims)
    if nest.dot_product is None or nest.dot_product.dim != depth:
        return f"it multiplies dot products: {depth} needs the option dot"
    sides = _sides(nest, rows, columns)
    if sides is None:
        return f"one factor must have {rows} and {depth}, and the other one {columns} and {depth}"
    for side in sides:
        if len(set(loads(side))) != 1 or copied_of(nest, next(loads(side))) != side:
            return "a factor is computed from more than one operand, and cannot be in a panel"
    return None


def _sides(nest: ir.Nest, rows: str, columns: str) -> tuple[ir.Value, ir.Value] | None:
    """The factors of a nest with dot products: that of the rows, then that of the columns. None
    where they do not have one of these dimensions each, and the reduction both."""
    assert nest.dot_product is not None
    left, right = dot_factors(nest.point.value)
    for row, column in ((left, right), (right, left)):
        own, its = (
            frozenset().union(*(x.ref.names for x in loads(side))) for side in (row, column)
        )
        if nest.dot_product.dim in own & its and rows in own - its and columns in its - own:
            return row, column
    return None


def multiplied_along(
    nest: ir.Nest, fragment: Fragment, device: CpuProfile
) -> Iterator[tuple[int, int, int]]:
    """Rows, columns and a reduction of an untiled nest that the matrix unit can multiply along."""
    results = [
        k for k, d in enumerate(nest.dims) if not d.reduction and representative(d.extent) > 1
    ]
    reductions = [k for k, d in enumerate(nest.dims) if d.reduction]
    for (rows, columns), depth in itertools.product(itertools.permutations(results, 2), reductions):
        mma = rows, columns, depth
        dots, lanes = matrix_dots(fragment, mma, len(nest.dims)), (columns, fragment.columns or 1)
        if why_not_dotted(nest, dots, lanes, device, matrix=True) is None:
            made = dotted(nest, dots, device, matrix=True)
            if why_no_matrix(made, mma, lanes, device) is None:
                yield mma


def with_matrix(nest: ir.Nest, mma: tuple[int, ...], device: CpuProfile) -> ir.Nest:
    """A nest that can have it, with the loops over what the matrix unit does at once. As
    ``UseMatrixUnit``."""
    if not mma:
        return nest
    fragment = next(fragments(device, matrix=True))
    counts = {nest.dims[mma[0]].name: fragment.rows}
    if len(mma) == 3:
        counts[nest.dims[mma[2]].name] = fragment.words
    at_once = []
    loops = []
    for loop in nest.loops:
        fold, count = loop.fold, counts.get(loop.fold.dim)
        if count is None or loop.kind is not ir.Kind.SERIAL or fold.level != "point":
            loops.append(loop)
            continue
        whole = ir.Fold(fold.dim, "point", fold.step * count, -(-fold.count // count))
        loops.append(ir.Loop(whole))
        at_once.append(ir.Loop(ir.Fold(fold.dim, "mma", fold.step, count), ir.Kind.MMA))
    at_once.sort(key=lambda x: nest.dim(x.fold.dim).reduction)
    inner = [x for x in loops if x.kind in (ir.Kind.VECTOR, ir.Kind.DOT)]
    return nest.with_loops([*(x for x in loops if x not in inner), *at_once, *inner])


@dataclass(frozen=True, slots=True)
class FeedMatrixUnit:
    """Refuses a nest whose factors are not staged, but for rows that lie in memory as the unit
    reads them; says whether its results are fragments."""

    nest: str

    def __call__(self, program: ir.Program) -> ir.Program:
        nest = program.nest(self.nest)
        copied = {s.source.ref for s in nest.staged}
        for position, load in enumerate(operands(nest.point)):
            if nest.dot_product is None or load.ref in copied:
                continue
            if load != self._whole_rows(program, nest):
                refuse(
                    "mma",
                    nest.name,
                    f"operand {position}, {load.ref.tensor}, is not staged: the matrix unit reads "
                    "panels or uncut rows",
                )
        whole = _whole_fragments(program, nest)
        return map_nest(program, self.nest, lambda nest: replace(nest, fragments=whole))

    def _whole_rows(self, program: ir.Program, nest: ir.Nest) -> ir.Load | None:
        """The factor that the unit can read where it lies, of which no loop cuts off a part."""
        assert nest.dot_product is not None and nest.lane is not None
        depth = nest.dot_product
        rows, words = (next(f for f in nest.mma if (f.dim == depth.dim) == of) for of in (0, 1))
        cut = _cut(nest, rows.dim, rows.count) or _cut(nest, depth.dim, words.count * depth.count)
        return None if cut else rows_in_place(program, nest, rows.dim, nest.lane.dim)


def rows_in_place(program: ir.Program, nest: ir.Nest, rows: str, columns: str) -> ir.Load | None:
    """The factor of the rows of a nest with dot products, if neighbours along the reduction are
    neighbours in memory: as the matrix unit reads it. Where loops cut it is not looked at."""
    sides = _sides(nest, rows, columns)
    if sides is None or nest.dot_product is None or not isinstance(sides[0], ir.Load):
        return None
    layout = program.tensor(sides[0].ref.tensor).layout
    step = layout.place(sides[0].ref).coefficient(nest.dot_product.dim)
    apart = why_not_copied(nest, sides[0]) or not provably_equal(step, layout.itemsize)
    return None if apart else sides[0]


def _cut(nest: ir.Nest, dim: str, points: int) -> bool:
    """Whether loops of a dimension may end within so many points that the unit takes at once."""
    at_once = ("mma", "lane", "dot")
    around = (f.step for f in nest.folds(dim) if f.level not in at_once)
    return not all(provably_divides(points, n) for n in (nest.dim(dim).extent, *around))


def _whole_fragments(program: ir.Program, nest: ir.Nest) -> bool:
    """Whether the matrix unit can store sums as results of a nest with all of its loops: rows of
    neighbours, of which no loop cuts off some."""
    layout = program.tensor(nest.point.target.tensor).layout
    rows = (f for f in nest.mma if not nest.dim(f.dim).reduction)
    assert nest.lane is not None
    step = layout.place(nest.point.target).coefficient(nest.lane.dim)
    if layout.type.compute != layout.type or not provably_equal(step, layout.itemsize):
        return False
    folds = (*rows, nest.lane)
    known = not any(isinstance(nest.dim(f.dim).extent, Size) for f in folds)
    return known and not any(_cut(nest, f.dim, f.count) for f in folds)


def why_not_held(rows: int, columns: int) -> str | None:
    """Why the sums of so many fragments cannot be kept in the matrix unit, or None if they can:
    they need room for those of one side of the operands, and one of the other side."""
    needed = rows * columns + min(rows, columns) + 1
    if needed <= MATRIX_REGISTERS:
        return None
    return (
        f"{rows} x {columns} fragments need {needed} registers of the matrix unit; it has "
        f"{MATRIX_REGISTERS}"
    )


def mma_knobs(on: KnobSubject) -> OptionKnobs:
    """The dimensions of rows, columns and the reduction that a matrix unit multiplies along. Lanes
    and dot products follow from them."""
    fragment = matrix_fragment(on.nest, on.device)
    able = multiplied_along(on.nest, fragment, on.device) if fragment else ()
    texts = [as_text(*along) for along in able if on.nest.dims[along[2]].extent > 1]
    texts += [as_text(*on.default.mma)] if on.default.mma else []
    knob = Knob(f"{on.nest.name}.mma", tuple(dict.fromkeys((NONE, *texts))), NONE, ordered=False)
    knobs = (knob,) if texts else ()

    def decode(values: Values, _: Decoded) -> tuple[int, ...]:
        return () if not knobs or values[knob.name] == NONE else as_numbers(values[knob.name])

    def encode(o: NestOptions) -> dict[str, Value]:
        return {knob.name: as_text(*o.mma) if o.mma else NONE}

    return OptionKnobs("mma", knobs, decode, encode)
