"""What a thread does at points of its own, as ``cuda.emit.thread_body`` has it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from tcl.codegen.common.warps import (
    MMA_COLUMNS,
    MMA_DEPTH,
    MMA_ROWS,
    SLAB,
    WARPGROUP,
    WARPGROUP_DEPTH,
)
from tcl.codegen.counters.arithmetic import (
    Instructions,
    accumulated,
    constants_of,
    conversion,
    inside,
    instructions_of,
)
from tcl.codegen.counters.places import Condition, Linear, Place
from tcl.codegen.counters.record import Record
from tcl.codegen.counters.requests import Access, Memory
from tcl.codegen.counters.scopes import GRID
from tcl.codegen.devices.banks import BANKS, WARP, WORD
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import bounds_of
from tcl.codegen.loopir.fragments import Fragment, fragments, row_loop
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.mma import Factor, Product
from tcl.codegen.loopir.thread_body import APART, ThreadBody
from tcl.codegen.loopir.walk import children, in_block, statements, values_in, walk
from tcl.common.dataclass import dataclass
from tcl.grammar.syntax.types import FLOAT32


@dataclass(slots=True)
class Dependence:
    """How often a value is computed in loops that are written out: once for each iteration of
    those that it depends on."""

    geometry: Geometry
    loops: list[ir.Fold]
    held: Mapping[str, tuple[tuple[ir.Fold, ...], int]]
    """Accumulators, and the folds that they have."""
    lets: dict[str, frozenset[ir.Fold]] = field(default_factory=dict)

    @property
    def all(self) -> int:
        """Iterations of all of them."""
        return math.prod(map(self.geometry.iterations, self.loops))

    def times(self, value: ir.Value) -> int:
        return math.prod(map(self.geometry.iterations, self.folds(value)))

    def folds(self, value: ir.Value) -> frozenset[ir.Fold]:
        found: set[ir.Fold] = set()
        for v in walk(value):
            if isinstance(v, ir.Load):
                names = v.ref.names
            elif isinstance(v, ir.Position):
                names = frozenset(name for name, _ in v.index.terms)
            elif isinstance(v, ir.Variable):
                own, _ = self.held.get(v.name, (self.loops, 1))
                found |= self.lets.get(v.name, frozenset(f for f in self.loops if f in own))
                continue
            else:
                continue
            found |= {f for f in self.loops if f.dim in names or f.name in names}
        return frozenset(found)


# Integer instructions, as NVRTC 13.5 has them for sm_90, about.
_TEST = 2
"""For asking whether a point is there: which one it is, and a comparison."""
_ZERO = 0.5
"""For a word that stays zero where there is nothing to read: two are set at once."""
_WORTH = 8
"""Points, or instructions where something is stored, from which on a branch leads around them."""
_AROUND, _SUNK = 3, 4
"""For a branch around a store, and for its address, which is computed behind the branch."""
_ROWS = 4
"""Of rows that are read one after the other, those that registers have at a time."""
_CONSTANTS = 2
"""For what an exponential or a division by a constant multiplies by: once."""


def record_thread_body(
    record: Record, loops: Sequence[ir.Loop], statement: ir.Statement, place: Place
) -> None:
    if any(x.fold.level == "mma" for x in loops):
        _products(record, Product.of(record.geometry, loops, in_block(statement)), place)
        return
    body = ThreadBody.of(record.geometry, loops, statement, place.scope)
    whole = body.whole_vectors()
    if whole is None:
        _body(record, body, place)
        return
    assert body.lane is not None
    reach, there = whole
    dim = record.geometry.dims[body.lane.dim]
    first = record.scopes.linear_index(ir.Affine.variable(dim.name), place)
    test = Condition(first + Linear(reach), dim.first + dim.extent)
    _body(record, there, place.where(test))
    _body(record, body, place.where(test.negated()))


def _body(record: Record, body: ThreadBody, place: Place) -> None:
    """What is read, then the loops."""
    begin = len(record.work)
    geometry, loops, parts, lane = body.geometry, body.loops, body.statements, body.lane
    found = fragments(geometry, loops, parts)
    for fragment in found:
        _read_fragment(record, fragment, place)
    kept = {s.value for s in parts if isinstance(s, ir.Accumulate) and s.op == "="}
    row = row_loop(geometry, loops, parts, found)
    words = (
        math.prod(min(f.count, _ROWS) if f == row else f.count for f in x.over)
        * x.length
        * x.load.type.bits
        / 32
        for x in found
        if x.load not in kept
    )
    record.read_words = max(record.read_words, math.ceil(sum(words)))
    fixed = [x.fold for x in loops if x.fold != lane]
    tested = _tested(record, fixed, body.guarded, place)
    within = record.scopes.entered(fixed, place)
    outside, inside_lanes = body.asked()
    if lane is not None and lane.dim in outside:
        within = within.at({lane.name: Linear()})
    within = record.scopes.there(outside, within)
    gathered = body.gathered()
    if lane is not None:
        pairs = body.exchanged()
        for ref, width in gathered.items():
            if pairs is not None:
                _store_exchanged(record, pairs, loops, ref, place)
                continue
            steps = ir.Fold(lane.dim, lane.level, width, lane.count // width)
            each = record.scopes.entered([steps], within, known=False)
            record.access(ref, each, place, width=width, write=True)
        within = record.scopes.there(inside_lanes, record.scopes.entered([lane], within))
    read = len(record.work)
    _count_points(record, body, within, place, {f.load.ref for f in found}, gathered)
    if not body.guarded:
        return
    asked = any(f.guarded for f in found)  # which point it is, where it is read
    record.compute(place, {"integer": (1 if asked else _TEST) * tested})
    stores = lane is None and any(isinstance(s, ir.Store) for s in parts)
    if stores:
        there = _SUNK * tested + _under_tests(record.work[read:], place)
    else:
        there = math.prod(record.geometry.iterations(x.fold) for x in loops)
    if there >= _WORTH * tested > 0:
        around = {"integer": _SUNK * (tested - 1), "branch": _AROUND * tested}
        record.compute(place, around if stores else {"branch": tested})
        return
    for under, own in record.work[begin:]:
        if len(under.tests) > len(place.tests):
            record.idle(under, replace(under, tests=place.tests), own)


_EXCHANGED = 4
"""Integer instructions for two words of which a thread hands one over."""


def _store_exchanged(
    record: Record, pairs: ir.Fold, loops: Sequence[ir.Loop], ref: ir.TensorRef, place: Place
) -> None:
    """Results of tensor cores, two registers at once; the last loop is one over lanes."""
    *rest, lane = (x.fold for x in loops)
    two = replace(pairs, step=2 * pairs.step, count=pairs.count // 2)
    each = record.scopes.entered([two if f == pairs else f for f in rest], place, known=False)
    each = each.at({lane.name: Linear(0, {}, record.threads % 2 * APART)})
    record.access(ref, each, place, width=2 * lane.count, write=True)
    record.compute(each, {"shuffle": 1, "integer": _EXCHANGED})


def _under_tests(work: Iterable[tuple[Place, Instructions]], place: Place) -> float:
    """Instructions of a thread that comes to a place, of those that have further tests."""
    return sum(
        sum(own.values()) * math.prod(n for v, n in under.loops.items() if v not in place.loops)
        for under, own in work
        if len(under.tests) > len(place.tests)
    )


def _tested(record: Record, loops: Sequence[ir.Fold], dims: Iterable[str], place: Place) -> int:
    """Iterations of these loops of which some threads' points may not be there."""
    found = 1
    for name in dims:
        own = [f for f in loops if f.dim == name]
        dim = record.geometry.dims[name]
        around = place.at({f.name: Linear() for f in own})
        furthest = record.furthest(name, around)
        counts = [range(record.geometry.iterations(f)) for f in own]
        reached = (
            sum(k * f.step for k, f in zip(turn, own, strict=True))
            for turn in itertools.product(*counts)
        )
        found *= sum(furthest + more >= dim.first + dim.extent for more in reached)
    return found


