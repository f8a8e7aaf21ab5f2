"""What a model of one recorded space is worth on others: kernels of others, on GPUs.

    python -m benchmarks.transfer --out FILE            # a quarter of an hour
    python -m benchmarks.transfer --repeats 5           # a first impression
    python -m benchmarks.transfer --searches            # warm starts alone, half a minute

Warm starts: the same search with and without a model that was trained on the same kernel's times on
another GPU. Selection: the candidate that a model puts first, of those it has not learned from. See
``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from random import Random
from statistics import fmean, stdev

import numpy as np

from benchmarks.replay import RecordedSpace, load_space, replay
from benchmarks.search import SPACES
from tcl.tuner.model.boosting import Boosting, Examples, train
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.model import Prediction
from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies import make_strategy
from tcl.tuner.strategies.strategy import SearchSettings
from tcl.tuner.training.evaluate import Score

PAIRS = (
    ("convolution_A100", "convolution_W7800"),
    ("convolution_W7800", "convolution_A100"),
    ("dedispersion_MI250X", "dedispersion_W6600"),
    ("dedispersion_W6600", "dedispersion_MI250X"),
)
"""Where a model is from, and where it is used."""
COUNTS = (10, 20, 50, 100)
"""After so many evaluations a search is looked at."""
PARTS = 10
"""Of a space, each of which is held out once."""
CANDIDATES = 1500
"""That one is selected of."""
_LEARNT = 2000
"""Rows of a space that a model for another part of it learns from."""
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
        times = replay(made, space, max(COUNTS))
        best = list(accumulate((math.inf if t is None else t for t in times), min))
        found.append([space.optimum / best[min(n, len(best)) - 1] for n in COUNTS])
    columns = list(zip(*found, strict=True))
    errors = tuple(stdev(c) / math.sqrt(len(c)) if len(c) > 1 else 0.0 for c in columns)
    return Warm(space.name, model, tuple(map(fmean, columns)), errors)


@dataclass(frozen=True, slots=True)
class Selected:
    """Best time / time of the selected candidate, by who selects."""

    space: str
    model: str
    """What was learned from."""
    scores: dict[str, Score]


def _ratio(space: RecordedSpace, config: Config, best: float) -> float:
    """0 if it failed."""
    taken = space.times[config]
    return 0.0 if taken is None else best / taken


def _best(space: RecordedSpace, configs: Sequence[Config]) -> float:
    return min(t for c in configs if (t := space.times[c]) is not None)


def parts_of(space: RecordedSpace) -> list[list[Config]]:
    """What is held out in turn. Configurations that agree in the two knobs with the most choices
    are in the same part."""
    wide = sorted(range(len(space.knobs)), key=lambda k: -space.knobs[k].cardinality)[:2]
    groups: dict[object, list[Config]] = {}
    for config in space.enumerate():
        groups.setdefault(tuple(config[k] for k in wide), []).append(config)
    apart = list(groups.values())
    Random(0).shuffle(apart)
    return [[c for group in apart[k::PARTS] for c in group] for k in range(PARTS)]


def held_out(space: RecordedSpace, trees: int) -> Selected:
    """Parts of a space in turn, for which a model of the others selects."""
    parts = parts_of(space)
    model, luck = [], []
    for k, part in enumerate(parts):
        others = [c for j, each in enumerate(parts) if j != k for c in each]
        learnt = Random(k).sample(others, min(_LEARNT, len(others)))
        expected = Opinion.of(space, learnt, space, trees).predict(part)
        best = _best(space, part)
        model.append(_ratio(space, part[expected.best], best))
        luck.append(fmean(_ratio(space, c, best) for c in part))
    return Selected(
        space.name, space.name, {"model": Score.from_ratios(model), "any": Score.from_ratios(luck)}
    )


def transferred(source: RecordedSpace, target: RecordedSpace, prior: Opinion) -> Selected:
    """Candidates are drawn again and again; ``copied`` is the one that the other GPU is fastest
    with."""
    by: dict[str, list[float]] = {"model": [], "copied": [], "any": []}
    for seed in range(100):
        drawn = Random(seed).sample(list(target.enumerate()), CANDIDATES)
        best = _best(target, drawn)
        there = [c for c in drawn if source.times.get(c) is not None]
        copied = min(there, key=lambda c: source.times[c] or math.inf)
        by["model"].append(_ratio(target, drawn[prior.predict(drawn).best], best))
        by["copied"].append(_ratio(target, copied, best))
        by["any"].append(fmean(_ratio(target, c, best) for c in drawn))
    return Selected(target.name, source.name, {k: Score.from_ratios(v) for k, v in by.items()})


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
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transfer", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the first repeat")
    parser.add_argument("--trees", type=int, default=SETTINGS.trees, help="of each member")
    parser.add_argument("--searches", action="store_true", help="leave the selection out")
    parser.add_argument("--out", type=Path, help="write everything here, as JSON")
    given = parser.parse_args()
    spaces = {p.name.removesuffix(".csv.gz"): load_space(p) for p in SPACES.glob("*.csv.gz")}
    seeds = range(given.seed, given.seed + given.repeats)
    warm, selected = [], []
    for source, target in PAIRS:
        there = spaces[source]
        prior = Opinion.of(there, list(there.enumerate()), spaces[target], given.trees)
        warm.append(searched(spaces[target], None, None, seeds))
        warm.append(searched(spaces[target], prior, source, seeds))
        if not given.searches:
            selected.append(transferred(there, spaces[target], prior))
    print("\n".join(lines(warm)), flush=True)
    if not given.searches:
        selected += [held_out(spaces[name], given.trees) for name in sorted(spaces)]
    for each in selected:
        about = "its other parts" if each.model == each.space else each.model
        print(f"{each.space}, model of {about}:")
        for who, s in each.scores.items():
            print(
                f"  {who:<8} mean {s.mean:.3f}  10th percentile {s.tenth:.3f}  least {s.least:.3f}"
            )
    if given.out is not None:
        data = {
            "date": time.strftime("%Y-%m-%d"),
            "repeats": given.repeats,
            "seed": given.seed,
            "trees": given.trees,
            "evaluations": COUNTS,
            "searches": [asdict(w) for w in warm],
            "selected": [asdict(s) for s in selected],
        }
        given.out.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
