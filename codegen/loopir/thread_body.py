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
from tcl.grammar.sizes.varying import provably_at_least, provably_divides


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
