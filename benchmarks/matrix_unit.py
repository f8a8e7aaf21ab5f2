"""Products in a CPU's matrix unit (AMX): beside vectors alone, torch, and what the unit can do.

    python -m benchmarks.matrix_unit                 # 1 and 2 threads, in processes of their own
    python -m benchmarks.matrix_unit --threads 1 --rows 512 batched --out FILE

For each row and type: microseconds of a call with the matrix unit, with dot products of vectors
instead (the unit's features masked), and of torch; the time of torch over ours; and the share of
what the unit can do, measured as for ``tcl bench cpu``: the floor of a call is its multiplications
at that rate. Without a matrix unit its column is empty.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Row:
    """A def with inputs ``A`` and ``B``, and its sizes."""

    name: str
    statement: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    multiplications: int


def _product(size: int) -> Row:
    return Row(str(size), "O(m, n) +=! A(m, k) * B(k, n)", ((size, size), (size, size)), size**3)


ROWS = (
    *map(_product, (512, 1024, 2048)),
    Row(
        "batched",
        "O(b, m, n) +=! A(b, m, k) * B(b, k, n)",
        ((64, 128, 128), (64, 128, 128)),
        64 * 128**3,
    ),
    Row(
        "convolution",
        "O(n, f, h, w) +=! A(n, c, h + r, w + s) * B(f, c, r, s)",
        ((8, 64, 58, 58), (64, 64, 3, 3)),
        8 * 64 * 56 * 56 * 64 * 9,
    ),
)
TYPES = ("bfloat16", "int8")
SAMPLES = 15
LEAST = 0.004
"""Seconds that a sample lasts at least."""
PAUSE = 0.04
"""Seconds between contenders, in which threads of the last one stop waiting for work."""
_BUFFER = 1 << 20
"""Bytes of memory that is measured along with the unit, and not used: few."""


def text_of(row: Row, type_: str) -> str:
    """The def for factors of a type; sums are float or int32."""
    named = zip("AB", row.shapes, strict=True)
    axes = [", ".join(f"{name}{k}" for k in range(len(shape))) for name, shape in named]
    wide = "float" if type_ == "bfloat16" else "int32"
    target, sums = row.statement.split(" +=! ")
    left, right = sums.split(" * ")
    return (
        f"def f({type_}({axes[0]}) A, {type_}({axes[1]}) B) -> (O) {{\n"
        f"    {target} +=! {wide}({left}) * {wide}({right})\n}}"
    )


def inputs_of(row: Row, type_: str) -> list[Any]:
    """Tensors of torch, whose memory all contenders read."""
    import torch

    own = torch.Generator().manual_seed(0)
    if type_ == "int8":
        return [torch.randint(-128, 128, s, generator=own, dtype=torch.int8) for s in row.shapes]
    return [torch.randn(s, generator=own).to(torch.bfloat16) for s in row.shapes]


def torchs(row: Row, a: Any, b: Any) -> Callable[[], Any] | None:
    """torch's call; None where it has none that multiplies these integers."""
    import torch

    if a.dtype == torch.bfloat16:
        if row.name == "convolution":
            return lambda: torch.nn.functional.conv2d(a, b)
        return lambda: torch.matmul(a, b)
    if row.name == "convolution":
        return None
    if row.name == "batched":
        return lambda: torch.stack([torch._int_mm(x, y) for x, y in zip(a, b, strict=True)])
    return lambda: torch._int_mm(a, b)


def ours(row: Row, type_: str, inputs: Sequence[Any], device: Any) -> tuple[Callable[[], Any], str]:
    """A call of the kernel that is chosen for a device, and what the matrix unit multiplies."""
    import torch

    from tcl.codegen.cpu.run.kernel import compile_cpu
    from tcl.codegen.options.options import MappingOptions
    from tcl.grammar.check.definitions import check
    from tcl.grammar.ranges.inference import infer

    (checked,) = check(text_of(row, type_)).values()
    sized = infer(checked, dict(zip("AB", row.shapes, strict=True)))
    preset = "conv" if row.name == "convolution" else "mlp"
    kernel = compile_cpu(sized, MappingOptions(preset), device=device)
    raw = [t.view(torch.uint16).numpy() if type_ == "bfloat16" else t.numpy() for t in inputs]
    output = np.empty(sized.shapes["O"], np.float32 if type_ == "bfloat16" else np.int32)
    arrays = (*raw, output)

    def call() -> Any:
        kernel.launcher(arrays)
        return output

    return call, "tdp" if "llvm.x86.tdp" in kernel.llvm else ""


