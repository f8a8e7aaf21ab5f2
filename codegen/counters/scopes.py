"""Where the points of a kernel are: index expressions, conditions and loops at a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from tcl.codegen.counters.places import Condition, Linear, Place
from tcl.codegen.counters.requests import Box
from tcl.codegen.devices.banks import Offsets
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.conditions import bounds_of
from tcl.codegen.loopir.geometry import Geometry
from tcl.common.dataclass import dataclass

Scope: TypeAlias = Mapping[str, Linear]
"""Fold → its offset in points."""
GRID = "grid "
"""What the variables of blocks begin with."""


@dataclass(frozen=True, slots=True)
class Scopes:
    """What index expressions and loops come to."""

    geometry: Geometry

    def linear_index(self, affine: ir.Affine, place: Place) -> Linear:
        """An index expression, or a place in memory."""
        geometry, scope = self.geometry, place.scope
        constant, factors = affine.constant, dict[str, int]()
        threads: Offsets | None = None
        for name, c in affine.terms:
            folds: Sequence[ir.Fold]
            if name in geometry.fold:
                folds = (geometry.fold[name],)
            else:
                constant += c * geometry.dims[name].first
                folds = geometry.folds[name]
            for own in (scope[f.name] for f in folds if f.name in scope):
                constant += c * own.constant
                for variable, factor in own.factors.items():
                    factors[variable] = factors.get(variable, 0) + c * factor
                if own.threads is not None:
                    threads = c * own.threads if threads is None else threads + c * own.threads
        return Linear(constant, factors, threads)

    def terms(self, affine: ir.Affine, place: Place) -> int:
        """How many numbers of blocks and threads a place in memory is the sum of."""
        found = set[str]()
        for fold, _ in self.geometry.strides(affine):
            own = place.scope.get(fold.name, Linear())
            found |= {v for v, f in own.factors.items() if f and v.startswith(GRID)}
            found |= {fold.name} if own.threads is not None else set()
        return len(found)

    def there(self, dims: Iterable[str], place: Place) -> Place:
        """Where dimensions are at points that they have."""
        found = []
        for name in dims:
            dim = self.geometry.dims[name]
            value = self.linear_index(ir.Affine.variable(name), place)
            found.append(Condition(value, dim.first + dim.extent))
        return place.where(*found)

    def place_where(self, condition: ir.Value, place: Place) -> Place:
        """Where a condition holds; everywhere if it is not one of index expressions."""
        bounds = bounds_of(condition)
        if bounds is None:
            return replace(place, exact=False)
        tests = (Condition(self.linear_index(affine, place), bound) for affine, bound in bounds)
        return place.where(*tests)

    def entered(self, folds: Iterable[ir.Fold], place: Place, known: bool = True) -> Place:
        """Inside of loops. ``known``: whether they end where there are no more points."""
        scope, loops = dict(place.scope), dict(place.loops)
        for fold in folds:
            count = self.geometry.iterations(fold) if known else fold.count
            scope[fold.name] = Linear(0, {fold.name: fold.step} if count != 1 else {})
            if count != 1:
                loops[fold.name] = count
        return Place(place.active, loops, place.tests, place.exact, scope)

    def box(self, ref: ir.TensorRef, layout: ir.Layout, scope: Scope) -> Box:
        """The elements that an access at this place goes through."""
        of_block, of_all, blocks = [], [], set[str]()
        for subscript, extent in zip(ref.subscripts, layout.extents, strict=True):
            if not isinstance(subscript, ir.Affine):
                of_block.append(extent)
                of_all.append(extent)
                continue
            own = every = 1
            for name, c in subscript.terms:
                geometry = self.geometry
                folds = [geometry.fold[name]] if name in geometry.fold else geometry.folds[name]
                for fold in folds:
                    if fold.name in scope:
                        moved = abs(c) * fold.step * (fold.count - 1)
                        every += moved
                        grid = [v for v in scope[fold.name].factors if v.startswith(GRID)]
                        own += 0 if grid else moved
                        blocks |= set(grid)
            of_block.append(min(own, extent))
            of_all.append(min(every, extent))
        return Box(tuple(of_block), tuple(of_all), frozenset(blocks))
