"""Shows whether predicted times rank kernels as others measured them. No GPU is needed.

    python -m benchmarks.transfer [--every N] [--out FILE]
    python -m benchmarks.transfer --candidates [--every N] [--out FILE]

The recorded spaces of a matrix product (CLBlast's, on an RTX 3090) and of a convolution (on an
A100) are kernels of other projects. Each configuration is mapped to our options for the same work:
tiles, threads, results of a thread, vectors, staged operands. Parameters without a counterpart (the
layout of a thread's results, constant memory, padding, the threads that fill a panel) are left out,
so several configurations share a prediction. The output has the number of mapped configurations,
the rank correlation of predicted and measured times (Spearman's, Kendall's tau-b), and the regret
of the best of the first 8: its measured time divided by the optimum, with equal predictions in the
order of the table.

With ``--candidates``: the kernels of this package that were timed on an H100, about 25 options for
each of 22 rows, and, on the next day, as many for 13 rows. The output has the ratio of measured and
predicted times (geometric mean, spread), their rank correlation, and the regret of the best
prediction. Options of the first day whose panels are not filled ahead are left out: threads waited
for each copy then. The constants of ``prediction`` were fitted on the first day's rows at even
places, and then rounded with all rows in view; the others are summed up on their own. What is said
there of slices of the second cache was fitted on the second day's convolutions.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import command, write
from benchmarks.counters import EXTRA
from benchmarks.gpu.rows import GPU_ROWS
from tcl.arrays.random_inputs import input_shape
from tcl.codegen.counters.counts import count_program
from tcl.codegen.counters.prediction import predict
from tcl.codegen.devices.gpu import GpuProfile, find
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import statements
from tcl.codegen.options.nest_options import PLAIN, NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.gpu import schedule
from tcl.common.dataclass import dataclass
from tcl.common.errors import OptionsError
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef

SPACES = Path(__file__).parent / "spaces"
CANDIDATES = [
    Path(__file__).parent / "results" / f"2026-11-{day}-gpu-candidates.json.gz" for day in (26, 27)
]
FIRST = 8
_PRODUCT = """def product(float(K, M) A, float(K, N) B) -> (C) {
    C(m, n) +=! A(k, m) * B(k, n)
}"""
_CONVOLUTION = """def convolution(float(H, W) I, float(P, Q) F) -> (O) {
    O(h, w) +=! I(h + p, w + q) * F(p, q)
}"""

Config = Mapping[str, int]


def _product(c: Config) -> NestOptions:
    """Its first matrix is our second one: results lie along M."""
    rows, columns = c["NWG"] // c["NDIMC"], c["MWG"] // c["MDIMC"]
    tiled = c["SA"] or c["SB"]
    return replace(
        PLAIN,
        chunk=(c["NWG"], c["MWG"]),
        threads=(c["NDIMC"], c["MDIMC"]),
        register=(rows, columns // c["VWM"], c["KWI"]),
        vectorize=(1, c["VWM"]),
        tile=(0, 0, c["KWG"]),
        stage=(2 if c["SB"] else -1, 2 if c["SA"] else -1) if tiled else (),
    )


def _convolution(c: Config) -> NestOptions:
    x, y = c["block_size_x"], c["block_size_y"]
    return replace(
        PLAIN,
        chunk=(y * c["tile_size_y"], x * c["tile_size_x"]),
        threads=(y, x),
        register=(c["tile_size_y"], c["tile_size_x"]),
        stage=(1, -1) if c["use_shmem"] else (),
    )


@dataclass(frozen=True, slots=True)
class Work:
    """A recorded space, and what it is of."""

    name: str
    device: str
    text: str
    sizes: Mapping[str, int]
    options: Callable[[Config], NestOptions]


WORKS = (
    Work("gemm_RTX3090", "rtx 3090", _PRODUCT, {"M": 4096, "N": 4096, "K": 4096}, _product),
    Work(
        "convolution_A100",
        "a100",
        _CONVOLUTION,
        {"H": 4110, "W": 4110, "P": 15, "Q": 15},
        _convolution,
    ),
)


def predicted(sized: SizedDef, options: NestOptions, device: GpuProfile) -> float | None:
    """Seconds by counts; None for options that are refused."""
    chosen = MappingOptions("naive", default=replace(options, split=()), merge=False)
    try:
        counts = count_program(schedule(sized, chosen, device), device, told=False)
    except OptionsError:
        return None
    if not all(c.occupancy.blocks for c in counts):
        return None
    return sum(predict(c).rank for c in counts)


def spearman(one: Any, other: Any) -> float:
    """The correlation of ranks, of equal numbers their mean."""
    a, b = (_ranks(np.asarray(x)) for x in (one, other))
    return float(np.corrcoef(a, b)[0, 1])


def _ranks(values: Any) -> Any:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[inverse]


def kendall(one: Any, other: Any) -> float:
    """Tau-b: of all pairs, those in the same order less the others; equal ones do not count."""
    a, b = np.asarray(one), np.asarray(other)
    both = first = second = 0
    for k in range(len(a) - 1):
        x, y = np.sign(a[k + 1 :] - a[k]), np.sign(b[k + 1 :] - b[k])
        both += int((x * y).sum())
        first, second = first + int((x != 0).sum()), second + int((y != 0).sum())
    return both / float(np.sqrt(float(first) * float(second)))


def compared(work: Work, every: int) -> dict[str, Any]:
    """A line of the table."""
    device = find(work.device)
    assert device is not None
    (checked,) = check(work.text).values()
    sized = infer(checked, {t.name: input_shape(t, work.sizes) for t in checked.inputs})
    known: dict[NestOptions, float | None] = {}
    times: list[tuple[float, float]] = []
    with gzip.open(SPACES / f"{work.name}.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["time_ms"]][::every]
    for row in rows:
        time = 1e-3 * float(row["time_ms"])
        options = work.options({k: int(v) for k, v in row.items() if k != "time_ms"})
        if options not in known:
            known[options] = predicted(sized, options, device)
        seconds = known[options]
        if seconds is not None:
            times.append((seconds, time))
    ours, measured = (np.array(x) for x in zip(*times, strict=True))
    first = np.argsort(ours, kind="stable")[:FIRST]
    return {
        "space": work.name,
        "configurations": len(rows),
        "mapped": len(times),
        "predictions": len(set(ours.tolist())),
        "spearman": spearman(ours, measured),
        "kendall": kendall(ours, measured),
        "regret": float(measured[first].min() / measured.min()),
        "median": float(np.median(measured) / measured.min()),
    }


def candidates(every: int) -> list[dict[str, Any]]:
    """The lines of our own kernels, and after those of a file, those of all of its rows: at even
    places, and at others."""
    lines = list[dict[str, Any]]()
    for path in CANDIDATES:
        with gzip.open(path, "rt") as file:
            recorded = json.load(file)
        device = find(recorded["device"])
        assert device is not None
        ratios = list[list[float]]([[], []])
        for place, (name, timed) in enumerate(recorded["rows"].items()):
            times = list(_times(name, timed[::every], device, before=path == CANDIDATES[0]))
            if len(times) > 2:
                lines.append({"row": name, **_agreement(times)})
                ratios[place % 2] += [measured / ours for ours, measured in times]
        for name, own in zip(("even places", "odd places"), ratios, strict=True):
            lines.append({"row": name, "candidates": len(own), **_spread(own)})
    return lines


def _times(
    name: str, timed: list[dict[str, Any]], device: GpuProfile, *, before: bool
) -> Iterator[tuple[float, float]]:
    """Predicted and measured seconds of a row's options. ``before``: what was timed before panels
    were copied asynchronously everywhere, of which options are left out that waited then."""
    row = next(row for row in (*GPU_ROWS, *EXTRA) if row.name == name)
    shapes = {t.name: input_shape(t, row.values) for t in row.checked.inputs}
    sized = infer(row.checked, shapes)
    for one in timed:
        program = schedule(sized, MappingOptions.from_json(json.dumps(one["options"])), device)
        if not (before and any(_waited_then(k.body) for k in program.kernels)):
            counts = count_program(program, device)
            yield sum(predict(c).seconds for c in counts), 1e-6 * one["us"]


def _waited_then(body: ir.Statement) -> bool:
    """Whether a kernel has panels that are filled asynchronously now, and were not when it was
    timed."""
    inside = list(statements(body))
    ahead = {id(f) for s in inside if isinstance(s, ir.Pipeline) for f in s.fills}
    return any(isinstance(s, ir.Fill) and s.asynchronous and id(s) not in ahead for s in inside)


def _agreement(times: list[tuple[float, float]]) -> dict[str, Any]:
    ours, measured = (np.array(x) for x in zip(*times, strict=True))
    return {
        "candidates": len(times),
        **_spread(measured / ours),
        "spearman": spearman(ours, measured),
        "regret": float(measured[ours.argmin()] / measured.min()),
    }


def _spread(ratios: Any) -> dict[str, float]:
    logs = np.log(np.asarray(ratios))
    return {"ratio": float(np.exp(logs.mean())), "spread": float(np.exp(logs.std()))}


def main() -> None:
    """The command line."""
    parser = command("transfer", __doc__)
    parser.add_argument("--every", type=int, default=1, help="only every N-th configuration")
    parser.add_argument("--candidates", action="store_true", help="our kernels, timed on an H100")
    given = parser.parse_args()
    if given.candidates:
        found = candidates(given.every)
        for line in found:
            text = (f"{k} {v:.2f}" if isinstance(v, float) else f"{v}" for k, v in line.items())
            print(*text, sep="  ")
        write(given.out, {"every": given.every, "rows": found})
        return
    print(
        f"{'space':<18}{'of':>7}{'mapped':>8}{'different':>10}{'Spearman':>10}{'Kendall':>9}"
        f"{'regret':>8}{'median':>8}"
    )
    lines = []
    for work in WORKS:
        line = compared(work, given.every)
        lines.append(line)
        print(
            "{space:<18}{configurations:>7}{mapped:>8}{predictions:>10}{spearman:>10.3f}"
            "{kendall:>9.3f}{regret:>8.3f}{median:>8.2f}".format(**line),
            flush=True,
        )
    print(f"regret: of the best of the first {FIRST}, over the optimum; median: of all, likewise")
    write(given.out, {"every": given.every, "spaces": lines})


if __name__ == "__main__":
    main()
