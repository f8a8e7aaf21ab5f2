"""Makes a model of problems whose candidates were measured."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.tuner.model.boosting import Boosting, Examples, train
from tcl.tuner.model.model import Model
from tcl.tuner.training.evaluate import Evaluation, Predict
from tcl.tuner.training.history import History, MeasuredProblem

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
    """As JSON."""
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
