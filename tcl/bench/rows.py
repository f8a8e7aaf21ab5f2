"""The suite as data: each row is a def of an example file with sizes."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tcl.arrays.annotations import parse_sizes
from tcl.arrays.random_inputs import input_shape
from tcl.codegen.loopir.cost import Cost, cost_of
from tcl.codegen.loopir.lower import lower
from tcl.common.errors import ArgumentError
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.syntax.types import SCALAR_TYPES
from tcl.grammar.tree.checked import CheckedDef

EXAMPLES = Path(__file__).parent / "examples"

PRODUCTS = "matrix products"
CONVOLUTIONS = "convolutions"
FUSED = "fused"
SUMS = "sums"
TYPED = "other types"
SHAPES = "small and ragged products"
KINDS = (PRODUCTS, CONVOLUTIONS, FUSED, SUMS, TYPED, SHAPES)
SUITE_KINDS = (PRODUCTS, CONVOLUTIONS, FUSED, SUMS)
"""Those of the rows in ``SUITE``."""


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
    """A label of the def's ``# sizes`` lines, or sizes as ``M=128,N=64``."""
    results: tuple[str, ...]
    """The outputs that peers compute too. What else the def returns, only we write."""
    batch: str = ""
    """A size symbol along which the work falls apart: dimension 0 of the results. On large rows
    only a sample of it is compared with the reference."""
    quick: bool = True
    """Part of a run with ``--quick``."""
    type: str = "float32"
    """Of the numbers that are multiplied or added: what the machine can do depends on it."""

    @property
    def text(self) -> str:
        """The example file; what is ``float`` there is of the row's type, if that is one."""
        return retyped(_text(self.file), self.type)

    @property
    def checked(self) -> CheckedDef:
        return _defs(self.file, self.type)[self.entry]

    @property
    def values(self) -> dict[str, int]:
        """Size symbol to value."""
        return dict(parse_sizes(self.sizes, self.checked))

    def cost(self, sizes: Mapping[str, int] | None = None) -> Cost:
        """The work that nobody can avoid, so that a row's time has a floor: as ``cost_of`` counts,
        but of the outputs only ``results`` are written."""
        checked, values = self.checked, sizes or self.values
        sized = infer(checked, {t.name: input_shape(t, values) for t in checked.inputs})
        results = (t for t in checked.outputs if t.name in self.results)
        written = sum(math.prod(sized.shapes[t.name]) * t.type.itemsize for t in results)
        return replace(cost_of(lower(sized)), written=written)


@cache
def _text(file: str) -> str:
    try:
        return (EXAMPLES / f"{file}.tc").read_text("utf-8")
    except OSError as error:
        raise ArgumentError(f"the example {file}.tc cannot be read: {error.strerror}") from None


@cache
def _defs(file: str, type_: str) -> dict[str, CheckedDef]:
    return check(retyped(_text(file), type_), f"{file}.tc")


def retyped(text: str, type_: str) -> str:
    """A text in which what was ``float`` is of another floating-point type."""
    if type_ == "float32" or not SCALAR_TYPES[type_].is_float:
        return text
    return re.sub(r"\bfloat\b", type_, text)


def select(pattern: str | None, quick: bool = False, rows: tuple[Row, ...] = ()) -> list[Row]:
    """The rows whose name, def or kind fits one of the comma-separated shell patterns (a pattern
    without wildcards fits what contains it, and the whole name of a row that row alone).
    ``ArgumentError`` if none fits one of them."""
    rows = rows or ROWS
    if pattern is None:
        return [row for row in rows if row.quick or not quick]
    chosen: set[str] = set()
    for each in filter(None, (p.strip() for p in pattern.split(","))):
        exact = any(c in each for c in "*?[") or any(row.name == each for row in rows)
        shell = each.lower() if exact else f"*{each.lower()}*"
        # Who names a row wants it, quick or not.
        found = {
            row.name
            for row in rows
            if any(fnmatch.fnmatch(n.lower(), shell) for n in (row.name, row.entry, row.kind))
        }
        if not found:
            names = ", ".join(row.name for row in rows)
            raise ArgumentError(f"no row matches '{each}'; rows are: {names}")
        chosen |= found
    if not chosen:
        raise ArgumentError(f"there is no pattern in '{pattern}'")
    return [row for row in rows if row.name in chosen]


_MATMUL = Row("matmul 512", PRODUCTS, "matmul", "matmul", "small", ("C",), batch="M")
_TMM = Row("tmm 128x1024x1024", PRODUCTS, "tmm", "tmm", "medium", ("C",), batch="M")
_GROUPED = Row(
    "grouped conv C4@56", CONVOLUTIONS, "group_convolution", "group_convolution", "c4", ("O",),
    batch="N",
)  # fmt: skip
_GROUP_NORM = Row(
    "group norm N4 C512 12x12", FUSED, "group_normalization", "group_normalization_single",
    "small", ("O",), batch="N",
)  # fmt: skip

