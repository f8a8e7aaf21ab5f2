"""What a model of one recorded space is worth to a search of another: kernels of others, on GPUs.

    python -m benchmarks.transfer --repeats 60 --seed 5000 --out FILE    # half a minute

The same search with and without a model that was trained on the same kernel's times on another GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from random import Random
from statistics import fmean, stdev

import numpy as np

from benchmarks.common import command, write
from benchmarks.replay import RecordedSpace, load_space, reached, replay
from benchmarks.search import SPACES
from tcl.tuner.model.boosting import Boosting, Examples, train
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.model import Prediction
from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies import make_strategy
from tcl.tuner.strategies.strategy import SearchSettings

PAIRS = (
    ("convolution_A100", "convolution_W7800"),
    ("convolution_W7800", "convolution_A100"),
    ("dedispersion_MI250X", "dedispersion_W6600"),
    ("dedispersion_W6600", "dedispersion_MI250X"),
)
"""Where a model is from, and where it is used."""
COUNTS = (10, 20, 50, 100)
"""After so many evaluations a search is looked at."""
SETTINGS = Boosting(columns=0.5, rows=1.0)
"""There are few features, and a thousand candidates of one problem."""
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
    def of(
        space: RecordedSpace, learnt: Sequence[Config], about: RecordedSpace, trees: int
    ) -> Opinion:
        """What these rows of a space that was measured say about another with the same knobs."""
        rows = [c for c in learnt if space.times[c] is not None]
        logs = np.log([space.times[c] or math.nan for c in rows])
        places = {c: k for k, c in enumerate(about.enumerate())}
        every = rows_of([*rows, *places])
        weights = np.exp(_SLOW * (logs.min() - logs))
        problem = np.zeros(len(rows), np.int64)
        settings = replace(SETTINGS, trees=trees)
        forest = train(Examples(every[: len(rows)], logs, problem, weights), settings)
        members = forest.predict(every[len(rows) :])
        return Opinion(places, members.mean(axis=0), members.std(axis=0))

    def predict(self, configs: Sequence[Config]) -> Prediction:
        """See ``Prior``."""
        at = [self.places[c] for c in configs]
        return Prediction(self.logs[at], self.spread[at])


@dataclass(frozen=True, slots=True)
class Warm:
    """Searches of one space, with or without a model."""

    space: str
    model: str | None
    """The space that it is of."""
    reached: tuple[float, ...]
    """Optimum / best found after each of ``COUNTS``: means."""
    error: tuple[float, ...]
    """Standard errors of these."""


def searched(
    space: RecordedSpace, prior: Opinion | None, model: str | None, seeds: Sequence[int]
) -> Warm:
    """The shipped strategy, seed by seed."""
    found = []
    for seed in seeds:
        made = make_strategy("screened", space, Random(seed), SearchSettings(), prior=prior)
        found.append(reached(space, replay(made, space, max(COUNTS)), COUNTS))
    columns = list(zip(*found, strict=True))
    errors = tuple(stdev(c) / math.sqrt(len(c)) if len(c) > 1 else 0.0 for c in columns)
    return Warm(space.name, model, tuple(map(fmean, columns)), errors)


def pooled(found: Sequence[Warm], kernel: str, *, model: bool) -> tuple[float, ...]:
    """Means over the spaces of a kernel."""
    own = [w for w in found if w.space.startswith(kernel) and (w.model is not None) == model]
    return tuple(map(fmean, zip(*(w.reached for w in own), strict=True)))


def lines(found: Sequence[Warm]) -> Iterator[str]:
    """A table of searches."""
    yield f"{'optimum / best found after':<48}" + "".join(f"{n:>8}" for n in COUNTS)
    for warm in found:
        name = f"{warm.space}, {'model of ' + warm.model if warm.model else 'no model'}"
        yield f"{name:<48}" + "".join(f"{r:8.3f}" for r in warm.reached)
    for kernel in sorted({w.space.split("_")[0] for w in found}):
        for model in (False, True):
            name = f"{kernel}, pooled, {'with' if model else 'without'} a model"
            means = "".join(f"{r:8.3f}" for r in pooled(found, kernel, model=model))
            yield f"{name:<48}" + means


def main() -> None:
    """The command line."""
    parser = command("transfer", __doc__)
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the first repeat")
    parser.add_argument("--trees", type=int, default=SETTINGS.trees, help="of each member")
    given = parser.parse_args()
    spaces = {p.name.removesuffix(".csv.gz"): load_space(p) for p in SPACES.glob("*.csv.gz")}
    seeds = range(given.seed, given.seed + given.repeats)
    warm = []
    for source, target in PAIRS:
        there = spaces[source]
        prior = Opinion.of(there, list(there.enumerate()), spaces[target], given.trees)
        warm.append(searched(spaces[target], None, None, seeds))
        warm.append(searched(spaces[target], prior, source, seeds))
    print("\n".join(lines(warm)), flush=True)
    asked = {name: getattr(given, name) for name in ("repeats", "seed", "trees")}
    write(given.out, {**asked, "evaluations": COUNTS, "searches": [asdict(w) for w in warm]})


if __name__ == "__main__":
    main()
