"""What is measured on a GPU: the suite in float32, and what the bars ask for beyond it."""

from __future__ import annotations

from dataclasses import replace

from tcl.bench.rows import SUITE, SUITE_KINDS, Row, select

LARGE = 64 << 20
"""Bytes of the largest array from which on a row has to come near the copy bandwidth."""
_STREAMING = ("bias_relu_scale", "softmax_twice", "layernorm", "moments")
"""Defs that are limited by memory, for which the copy bandwidth is a bar."""


def streams(row: Row) -> bool:
    """Whether the bar of a row is the copy bandwidth."""
    cost = row.cost()
    return row.entry in _STREAMING and max(cost.read, cost.written) >= LARGE


def in_suite(row: Row) -> bool:
    """Whether a row counts for the mean over the suite."""
    return row.kind in SUITE_KINDS


def asked(row: Row) -> bool:
    """Whether a bar asks for a row, so that it is measured before others."""
    asked = (*_STREAMING, "group_convolution")
    return row.entry in asked or row.name in ("matmul 1024", "matmul 2048") or not in_suite(row)


def _large(like: str, name: str, sizes: str, type_: str = "float32", quick: bool = True) -> Row:
    (row,) = (row for row in SUITE if row.name == like)
    kind = f"large {row.kind}"
    return replace(row, name=name, kind=kind, sizes=sizes, type=type_, quick=quick)


def _square(extent: int, type_: str = "float32") -> Row:
    name = f"matmul {extent}" + (f" {type_}" if type_ != "float32" else "")
    return _large("matmul 512", name, f"M={extent},N={extent},K={extent}", type_)


EXTRA = (
    _square(4096),
    _square(8192),
    _square(4096, "float16"),
    _square(4096, "bfloat16"),
    *(
        _large(f"{work} 4096x1024", f"{work} {n}x1024", f"N={n},D=1024", quick=n == 16384)
        for work in ("softmax", "layernorm")
        for n in (16384, 65536)
    ),
    _large(
        "bias+relu+scale 4096x4096", "bias+relu+scale 16384x4096", "M=16384,N=4096", quick=False
    ),
    *(
        replace(
            _square(2048), name=f"{entry} 2048 {how}", file="tmm", entry=entry, quick=entry == "mtm"
        )
        for entry, how in (("tmm", "NT"), ("mtm", "TN"))
    ),
    *(
        _large("matmul 512", f"matmul {m}x{n}x4096", f"M={m},N={n},K=4096", quick=m < n)
        for m, n in ((16, 4096), (4096, 16))
    ),
    replace(
        _large(
            "attention scores B8 S256 D64",
            "attention B16 S1024 D64",
            "B=16,S=1024,T=1024,D=64,E=64",
        ),
        entry="attention",
        results=("O",),
    ),
)
GPU_ROWS: tuple[Row, ...] = tuple(
    sorted(
        (*(replace(row, quick=True) for row in SUITE), *EXTRA),
        key=lambda row: not asked(row),  # stable: else in the suite's order
    )
)


def gpu_rows(pattern: str | None, quick: bool) -> list[Row]:
    """The rows that a pattern selects, those that the bars need first; see ``select``."""
    return select(pattern, quick, GPU_ROWS)


_REHEARSED = {"masked_convolution": "B=2,C=3,H=5,W=4,F=4,K=1"}
"""Where the def's test sizes are none that peers can do."""


def rehearsed(row: Row) -> Row:
    """The same row on sizes so small that nothing takes time."""
    return replace(row, sizes=_REHEARSED.get(row.entry, "test"))