SUITE: tuple[Row, ...] = (
    _MATMUL,
    replace(_MATMUL, name="matmul 1024", sizes="medium"),
    replace(_MATMUL, name="matmul 2048", sizes="large", quick=False),
    _TMM,
    replace(_TMM, name="tmm 128x16384x4096", sizes="large", quick=False),
    Row("C3 128x1024x1000", PRODUCTS, "c3", "c3", "large", ("C3",), batch="B"),
    Row(
        "batched 500 26x72x26", PRODUCTS, "batch_matmul", "batch_matmul", "large", ("Z",),
        batch="B",
    ),
    Row("Kronecker step", PRODUCTS, "kronecker", "kronecker3_1", "step", ("XW2",), batch="M"),
    Row("MLP1 128x2000x128", PRODUCTS, "mlp1", "mlp1", "large", ("O1",), batch="B"),
    Row(
        "conv 3x3 N32 C16 F16 56x56", CONVOLUTIONS, "convolution", "convolution", "large", ("O",),
        batch="N",
    ),
    _GROUPED,
    replace(_GROUPED, name="grouped conv C8@28", sizes="c8"),
    replace(_GROUPED, name="grouped conv C16@14", sizes="c16"),
    replace(_GROUPED, name="grouped conv C32@7", sizes="c32"),
    # counted as if nothing were masked: what is masked depends on the data
    Row(
        "masked 1x1 conv", CONVOLUTIONS, "masked_convolution", "masked_convolution", "small",
        ("O",), batch="B",
    ),
    Row("MLP3", FUSED, "mlp3", "mlp3", "large", ("O4",), batch="B"),
    _GROUP_NORM,
    replace(_GROUP_NORM, name="group norm N8 C512 48x48", sizes="medium"),
    Row("layernorm 4096x1024", FUSED, "layernorm", "layernorm", "large", ("O",), batch="N"),
    Row("moments 1024x36864", FUSED, "moments", "moments", "large", ("mean", "var"), batch="N"),
    Row("softmax 4096x1024", FUSED, "softmax", "softmax_twice", "large", ("O",), batch="N"),
    Row(
        "attention scores B8 S256 D64", FUSED, "attention_scores", "attention_scores", "large",
        ("P",), batch="B",
    ),
    Row(
        "bias+relu+scale 4096x4096", FUSED, "bias_relu_scale", "bias_relu_scale", "large", ("O",),
        batch="M",
    ),
    Row("stencil 2048x2048", FUSED, "stencil", "stencil", "large", ("O",)),
    Row("WaveNet cell", FUSED, "wavenet", "wavenet", "dilation32", ("Res", "Skip"), batch="B"),
    Row("row sum 4096x4096", SUMS, "sums", "row_sum", "large", ("R",), batch="M"),
    Row("column sum 4096x4096", SUMS, "sums", "column_sum", "large", ("C",)),
    # subscripts are random: nearly all the rows they name are different ones
    Row("LUT sum B128 D64 L50", SUMS, "lut", "one_lut", "small", ("O1",)),
    Row("argmin 1000000", SUMS, "nearest_code", "argmin", "large", ("Best", "Least")),
)  # fmt: skip
"""Work in float32, of sizes that occur."""


def _square(extent: int, type_: str, entry: str = "matmul") -> Row:
    """A product of square matrices, of which runs with ``--quick`` have the smallest."""
    name, sizes = f"matmul {extent} {type_}", f"M={extent},N={extent},K={extent}"
    return replace(
        _MATMUL, name=name, kind=TYPED, entry=entry, sizes=sizes, type=type_, quick=extent == 512
    )


def _batched(extent: int, batch: int) -> Row:
    return Row(
        f"batched {batch} {extent}x{extent}x{extent}", SHAPES, "batch_matmul", "batch_matmul",
        f"B={batch},N={extent},M={extent},K={extent}", ("Z",), batch="B",
    )  # fmt: skip


def _ragged(m: int, k: int, n: int) -> Row:
    return replace(_MATMUL, name=f"matmul {m}x{k}x{n}", kind=SHAPES, sizes=f"M={m},K={k},N={n}")


_BATCHED_128 = replace(
    _batched(128, 64), name="batched 64 128x128x128 bfloat16", kind=TYPED, type="bfloat16"
)
_CONVOLUTION_64 = Row(
    "conv 3x3 N8 C64 F64 56x56 bfloat16", TYPED, "convolution", "convolution",
    "N=8,C=64,F=64,H=56,W=56,KH=3,KW=3", ("O",), batch="N", type="bfloat16",
)  # fmt: skip
_ENTRIES = {
    "bfloat16": "matmul",
    "float16": "matmul",
    "float64": "matmul",
    "int8": "matmul_int8",
    "uint8": "matmul_uint8",
}

ROWS: tuple[Row, ...] = (
    *SUITE,
    *(_square(n, type_, entry) for type_, entry in _ENTRIES.items() for n in (512, 1024, 2048)),
    _BATCHED_128,
    replace(
        _BATCHED_128, name="batched 64 128x128x128 int8", entry="batch_matmul_int8", type="int8"
    ),
    _CONVOLUTION_64,
    replace(
        _CONVOLUTION_64, name="conv 3x3 N8 C64 F64 56x56 int8", entry="convolution_int8",
        type="int8",
    ),
    _ragged(500, 333, 777),
    _ragged(1000, 1000, 1001),
    _ragged(257, 513, 129),
    _batched(8, 4096),
    _batched(16, 2048),
    _batched(32, 512),
    _batched(64, 128),
)  # fmt: skip
"""The suite, then other types, and shapes that suit no register tile."""
