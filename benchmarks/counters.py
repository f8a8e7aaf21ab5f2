"""What the suite's kernels ask of a GPU, counted: no GPU is needed, and nothing is measured.

    python -m benchmarks.counters [--device h200] [--rows PATTERN] [--out FILE]

A row for each kernel that the default options make: the share of the row's roofline that all of
its kernels reach, the roofline in microseconds; of the kernel the time that is predicted, what
binds it, the time of shared memory's pipe over that of the float32 units or tensor cores,
wavefronts a request of shared memory, KB in flight a multiprocessor, MB of memory read and written,
registers, blocks that a multiprocessor has at once, and waves.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import geometric_mean
from typing import Any

from benchmarks.common import command, write
from benchmarks.gpu.counted import counts_of
from benchmarks.gpu.rows import gpu_rows
from tcl.bench.rows import Row
from tcl.codegen.counters.prediction import predict, roofline, share
from tcl.codegen.devices.gpu import GpuProfile, find

LONG = 3e-6
"""Seconds of a row's roofline from which on its share counts for the second mean."""
COLUMNS = {
    "row": "<32",
    "share": ">6.2f",
    "roofline": ">9.1f",
    "predicted": ">10.1f",
    "binding": ">14",
    "shared": ">7.2f",
    "wavefronts": ">11.2f",
    "in_flight": ">10.0f",
    "read": ">8.1f",
    "written": ">8.1f",
    "registers": ">10",
    "blocks": ">7",
    "waves": ">8.2f",
}


def counted(row: Row, device: GpuProfile) -> Iterator[dict[str, Any]]:
    """The lines of a row."""
    counts = counts_of(row, device)
    predictions = [predict(c) for c in counts]
    for own, prediction in zip(counts, predictions, strict=True):
        pipes = prediction.pipes
        computing = max(pipes.get("float32", 0.0), pipes.get("tensor cores", 0.0))
        requests = sum(t.requests for kind, t in own.traffic.items() if not kind.is_global)
        yield {
            "row": row.name,
            "share": share(row.cost(), predictions, device),
            "roofline": 1e6 * roofline(row.cost(), device),
            "predicted": 1e6 * prediction.seconds,
            "binding": prediction.binding,
            "shared": pipes.get("shared memory", 0.0) / computing if computing else 0.0,
            "wavefronts": own.shared_wavefronts / max(1, requests),
            "in_flight": own.in_flight / 1024,
            "read": own.dram_read / 1e6,
            "written": own.dram_written / 1e6,
            "registers": own.registers,
            "blocks": own.occupancy.blocks,
            "waves": own.waves,
        }


def main() -> None:
    """The command line."""
    parser = command("counters", __doc__)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--rows", help="a pattern of names")
    given = parser.parse_args()
    device = find(given.device)
    if device is None:
        parser.error(f"there is no device profile {given.device}")
    print(f"{device.name}, default options: counted, not measured")
    print(*(f"{name:{form.partition('.')[0]}}" for name, form in COLUMNS.items()))
    lines, shares = [], {}
    for row in gpu_rows(given.rows, quick=False):
        for line in counted(row, device):
            print(*(f"{line[name]:{form}}" for name, form in COLUMNS.items()), flush=True)
            lines.append(line)
            shares[row.name] = line
    for least in (0.0, 1e6 * LONG):
        found = [line["share"] for line in shares.values() if line["roofline"] > least]
        if found:
            print(
                f"{len(found)} rows with a roofline above {least:g} us: shares of "
                f"{geometric_mean(found):.3f} in the geometric mean, {min(found):.2f} at least"
            )
    write(given.out, {"device": device.name, "kernels": lines})


if __name__ == "__main__":
    main()
