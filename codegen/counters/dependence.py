"""How often values are computed in loops that are written out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.geometry import Geometry
from tcl.codegen.loopir.walk import walk
from tcl.common.dataclass import dataclass


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
        """Those that a value depends on."""
        found: set[ir.Fold] = set()
        for v in walk(value):
            if isinstance(v, ir.Load):
                affine = [s for s in v.ref.subscripts if isinstance(s, ir.Affine)]
            elif isinstance(v, ir.Position):
                affine = [v.index]
            elif isinstance(v, ir.Variable):
                own, _ = self.held.get(v.name, (self.loops, 1))
                found |= self.lets.get(v.name, frozenset(f for f in self.loops if f in own))
                continue
            else:
                continue
            names = {name for a in affine for name, _ in a.terms}
            found |= {f for f in self.loops if f.dim in names or f.name in names}
        return frozenset(found)
