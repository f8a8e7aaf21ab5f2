"""The suite as data: each row is a def of an example file with sizes, and what it costs.

``flops`` counts the steps of all floating-point reductions and the distinct values that the def
computes from others by ``+ - * / min max`` or a built-in, each as one operation however often it
is written or used; arithmetic on constants and subscripts is free. ``read`` and ``written`` are
the bytes that must move at least once: each input element that is used, each element of
``results``. Work that nobody can avoid, so that a row's time has a floor.
``tests/tcl/bench/test_bench.py`` counts both point by point on small sizes.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

from tcl.arrays.annotations import parse_sizes
from tcl.grammar.check import check
from tcl.grammar.checked import CheckedDef
from tcl.grammar.errors import ArgumentError

EXAMPLES = Path(__file__).parent / "examples"

Formula: TypeAlias = Callable[[Any], int]
"""Sizes as attributes, to a count."""

PRODUCTS = "matrix products"
CONVOLUTIONS = "convolutions"
FUSED = "fused"
SUMS = "sums"
KINDS = (PRODUCTS, CONVOLUTIONS, FUSED, SUMS)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    kind: str
    """One of ``KINDS``."""
    file: str
    """Stem of the example file."""
    entry: str
    sizes: str
    """A label of the def's ``# sizes`` lines."""
    results: tuple[str, ...]
    """The outputs that peers compute too. What else the def returns, only we write."""
    flop_formula: Formula = field(repr=False)
    read_formula: Formula = field(repr=False)
    """Elements that must be read, times 4; tables of bytes are counted by the formula."""
    written_formula: Formula = field(repr=False)
    batch: str = ""
    """A size symbol along which the work falls apart: dimension 0 of the results. On large rows
    only a sample of it is compared with the reference."""
    quick: bool = True
    """Part of a run with ``--quick``."""

    @property
    def text(self) -> str:
        """The example file."""
        return _text(self.file)

    @property
    def checked(self) -> CheckedDef:
        """The def."""
        return _defs(self.file)[self.entry]

    @property
    def values(self) -> dict[str, int]:
        """Size symbol to value."""
        return dict(parse_sizes(self.sizes, self.checked))

    def flops(self, sizes: Mapping[str, int] | None = None) -> int:
        """Floating-point operations."""
        return self.flop_formula(SimpleNamespace(**(sizes or self.values)))

    def read(self, sizes: Mapping[str, int] | None = None) -> int:
        """Bytes read."""
        return self.read_formula(SimpleNamespace(**(sizes or self.values)))

    def written(self, sizes: Mapping[str, int] | None = None) -> int:
        """Bytes written."""
        return self.written_formula(SimpleNamespace(**(sizes or self.values)))


@cache
def _text(file: str) -> str:
    try:
        return (EXAMPLES / f"{file}.tc").read_text("utf-8")
    except OSError as error:
        raise ArgumentError(f"the example {file}.tc cannot be read: {error.strerror}") from None


@cache
def _defs(file: str) -> dict[str, CheckedDef]:
    return check(_text(file), f"{file}.tc")


def select(pattern: str | None, quick: bool = False, rows: tuple[Row, ...] = ()) -> list[Row]:
    """The rows whose name, def or kind fits one of the comma-separated shell patterns (a pattern
    without wildcards fits what contains it). ``ArgumentError`` if none does."""
    found = [row for row in rows or ROWS if row.quick or not quick]
    if pattern is None:
        return found
    patterns = [p.strip().lower() for p in pattern.split(",") if p.strip()]
    patterns = [p if any(c in p for c in "*?[") else f"*{p}*" for p in patterns]
    found = [
        row
        for row in rows or ROWS  # who names a row wants it, quick or not
        if any(
            fnmatch.fnmatch(name.lower(), p)
            for p in patterns
            for name in (row.name, row.entry, row.kind)
        )
    ]
    if not found:
        names = ", ".join(row.name for row in rows or ROWS)
        raise ArgumentError(f"no row fits '{pattern}'; rows are: {names}")
    return found


