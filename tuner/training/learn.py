"""Makes a model of problems whose candidates were measured."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.codegen.options.options import MappingOptions
from tcl.tuner.model.boosting import Boosting, Examples, train
from tcl.tuner.model.model import Model, Prediction
from tcl.tuner.training.history import History, MeasuredProblem


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What was chosen among the measured candidates of a problem."""

    entry: str
    sizes: str
    candidates: int
    best: float
    """Seconds of the fastest."""
    model: float
    """Seconds of the one that the model puts first, whatever it promises."""
    chosen: float
    """Seconds of the one that is used: the heuristic default unless the model promises enough."""
    default: float | None
    """Seconds of the heuristic default; None if it was not measured."""
    expected: float
    """Seconds of the one that the analytic model alone puts first."""
    used: MappingOptions
    """The options of the one that is used."""


@dataclass(frozen=True, slots=True)
class Score:
    """The best time over those of what was chosen, over all problems."""

    mean: float
    tenth: float
    """10th percentile."""
    least: float

    @staticmethod
    def from_ratios(ratios: Sequence[float]) -> Score:
        """1 is the best that there is."""
        return Score(
            float(np.mean(ratios)), float(np.percentile(ratios, 10)), float(np.min(ratios))
        )


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Of a way to choose, on problems that were held out."""

    held_out: str
    """What was left out together: ``sizes`` of a def, or a ``def``."""
    choices: tuple[ModelChoice, ...]

    def scores(self) -> dict[str, Score]:
        """By who chooses: what is used, the model alone, the heuristic default, the analytic
        model."""
        found = {
            name: Score.from_ratios([min(1.0, c.best / getattr(c, name)) for c in self.choices])
            for name in ("chosen", "model", "expected")
        }
        known = [min(1.0, c.best / c.default) for c in self.choices if c.default is not None]
        return {**found, **({"default": Score.from_ratios(known)} if known else {})}

    def as_data(self) -> dict[str, Any]:
        scores = {name: asdict(score) for name, score in self.scores().items()}
        return {
            "held_out": self.held_out,
            "scores": scores,
            "choices": [{**asdict(c), "used": c.used.as_dict()} for c in self.choices],
        }


Predict = Callable[[MeasuredProblem], Prediction]
"""What is expected of a problem's candidates."""


def chosen(problem: MeasuredProblem, predict: Predict) -> ModelChoice:
    """What a model chooses of a problem's candidates."""
    expected, seconds = predict(problem), problem.seconds
    place = expected.best
    known = problem.default
    used = place if known is None or expected.worth(place, known) else known
    return ModelChoice(
        *(problem.entry, problem.key.sizes, len(seconds), problem.best),
        *(float(seconds[place]), float(seconds[used])),
        None if known is None else float(seconds[known]),
        float(seconds[int(problem.expected.argmin())]),
        problem.options[used],
    )


FOLDS = {"sizes": 6, "def": 12}
"""How many parts problems are held out in, at most, each of which takes a model of its own."""


def folds(
    problems: Sequence[MeasuredProblem], held_out: str, count: int | None = None
) -> list[list[int]]:
    """Places of problems that are held out together, in at most ``count`` parts (``FOLDS``).
    ``sizes``: those with the same def and sizes are in one part, ``def``: all of a def."""
    groups: dict[object, list[int]] = {}
    for place, problem in enumerate(problems):
        key = problem.key.definition_hash
        group = key if held_out == "def" else (key, problem.key.inputs)
        groups.setdefault(group, []).append(place)
    found: list[list[int]] = [[] for _ in range(min(count or FOLDS[held_out], len(groups)))]
    for k, places in enumerate(groups.values()):
        found[k % len(found)] += places
    return found