def _read_fragment(record: Record, fragment: Fragment, place: Place) -> None:
    """An operand that is read before the loops."""
    around = record.scopes.entered(fragment.over, place)
    row = {f.name: Linear() for f, _ in fragment.row}
    for width, group in itertools.groupby(fragment.pieces(), key=lambda piece: piece[1]):
        first, *others = (begin for begin, _ in group)
        within = around
        if fragment.row:
            name = fragment.row[0][0].name
            turns = {name: width} if others else {}
            within = around.at({**row, name: Linear(first, turns)})
            within = within.within(name, 1 + len(others)) if others else within
        within = record.scopes.there(fragment.guarded, within)
        record.access(fragment.load.ref, within, place, width=width)
        if fragment.guarded:
            record.compute(within, {"integer": _ZERO * width})


def _count_points(
    record: Record,
    body: ThreadBody,
    place: Place,
    outside: Place,
    known: Collection[ir.TensorRef],
    gathered: Collection[ir.TensorRef],
) -> None:
    """The statements of one point. ``known``: what was read before; ``gathered``: what is
    written in vectors."""
    depends = Dependence(body.geometry, [x.fold for x in body.loops], record.held)
    read = dict.fromkeys(known, -1)
    flat = (s for part in body.statements for s in statements(part))
    for statement in (s for s in flat if not isinstance(s, ir.Block)):
        for value in values_in(statement):
            _in_place(record, value, place, outside, read)
        match statement:
            case ir.Let(name=name, value=value):
                depends.lets[name] = depends.folds(value)
                made = instructions_of((value,), depends.times, record.known_values)
            case ir.Accumulate(name=name, op=op, value=value):
                record.goes_on(name, outside)
                made = instructions_of(inside(op, value), depends.times, record.known_values)
                for kind, number in accumulated(op, value).items():
                    made[kind] += number * depends.all
            case ir.Store(ref=ref, value=value):
                made = instructions_of((value,), depends.times, record.known_values)
                if ref not in gathered:
                    record.access(ref, place, outside, write=True)
                kept = record.program.tensor(ref.tensor).layout.type
                for kind, number in conversion(value.type.compute, kept).items():
                    made[kind] += number * depends.all
            case ir.Update(ref=ref, op=op, value=value):
                made = instructions_of((value,), depends.times, record.known_values)
                for kind, number in accumulated(op, value).items():
                    made[kind] += number * depends.all
                record.access(ref, place, outside)
                record.access(ref, place, outside, write=True)
            case _:
                raise ir.IRError(f"{type(statement).__name__} lies in an unrolled loop")
        for constants in {k for v in values_in(statement) for k in constants_of(v)}:
            if record.addresses.is_new(("constant", constants)):
                record.compute(record.begin.by(place.active), {"integer": _CONSTANTS})
        if all(v.startswith(GRID) or v in record.written_out for v in outside.loops):
            inner = (v for value in values_in(statement) for v in walk(value))
            record.known_values |= {v for v in inner if _lasts(record, v)}
        # Of all iterations that are written out, each takes its share.
        share = {k: n / depends.all for k, n in made.items() if n}
        record.compute(place, share)


