"""What is measured on a GPU: the suite in float32, and what the bars ask for beyond it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from tcl.bench.rows import SUITE, Row, select

LARGE = 64 << 20
"""Bytes of the largest array from which on a row has to come near the copy bandwidth."""
_STREAMING = ("bias_relu_scale", "softmax_twice", "layernorm", "moments")
"""Defs that are limited by memory, for which the copy bandwidth is a bar."""


@dataclass(frozen=True, slots=True)
class GpuRow(Row):
    """A row, and what it counts for."""

    suite: bool = True
    """Whether the row counts for the mean over the suite."""
    first: bool = False
    """Whether it is measured before others, as a bar asks for it."""

    @property
    def streams(self) -> bool:
        """Whether its bar is the copy bandwidth."""
        if self.entry not in _STREAMING:
            return False
        cost = self.cost()
        return max(cost.read, cost.written) >= LARGE


def _row(row: Row, **changes: Any) -> GpuRow:
    given = {f.name: getattr(row, f.name) for f in fields(Row)}
    return GpuRow(**{**given, **changes})


def _like(name: str) -> Row:
    (found,) = (row for row in SUITE if row.name == name)
    return found


def _square(size: int, type_: str = "float32") -> GpuRow:
    label = f"matmul {size}" + (f" {type_}" if type_ != "float32" else "")
    sizes = f"M={size},N={size},K={size}"
    like = _like("matmul 512")
    return _row(like, name=label, sizes=sizes, type=type_, suite=False, first=True)


def _wide(like: str, name: str, sizes: str, quick: bool) -> GpuRow:
    return _row(_like(like), name=name, sizes=sizes, quick=quick, suite=False, first=True)


def _first(row: Row) -> bool:
    return row.entry in (*_STREAMING, "group_convolution") or row.name in (
        "matmul 1024",
        "matmul 2048",
    )


EXTRA: tuple[GpuRow, ...] = (
    _square(4096),
    _square(8192),
    _square(4096, "float16"),
    _square(4096, "bfloat16"),
    _wide("softmax 4096x1024", "softmax 16384x1024", "N=16384,D=1024", True),
    _wide("softmax 4096x1024", "softmax 65536x1024", "N=65536,D=1024", False),
    _wide("layernorm 4096x1024", "layernorm 16384x1024", "N=16384,D=1024", True),
    _wide("layernorm 4096x1024", "layernorm 65536x1024", "N=65536,D=1024", False),
    _wide("bias+relu+scale 4096x4096", "bias+relu+scale 16384x4096", "M=16384,N=4096", False),
)
_SUITE = tuple(_row(row, quick=True, first=_first(row)) for row in SUITE)
GPU_ROWS: tuple[GpuRow, ...] = tuple(
    sorted((*_SUITE, *EXTRA), key=lambda row: not row.first)  # stable: else in the suite's order
)


def gpu_rows(pattern: str | None, quick: bool) -> list[GpuRow]:
    """The rows that a pattern selects, those that the bars need first; see ``select``."""
    found = select(pattern, quick, GPU_ROWS)
    return [row for row in found if isinstance(row, GpuRow)]


_REHEARSED = {"masked_convolution": "B=2,C=3,H=5,W=4,F=4,K=1"}
"""Where the def's test sizes are none that peers can do."""


def rehearsed(row: GpuRow) -> GpuRow:
    """The same row on sizes so small that nothing takes time."""
    return replace(row, sizes=_REHEARSED.get(row.entry, "test"))
