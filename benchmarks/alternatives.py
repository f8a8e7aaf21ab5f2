"""Times what a search could try instead of the default of each known def.

    python -m benchmarks.alternatives others --out FILE    # other lanes and tiles, as searches open
    python -m benchmarks.alternatives changes --out FILE   # single changes, drawn evenly by kind

``others`` are those of ``MappingSpace.promising``, in their order. How much the changes of one kind
gain is what ``NestOptions`` says of each knob. Rows, cores and priorities are those of
``benchmarks.race``; one process times all kernels of a row.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import geometric_mean
from typing import Any, TypeAlias

from benchmarks.common import command, write
from benchmarks.race import Settings, backend, chosen, raced
from tcl.common.errors import TclError
from tcl.selection.best_options import DEFAULT
from tcl.tuner.space.around import Change, change_kind, changes
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.tuner.space.search_space import Config

Found: TypeAlias = list[tuple[str, float]]
"""What was changed, and the ratio of the times, in the order of the candidates."""
_BEST_OF = 5, 10, 20
_BUDGET = 0.03
"""Seconds for each kernel of a row."""


def others(space: MappingSpace, most: int, name: str) -> Iterator[tuple[str, Config]]:
    """Other lanes and register tiles."""
    return (("others", config) for config in space.promising(most))


def single(space: MappingSpace, most: int, name: str) -> Iterator[tuple[str, Config]]:
    """Changes of one knob, of each kind in turns."""
    rng, knobs = random.Random(name), space.space.knobs
    centre = space.from_options(DEFAULT)
    if centre is None:
        return iter(())
    kinds = defaultdict[str, list[Change]](list)
    for place, value in itertools.chain.from_iterable(changes(knobs, centre)):
        knob, up = change_kind(knobs[place], centre[place], value)
        kinds[f"{knob} {'up' if up else 'down'}" if up is not None else knob].append((place, value))
    for each in kinds.values():
        rng.shuffle(each)
    drawn = rng.sample(sorted(kinds.items()), len(kinds))
    turns = itertools.zip_longest(*([(kind, change) for change in each] for kind, each in drawn))
    made = (
        (kind, (*centre[:place], value, *centre[place + 1 :]))
        for kind, (place, value) in filter(None, itertools.chain.from_iterable(turns))
    )
    valid = ((kind, config) for kind, config in made if space.space.valid(config))
    return itertools.islice(valid, most)


def timed(name: str, what: str, most: int, core: int) -> Found:
    """The candidates of a row."""
    settings = Settings(threads=1, scale=1.0)
    made = backend(name, settings)
    space = MappingSpace(made.program(), made.device)
    kernels = {made.compile(DEFAULT): "default"}
    for label, config in {"others": others, "changes": single}[what](space, most, name):
        kernels.setdefault(made.compile(space.to_options(config)), label)
    times = raced(name, list(kernels), settings, core, min(2.0, _BUDGET * len(kernels)))
    ratios = [
        geometric_mean([a / b for a, b in zip(own, times[0], strict=True)]) for own in times[1:]
    ]
    return list(zip([*kernels.values()][1:], ratios, strict=True))


def summary(found: dict[str, Found]) -> dict[str, Any]:
    """What the best of the first candidates saves, and what the changes of each kind do: a
    candidate that is no faster saves nothing."""
    rows = [[ratio for _, ratio in each] for each in found.values()]
    kinds = defaultdict[str, list[float]](list)
    for label, ratio in itertools.chain.from_iterable(found.values()):
        kinds[label].append(max(0.0, 1.0 - ratio))
    best = {n: [min(1.0, *ratios[:n], 1.0) for ratios in rows] for n in _BEST_OF}
    return {
        "rows": len(rows),
        "candidates": sum(map(len, rows)),
        "best of first": {n: round(sum(each) / len(each), 4) for n, each in best.items()},
        "worst tenth": {n: round(sorted(each)[len(each) // 10], 3) for n, each in best.items()},
        "saved by kind": {
            kind: [len(saved), round(sum(saved) / len(saved), 4)]
            for kind, saved in sorted(kinds.items())
        },
    }


def main() -> None:
    """The command line."""
    parser = command("alternatives", __doc__)
    parser.add_argument("what", choices=["others", "changes"])
    parser.add_argument("--rows", help="patterns of names")
    parser.add_argument("--differing", type=Path, help="the rows that `race differ` found")
    parser.add_argument("--most", type=int, default=12, help="candidates of a row")
    parser.add_argument("--core", type=int, default=0)
    given = parser.parse_args()
    found: dict[str, Found] = {}
    for name in chosen(given):
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            try:
                found[name] = pool.submit(timed, name, given.what, given.most, given.core).result()
            except TclError as error:
                print(f"{name:32} {error}")
                continue
        label, best = min(found[name], key=lambda each: each[1], default=("nothing", 1.0))
        print(f"{name:32} {len(found[name]):3} candidates, best {best:.3f}, {label}", flush=True)
    about = summary(found)
    print(json.dumps(about, indent=1))
    write(given.out, about)


if __name__ == "__main__":
    main()
