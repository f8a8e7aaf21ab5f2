"""The register tile of a nest as knobs: every combination of them fits the registers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tcl.codegen import ir
from tcl.codegen.device import CpuProfile
from tcl.codegen.passes.register import MAX_POINTS, vector_registers
from tcl.tuner.knobs import Knob, Value

_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 16, 20, 24, 28)
_SECOND_ROWS = (1, 2, 3, 4)
_VECTORS = (1, 2, 3, 4, 6)
_UNROLL = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class RegisterKnobs:
    """Rows of one or two output dimensions by vectors of the one with the lanes, and how often
    the innermost reduction is written out.

    A tile is one knob, so that no two of its sizes are chosen which do not fit together.
    """

    rank: int
    results: tuple[int, ...]
    """Positions of the output dimensions with more than one point."""
    reduction: int
    """Position of the last reduction; -1 if there is none."""
    tile: tuple[Knob, ...]
    """``rows, second rows, vectors``; empty when there are no such dimensions."""
    row: tuple[Knob, ...]
    """Which dimension the rows are: its place among those without lanes. The second rows are
    those of the next one."""
    unroll: tuple[Knob, ...]

    @staticmethod
    def of(
        nest: ir.Nest,
        results: tuple[int, ...],
        device: CpuProfile,
        also: tuple[int, ...] = (),
        lanes: int = -1,
    ) -> RegisterKnobs:
        """The knobs of an untiled nest; ``results`` are its movable output dimensions. The register
        tile ``also``, with these lanes, is among the choices."""
        reductions = [i for i, d in enumerate(nest.dims) if d.reduction and d.extent > 1]
        reduction = reductions[-1] if reductions else -1
        tile: tuple[Knob, ...] = ()
        row: tuple[Knob, ...] = ()
        if results:
            longest = max(nest.dims[i].extent for i in results)
            fitting = set(_tiles(len(results) - 1, longest, vector_registers(device)))
            own = (also + (0,) * len(nest.dims))[: len(nest.dims)]
            fitting.add(_said(own, results, lanes))
            texts = tuple(sorted(fitting, key=_order))
            if len(texts) > 1:
                tile = (Knob(f"{nest.name}.register", texts, texts[0], ordered=True),)
        if tile and len(results) > 2:
            places = tuple(range(len(results) - 1))
            row = (Knob(f"{nest.name}.row", places, 0, ordered=False),)
        unroll: tuple[Knob, ...] = ()
        if reduction >= 0:
            extent = nest.dims[reduction].extent
            asked = also[reduction] if reduction < len(also) and lanes != reduction else 1
            factors = tuple(sorted({u for u in (*_UNROLL, max(1, asked)) if u <= extent}))
            unroll = (Knob(f"{nest.name}.unroll", factors, 1, ordered=True),)
        return RegisterKnobs(len(nest.dims), results, reduction, tile, row, unroll)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """All of them."""
        return self.tile + self.row + self.unroll

    def sizes(self, values: Mapping[str, Value], lanes: int) -> tuple[int, ...]:
        """The register tile; ``lanes`` is the dimension that has them."""
        sizes = [0] * self.rank
        if self.tile:
            rows, second, vectors = _numbers(values[self.tile[0].name])
            first, next_ = self._row_dims(values, lanes)
            for position, size in ((lanes, vectors), (first, rows), (next_, second)):
                if size > 1:
                    sizes[position] = size
        if self.unroll:
            factor = int(values[self.unroll[0].name])
            if factor > 1:
                sizes[self.reduction] = factor
        return tuple(sizes) if any(sizes) else ()

    def values(self, sizes: tuple[int, ...], lanes: int) -> dict[str, Value] | None:
        """Knob values for a register tile; None if the knobs cannot say it."""
        wanted = tuple(size if size > 1 else 0 for size in sizes + (0,) * (self.rank - len(sizes)))
        found: dict[str, Value] = {k.name: k.default for k in self.knobs}
        if self.tile:
            found[self.tile[0].name] = _said(wanted, self.results, lanes)
        if self.unroll and not (self.tile and lanes == self.reduction):
            found[self.unroll[0].name] = max(1, wanted[self.reduction])
        for place in self.row[0].choices if self.row else (0,):
            if self.row:
                found[self.row[0].name] = place
            if any(found[k.name] not in k.choices for k in self.knobs):
                return None
            again = self.sizes(found, lanes)
            if again + (0,) * (self.rank - len(again)) == wanted:
                return found
        return None

    def redundant(self, values: Mapping[str, Value], lanes: int) -> str | None:
        """Why this configuration is another one's double, or none; ``lanes`` as in ``sizes``."""
        points = math.prod(max(1, size) for size in self.sizes(values, lanes))
        if points > MAX_POINTS:
            return f"{points} points are too many to be written out"
        if (
            self.tile
            and self.unroll
            and lanes == self.reduction
            and values[self.unroll[0].name] != 1
        ):
            return "the vectors of a reduction are its unroll factor"
        others = sum(i != lanes for i in self.results)
        if self.tile:
            rows, second, _ = _numbers(values[self.tile[0].name])
            if (rows > 1 and not others) or (second > 1 and others < 2):
                return "there are not as many dimensions for rows"
        if not self.row or values[self.row[0].name] == self.row[0].choices[0]:
            return None
        rows, second, _ = _numbers(values[self.tile[0].name])
        if rows == 1:
            return "without rows there is no choice of the dimension that they are of"
        if rows == second and others == 2 and len(self.row[0].choices) > 1:
            return "equal rows of two dimensions can be said in two ways"
        return None

    def _row_dims(self, values: Mapping[str, Value], lanes: int) -> tuple[int, int]:
        others = [i for i in self.results if i != lanes]
        if not others:
            return lanes, lanes
        place = int(values[self.row[0].name]) if self.row else 0
        return others[place % len(others)], others[(place + 1) % len(others)]


def _tiles(others: int, longest: int, registers: int) -> Iterator[str]:
    """Tiles that fit: the accumulators, one row of vectors, and a value beside them."""
    for vectors in _VECTORS:
        for rows in _ROWS if others else (1,):
            for second in _SECOND_ROWS if others > 1 else (1,):
                fits = rows * second * vectors + vectors + 1 <= registers
                if fits and second <= rows and max(rows, vectors) <= longest:
                    yield f"{rows} {second} {vectors}"


def _order(text: str) -> tuple[int, int, int]:
    rows, second, vectors = _numbers(text)
    return vectors, rows * second, rows


def _said(sizes: tuple[int, ...], results: tuple[int, ...], lanes: int) -> str:
    """A register tile as a knob's value."""
    vectors = sizes[lanes] if lanes >= 0 else 0
    rows = sorted((sizes[i] for i in results if i != lanes and sizes[i]), reverse=True)
    first, second, *_ = (*rows, 1, 1)
    return f"{max(1, first)} {max(1, second)} {max(1, vectors)}"


def _numbers(text: Value) -> tuple[int, int, int]:
    rows, second, vectors = map(int, str(text).split())
    return rows, second, vectors
