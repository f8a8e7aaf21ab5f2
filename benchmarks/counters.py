"""What the suite's kernels ask of a GPU, counted: no GPU is needed, and nothing is measured.

    python -m benchmarks.counters [--device h200] [--rows PATTERN] [--before FILE] [--out FILE]
    python -m benchmarks.counters --sass [--rows PATTERN] [--out FILE]

A row for each kernel that the default options make: the share of the row's roofline that all of
its kernels reach (with ``--before`` also that of an earlier result), the roofline in microseconds;
of the kernel the time that is predicted, what binds it, the time of shared memory's pipe over that
of the float32 units or tensor cores, fused products over all instructions, wavefronts a read of
shared memory, KB in flight a multiprocessor and KB that the one with the most blocks reads in all
(more cannot be in flight), MB of memory read and written, registers, blocks that a multiprocessor
has at once, and waves. Beyond the rows that ``benchmarks.gpu`` measures there are
products in all four layouts, and some of few rows or columns.

With ``--sass``, the instructions of a warp by class as counted and as warps execute them in machine
code for sm_90 (``!``: a class that decides the time, and more than 3 % apart), and the error of the
sum. Needs NVRTC and ``nvidia-cuda-nvdisasm``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks import instructions
from benchmarks.common import command, write
from benchmarks.gpu.counted import scheduled_of
from benchmarks.gpu.rows import gpu_rows
from tcl.bench.rows import PRODUCTS, Row, select
from tcl.codegen.counters.counts import count_program
from tcl.codegen.counters.prediction import memory_rate, predict, roofline, share
from tcl.codegen.counters.record import Record
from tcl.codegen.counters.requests import Access, Memory, traffic_of
from tcl.codegen.counters.walk import record_of
from tcl.codegen.devices.banks import VECTOR
from tcl.codegen.devices.gpu import GpuProfile, find
from tcl.codegen.loopir import ir
from tcl.grammar.check.definitions import check
from tcl.grammar.tree.checked import CheckedDef

LONG = 3e-6
"""Seconds of a row's roofline from which on its share counts for the second mean."""
COLUMNS = {
    "row": "<32",
    "before": ">7.2f",
    "share": ">6.2f",
    "roofline": ">9.1f",
    "predicted": ">10.1f",
    "binding": ">14",
    "shared": ">7.2f",
    "products": ">9.3f",
    "wavefronts": ">11.2f",
    "in_flight": ">10.0f",
    "data": ">7.0f",
    "read": ">8.1f",
    "written": ">8.1f",
    "registers": ">10",
    "blocks": ">7",
    "waves": ">8.2f",
}


_LAYOUTS = {
    "NN": ("m, k", "k, n"),
    "NT": ("m, k", "n, k"),
    "TN": ("k, m", "k, n"),
    "TT": ("k, m", "n, k"),
}


@dataclass(frozen=True, slots=True)
class Product(Row):
    """A product of matrices, of which those with T lie transposed in memory."""

    layout: str = "NN"

    @property
    def text(self) -> str:
        one, other = _LAYOUTS[self.layout]
        sizes = (read.upper() for read in (one, other))
        return (
            "def product(float({}) A, float({}) B) -> (C) {{ ".format(*sizes)
            + f"C(m, n) +=! A({one}) * B({other}) }}"
        )

    @property
    def checked(self) -> CheckedDef:
        return check(self.text)["product"]


def _product(m: int, n: int, k: int, layout: str = "NN") -> Product:
    shape = f"{m}" if m == n == k else f"{m}x{n}x{k}"
    name, sizes = f"product {shape} {layout}", f"M={m},N={n},K={k}"
    return Product(name, PRODUCTS, "", "product", sizes, ("C",), layout=layout)


EXTRA: tuple[Row, ...] = (
    *(_product(n, n, n, layout) for n in (1024, 2048, 4096, 8192) for layout in _LAYOUTS),
    *(_product(m, 8192, 8192) for m in (16, 64, 256)),
    *(_product(8192, n, 4096, "NT") for n in (16, 64, 256)),
    _product(256, 256, 65536, "TN"),
    _product(16384, 16384, 64, "NT"),
)