_MATMUL = Row(
    "matmul 512", PRODUCTS, "matmul", "matmul", "small", ("C",),
    lambda s: 2 * s.M * s.N * s.K,
    lambda s: 4 * (s.M * s.K + s.K * s.N),
    lambda s: 4 * s.M * s.N,
    batch="M",
)  # fmt: skip
_TMM = Row(
    "tmm 128x1024x1024", PRODUCTS, "tmm", "tmm", "medium", ("C",),
    lambda s: 2 * s.M * s.N * s.K,
    lambda s: 4 * (s.M * s.K + s.N * s.K),
    lambda s: 4 * s.M * s.N,
    batch="M",
)  # fmt: skip
_GROUPED = Row(
    "grouped conv C4@56", CONVOLUTIONS, "group_convolution", "group_convolution", "c4", ("O",),
    lambda s: s.N * s.G * s.F * _out(s.H, s.KH) * _out(s.W, s.KW) * (2 * s.C * s.KH * s.KW + 1),
    lambda s: 4 * s.G * (s.N * s.C * s.H * s.W + s.F * s.C * s.KH * s.KW + s.F),
    lambda s: 4 * s.N * s.G * s.F * _out(s.H, s.KH) * _out(s.W, s.KW),
    batch="N",
)  # fmt: skip
_GROUP_NORM = Row(
    "group norm N4 C512 12x12", FUSED, "group_normalization", "group_normalization_single",
    "small", ("O",),
    lambda s: s.N * s.G * (s.D * s.H * s.W * 7 + 4),
    lambda s: 4 * s.G * (s.N * s.D * s.H * s.W + 2 * s.D),
    lambda s: 4 * s.N * s.G * s.D * s.H * s.W,
    batch="N",
)  # fmt: skip


def _out(size: int, window: int) -> int:
    """The positions of a window."""
    return size - window + 1


def _wavenet_flops(s: Any) -> int:
    t = s.RECEPTIVE_FIELD
    taps = s.DILATION_C * s.RESIDUAL_C * (3 * t + max(0, t - s.DILATION))
    gate = s.DILATION_C * t * 6
    residual = s.RESIDUAL_C * t * (1 + 2 * s.DILATION_C)
    skip = s.SKIP_C * t * (2 * s.DILATION_C + 1)
    return int(s.B * (2 * taps + gate + residual + skip))


