"""How good the search strategies are: replayed on recorded spaces.

    python -m benchmarks.search                    # six spaces, 30 repeats, four minutes
    python -m benchmarks.search --quick            # a first impression
    python -m benchmarks.search --spaces FOLDER --out FILE

See ``benchmarks/README.md`` for what is counted and how.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean, stdev

from benchmarks.common import command, write
from benchmarks.replay import load_space, reached, replay
from tcl.tuner.strategies import STRATEGIES, make_strategy
from tcl.tuner.strategies.strategy import SearchSettings

SPACES = Path(__file__).parent / "spaces"
COUNTS = (20, 50, 100, 200)
"""After so many evaluations a search is looked at."""
GOOD = 0.95
"""Of the optimum: searches that reach it are counted."""
DEFAULT = ("random", "genetic", "screened")


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


def search(folder: Path, strategy: str, space: str, seed: int) -> Search:
    """Replay one search."""
    recorded = load_space(folder / f"{space}.csv.gz")
    began = time.process_time()
    made = make_strategy(strategy, recorded, Random(seed), SearchSettings())
    times = replay(made, recorded, max(COUNTS))
    seconds = (time.process_time() - began) / len(times)
    return Search(strategy, space, seed, reached(recorded, times, COUNTS), seconds)


def summary(strategy: str, searches: Sequence[Search]) -> Row:
    """Means over spaces of means over repeats."""
    spaces = sorted({s.space for s in searches})
    means, error = [], []
    for i in range(len(COUNTS)):
        groups = [[s.reached[i] for s in searches if s.space == space] for space in spaces]
        means.append(fmean(fmean(group) for group in groups))
        squares = [stdev(g) ** 2 / len(g) if len(g) > 1 else 0.0 for g in groups]
        error.append(math.sqrt(sum(squares)) / len(spaces))
    good = fmean(s.reached[-1] >= GOOD for s in searches)
    seconds = fmean(s.seconds for s in searches)
    return Row(strategy, tuple(means), tuple(error), good, seconds)


def table(rows: Sequence[Row], title: str) -> Iterator[str]:
    """The lines of a table."""
    heads = "".join(f"{n:>8}" for n in COUNTS)
    yield f"{title:<24}{heads}{f'>= {GOOD}':>10}{'ms each':>10}"
    for row in rows:
        means = "".join(f"{r:8.3f}" for r in row.reached)
        yield f"{row.strategy:<24}{means}{row.good:10.2f}{1e3 * row.seconds:10.2f}"


def run(
    folder: Path,
    strategies: Sequence[str],
    repeats: int,
    seed: int,
    jobs: int,
    say: Callable[[str], object],
) -> list[Search]:
    """All searches, strategy by strategy, with a table after each."""
    spaces = sorted(path.name.removesuffix(".csv.gz") for path in folder.glob("*.csv.gz"))
    if not spaces:
        raise SystemExit(f"{folder} holds no recorded spaces (*.csv.gz)")
    found: list[Search] = []
    with ProcessPoolExecutor(jobs) as pool:
        for strategy in strategies:
            tasks = [(space, seed + i) for space in spaces for i in range(repeats)]
            one = partial(search, folder, strategy)
            searches = list(pool.map(one, *zip(*tasks, strict=True), chunksize=4))
            found += searches
            by_space = [
                summary(space, [s for s in searches if s.space == space]) for space in spaces
            ]
            say("\n".join(table(by_space, f"{strategy}:")) + "\n")
    return found


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
    strategies = given.strategies.split(",")
    for name in strategies:
        if name not in STRATEGIES:
            parser.error(f"there is no strategy {name!r}; there are {', '.join(STRATEGIES)}")
    repeats = 5 if given.quick else given.repeats
    if repeats < 1 or given.jobs < 1:
        parser.error("repeats and jobs are at least 1")
    found = run(given.spaces, strategies, repeats, given.seed, given.jobs, print)
    rows = [summary(name, [s for s in found if s.strategy == name]) for name in strategies]
    print("\n".join(table(rows, f"all, {repeats} repeats:")))
    settings = {"repeats": repeats, "evaluations": COUNTS, "settings": asdict(SearchSettings())}
    pooled = [asdict(row) for row in rows]
    write(given.out, {**settings, "pooled": pooled, "searches": [asdict(s) for s in found]})


if __name__ == "__main__":
    main()
