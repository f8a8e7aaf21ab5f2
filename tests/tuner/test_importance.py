"""Which knobs mattered: planted influences are found, and nothing else is."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest

from tcl.codegen.options.knobs import Knob, Value
from tcl.tuner.model.knob_importance import FEWEST, Importance, importance

CHOICES = (1, 2, 4, 8, 16, 32)


def knobs(count: int = 12) -> list[Knob]:
    return [Knob(f"k{i}", CHOICES, 1, ordered=i % 2 == 0) for i in range(count)]


def found(
    count: int, effect: Callable[[Sequence[Value]], float], noise: float = 0.05, seed: int = 0
) -> Importance:
    rng = random.Random(seed)
    configs = [tuple(k.sample(rng) for k in knobs()) for _ in range(count)]
    times = [1e-4 * math.exp(effect(c) + rng.gauss(0, noise)) for c in configs]
    return importance(knobs(), configs, times)


def names(result: Importance) -> list[str]:
    return [i.knob.name for i in result.influences if i.share > result.chance]


def test_planted_knobs_come_first() -> None:
    result = found(300, lambda c: math.log2(int(c[0])) / 3 + 0.8 * (c[1] == 8))
    assert names(result)[:2] == ["k0", "k1"]
    assert result.influences[0].share > 5 * result.chance
    assert result.explained > 0.5
    assert result.samples == 300
    assert not result.why_not
    assert [i.share for i in result.influences] == sorted(
        (i.share for i in result.influences), reverse=True
    )


@pytest.mark.parametrize("seed", range(3))
def test_few_others_exceed_chance(seed: int) -> None:
    """The best of twelve shadows is hardly ever exceeded by one of ten knobs that do nothing."""
    result = found(200, lambda c: math.log2(int(c[0])), seed=seed)
    assert names(result)[0] == "k0"
    assert sum(i.share for i in result.influences[1:]) < 0.2 * result.influences[0].share


def test_knobs_that_matter_only_together() -> None:
    """Neither alone says anything about the time."""
    result = found(500, lambda c: float((int(c[0]) > 4) != (int(c[2]) > 4)))
    assert set(names(result)[:2]) == {"k0", "k2"}


def test_too_few_measurements() -> None:
    result = found(FEWEST - 1, lambda c: float(int(c[0])))
    assert (
        result.why_not
        == f"{FEWEST - 1} measured configurations are too few; at least {FEWEST} are needed"
    )
    assert result.influences == ()
    assert importance(knobs(), [], []).why_not


def test_noise_says_nothing() -> None:
    result = found(200, lambda c: 0.0, noise=1.0)
    assert "measurements do not show which knobs matter" in result.why_not
    assert result.influences == ()


def test_equal_times_say_nothing() -> None:
    assert found(100, lambda c: 0.0, noise=0.0).why_not == "all configurations took the same time"
    same = [(1,) * 12] * 50
    assert importance(knobs(), same, [float(k + 1) for k in range(50)]).why_not


def test_knob_that_was_never_changed() -> None:
    rng = random.Random(1)
    configs = [tuple(k.sample(rng) if i else 4 for i, k in enumerate(knobs())) for _ in range(200)]
    result = importance(knobs(), configs, [1e-3 * int(c[2]) for c in configs])
    still = next(i for i in result.influences if i.knob.name == "k0")
    assert (still.share, still.values) == (0.0, 1)
    assert names(result)[0] == "k2"


def test_same_measurements_same_result() -> None:
    one, two = (found(100, lambda c: math.log2(int(c[0]))) for _ in range(2))
    assert one == two


def test_thousands_of_measurements_are_sampled() -> None:
    result = found(3000, lambda c: math.log2(int(c[0])))
    assert result.samples < 1000
    assert names(result)[0] == "k0"
