"""How good a model is at choosing: on problems that it has not learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tcl.codegen.options.options import MappingOptions
from tcl.tuner.model.model import Prediction
from tcl.tuner.training.history import MeasuredProblem


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
        """For a manifest."""
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