def _lasts(record: Record, value: ir.Value) -> bool:
    """Whether a value is made of nothing but what lasts."""
    leaves = [v for v in walk(value) if not children(v)]
    return all(
        isinstance(v, ir.Const) or (isinstance(v, ir.Variable) and v.name in record.lasting)
        for v in leaves
    )


def _in_place(
    record: Record, value: ir.Value, place: Place, outside: Place, read: dict[ir.TensorRef, int]
) -> None:
    """What is read where it is used. ``read``: elements → their accesses; -1 for those that
    were read before."""
    match value:
        case ir.Select(condition=condition, then=then, otherwise=otherwise):
            _in_place(record, condition, place, outside, read)
            holds = record.scopes.place_where(condition, place)
            _in_place(record, then, holds, outside, read)
            bounds = bounds_of(condition)
            if bounds is not None and len(bounds) == 1:
                failed = place.where(holds.tests[-1].negated())
            else:
                failed = replace(place, exact=False)
            _in_place(record, otherwise, failed, outside, read)
            return
        case ir.Binary(op="&&" | "||", left=left, right=right):
            _in_place(record, left, place, outside, read)
            _in_place(record, right, replace(place, exact=False), outside, read)
            return
        case ir.Load(ref=ref) if ref not in read:
            read[ref] = len(record.accesses)
            record.access(ref, place, outside)
        case ir.Load(ref=ref) if read[ref] >= 0 and record.accesses[read[ref]].place != place:
            # Under another condition: compilers read it again, or do not.
            before = record.accesses[read[ref]]
            unsure = replace(before, place=replace(before.place, exact=False))
            record.accesses[read[ref]] = unsure
    for inner in children(value):
        _in_place(record, inner, place, outside, read)