ROWS: tuple[Row, ...] = (
    _MATMUL,
    replace(_MATMUL, name="matmul 1024", sizes="medium"),
    replace(_MATMUL, name="matmul 2048", sizes="large", quick=False),
    _TMM,
    replace(_TMM, name="tmm 128x16384x4096", sizes="large", quick=False),
    Row(
        "C3 128x1024x1000", PRODUCTS, "c3", "c3", "large", ("C3",),
        lambda s: 2 * s.B * s.WX * s.WY,
        lambda s: 4 * (s.B * s.WX + s.WY * s.WX),
        lambda s: 4 * s.B * s.WY,
        batch="B",
    ),
    Row(
        "batched 500 26x72x26", PRODUCTS, "batch_matmul", "batch_matmul", "large", ("Z",),
        lambda s: 2 * s.B * s.N * s.M * s.K,
        lambda s: 4 * s.B * (s.N * s.M + s.M * s.K),
        lambda s: 4 * s.B * s.N * s.K,
        batch="B",
    ),
    Row(
        "Kronecker step", PRODUCTS, "kronecker", "kronecker3_1", "step", ("XW2",),
        lambda s: 2 * s.M * s.N0 * s.N1 * s.N2 * s.D2,
        lambda s: 4 * (s.M * s.N0 * s.N1 * s.N2 + s.D2 * s.N2),
        lambda s: 4 * s.M * s.N0 * s.N1 * s.D2,
        batch="M",
    ),
    Row(
        "MLP1 128x2000x128", PRODUCTS, "mlp1", "mlp1", "large", ("O1",),
        lambda s: s.B * s.N * (2 * s.M + 2),
        lambda s: 4 * (s.B * s.M + s.M * s.N + s.N),
        lambda s: 4 * s.B * s.N,
        batch="B",
    ),
    Row(
        "conv 3x3 N32 C16 F16 56x56", CONVOLUTIONS, "convolution", "convolution", "large", ("O",),
        lambda s: s.N * s.F * _out(s.H, s.KH) * _out(s.W, s.KW) * (2 * s.C * s.KH * s.KW + 1),
        lambda s: 4 * (s.N * s.C * s.H * s.W + s.F * s.C * s.KH * s.KW + s.F),
        lambda s: 4 * s.N * s.F * _out(s.H, s.KH) * _out(s.W, s.KW),
        batch="N",
    ),
    _GROUPED,
    replace(_GROUPED, name="grouped conv C8@28", sizes="c8"),
    replace(_GROUPED, name="grouped conv C16@14", sizes="c16"),
    replace(_GROUPED, name="grouped conv C32@7", sizes="c32"),
    Row(  # counted as if nothing were masked: what is masked depends on the data
        "masked 1x1 conv", CONVOLUTIONS, "masked_convolution", "masked_convolution", "small",
        ("O",),
        lambda s: s.B * s.C * (
            s.H * s.W + 2 * s.F * _out(s.H, s.K) * _out(s.W, s.K) * s.K * s.K
        ),
        lambda s: 4 * (s.B * s.C * s.H * s.W + s.F * s.C * s.K * s.K) + s.F * s.C,
        lambda s: 4 * s.B * s.F * _out(s.H, s.K) * _out(s.W, s.K),
        batch="B",
    ),
    Row(
        "MLP3", FUSED, "mlp3", "mlp3", "large", ("O4",),
        lambda s: s.B * (s.O * (2 * s.N + 2) + s.P * (2 * s.O + 2) + s.Q * (2 * s.P + 2)),
        lambda s: 4 * (s.B * s.N + s.O * (s.N + 1) + s.P * (s.O + 1) + s.Q * (s.P + 1)),
        lambda s: 4 * s.B * s.Q,
        batch="B",
    ),
    _GROUP_NORM,
    replace(_GROUP_NORM, name="group norm N8 C512 48x48", sizes="medium"),
    Row(
        "layernorm 4096x1024", FUSED, "layernorm", "layernorm", "large", ("O",),
        lambda s: s.N * (s.D * 7 + 4),
        lambda s: 4 * (s.N * s.D + 2 * s.D + 1),
        lambda s: 4 * s.N * s.D,
        batch="N",
    ),
    Row(
        "moments 1024x36864", FUSED, "moments", "moments", "large", ("mean", "var"),
        lambda s: s.N * (3 * s.K + 4),
        lambda s: 4 * s.N * s.K,
        lambda s: 4 * 2 * s.N,
        batch="N",
    ),
    Row(
        "softmax 4096x1024", FUSED, "softmax", "softmax_twice", "large", ("O",),
        lambda s: 5 * s.N * s.D,
        lambda s: 4 * s.N * s.D,
        lambda s: 4 * s.N * s.D,
        batch="N",
    ),
    Row(
        "attention scores B8 S256 D64", FUSED, "attention_scores", "attention_scores", "large",
        ("P",),
        lambda s: s.B * s.S * s.S * (2 * s.D + 6),
        lambda s: 4 * 2 * s.B * s.S * s.D,
        lambda s: 4 * s.B * s.S * s.S,
        batch="B",
    ),
    Row(
        "bias+relu+scale 4096x4096", FUSED, "bias_relu_scale", "bias_relu_scale", "large", ("O",),
        lambda s: 3 * s.M * s.N,
        lambda s: 4 * (s.M * s.N + s.N + 1),
        lambda s: 4 * s.M * s.N,
        batch="M",
    ),
    Row(
        "stencil 2048x2048", FUSED, "stencil", "stencil", "large", ("O",),
        lambda s: 5 * (s.M - 2) * (s.N - 2),
        lambda s: 4 * (s.M * s.N - 4),  # the corners are in no one's neighbourhood
        lambda s: 4 * (s.M - 2) * (s.N - 2),
    ),
    Row(
        "WaveNet cell", FUSED, "wavenet", "wavenet", "dilation32", ("Res", "Skip"),
        _wavenet_flops,
        lambda s: 4 * (
            s.B * s.RESIDUAL_C * s.RECEPTIVE_FIELD
            + 2 * s.DILATION_C * (2 * s.RESIDUAL_C + 1)
            + s.RESIDUAL_C * (s.DILATION_C + 1)
            + s.SKIP_C * (s.DILATION_C + 1)
        ),
        lambda s: 4 * s.B * s.RECEPTIVE_FIELD * (s.RESIDUAL_C + s.SKIP_C),
    ),
    Row(
        "row sum 4096x4096", SUMS, "sums", "row_sum", "large", ("R",),
        lambda s: s.M * s.N,
        lambda s: 4 * s.M * s.N,
        lambda s: 4 * s.M,
        batch="M",
    ),
    Row(
        "column sum 4096x4096", SUMS, "sums", "column_sum", "large", ("C",),
        lambda s: s.M * s.N,
        lambda s: 4 * s.M * s.N,
        lambda s: 4 * s.N,
    ),
    Row(  # subscripts are random: nearly all the rows they name are different ones
        "LUT sum B128 D64 L50", SUMS, "lut", "one_lut", "small", ("O1",),
        lambda s: s.B * s.L1 * s.D,
        lambda s: 4 * (min(s.B * s.L1, s.E1) * s.D + s.B * s.L1),
        lambda s: 4 * s.B * s.D,
    ),
    Row(
        "argmin 1000000", SUMS, "nearest_code", "argmin", "large", ("Best", "Least"),
        lambda s: s.N,
        lambda s: 4 * s.N,
        lambda s: 4 * 2,
    ),
)  # fmt: skip
