"""Binds a nest to the threads of a block: lanes, threads, registers, and the order of its loops."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tcl.codegen.common.errors import OptionsError
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import NestOptions
from tcl.codegen.passes.base import map_nest
from tcl.codegen.passes.fuse import refs
from tcl.codegen.passes.gpu.mma_shape import THREADS, mma_depth, mma_folds, why_no_mma
from tcl.codegen.passes.vectorize import outputs, why_not_vectorized

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
    def of(nest: str, o: NestOptions, profile: GpuProfile) -> Bind:
        """By the choices for a nest."""
        lanes, mma = o.vectorize or (-1, 1), o.mma or ()
        return Bind(nest, lanes, o.threads or (), o.register or (), profile, mma)

    def __call__(self, program: ir.Program) -> ir.Program:
        nest = program.nest(self.nest)
        reason = self._why_not(nest)
        if reason:
            raise OptionsError(f"{reason[0]}: nest {nest.name}: {reason[1]}")
        return map_nest(program, self.nest, lambda n: self._bound(program, n))

    def _bound(self, program: ir.Program, nest: ir.Nest) -> ir.Nest:
        if nest.sequential:
            return nest
        sizes = self._sizes(nest)
        chunks = [x for x in nest.loops if x.kind is ir.Kind.PARALLEL]
        tiles = [x for x in nest.loops if x.fold.level == "tile"]
        serial: list[ir.Loop] = []
        threads: list[ir.Loop] = []
        points: list[ir.Loop] = []
        registers: list[ir.Loop] = []
        lanes: list[ir.Loop] = []
        for loop in nest.loops:
            fold = loop.fold
            if fold.level != "point":
                continue
            width, count, held = sizes[fold.dim]
            unit = width * count * held
            rest = ir.Loop(ir.Fold(fold.dim, "point", unit, -(-fold.count // unit)))
            (points if nest.dim(fold.dim).reduction else serial).append(rest)
            role = self._role(nest, fold.dim)
            if role is not None:
                folds = mma_folds(fold.dim, role, count, held, mma_depth(nest.point.value))
                threads += [ir.Loop(f, ir.Kind.THREAD) for f in folds if f.level in THREADS]
                registers += [ir.Loop(f, ir.Kind.UNROLL) for f in folds if f.level not in THREADS]
            else:
                if count > 1:
                    thread = ir.Fold(fold.dim, "thread", width, count)
                    threads.append(ir.Loop(thread, ir.Kind.THREAD))
                if held > 1:
                    part = ir.Fold(fold.dim, "register", width * count, held)
                    registers.append(ir.Loop(part, ir.Kind.UNROLL))
            if width > 1:
                lanes.append(ir.Loop(ir.Fold(fold.dim, "lane", 1, width), ir.Kind.VECTOR))
        if self.mma:
            rows = nest.dims[self.mma[0]].name
            threads.sort(key=lambda x: (x.fold.level == "thread", x.fold.dim != rows))
        else:
            threads.sort(key=lambda x: _contiguous(program, nest, x.fold.dim))
        # Of tensor cores' results, those that one instruction adds to are neighbours.
        registers.sort(key=lambda x: (not nest.dim(x.fold.dim).reduction, x.fold.level == "half"))
        if _reordered(nest, [*serial, *points]):
            raise OptionsError(
                f"inner_order: nest {nest.name}: loops over results lie outside of those over "
                "reductions, whose sums stay in registers"
            )
        return nest.with_loops([*chunks, *serial, *tiles, *threads, *points, *registers, *lanes])

    def _role(self, nest: ir.Nest, dim: str) -> int | None:
        """0 for the rows of tensor cores, 1 for the columns, 2 for the reduction."""
        names = [nest.dims[k].name for k in self.mma]
        return names.index(dim) if dim in names else None

    def _sizes(self, nest: ir.Nest) -> dict[str, tuple[int, int, int]]:
        """Lanes, threads and registers of each dimension."""
        position, width = self.lanes
        vector = None
        if width > 1:
            vector = (outputs(nest) if position < 0 else nest.dims)[position].name
        found = {}
        for k, dim in enumerate(nest.dims):
            threads = self.threads[k] if k < len(self.threads) else 0
            held = self.register[k] if k < len(self.register) else 0
            found[dim.name] = width if dim.name == vector else 1, max(1, threads), max(1, held)
        return found

    def _why_not(self, nest: ir.Nest) -> tuple[str, str] | None:
        """The option that cannot be honoured, and why."""
        for key, given in (("threads", self.threads), ("register", self.register)):
            if len(given) > len(nest.dims):
                many = f"it has {len(nest.dims)} dimensions, {len(given)} sizes were given"
                return key, many
            if any(size > 1 for size in given) and nest.sequential:
                return key, nest.sequential
        if reason := why_not_vectorized(nest, *self.lanes):
            return "vectorize", reason
        if self.mma and (reason := why_no_mma(nest, self.mma, self._sizes, self.profile)):
            return "mma", reason
        sizes = self._sizes(nest)
        threads = math.prod(count for _, count, _ in sizes.values())
        most = self.profile.threads_per_block
        if threads > most:
            return (
                "threads",
                f"{threads} are more than the {most} of a block of {self.profile.name}",
            )
        return self._too_much(nest, sizes) or _uneven(nest, sizes)

    def _too_much(
        self, nest: ir.Nest, sizes: dict[str, tuple[int, int, int]]
    ) -> tuple[str, str] | None:
        points = math.prod(width * held for width, _, held in sizes.values())
        if points > MAX_POINTS:
            return "register", f"{points} points are too many to be written out"
        if nest.point.op == "=":
            return None
        own = (n * r for d, (n, _, r) in sizes.items() if not nest.dim(d).reduction)
        words = math.prod(own) * max(1, nest.point.type.compute.bits // 32)
        if words > MAX_HELD:
            reason = f"{words} words of results do not fit into the registers of a thread"
            return "register", reason
        return None


def _reordered(nest: ir.Nest, arranged: list[ir.Loop]) -> bool:
    """Whether loops that were asked for in an order are in another one."""
    moving = [x.fold.dim for x in arranged if x.fold.count > 1]
    asked = [x.fold.dim for x in nest.loops if x.fold.level == "point" and x.fold.dim in moving]
    return asked != moving


def _uneven(nest: ir.Nest, sizes: dict[str, tuple[int, int, int]]) -> tuple[str, str] | None:
    """Chunks and tiles are whole multiples of what their threads hold; threads whose sums are
    combined are a power of two."""
    for loop in nest.loops:
        fold = loop.fold
        if fold.level not in ("chunk", "tile"):
            continue
        width, count, held = sizes[fold.dim]
        if fold.step % (width * count * held):
            parts = f"{width} lanes x {count} threads x {held} registers"
            return fold.level, f"{fold.step} points of {fold.dim} are no multiple of {parts}"
    reduced = [count for d, (_, count, _) in sizes.items() if nest.dim(d).reduction and count > 1]
    if reduced:
        for _, count, _ in sizes.values():
            if count & (count - 1):
                return "threads", f"where sums are combined, {count} must be a power of two"
    return None


def _contiguous(program: ir.Program, nest: ir.Nest, dim: str) -> tuple[int, int]:
    """The more of what a nest touches lies along a dimension, the faster its threads change."""
    score = 0
    for ref in refs(nest):
        layout = program.tensor(ref.tensor).layout
        score += abs(layout.place(ref).coefficient(dim)) == layout.itemsize
    position = next(k for k, d in enumerate(nest.dims) if d.name == dim)
    return score, position


def thread_folds(nest: ir.Nest) -> tuple[ir.Fold, ...]:
    """The folds of the threads, the one that changes fastest last."""
    return tuple(x.fold for x in nest.loops if x.kind is ir.Kind.THREAD)


def thread_count(nest: ir.Nest) -> int:
    """The threads that a nest keeps busy."""
    return math.prod(f.count for f in thread_folds(nest))
