"""What has to be known, where code is written, of the last, shorter iteration of a loop.

Code for a class of sizes has one place for each length that such an iteration may have, and places
within places where several sizes vary: thousands, if each is written out. Most need not be. Under a
mask, any number of lanes may run; the rows of a fragment are gone through one by one; and a product
of fragments whose panels are padded is the same for all of them. Then what counts is how many
vectors, or fragments, there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import inside, loads, statements, values_in, walk
from tcl.common.dataclass import dataclass
from tcl.grammar.sizes.varying import provably_equal

_WORD = 4
"""Bytes of what dot products read several elements as."""


@dataclass(slots=True)
class Ragged:
    """What the loops of a program have inside of them."""

    program: ir.Built
    masks: bool
    """Whether the processor reads and writes some lanes of a vector as fast as all of them."""
    _units: dict[tuple[ir.Fold, int], int] = field(default_factory=dict)
    """By loops and the identity of their bodies."""
    _exact: dict[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)
    """By identity of a loop's fold and body: asked for at every point of a register tile."""
    _copies: dict[tuple[ir.Fold, int], bool] = field(default_factory=dict)
    """As ``_units``."""

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
        lanes = [s for s in loops if s.loop.kind is ir.Kind.VECTOR]
        exact = [s for s in lanes if not self._any_length(s.loop, s.body)]
        # What is stored after a sum may tell lengths apart where it is stored.
        sums = [s for s in lanes if any(isinstance(x, ir.Accumulate) for x in statements(s.body))]
        if exact and (not sums or any(s in sums for s in exact)):
            return 1
        return min(steps, default=fold.step)

    def exact(self, loop: ir.Loop, body: ir.Statement) -> tuple[str, ...]:
        """The dimensions whose length has to be known in a loop that is written out."""
        key = id(loop.fold), id(body)
        if key not in self._exact:
            inner = (s for s in statements(body) if isinstance(s, ir.For))
            loops = [(loop, body), *((s.loop, s.body) for s in inner)]
            lanes = [(x, b) for x, b in loops if x.kind is ir.Kind.VECTOR]
            self._exact[key] = tuple(x.fold.dim for x, b in lanes if not self._any_length(x, b))
        return self._exact[key]

    def copies(self, fold: ir.Fold, body: ir.Statement) -> bool:
        """Whether iterations of a loop that is written out have nothing to do with each other, as
        those of a copy: no registers are shared, and nothing lies side by side along the loop."""
        key = fold, id(body)
        if key not in self._copies:
            inner = [*statements(body)]
            loops = [s.loop for s in inner if isinstance(s, ir.For)]
            values = [v for s in inner for value in values_in(s) for v in walk(value)]
            refs = [s.ref for s in inner if isinstance(s, ir.Store)]
            refs += [v.ref for v in values if isinstance(v, ir.Load)]
            plain = all(isinstance(s, ir.For | ir.Block | ir.Store) for s in inner)
            alone = not any(isinstance(v, ir.Variable | ir.Combined) for v in values)
            along = any(x.kind is ir.Kind.VECTOR and x.fold.dim == fold.dim for x in loops)
            beside = any(provably_equal(self._step(ref, fold), self._itemsize(ref)) for ref in refs)
            self._copies[key] = plain and alone and (along or not beside)
        return self._copies[key]

    def _any_length(self, lanes: ir.Loop, body: ir.Statement) -> bool:
        """Whether what is done in lanes may be done in any number of them, told by a mask: whether
        all of it lies side by side, or is read once for all lanes."""
        return self.masks and all(self._side_by_side(lanes.fold, body, None))

    def scalar(self, fold: ir.Fold, body: ir.Statement) -> bool:
        """Whether LLVM reads a part of a vector inside of a loop lane by lane, which takes longer
        than all of it: of numbers of a byte or two, where the processor has no masks for them."""
        if self.masks:
            return False
        for s in statements(body):
            if isinstance(s, ir.For) and s.loop.kind is ir.Kind.VECTOR:
                lane, values = s.loop.fold, (v for x in statements(s.body) for v in values_in(x))
                read = (load.ref for value in values for load in loads(value))
                narrow = (ref for ref in read if self._itemsize(ref) < _WORD)
                moved = any(not provably_equal(self._step(ref, lane), 0) for ref in narrow)
                if lane.dim == fold.dim and moved and all(self._side_by_side(lane, s.body, None)):
                    return True
        return False

    def _side_by_side(
        self, lane: ir.Fold, body: ir.Statement, product: ir.Fold | None
    ) -> Iterator[bool]:
        """Whether that is so, of all that is read and written."""
        if isinstance(body, ir.For) and body.loop.kind is ir.Kind.DOT:
            product = body.loop.fold
        if isinstance(body, ir.Store):
            itemsize = self._itemsize(body.ref)
            words = product is not None and itemsize * product.count == _WORD
            yield self._affine(body.ref)
            yield provably_equal(self._step(body.ref, lane), _WORD if words else itemsize)
        for load in (x for value in values_in(body) for x in loads(value) if x.total):
            itemsize, step = self._itemsize(load.ref), self._step(load.ref, lane)
            words = product is not None and provably_equal(self._step(load.ref, product), itemsize)
            yield self._affine(load.ref)
            yield provably_equal(step, 0) or provably_equal(step, _WORD if words else itemsize)
        for each in inside(body):
            yield from self._side_by_side(lane, each, product)

    def _affine(self, ref: ir.TensorRef) -> bool:
        return ref.is_affine

    def _itemsize(self, ref: ir.TensorRef) -> int:
        return self.program.tensor(ref.tensor).layout.itemsize

    def _step(self, ref: ir.TensorRef, fold: ir.Fold) -> int:
        """Bytes from one point of a fold to the next."""
        place = self.program.tensor(ref.tensor).layout.place(ref)
        return place.coefficient(fold.dim) + place.coefficient(fold.name)


