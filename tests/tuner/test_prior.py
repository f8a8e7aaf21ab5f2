"""Searches that start from a model of other measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from statistics import mean

import numpy as np
import pytest

from benchmarks.search import Opinion, RecordedSpace, reached, replay
from tcl.codegen.options.knobs import Knob
from tcl.common.errors import OptionsError
from tcl.tuner.model.model import Prediction
from tcl.tuner.space.search_space import Config, SearchSpace
from tcl.tuner.strategies import make_strategy
from tcl.tuner.strategies.screened import agreement, believed
from tcl.tuner.strategies.strategy import SearchSettings, Strategy

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
SPACE = SearchSpace(tuple(Knob(name, SIZES, 1, ordered=True) for name in "abcd"))
HERE, THERE = (5, 2, 6, 3), (4, 2, 6, 3)
"""Where the fastest is, as logarithms to base 2, on a device and on a similar one."""


def seconds(config: Config, fastest: Sequence[int] = HERE) -> float:
    apart = (math.log2(int(v)) - f for v, f in zip(config, fastest, strict=True))
    return 1 + sum(a * a for a in apart)


@dataclass
class Known:
    """Another device's times, as opinions."""

    fastest: Sequence[int] = THERE
    sign: float = 1.0

    def predict(self, configs: Sequence[Config]) -> Prediction:
        logs = self.sign * np.log([seconds(c, self.fastest) for c in configs])
        return Prediction(logs, np.full(len(logs), 0.1))


def least(strategy: Strategy, count: int) -> float:
    found: list[float] = []
    while len(found) < count:
        results = [(c, seconds(c)) for c in strategy.ask()]
        strategy.tell(results)
        found += [t for _, t in results]
    return min(found[:count])


def made(seed: int, prior: Known | None, seeds: Sequence[Config] = ()) -> Strategy:
    return make_strategy("screened", SPACE, Random(seed), SearchSettings(), seeds, prior)


def test_a_search_begins_where_another_device_is_fast() -> None:
    alone = mean(least(made(seed, None), 10) for seed in range(5))
    assert mean(least(made(seed, Known()), 10) for seed in range(5)) < 0.6 * alone


def test_a_search_gets_over_a_model_that_is_all_wrong() -> None:
    alone = mean(least(made(seed, None), 100) for seed in range(3))
    assert mean(least(made(seed, Known(sign=-1)), 100) for seed in range(3)) <= 1.5 * alone


def test_seeds_come_first_and_count_among_the_first_generation() -> None:
    first = made(0, Known(), [(1, 1, 1, 1), (2, 2, 2, 2)]).ask()
    assert first[:2] == ((1, 1, 1, 1), (2, 2, 2, 2))
    assert len(set(first)) == len(first) == SearchSettings().population // 2


BEGUN = (64, 8, 16, 32)


def begun(name: str, space: SearchSpace = SPACE, prior: Known | None = None) -> Strategy:
    """A search that starts from a configuration, and a slower one."""
    strategy = make_strategy(name, space, Random(3), SearchSettings(), (), prior)
    strategy.tell([((1, 1, 1, 1), 9.0), (BEGUN, 1.0)])
    return strategy


def knobs_changed(config: Config) -> int:
    return sum(a != b for a, b in zip(config, BEGUN, strict=True))


