"""Binds a nest to the threads of a block: lanes, threads, registers, and the order of its loops.

Threads and results are numbered so that operands which are used again are read in few wavefronts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from tcl.codegen.devices.banks import WARP
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.base import map_nest
from tcl.codegen.passes.fuse import groups, refs
from tcl.codegen.passes.gpu.mma_shape import THREADS, Sizes, mma_folds, why_no_mma
from tcl.codegen.passes.gpu.transposed import LEAST, transposed_axis
from tcl.codegen.passes.vectorize import vector_dim, why_not_vectorized
from tcl.common.dataclass import dataclass
from tcl.common.errors import OptionsError
from tcl.grammar.sizes.varying import provably_equal

_LEAST_HELD = 8
"""Results of a thread from which on what it reads of operands counts."""
_WIDE, _NARROW, _PAIR = 8, 4, 2
"""Threads of a warp along its two dimensions, and those that are numbered first."""
_LEVELS = ("warp", "thread", "pair")
"""Levels of folds of threads, from the slowest."""


@dataclass(frozen=True, slots=True)
class Numbering:
    """For a nest with two operands that are used again; empty for others."""

    warp: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    """Dimension → levels and threads of its folds, where a warp has 8 x 4 threads of two
    dimensions. Neighbours differ in the one dimension, the next but one in the other: reads of 16
    bytes then take half the time."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Dimension → results that are neighbours in a thread, without being lanes: an operand is read
    in vectors along them, or they share what they read of a window."""
    reductions: frozenset[str] = frozenset()
    """Those whose threads are whole warps, as there are enough of the results."""

    @staticmethod
    def of(program: ir.Program, nest: ir.Nest, sizes: Sizes) -> Numbering:
        """That of the nest whose blocks this one shares: it has the same threads."""
        leader = next(group for group in groups(program.nests) if nest in group)[0]
        names = dict(zip((d.name for d in leader.dims), (d.name for d in nest.dims), strict=False))
        results = [d for d in leader.dims if not d.reduction]
        if not leader.reduces or any(names.get(d.name) not in sizes for d in results):
            return Numbering()
        own = {d.name: sizes[names[d.name]] for d in leader.dims if names.get(d.name) in sizes}
        moved = [_names(x) for x in operands(leader.point)]
        pairs = {
            (a.name, b.name)
            for a in results
            for b in results
            if any(a.name in m and b.name not in m for m in moved)
            and any(b.name in m and a.name not in m for m in moved)
        }
        held = math.prod(own[d.name][0] * own[d.name][2] for d in results)
        if held < _LEAST_HELD or not pairs:
            return Numbering()
        threads = [d.name for d in results if own[d.name][1] > 1]
        warp: Mapping[str, tuple[tuple[str, int], ...]] = {}
        if tuple(threads) in pairs:
            order = _contiguity(program, leader)
            warp = _warp(sorted(threads, key=lambda name: order[name]), own)
        rows = _rows(program, leader, own)
        whole = math.prod(own[d.name][1] for d in results) % WARP == 0
        return Numbering(
            {names[name]: folds for name, folds in warp.items()},
            {names[name]: width for name, width in rows.items()},
            frozenset(sizes.keys() - {names[d.name] for d in results}) if whole else frozenset(),
        )

    def thread_folds(self, dim: str, step: int, count: int) -> list[ir.Fold]:
        """The folds of a dimension's threads, of which each goes through ``step`` points."""
        found = []
        for level, own in self.warp.get(dim, (("thread", count),)):
            found.append(ir.Fold(dim, level, step, own))
            step *= own
        return found

    def place(self, fold: ir.Fold) -> int:
        """The place of a fold among those of threads: the later, the faster it changes. Those of a
        reduction are whole warps: lanes read the same points of the operands."""
        if not self.warp:
            return -(fold.dim in self.reductions)
        return _LEVELS.index(fold.level) if fold.dim in self.warp else -1


def _names(load: ir.Load) -> frozenset[str]:
    """The dimensions with which an operand moves; none for one whose places data decides."""
    return load.ref.names if load.ref.is_affine else frozenset()


