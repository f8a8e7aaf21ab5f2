"""Knobs, spaces and strategies; strategies are replayed on functions that stand for a machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from random import Random
from statistics import mean

import pytest

from tcl.codegen.options.knobs import Knob, Value
from tcl.common.errors import OptionsError
from tcl.tuner.space.search_space import Config, SearchSpace
from tcl.tuner.strategies import STRATEGIES, make_strategy
from tcl.tuner.strategies.gaussian import Features, Posterior
from tcl.tuner.strategies.strategy import SELECTIONS, SearchSettings, Strategy

TILE = Knob("tile", (0, 1, 2, 4, 8, 16, 32), 0, ordered=True)
ORDER = Knob("order", ("mnk", "nmk", "kmn"), "mnk", ordered=False)
NAMES = sorted(STRATEGIES)
SETTINGS = SearchSettings()


def rugged_space() -> SearchSpace:
    sizes = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)
    knobs = [Knob(f"tile{i}", sizes, 0, ordered=True) for i in range(4)]
    knobs.append(Knob("order", tuple("abcdefgh"), "a", ordered=False))
    knobs.append(Knob("width", (1, 2, 4, 8, 16), 1, ordered=True))

    def fits(values: Mapping[str, Value]) -> str | None:
        product = math.prod(max(1, int(values[f"tile{i}"])) for i in range(4))
        return "the tiles do not fit the cache" if product > 2**18 else None

    return SearchSpace(tuple(knobs), (fits,))


def rugged(config: Config) -> float | None:
    """A time with an interaction, a best order, noise fixed by the configuration; some fail."""
    *tiles, order, width = config
    logs = [math.log2(1 + int(t)) for t in tiles]
    time = 1.0 + (logs[0] - 5) ** 2 / 8 + (logs[1] + logs[2] - 9) ** 2 / 8 + (logs[3] - 2) ** 2 / 9
    time *= 1.0 + 0.15 * abs("fadgbhce".index(str(order)))
    time *= 1.0 + 0.5 * abs(3 - math.log2(int(width)))
    time *= 1.0 + 0.1 * Random(repr(config)).random()
    return None if logs[1] > 7 and int(width) == 16 else time


def search(strategy: Strategy, evaluations: int) -> list[tuple[Config, float | None]]:
    """Run a strategy on ``rugged``; everything it asked for, in order."""
    found: list[tuple[Config, float | None]] = []
    while len(found) < evaluations and (asked := strategy.ask()):
        results = [(c, rugged(c)) for c in asked]
        strategy.tell(results)
        found += results
    return found[:evaluations]


def generation(strategy: Strategy, time: Callable[[int], float | None]) -> tuple[Config, ...]:
    """All that a strategy asks for until there is no rest of its generation; ``time``: of what it
    asked for so far."""
    asked: tuple[Config, ...] = ()
    while not asked or strategy.rest:
        part = strategy.ask()
        strategy.tell([(c, time(len(asked) + i)) for i, c in enumerate(part)])
        asked += part
    return asked


def best(found: list[tuple[Config, float | None]]) -> float:
    return min(t for _, t in found if t is not None)


def test_knob_samples_and_mutates_within_its_choices() -> None:
    rng = Random(1)
    assert {TILE.sample(rng) for _ in range(200)} == set(TILE.choices)
    for value in TILE.choices:
        moved = {TILE.mutate(value, rng) for _ in range(300)}
        assert moved == set(TILE.choices) - {value}
    assert {ORDER.mutate("mnk", rng) for _ in range(50)} == {"nmk", "kmn"}


def test_knob_features() -> None:
    assert TILE.encode(0) == (0.0,)
    assert TILE.encode(1) == (1.0,)
    assert ORDER.encode("kmn") == (0.0, 0.0, 1.0)
    assert TILE.cardinality == 7


@pytest.mark.parametrize(
    ("choices", "default"), [((), 0), ((1, 1), 1), ((1, 2), 3)], ids=["none", "twice", "default"]
)
def test_knob_refuses_a_declaration_that_makes_no_sense(
    choices: tuple[int, ...], default: int
) -> None:
    with pytest.raises(ValueError, match="knob k"):
        Knob("k", choices, default, ordered=True)


def test_space_names_unknown_knobs_and_values() -> None:
    space = SearchSpace((TILE, ORDER))
    assert space.config({"tile": 8}) == (8, "mnk")
    with pytest.raises(ValueError, match="no knob 'til'; knobs are order, tile"):
        space.config({"til": 8})
    with pytest.raises(ValueError, match="tile cannot be 5; it can be one of: 0, 1, 2"):
        space.fix({"tile": 5})
    with pytest.raises(ValueError, match="must differ"):
        SearchSpace((TILE, TILE))


def test_space_gives_the_reason_why_a_configuration_is_invalid() -> None:
    space = rugged_space()
    assert space.reason((256, 256, 256, 256, "a", 1)) == "the tiles do not fit the cache"
    assert space.reason(space.default) is None
    rng = Random(0)
    samples = [space.sample(rng) for _ in range(200)]
    assert all(c is not None and space.valid(c) and space.contains(c) for c in samples)
    assert not space.contains((3, 0, 0, 0, "a", 1))


def test_space_without_valid_configurations_has_no_samples() -> None:
    space = SearchSpace((TILE,), (lambda values: "never",))
    assert space.sample(Random(0)) is None
    for name in NAMES:
        assert make_strategy(name, space, Random(0), SearchSettings()).ask() == ()


def test_knob_is_rounded_to_powers_of_two() -> None:
    tile = Knob("tile", (0, 2, 3, 48, 64, 111, 333), 0, ordered=True)
    # Nothing, and the whole extent, are no numbers among others.
    assert [tile.nearest_power(v) for v in tile.choices] == [0, 2, 2, 64, 64, 64, 333]
    assert all(ORDER.nearest_power(v) == v for v in ORDER.choices)
    odd = Knob("odd", (3, 5, 7), 3, ordered=True)
    assert all(odd.nearest_power(v) == v for v in odd.choices)


def test_powers_of_two_are_more_alike() -> None:
    sizes = Knob("size", (16, 32, 48, 64), 16, ordered=True)
    rows = Features(SearchSpace((sizes,))).rows([(16,), (32,), (48,), (64,)])
    apart = Features(SearchSpace((sizes,))).distances(rows, rows)
    assert apart[0, 1] < apart[1, 2] and apart[1, 3] < apart[2, 3]
    assert apart[0, 3] == 1 and (apart == apart.T).all()


@pytest.mark.parametrize("name", ["genetic", "screened"])
def test_a_search_opens_with_powers_of_two_where_they_are_valid(name: str) -> None:
    sizes = (*range(8, 136, 8), 200)
    knobs = tuple(Knob(k, sizes, 8, ordered=True) for k in "abc")

    def odd(values: Mapping[str, Value]) -> str | None:
        return "odd" if values["a"] in (8, 16) else None

    first = make_strategy(name, SearchSpace(knobs, (odd,)), Random(0), SETTINGS).ask()
    rounded = sum(set(c) <= {8, 16, 32, 64, 128, 200} for c in first)
    assert rounded >= 0.6 * len(first) and all(c[0] not in (8, 16) for c in first)


def test_first_generation_learns_from_its_own_parts() -> None:
    """Seeds and what is pending count."""
    strategy = make_strategy("screened", rugged_space(), Random(0), SETTINGS)
    parts = [strategy.ask()]
    while strategy.rest:
        strategy.tell([(c, rugged(c)) for c in parts[-1]])
        parts.append(strategy.ask())
    assert [len(part) for part in parts] == [8, *[2] * 6]


def test_space_enumerates_every_configuration() -> None:
    space = SearchSpace((TILE, ORDER))
    assert len(list(space.enumerate())) == space.cardinality == 21


@pytest.mark.parametrize("name", NAMES)
def test_fixed_knobs_are_never_touched(name: str) -> None:
    space = rugged_space().fix({"order": "f", "tile0": 32})
    found = search(make_strategy(name, space, Random(3), SearchSettings()), 300)
    assert len(found) == 300
    assert {(c[0], c[4]) for c, _ in found} == {(32, "f")}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_proposed_twice_or_against_constraints(name: str) -> None:
    space = rugged_space()
    found = search(make_strategy(name, space, Random(5), SearchSettings()), 600)
    configs = [c for c, _ in found]
    assert len(configs) == len(set(configs)) == 600
    assert all(space.valid(c) and space.contains(c) for c in configs)


@pytest.mark.parametrize("name", NAMES)
def test_small_space_is_searched_to_the_last_configuration(name: str) -> None:
    space = SearchSpace((TILE, ORDER), (lambda v: "odd" if v["tile"] == 1 else None,))
    strategy = make_strategy(name, space, Random(0), SearchSettings(population=4, elites=2))
    found: list[Config] = []
    while asked := strategy.ask():
        strategy.tell([(c, float(len(found) + 1)) for c in asked])
        found += asked
        assert len(found) <= 18
    assert sorted(found) == sorted(space.enumerate())


@pytest.mark.parametrize("name", NAMES)
def test_space_of_one_configuration(name: str) -> None:
    space = SearchSpace((Knob("only", (1,), 1, ordered=True),))
    strategy = make_strategy(name, space, Random(0), SearchSettings())
    assert strategy.ask() == ((1,),)
    strategy.tell([((1,), 1.0)])
    assert strategy.ask() == ()


@pytest.mark.parametrize("name", NAMES)
def test_seeds_come_first_and_once(name: str) -> None:
    space = rugged_space()
    known, seed = (8, 8, 8, 8, "f", 8), (4, 4, 4, 4, "f", 4)
    invalid = (256, 256, 256, 256, "a", 1)
    strategy = make_strategy(name, space, Random(0), SearchSettings(), (seed, known, invalid, seed))
    strategy.tell([(known, 1.0)])  # measured before the search began
    asked = generation(strategy, float)
    assert asked[0] == seed
    assert len(asked) == len(set(asked)) == 20
    assert known not in asked
    assert invalid not in asked


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_run(name: str) -> None:
    runs = [
        search(make_strategy(name, rugged_space(), Random(seed), SearchSettings()), 150)
        for seed in (7, 7, 8)
    ]
    assert runs[0] == runs[1]
    assert (runs[0] != runs[2]) == (name != "exhaustive")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_results_may_come_in_parts_and_in_another_order(name: str, seed: int) -> None:
    space, moments = rugged_space(), Random(seed)
    expected = search(make_strategy(name, space, Random(3), SearchSettings()), 120)
    strategy = make_strategy(name, space, Random(3), SearchSettings())
    found: list[tuple[Config, float | None]] = []
    while len(found) < 120:
        assert not strategy.pending
        asked = strategy.ask()
        assert strategy.pending == asked
        found += [(c, rugged(c)) for c in asked]
        while left := list(strategy.pending):
            some = moments.sample(left, moments.randint(1, len(left)))
            strategy.tell([(c, rugged(c)) for c in some])
    assert found[:120] == expected


@pytest.mark.parametrize("name", NAMES)
def test_times_that_are_no_times_are_failures(name: str) -> None:
    """And a time of zero, which a clock may say, is no reason to stop."""
    strategy = make_strategy(name, rugged_space(), Random(0), SearchSettings())
    odd = (math.nan, math.inf, 0.0, 1.0, None, 1e300)
    for _ in range(4):
        asked = strategy.ask()
        assert asked
        strategy.tell([(c, odd[i % len(odd)]) for i, c in enumerate(asked)])
    times = list(strategy.results.values())
    assert sum(time is None for time in times) >= len(times) // 2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("working", [0, 1, 2])
def test_search_goes_on_while_almost_nothing_works(name: str, working: int) -> None:
    strategy = make_strategy(name, rugged_space(), Random(2), SearchSettings())
    for few in (working, 0, 0, 0, 0):
        times = dict.fromkeys(range(few), 1.0)
        assert len(generation(strategy, times.get)) >= 10


@pytest.mark.parametrize("name", NAMES)
def test_equal_times_are_searched_on(name: str) -> None:
    strategy = make_strategy(name, rugged_space(), Random(2), SearchSettings())
    for _ in range(5):
        assert len(generation(strategy, lambda _: 1.0)) >= 10


def scores(evaluations: int, *names: str) -> dict[str, float]:
    """Mean of the best times of ten searches, by strategy."""
    return {
        name: mean(
            best(search(make_strategy(name, rugged_space(), Random(s), SETTINGS), evaluations))
            for s in range(10)
        )
        for name in names
    }


def test_genetic_beats_random_by_far_and_the_screen_beats_both() -> None:
    found = scores(200, "random", "genetic")
    assert found["genetic"] < 0.8 * found["random"], found
    early = scores(20, "random", "genetic", "screened")
    assert early["screened"] < 0.6 * early["random"], early
    assert early["screened"] < 0.8 * early["genetic"], early


def test_screened_search_bears_noise() -> None:
    """Times that are off by 20 %, differently each time, lead to nearly the same place."""
    found = []
    for seed in range(6):
        noise = Random(seed)
        strategy = make_strategy("screened", rugged_space(), Random(seed), SETTINGS)
        told: list[tuple[Config, float | None]] = []
        while len(told) < 120:
            results = [(c, rugged(c)) for c in strategy.ask()]
            told += results
            strategy.tell([(c, t and t * noise.uniform(0.8, 1.2)) for c, t in results])
        found.append(best(told))
    assert mean(found) < 1.3 * mean(
        best(search(make_strategy("screened", rugged_space(), Random(s), SETTINGS), 120))
        for s in range(6)
    )


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("parents", [2, 3])
def test_genetic_with_other_parents(selection: str, parents: int) -> None:
    settings = SearchSettings(selection=selection, parents=parents)
    found = search(make_strategy("genetic", rugged_space(), Random(1), settings), 200)
    assert mean(t for _, t in found[-50:] if t is not None) < 0.6 * mean(
        t for _, t in found[:20] if t is not None
    )


@pytest.mark.parametrize("name", ["genetic", "screened"])
def test_searches_around_the_best_while_almost_nothing_works(name: str) -> None:
    space = rugged_space()
    strategy = make_strategy(name, space, Random(2), SearchSettings())
    first = generation(strategy, lambda i: None if i else 1.0)
    asked = strategy.ask()
    assert len(asked) == 10
    shared = [sum(x == y for x, y in zip(c, first[0], strict=True)) for c in asked]
    assert sum(s >= 4 for s in shared) >= 3  # near the best
    assert sum(s <= 2 for s in shared) >= 1  # and elsewhere


def test_without_crossover_and_mutation_children_still_differ() -> None:
    settings = SearchSettings(crossover=0.0, mutation=0.0)
    found = search(make_strategy("genetic", rugged_space(), Random(2), settings), 100)
    assert len({c for c, _ in found}) == 100


def test_unknown_strategy_is_named_with_the_known_ones() -> None:
    with pytest.raises(
        OptionsError, match=r"no search strategy 'genetik'; .*genetic, random, screened"
    ):
        make_strategy("genetik", rugged_space(), Random(0), SearchSettings())


@pytest.mark.parametrize("name", NAMES)
def test_asked_again_before_it_is_told(name: str) -> None:
    """As many machines do: what is being measured is proposed to none of the others."""
    strategy = make_strategy(name, rugged_space(), Random(4), SETTINGS)
    strategy.tell([(c, rugged(c)) for c in strategy.ask()])
    asked = [c for _ in range(3) for c in strategy.ask()]
    assert len(set(asked)) == len(asked)
    assert strategy.pending == tuple(asked)


def test_screen_reckons_with_what_is_being_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is told of it before anything is chosen."""
    reckoned: list[list[int]] = []
    chosen = Posterior.chosen

    def note(posterior: Posterior, place: int) -> None:
        reckoned.append(posterior._at[place].tolist())
        chosen(posterior, place)

    space = rugged_space()
    strategy = make_strategy("screened", space, Random(0), SETTINGS)
    strategy.tell([(c, rugged(c)) for c in strategy.ask()])
    pending = strategy.ask()
    monkeypatch.setattr(Posterior, "chosen", note)
    asked = strategy.ask()
    assert reckoned == Features(space).rows([*pending, *asked]).tolist()


def test_result_reported_again_replaces_the_first() -> None:
    strategy = make_strategy("genetic", rugged_space(), Random(0), SearchSettings())
    asked = strategy.ask()
    strategy.tell([(c, 5.0) for c in asked])
    strategy.tell([(asked[3], 0.1)])
    assert strategy.results[asked[3]] == 0.1
    assert len(strategy.results) == len(asked)
