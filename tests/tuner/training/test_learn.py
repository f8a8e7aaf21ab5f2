"""Learning from measured candidates, on times that a formula gives."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest
from nests import NARROW

from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.check.definitions import check
from tcl.grammar.tree.canonical import canonical_text
from tcl.grammar.tree.checked import CheckedDef
from tcl.tuner.cache.key import ArrayLayout, CacheKey
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.model.boosting import Boosting
from tcl.tuner.model.cpu_features import SCHEMA
from tcl.tuner.model.model import Model, Prediction
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.tuner.training.history import History, history, subject_of
from tcl.tuner.training.learn import Score, chosen, evaluate, folds, importance, learn, predictor

FEW = Boosting(members=2, trees=25, depth=4, rate=0.2, ridge=0.5)
DEFAULT = MappingOptions("mlp")
TEXTS = {
    "product": "def product(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
    "rows": "def rows(float(M, K) A) -> (C) { C(m) +=! A(m, k) }",
}


@cache
def defs() -> dict[str, CheckedDef]:
    return {name: check(text)[name] for name, text in TEXTS.items()}


def key(name: str, *shapes: tuple[int, ...], device: str = "narrow") -> CacheKey:
    layouts = tuple(ArrayLayout(s, (4 * s[1], 4), "float32") for s in shapes)
    return CacheKey(canonical_text(defs()[name]), "cpu", layouts, device, CODEGEN_VERSION)


def measured(cache: TuningCache, name: str, *shapes: tuple[int, ...], seed: int = 0) -> None:
    """Candidates that take the same time, but a third longer where lanes are reduced."""
    about = key(name, *shapes)
    subject = subject_of(about, defs()[name], NARROW)
    space, rng = MappingSpace(subject.program, NARROW), Random(seed)
    drawn = [space.space.sample(rng) for _ in range(40)]
    options = [DEFAULT, *(space.to_options(c) for c in drawn if c is not None)]
    rows, _ = subject.extract([subject.choices(o) for o in options])
    times = np.where(rows[:, SCHEMA.names.index("lanes_reduced")] > 0, 4e-4, 3e-4)
    cache.add(
        about,
        [
            Record.from_outcome(o.to_json(), Outcome(Verdict.CORRECT, (float(t),)), 1.0 + k, "run")
            for k, (o, t) in enumerate(zip(options, times, strict=True))
        ],
        entry=name,
    )


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> History:
    cache = TuningCache(tmp_path_factory.mktemp("learn") / "tuned.db")
    for seed, m in enumerate((24, 40, 64)):
        measured(cache, "product", (m, 32), (32, 48), seed=seed)
        measured(cache, "rows", (m, 200), seed=seed)
    return history(cache, defs().values(), {"narrow": NARROW})


def test_everything_correct_of_known_defs_and_devices_is_learned_from(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "tuned.db")
    measured(cache, "product", (24, 32), (32, 48))
    wrong = Outcome(Verdict.CORRECTNESS, message="no")
    about = key("product", (24, 32), (32, 48))
    cache.add(about, [Record.from_outcome(DEFAULT.to_json(), wrong, 0.5, "run")], entry="product")
    right = Outcome(Verdict.CORRECT, (1.0,))
    records = [Record.from_outcome(DEFAULT.to_json(), right, 0.5 + k, "run") for k in range(4)]
    cache.add(replace(about, device="other"), records[:1], entry="product")
    cache.add(replace(about, backend="cuda"), records[:2], entry="product")
    cache.add(replace(about, codegen_version="0"), records[:3], entry="product")
    cache.add(replace(about, definition="?"), records, entry="product")
    found = history(cache, defs().values(), {"narrow": NARROW})
    (problem,) = found.problems
    assert problem.entry == "product"
    assert found.candidates == len(problem.options) == len(problem.seconds) > 20
    assert found.passed_over == {
        "of another device": 1,
        "of another backend": 2,
        "of another version of the compiler": 3,
        "of defs whose text was not given": 4,
        "not correct": 1,
    }


def test_what_was_put_into_the_times_is_learned(known: History) -> None:
    model = learn(known.problems, FEW)
    for problem in known.problems:
        logs = model.predict_rows(problem.rows).logs
        assert np.std(logs - problem.gains) < 0.5 * np.std(problem.gains)
    first, *_ = importance(model)
    assert first in ("lanes_reduced", "lanes_reduced.change")
    assert sum(importance(model).values()) == pytest.approx(1)


def test_sizes_and_defs_that_were_held_out_are_chosen_for(known: History) -> None:
    for held_out in ("sizes", "def"):
        found = evaluate(known.problems, held_out, lambda ps: predictor(learn(ps, FEW)))
        assert found is not None and len(found.choices) == len(known.problems)
        scores = found.scores()
        assert scores["model"].mean > 0.9
        assert all(s.least <= s.tenth <= s.mean <= 1 for s in scores.values())
    assert evaluate(known.problems[:1], "def", lambda ps: predictor(learn(ps))) is None


def test_nothing_that_is_held_out_together_is_learned_from(known: History) -> None:
    by_def = folds(known.problems, "def")
    assert sorted(map(len, by_def)) == [3, 3]
    for part in by_def:
        assert len({known.problems[k].entry for k in part}) == 1
    by_sizes = folds(known.problems, "sizes", 4)
    assert sorted(k for part in by_sizes for k in part) == list(range(6))
    assert len(by_sizes) == 4


def test_the_default_stands_unless_three_percent_are_promised(known: History) -> None:
    problem = next(p for p in known.problems if p.options[0] == DEFAULT or DEFAULT in p.options)
    place = problem.options.index(DEFAULT)
    other = 0 if place else 1
    logs = np.ones(len(problem.options))
    for promised, used in ((0.02, place), (0.05, other)):
        logs[other] = 1 + math.log(1 - promised)
        choice = chosen(problem, lambda _: Prediction(logs, np.zeros_like(logs)))
        assert choice.chosen == problem.seconds[used]
        assert choice.model == problem.seconds[other]


def test_equal_data_and_settings_give_equal_models(known: History) -> None:
    a, b = (learn(known.problems, FEW) for _ in range(2))
    assert np.array_equal(a.forest.leaves, b.forest.leaves)
    assert not np.array_equal(
        a.forest.leaves, learn(known.problems, replace(FEW, seed=1)).forest.leaves
    )


def test_a_model_learns_on(known: History) -> None:
    before = learn(known.problems[:3], FEW)
    after = learn(known.problems, FEW, before)
    assert after.forest.members == (50, 50)
    assert np.array_equal(after.forest.leaves[:25], before.forest.leaves[:25])
    assert (after.low <= before.low).all() and (after.high >= before.high).all()

    def error(model: Model) -> float:
        return sum(
            float(np.var(model.predict_rows(p.rows).logs - np.log(p.seconds)))
            for p in known.problems
        )

    assert error(after) < error(before)


def test_a_problem_unlike_all_that_was_learned_from_is_named(known: History) -> None:
    model = learn(known.problems, FEW)
    row = known.problems[0].rows[0].copy()
    assert model.unseen(row) is None
    row[SCHEMA.names.index("flops")] += 10
    assert model.unseen(row) == "flops"


def test_scores() -> None:
    assert Score.from_ratios([1.0, 0.5]) == Score(0.75, 0.55, 0.5)
