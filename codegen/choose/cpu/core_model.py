"""A small model of a core: what a nest takes with these lanes and this register tile."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import NamedTuple

from tcl.codegen.choose.cpu.access_costs import (
    LARGEST,
    PAGE,
    OperandAccess,
    access_of,
    arithmetic_cycles,
    decided_cycles,
    deciding_sizes,
)
from tcl.codegen.choose.cpu.costs import (
    ACCUMULATOR_LATENCY_CYCLES,
    APART_SHARE,
    BROADCAST_CYCLES,
    CACHE_LEVEL_BYTES_PER_CYCLE,
    CONFLICT_CYCLES,
    COUNTING_CYCLES,
    CROSSING_LOADS,
    EXTREME_HALVING_CYCLES,
    EXTREME_LATENCY_CYCLES,
    LOOP_END_CYCLES,
    LOST_LINE_CYCLES,
    OPERATION_CYCLES,
    OTHER_LINE_CYCLES,
    PANEL_LOAD_L1_CYCLES,
    PANEL_LOAD_L2_CYCLES,
    SCALAR_LOAD_CYCLES,
    SERIAL_SHARE,
    SHUFFLE_CYCLES,
    STORE_LOADS,
    STREAMS,
    TRANSPOSED_BESIDE,
    VECTOR_LOAD_CYCLES,
    WINDOW_LOADS,
)
from tcl.codegen.choose.cpu.memory_reads import (
    cached_bytes,
    far_row_cycles,
    keeps_column,
    memory_cycles,
    read_cycles,
    repeated_pass_cycles,
)
from tcl.codegen.choose.cpu.variants import CONDITION_SHARE, DotProducts
from tcl.codegen.devices.cpu import LINE, CpuProfile
from tcl.codegen.devices.features import MASKED_STORES
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import terms
from tcl.codegen.loopir.walk import operands, walk
from tcl.codegen.passes.cpu.register import MAX_POINTS
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_equal

_DEPTH = 256
"""Steps after which partial results are stored, as a rule."""
_WINDOW = 256
"""Operations that the core looks ahead: it waits for memory in a shorter register tile while it
works on the one before."""
_AHEAD = 128
"""Steps of a register tile from which on memory is read ahead along its rows."""
_FEW = 8
"""Iterations of a loop whose end the core does not foresee."""
_WRITTEN_OUT = 48
"""Points beyond which the end of such a loop counts, unless all of it is written out."""
_LONGER = 32
"""Likewise of a loop up to twice as long: kernels for many sizes have code for each length."""
_SIMPLE = 2.0
"""Cycles of arithmetic per vector beside which that counts."""
_UNROLL = (4, 2)
_TRANSPOSED = (8, 4)
"""Neighbours in memory that steps of a reduction read in one piece, where lanes lie apart. On Zen 4
sums of products with a transposed matrix take .57 of the time of single elements. The most of them
only for tiles of up to ``_LONGER`` points."""
_LONG = 64
"""Steps of a reduction from which on a rest that is not written out counts for little."""
_SPARE = 2
"""Registers that LLVM needs besides, to read ahead in several steps at once."""
_WIDEST = 4
"""Registers that a value takes at most: on Zen 4, comparisons of 64 areas in int64 at once take
twice as long as of 8 to 16, codes of 64 neighbourhoods in int32 as long as of 32, and less than of
16."""
_ALONE = 0.5
"""How much longer memory takes for a single row."""
_REUSE = 4
"""Register tiles that have to read a panel for copying it to pay."""
_REUSE_CONVERTED = 2
"""Likewise, where the copy is of a wider type."""
_REUSE_NEAR = 32
"""Likewise, where it would come from the second cache without a copy, too."""


_ROUNDED = 1.0 - 1e-9
"""For sums that are added up in another order."""

_NO_WINDOW: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Along:
    """What all register tiles with lanes along one dimension, or without lanes, have alike."""

    busy: bool
    """Whether a reduction waits for little but a few instructions of arithmetic: operands are read
    again and again, in lanes or one for all of them."""
    counts: bool
    """Whether counting iterations takes time from the arithmetic: it runs beside that of dot
    products, where these are two instructions each."""
    reads: tuple[_Read, ...]
    vectors: tuple[OperandAccess, ...]
    """The operands that are read in vectors. Others the arithmetic reads from memory."""
    between: int
    """Vectors of memory that each of these comes from."""
    far: tuple[tuple[OperandAccess, frozenset[str]], ...]
    """Those of them that caches do not keep, and the dimensions along which they have rows."""
    work: tuple[tuple[frozenset[str], float], ...]
    """Cycles of arithmetic per point, or vector of points, by the dimensions that it depends on."""
    decided: tuple[tuple[frozenset[str], float], ...]
    """Likewise, where all points of ``Core.deciding`` are written out."""
    inside: tuple[frozenset[str], ...]
    """The dimensions of vectors that are computed before the innermost reduction, along which they
    stay the same, such as which lanes lie inside of a padded image."""
    rows: tuple[tuple[OperandAccess, int], ...]
    """Of a product, the operands of which vectors are pieces of rows that are reduced, and the
    bytes of all that one result reads of them."""
    in_rows: tuple[bool, ...]
    """Per operand of a product, whether rows are read in place, with the lanes along or across."""
    crowded: tuple[bool, ...]
    """Per operand, whether its rows can lie in so few places of the first cache that it loses lines
    of which the next steps read more."""
    windows: tuple[dict[str, int], ...]
    """Short reductions, with their extents, that may be written out wholly, as their points share
    elements with those of neighbouring results."""


class _Read(NamedTuple):
    """An operand of these tiles."""

    access: OperandAccess
    cycles: float
    """To read it once, in all lanes."""
    far: frozenset[str]
    """Dimensions whose next points lie in other pages."""
    across: bool
    """Whether lanes are far apart, and a dimension has their neighbours in memory."""


class TileParts(NamedTuple):
    """What a nest is done in with a register tile."""

    parts: Sequence[tuple[Mapping[str, int], float, float, float]]
    """Points of each part, how often it is done, the cycles of the arithmetic of a step, and the
    least that all of its first steps take."""
    left: float
    """That of all parts."""
    least: float
    """Cycles that the nest takes at least."""


class _Tile(NamedTuple):
    """What the parts of a register tile's points have alike, if it is cut short."""

    sizes: Mapping[str, int]
    """Of the whole one."""
    staged: tuple[bool, ...]
    """Per operand."""
    unrolled: int
    """Steps of the innermost reduction that are written out."""
    window: Mapping[str, int] = _NO_WINDOW
    """The reductions, with their extents, that are written out so that registers keep what several
    of their steps read ..."""
    every: bool = False
    """... of every operand, and not only of those that are read in vectors."""


