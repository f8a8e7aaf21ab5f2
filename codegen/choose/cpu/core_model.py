"""A nest on one core: what the search for lanes and a register tile asks about it.

The model of a core is in six files, each above the one before:

- this one: the nest's accesses and arithmetic, and whether an operand is worth a copy in a panel;
- ``footprints``: which cache has what a nest uses again, and what it waits for that;
- ``lanes_model``: what all register tiles with the same lanes have alike;
- ``operand_loads``: cycles of the loads of one step of a register tile, if the first cache has all;
- ``unrolled_steps``: steps of a reduction that are written out, as far as registers hold them;
- ``tile_cycles``: cycles of the whole nest.

Unless said otherwise, numbers are cycles of one core, from ``costs``. They put ways of working in
order, and do not tell times.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from tcl.codegen.choose.cpu.access_costs import (
    LARGEST,
    PAGE,
    OperandAccess,
    access_of,
)
from tcl.codegen.choose.cpu.costs import (
    ACCUMULATOR_LATENCY_CYCLES,
    DIVIDED_SHARE,
    DIVISION_CYCLES,
    EXTREME_LATENCY_CYCLES,
    OPERATION_CYCLES,
)
from tcl.codegen.choose.cpu.lanes import WIDEST, lanes_of
from tcl.codegen.choose.cpu.operation_costs import (
    Division,
    addition_cycles,
    arithmetic_cycles,
    beside_each_other,
    calls_functions,
    choosing_dims,
    conversion_cycles,
    deciding_sizes,
    divisions,
    issued,
    issued_cycles,
    summed_comparisons,
    wide_cycles,
)
from tcl.codegen.choose.cpu.repeated_values import RepeatedValue, repeated_values
from tcl.codegen.choose.cpu.variants import DotProducts, Seldom, seldom_chosen, shares_of_divided
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.features import MASKED_STORES
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import Bound
from tcl.codegen.loopir.terms import guard, terms
from tcl.codegen.loopir.walk import loads, operands, values_of, walk
from tcl.codegen.passes.cpu.cut import cut_bounds, cut_wholly, mostly_held, reached_share
from tcl.codegen.passes.fusion.groups import ALONE, PerResult
from tcl.common.dataclass import dataclass, replace
from tcl.grammar.sizes.varying import provably_equal

SHORT_LOOP = 8
"""Iterations below which the core does not foresee a loop's end."""
SPARE_REGISTERS = 2
"""Registers that LLVM needs besides, to read ahead in several steps at once."""
_REUSE = 4
"""Register tiles that have to read a panel for copying it to pay."""
_REUSE_CONVERTED = 2
"""Likewise, where the copy is of a wider type; through a window, times an element is read: on Zen 4
convolutions of float16 with stride 2 take .67 to .96 of the time."""
_REUSE_NEAR = 32
"""Likewise, where it would come from the second cache without a copy, too."""
_FEW_STEPS = 64
"""Steps of a reduction up to which the order in which results are stored counts."""

