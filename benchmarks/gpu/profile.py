"""Hardware counters of a GPU beside the counts: what the default kernels of each row do there.

    python -m benchmarks.gpu.profile FOLDER [--rows PATTERN]      # needs a GPU, CuPy and ncu
    python -m benchmarks.gpu.profile FOLDER --read [--out FILE]   # needs what the first one wrote

The first form runs Nsight Compute. It profiles one launch of each kernel after one that is not
profiled. It writes ``ncu.csv``, with all metrics of its full set, and ``order.json``: the device,
and for each row the names of its kernels in the order of their launches.

A line for each kernel: microseconds measured and predicted, the percentage of cycles in which a
scheduler issues an instruction, warps of a multiprocessor, registers measured and counted, and
relative to the counts: instructions, wavefronts of shared memory, sectors of global memory, and
bytes that memory reads and writes. Then what warps wait for, in warps per issued instruction.
Nsight Compute empties the caches before each launch, so that times are not those of
``benchmarks.gpu``.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import command, write
from benchmarks.counters import EXTRA
from benchmarks.gpu.command import describe_gpu
from benchmarks.gpu.counted import counts_of
from benchmarks.gpu.peer import Setting
from benchmarks.gpu.rows import gpu_rows
from benchmarks.gpu.run import profile_of
from tcl.arrays.random_inputs import random_inputs
from tcl.bench.rows import Row, select
from tcl.bench.task import Task
from tcl.codegen.counters.counts import KernelCounts
from tcl.codegen.counters.prediction import predict
from tcl.codegen.devices.gpu import GpuProfile

_CSV, _ORDER = "ncu.csv", "order.json"
_NCU = "ncu --set full --csv --page raw --print-units base --clock-control none".split()
_NCU += ["--profile-from-start", "off", "--target-processes", "all"]
_WAITING = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
_REMARK = 20
"""Cells of a line that is one of Nsight Compute's remarks, at most."""
_WAITS = 3
"""Of what warps wait for, so many are shown."""
COLUMNS = {
    "row": "<28",
    "time": ">9.1f",
    "predicted": ">9.1f",
    "issue": ">6.0f",
    "warps": ">6.1f",
    "registers": ">9.0f",
    "about": ">6.0f",
    "instructions": ">12.2f",
    "wavefronts": ">10.2f",
    "sectors": ">8.2f",
    "read": ">6.2f",
    "written": ">8.2f",
}


def all_rows(pattern: str | None) -> list[Row]:
    """Those of ``benchmarks.counters``."""
    return select(pattern, False, (*gpu_rows(None, quick=False), *EXTRA))


def launch(folder: Path, pattern: str | None) -> None:
    """Launch each row's kernels, once between marks for the profiler, and write their order."""
    import cupy

    from benchmarks.gpu.peers.ours import Ours

    device = describe_gpu({})
    order: list[dict[str, Any]] = []
    for row in all_rows(pattern):
        ours = Ours(Setting("cuda", True, device["l2_bytes"], device["bus"]))
        names = tuple(t.name for t in row.checked.inputs)
        task = Task(row.text, row.entry, row.values, names, row.results)
        arrays = random_inputs(row.checked, row.values)
        ((_, make),) = ours.forms(task, dict(zip(names, arrays, strict=True)))
        (run,) = make().runs(1)
        run()
        ours.clock.check()
        (facts,) = ours.facts(task).values()
        order.append({"row": row.name, "launches": [each["kernel"] for each in facts["kernels"]]})
        cupy.cuda.runtime.profilerStart()
        run()
        ours.clock.check()
        cupy.cuda.runtime.profilerStop()
        (folder / _ORDER).write_text(json.dumps({"device": device, "rows": order}), "utf-8")
        del run, make
        ours.close()