@dataclass(frozen=True, slots=True)
class Core:
    """A nest on one core."""

    nest: ir.Nest
    device: CpuProfile
    lanes: int
    reads: tuple[OperandAccess, ...]
    target: OperandAccess
    arithmetic: Mapping[frozenset[str], float]
    """Cycles of the operations of one point, or one vector of points, by the dimensions that
    they depend on: points that differ in others share them."""
    masked: bool
    """Whether one plain instruction writes some lanes of a vector."""
    sums: int = 1
    """Registers of each result: its accumulator, and what reductions that are fused with it
    need."""
    products: DotProducts | None = None
    """What one instruction adds up: of the dimension along it, points are such groups here."""
    compacted: frozenset[str] = frozenset()
    """The dimensions of the condition of a reduction that goes through the compacted indices of its
    points, which are the same for all points of a register tile; none if it goes through all
    points. The nest has no condition here."""
    before: float = 0.0
    """Cycles to make the lists."""
    cut: frozenset[str] = frozenset()
    """Dimensions of which the last chunk has fewer points: which code is for it is asked inside of
    all loops."""
    # What each register tile asks for, of which there are hundreds, found once:
    dims: Mapping[str, ir.Dim] = field(init=False, repr=False, compare=False)
    """By name, in order."""
    reduced: tuple[ir.Dim, ...] = field(init=False, repr=False, compare=False)
    """The reductions that have more than one point."""
    results: Mapping[str, int] = field(init=False, repr=False, compare=False)
    """The extents of the other dimensions, where that is not 1."""
    reduces: bool = field(init=False, repr=False, compare=False)
    """Whether there are any, of one point as well."""
    steps: int = field(init=False, repr=False, compare=False)
    """Their points."""
    shared: tuple[bool, ...] = field(init=False, repr=False, compare=False)
    """Per operand, whether several results read the same elements of it."""
    halved: bool = field(init=False, repr=False, compare=False)
    """Whether vectors of operands are worked on in halves."""
    deciding: Mapping[str, int] = field(init=False, repr=False, compare=False)
    """The extents of dimensions that decide conditions of a nest that reduces nothing."""
    known: dict[str | None, _Along] = field(init=False, repr=False, compare=False)
    """By lanes, what was found before."""

    def __post_init__(self) -> None:
        dims = self.nest.dims
        results = {d.name: d.extent for d in dims if not d.reduction and d.extent != 1}
        derived = {
            "dims": {d.name: d for d in dims},
            "reduced": tuple(d for d in dims if d.reduction and d.extent > 1),
            "results": results,
            "shared": tuple(not results.keys() <= a.strides.keys() for a in self.reads),
            "reduces": self.nest.reduces,
            "steps": math.prod(d.extent for d in dims if d.reduction),
            "halved": self.device.halves_vectors,
            "deciding": {} if self.nest.reduces else deciding_sizes(self.nest),
            "known": {},
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def read(program: ir.Program, nest: ir.Nest, device: CpuProfile, sums: int = 1) -> Core:
        masked = device.has(MASKED_STORES)
        return Core(
            nest,
            device,
            _lanes(nest.point, device),
            tuple(access_of(program, nest, load, device) for load in operands(nest.point)),
            access_of(program, nest, ir.Load(nest.point.target, nest.point.type, total=True)),
            arithmetic_cycles(nest),
            masked,
            sums,
            cut=_cut_short(program, nest.name),
        )

    def in_words(self, products: DotProducts) -> Core:
        """The same nest with dot products: the reduction along them has fewer points, and what is
        read are words of its factors."""
        shorter = (
            replace(d, extent=-(-d.extent // products.depth)) if d.name == products.dim else d
            for d in self.nest.dims
        )
        reads = (
            access.in_words(products.dim, products.depth, load.ref in products.in_place)
            for access, load in zip(self.reads, operands(self.nest.point), strict=True)
        )
        return replace(
            self,
            nest=replace(self.nest, dims=tuple(shorter)),
            reads=tuple(reads),
            arithmetic=products.arithmetic_cycles(self.nest),
            products=products,
        )

    def group(self, dim: str) -> int:
        """Points of a dimension that one instruction adds up."""
        return self.products.depth if self.products is not None and dim == self.products.dim else 1

    def again(self, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]) -> int:
        """How often each element of an operand is read by register tiles."""
        found = 1
        for dim, extent in self.results.items():
            if dim not in access.strides:
                size = sizes.get(dim, 1) * (self.lanes if dim == lane else 1)
                found *= -(-extent // size)
        return found

    def staged(self, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]) -> bool:
        """Whether an operand should be copied that has the lanes apart from each other, or whose
        vectors a single row reads, each for one product. With the lanes along a reduction none
        is."""
        if lane is None or self.dims[lane].reduction:
            return False
        stride = access.strides.get(lane, 0)
        apart = stride not in (0, access.itemsize) or access.parts > 1
        return (apart or bool(self.compacted and stride)) and self.worth_staging(
            access, lane, sizes
        )

    def worth_staging(
        self,
        access: OperandAccess,
        lane: str | None,
        sizes: Mapping[str, int],
        converted: bool = False,
    ) -> bool:
        """Whether an operand is read often enough for a copy to pay. One that is ``converted``
        saves a conversion each time."""
        times = self.again(access, lane, sizes) if access.stageable else 0
        if converted or times < _REUSE:
            return times >= _REUSE_CONVERTED and converted
        if times >= _REUSE_NEAR:
            return True
        return not (self.near(access, lane) and keeps_column(self, access, lane, sizes))

    def worth_widening(
        self, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]
    ) -> bool:
        """Whether 16-bit floats that are read through a window should be made wider beforehand. In
        lanes that takes little where they are read; for one element at a time it counts."""
        times = self.again(access, lane, sizes)
        if lane not in access.strides:
            times *= math.prod(self.dims[name].extent for name in access.strides)
            times //= access.elements
        return access.overlapping and times >= _REUSE and access.elements <= LARGEST

    def near(self, access: OperandAccess, lane: str | None) -> bool:
        """Whether the second cache keeps an operand, which has the lanes in order, where it lies:
        all of it, and with room to spare what results read in turns, of a batch one matrix. Rows
        that are far apart push each other out of it even if there are few of them."""
        in_order = access.strides.get(lane or "") == access.itemsize
        read = (d for d in self.nest.dims if d.name == lane or d.reduction)
        span = sum(abs(access.strides.get(d.name, 0)) * (d.extent - 1) for d in read)
        kept = access.elements * access.itemsize <= self.device.l2_bytes
        return in_order and kept and span + access.itemsize <= self.device.l2_bytes // 2

    def unroll(self, lane: str | None, sizes: Mapping[str, int], fit: bool | None = None) -> int:
        """How many steps of the innermost reduction are best written out; ``fit``: whether all do,
        where that is known."""
        inner = self.innermost
        if inner is None or inner.name in self.compacted:
            return 1
        between = self._along(lane).between
        if 1 < between < min(inner.extent, _FEW):
            return between
        if self._all_steps_fit(inner, lane, sizes) if fit is None else fit:
            return inner.extent
        if steps := self._transposed_steps(inner, lane, sizes):
            return steps
        if not self._along(lane).counts:
            return 1
        if self.live(lane, sizes) + _SPARE > self.device.vector_registers:
            return 1
        tile = _Tile(sizes, self._staged(lane, sizes), 1)
        loads = self._loads(lane, sizes, tile, [1.0] * len(self.reads))
        if loads > sum(self.arithmetic.values()) * math.prod(sizes.values()):
            return 1  # counting runs beside them
        point = self.nest.point
        points = math.prod(sizes.values()) * len(terms(point.op, point.value))
        for steps in _UNROLL:
            whole = inner.extent % steps == 0 or inner.extent >= _LONG
            if inner.extent >= _FEW * 2 and whole and points * steps <= MAX_POINTS:
                return steps
        return 1

    def _transposed_steps(self, inner: ir.Dim, lane: str | None, sizes: Mapping[str, int]) -> int:
        """Steps that are best written out as their elements are neighbours in memory, and lanes are
        not: these are read in pieces of rows, and transposed. 0 if there are none."""
        if inner.extent < _FEW or not any(read.across for read in self._along(lane).reads):
            return 0
        vectors = [
            access.count(sizes)
            for access in self.reads
            if access.transposed(inner.name, lane, self.lanes)
            and not self.staged(access, lane, sizes)
        ]
        if not vectors:
            return 0
        points = math.prod(sizes.values())
        room = self.device.vector_registers - _SPARE - points * self.sums
        for steps in _TRANSPOSED:
            short = points * steps <= _LONGER or steps == _TRANSPOSED[-1]
            whole = inner.extent % steps == 0 or inner.extent >= _LONG
            if short and whole and steps <= self.lanes and steps * sum(vectors) <= room:
                return steps
        return 0

    def written_out(self, lane: str | None, sizes: Mapping[str, int]) -> Mapping[str, int]:
        """The reductions of which so many steps are best written out."""
        if window := self.window(lane, sizes):
            return window
        steps = self.unroll(lane, sizes)
        return {self.innermost.name: steps} if self.innermost is not None and steps > 1 else {}

    def window(self, lane: str | None, sizes: Mapping[str, int]) -> Mapping[str, int]:
        """One or both of the last two reductions, with their extents, if these are written out so
        that what several points of a register tile read is read once, as by the rows of a window
        that moves across rows; nothing where that saves little."""
        best, least = _NO_WINDOW, WINDOW_LOADS
        along = self._along(lane)
        if not along.windows:
            return best
        points = math.prod(sizes.values())
        room = self.device.vector_registers - _SPARE - points * self.sums
        one_row = {**sizes, self._outermost(lane, sizes): 1}  # what the next one does not share
        rows = {d: n for d, n in sizes.items() if d != lane}
        most = STREAMS - math.prod(rows.values())  # which are written
        every = sum([a.count(sizes) for a in along.vectors])
        lanes = self.lanes if lane is not None else 1
        loads = sum([a.cycles(lane, lanes) * a.count(sizes) for a in along.vectors])
        if loads * CROSSING_LOADS < sum(self.arithmetic.values()) * points:
            return best  # the arithmetic hides them
        for window in along.windows:
            steps = math.prod(window.values())
            if points * steps * along.between > MAX_POINTS or any(
                a.count_shared(None, rows, {d: n for d, n in window.items() if d in far}) > most
                for a, far in along.far
            ):
                continue
            share = sum([a.count_shared(lane, sizes, window) for a in along.vectors])
            if share < least * every * steps and room >= sum(
                [a.count_shared(lane, one_row, window) for a in along.vectors]
            ):
                best, least = window, share / (every * steps)
        return best

    def _windows(
        self, lane: str | None, vectors: Sequence[OperandAccess], between: int, far: bool
    ) -> Iterator[dict[str, int]]:
        """As of ``_Along``."""
        if self.products is not None or self.compacted or any(a.scattered for a in self.reads):
            return
        short = [d for d in self.reduced[-2:] if d.extent <= 2 * _FEW and d.name != lane]
        rows = [name for name in self.results if name != lane]
        for window in (*([d] for d in reversed(short)), short):
            sizes = {d.name: d.extent for d in window}
            if between > 1 and (far or self.reduced[-1].name not in sizes):
                continue
            if any(a.moves_together(d, row) for a in vectors for d in sizes for row in rows):
                yield sizes

    def _unrolled(
        self, inner: ir.Dim, lane: str | None, sizes: Mapping[str, int], fit: bool
    ) -> int:
        """``unroll``, where it counts."""
        if inner.extent < _FEW:
            written_out = inner.extent * math.prod(sizes.values()) <= _WRITTEN_OUT
            return inner.extent if written_out else self.unroll(lane, sizes, fit)
        return self.unroll(lane, sizes, fit) if self._along(lane).counts else 1

    def _all_steps_fit(self, inner: ir.Dim, lane: str | None, sizes: Mapping[str, int]) -> bool:
        """Whether all of a few steps are best written out. What several of them read, as in a
        window that moves along a row, is then read once and kept, if there is room for it."""
        points = math.prod(sizes.values())
        most = MAX_POINTS if inner.extent < _FEW else _LONGER
        if inner.extent > 2 * _FEW or inner.extent * points > most or inner.name == lane:
            return False
        held = self._held(lane, sizes)
        # What is done to operands before they are multiplied takes a register for its result.
        spare = _SPARE + (sum(self.arithmetic.values()) > OPERATION_CYCLES)
        if points + sum(held) + spare > self.device.vector_registers:
            return False
        kept, steps = points * self.sums, {inner.name: inner.extent}
        for access, alone in zip(self.reads, held, strict=True):
            shared = access.count_shared(lane, sizes, steps)
            kept += shared if shared < access.count(sizes) * inner.extent else alone
        return kept + _SPARE <= self.device.vector_registers

    def _between_lanes(self, inner: ir.Dim, lane: str | None) -> int:
        """Steps of a reduction that read what lies between two lanes, as two of a window over
        places two apart: written out together, they are read as whole vectors and sorted. LLVM
        reads one more step with masks, element by element; 1 where lanes are neighbours."""
        found = 1
        for access in self.reads:
            step, apart = access.strides.get(inner.name, 0), access.strides.get(lane or "", 0)
            if step and apart % step == 0:
                found = max(found, abs(apart // step))
        return found

    def _along(self, lane: str | None) -> _Along:
        if lane not in self.known:
            busy = self._keeps_busy(lane)
            lanes = self.lanes if lane is not None else 1
            vectors = tuple(a for a in self.reads if lane is None or lane in a.strides)
            inner = self.innermost
            between = self._between_lanes(inner, lane) if inner is not None else 1
            room = cached_bytes(self.device)
            far = tuple(a for a in vectors if a.whole + self.target.whole > room)
            self.known[lane] = _Along(
                busy,
                busy and (self.products is None or self.products.fragment.adds),
                tuple(
                    _Read(
                        a,
                        self._load_cycles(a, lane),
                        frozenset(d for d in self.dims if not a.near(d)),
                        any(a.transposed(d, lane, lanes) for d in self.dims),
                    )
                    for a in self.reads
                ),
                vectors,
                between,
                tuple((a, frozenset(d for d, s in a.strides.items() if s > LINE)) for a in far),
                self._cycles_along(lane, self.arithmetic),
                self._cycles_along(lane, decided_cycles(self.nest, self.deciding))
                if self.deciding
                else (),
                tuple(
                    d
                    for d in self.arithmetic
                    if self.reduces and inner is not None and lane in d and inner.name not in d
                ),
                tuple(
                    (
                        a,
                        a.itemsize
                        * math.prod(d.extent for d in self.reduced if d.name in a.strides),
                    )
                    for a in self.reads
                    if all(self.shared) and self._is_row(a, lane)
                ),
                tuple(self._in_rows(a, lane) for a in self.reads),
                tuple(self._crowded(a, lane) for a in self.reads),
                tuple(self._windows(lane, vectors, between, bool(far))),
            )
        return self.known[lane]

    def _cycles_along(
        self, lane: str | None, arithmetic: Mapping[frozenset[str], float]
    ) -> tuple[tuple[frozenset[str], float], ...]:
        """As ``_Along.work``. What is one for all lanes is brought into them."""
        halves = self.halves(lane)
        return tuple(
            (d, c * (halves if lane is None or lane in d else 2)) for d, c in arithmetic.items()
        )

    def _staged(self, lane: str | None, sizes: Mapping[str, int]) -> tuple[bool, ...]:
        return tuple([self.staged(access, lane, sizes) for access in self.reads])

    def _keeps_busy(self, lane: str | None) -> bool:
        if lane is None or self.dims[lane].reduction or any(a.scattered for a in self.reads):
            return False
        simple = self.nest.point.type.is_float and sum(self.arithmetic.values()) <= _SIMPLE
        if self.products is None and not simple:
            return False  # a product of integers takes several instructions
        return all(self.results.keys() - a.strides.keys() for a in self.reads)

    @property
    def innermost(self) -> ir.Dim | None:
        """The last reduction that has more than one point."""
        return self.reduced[-1] if self.reduced else None

    def short_loop(self, lane: str | None) -> ir.Dim | None:
        """The loop around one vector, or one point without lanes, of a nest that reduces nothing,
        if that has so few iterations that its end takes longer than what is in it."""
        if self.reduces:
            return None
        moving = [d for d in self.nest.dims if d.extent > 1]
        if moving and moving[-1].name == lane and moving[-1].extent <= self.lanes:
            moving.pop()
        elif lane is not None:
            return None
        return moving[-1] if moving and moving[-1].extent < _FEW else None

    def live(self, lane: str | None, sizes: Mapping[str, int]) -> int:
        """Registers in use: accumulators, and what is held of the operands."""
        return math.prod(sizes.values()) + sum(self._held(lane, sizes))

    def _held(self, lane: str | None, sizes: Mapping[str, int]) -> list[int]:
        """Registers of each operand in a step."""
        outermost = self._outermost(lane, sizes)
        return [1 if outermost in a.strides else a.count(sizes) for a in self.reads]

    def kept_inside(self, lane: str | None, sizes: Mapping[str, int]) -> int:
        """Registers of the vectors of ``_Along.inside``."""
        inside = self._along(lane).inside
        return max([_points(sizes, dims) for dims in inside]) if inside else 0

    def _outermost(self, lane: str | None, sizes: Mapping[str, int]) -> str:
        """The outermost unrolled loop over results, of which that over lanes is the last: operands
        that move along it take one register, others as many as it uses again."""
        rows = (d for d in self.results if d != lane and sizes.get(d, 1) > 1)
        return next(rows, lane or "")

    def parts(self, lane: str | None, sizes: Mapping[str, int]) -> TileParts:
        """What a nest is done in with a register tile: whole tiles, and those that are cut
        short."""
        dims = self.dims
        outer = math.prod(d.extent for d in dims.values() if d.name not in sizes and d.name != lane)
        if lane is not None and lane not in sizes:
            outer *= -(-dims[lane].extent // self.lanes)
        kinds = []
        for name, size in sizes.items():
            units = dims[name].extent
            if name == lane:
                units = -(-units // self.lanes)
            full, rest = divmod(units, size)
            kinds.append([(size, full), (rest, 1)] if rest else [(size, full)])
        share = CONDITION_SHARE if self.compacted else 1.0
        parts = []
        for combination in itertools.product(*kinds):
            cut, times = {}, outer * share
            for name, (size, count) in zip(sizes, combination, strict=True):
                cut[name] = size
                times *= count
            work = self._work(lane, cut)
            parts.append((cut, times, work, times * max(work, self.latency)))
        left = sum([least for *_, least in parts])
        return TileParts(parts, left, self.before + left * _ROUNDED)

    def cycles(
        self,
        lane: str | None,
        sizes: Mapping[str, int],
        most: float = math.inf,
        parts: TileParts | None = None,
    ) -> float:
        """What the nest takes, register tiles that are cut short included; infinite as soon as it
        is clear that this is more than ``most``. ``parts``: if they are known."""
        total = self.before
        dims = self.dims
        parts = parts or self.parts(lane, sizes)
        if parts.least > most:
            return math.inf
        left = parts.left
        steps = self.steps
        along = lane is not None and dims[lane].reduction
        if along:
            steps = -(-steps // self.lanes)
        steps = math.ceil(steps * (CONDITION_SHARE if self.compacted else 1.0))
        tile = self._tile(lane, sizes)
        for cut, times, work, waited in parts.parts:
            total += times * self._step(lane, cut, tile, steps, work)
            left -= waited
            if total + left * _ROUNDED > most:
                return math.inf
        # Vectors along a reduction are steps of it, too.
        apart = math.prod(size for name, size in sizes.items() if name != lane or not along)
        waits = steps < _AHEAD and steps * apart > _WINDOW
        placed = zip(self.reads, tile.staged, self._along(lane).in_rows, strict=True)
        for access, staged, in_rows in placed:
            # Words that are put together come from panels, and what rows of lists read again.
            copied = bool(access.parts > 1 or self.compacted) and staged
            kept = access.whole < cached_bytes(self.device)
            in_place = in_rows and not staged
            ahead = waits and along and in_place and kept and self._in_one_piece(access)
            waited = waits and not ahead
            total += memory_cycles(self, access, kept) if waited and not copied else 0.0
            if in_place and not waited:
                lanes = 1 if along else self.lanes
                rows = access.count({n: s for n, s in sizes.items() if n != lane or not along})
                total += far_row_cycles(self, access, rows * lanes)
            if along and not ((kept or self._reads_alone) and self._in_one_piece(access)):
                # Memory is faster if several rows are read side by side, and so are short pieces
                # of rows; of a long row in a cache the core reads ahead.
                rows = access.count({n: s for n, s in sizes.items() if n != lane})
                total += memory_cycles(self, access) * _ALONE / min(rows, STREAMS)
            total += repeated_pass_cycles(self, access, lane, sizes)
            if staged:
                each = access.copying(lane, self.device.l2_bytes)
                total += math.prod(dims[name].extent for name in access.strides) * each
        return total

    def _tile(self, lane: str | None, sizes: Mapping[str, int]) -> _Tile:
        window, inner = self.window(lane, sizes), self.innermost
        staged = self._staged(lane, sizes)
        if inner is None:
            return _Tile(sizes, staged, 1)
        if window:
            return _Tile(sizes, staged, window.get(inner.name, 1), window)
        fit = self._all_steps_fit(inner, lane, sizes)
        unrolled = self._unrolled(inner, lane, sizes, fit)
        # The smaller or larger of two overwrites what was read: to keep that is a copy.
        if not fit or unrolled < inner.extent or self.extreme:
            return _Tile(sizes, staged, unrolled)
        return _Tile(sizes, staged, unrolled, {inner.name: inner.extent}, every=True)

    @property
    def _reads_alone(self) -> bool:
        """Whether one row fills the memory's time for a core: where the processor reads ahead far
        enough, as long as no other core of the kernel does. On Zen 4, sums of rows one by one take
        .87 of the time of eight side by side with one thread, and 1.15 times as long with two."""
        return self.device.reads_ahead and self.device.threads == 1

    def _in_rows(self, access: OperandAccess, lane: str | None) -> bool:
        """As of ``_Along``."""
        across = any(access.transposed(d, lane, self.lanes) for d in self.dims)
        return all(self.shared) and (across or self._is_row(access, lane))

    def _in_one_piece(self, access: OperandAccess) -> bool:
        """Whether all that the reductions read of an operand for one result is one row."""
        step = access.itemsize
        for dim in sorted(self.reduced, key=lambda d: access.strides.get(d.name, 0)):
            if access.strides.get(dim.name, 0) != step:
                return False
            step *= dim.extent
        return True

    def _work(self, lane: str | None, sizes: Mapping[str, int]) -> float:
        """Cycles of the arithmetic of one step of a register tile."""
        along, deciding = self._along(lane), self.deciding
        work = along.decided if deciding and deciding.items() <= sizes.items() else along.work
        if self.reduces:
            return sum([each * _points(sizes, dims) for dims, each in work])
        return sum(
            [each * _points(sizes, d) / self.turns_inside(d, lane, sizes) for d, each in work]
        )

    def _step(
        self,
        lane: str | None,
        sizes: Mapping[str, int],
        tile: _Tile,
        steps: int,
        work: float,
    ) -> float:
        """One step of a register tile, of so much arithmetic, and its share of what comes before
        and after."""
        points = math.prod(sizes.values())
        lanes = self.lanes if lane is not None else 1
        shares = [self._read_share(a, lane, sizes, tile) for a in self.reads]
        if self.reduces:
            loads = self._loads(lane, sizes, tile, shares)
        else:
            loads = read_cycles(self, lane, sizes)
        # What is brought into all lanes is part of the arithmetic, where memory is near.
        spread = sum(
            [
                a.count(sizes) * share
                for a, share in zip(self.reads, shares, strict=True)
                if lane not in a.strides
            ]
        )
        busy = max(work, loads) + SERIAL_SHARE * min(work, loads - spread * SCALAR_LOAD_CYCLES)
        # To put together lanes that are read one by one takes the units of the arithmetic.
        one_by_one = [
            each * access.count(sizes) * share
            for (access, each, _, across), share, staged in zip(
                self._along(lane).reads, shares, tile.staged, strict=True
            )
            if access.is_apart(lane) and each >= lanes and not staged
            if not (across and tile.unrolled > 1)
        ]
        busy += APART_SHARE * min(work, sum(one_by_one))
        for access, crowded, staged in zip(
            self.reads, self._along(lane).crowded, tile.staged, strict=True
        ):
            if crowded and not staged:
                busy += self._pushed_out(access, lane, sizes) / tile.unrolled
        each = self.target.in_tile(lane, lanes, sizes, self.masked)
        stored = self.target.count(sizes) * STORE_LOADS * each
        if not self.reduces:
            return busy + stored
        if lane is not None and self.dims[lane].reduction:
            # The vectors of a row are added up first, beside the next row, then the lanes of
            # their sum.
            vectors = sizes.get(lane, 1)
            stored += (
                points / vectors * (2.0 * lanes.bit_length() + OPERATION_CYCLES * (vectors - 1))
            )
            if self.extreme:
                # Each waits for the one before, and the next rows' loads wait behind them.
                stored += EXTREME_HALVING_CYCLES * (lanes.bit_length() - 1)
                busy += COUNTING_CYCLES
            steps = max(1, steps // vectors)
        inner = self.innermost
        around = 0.0
        if inner is not None and inner.extent < _FEW and inner.extent * points > _WRITTEN_OUT:
            if tile.unrolled < inner.extent:
                around = LOOP_END_CYCLES / inner.extent
        elif self.compacted:
            around = LOOP_END_CYCLES / steps  # nobody foresees the end of a list
        elif inner is not None and inner.extent >= _FEW and self._along(lane).busy:
            busy += BROADCAST_CYCLES * spread
            busy += COUNTING_CYCLES / tile.unrolled if self._along(lane).counts else 0.0
        steps = min(steps, _DEPTH)
        return max(busy, self.latency) + around + stored / max(1, steps)

    def halves(self, lane: str | None) -> int:
        """The parts in which a core works on a vector of operands."""
        wide = lane is not None and self.dims[lane].extent > self.lanes // 2
        return 2 if wide and self.halved else 1

    def _load_cycles(self, access: OperandAccess, lane: str | None) -> float:
        """To read an operand once, in all lanes: vectors of rows that have the lanes along them,
        and those that others are put together of, in as many parts as a core loads them. Where
        others are read again and a row is not, memory decides."""
        lanes = self.lanes if lane is not None else 1
        each = access.cycles(lane, lanes)
        if access.is_apart(lane):
            return self._in_parts(each, lane)
        alike = all(self.shared) or not any(self.shared)
        return each * (self.halves(lane) if alike and self._is_row(access, lane) else 1)

    def _in_parts(self, cycles: float, lane: str | None) -> float:
        """Of vectors whose lanes are apart, where a core works on them in parts: no more than what
        lanes take one by one."""
        return min(cycles * self.halves(lane), max(cycles, float(self.lanes)))

    def _is_row(self, access: OperandAccess, lane: str | None) -> bool:
        """Whether vectors of an operand are pieces of a row that is reduced."""
        if lane is None or not self.dims[lane].reduction:
            return False
        return access.strides.get(lane) == access.itemsize

    @property
    def extreme(self) -> bool:
        """Whether the nest keeps the smallest or largest of floats."""
        return self.nest.point.op in ("min", "max") and self.nest.point.type.is_float

    @property
    def latency(self) -> float:
        """Cycles of a step at least, as it waits for the accumulators of the one before."""
        if not self.reduces:
            return 0.0
        return EXTREME_LATENCY_CYCLES if self.extreme else ACCUMULATOR_LATENCY_CYCLES

    def turns_inside(
        self, dims: Collection[str], lane: str | None, sizes: Mapping[str, int]
    ) -> int:
        """Turns of the loops inside of those that values of these dimensions depend on: without a
        reduction, loops are in the order of the dimensions, and LLVM moves such values out. A
        dimension is no loop if a register tile has all of it in each chunk."""
        found = 1
        if not self.reduces:
            for dim in reversed(self.nest.dims):
                points = sizes.get(dim.name, 1) * (self.lanes if dim.name == lane else 1)
                turns = -(-dim.extent // points)
                if dim.name not in dims:
                    found *= turns
                elif turns > 1 or dim.name in self.cut:
                    break
        return found

    def _loads(
        self, lane: str | None, sizes: Mapping[str, int], tile: _Tile, shares: Sequence[float]
    ) -> float:
        """Cycles to read such shares of the operands for one step of a register tile."""
        reads = zip(self._along(lane).reads, tile.staged, shares, strict=True)
        found = sum(
            [self._load(read, lane, sizes, tile, staged) * share for read, staged, share in reads]
        )
        return max(found, self._lost_rows(lane, sizes, tile))

    def _lost_rows(self, lane: str | None, sizes: Mapping[str, int], tile: _Tile) -> float:
        """Cycles in which rows of a product, with the lanes along them, come from the second cache
        for each register tile that reads them again, as the first one does not hold those of one
        tile."""
        rows = self._along(lane).rows
        if not rows:
            return 0.0
        apart = {d: n for d, n in tile.sizes.items() if d != lane}
        if sum([a.count(apart) * length for a, length in rows]) <= self.device.l1_bytes:
            return 0.0
        vectors = sum([a.count(sizes) for a, _ in rows])
        return vectors * self.device.vector_bits // 8 / CACHE_LEVEL_BYTES_PER_CYCLE[0]

    def _read_share(
        self, access: OperandAccess, lane: str | None, sizes: Mapping[str, int], tile: _Tile
    ) -> float:
        """The part of an operand's elements in a step that no step before it has read already."""
        if not tile.window or not (tile.every or lane is None or lane in access.strides):
            return self._held_share(access, lane, sizes)
        steps = math.prod(tile.window.values())
        return access.count_shared(lane, sizes, tile.window) / (steps * access.count(sizes))

    def _held_share(
        self, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]
    ) -> float:
        """As ``_read_share``, where the innermost reduction goes along rows: what it does not move
        stays in registers, if there is room."""
        inner = self.innermost
        if inner is None or inner.name != lane or lane in access.strides or access.scattered:
            return 1.0
        room = self.device.vector_registers - _SPARE - math.prod(sizes.values()) * self.sums
        steps = -(-inner.extent // self.lanes)
        return 1.0 / steps if access.count(sizes) <= room else 1.0

    def _load(
        self,
        read: _Read,
        lane: str | None,
        sizes: Mapping[str, int],
        tile: _Tile,
        staged: bool,
    ) -> float:
        access, each, far, across = read
        whole = tile.sizes
        count = access.count(sizes)
        if staged:
            column = access.count(whole) * self.device.vector_bits // 8 * self.steps
            # Beside a row that reads it once and again, little else wants to be in the first cache.
            first = column <= self.device.l1_bytes * (7 if self.compacted else 4) // 8
            return count * (PANEL_LOAD_L1_CYCLES if first else PANEL_LOAD_L2_CYCLES)
        near = access.count({n: s for n, s in sizes.items() if n not in far}) if far else count
        inner = self.innermost
        if across and inner is not None and 1 < tile.unrolled <= _TRANSPOSED[0]:
            written_out = {**sizes, inner.name: tile.unrolled}
            moved = access.in_tile(lane, self.lanes, written_out, self.masked)
            if moved < each:
                beside = TRANSPOSED_BESIDE if tile.unrolled == inner.extent else 1.0
                each = min(each, moved * beside * self.halves(lane))
        between = self._along(lane).between
        if inner is not None and lane is not None and 1 < between <= tile.unrolled:
            steps = (access.strides.get(inner.name, 0) * between, access.strides.get(lane, 0))
            if steps == (access.itemsize * between,) * 2:
                # These steps read the same vectors, and sort them.
                together = VECTOR_LOAD_CYCLES + SHUFFLE_CYCLES * (between - 1)
                each = min(each, self._in_parts(together, lane))
        found = count * each + OTHER_LINE_CYCLES * (count - near)
        # Lines of as many pages may lie in the same place of the first cache.
        ways = self.device.l1_bytes // PAGE - 2
        found += CONFLICT_CYCLES * max(0, count // near - ways)
        if lane is not None and lane in access.strides:
            # Vectors side by side share cache lines, those of different rows do not.
            found += OTHER_LINE_CYCLES * (count - access.count({lane: sizes.get(lane, 1)}))
        elif self._loses(access, lane, whole):
            found += LOST_LINE_CYCLES
        return found

    def _crowded(self, access: OperandAccess, lane: str | None) -> bool:
        """As of ``_Along``."""
        inner = self.innermost
        if inner is None or not 0 < abs(access.strides.get(inner.name, 0)) < LINE:
            return False
        in_order = lane is not None and access.strides.get(lane) == access.itemsize
        return not in_order and any(access.strides.get(d, 1) % LINE == 0 for d in self.results)

    def _pushed_out(
        self, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]
    ) -> float:
        """Cycles to read lines again whose rest the next steps read, as more rows than the first
        cache has ways lie in the same place of it. On Zen 4, 14 rows of 4 KB take 1.3 to 1.8 times
        as long as 8."""
        rows = {d: n * (self.lanes if d == lane else 1) for d, n in sizes.items()}
        rows = {d: n for d, n in rows.items() if n > 1 and d in access.strides}
        places = PAGE // math.gcd(PAGE, *(access.strides[d] for d in rows))
        lost = math.prod(rows.values()) - places * (self.device.l1_bytes // PAGE)
        return max(0, lost) * LINE / CACHE_LEVEL_BYTES_PER_CYCLE[0]

    def _loses(self, access: OperandAccess, lane: str | None, whole: Mapping[str, int]) -> bool:
        """Whether each step reads from another page, and there are so many of them that the first
        cache has lost their lines when the next register tile reads the values beside."""
        inner = self.innermost
        if inner is None or abs(access.strides.get(inner.name, 0)) < PAGE:
            return False
        near = inner.extent * LINE <= self.device.l1_bytes // 2
        return not near and self.again(access, lane, whole) > 1


def _lanes(point: ir.Point, device: CpuProfile) -> int:
    """Of a vector: those of the result's type, unless a value that is computed for it takes more
    registers than a few."""
    values = (point.value, *(let.value for let in point.lets))
    widest = max(
        (v.type for value in values for v in walk(value) if isinstance(v, ir.Binary)),
        key=lambda type_: type_.itemsize,
        default=point.type,
    )
    return min(device.lanes(point.type), _WIDEST * device.lanes(widest))


def _cut_short(program: ir.Program, name: str) -> frozenset[str]:
    """As of ``Core.cut``."""
    nest = program.nest(name)
    return frozenset(
        f.dim for f in nest.chunks if not provably_equal(f.count * f.step, nest.dim(f.dim).extent)
    )


def _points(sizes: Mapping[str, int], dims: Collection[str]) -> int:
    """Of a register tile, along some of its dimensions."""
    found = 1
    for dim, size in sizes.items():
        if dim in dims:
            found *= size
    return found
