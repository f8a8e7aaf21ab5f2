"""Products on tensor cores, as ``cuda.emit.mma`` has them."""

from __future__ import annotations

from collections.abc import Sequence

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
from tcl.codegen.loopir.terms import factors
from tcl.grammar.syntax.types import FLOAT32


def record_mma(record: Record, loops: Sequence[ir.Loop], body: ir.Statement, place: Place) -> None:
    step = body.body[0] if isinstance(body, ir.Block) else body
    assert isinstance(step, ir.Accumulate)
    found = factors(step.value)
    assert found is not None
    rows = next(x.fold.dim for x in loops if x.fold.level == "half")
    columns = next(x.fold.dim for x in loops if x.kind is ir.Kind.VECTOR)
    depth = next(x.fold for x in loops if x.fold.level == "mma")
    over, _ = record.held[step.name]
    kept = {f.dim: f for f in over if f.level == "register"}
    terms = record.layout_of(found[0].ref).place(found[0].ref).terms
    first = any(record.geometry.dim_of(n) == rows for n, _ in terms)
    by_row, by_column = found if first else (found[1], found[0])
    if depth.by_warpgroup:
        # Each of the four warps has a quarter of what they read together.
        warps = WARPGROUP // WARP
        read = SLAB * (warps * MMA_ROWS + kept[columns].count * MMA_COLUMNS) // warps
        units = kept[columns].count * WARPGROUP_DEPTH // MMA_DEPTH
        record.goes_on(step.name, place)
        record.compute(place, {"wgmma": units, "panel": read / (BANKS * WORD)})
        return
    for load, dim, count in ((by_row, rows, 4), (by_column, columns, 2)):
        _matrix_fragments(record, load, dim, depth, kept.get(dim), count, place)
    record.goes_on(step.name, place)
    record.compute(record.scopes.entered(kept.values(), place), {"mma": 1})
    words = sum(n * (kept[d].count if d in kept else 1) for d, n in ((rows, 4), (columns, 2)))
    record.read_words = max(record.read_words, words)


def _matrix_fragments(
    record: Record,
    load: ir.Load,
    dim: str,
    depth: ir.Fold,
    kept: ir.Fold | None,
    count: int,
    place: Place,
) -> None:
    lane = record.threads % WARP
    if load.type == FLOAT32:
        within = record.scopes.entered([kept] if kept else [], place)
        for k in range(count):
            row = lane // 4 + (8 * (k % 2) if count == 4 else 0)
            point = lane % 4 + 4 * (k // 2 if count == 4 else k)
            at = _fragment_place(record, within, dim, row, depth, point)
            record.access(load.ref, at, place)
            record.compute(at, {"convert": 1})
        return
    pairs = count == 2 and kept is not None and kept.count % 2 == 0
    if kept is not None and pairs:
        kept = ir.Fold(dim, kept.level, 2 * kept.step, kept.count // 2)
    within = record.scopes.entered([kept] if kept else [], place, known=not pairs)
    along = record.layout_of(load.ref).step(load.ref, depth.name) == 1
    if pairs:
        row = lane // 16 * 8 + (lane % 8 if along else 0)
        point = lane // 8 % 2 * 8 if along else lane % 16
    elif count == 4:
        row = lane % 16 if along else lane // 8 % 2 * 8
        point = lane // 16 * 8 + (0 if along else lane % 8)
    else:
        row = lane % 8 if along else 0 * lane
        point = lane // 8 % 2 * 8 if along else lane % 16
    at = _fragment_place(record, within, dim, row, depth, point)
    layout = record.layout_of(load.ref)
    offset = record.scopes.linear_index(layout.place(load.ref), at)
    record.accesses.append(
        Access(
            *(Memory.MATRIX_READ, load.ref.tensor, 16, within, offset, place),
            matrices=4 if pairs else count,
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