def counted(row: Row, device: GpuProfile) -> Iterator[dict[str, Any]]:
    """The lines of a row."""
    program = scheduled_of(row, device)
    counts = count_program(program, device)
    predictions = [predict(c) for c in counts]
    moving = row.cost().bytes_moved / memory_rate(device)
    for kernel, own, prediction in zip(program.kernels, counts, predictions, strict=True):
        pipes = prediction.pipes
        computing = max(pipes.get("float32", 0.0), pipes.get("tensor cores", 0.0))
        reads = [own.traffic[kind] for kind in (Memory.SHARED_READ, Memory.MATRIX_READ)]
        executed = max(1.0, sum(own.instructions.values()))
        widths = _widths(record_of(program, kernel, device.idle_sums))
        yield {
            "row": row.name,
            "share": share(row.cost(), predictions, device),
            "roofline": 1e6 * roofline(row.cost(), device),
            "predicted": 1e6 * prediction.seconds,
            "binding": prediction.binding,
            "shared": pipes.get("shared memory", 0.0) / computing if computing else 0.0,
            "products": (own.instructions.get("fma", 0) + own.instructions.get("mma", 0))
            / executed,
            "wavefronts": sum(t.units for t in reads) / max(1, sum(t.requests for t in reads)),
            "in_flight": own.in_flight / 1024,
            "data": sum(x.bytes for x in own.loads) / max(1, own.blocks) * own.busiest / 1024,
            "read": own.dram_read / 1e6,
            "written": own.dram_written / 1e6,
            "registers": own.registers,
            "blocks": own.occupancy.blocks,
            "waves": own.waves,
            "shared us": 1e6 * pipes.get("shared memory", 0.0),
            "bytes a thread": widths[0],
            "bytes allowed": widths[1],
            "must move": row.cost().bytes_moved / 1e6,
            "limited by": "memory" if roofline(row.cost(), device) == moving else "arithmetic",
        }


def _widths(record: Record) -> tuple[float, float]:
    """Bytes of global memory that a thread asks for at once, on average over all bytes, and those
    that it could."""
    asked = [
        (a.size, _allowed(a, record.program.tensor(a.tensor).layout), traffic_of(a).bytes)
        for a in record.accesses
        if a.kind.is_global
    ]
    moved = max(1, sum(own for *_, own in asked))
    own, allowed = (sum(x[k] * x[2] for x in asked) / moved for k in (0, 1))
    return own, allowed


def _allowed(access: Access, layout: ir.Layout) -> int:
    """Bytes of the widest access that may begin where all rows of a tensor begin and that ends with
    them; those of one element where threads move by what is not in order."""
    size, strides = layout.itemsize, layout.strides
    row = next((n for n, s in zip(layout.extents, strides, strict=True) if s == size), 1)
    steps = [s for n, s in zip(layout.extents, strides, strict=True) if n > 1 and s != size]
    widest = math.gcd(VECTOR, row * size, *steps)
    return max(access.size, size, widest)


def main() -> None:
    """The command line."""
    parser = command("counters", __doc__)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--rows", help="pattern for row names")
    parser.add_argument("--before", type=Path, help="an earlier result")
    parser.add_argument("--sass", action="store_true", help="compare with machine code")
    given = parser.parse_args()
    device = find(given.device)
    if device is None:
        parser.error(f"there is no device profile {given.device}")
    if given.sass:
        suite = select(given.rows, False, tuple(gpu_rows(None, quick=False)))
        found = instructions.table(suite, device)
        write(given.out, {"device": device.name, **found})
        return
    print(f"{device.name}, default options: counted, not measured")
    print(*(f"{name:{form.partition('.')[0]}}" for name, form in COLUMNS.items()))
    lines, shares, before = [], {}, dict[str, float]()
    if given.before:
        kernels = json.loads(given.before.read_text("utf-8"))["kernels"]
        before = {line["row"]: line["share"] for line in kernels}
    rows = (*gpu_rows(None, quick=False), *EXTRA)
    for row in select(given.rows, False, rows):
        for line in counted(row, device):
            line = {"before": before.get(row.name, math.nan), **line}
            print(*(f"{line[name]:{form}}" for name, form in COLUMNS.items()), flush=True)
            lines.append({name: x for name, x in line.items() if name != "before"})
            shares[row.name] = line
    extra = {row.name for row in EXTRA}
    for least, others in ((0.0, extra), (1e6 * LONG, extra), (1e6 * LONG, set())):
        chosen = [x for x in shares.values() if x["roofline"] > least and x["row"] not in others]
        if chosen:
            means = [
                geometric_mean(known)
                for key in ("before", "share")
                if (known := [x[key] for x in chosen if not math.isnan(x[key])])
            ]
            print(
                f"{len(chosen)} rows with a roofline above {least:g} us"
                f"{'' if others else ', products in all layouts among them'}: shares of "
                f"{' -> '.join(f'{mean:.3f}' for mean in means)} in the geometric mean, "
                f"{min(x['share'] for x in chosen):.2f} at least"
            )
    write(given.out, {"device": device.name, "kernels": lines})


if __name__ == "__main__":
    main()