def measured(folder: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Rows, once for each of their kernels, and the metrics of the kernel, in base units."""
    order = json.loads((folder / _ORDER).read_text("utf-8"))
    with (folder / _CSV).open(encoding="utf-8") as file:
        lines = [line for line in csv.reader(file) if len(line) > _REMARK]
    head, _, *kernels = lines  # the second line has units
    names = [(each["row"], name) for each in order["rows"] for name in each["launches"]]
    for (row, name), cells in zip(names, kernels, strict=False):  # the last may have failed
        line = dict(zip(head, cells, strict=True))
        if line["Kernel Name"] != name:
            raise ValueError(f"{_CSV} has {line['Kernel Name']} where {_ORDER} has {name}")
        yield (
            row,
            {metric: number for metric, x in line.items() if (number := _number(x)) == number},
        )


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return float("nan")


def compared(row: str, metrics: dict[str, float], counts: KernelCounts) -> dict[str, Any]:
    """A line of the table."""

    def over(counted: float, *names: str) -> float:
        return sum(metrics[name] for name in names) / counted if counted else 0.0

    sectors = [f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")]
    begin, end = _WAITING
    waits = {
        name.removeprefix(begin).removesuffix(end): round(warps, 3)
        for name, warps in metrics.items()
        if name.startswith(begin) and name.endswith(end) and not name.startswith(f"{begin}selected")
    }
    found = {
        "time": 1e-3 * metrics["gpu__time_duration.sum"],
        "predicted": 1e6 * predict(counts).seconds,
        "issue": metrics["smsp__issue_active.avg.pct_of_peak_sustained_active"],
        "warps": metrics["sm__warps_active.avg.per_cycle_active"],
        "registers": metrics["launch__registers_per_thread"],
        "about": counts.registers,
        "instructions": over(sum(counts.instructions.values()), "smsp__inst_executed.sum"),
        "wavefronts": over(
            counts.shared_wavefronts, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
        ),
        "sectors": over(counts.sectors, *sectors),
        "read": over(counts.dram_read, "dram__bytes_read.sum"),
        "written": over(counts.dram_written, "dram__bytes_write.sum"),
    }
    most = sorted(waits.items(), key=lambda item: -item[1])[:_WAITS]
    return {
        "row": row,
        **{name: float(f"{x:.4g}") for name, x in found.items()},
        "waits": dict(most),
    }


def table(folder: Path, device: GpuProfile, rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """The lines of these rows."""
    counts = {row.name: list(counts_of(row, device)) for row in rows}
    for name, metrics in measured(folder):
        if counts.get(name):
            yield compared(name, metrics, counts[name].pop(0))


def main() -> None:
    """The command line."""
    parser = command("gpu.profile", __doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", help="pattern for row names")
    parser.add_argument("--read", action="store_true", help="what an earlier call wrote")
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    folder: Path = given.folder
    if given.launch:
        launch(folder, given.rows)
        return
    if not given.read:
        if shutil.which(_NCU[0]) is None:
            parser.error("ncu, Nsight Compute's command, is not on the PATH")
        folder.mkdir(parents=True, exist_ok=True)
        own = [sys.executable, "-m", "benchmarks.gpu.profile", str(folder), "--launch"]
        own += ["--rows", given.rows] if given.rows else []
        with (folder / _CSV).open("w", encoding="utf-8") as file:
            subprocess.run([*_NCU, *own], stdout=file, check=True)
    about = json.loads((folder / _ORDER).read_text("utf-8"))["device"]
    device = profile_of(about)
    if device is None:
        parser.error(f"there is no device profile for {about['name']}")
    print(*(f"{name:{form.partition('.')[0]}}" for name, form in COLUMNS.items()), " waits for")
    lines = []
    for line in table(folder, device, all_rows(given.rows)):
        waits = ", ".join(f"{name} {warps:.2f}" for name, warps in line["waits"].items())
        print(*(f"{line[name]:{form}}" for name, form in COLUMNS.items()), f" {waits}", flush=True)
        lines.append(line)
    write(given.out, {"device": about["name"], "kernels": lines})


if __name__ == "__main__":
    main()
