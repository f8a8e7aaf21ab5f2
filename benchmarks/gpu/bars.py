"""Which bars the counts of our GPU kernels meet, row by row. Nothing is measured.

    python -m benchmarks.gpu.bars COUNTERS MACHINE_CODE SASS [--out FILE]

Reads results of ``benchmarks.counters``, ``benchmarks.machine_code`` and ``benchmarks.counters
--sass``. Each line is a bar: how many of the rows it is about meet it, and the rows that do not,
each with its value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks.common import command, write
from benchmarks.counters import LONG
from tcl.common.dataclass import dataclass

Line = Mapping[str, Any]
Rows = Mapping[str, list[Line]]
"""Row -> its kernels, in order."""

SQUARE = ("1024", "2048", "4096", "8192")
"""Sizes of the float32 products, each in four layouts."""
VARYING = 0.01
"""Of the instructions of the loop: the products of a kernel for a class of sizes may be so much
less of them than those of the kernel for the size that stands for the class."""


@dataclass(frozen=True, slots=True)
class Bar:
    """What is asked of some rows, and their values."""

    name: str
    most: float
    """The largest value that is good."""
    values: Mapping[str, float]
    least: float = -math.inf
    """The smallest one."""

    @property
    def missed(self) -> dict[str, float]:
        """The rows that do not meet it."""
        return {n: v for n, v in self.values.items() if not self.least <= round(v, 3) <= self.most}


def bars(counters: Iterable[Line], machine_code: Mapping[str, Line], sass: Line) -> Iterator[Bar]:
    """All of them."""
    rows: dict[str, list[Line]] = {}
    for line in counters:
        rows.setdefault(line["row"], []).append(line)
    yield Bar(
        "instructions counted within 5 % of machine code",
        0.05,
        {line["kernel"]: abs(_error(line)) for line in sass["kernels"]},
    )
    yield from _products(rows, machine_code)
    yield from _others(rows)
    yield from _varying(machine_code)
    yield from _beside_triton(machine_code)
    long = {n: own[0]["share"] for n, own in rows.items() if _is_long(own)}
    suite = {n: v for n, v in long.items() if not n.startswith("product ")}
    yield Bar("predicted share of the roofline, rows above 3 us", 1, suite, 0.45)
    yield Bar("its geometric mean", 1, {"all": geometric_mean(suite.values())}, 0.75)
    limits = {n: v / _limit(rows[n]) for n, v in suite.items()}
    yield Bar(
        "its geometric mean, relative to what an H100 reaches of its peaks",
        math.inf,
        {"all": geometric_mean(limits.values())},
        0.75,
    )


def _error(line: Line) -> float:
    ours, found = (sum(line[key].values()) for key in ("ours", "sass"))
    return float(ours / found - 1)


def _is_long(kernels: list[Line]) -> bool:
    return float(kernels[0]["roofline"]) > 1e6 * LONG


def _limit(kernels: list[Line]) -> float:
    """The share of the roofline's rate that any kernel of an H100 was seen to reach, cuBLAS's
    included: of arithmetic .77 in float32, and two thirds on tensor cores, without ``wgmma``."""
    if kernels[0]["limited by"] == "memory":
        return 1.0
    return 2 / 3 if "float16" in kernels[0]["row"] else 0.77


def _products(rows: Rows, code: Mapping[str, Line]) -> Iterator[Bar]:
    names = [f"product {size} {layout}" for size in SQUARE for layout in ("NN", "NT", "TN", "TT")]
    own = {n: code[n] for n in names}
    yield Bar(
        "float32 products: FFMA of the loop", 1, {n: x["share"] for n, x in own.items()}, 0.92
    )
    yield Bar(
        "float32 products: reads of shared memory / FFMA",
        0.6,
        {n: x["reading"] for n, x in own.items()},
    )
    wavefronts = {n: rows[n][0]["wavefronts"] for n in names}
    yield Bar("float32 products: wavefronts a read", 2.1, wavefronts, 1.9)
    yield Bar("float32 products: bytes spilled", 0, {n: x["spills"] for n, x in own.items()})
    yield Bar(
        "float32 products: blocks a multiprocessor",
        math.inf,
        {n: x["blocks"] for n, x in own.items()},
        2,
    )
    for name, most in (("tmm 128x16384x4096", 160), ("tmm 128x1024x1024", 5)):
        shared = sum(x["shared us"] for x in rows[name])
        yield Bar(f"{name}: us of shared memory", most, {name: shared})


def _others(rows: Rows) -> Iterator[Bar]:
    first = {n: own[0] for n, own in rows.items()}
    convolutions = {n: x["shared"] for n, x in first.items() if "conv" in n}
    yield Bar("convolutions: shared memory / FFMA", 1, convolutions)
    halves = {n: x["shared"] for n, x in first.items() if "float16" in n}
    yield Bar("16-bit products: shared memory / tensor cores", 1, halves)
    memory = {n: own for n, own in rows.items() if own[0]["limited by"] == "memory"}
    yield Bar(
        "limited by memory: KB in flight a multiprocessor, or all there is",
        math.inf,
        {n: 40 * own[0]["in_flight"] / min(40, own[0]["data"]) for n, own in memory.items()},
        40,
    )
    yield Bar(
        "limited by memory: bytes of a thread's accesses, of 16 where rows allow as many",
        math.inf,
        {n: 16 * own[0]["bytes a thread"] / own[0]["bytes allowed"] for n, own in memory.items()},
        15,
    )
    yield Bar(
        "limited by memory: bytes from and to memory / those that must move",
        1.05,
        {
            n: sum(x["read"] + x["written"] for x in own) / own[0]["must move"]
            for n, own in memory.items()
        },
    )
    launches = {n: len(rows[n]) for n in ("WaveNet cell", "argmin 1000000")}
    yield Bar("launches", 2, {n: float(count) for n, count in launches.items()})


def _varying(code: Mapping[str, Line]) -> Iterator[Bar]:
    """A kernel of a class of sizes stands before that of its representative."""
    shares, blocks = dict[str, float](), dict[str, float]()
    for name, after in zip(code, [*code][1:], strict=False):
        if name.endswith(" varies"):
            shares[name] = code[after]["share"] - code[name]["share"]
            blocks[name] = code[name]["blocks"] - code[after]["blocks"]
    yield Bar("a size varies: share of FFMA less than of the fixed size", VARYING, shares)
    yield Bar("a size varies: blocks more than of the fixed size", math.inf, blocks, 0)


_PEERS = {
    "tcl matmul 2048": "NN fp32",
    "tcl tmm 2048 NT": "NT fp32",
    "tcl matmul 4096 float16, sm_80": "NN fp16",
    "tcl softmax 4096x1024": "softmax",
    "tcl layernorm 4096x1024": "layernorm",
}


def _beside_triton(code: Mapping[str, Line]) -> Iterator[Bar]:
    """The best of Triton's settings, where it has the same instructions."""
    shares, moving = dict[str, float](), dict[str, float]()
    for own, peer in _PEERS.items():
        names = [n for n in code if n.startswith(f"Triton {peer}")]
        alike = [code[n] for n in names if n.endswith("sm_80") == own.endswith("sm_80")]
        if not alike:
            continue
        if code[own]["reading"] or code[own]["products"]:
            shares[own] = code[own]["share"] - max(x["share"] for x in alike)
        moving[own] = code[own]["in_flight"] / max(x["in_flight"] for x in alike)
    yield Bar("beside Triton: share of FFMA or HMMA more", math.inf, shares, 0)
    yield Bar("beside Triton: KB in flight, ours / its", math.inf, moving, 1)


def main() -> None:
    """The command line."""
    parser = command("gpu.bars", __doc__)
    for name in ("counters", "machine_code", "sass"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    files = [
        json.loads(getattr(given, n).read_text("utf-8"))
        for n in ("counters", "machine_code", "sass")
    ]
    lines = []
    for bar in bars(files[0]["kernels"], files[1]["kernels"], files[2]):
        met = len(bar.values) - len(bar.missed)
        missed = ", ".join(f"{n} {v:.3g}" for n, v in bar.missed.items())
        print(f"{bar.name:<72}{met:>4} of {len(bar.values):<4}{missed}")
        asked = {"most": bar.most, "least": bar.least}
        limits = {k: v for k, v in asked.items() if math.isfinite(v)}
        lines.append({"bar": bar.name, **limits, "met": met, "rows": dict(bar.values)})
    write(given.out, {"bars": lines})


if __name__ == "__main__":
    main()
