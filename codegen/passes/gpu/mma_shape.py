"""Tensor cores: how a warp's threads hold the parts of a product of small matrices.

PTX ISA, "Matrix fragments for mma.m16n8k16" and ".m16n8k8": of 16 rows and 8 columns of results,
thread ``t`` has rows ``t / 4`` and ``t / 4 + 8``, columns ``t % 4 * 2`` and the next one. In folds
of the row's dimension, by step: 8 threads of 1, two halves of 8, registers of 16, warps; of the
column's: two lanes of 1, 4 threads of 2, registers of 8, warps. So what is done with results needs
to know nothing of tensor cores.

On sm_90 the four warps of a *warpgroup* multiply 64 rows by up to 256 columns together, and read
both factors from panels (PTX ISA, "wgmma.mma_async", m64nNk16). Results lie as those of four warps
that have 16 rows each. A nest is computed so if 64 points of the reduction are added up at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcl.codegen.common.warps import (
    MMA_COLUMNS,
    MMA_DEPTH,
    MMA_ROWS,
    WARPGROUP,
    WARPGROUP_DEPTH,
)
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import factors, mma_type
from tcl.codegen.passes.base import why_not_along
from tcl.grammar.syntax.types import BFLOAT16, FLOAT16, FLOAT32

ROWS, COLUMNS, DEPTH = MMA_ROWS, MMA_COLUMNS, MMA_DEPTH
THREADS = ("thread", "warp")
"""Levels of folds that threads share."""
_ROW_THREADS, _COLUMN_THREADS, _LANES, _HALVES = 8, 4, 2, 2

WARPGROUP_COLUMNS = (8, 16, 32)
"""Registers along columns, each for 8 of them, of a thread of a warpgroup."""

Sizes = Mapping[str, tuple[int, int, int]]
"""Dimension → lanes, threads, registers."""


def mma_folds(dim: str, role: int, count: int, held: int) -> list[ir.Fold]:
    """The folds of a dimension's threads and registers: of rows (0), columns (1), or the reduction
    (2), of which so many points are added up at once. Lanes are apart."""
    if role == 2:
        return [ir.Fold(dim, "mma", 1, held)]
    if role == 0:
        kept, warps = held // 2, count // _ROW_THREADS
        folds = [ir.Fold(dim, "thread", 1, _ROW_THREADS), ir.Fold(dim, "half", _ROW_THREADS, 2)]
        step = ROWS
    else:
        kept, warps = held, count // _COLUMN_THREADS
        folds = [ir.Fold(dim, "thread", _LANES, _COLUMN_THREADS)]
        step = COLUMNS
    if kept > 1:
        folds.append(ir.Fold(dim, "register", step, kept))
    if warps > 1:
        folds.append(ir.Fold(dim, "warp", step * kept, warps))
    return folds


def mma_depth(value: ir.Value) -> int:
    """Points of a reduction that are added up at once."""
    return 8 if mma_type(value) == FLOAT32 else DEPTH


def why_no_blocks_of_warpgroups(
    rows: tuple[int, int, int], columns: tuple[int, int, int]
) -> str | None:
    """Why warpgroups cannot have these lanes, threads and registers; None if they can."""
    each = WARPGROUP // _COLUMN_THREADS
    along = rows[1] % each == 0 and rows[2] == _HALVES
    if along and columns[1] == _COLUMN_THREADS and columns[2] in WARPGROUP_COLUMNS:
        return None
    return (
        f"warpgroups need threads in multiples of {each} and {_HALVES} registers along rows, "
        f"{_COLUMN_THREADS} threads and {WARPGROUP_COLUMNS[0]}, {WARPGROUP_COLUMNS[1]} or "
        f"{WARPGROUP_COLUMNS[2]} registers along columns"
    )


def why_no_mma(
    nest: ir.Nest, mma: tuple[int, ...], sizes: Sizes, profile: GpuProfile
) -> str | None:
    """Why tensor cores cannot be used in this nest, or None if they can."""
    if profile.capability < (8, 0):
        return f"{profile.name} has no tensor cores for these types: they are used from sm_80 on"
    if reason := why_not_along(nest, mma):
        return reason
    dims = [nest.dims[k] for k in mma]
    if nest.reduces and (reason := _why_no_product(nest, dims)):
        return reason
    return _why_not_so_many(nest, dims, sizes, profile)


def _why_no_product(nest: ir.Nest, dims: list[ir.Dim]) -> str | None:
    found = factors(nest.point.value)
    if nest.point.op != "+" or found is None or mma_type(nest.point.value) is None:
        return "it does not sum products of two reads of float16, bfloat16 or float32"
    if nest.point.type not in (FLOAT16, BFLOAT16, FLOAT32):
        return f"tensor cores do not compute sums of {nest.point.type}"
    rows, columns, depth = (d.name for d in dims)
    names = [x.ref.names for x in found]
    for row, column in (names, names[::-1]):
        apart = columns not in row and rows not in column
        if apart and {rows, depth} <= row and {columns, depth} <= column:
            return None
    return f"one factor must have {rows} and {depth}, and the other one {columns} and {depth}"


def _why_not_so_many(
    nest: ir.Nest, dims: list[ir.Dim], sizes: Sizes, profile: GpuProfile
) -> str | None:
    lanes, threads, held = sizes[dims[0].name]
    if lanes != 1 or threads % _ROW_THREADS or held % 2:
        return f"rows need threads in multiples of {_ROW_THREADS} and an even number of registers"
    lanes, threads, held = sizes[dims[1].name]
    if lanes != _LANES or threads % _COLUMN_THREADS:
        return f"columns need {_LANES} lanes and threads in multiples of {_COLUMN_THREADS}"
    if len(dims) == 3:
        deep = mma_depth(nest.point.value)
        if sizes[dims[2].name] == (1, 1, WARPGROUP_DEPTH) and deep == DEPTH:
            if profile.capability != (9, 0):
                return f"{profile.name} has no warpgroups: {WARPGROUP_DEPTH} points need sm_90"
            if reason := why_no_blocks_of_warpgroups(*(sizes[d.name] for d in dims[:2])):
                return reason
        elif sizes[dims[2].name] != (1, 1, deep):
            return f"the reduction needs {deep} registers, and no threads or lanes"
    named = {d.name for d in dims}
    if any(sizes[d.name] != (1, 1, 1) for d in nest.dims if d.name not in named):
        return "the other dimensions have no threads or registers of their own"
    return None
