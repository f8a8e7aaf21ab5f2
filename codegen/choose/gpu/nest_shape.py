"""What a nest is like, for choosing its options: strides, and which operands are used again."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import loads, operands, values_of
from tcl.codegen.options.nest_options import PLAIN, NestOptions
from tcl.codegen.passes.fuse import refs
from tcl.codegen.passes.gpu.transposed import reads_in_order
from tcl.codegen.passes.split import is_whole
from tcl.common.dataclass import dataclass


def power_below(number: int) -> int:
    """The largest power of two that is not above a positive number."""
    return 1 << (max(1, number).bit_length() - 1)


def power_above(number: int) -> int:
    """The smallest power of two that is not below a positive number."""
    return 1 << (max(1, number) - 1).bit_length()


@dataclass(slots=True)
class OptionsDraft:
    """Options that are being chosen, by position of the dimension."""

    rank: int
    chunk: dict[int, int]
    threads: dict[int, int]
    register: dict[int, int]
    tile: dict[int, int]
    lanes: tuple[int, int] = (-1, 1)
    stage: tuple[int, ...] = ()
    buffers: int = 1
    mma: tuple[int, ...] = ()

    @staticmethod
    def empty(rank: int) -> OptionsDraft:
        return OptionsDraft(rank, {}, {}, {}, {})

    def of_part(self) -> OptionsDraft:
        """The same for a nest that makes parts of the results: these are its first dimension."""

        def moved(found: dict[int, int]) -> dict[int, int]:
            return {k + 1: n for k, n in found.items()}

        lane, width = self.lanes
        return replace(
            self,
            rank=self.rank + 1,
            chunk={0: 1, **moved(self.chunk)},
            threads=moved(self.threads),
            register=moved(self.register),
            tile=moved(self.tile),
            lanes=(lane + 1 if lane >= 0 else lane, width),
            mma=tuple(k + 1 for k in self.mma),
        )

    def options(self) -> NestOptions:
        """As options, with nothing left open."""

        def sizes(found: dict[int, int]) -> tuple[int, ...]:
            made = [found.get(k, 0) for k in range(self.rank)]
            while made and not made[-1]:
                made.pop()
            return tuple(made)

        return replace(
            PLAIN,
            tile=sizes(self.tile),
            vectorize=self.lanes,
            register=sizes(self.register),
            stage=self.stage,
            chunk=sizes(self.chunk),
            threads=sizes(self.threads),
            buffers=self.buffers,
            mma=self.mma,
        )


@dataclass(frozen=True)
class Shape:
    """A nest that has no loops over chunks yet."""

    program: ir.Program
    nest: ir.Nest

    @cached_property
    def results(self) -> list[int]:
        """Positions of the dimensions that are not reduced."""
        return [k for k, d in enumerate(self.nest.dims) if not d.reduction]

    @cached_property
    def reductions(self) -> list[int]:
        """Positions of those that are."""
        return [k for k, d in enumerate(self.nest.dims) if d.reduction]

    @cached_property
    def reads_in_order(self) -> bool:
        """Whether an operand lies in order along results that do: no panel is transposed then."""
        return reads_in_order(self.program, self.nest)

    @property
    def is_split(self) -> bool:
        """Whether another nest adds up the parts that this one makes."""
        names = (n.name.removesuffix(".whole") for n in self.program.nests if is_whole(n))
        return self.nest.name in names

    def extent(self, k: int) -> int:
        """Points of a dimension."""
        return self.nest.dims[k].extent

    def stride(self, ref: ir.TensorRef, k: int) -> int:
        """Elements from one point of a dimension to the next one's."""
        found = self._strides.get(ref)
        if found is None:
            layout = self.program.tensor(ref.tensor).layout
            found = tuple(map(abs, layout.steps(ref, (d.name for d in self.nest.dims))))
            self._strides[ref] = found
        return found[k]

    @cached_property
    def _strides(self) -> dict[ir.TensorRef, tuple[int, ...]]:
        """What was asked for before: choices ask many times."""
        return {}

    @cached_property
    def largest(self) -> int:
        """Bytes of the largest elements that are touched."""
        layouts = (self.program.tensor(r.tensor).layout for r in refs(self.nest))
        return max(x.itemsize for x in layouts)

    def lane_dim(self) -> int | None:
        """The dimension along which most of what is touched lies in memory in order."""
        best: tuple[tuple[int, int], int] | None = None
        for k, dim in enumerate(self.nest.dims):
            if dim.extent < 2:
                continue
            score = 0
            for ref in refs(self.nest):
                size = self.program.tensor(ref.tensor).layout
                points = min(math.prod(size.extents), 1 << 40)
                stride = self.stride(ref, k)
                score += points if stride == 1 else -points if stride > 1 else 0
            key = score, k
            if best is None or key > best[0]:
                best = key, k
        return best[1] if best else None

    def widest(self, k: int) -> int:
        """``vector`` for the widest accesses that there are: choices ask many times."""
        if k not in self._widest:
            self._widest[k] = self.vector(k)
        return self._widest[k]

    @cached_property
    def _widest(self) -> dict[int, int]:
        return {}

    def vector(self, k: int, *, most: int = 16) -> int:
        """Lanes that make accesses along a dimension ``most`` bytes wide; 1 where no tensor lies
        that way, rows are not whole vectors, or data say where one begins."""
        width = max(1, most // self.largest)
        reads = (x for v in values_of(self.nest.point) for x in loads(v))
        if any(self.stride(x.ref, k) == 1 and not x.ref.is_affine for x in reads):
            return 1  # such elements are read one by one
        for ref in refs(self.nest):
            if self.stride(ref, k) == 1:
                for other in range(len(self.nest.dims)):
                    step = self.stride(ref, other)
                    while other != k and self.extent(other) > 1 and width > 1 and step % width:
                        width //= 2
        alone = not any(self.stride(ref, k) == 1 for ref in refs(self.nest))
        return 1 if alone or self.extent(k) < width else width

    @cached_property
    def pair(self) -> tuple[int, int] | None:
        """Two operands that are both used again: each by results that the other one moves with.
        The first and the second in order of appearance, of those with the most points."""
        found: list[tuple[int, tuple[int, int]]] = []
        reads = operands(self.nest.point)
        for a, one in enumerate(reads):
            for b, other in enumerate(reads[a + 1 :], a + 1):
                if all(x.ref.is_affine for x in (one, other)):
                    own = math.prod(self.extent(k) for k in self.side(one, other))
                    its = math.prod(self.extent(k) for k in self.side(other, one))
                    if own >= 4 and its >= 4 and self.depth(one, other) >= 2:
                        found.append((own * its, (a, b)))
        return max(found)[1] if found else None

    @cached_property
    def factors(self) -> tuple[ir.Load, ...]:
        """The operands of ``pair``; none without one."""
        reads = operands(self.nest.point)
        return tuple(reads[k] for k in self.pair or ())

    def moves(self, load: ir.Load, k: int) -> bool:
        """Whether an operand depends on a dimension."""
        name = self.nest.dims[k].name
        return any(s.coefficient(name) for s in load.ref.affine)

    def side(self, one: ir.Load, other: ir.Load) -> list[int]:
        """The results that one operand moves with and the other one does not."""
        return [k for k in self.results if self.moves(one, k) and not self.moves(other, k)]

    def depth(self, one: ir.Load, other: ir.Load) -> int:
        """Points of the reductions that both move with."""
        both = (k for k in self.reductions if self.moves(one, k) and self.moves(other, k))
        return math.prod(self.extent(k) for k in both)


def blocks_of(shape: Shape, made: OptionsDraft) -> int:
    """Blocks of a nest; a chunk of 0 is a whole dimension."""
    return math.prod(
        [-(-shape.extent(k) // (made.chunk[k] or shape.extent(k))) for k in shape.results]
    )