_NARROW = 0.75
"""The part of the arithmetic that is left, at most, where lanes of operands are worth several
registers for each result: sums of bytes that are made wider one by one save nothing ..."""
_NARROW_HALVED = 0.5
"""... where long vectors are worked on in halves, which a condition of as few bytes as there are
results in a vector is not: on Zen 4, counts of bytes that differ take .54 to .91 of the time
without, checks of UTF-8 1.96, whose part by this count is .40 to .44 ..."""
_WIDE_SUMS = 2
"""... and the sums that a nest has then, at most: on a Cascade Lake, four sums of pairs of int8
take 1.2 times as long, as registers hold no second row of them."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A nest in the register tiles at some point of which bounds do not hold, where the others have
    loops of their own."""

    whole: ir.Nest
    """Of which it may be a chunk."""
    bounds: tuple[Bound, ...]
    core: Core
    """The nest with its conditions."""


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
    they depend on: points that differ in others share them. Without ``divisions``."""
    additions: Mapping[frozenset[str], float]
    """The part of it that runs beside the rest (``CpuProfile.adds_beside``). Of reductions alone:
    elsewhere most sums are of products, and one instruction with these."""
    masked: bool
    """Whether one plain instruction writes some lanes of a vector."""
    choosing: tuple[frozenset[str], ...] = ()
    """The dimensions of conditions by which lanes of sums are chosen, where that is an instruction
    of its own: on Zen 4 without AVX-512, gradients of padded images take .49 of the time with lanes
    across the image, where a branch decides."""
    divisions: tuple[Division, ...] = ()
    """What the unit that divides does beside it."""
    fused: PerResult = ALONE
    """Each result, with what is fused with the nest."""
    products: DotProducts | None = None
    """What one instruction adds up: of the dimension along it, points are such groups here."""
    compacted: frozenset[str] = frozenset()
    """The dimensions of the condition of a reduction that goes through the compacted indices of its
    points, which are the same for all points of a register tile; none if it goes through all
    points. The nest has no condition here."""
    share: float = 1.0
    """The part of the points whose compacted indices these are."""
    before: float = 0.0
    """Cycles to make the lists."""
    compared: int = 0
    """Sums that count where comparisons hold, as of ``summed_comparisons``."""
    conversions: tuple[float, ...] = ()
    """Cycles to make another type of each operand, of a vector of it, beside ``arithmetic``."""
    cut: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Dimensions of which the last chunk has fewer points: how many chunks there are before it, and
    its points. Which code is for it is asked inside of all loops."""
    bounds: tuple[Bound, ...] = ()
    """Outside of which no point changes anything and loops do not go: from the condition, which the
    nest has not here, ..."""
    whole: ir.Nest | None = None
    """... of this nest, of which it may be a chunk. The loop over a reduction ends point by point,
    or vector by vector, in tiles of all shapes about alike."""
    within: tuple[frozenset[str], float] = frozenset(), 1.0
    """The dimensions of all such bounds, those of reductions too, and the part of their points that
    is within them."""
    divided: tuple[tuple[frozenset[str], float], ...] = ()
    """The dimensions of conditions that divide indices, as of every second row, and the part of the
    points at which each holds: where it is the same for all points of a register tile, and of the
    innermost reduction, a branch leaves out the others."""
    seldom: tuple[Seldom, Core] | None = None
    """What few points of a nest without a reduction compute, and the core at the others."""
    repeated: tuple[RepeatedValue, ...] = ()
    """What several points of a register tile may compute alike, where nothing is reduced."""
    elsewhere: Elsewhere | None = None
    """What it is where bounds that the nest does not ask for here do not hold."""
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
    streams: tuple[tuple[OperandAccess, tuple[int, ...]], ...] = field(
        init=False, repr=False, compare=False
    )
    """Operands and results whose places no data decide, of those that move alike, as those of a
    stencil, one, and the bytes from each of them to the next one in memory."""
    halved: bool = field(init=False, repr=False, compare=False)
    """Whether vectors of operands are worked on in halves."""
    innermost: ir.Dim | None = field(init=False, repr=False, compare=False)
    """The last reduction that has more than one point."""
    extreme: bool = field(init=False, repr=False, compare=False)
    """Whether the nest keeps the smallest or largest of floats."""
    latency: float = field(init=False, repr=False, compare=False)
    """Cycles of a step at least, as it waits for the accumulators of the one before."""
    added: tuple[frozenset[int], ...] = field(init=False, repr=False, compare=False)
    """Operands of each value that is accumulated, one after the other; of fused sums, of all."""
    each: float = field(init=False, repr=False, compare=False)
    """Cycles of all arithmetic of one point, or one vector of points."""
    alone: float = field(init=False, repr=False, compare=False)
    """Those of the sum of it that takes most, on any processor: what is fused is computed one after
    the other, in the same registers."""
    deciding: Mapping[str, int] = field(init=False, repr=False, compare=False)
    """The extents of the few dimensions that decide conditions."""
    called: bool = field(init=False, repr=False, compare=False)
    """Whether each point of it calls functions."""
    known: dict[str | None, Any] = field(init=False, repr=False, compare=False)
    """By the dimension of the lanes, what ``lanes_model.along_lanes`` has found before."""

    def __post_init__(self) -> None:
        dims, point = self.nest.dims, self.nest.point
        reduced = tuple(d for d in dims if d.reduction and d.extent > 1)
        extreme = point.op in ("min", "max") and point.type.is_float
        waited = EXTREME_LATENCY_CYCLES if extreme else ACCUMULATOR_LATENCY_CYCLES
        chain = terms(point.op, point.value)
        added: tuple[frozenset[int], ...] = (frozenset(range(len(self.reads))),)
        if len(chain) > 1 and not point.lets and not self.fused.points:
            places = {load.ref: k for k, load in enumerate(operands(point))}
            added = tuple(frozenset(places[x.ref] for x in loads(term)) for term in chain)
        waited *= max(len(chain), *(len(terms(p.op, p.value)) for p in self.fused.points), 1)
        results = {d.name: d.extent for d in dims if not d.reduction and d.extent != 1}
        each = beside_each_other(sum(self.arithmetic.values()), sum(self.additions.values()))
        divided = sum(d.cycles for d in self.divisions)
        lives = each + len(self.divisions) * DIVISION_CYCLES
        fused = self.fused.points
        sums = [replace(self.nest, point=p) for p in (point, *fused)] if fused else []
        most = max((sum(arithmetic_cycles(nest).values()) for nest in sums), default=lives)
        derived = {
            "dims": {d.name: d for d in dims},
            "reduced": reduced,
            "results": results,
            "shared": tuple(not results.keys() <= a.strides.keys() for a in self.reads),
            "reduces": self.nest.reduces,
            "steps": math.prod(d.extent for d in dims if d.reduction),
            "streams": tuple(_streams((*self.reads, self.target))),
            "halved": self.device.halves_vectors,
            "innermost": reduced[-1] if reduced else None,
            "extreme": extreme,
            "latency": waited if self.nest.reduces else 0.0,
            "added": added,
            "each": each + divided - (1.0 - DIVIDED_SHARE) * min(each, divided),
            "alone": min(lives, most),
            "deciding": deciding_sizes(self.nest, fused),
            "called": any(map(calls_functions, (point, *fused))),
            "known": {},
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def read(
        program: ir.Program, nest: ir.Nest, device: CpuProfile, fused: PerResult = ALONE
    ) -> Core:
        masked = device.has(MASKED_STORES)
        whole, bounds = program.nest(nest.name), tuple[Bound, ...]()
        within: tuple[frozenset[str], float] = frozenset(), 1.0
        # Who divides a nest into chunks asks with the condition. If that is bounds alone, chunks of
        # a triangle all count as whole ones, as the longest decides.
        if guard(nest.point.op, nest.point.value)[0] is None or not cut_wholly(whole):
            bounds = cut_bounds(whole, (whole.point, *fused.points)) if nest.reduces else ()
        if bounds:
            named = {name for index, _ in bounds for name, _ in index.terms}
            within = frozenset(named), reached_share(whole, bounds, {})
        arithmetic = issued_cycles(nest, fused.points)
        compared = summed_comparisons(nest, fused.points)
        if device.halves_vectors and compared:
            every = frozenset(d.name for d in nest.dims)
            arithmetic[every] = arithmetic.get(every, 0.0) + OPERATION_CYCLES * compared
        lanes = lanes_of(nest.point, device)
        loads: dict[ir.TensorRef, ir.Load] = {}
        for load in itertools.chain.from_iterable(map(operands, (nest.point, *fused.points))):
            loads.setdefault(load.ref, load)
        converted = {} if deciding_sizes(nest) else conversion_cycles(nest)
        casts = (
            v for value in values_of(nest.point) for v in walk(value) if isinstance(v, ir.Cast)
        )
        cast = {v.operand for v in casts if isinstance(v.operand, ir.Load)}
        read = cast if converted else ()
        short = device.architecture == "x86_64" and not masked
        widened = {x.ref for x in cast if x.type.compute != x.type and short and nest.reduces}
        few = seldom_chosen(nest)
        accesses = {ref: access_of(program, nest, load, device) for ref, load in loads.items()}
        accesses |= {r: replace(accesses[r], widened=OPERATION_CYCLES) for r in widened}
        return Core(
            nest,
            device,
            lanes,
            tuple(accesses.values()),
            access_of(program, nest, ir.Load(nest.point.target, nest.point.type, total=True)),
            {dims: c - converted.get(dims, 0.0) for dims, c in arithmetic.items()},
            addition_cycles(nest, fused.points) if device.adds_beside and nest.reduces else {},
            masked,
            choosing_dims(nest, fused.points) if short else (),
            divisions(nest, device, lanes, fused.points),
            fused,
            cut=_cut_short(program, nest.name),
            bounds=bounds,
            whole=whole if bounds else None,
            within=within,
            divided=shares_of_divided(nest, fused.points),
            seldom=few and (few, Core.read(program, few.otherwise, device, fused)),
            repeated=repeated_values(nest, accesses, issued, bool(converted)),
            compared=compared,
            conversions=tuple(OPERATION_CYCLES if x in read else 0.0 for x in loads.values()),
        )

    def in_halves(self) -> Core:
        """The same nest in vectors of half the length, each of which has a mask."""
        device = replace(self.device, vector_bits=self.device.vector_bits // 2)
        lanes, fused = lanes_of(self.nest.point, device), self.fused.points
        return replace(
            self,
            device=device,
            lanes=lanes,
            arithmetic=issued_cycles(self.nest, fused) if self.compared else self.arithmetic,
            divisions=self.divisions and divisions(self.nest, device, lanes, fused),
            seldom=self.seldom and (self.seldom[0], self.seldom[1].in_halves()),
            elsewhere=self.elsewhere
            and replace(self.elsewhere, core=self.elsewhere.core.in_halves()),
        )

    def in_words(self, products: DotProducts) -> Core:
        """The same nest with dot products: the reduction along them has fewer points, and what is
        read are words of its factors."""
        shorter = (
            replace(d, extent=-(-d.extent // products.depth)) if d.name == products.dim else d
            for d in self.nest.dims
        )
        reads = (
            access.in_words(
                products.dim,
                products.depth,
                load.ref in products.in_place | products.moved,
                load.ref in products.moved,
            )
            for access, load in zip(self.reads, operands(self.nest.point), strict=True)
        )
        return replace(
            self,
            nest=replace(self.nest, dims=tuple(shorter)),
            reads=tuple(reads),
            arithmetic=products.arithmetic_cycles(self.nest),
            additions={},
            products=products,
        )

    def with_lanes_of_operands(self) -> Core | None:
        """The same nest with as many lanes as vectors of what it reads have, where its results are
        wider, as counts of bytes are: they take several registers, and conditions one. None where
        that is more than a few."""
        read = (o for point in (self.nest.point, *self.fused.points) for o in operands(point))
        lanes = min((self.device.lanes(o.type) for o in read), default=1)
        own = self.device.lanes(self.nest.point.type)
        if not (self.nest.reduces and own == self.lanes and own < lanes <= WIDEST * own):
            return None
        times = lanes // own
        points = self.fused.points
        cycles = wide_cycles(self.nest, points, lambda type_: -(-lanes // self.device.lanes(type_)))
        most = _NARROW_HALVED if self.halved else _NARROW
        narrow = sum(cycles.values()) <= most * times * sum(self.arithmetic.values())
        if not narrow or self.fused.sums > _WIDE_SUMS:
            return None
        fused = self.fused._replace(registers=self.fused.registers * times)
        return replace(self, lanes=lanes, arithmetic=cycles, additions={}, fused=fused)

    def reached(self, lane: str | None, sizes: Mapping[str, int]) -> float:
        """The part of the register tiles that loops come to: those with points within bounds."""
        if self.whole is None:
            return 1.0
        reduced = {d.name for d in self.reduced}
        named = ({name for name, _ in index.terms} for index, _ in self.bounds)
        one = {name for names in named if names & reduced for name in names}
        widths = {d: 1 if d in one else n for d, n in sizes.items()}
        if lane is not None:
            widths[lane] = widths.get(lane, 1) * self.lanes
        return reached_share(self.whole, self.bounds, widths)

    def taken(self, lane: str | None, sizes: Mapping[str, int]) -> float:
        """The part of the steps of register tiles that no branch leaves out."""
        if self.seldom is not None:
            return 1.0 if lane in self.seldom[0].dims else self.seldom[0].share
        if not self.divided:
            return 1.0
        last = {self.innermost.name} if self.innermost is not None else set()
        moving = {lane, *last, *(d for d, n in sizes.items() if n > 1)}
        return math.prod(share for dims, share in self.divided if not dims & moving)

    def held(self, lane: str | None, sizes: Mapping[str, int]) -> float:
        """The part of the register tiles in which bounds need not be asked for; 0 if none is worth
        loops of its own."""
        if self.elsewhere is None:
            return 1.0
        units = {d: sizes.get(d, 1) * (self.lanes if d == lane else 1) for d in self.dims}
        widths = {d.name: min(units[d.name], d.extent) for d in self.nest.dims if not d.reduction}
        return mostly_held(self.elsewhere.whole, self.elsewhere.bounds, widths)

    def touched(self, access: OperandAccess) -> float:
        """The part of an operand that points within bounds read."""
        dims, share = self.within
        return share if dims <= access.strides.keys() else 1.0

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

    def in_turns(self, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]) -> int:
        """Bytes of an operand between two times that register tiles, in the order of the
        dimensions, read an element of it: of a batch one matrix."""
        outside = itertools.takewhile(lambda d: d in access.strides, self.results)
        units = {d: sizes.get(d, 1) * (self.lanes if d == lane else 1) for d in outside}
        turns = math.prod(-(-self.results[d] // n) for d, n in units.items())
        return access.elements * access.itemsize // turns

    def staged(self, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]) -> bool:
        """Whether an operand should be copied that has the lanes apart from each other, or whose
        vectors a single row reads, each for one product, or to make it wider. With the lanes along
        a reduction none is."""
        if not self.may_stage(access, lane):
            return False
        if self.widened_before(access, lane, sizes):
            return True
        return self._ordered_by_copies(access, lane) and self.worth_staging(access, lane, sizes)

    def may_stage(self, access: OperandAccess, lane: str | None) -> bool:
        """Whether an operand is ``staged`` if it is read often enough."""
        if lane is None or self.dims[lane].reduction or not access.stageable:
            return False
        return bool(access.widened) or self._ordered_by_copies(access, lane)

    def _ordered_by_copies(self, access: OperandAccess, lane: str | None) -> bool:
        """Whether lanes that lie apart from each other would be neighbours in a copy of an operand,
        or points of lists."""
        stride = access.strides.get(lane or "", 0)
        apart = stride not in (0, access.itemsize) or access.is_made
        return apart or bool(self.compacted and stride)

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
        if times >= _REUSE_NEAR and not self._stores_in_order(lane, sizes):
            return True
        return not (self.near(access, lane) and self.keeps_column(access, lane, sizes))

    def _stores_in_order(self, lane: str | None, sizes: Mapping[str, int]) -> bool:
        """Whether results take so few steps each that to store them in the order of memory saves
        more than a copy of what the second cache holds: these are not in it, and the rows of a
        register tile are on pages of their own. 256 rows of 4000 floats of 32 steps take .87 to .9
        of the time on Cascade Lake."""
        far = self.target.elements * self.target.itemsize > self.device.l2_bytes
        apart = (abs(self.target.strides.get(d, 0)) >= PAGE for d in sizes if d != lane)
        return far and self.steps <= _FEW_STEPS and any(apart)

    def worth_widening(
        self, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]
    ) -> bool:
        """Whether elements that are read through a window should be made wider beforehand. In lanes
        that takes little where they are read; for one element at a time it counts."""
        times = self.again(access, lane, sizes)
        if lane not in access.strides:
            times *= math.prod(self.dims[name].extent for name in access.strides)
            times //= access.elements
        return access.overlapping and times >= _REUSE_CONVERTED and access.elements <= LARGEST

    def widens(self, load: ir.Load) -> bool:
        """Whether dot products take an operand as a wider type than it has."""
        products = self.products
        if products is None or load.ref in products.in_place | products.moved:
            return False
        return load.type.bits < max(f.bits for f in products.fragment.factors)

    def widened_before(
        self, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]
    ) -> bool:
        """Whether a copy of an operand has the type in which products are computed. On Zen 4
        without AVX-512, products of bfloat16 take .69 of the time of lanes along the reduction,
        which convert both factors in each step. With AVX-512, nothing was gained."""
        if not access.widened or self.products is not None or access.overlapping:
            return False
        return self.worth_staging(access, lane, sizes, converted=True)

    def near(self, access: OperandAccess, lane: str | None) -> bool:
        """Whether the second cache keeps an operand, which has the lanes in order, where it lies:
        all of it, and with room to spare what results read in turns, of a batch one matrix. Rows
        that are far apart push each other out of it even if there are few of them."""
        in_order = access.strides.get(lane or "") == access.itemsize
        read = (d for d in self.nest.dims if d.name == lane or d.reduction)
        span = sum(abs(access.strides.get(d.name, 0)) * (d.extent - 1) for d in read)
        kept = access.elements * access.itemsize <= self.device.l2_bytes
        return in_order and kept and span + access.itemsize <= self.device.l2_bytes // 2

    def keeps_column(
        self, access: OperandAccess, lane: str | None, sizes: Mapping[str, int]
    ) -> bool:
        """Whether the first cache keeps what a register tile reads of an operand, which has the
        lanes in order, for the next one. The place of a line there is its address modulo ``PAGE``:
        rows whose distance has a large power of two in it lie in a few places, and push each other
        out."""
        width = sizes.get(lane or "", 1) * self.lanes * access.itemsize
        moving = [d for d in self.nest.dims if d.reduction and d.name in access.strides]
        places = PAGE // math.gcd(PAGE, *(access.strides[d.name] for d in moving))
        room = self.device.l1_bytes * min(PAGE, places * width) // PAGE
        return math.prod(d.extent for d in moving) * width <= room // 2

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
        return moving[-1] if moving and moving[-1].extent < SHORT_LOOP else None

    def halves(self, lane: str | None) -> int:
        """The parts in which a core works on a vector of operands."""
        wide = lane is not None and self.dims[lane].extent > self.lanes // 2
        return 2 if wide and self.halved else 1

    def filled(self, lane: str | None) -> float:
        """The part of the lanes that have points, over the vectors of a row: in the last one, no
        others are read one by one."""
        extent = self.dims[lane].extent if lane is not None else self.lanes
        return extent / (-(-extent // self.lanes) * self.lanes)

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


def _streams(
    accesses: Iterable[OperandAccess],
) -> Iterator[tuple[OperandAccess, tuple[int, ...]]]:
    """As of ``Core``."""
    groups: dict[tuple[str, tuple[tuple[str, int], ...]], list[OperandAccess]] = {}
    for access in accesses:
        if not access.scattered:
            key = access.tensor, tuple(sorted(access.strides.items()))
            groups.setdefault(key, []).append(access)
    for group in groups.values():
        places = sorted({access.first for access in group})
        yield group[0], tuple(b - a for a, b in itertools.pairwise(places))


def _cut_short(program: ir.Program, name: str) -> dict[str, tuple[int, int]]:
    """As of ``Core.cut``."""
    nest = program.nest(name)
    return {
        f.dim: divmod(nest.dim(f.dim).extent, f.step)
        for f in nest.chunks
        if not provably_equal(f.count * f.step, nest.dim(f.dim).extent)
    }
