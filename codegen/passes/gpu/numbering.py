"""How the threads and the results of a block are numbered, so that operands which are used again
are read in few wavefronts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

from tcl.codegen.devices.banks import WARP
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.passes.fuse import groups, refs
from tcl.codegen.passes.gpu.mma_shape import Sizes
from tcl.codegen.passes.gpu.transposed import LEAST, transposed_axis
from tcl.common.dataclass import dataclass
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


def _names(load: ir.Load) -> set[str]:
    """The dimensions with which an operand moves; none for one whose places data decides."""
    affine = [s for s in load.ref.subscripts if isinstance(s, ir.Affine)]
    plain = len(affine) == len(load.ref.subscripts)
    return {name for s in affine for name, _ in s.terms} if plain else set()


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
        subscripts = (s for x in loads for s in x.ref.subscripts if isinstance(s, ir.Affine))
        if any(s.coefficient(dim.name) and _in(s, reductions) for s in subscripts):
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


def _in(subscript: ir.Affine, dims: set[str]) -> bool:
    return any(name in dims for name, _ in subscript.terms)


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