def evaluate(
    problems: Sequence[MeasuredProblem],
    held_out: str,
    learn: Callable[[Sequence[MeasuredProblem]], Predict],
) -> Evaluation | None:
    """Each problem is chosen for by what was learned from others. None with fewer than two
    groups."""
    parts = folds(problems, held_out)
    if len(parts) < 2:
        return None
    found: dict[int, ModelChoice] = {}
    for part in parts:
        predict = learn([p for k, p in enumerate(problems) if k not in part])
        found.update({k: chosen(problems[k], predict) for k in part})
    return Evaluation(held_out, tuple(found[k] for k in sorted(found)))


_SLOWEST = 0.5
"""The largest logarithm of a time over the default's that is learned: how much longer a candidate
takes does not matter to a choice, and readings of a busy machine may be many times too long."""
_SLOW = 0.5
"""A candidate counts as the best time over its own, to this power: what lies far from the best
has little to say about it."""
_RACED = 3.0
"""How many single readings a time counts that was taken in turns with others."""


def examples(problems: Sequence[MeasuredProblem]) -> Examples:
    """All candidates of some problems; each problem counts the same."""
    weights = []
    for problem in problems:
        own = (problem.best / problem.seconds) ** _SLOW * np.where(problem.raced, _RACED, 1.0)
        weights.append(own * len(own) / own.sum())
    return Examples(
        np.concatenate([p.rows for p in problems]),
        np.concatenate([np.minimum(p.gains, _SLOWEST) for p in problems]),
        np.repeat(np.arange(len(problems)), [len(p.seconds) for p in problems]),
        np.concatenate(weights),
    )


def learn(
    problems: Sequence[MeasuredProblem],
    settings: Boosting | None = None,
    before: Model | None = None,
) -> Model:
    """A model of at least one problem, all of one backend; ``before``: one to whose trees others
    are added."""
    schema = problems[0].subject.schema
    data, settings = examples(problems), settings or Boosting()
    forest = train(data, settings, before.forest if before is not None else None)
    low, high = data.rows.min(axis=0), data.rows.max(axis=0)
    if before is not None:
        low, high = np.minimum(low, before.low), np.maximum(high, before.high)
    return Model(schema, forest, low, high)


def predictor(model: Model) -> Predict:
    """A model as evaluations ask it."""
    return lambda problem: model.predict_rows(problem.rows)


def importance(model: Model) -> dict[str, float]:
    """The part that each feature has in what the leaves say: how far apart those are that its
    questions tell from each other, largest first; together 1."""
    names, forest = model.schema.names, model.forest
    found = dict.fromkeys(names, 0.0)
    depth = forest.features.shape[1]
    for features, leaves in zip(forest.features, forest.leaves, strict=True):
        cube = leaves.reshape((2,) * depth)
        for level, feature in enumerate(features):
            # Leaf numbers have level 0's answer as their last bit.
            apart = np.diff(cube, axis=depth - 1 - level)
            found[names[feature]] += float((apart**2).mean())
    total = sum(found.values()) or 1.0
    shares = {name: value / total for name, value in found.items() if value}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def manifest_path(model: Path) -> Path:
    """Beside the model's file."""
    return model.with_suffix(".manifest.json")


def manifest(
    known: History, settings: Boosting, model: Model, evaluations: Sequence[Evaluation]
) -> str:
    schema = model.schema
    data = {
        "backend": schema.backend,
        "schema": {
            "version": schema.version,
            "digest": schema.digest,
            "features": [
                {"name": f.name, "group": group, "unit": f.unit, "meaning": f.meaning}
                for group, rows in schema.groups.items()
                for f in rows
            ],
        },
        "codegen_version": CODEGEN_VERSION,
        "devices": sorted({p.key.device for p in known.problems}),
        "defs": dict(sorted(Counter(p.entry for p in known.problems).items())),
        "searches": len(known.problems),
        "candidates": known.candidates,
        "passed_over": dict(known.passed_over),
        "settings": asdict(settings),
        "trees": list(model.forest.members),
        "evaluations": [e.as_data() for e in evaluations],
        "importance": {name: round(share, 5) for name, share in importance(model).items()},
    }
    return json.dumps(data, indent=1) + "\n"
