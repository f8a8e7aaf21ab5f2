"""What has to be known, where code is written, of the last, shorter iteration of a loop.

Code for a class of sizes has one place for each length that such an iteration may have, and places
within places where several sizes vary: thousands, if each is written out. Most need not be. Under a
mask, any number of lanes may run; the rows of a fragment are gone through one by one; and a product
of fragments whose panels are padded is the same for all of them. Then what counts is how many
vectors, or fragments, there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import inside, loads, statements, values_in
from tcl.grammar.varying import alike

_WORD = 4
"""Bytes of what dot products read several elements as."""


@dataclass(slots=True)
class Ragged:
    """What the loops of a program have inside of them."""

    program: ir.Built
    masks: bool
    """Whether the processor reads and writes some lanes of a vector as fast as all of them."""
    _units: dict[tuple[ir.Fold, int], int] = field(default_factory=dict)

    def unit(self, fold: ir.Fold, body: ir.Statement) -> int:
        """Iterations of a loop that have the same number of times so many points, rounded up, have
        the same code; 1 if each length has its own, 0 if all of them have the same."""
        key = fold, id(body)
        if key not in self._units:
            self._units[key] = self._unit(fold, body)
        return self._units[key]

    def _unit(self, fold: ir.Fold, body: ir.Statement) -> int:
        inner = [*statements(body)]
        loops = [s for s in inner if isinstance(s, ir.For) and s.loop.fold.dim == fold.dim]
        kinds = {s.loop.kind for s in loops}
        steps = [s.loop.fold.step for s in loops if s.loop.kind is ir.Kind.UNROLL]
        if ir.Kind.MMA in kinds:
            if not steps and not any(isinstance(s, ir.Store) for s in inner):
                return 0
        elif ir.Kind.DOT in kinds:
            return 1
        if not all(self._any_length(s) for s in loops if s.loop.kind is ir.Kind.VECTOR):
            return 1
        return min(steps, default=fold.step)

    def _any_length(self, lanes: ir.For) -> bool:
        """Whether what is done in lanes may be done in any number of them, told by a mask: whether
        all of it lies side by side, or is read once for all lanes."""
        return self.masks and all(self._side_by_side(lanes.loop.fold, lanes.body, None))

    def _side_by_side(
        self, lane: ir.Fold, body: ir.Statement, dot: ir.Fold | None
    ) -> Iterator[bool]:
        """Whether that is so, of all that is read and written."""
        if isinstance(body, ir.For) and body.loop.kind is ir.Kind.DOT:
            dot = body.loop.fold
        if isinstance(body, ir.Store):
            itemsize = self._itemsize(body.ref)
            words = dot is not None and itemsize * dot.count == _WORD
            yield self._affine(body.ref)
            yield alike(self._step(body.ref, lane), _WORD if words else itemsize)
        for load in (x for value in values_in(body) for x in loads(value) if x.total):
            itemsize, step = self._itemsize(load.ref), self._step(load.ref, lane)
            words = dot is not None and alike(self._step(load.ref, dot), itemsize)
            yield self._affine(load.ref)
            yield alike(step, 0) or alike(step, _WORD if words else itemsize)
        for each in inside(body):
            yield from self._side_by_side(lane, each, dot)

    def _affine(self, ref: ir.TensorRef) -> bool:
        return all(isinstance(s, ir.Affine) for s in ref.subscripts)

    def _itemsize(self, ref: ir.TensorRef) -> int:
        return self.program.tensor(ref.tensor).layout.itemsize

    def _step(self, ref: ir.TensorRef, fold: ir.Fold) -> int:
        """Bytes from one point of a fold to the next."""
        place = self.program.tensor(ref.tensor).layout.place(ref)
        return place.coefficient(fold.dim) + place.coefficient(fold.name)
