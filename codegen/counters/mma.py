"""Products on tensor cores."""

from __future__ import annotations

import numpy as np

from tcl.codegen.common.warps import (
    MMA_COLUMNS,
    MMA_DEPTH,
    MMA_ROWS,
    SLAB,
    WARPGROUP,
    WARPGROUP_DEPTH,
)
from tcl.codegen.counters.places import Linear, Place
from tcl.codegen.counters.record import Record
from tcl.codegen.counters.requests import Access, Memory
from tcl.codegen.devices.banks import BANKS, WARP, WORD
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.mma import Factor, Product
from tcl.grammar.syntax.types import FLOAT32


def record_mma(record: Record, product: Product, place: Place) -> None:
    name, by_column = product.accumulate.name, product.factors[1]
    if product.depth.by_warpgroup:
        # Each of the four warps has a quarter of what they read together.
        assert by_column.kept is not None
        warps, columns = WARPGROUP // WARP, by_column.kept.count
        read = SLAB * (warps * MMA_ROWS + columns * MMA_COLUMNS) // warps
        units = columns * WARPGROUP_DEPTH // MMA_DEPTH
        record.goes_on(name, place)
        record.compute(place, {"wgmma": units, "panel": read / (BANKS * WORD)})
        return
    for factor in product.factors:
        _fragments(record, factor, product.depth, place)
    record.goes_on(name, place)
    kept = [f.kept for f in product.factors if f.kept is not None]
    record.compute(record.scopes.entered(kept, place), {"mma": 1})
    words = sum(f.words * (f.kept.count if f.kept else 1) for f in product.factors)
    record.read_words = max(record.read_words, words)


def _fragments(record: Record, factor: Factor, depth: ir.Fold, place: Place) -> None:
    """What a thread reads of a factor."""
    lane, ref = record.threads % WARP, factor.load.ref
    read = [] if factor.read is None else [factor.read]
    within = record.scopes.entered(read, place, known=not factor.pairs)
    if factor.load.type == FLOAT32:
        for row, point in factor.singles(lane):
            at = _fragment_place(record, within, factor.dim, row, depth, point)
            record.access(ref, at, place)
            record.compute(at, {"convert": 1})
        return
    row, point = factor.matrices(lane)
    at = _fragment_place(record, within, factor.dim, row, depth, point)
    layout = record.layout_of(ref)
    offset = record.scopes.linear_index(layout.place(ref), at)
    record.accesses.append(
        Access(
            *(Memory.MATRIX_READ, ref.tensor, 16, within, offset, place),
            matrices=4 if factor.pairs else factor.words,
            swizzle=layout.swizzle,
        )
    )
    record.compute(within, {"memory": 1})


def _fragment_place(
    record: Record,
    place: Place,
    dim: str,
    row: np.ndarray[tuple[int], np.dtype[np.int64]],
    depth: ir.Fold,
    point: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> Place:
    """The place with what a thread has of a dimension and of the reduction."""
    found = dict[str, Linear]()
    for fold in record.geometry.folds[dim]:
        if fold.level in ("thread", "half", "lane"):
            found[fold.name] = Linear(0, {}, row) if fold.level == "thread" else Linear()
    return place.at({**found, depth.name: Linear(0, {}, point)})
