"""Compares the search strategies on recorded spaces: kernels of other projects on GPUs.

    python -m benchmarks.search                    # six spaces, 30 repeats, four minutes
    python -m benchmarks.search --quick            # a first impression
    python -m benchmarks.search --spaces FOLDER --out FILE
    python -m benchmarks.search --strategies screened,warm --repeats 60 --seed 5000

``warm`` is ``screened`` with a model of the same kernel's times on another GPU; it needs spaces
with such a GPU. ``benchmarks/README.md`` describes what is counted.
"""

from __future__ import annotations

import csv
import gzip
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from random import Random
from statistics import fmean, stdev

import numpy as np

from benchmarks.common import command, write
from tcl.codegen.options.knobs import Knob, Value
from tcl.tuner.model.boosting import Boosting, Examples, train
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.model import Prediction
from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies import STRATEGIES, make_strategy
from tcl.tuner.strategies.strategy import SearchSettings, Strategy

TIME = "time_ms"


@dataclass(frozen=True, slots=True)
class RecordedSpace:
    """A space of which every configuration has been measured: a table with one row a configuration,
    whose last column, ``time_ms``, is empty where it failed. What is not in it is invalid."""

    name: str
    knobs: tuple[Knob, ...]
    times: Mapping[Config, float | None]
    """By valid configuration; None where it failed."""
    _configs: tuple[Config, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_configs", tuple(self.times))

    @property
    def cardinality(self) -> int:
        """Number of configurations, valid or not."""
        return math.prod(k.cardinality for k in self.knobs)

    @property
    def optimum(self) -> float:
        """The shortest time."""
        return min(t for t in self.times.values() if t is not None)

    def valid(self, config: Config) -> bool:
        """Whether it is in the table."""
        return config in self.times

    def sample(self, rng: Random) -> Config | None:
        """A row of the table."""
        return rng.choice(self._configs) if self._configs else None

    def enumerate(self) -> Iterator[Config]:
        """The rows, in the order of the table."""
        return iter(self._configs)


@cache
def load_space(path: Path) -> RecordedSpace:
    """Read ``NAME.csv.gz``; ``ValueError`` if it is not such a table."""
    with gzip.open(path, "rt", newline="") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    if header[-1:] != [TIME] or not rows:
        raise ValueError(f"{path}: a table whose last column is {TIME} was expected")
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"{path}: rows of different length")
    columns = [[row[i] for row in rows] for i in range(len(header) - 1)]
    parsed = [_column(name, texts) for name, texts in zip(header, columns, strict=False)]
    configs = zip(*(values for _, values in parsed), strict=True)
    measured = (float(row[-1]) / 1e3 if row[-1] else None for row in rows)
    times = dict(zip(configs, measured, strict=True))
    if len(times) < len(rows):
        raise ValueError(f"{path}: a configuration is there twice")
    knobs = tuple(knob for knob, _ in parsed)
    return RecordedSpace(path.name.removesuffix(".csv.gz"), knobs, times)


def _column(name: str, texts: Sequence[str]) -> tuple[Knob, list[Value]]:
    """A knob and its value in each row: ordered if all are numbers, and more than two."""
    values: list[Value]
    try:
        sizes = {text: float(text) for text in texts}
    except ValueError:
        values = list(texts)
        choices = tuple(dict.fromkeys(sorted(texts)))
        return Knob(name, choices, choices[0], ordered=False), values
    whole = all(size.is_integer() for size in sizes.values())
    values = [int(sizes[text]) if whole else text for text in texts]
    of = dict(zip(values, (sizes[text] for text in texts), strict=True))
    ranked = tuple(sorted(of, key=lambda value: of[value]))
    return Knob(name, ranked, ranked[0], ordered=len(ranked) > 2), values


def replay(strategy: Strategy, space: RecordedSpace, evaluations: int) -> list[float | None]:
    """The times that a search would have measured, in order; fewer when nothing is left."""
    times: list[float | None] = []
    while len(times) < evaluations and (asked := strategy.ask()):
        results = [(config, space.times[config]) for config in asked]
        strategy.tell(results)
        times += [time for _, time in results]
    return times[:evaluations]


def reached(
    space: RecordedSpace, times: Sequence[float | None], counts: Sequence[int]
) -> tuple[float, ...]:
    """Optimum / best found, after so many evaluations each."""
    best = list(accumulate((math.inf if t is None else t for t in times), min))
    return tuple(space.optimum / best[min(n, len(best)) - 1] for n in counts)


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
        logs, spread = members.mean(axis=0), members.std(axis=0)
        return Opinion(places, np.append(logs, logs.max()), np.append(spread, 0.0))

    def predict(self, configs: Sequence[Config]) -> Prediction:
        """See ``Prior``. What is no row, as an invalid child, is as bad as the worst."""
        at = [self.places.get(c, -1) for c in configs]
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
    parser.add_argument("--strategies", default=",".join(DEFAULT), help="comma-separated names")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first repeat")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
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
