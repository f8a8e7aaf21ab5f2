"""Compares what the model of a core says of ways of working on a nest with what they took.

    python -m benchmarks.prices                  # 40 s, times nothing
    python -m benchmarks.prices --cpu "Zen 5"

9,000 lanes and register tiles of the known defs were timed beside the default on one thread of Zen
4, with all that follows from them (``results/2026-11-29-ways.json.gz``), and 700 of a half of the
defs on Zen 5. This prices them by the code as it is now. A change of prices is worth a race where
errors become smaller, or where the ways that should take at most .975 of the default's time by the
model, the best of each nest, took less than before. (Most of these no default chooses, for other
reasons than its price.)
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import geometric_mean, mean, pstdev
from typing import Any, NamedTuple
from unittest import mock

from benchmarks.common import command, write
from benchmarks.race import Settings, known
from tcl.arrays.random_inputs import input_shape
from tcl.codegen.choose.cpu import heuristics
from tcl.codegen.choose.cpu.core_model import Core
from tcl.codegen.choose.cpu.register_tiles import TileChoice, fastest
from tcl.codegen.choose.cpu.tile_cycles import nest_cycles
from tcl.codegen.devices.known_cpus import find
from tcl.codegen.schedule.cpu import plan
from tcl.common.errors import TclError
from tcl.grammar.ranges.inference import infer
from tcl.selection.best_options import DEFAULT

_RESULTS = Path(__file__).with_name("results")
WAYS = {
    "Zen 4": _RESULTS / "2026-11-29-ways.json.gz",
    "Zen 5": _RESULTS / "2026-11-30-ways-zen-5.json.gz",
}
"""Rows with the default and other ways of their nests, by processor."""
_CLEARLY = 0.975
_FARTHEST = 3.0
"""Ratios beyond that, or below one by it, count as that."""


class Way(NamedTuple):
    """Of working on a nest."""

    row: str
    nest: str
    reduces: bool
    price: float
    """Its time over the default's, for the nest by the model, ..."""
    time: float
    """... for the nest as measured, by its part of the model's time, ..."""
    whole: float
    """... and for all nests."""


def cores(choice: TileChoice, device: Any) -> dict[int, Core]:
    """The nest in whole vectors and in halves, by their lanes."""
    found = {choice.core.lanes: choice.core}
    if choice.core.device == device:
        half = choice.core.in_halves()
        found.setdefault(half.lanes, half)
    return found


def priced(row: dict[str, Any], cpu: str) -> list[Way]:
    """The ways of one def that its default's core knows."""
    device = find(cpu)
    assert device is not None
    device, made = replace(device, threads=1), known()[row["name"]]
    chosen: dict[str, TileChoice] = {}

    def noted(program: Any, nest: Any, *rest: Any) -> TileChoice:
        found = fastest(program, nest, *rest)
        chosen.setdefault(nest.name, found)
        return found

    sizes = Settings(1, 1.0).sizes(made)
    try:
        shapes = {t.name: input_shape(t, sizes) for t in made.checked.inputs}
        with mock.patch.object(heuristics, "fastest", noted):
            plan(infer(made.checked, shapes), DEFAULT, device)
    except TclError:
        return []
    return [
        way for nest in row["nests"] if nest in chosen for way in _of_nest(row, nest, chosen[nest])
    ]


def _of_nest(row: dict[str, Any], nest: str, choice: TileChoice) -> Iterator[Way]:
    part, (lane, lanes, sizes), ways = row["nests"][nest]
    known_cores = cores(choice, choice.core.device)
    if lanes not in known_cores:
        return
    base = nest_cycles(known_cores[lanes], lane, sizes)
    for lane, lanes, sizes, whole in ways:
        if lanes in known_cores:
            price = nest_cycles(known_cores[lanes], lane, sizes) / base
            yield Way(row["name"], nest, choice.core.reduces, price, 1 + (whole - 1) / part, whole)


def _bounded(ratio: float) -> float:
    return math.log(min(max(ratio, 1 / _FARTHEST), _FARTHEST))


def summary(ways: list[Way]) -> dict[str, Any]:
    """Errors of the logarithms of ratios, and what the model's choices took."""
    errors = [_bounded(way.time) - _bounded(way.price) for way in ways]
    best: dict[tuple[str, str], Way] = {}
    for way in ways:
        if way.price < best.get((way.row, way.nest), way._replace(price=_CLEARLY)).price:
            best[way.row, way.nest] = way
    return {
        "ways": len(ways),
        "mean absolute error": round(mean(map(abs, errors)), 4),
        "standard deviation": round(pstdev(errors), 4),
        "choices": len(best),
        "took": round(geometric_mean([way.whole for way in best.values()] or [1.0]), 4),
    }


def main() -> None:
    """The command line."""
    parser = command("prices", __doc__)
    parser.add_argument("--cpu", choices=WAYS, default="Zen 4")
    given = parser.parse_args()
    every = json.loads(gzip.decompress(WAYS[given.cpu].read_bytes()))
    rows = [row for row in every if row["name"] in known()]
    with ProcessPoolExecutor() as pool:
        found = pool.map(partial(priced, cpu=given.cpu), rows, chunksize=4)
        ways = [way for each in found for way in each]
    shown = {
        "with a reduction": summary([way for way in ways if way.reduces]),
        "without": summary([way for way in ways if not way.reduces]),
    }
    for name, values in shown.items():
        print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in values.items()))
    write(given.out, shown)


if __name__ == "__main__":
    main()
