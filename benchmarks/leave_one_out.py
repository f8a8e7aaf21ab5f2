"""Whether the constants of a strategy fit recorded spaces that they were not chosen on.

    python -m benchmarks.leave_one_out --strategy screened --repeats 8 --out FILE

Each constant is varied by itself. For every space, the setting that is best on all the others is
looked at on that one; the pool of these is what constants are worth that do not know their space.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import TypeAlias
from unittest.mock import patch

from benchmarks.search import SPACES, Row, Search, search, summary, table
from tcl.tuner.strategies import genetic, screened, strategy

_Constants: TypeAlias = Mapping[str, tuple[ModuleType, tuple[float, ...]]]

VARIED: Mapping[str, _Constants] = {
    "screened": {
        "_BOLDNESS": (screened, (0.75, 3.0)),
        "_CHILDREN": (screened, (75, 300)),
        "_STRANGERS": (screened, (10, 40)),
        "_FAILED": (strategy, (math.log(1.2), math.log(4))),
    },
    "genetic": {
        "_LITTER": (genetic, (1, 4)),
        "_RELATIVES": (genetic, (1, 6)),
        "_EAGER": (genetic, (4.0, 16.0)),
        "_PATIENT": (genetic, (1.0, 4.0)),
        "_LIFETIME": (genetic, (1.25, 5.0)),
    },
}
"""Constants, where they are, and what they could be instead: about half and double."""
AS_IT_IS = "as it is"


def settings(name: str) -> list[tuple[str, ModuleType, dict[str, float]]]:
    """What the constants are, and each with another value."""
    found: list[tuple[str, ModuleType, dict[str, float]]] = [(AS_IT_IS, strategy, {})]
    for constant, (module, values) in VARIED[name].items():
        found += [(f"{constant} {value:.3g}", module, {constant: value}) for value in values]
    return found


def left_out(found: Mapping[str, Sequence[Search]], spaces: Sequence[str]) -> dict[str, str]:
    """By space: the setting that is best on all others."""

    def elsewhere(setting: str, space: str) -> float:
        return fmean(fmean(s.reached) for s in found[setting] if s.space != space)

    return {space: max(found, key=lambda setting: elsewhere(setting, space)) for space in spaces}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leave_one_out", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--strategy", choices=tuple(VARIED), default="screened")
    parser.add_argument("--spaces", type=Path, default=SPACES, help="a folder of *.csv.gz")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--seed", type=int, default=40000, help="of the first repeat")
    parser.add_argument("--out", type=Path, help="write everything here, as JSON")
    given = parser.parse_args()
    spaces = sorted(path.name.removesuffix(".csv.gz") for path in given.spaces.glob("*.csv.gz"))
    seeds = range(given.seed, given.seed + given.repeats)
    found: dict[str, list[Search]] = {}
    rows: list[Row] = []
    for setting, module, values in settings(given.strategy):
        with patch.dict(vars(module), values):
            tasks = [(space, seed) for space in spaces for seed in seeds]
            found[setting] = [search(given.spaces, given.strategy, *task) for task in tasks]
        rows.append(summary(setting, found[setting]))
        print("\n".join(list(table(rows[-1:], f"{given.repeats} repeats:"))[len(rows) > 1 :]))
    chosen = left_out(found, spaces)
    pool = [s for space, setting in chosen.items() for s in found[setting] if s.space == space]
    rows.append(summary("left out", pool))
    print("\n".join(list(table(rows[-1:], ""))[1:]))
    print("\n".join(f"{space}: {setting}" for space, setting in chosen.items()))
    if given.out is not None:
        data = {
            "date": time.strftime("%Y-%m-%d"),
            "strategy": given.strategy,
            "repeats": given.repeats,
            "seed": given.seed,
            "chosen": chosen,
            "pooled": [asdict(row) for row in rows],
            "searches": {setting: [asdict(s) for s in each] for setting, each in found.items()},
        }
        given.out.write_text(json.dumps(data) + "\n")


if __name__ == "__main__":
    main()