def neighbours(body: ir.Statement) -> Iterator[tuple[ir.Loop, ir.Loop]]:
    """Loops of the same dim, one right inside the other, everywhere in a body."""
    pending: list[tuple[ir.Statement, dict[str, ir.Loop]]] = [(body, {})]
    while pending:
        statement, around = pending.pop()
        match statement:
            case ir.For(loop=loop, body=body):
                if loop.fold.dim in around:
                    yield around[loop.fold.dim], loop
                pending.append((body, {**around, loop.fold.dim: loop}))
            case ir.Block(body=several):
                pending += [(s, around) for s in several]
            case (
                ir.First(then=then, otherwise=otherwise) | ir.Within(then=then, otherwise=otherwise)
            ):
                pending += [(then, around), (otherwise, around)]


def in_halves(fold: ir.Fold, body: ir.Statement, least: int, reduced: bool) -> bool:
    """Whether pieces of a range, each half as long as the one before, lie within single iterations
    of the loops inside that are longer. A fragment of the matrix unit is not taken in pieces: it is
    read from its first row and column on; nor are lanes and dot products of a reduction: each adds
    up the same points whatever is left. Nor does a piece do what only the first row does."""
    inner = [*statements(body)]
    fragments = any(isinstance(s, ir.Matrix) for s in inner)
    firsts = (f for s in inner if isinstance(s, ir.First) for f in s.folds)
    if not reduced and any(first.dim == fold.dim for first in firsts):
        return False
    for loop in (s.loop for s in inner if isinstance(s, ir.For) and s.loop.fold.dim == fold.dim):
        steps, rest = divmod(loop.fold.step, least)
        if reduced and loop.kind not in (ir.Kind.SERIAL, ir.Kind.UNROLL):
            return False
        if fragments and loop.kind in (ir.Kind.MMA, ir.Kind.VECTOR):
            return False
        if loop.fold.step > 1 and (rest or steps & (steps - 1)):
            return False
    return True