def rate(type_: str, threads: int) -> float:
    """Multiplications that the machine does in a second, from registers alone."""
    from tcl.bench.ceilings import Ceilings, Meter
    from tcl.tuner.measure.cores import available_cores

    meter = Meter(available_cores()[:threads], _BUFFER)
    best = Ceilings.best(meter.sample() for _ in range(5))
    meter.close()
    return best.peak(type_) / 2


def seconds(run: Callable[[], Any], calls: int) -> float:
    """Of a call, on average."""
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def measured(row: Row, type_: str, threads: int) -> dict[str, Any]:
    """Medians, contenders in turn, each compared with vectors' results first."""
    from tcl.codegen.devices.cpu import host_cpu

    host = replace(host_cpu(), threads=threads)
    kept = [f for f in host.features.split(",") if not f.startswith("+amx")]
    masked = replace(host, features=",".join(kept))
    inputs = inputs_of(row, type_)
    calls: dict[str, Callable[[], Any]] = {"vectors": ours(row, type_, inputs, masked)[0]}
    there = host.has("amx-tile")
    if there:
        calls["matrix unit"], multiplies = ours(row, type_, inputs, host)
        if not multiplies:
            raise SystemExit(f"nothing is chosen for the matrix unit in row {row.name}, {type_}")
    peer = torchs(row, *inputs)
    if peer is not None:
        calls["torch"] = peer
    expected = np.asarray(calls["vectors"](), np.float64).copy()
    for name, call in calls.items():
        found = call()
        found = np.asarray(found.float() if name == "torch" else found, np.float64)
        worst = np.max(np.abs(found - expected)) / np.max(np.abs(expected))
        if worst > (1e-2 if type_ == "bfloat16" else 0):
            raise SystemExit(f"{name} is wrong by {worst:g} in row {row.name}, {type_}")
    counts = {name: max(1, round(LEAST / seconds(call, 2))) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(SAMPLES):
        for name, call in calls.items():
            time.sleep(PAUSE)
            call()
            samples[name].append(seconds(call, counts[name]))
    floor = row.multiplications / rate(type_, threads) if there else None
    times = {name: median(each) for name, each in samples.items()}
    return {"row": row.name, "type": type_, "threads": threads, "floor": floor, "seconds": times}


def shown(found: dict[str, Any]) -> str:
    """A line of the table."""
    times = found["seconds"]
    best = times.get("matrix unit", times["vectors"])
    cells = [
        f"{1e6 * times[n]:11.1f}" if n in times else f"{'-':>11}"
        for n in ("matrix unit", "vectors", "torch")
    ]
    cells.append(f"{times['torch'] / best:8.2f}" if "torch" in times else f"{'-':>8}")
    cells.append(f"{found['floor'] / best:8.2f}" if found["floor"] else f"{'-':>8}")
    return f"{found['row']:12}{found['type']:10}{''.join(cells)}"


def child(rows: Sequence[Row], types: Sequence[str], threads: int) -> None:
    """Measure, and print a line of JSON for each row and type."""
    import torch

    torch.set_num_threads(threads)
    for row in rows:
        for type_ in types:
            print(json.dumps(measured(row, type_, threads)), flush=True)


def run(rows: Sequence[Row], types: Sequence[str], threads: int) -> list[dict[str, Any]]:
    """The rows in a process that has so many threads, printed as they come."""
    command = [
        *(sys.executable, "-m", "benchmarks.matrix_unit", "--child", "--threads", str(threads)),
        *("--rows", *(row.name for row in rows), "--types", *types),
    ]
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TCL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    print(f"\n{threads} thread{'s' * (threads > 1)}, microseconds")
    print(f"{'':22}matrix unit    vectors      torch  t/ours   share")
    found = []
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            found.append(json.loads(line))
            print(shown(found[-1]), flush=True)
    if process.returncode:
        raise SystemExit(process.returncode)
    for type_ in types:
        pairs = [f["seconds"] for f in found if f["type"] == type_ and "torch" in f["seconds"]]
        ratios = [t["torch"] / t.get("matrix unit", t["vectors"]) for t in pairs]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{type_}: torch's time over ours, geometric mean {mean:.2f}")
    return found


def main() -> None:
    """Measure, print, and write what ``--out`` says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    names = [row.name for row in ROWS]
    parser.add_argument("--rows", nargs="+", choices=names, default=names)
    parser.add_argument("--types", nargs="+", choices=TYPES, default=list(TYPES))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    rows = [row for row in ROWS if row.name in given.rows]
    if given.child:
        child(rows, given.types, given.threads[0])
        return
    found = [each for threads in given.threads for each in run(rows, given.types, threads)]
    if given.out:
        from tcl.codegen.devices.cpu import host_cpu

        about = {"date": time.strftime("%Y-%m-%d"), "cpu": host_cpu().name}
        given.out.write_text(json.dumps({**about, "rows": found}, indent=1))


if __name__ == "__main__":
    main()