def _warp(dims: Sequence[str], own: Sizes) -> dict[str, tuple[tuple[str, int], ...]]:
    """The folds of two dimensions' threads, that which changes faster last; none where these are
    too few, or no powers of two."""
    first, second = (own[name][1] for name in dims)
    if any(n & (n - 1) for n in (first, second)):
        return {}
    if min(first, second) < _NARROW or max(first, second) < _WIDE:
        return {}
    inside = (_NARROW, _WIDE) if second >= _WIDE else (_WIDE, _NARROW)
    slow = (("pair", _PAIR), ("thread", inside[0] // _PAIR), ("warp", first // inside[0]))
    fast = (("thread", inside[1]), ("warp", second // inside[1]))
    found = zip(dims, (slow, fast), strict=True)
    return {name: tuple((x, n) for x, n in folds if n > 1) for name, folds in found}


def _rows(program: ir.Program, leader: ir.Nest, own: Sizes) -> dict[str, int]:
    """The results that are neighbours in a thread."""
    found: dict[str, int] = {}
    reductions = {d.name for d in leader.dims if d.reduction and d.extent != 1}
    loads = [x for x in operands(leader.point) if _names(x) & reductions]
    """Others are read once, before all loops."""
    if not loads:
        return found
    target = leader.point.target
    in_order = program.tensor(target.tensor).layout
    held = math.prod(own[d.name][0] * own[d.name][2] for d in leader.dims if not d.reduction)
    for dim in (d for d in leader.dims if not d.reduction):
        lanes, threads, kept = own[dim.name]
        if lanes > 1 or threads == 1 or kept == 1:
            continue
        if provably_equal(abs(in_order.step(target, dim.name)), 1):
            continue  # threads write neighbours
        lies = [(program.tensor(x.ref.tensor).layout, x.ref) for x in loads]
        width = math.gcd(kept, max(1, 16 // max(x.itemsize for x, _ in lies)))
        subscripts = (s for x in loads for s in x.ref.affine)
        along = (dict(s.terms) for s in subscripts if s.coefficient(dim.name))
        if not all(map(reductions.isdisjoint, along)):
            found[dim.name] = kept
        elif width > 1 and any(
            provably_equal(abs(x.step(ref, dim.name)), 1)
            or (
                width % LEAST == 0
                and transposed_axis(program, leader, ref, {dim.name}, held) is not None
            )
            for x, ref in lies
        ):
            found[dim.name] = width
    for dim in (d for d in leader.dims if d.reduction and d.name in own):
        lanes, threads, kept = own[dim.name]
        steps = (
            abs(program.tensor(x.ref.tensor).layout.step(x.ref, dim.name))
            for x in loads
            if lanes == 1 < min(threads, kept)
        )
        if any(provably_equal(step, 1) for step in steps):
            found[dim.name] = kept  # the threads have other points, and read vectors of their own
    return found


def thread_order(program: ir.Program, nest: ir.Nest) -> dict[str, tuple[int, int, int]]:
    """What the dimensions of a nest are ordered by, from the one whose threads change the slowest.
    At the points of the results of the nest whose blocks it shares, that one's order: each thread
    has the results that it made itself."""
    leader = next(group for group in groups(program.nests) if nest in group)[0]
    made = [d for d in leader.dims if not d.reduction]
    extents = [d.extent for d in made], [d.extent for d in nest.dims]
    if any(d.reduction for d in nest.dims) or not provably_equal(*map(tuple, extents)):
        return _contiguity(program, nest)
    order = _contiguity(program, leader)
    return {own.name: order[d.name] for own, d in zip(nest.dims, made, strict=True)}


def _contiguity(program: ir.Program, nest: ir.Nest) -> dict[str, tuple[int, int, int]]:
    """For each dimension, how much of what a nest touches lies along it (the dimensions of the
    largest such operand, and how many there are), and its position: the more, the faster its
    threads change."""
    places = [(program.tensor(ref.tensor).layout, ref) for ref in refs(nest)]
    steps = [(layout.place(ref), layout.itemsize) for layout, ref in places]
    found = {}
    for k, d in enumerate(nest.dims):
        along = [
            len(place.terms)
            for place, size in steps
            if provably_equal(abs(place.coefficient(d.name)), size)
        ]
        found[d.name] = max(along, default=0), len(along), k
    return found


MAX_HELD = 256
"""Results that a thread may hold in registers, counted as 32-bit words."""
MAX_POINTS = 4096
"""Points that may be written out."""


@dataclass(frozen=True, slots=True)
class Bind:
    """Splits the points of a chunk or tile of each dimension, by step from the smallest, into lanes
    of 1, threads, registers, and a loop over what is left.

    Neighbouring threads so have neighbouring vectors, and memory is read in whole lines. The loops
    are then, from outermost: chunks; loops over results; tiles of reductions; threads; loops over
    reductions; registers; lanes. So all threads run the loops around theirs together, and what a
    thread reduces to stays in its registers.
    """

    nest: str
    lanes: tuple[int, int]
    """Dimension (-1: the last one that is not reduced) and lanes."""
    threads: tuple[int, ...]
    register: tuple[int, ...]
    profile: GpuProfile
    mma: tuple[int, ...] = ()
    """Dimensions of tensor cores: rows, columns, reduction."""

    @staticmethod
    def from_options(nest: str, o: NestOptions, profile: GpuProfile) -> Bind:
        lanes, mma = o.vectorize or (-1, 1), o.mma or ()
        return Bind(nest, lanes, o.threads or (), o.register or (), profile, mma)

    def __call__(self, program: ir.Program) -> ir.Program:
        nest = program.nest(self.nest)
        reason = self._why_not_bound(nest)
        if reason:
            raise OptionsError(reason)
        return map_nest(program, self.nest, lambda n: self._bound(program, n))

    def _bound(self, program: ir.Program, nest: ir.Nest) -> ir.Nest:
        if nest.sequential and nest.running is None:
            return nest
        sizes = self._sizes(nest)
        chunks = [x for x in nest.loops if x.kind is ir.Kind.PARALLEL]
        tiles = [x for x in nest.loops if x.fold.level == "tile"]
        inside = [x.fold for x in nest.loops if x.fold.level == "point"]
        serial: list[ir.Loop] = []
        points: list[ir.Loop] = []
        for fold in inside:
            unit = math.prod(sizes[fold.dim])
            rest = ir.Loop(ir.Fold(fold.dim, "point", unit, -(-fold.count // unit)))
            (points if nest.dim(fold.dim).reduction else serial).append(rest)
        if _reordered(nest, [*serial, *points]):
            raise OptionsError(
                f"inner_order: nest {nest.name}: loops over results must be outside of loops "
                "over reductions, because sums stay in registers"
            )
        order = thread_order(program, nest)
        numbering = Numbering() if self.mma else Numbering.of(program, nest, sizes)
        dims = [f.dim for f in inside]
        folds = BlockFolds.from_sizes(nest, dims, sizes, self.mma, order, numbering)
        threads = [ir.Loop(f, ir.Kind.THREAD) for f in folds.threads]
        registers = [ir.Loop(f, ir.Kind.UNROLL) for f in folds.registers]
        lanes = [ir.Loop(f, ir.Kind.VECTOR) for f in folds.lanes]
        return nest.with_loops([*chunks, *serial, *tiles, *threads, *points, *registers, *lanes])

    def _sizes(self, nest: ir.Nest) -> Sizes:
        vector = vector_dim(nest, *self.lanes)
        found = {}
        for k, dim in enumerate(nest.dims):
            threads = self.threads[k] if k < len(self.threads) else 0
            held = self.register[k] if k < len(self.register) else 0
            found[dim.name] = self.lanes[1] if dim == vector else 1, max(1, threads), max(1, held)
        return found

    def _why_not_bound(self, nest: ir.Nest) -> str | None:
        """The option that cannot be honoured, and why."""
        for key, given in (("threads", self.threads), ("register", self.register)):
            if len(given) > len(nest.dims):
                many = f"it has {len(nest.dims)} dimensions, but {len(given)} sizes were given"
                return f"{key}: nest {nest.name}: {many}"
            pairs = zip(nest.dims, given, strict=False)
            if nest.sequential and any(
                size > 1 and (dim.reduction or nest.running is None) for dim, size in pairs
            ):
                return f"{key}: nest {nest.name}: {nest.sequential}"
        if reason := why_not_vectorized(nest, *self.lanes):
            return f"vectorize: nest {nest.name}: {reason}"
        vector = vector_dim(nest, *self.lanes)
        if nest.running is not None and vector is not None and vector.reduction:
            return f"vectorize: nest {nest.name}: {nest.sequential}"
        sizes = self._sizes(nest)
        if self.mma and (reason := why_no_mma(nest, self.mma, sizes, self.profile)):
            return f"mma: nest {nest.name}: {reason}"
        threads = math.prod(count for _, count, _ in sizes.values())
        at_once = {nest.dims[k].name for k in self.mma[2:]}  # one point for tensor cores
        written_out = [s for name, s in sizes.items() if name not in at_once]
        points = math.prod(width * held for width, _, held in written_out)
        of_results = (sizes[d.name] for d in nest.dims if not d.reduction)
        results = math.prod(width * held for width, _, held in of_results)
        most = self.profile.threads_per_block
        if threads > most:
            limit = f"the {most} that a block of {self.profile.name} can have"
            reason = f"{threads} threads are more than {limit}"
            return f"threads: nest {nest.name}: {reason}"
        if points > MAX_POINTS:
            return f"register: nest {nest.name}: {points} points are too many to unroll"
        words = results * max(1, nest.point.type.compute.bits // 32)
        if nest.point.op != "=" and words > MAX_HELD:
            reason = f"{words} words of results do not fit into the registers of a thread"
            return f"register: nest {nest.name}: {reason}"
        for fold in (x.fold for x in nest.loops if x.fold.level in ("chunk", "tile")):
            if fold.step % math.prod(sizes[fold.dim]):
                parts = "{} lanes x {} threads x {} registers".format(*sizes[fold.dim])
                reason = f"{fold.step} points of {fold.dim} are not a multiple of {parts}"
                return f"{fold.level}: nest {nest.name}: {reason}"
        if any(d.reduction and sizes[d.name][1] > 1 for d in nest.dims):
            odd = next((n for _, n, _ in sizes.values() if n & (n - 1)), None)
            if odd is not None:
                reason = f"threads combine sums, so {odd} must be a power of two"
                return f"threads: nest {nest.name}: {reason}"
        return None


@dataclass(frozen=True, slots=True)
class BlockFolds:
    """What the points that the threads of a block have at once are divided into."""

    threads: tuple[ir.Fold, ...]
    """The one that changes fastest last."""
    registers: tuple[ir.Fold, ...]
    lanes: tuple[ir.Fold, ...]

    @staticmethod
    def from_sizes(
        nest: ir.Nest,
        dims: Iterable[str],
        sizes: Sizes,
        mma: tuple[int, ...],
        order: Mapping[str, tuple[int, int, int]],
        numbering: Numbering,
    ) -> BlockFolds:
        """The folds of some ``dims``, in the order of their loops; ``order``: ``thread_order``."""
        roles = {nest.dims[k].name: role for role, k in enumerate(mma)}
        threads: list[ir.Fold] = []
        registers: list[ir.Fold] = []
        lanes: list[ir.Fold] = []
        for dim in dims:
            width, count, held = sizes[dim]
            if dim in roles:
                folds = mma_folds(dim, roles[dim], count, held)
                threads += [f for f in folds if f.level in THREADS]
                registers += [f for f in folds if f.level not in THREADS]
            else:
                row = numbering.rows.get(dim, 1)
                if row > 1:
                    registers.append(ir.Fold(dim, "row", 1, row))
                if count > 1:
                    threads += numbering.thread_folds(dim, max(width, row), count)
                if held > row:
                    step = max(width, row) * count
                    registers.append(ir.Fold(dim, "register", step, held // row))
            if width > 1:
                lanes.append(ir.Fold(dim, "lane", 1, width))
        if mma:
            threads.sort(key=lambda f: (f.level == "thread", roles.get(f.dim) != 0))
        else:
            threads.sort(key=lambda f: (numbering.place(f), order[f.dim]))
        # Of tensor cores' results, those that one instruction adds to are neighbours.
        results = {d.name for d in nest.dims if not d.reduction}
        registers.sort(key=lambda f: (f.dim in results, f.level == "half"))
        return BlockFolds(tuple(threads), tuple(registers), tuple(lanes))

    @staticmethod
    def of_bound(nest: ir.Nest) -> BlockFolds:
        kinds = ir.Kind.THREAD, ir.Kind.UNROLL, ir.Kind.VECTOR
        return BlockFolds(*(tuple(x.fold for x in nest.loops if x.kind is k) for k in kinds))


def _reordered(nest: ir.Nest, arranged: list[ir.Loop]) -> bool:
    """Whether loops that were asked for in an order are in another one."""
    moving = [x.fold.dim for x in arranged if not provably_equal(x.fold.count, 1)]
    asked = [x.fold.dim for x in nest.loops if x.fold.level == "point" and x.fold.dim in moving]
    return asked != moving