def _products(record: Record, product: Product, place: Place) -> None:
    """Those of a warp, or of four, on tensor cores."""
    name, by_column = product.accumulate.name, product.factors[1]
    if product.depth.by_warpgroup:
        # Each of the four warps has a quarter of what they read together.
        assert by_column.kept is not None
        warps, columns = WARPGROUP // WARP, by_column.kept.count
        read = SLAB * (warps * MMA_ROWS + columns * MMA_COLUMNS) // warps
        units = columns * WARPGROUP_DEPTH // MMA_DEPTH
        record.goes_on(name, place)
        record.compute(place, {"wgmma": units, "panel": read / (BANKS * WORD)})
        return
    for factor in product.factors:
        _matrices(record, factor, product.depth, place)
    record.goes_on(name, place)
    kept = [f.kept for f in product.factors if f.kept is not None]
    record.compute(record.scopes.entered(kept, place), {"mma": 1})
    words = sum(f.words * (f.kept.count if f.kept else 1) for f in product.factors)
    record.read_words = max(record.read_words, words)


def _matrices(record: Record, factor: Factor, depth: ir.Fold, place: Place) -> None:
    """What a thread reads of a factor."""
    lane, ref = record.threads % WARP, factor.load.ref
    read = [] if factor.read is None else [factor.read]
    within = record.scopes.entered(read, place, known=not factor.pairs)
    if factor.load.type == FLOAT32:
        for row, point in factor.singles(lane):
            at = _fragment_place(record, within, factor.dim, row, depth, point)
            record.access(ref, at, place)
            record.compute(at, {"convert": 1})
        return
    row, point = factor.matrices(lane)
    at = _fragment_place(record, within, factor.dim, row, depth, point)
    layout = record.layout_of(ref)
    offset = record.scopes.linear_index(layout.place(ref), at)
    record.accesses.append(
        Access(
            *(Memory.MATRIX_READ, ref.tensor, 16, within, offset, place),
            matrices=4 if factor.pairs else factor.words,
            swizzle=layout.swizzle,
        )
    )
    record.compute(within, {"memory": 1})


def _fragment_place(
    record: Record,
    place: Place,
    dim: str,
    row: np.ndarray[tuple[int], np.dtype[np.int64]],
    depth: ir.Fold,
    point: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> Place:
    """The place with what a thread has of a dimension and of the reduction."""
    found = dict[str, Linear]()
    for fold in record.geometry.folds[dim]:
        if fold.level in ("thread", "half", "lane"):
            found[fold.name] = Linear(0, {}, row) if fold.level == "thread" else Linear()
    return place.at({**found, depth.name: Linear(0, {}, point)})
