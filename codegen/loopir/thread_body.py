"""The innermost part of a GPU's nest: unrolled loops and lanes of a thread around a few statements,
as it is emitted and as it is counted."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.guards import guarded
from tcl.codegen.loopir.walk import in_block
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_at_least, provably_divides, provably_equal

_EXCHANGED = 8
"""Bytes that a thread stores at once of results that were exchanged."""
APART = 6
"""Elements from a thread's first ones to those that it stores, for odd threads."""


@dataclass(frozen=True, slots=True)
class ThreadBody:
    """Some loops, and the statements in the innermost one."""

    geometry: Geometry
    """As this part of the kernel sees it: elsewhere, more points may not be there."""
    loops: tuple[ir.Loop, ...]
    statements: tuple[ir.Statement, ...]
    guarded: tuple[str, ...]
    """Dimensions at whose points it may do what it does only where these are."""

    @staticmethod
    def of(
        geometry: Geometry, loops: Sequence[ir.Loop], body: ir.Statement, around: Container[str]
    ) -> ThreadBody:
        """``around``: the folds of loops around all of these."""
        dims = guarded(geometry, body, loops, around)
        return ThreadBody(geometry, tuple(loops), in_block(body), dims)

    @property
    def lane(self) -> ir.Fold | None:
        """The innermost loop, if it is one over lanes."""
        last = self.loops[-1:]
        return last[0].fold if last and last[0].kind is ir.Kind.VECTOR else None

    @property
    def guarded_lane(self) -> ir.Fold | None:
        """The lanes, if some are at points that may not be there."""
        return self.lane if self.lane is not None and self.lane.dim in self.guarded else None

    @property
    def partial(self) -> bool:
        """Whether some vectors have points that are there and points that are not."""
        lane = self.guarded_lane
        return lane is not None and not provably_divides(
            lane.count, self.geometry.dims[lane.dim].extent
        )

    def whole_vectors(self) -> tuple[int, ThreadBody] | None:
        """Whole vectors where there are any, if some are partial: how many points after the first
        one have to be there, and what is done then."""
        lane = self.guarded_lane
        if lane is None or not self.partial:
            return None
        reach = sum(x.fold.step * (x.fold.count - 1) for x in self.loops if x.fold.dim == lane.dim)
        if provably_at_least(reach, self.geometry.dims[lane.dim].extent):
            return None
        rest = tuple(d for d in self.guarded if d != lane.dim)
        return reach, replace(self, geometry=self.geometry.all_there(lane.dim), guarded=rest)

    def asked(self) -> tuple[list[str], list[str]]:
        """Of ``guarded``, what all lanes are asked for at once, and what each is asked for."""
        own = [self.guarded_lane.dim] if self.guarded_lane is not None else []
        rest = [d for d in self.guarded if d not in own]
        return (rest, own) if self.partial else ([*rest, *own], [])

    def gathered(self) -> dict[ir.TensorRef, int]:
        """Elements that are written in vectors, and how many at once. At an edge, each element is
        written on its own."""
        if self.lane is None or self.partial:
            return {}
        return self.geometry.gathered(self.statements, self.lane)

    def exchanged(self) -> ir.Fold | None:
        """The registers along columns of which two are stored at once, if these loops store 16-bit
        results of tensor cores that pairs of threads exchange before.

        A thread has two neighbours of each 8 columns (``passes/gpu/mma_shape.py``), so that what a
        warp stores at once would fill half of each sector, and the second cache takes each sector
        twice (a product of float16 4096x4096x4096 takes 203 us instead of 221 so, on an H100). Of
        two times 8 columns, thread ``t`` of four stores four neighbours: even threads of the first
        ones, odd threads of the second ones.
        """
        geometry, loops = self.geometry, self.loops
        store = self.statements[0] if len(self.statements) == 1 else None
        if self.guarded or not isinstance(store, ir.Store) or not loops:
            return None
        lane, tensor = loops[-1].fold, geometry.program.tensor(store.ref.tensor)
        kept = [x.fold for x in loops if x.fold.dim == lane.dim and x.fold.level == "register"]
        halves = any(x.fold.level == "half" for x in loops)
        if not halves or not kept or kept[0].count % 2 or not store.ref.is_affine or tensor.shared:
            return None
        layout, place = tensor.layout, tensor.layout.place(store.ref)
        if layout.itemsize * lane.count * 2 != _EXCHANGED or layout.base % _EXCHANGED:
            return None
        if not provably_equal(geometry.stride(place, lane), layout.itemsize):
            return None
        own = (lane.name, f"{lane.dim}.thread")
        steps = [s for f, s in geometry.strides(place) if f.name not in own]
        steps.append(geometry.value_at_start(place))
        whole = all(provably_divides(_EXCHANGED, s) for s in steps)
        return kept[0] if whole else None
