"""Measures the gain of tuning, and how much of it is luck.

    python -m benchmarks.tuned --rows "softmax,layernorm" --seconds 25 --folder /tmp/tuned
    python -m benchmarks.tuned --folder /tmp/tuned --out FILE   # continues, and writes the results
    python -m benchmarks.tuned --folder /tmp/auto --auto        # the search of tune_mode="auto"

Rows of the CPU benchmark are tuned twice, with different seeds and an empty cache. Fresh processes
time the default and both winners. Results in ``--folder`` are not measured again, so a run may end
at any time. Times are those of ``tcl.tuner.measure.paired.race``: in turns, on arrays at 64 bytes
and as NumPy places them.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks.common import command, write
from tcl.arrays.random_inputs import random_inputs
from tcl.backends.program_backend import CpuBackend
from tcl.backends.targets import CpuTarget
from tcl.bench.ceilings import core_to_core
from tcl.bench.rows import Row, select
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.check.definitions import check
from tcl.selection.best_options import DEFAULT
from tcl.tuner.config import TunerConfig
from tcl.tuner.measure.cores import available_cores, split_cores
from tcl.tuner.measure.evaluate import race_candidates, set_up
from tcl.tuner.measure.paired import Sessions
from tcl.tuner.measure.placement import shown
from tcl.tuner.measure.timing import MeasureSettings, Placed
from tcl.tuner.measure.verdict import Outcome
from tcl.tuner.run.brief import BriefSearch
from tcl.tuner.run.events import Event, Note
from tcl.tuner.run.result import TuningResult
from tcl.tuning import Tuner
from tcl.workers.pool import WorkerPool

STRANGERS = Path(__file__).with_name("strangers")
"""Defs that no default was tuned to: kinds, types, sizes and layouts that the suite has not. Parts
with "aside" in their names were measured before anybody examined them."""
PARTS = tuple(sorted(file.stem for file in STRANGERS.glob("*.tc")))
ROWS = "softmax 4096,layernorm,masked,batched 500,column sum,matmul 512,attention scores,C8@28"
GENERATIONS = 1000
PROCESSES = 3
_CLOSE = 0.02
"""Winners whose times differ by less are as good as each other."""


@dataclass(frozen=True)
class Settings:
    """Of a run."""

    seconds: float
    """That a search may take."""
    seeds: tuple[int, ...]
    threads: int
    folder: Path
    auto: bool = False
    """The search is that of ``tune_mode="auto"``."""

    def file(self, row: Row, what: object) -> Path:
        """Where a result of a row is kept."""
        name = "".join(c if c.isalnum() else "-" for c in row.name)
        return self.folder / f"{name}-{what}.json"


def strangers(part: str) -> list[Row]:
    """The defs of one part, as rows."""
    file = str(STRANGERS / part)
    defs = check((STRANGERS / f"{part}.tc").read_text("utf-8"))
    return [Row(name, part, file, name, "x", ()) for name in defs]


def tuned(row: Row, seed: int, settings: Settings) -> dict[str, Any]:
    """What one search found."""
    notes: list[str] = []

    def told(event: Event[MappingOptions]) -> None:
        if isinstance(event, Note):
            notes.append(event.message)

    inputs = random_inputs(row.checked, row.values, 0)
    if settings.auto:
        return _found(seed, _auto(row, inputs, settings.threads), notes)
    config = TunerConfig(generations=GENERATIONS, time_limit=settings.seconds, seed=seed)
    with tempfile.TemporaryDirectory() as folder:  # nothing is known before
        tuner = Tuner(row.text, Path(folder) / "tuned.db", threads=settings.threads)
        result = tuner.tune(row.entry, inputs, None, config, report=told)
    return _found(seed, result, notes)


def _auto(row: Row, inputs: Sequence[Any], threads: int) -> TuningResult[MappingOptions]:
    target = CpuTarget(threads)
    with tempfile.TemporaryDirectory() as folder:
        backend = CpuBackend.described(row.text, row.entry, list(inputs), threads)
        backend = backend.holding(list(inputs), folder)
        return BriefSearch(backend, target.space(backend), measure_cores=threads).tune([DEFAULT])


def _found(seed: int, result: TuningResult[MappingOptions], notes: list[str]) -> dict[str, Any]:
    assert result.options is not None
    return {
        "seed": seed,
        "options": json.loads(result.options.to_json()),
        "candidates": len(result.history),
        "seconds": round(result.seconds, 1),
        "speedup": result.decision.speedup,
        "notes": notes,
    }


def in_fresh_process(backend: CpuBackend, codes: Sequence[bytes], threads: int) -> Sequence[Placed]:
    """Times of kernels in turns, in a process of their own."""
    _, cores = split_cores(available_cores(), threads)
    setup = (backend.runner(), None, MeasureSettings())
    pool = WorkerPool(1, initializer=set_up, initargs=setup, cpus=cores)
    try:
        found = pool.submit(race_candidates, codes, [True] * len(codes)).result()
    finally:
        pool.kill()
    return [placed for placed in found if not isinstance(placed, Outcome)]


def timed(row: Row, options: Sequence[MappingOptions], settings: Settings) -> dict[str, Any]:
    """Seconds per call of each of these options, by placement: of the default the median of several
    processes, of the others that by the mean ratio."""
    inputs = list(random_inputs(row.checked, row.values, 0))
    sessions = Sessions()
    with tempfile.TemporaryDirectory() as folder:
        backend = CpuBackend.described(row.text, row.entry, inputs, settings.threads)
        backend = backend.holding(inputs, folder)
        codes = [backend.compile(each) for each in options]
        for _ in range(PROCESSES):
            placed = in_fresh_process(backend, codes, settings.threads)
            sessions.add({str(k): each for k, each in enumerate(placed)})
    default = dict(zip(sessions.placements("0"), sessions.seconds("0"), strict=True))
    times = [
        {
            name: seconds * sessions.compare(str(k), "0", place).ratio
            for place, (name, seconds) in enumerate(default.items())
        }
        for k in range(len(codes))
    ]
    return {
        "kernels": [hashlib.sha256(code).hexdigest()[:12] for code in codes],
        "times": times,
        "load": os.getloadavg()[0],
    }


def row_result(row: Row, settings: Settings) -> dict[str, Any]:
    """Everything of one row; what is there already is read."""
    searches = []
    for seed in settings.seeds:
        kept = settings.file(row, f"seed-{seed}")
        if not kept.exists():
            kept.write_text(json.dumps(tuned(row, seed, settings)))
        searches.append(json.loads(kept.read_text()))
        print(f"{row.name}: seed {seed}, {searches[-1]['candidates']} candidates", flush=True)
    kept = settings.file(row, "timed")
    if not kept.exists():
        options = [DEFAULT]
        options += [MappingOptions.from_json(json.dumps(s["options"])) for s in searches]
        kept.write_text(json.dumps(timed(row, options, settings)))
    return {"row": row.name, "searches": searches, **json.loads(kept.read_text())}


def gains(result: dict[str, Any]) -> list[dict[str, float]]:
    """How many times as fast as the default each winner is, by placement."""
    default, *winners = result["times"]
    return [{name: default[name] / times[name] for name in default} for times in winners]


def summary(results: Sequence[dict[str, Any]]) -> list[str]:
    """The table."""
    names = list(results[0]["times"][0])
    lines = [
        f"{'tuned / default':30}" + "".join(f"{shown(name):>26}" for name in names) + "  winners"
    ]
    everything: list[float] = []
    apart = []
    for result in results:
        found = gains(result)
        everything += [ratio for each in found for ratio in each.values()]
        cells = ["  ".join(f"{each[name]:.3f}" for each in found) for name in names]
        same = len(set(result["kernels"][1:])) == 1
        times = [geometric_mean(each.values()) for each in result["times"][1:]]
        apart.append(max(times) / min(times))
        said = "the same kernel" if same else f"differ: {apart[-1]:.3f} in time"
        lines.append(f"{result['row']:30}" + "".join(f"{c:>26}" for c in cells) + f"  {said}")
    matter = sum(ratio > 1 + _CLOSE for ratio in apart)
    lines.append(
        f"geometric mean {geometric_mean(everything):.3f}, least {min(everything):.3f}; winners "
        f"differ by more than {_CLOSE:.0%} in {matter} of {len(results)} rows, by "
        f"{geometric_mean(apart):.3f} in the mean"
    )
    return lines


def main() -> None:
    parser = command("tuned", __doc__)
    parser.add_argument("--rows", default=ROWS)
    parser.add_argument(
        "--strangers", choices=PARTS, help="tune this part of the strangers, not the rows"
    )
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--auto", action="store_true", help='use the search of tune_mode="auto"')
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    seeds = tuple(int(seed) for seed in given.seeds.split(","))
    settings = Settings(given.seconds, seeds, given.threads, given.folder, given.auto)
    rows = strangers(given.strangers) if given.strangers else select(given.rows)
    cores, apart, results = available_cores()[: given.threads], list[int](), list[Any]()
    for row in rows:
        apart.append(round(1e9 * core_to_core(cores)))
        results.append(row_result(row, settings))
    for line in summary(results):
        print(line)
    about = {"machine": CpuTarget(given.threads).identity, "threads": given.threads}
    about |= {"seconds": "auto" if given.auto else given.seconds, "processes": PROCESSES}
    if given.threads > 1:
        about |= {"ns from core to core": [min(apart), max(apart)]}
    write(given.out, {**about, "summary": summary(results), "rows": results})


if __name__ == "__main__":
    main()
