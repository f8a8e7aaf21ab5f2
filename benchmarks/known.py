"""What options found for some sizes are worth to others: defs are tuned for two sizes each, and
then run for each of these by what is known of the other, and for two more by what is known of both:
with the default, with the nearest sizes' options, and with what a user gets.

    python -m benchmarks.known --part seen --folder /tmp/known --seconds 12     # tunes, then times
    python -m benchmarks.known --part aside --folder /tmp/known --out FILE      # goes on; writes

The rule was made by the part ``seen``. What ``--folder`` has is not done again, so that a run may
end at any time. Times are those of ``benchmarks.tuned``: in turns in fresh processes, on both
placements.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from benchmarks.tuned import GENERATIONS, STRANGERS, Settings, timed
from tcl.arrays.random_inputs import random_inputs
from tcl.backends.targets import CpuTarget
from tcl.bench.rows import Row
from tcl.codegen.options.options import MappingOptions
from tcl.executors.call_kernels import size
from tcl.selection.best_options import DEFAULT, Query
from tcl.selection.near_sizes import Adopted, judged
from tcl.tuner.cache.nearby import nearby
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuning import Tuner

_S = str(STRANGERS.with_suffix(""))


@dataclass(frozen=True)
class Known:
    """A def with sizes that are tuned, and others at which it is used."""

    file: str
    entry: str
    names: str
    """Of the sizes, in the order of the others."""
    tuned: tuple[tuple[int, ...], ...]
    used: tuple[tuple[int, ...], ...]

    def rows(self, sizes: Sequence[tuple[int, ...]]) -> Iterator[Row]:
        """One row for each."""
        for each in sizes:
            text = ",".join(f"{n}={v}" for n, v in zip(self.names.split(), each, strict=True))
            yield Row(f"{self.entry} {text}", "known", self.file, self.entry, text, ())


def _of(file: str, entry: str, names: str, *sizes: tuple[int, ...]) -> Known:
    return Known(file, entry, names, sizes[:2], sizes[2:])


SEEN = (
    _of(_S, "depthwise_nhwc_stride2", "N H W C",
        (4, 113, 113, 48), (2, 57, 57, 96), (4, 85, 85, 64), (1, 225, 225, 32)),
    _of(_S, "batched_half", "B M N K",
        (12, 77, 91, 123), (24, 40, 48, 64), (8, 128, 96, 100), (16, 50, 70, 200)),
    _of(_S, "seven_points", "X Y Z", (98, 98, 98), (66, 66, 66), (80, 120, 60), (50, 50, 200)),
    _of(_S, "max_pool_3_2", "N C H W",
        (8, 64, 55, 55), (4, 32, 111, 111), (8, 48, 79, 79), (16, 64, 27, 27)),
    _of(_S, "scores_masked", "B S D", (16, 130, 48), (8, 64, 64), (12, 100, 32), (4, 256, 64)),
    _of(_S, "convolution_1d_dilated", "N C F W",
        (4, 40, 56, 1200), (2, 24, 32, 600), (4, 32, 48, 900), (1, 64, 64, 2000)),
    _of("matmul", "matmul", "M N K",
        (256, 256, 256), (100, 200, 300), (200, 300, 150), (512, 128, 256)),
    _of("softmax", "softmax", "N D", (1000, 512), (256, 2000), (600, 1000), (2000, 300)),
    _of(_S, "tall_thin", "M N K", (700, 40, 700), (300, 24, 400), (500, 32, 500), (1000, 48, 300)),
    _of(_S, "bilinear_up", "N C H W",
        (3, 30, 70, 70), (1, 16, 128, 128), (2, 24, 90, 90), (4, 8, 40, 200)),
    _of("group_convolution", "group_convolution", "N G C F H W KH KW",
        (8, 16, 8, 8, 28, 28, 3, 3), (8, 16, 16, 16, 14, 14, 3, 3),
        (4, 16, 8, 8, 20, 20, 3, 3), (8, 8, 4, 4, 56, 56, 3, 3)),
    _of(_S, "distances", "N K D", (500, 12, 3), (2000, 20, 8), (1000, 16, 4), (300, 30, 6)),
)  # fmt: skip
ASIDE = (
    _of(_S, "blur_two_passes", "H W", (1021, 1531), (300, 400), (720, 1000), (501, 2000)),
    _of(_S, "int8_scaled", "M N K",
        (300, 260, 500), (128, 128, 256), (200, 200, 400), (400, 100, 300)),
    _of(_S, "rank4_transposed", "A B C D E",
        (24, 26, 22, 28, 20), (12, 16, 20, 16, 24), (20, 20, 20, 20, 20), (16, 32, 12, 24, 30)),
    _of(_S, "mean_pool_nhwc", "N H W C",
        (8, 56, 56, 72), (4, 28, 28, 128), (8, 40, 40, 96), (2, 112, 112, 48)),
    _of(_S, "matvec_transposed", "M K", (640, 1100), (300, 2000), (500, 1500), (1000, 700)),
    _of(_S, "convolution_3d", "N C F D H W",
        (2, 20, 24, 18, 30, 30), (1, 8, 16, 12, 24, 24),
        (1, 16, 20, 16, 28, 28), (2, 12, 12, 10, 40, 40)),
    _of("layernorm", "layernorm", "N D", (1000, 512), (300, 1500), (600, 1024), (2000, 256)),
    _of(_S, "pointwise_nhwc", "N H W C F",
        (6, 40, 40, 60, 90), (4, 20, 20, 128, 64), (4, 32, 32, 64, 64), (2, 28, 28, 100, 120)),
    _of(_S, "column_extremes", "M N", (2000, 333), (500, 1000), (1200, 600), (4000, 100)),
    _of(_S, "permute_5d", "A B C D E",
        (15, 17, 19, 21, 23), (10, 12, 16, 20, 24), (12, 14, 18, 20, 22), (20, 8, 12, 30, 16)),
    _of(_S, "double_product", "M N K",
        (420, 380, 290), (200, 160, 240), (300, 256, 256), (150, 400, 200)),
    _of(_S, "heads_together", "B T H D",
        (6, 60, 8, 32), (2, 100, 4, 64), (4, 80, 8, 32), (8, 40, 4, 64)),
)  # fmt: skip
PARTS = {"seen": SEEN, "aside": ASIDE}


def query(row: Row, threads: int) -> Query:
    """What options are looked up for."""
    inputs = random_inputs(row.checked, row.values, 0)
    return CpuTarget(threads).query(size(row.checked, inputs), inputs)


def tune(row: Row, cache: Path, seconds: float, threads: int) -> None:
    """Search options of a row, with nothing known before, unless that was done."""
    key = query(row, threads).key
    if TuningCache(cache).runs(key):
        return
    inputs = random_inputs(row.checked, row.values, 0)
    config = TunerConfig(generations=GENERATIONS, time_limit=seconds, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder) / "tuned.db"
        tuner = Tuner(row.text, alone, threads=threads)
        result = tuner.tune(row.entry, inputs, None, config)
        found, into = TuningCache(alone), TuningCache(cache)
        into.add(key, found.history(key), entry=row.entry)
        for run in found.runs(key):
            settings, state = found.load_run(run) or ({}, {})
            into.save_run(key, run, config=settings, state=state)
    print(f"{row.name}: {len(result.history)} candidates, {result.decision.speedup}", flush=True)


def compared(row: Row, cache: TuningCache, settings: Settings) -> dict[str, Any]:
    """How many times as fast as the default a row is with the nearest sizes' options, and with
    those that a user gets; 1 for the default itself, which is not timed then."""
    asked = query(row, settings.threads)
    found = list(judged(cache, asked))
    near = next(nearby(cache, asked.key, each=1), None)
    used = next((each.options for each in found if isinstance(each, Adopted)), DEFAULT)
    nearest = DEFAULT if near is None else MappingOptions.from_json(near.record.options)
    if asked.refusal(nearest) is not None:
        nearest = DEFAULT
    options = list(dict.fromkeys([DEFAULT, nearest, used]))
    times = timed(row, options, settings)["times"] if len(options) > 1 else [{"": 1.0}]
    gains = [{name: times[0][name] / each[name] for name in each} for each in times]
    return {
        "row": row.name,
        "nearest": gains[options.index(nearest)],
        "used": gains[options.index(used)],
        "because": [f"{each.key.sizes}: {each.reason}" for each in found],
    }


def summary(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The table."""
    yield f"{'times as fast as the default':54} nearest  used"
    for result in results:
        cells = (geometric_mean(result[what].values()) for what in ("nearest", "used"))
        yield f"{result['row']:54}" + "".join(f"{cell:8.3f}" for cell in cells)
    for what in ("nearest", "used"):
        by_row = [geometric_mean(result[what].values()) for result in results]
        others = [ratio for ratio in by_row if ratio != 1]
        yield (
            f"{what}: geometric mean {geometric_mean(by_row):.3f} of {len(by_row)}, "
            f"{geometric_mean(others or [1.0]):.3f} of the {len(others)} that are not the default; "
            f"least {min(by_row):.3f}, {sum(ratio < 0.98 for ratio in by_row)} below .98"
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.known", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--part", choices=PARTS, required=True)
    parser.add_argument("--seconds", type=float, default=12.0, help="of a search")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="write everything here, as JSON")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    settings = Settings(given.seconds, (1,), given.threads, given.folder)
    cache, results = given.folder / f"tuned-{given.threads}.db", []
    for known in PARTS[given.part]:
        for row in known.rows(known.tuned):
            tune(row, cache, given.seconds, given.threads)
    for known in PARTS[given.part]:
        for row in known.rows((*known.used, *known.tuned)):
            kept = settings.file(row, f"known-{given.threads}")
            if not kept.exists():
                kept.write_text(json.dumps(compared(row, TuningCache(cache), settings)))
            results.append(json.loads(kept.read_text()))
    lines = list(summary(results))
    print("\n".join(lines))
    if given.out is not None:
        about = {
            "machine": CpuTarget(given.threads).identity,
            "seconds": given.seconds,
            "threads": given.threads,
            "summary": lines,
        }
        given.out.write_text(json.dumps({**about, "rows": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
