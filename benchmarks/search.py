"""How good the search strategies are: replayed on recorded spaces, kernels of others on GPUs.

    python -m benchmarks.search                    # six spaces, 30 repeats, four minutes
    python -m benchmarks.search --quick            # a first impression
    python -m benchmarks.search --spaces FOLDER --out FILE
    python -m benchmarks.search --strategies screened,warm --repeats 60 --seed 5000

``warm`` is ``screened`` with a model of the same kernel's times on another GPU, on the spaces for
which there is such a GPU. See ``benchmarks/README.md`` for what is counted and how.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from statistics import fmean, stdev

import numpy as np

from benchmarks.common import command, write
from benchmarks.replay import RecordedSpace, load_space, reached, replay
from tcl.tuner.model.boosting import Boosting, Examples, train
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.model import Prediction
from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies import STRATEGIES, make_strategy
from tcl.tuner.strategies.strategy import SearchSettings

SPACES = Path(__file__).parent / "spaces"
COUNTS = (10, 20, 50, 100, 200)
"""After so many evaluations a search is looked at."""
GOOD = 0.95
"""Of the optimum: searches that reach it are counted."""
DEFAULT = ("random", "genetic", "screened")
WARM = "warm"
MODELS = {
    "convolution_W7800": "convolution_A100",
    "convolution_A100": "convolution_W7800",
    "dedispersion_W6600": "dedispersion_MI250X",
    "dedispersion_MI250X": "dedispersion_W6600",
}
"""Where a model is used, and where it is from."""
_SLOW = 0.5
"""As in ``tcl.tuner.training.learn``."""


def rows_of(configs: Sequence[Config]) -> Floats:
    """N x K: the numbers that knobs are set to, and a text's place among those there are."""
    columns = []
    for column in zip(*configs, strict=True):
        texts = sorted({v for v in column if isinstance(v, str)})
        columns.append([texts.index(v) if isinstance(v, str) else float(v) for v in column])
    return np.array(columns, np.float64).T


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a model expects of every row of a space: a ``Prior``."""

    places: dict[Config, int]
    logs: Floats
    spread: Floats

    @staticmethod
    def of(space: RecordedSpace, about: RecordedSpace, trees: int = Boosting().trees) -> Opinion:
        """What a space that was measured says about another with the same knobs."""
        rows = [c for c in space.enumerate() if space.times[c] is not None]
        logs = np.log([space.times[c] or math.nan for c in rows])
        places = {c: k for k, c in enumerate(about.enumerate())}
        every = rows_of([*rows, *places])
        weights = np.exp(_SLOW * (logs.min() - logs))
        problem = np.zeros(len(rows), np.int64)
        # There are few features, and a thousand candidates of one problem.
        settings = Boosting(columns=0.5, rows=1.0, trees=trees)
        forest = train(Examples(every[: len(rows)], logs, problem, weights), settings)
        members = forest.predict(every[len(rows) :])
        return Opinion(places, members.mean(axis=0), members.std(axis=0))

    def predict(self, configs: Sequence[Config]) -> Prediction:
        """See ``Prior``."""
        at = [self.places[c] for c in configs]
        return Prediction(self.logs[at], self.spread[at])


@cache
def opinion(folder: Path, space: str) -> Opinion:
    """The one of a space's other GPU."""
    there, here = (load_space(folder / f"{name}.csv.gz") for name in (MODELS[space], space))
    return Opinion.of(there, here)


@dataclass(frozen=True, slots=True)
class Search:
    """One search: a strategy on a space with a seed."""

    strategy: str
    space: str
    seed: int
    reached: tuple[float, ...]
    """Optimum / best found, after each of ``COUNTS``."""
    seconds: float
    """Of the strategy and the replay, per evaluation."""