@pytest.mark.parametrize("name", ["genetic", "screened"])
def test_the_first_generation_begins_next_to_what_the_search_starts_from(name: str) -> None:
    strategy = begun(name)
    first = asked = strategy.ask()
    count = SearchSettings().population
    assert {knobs_changed(c) for c in first[: count // 2]} == {1}
    while strategy.rest:
        strategy.tell([(c, 2.0) for c in first])
        first += strategy.ask()
    assert len(set(first)) == len(first) == count
    # Where nothing is known of kinds of changes, they take turns: each knob goes up, and down.
    assert {tuple(np.sign(np.subtract(c, BEGUN))) for c in first[:8]} == {
        tuple(sign * (k == place) for k in range(4)) for place in range(4) for sign in (1, -1)
    }
    assert begun(name).ask() == asked
    alone = make_strategy(name, SPACE, Random(3), SearchSettings()).ask()
    assert sum(knobs_changed(c) == 1 for c in alone) < 4


@pytest.mark.parametrize("prior", [None, Known()])
def test_what_is_next_to_the_start_is_valid(prior: Known | None) -> None:
    small = SearchSpace(
        SPACE.knobs, (lambda v: "large" if int(v["a"]) * int(v["b"]) > 512 else None,)
    )
    strategy = begun("screened", small, prior)
    for _ in range(4):
        asked = strategy.ask()
        assert asked
        assert all(map(small.valid, asked))
        strategy.tell([(c, seconds(c)) for c in asked])


def test_a_model_chooses_around_what_the_search_starts_from() -> None:
    first = begun("screened", prior=Known(HERE)).ask()
    assert len(first) == SearchSettings().population // 2
    assert max(map(knobs_changed, first)) <= 4
    assert min(map(seconds, first)) < 0.5 * seconds(BEGUN)
    assert begun("screened", prior=Known(HERE)).ask() == first


def test_a_space_without_choices_has_one_candidate() -> None:
    space = SearchSpace((Knob("a", (1,), 1, ordered=True),))
    strategy = make_strategy("screened", space, Random(0), SearchSettings(), (), Known((0,)))
    assert strategy.ask() == ((1,),)
    assert strategy.ask() == ()


def test_a_strategy_that_cannot_use_a_model_says_so() -> None:
    with pytest.raises(OptionsError, match="genetic cannot start from a model; screened can"):
        make_strategy("genetic", SPACE, Random(0), SearchSettings(), (), Known())


def test_a_model_is_believed_as_far_as_it_is_right_and_little_is_known() -> None:
    expected = np.linspace(0.0, 1.0, 50)
    right = [believed(expected[:n], 3 + expected[:n]) for n in (1, 10, 50)]
    assert 1 > right[0] > right[1] > right[2] > 0.1
    assert believed(expected, -expected) == 0
    assert believed(expected, np.zeros(50)) == 0


def test_agreement_is_of_the_order_and_equals_count_as_equal() -> None:
    expected = np.array([1.0, 2.0, 3.0, 4.0])
    assert agreement(expected, np.exp(expected)) == 1
    assert agreement(expected, np.array([5.0, 5.0, 6.0, 6.0])) == pytest.approx(
        (4 + 4 * math.sqrt(0.8)) / 8
    )
    assert agreement(expected, np.array([2.0, 1.0, 4.0, 3.0])) == pytest.approx((4 + 4 * 0.6) / 8)
    assert agreement(expected, -expected) == 0
    assert agreement(expected[:1], expected[:1]) == 1


def recorded(name: str, fastest: Sequence[int]) -> RecordedSpace:
    times = {c: seconds(c, fastest) if c[0] != 128 else None for c in SPACE.enumerate()}
    return RecordedSpace(name, SPACE.knobs, times)


def test_what_the_benchmark_measures() -> None:
    here, there = recorded("k_here", HERE), recorded("k_there", THERE)

    def found(prior: Opinion | None, seed: int) -> float:
        made = make_strategy("screened", here, Random(seed), SearchSettings(), prior=prior)
        return reached(here, replay(made, here, 10), (10,))[0]

    warm = Opinion.of(there, here, trees=10)
    assert sum(found(warm, seed) for seed in (0, 1)) > sum(found(None, seed) for seed in (0, 1))


def test_what_is_in_no_recorded_space_is_as_bad_as_its_worst() -> None:
    here = recorded("k_here", HERE)
    warm = Opinion.of(recorded("k_there", THERE), here, trees=10)
    rows = list(here.enumerate())
    of_none = warm.predict([(3, 3, 3, 3)]).logs[0]
    assert (3, 3, 3, 3) not in rows and of_none == max(warm.predict(rows).logs)