@dataclass(frozen=True, slots=True)
class Row:
    """Searches of one strategy taken together."""

    strategy: str
    reached: tuple[float, ...]
    """Means."""
    error: tuple[float, ...]
    """Standard errors of the means, of repeats with these spaces."""
    good: float
    """Share of the searches that reach ``GOOD`` in the end."""
    seconds: float

    def __str__(self) -> str:
        means = "".join(f"{r:8.3f}" for r in self.reached)
        return f"{self.strategy:<24}{means}{self.good:10.2f}{1e3 * self.seconds:10.2f}"


def search(folder: Path, strategy: str, space: str, seed: int) -> Search:
    """Replay one search."""
    recorded = load_space(folder / f"{space}.csv.gz")
    prior = opinion(folder, space) if strategy == WARM else None
    began, name = time.process_time(), "screened" if strategy == WARM else strategy
    made = make_strategy(name, recorded, Random(seed), SearchSettings(), prior=prior)
    times = replay(made, recorded, max(COUNTS))
    seconds = (time.process_time() - began) / len(times)
    return Search(strategy, space, seed, reached(recorded, times, COUNTS), seconds)


def summary(title: str, searches: Sequence[Search]) -> Row:
    """Means over spaces of means over repeats."""
    spaces = sorted({s.space for s in searches})
    means, error = [], []
    for i in range(len(COUNTS)):
        groups = [[s.reached[i] for s in searches if s.space == space] for space in spaces]
        means.append(fmean(fmean(group) for group in groups))
        squares = [stdev(g) ** 2 / len(g) if len(g) > 1 else 0.0 for g in groups]
        error.append(math.sqrt(sum(squares)) / len(spaces))
    good = fmean(s.reached[-1] >= GOOD for s in searches)
    return Row(title, tuple(means), tuple(error), good, fmean(s.seconds for s in searches))


def heading(title: str) -> str:
    """Of a table of rows."""
    counts = "".join(f"{n:>8}" for n in COUNTS)
    return f"{title:<24}{counts}{f'>= {GOOD}':>10}{'ms each':>10}"


def main() -> None:
    """The command line."""
    parser = command("search", __doc__)
    parser.add_argument("--spaces", type=Path, default=SPACES, help="a folder of *.csv.gz")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="five repeats")
    parser.add_argument("--strategies", default=",".join(DEFAULT), help="names, with commas")
    parser.add_argument("--seed", type=int, default=0, help="of the first repeat")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    strategies, known = given.strategies.split(","), (*STRATEGIES, WARM)
    for name in strategies:
        if name not in known:
            parser.error(f"there is no strategy {name!r}; there are {', '.join(known)}")
    repeats = 5 if given.quick else given.repeats
    if repeats < 1 or given.jobs < 1:
        parser.error("repeats and jobs are at least 1")
    spaces = sorted(path.name.removesuffix(".csv.gz") for path in given.spaces.glob("*.csv.gz"))
    if WARM in strategies:
        spaces = [space for space in spaces if space in MODELS]
    if not spaces:
        raise SystemExit(f"{given.spaces} holds no recorded spaces (*.csv.gz)")
    found: list[Search] = []
    tasks = [(space, given.seed + i) for space in spaces for i in range(repeats)]
    with ProcessPoolExecutor(given.jobs) as pool:
        for name in strategies:
            one = partial(search, given.spaces, name)
            own = list(pool.map(one, *zip(*tasks, strict=True), chunksize=4))
            print(heading(f"{name}:"))
            for part in (*dict.fromkeys(space.split("_")[0] for space in spaces), *spaces):
                print(summary(part, [s for s in own if s.space.startswith(part)]))
            print(flush=True)
            found += own
    rows = [summary(name, [s for s in found if s.strategy == name]) for name in strategies]
    print(heading(f"all, {repeats} repeats:"), *rows, sep="\n")
    settings = {"repeats": repeats, "evaluations": COUNTS, "settings": asdict(SearchSettings())}
    pooled = [asdict(row) for row in rows]
    write(given.out, {**settings, "pooled": pooled, "searches": [asdict(s) for s in found]})


if __name__ == "__main__":
    main()
