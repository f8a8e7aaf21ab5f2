"""What results say of a key, and what those of many keys say together."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcl.codegen.options.options import MappingOptions
from tcl.tuner.cache.analysis import CacheAnalysis, KeyGroup, Mean, Pool, analyse, decisions
from tcl.tuner.cache.insight import Filter, KeyInsight, insight, insights
from tcl.tuner.cache.key import ArrayLayout, CacheKey
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.verdict import Verdict

DEFAULT = '{"preset":"mlp"}'


def key(size: int, device: str = "a cpu", definition: str = "def f") -> CacheKey:
    return CacheKey(definition, "cpu", (ArrayLayout((size,), (4,), "float32"),), device, "18")


def record(
    options: str, time: float | None, when: float = 0.0, run: str = "r", place: int | None = None
) -> Record:
    verdict = Verdict.TIMEOUT if time is None else Verdict.CORRECT
    samples = () if time is None else (time,)
    heat = None if place is None else 0
    return Record(options, verdict, time, samples, "", when, run, heat, place)


def known(
    times: dict[str, float], size: int = 8, entry: str = "f", device: str = "a cpu"
) -> KeyInsight:
    """A key whose candidates take these times."""
    records = [record(options, time) for options, time in times.items()]
    return insight(key(size, device), entry, records, DEFAULT)


def tiled(*tile: int, lanes: int = 8) -> str:
    return MappingOptions("naive").nest(0).tile(*tile).nest(0).vectorize(lanes).to_json()


def test_what_is_known_of_a_key() -> None:
    found = insight(
        key(8),
        "f",
        [
            record(DEFAULT, 2.0, when=1.0, run="first"),
            record("a", None, when=2.0),
            record("b", 1.5, when=3.0, run="first"),
            record("b", 1.25, when=9.0, run="second"),
            record("a", 5.0, when=8.0, run="second"),
        ],
        DEFAULT,
    )
    assert found.records == 5 and found.verdicts == {"correct": 4, "timeout": 1}
    assert [r.options for r in found.ranked] == ["b", DEFAULT, "a"]
    assert found.best == 1.25 and found.default is found.ranked[1]
    assert found.over_second == found.over_default == pytest.approx(0.6)
    assert [(o, r.when, r.run) for o, r in found.found.items()] == [
        (DEFAULT, 1.0, "first"),
        ("b", 3.0, "first"),
        ("a", 8.0, "second"),
    ]


def test_times_are_compared_that_were_taken_alike() -> None:
    """In the finals, on a machine that was slower then, all take twice as long."""
    found = insight(
        key(8),
        "f",
        [
            record(DEFAULT, 1.5, when=1.0),
            record("winner", 1.0, when=2.0),
            record("lucky", 0.9, when=3.0),
            record("slow", 4.0, when=4.0),
            record("winner", 2.0, when=5.0, place=1),
            record(DEFAULT, 2.5, when=6.0, place=2),
        ],
        DEFAULT,
    )
    margins = {r.options: found.margin(r) for r in found.ranked}
    assert margins == {
        "winner": 0.0,
        DEFAULT: pytest.approx(0.25),  # in turns
        "lucky": pytest.approx(-0.1),  # first readings
        "slow": pytest.approx(3.0),
    }
    analysis = group(analyse([found]))
    assert analysis.over_default is not None
    assert analysis.over_default.median == pytest.approx(0.25)
    assert both(analysis.pool) == (pytest.approx((0.8, 1.0)),) * 2  # the winner keeps all


def test_nothing_correct() -> None:
    found = insight(key(8), "f", [record("a", None)], DEFAULT)
    assert (found.best, found.over_second, found.over_default) == (None, None, None)
    assert analyse([found]) is None and analyse([]) is None
    assert analyse([known({"a": 1.0})]) is None


def both(mean: Mean | Pool) -> tuple[Any, Any]:
    return mean.plain, mean.by_time


def group(analysis: CacheAnalysis | None) -> KeyGroup:
    assert analysis is not None
    (found,) = analysis.groups
    return found


def test_win_rates_and_margins_plain_and_by_time() -> None:
    """A key of 3 s and one of 1 s, which the untuned default wins."""
    found = group(
        analyse(
            [
                known({tiled(8): 3.0, tiled(4): 6.0, DEFAULT: 4.5}, 1),
                known({DEFAULT: 1.0, tiled(8): 1.25}, 2),
            ]
        )
    )
    assert (len(found.keys), len(found.options), found.seconds) == (2, 5, 4.0)
    second, default = found.over_second, found.over_default
    assert second is not None and default is not None
    assert (second.least, second.median, second.most) == (0.25, 0.375, 0.5)
    assert both(second.mean) == pytest.approx((0.375, (3 * 0.5 + 0.25) / 4))
    assert both(default.mean) == pytest.approx((0.25, 3 * 0.5 / 4))
    assert both(found.default_wins) == pytest.approx((0.5, 0.25))
    searched, alone = found.presets
    assert (searched.value, searched.tried, searched.wins) == ("naive +", 2, 1)
    assert both(searched.rate) == pytest.approx((0.5, 0.75))
    assert both(searched.lost) == pytest.approx((0.1, 0.2 / 4))
    assert (alone.value, alone.rate) == ("mlp", Mean(0.5, 0.25))
    assert both(alone.lost) == pytest.approx((1 / 6, 3 / 4 / 3))


def test_a_decision_and_what_fixing_it_loses() -> None:
    """Tiles of 8 win two keys of 1 s, those of 4 one of 8 s, where 8 was tried and 16 was not."""
    found = group(
        analyse(
            [
                known({tiled(8): 1.0, tiled(16): 2.0, DEFAULT: 9.0}, 1),
                known({tiled(8): 1.0, tiled(4): 4.0, DEFAULT: 9.0}, 2),
                known({tiled(4): 8.0, tiled(8): 10.0, DEFAULT: 80.0}, 3),
            ]
        )
    )
    by_name = {d.name: d for d in found.decisions(important=False)}
    assert list(by_name) == ["nests.0.tile.0", "nests.0.vectorize"]  # the dearest to fix first
    tile = by_name["nests.0.tile.0"]
    assert (tile.rates[0].value, tile.rates[0].tried, tile.rates[0].wins) == (8, 3, 2)
    assert both(tile.rates[0].rate) == pytest.approx((2 / 3, 0.2))
    assert both(tile.rates[0].lost) == pytest.approx((0.2 / 3, 0.2 * 0.8))
    assert {r.value: r.tried for r in tile.rates} == {8: 3, 4: 2, 16: 1, "open": 3}
    assert tile.pool.enough(0.93) == (1, 2) and tile.pool.enough(1.0) == (2, 2)
    lanes = by_name["nests.0.vectorize"]
    assert (lanes.rates[0].value, lanes.rates[0].lost) == ("[-1,8]", Mean(0.0, 0.0))
    assert tile.importance is None  # nobody asked


def test_a_value_that_was_not_tried_counts_as_lost_in_a_pool() -> None:
    found = group(
        analyse([known({tiled(8): 1.0, DEFAULT: 2.0}, 1), known({tiled(4): 1.0, DEFAULT: 4.0}, 2)])
    )
    (tile,) = (d for d in found.decisions(important=False) if d.name == "nests.0.tile.0")
    assert (tile.pool.plain[0], tile.pool.by_time[0]) == (0.0, 0.0)
    assert tile.pool.plain[1:] == (0.5, 1.0)
    assert tile.pool.enough(0.95) == (2, 2)
    assert tile.rates[0].tried == 1 and tile.rates[0].lost == Mean(0.0, 0.0)
    assert (found.pool.plain[0], found.pool.by_time[0]) == (0.375, 0.375)  # the default alone
    assert found.pool.plain[1:] == pytest.approx(
        (0.75, 1.0)
    )  # what the default loses most on first


def test_without_a_default_a_key_has_its_slowest() -> None:
    found = group(analyse([known({tiled(8): 1.0, tiled(4): 5.0}, 1)]))
    assert (found.pool.plain[0], found.pool.by_time[0]) == pytest.approx((0.2, 0.2))
    assert found.over_default is None and found.default_wins == Mean(0.0, 0.0)


@pytest.mark.parametrize("seed", range(10))
def test_what_values_keep_is_what_their_best_candidates_keep(seed: int) -> None:
    """Several candidates of a key have the same value."""
    rng = random.Random(seed)
    tiles, widths = (2, 4, 8), (1, 2, 4, 8)
    times = [
        {tiled(t, lanes=w): rng.uniform(1, 5) for t in tiles for w in widths if rng.random() < 0.7}
        | {tiled(16): 6.0}
        for _ in range(5)
    ]
    found = group(analyse([known(each, size) for size, each in enumerate(times, 1)]))
    (tile,) = (d for d in found.decisions(important=False) if d.name == "nests.0.tile.0")

    def kept(*pool: int) -> float:
        names = {tiled(t, lanes=w) for t in pool for w in widths}
        inside = [min((t for o, t in each.items() if o in names), default=9e9) for each in times]
        return sum(min(e.values()) / t for e, t in zip(times, inside, strict=True)) / len(times)

    assert tile.pool.plain[1] == pytest.approx(max(kept(t) for t in tiles))
    assert tile.pool.plain[-1] == pytest.approx(1.0)
    for rate in tile.rates:
        if rate.tried == len(times):
            assert rate.lost.plain == pytest.approx(1 - kept(int(rate.value)))


@pytest.mark.parametrize("seed", range(10))
def test_a_greedy_pool_keeps_what_it_says_and_nearly_as_much_as_the_best_one(seed: int) -> None:
    """Compared with all pools of two."""
    rng = random.Random(seed)
    options = [tiled(k) for k in range(2, 8)]
    keys = []
    for size in range(1, 7):
        tried = rng.sample(options, 4)
        times = {each: rng.uniform(1, 5) * size for each in tried} | {DEFAULT: 6.0 * size}
        keys.append(known(times, size))
    found = group(analyse(keys)).pool
    seconds = [each.best or 0.0 for each in keys]

    def kept(pool: tuple[str, ...], weights: Sequence[float]) -> float:
        shares = []
        for each in keys:
            times = {r.options: r.time or 0.0 for r in each.ranked}
            shares.append(
                min(1.0, (each.best or 0.0) / min(times.get(o, 9e9) for o in (*pool, DEFAULT)))
            )
        return float(np.average(shares, weights=weights))

    for weights, curve in (([1.0] * 6, found.plain), (seconds, found.by_time)):
        assert curve[1] == pytest.approx(max(kept((o,), weights) for o in options))
        best = max(kept(pair, weights) for pair in itertools.combinations(options, 2))
        assert (1 - 1 / math.e) * best <= curve[2] <= best + 1e-12
        assert curve[-1] == pytest.approx(1.0) and list(curve) == sorted(curve)


def test_groups_are_defs_on_devices() -> None:
    two = {"a": 1.0, "b": 2.0}
    analysis = analyse(
        [
            known(two, 1),
            known(two, 2),
            known(two, 1, device="other"),
            known(two, 1, entry="g"),
            known({"a": 1.0}, 3),
        ]
    )
    assert analysis is not None
    assert [(g.entry, g.device, len(g.keys)) for g in analysis.groups] == [
        ("f", "a cpu", 2),
        ("f", "other", 1),
        ("g", "a cpu", 1),
    ]
    assert len(analysis.together.keys) == 4
    assert analysis.left_out == 1


def test_importance_where_it_is_asked_for() -> None:
    """Lanes decide, tiles do nothing."""
    rng = random.Random(0)
    keys = []
    for size in (1, 2):
        times = {
            tiled(tile, lanes=lanes): size * (1 + 3 / lanes) * rng.uniform(1.0, 1.05)
            for tile in range(2, 14)
            for lanes in (1, 2, 4, 8)
        }
        keys.append(known(times, size))
    found = {d.name: d.importance for d in group(analyse(keys)).decisions(important=True)}
    assert found["nests.0.tile.0"] is None
    assert (found["nests.0.vectorize"] or 0.0) > 0.5


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ('{"preset":"mlp"}', {"preset": "mlp"}),
        (
            '{"default":{"tile":[8,0]},"preset":"conv"}',
            {"preset": "conv +", "default.tile.0": 8, "default.tile.1": 0},
        ),
        (
            '{"merge":true,"nests":[{},{"order":[1,0],"fuse":false}],"preset":"naive"}',
            {"preset": "naive +", "nests.1.order": "[1,0]", "nests.1.fuse": 0, "merge": 1},
        ),
        ('{"block":256,"who":{"knows":1.5}}', {"preset": "naive"}),
        ("nothing", {"preset": "?"}),
        ("[1]", {"preset": "?"}),
        ('{"preset":3,"nests":3,"default":[]}', {"preset": "?"}),
    ],
)
def test_decisions(options: str, made: dict[str, object]) -> None:
    assert decisions(options) == made


@pytest.fixture
def cache(tmp_path: Path) -> TuningCache:
    made = TuningCache(tmp_path / "t.db")
    for entry, size, device in (
        ("mm", 64, "EPYC; 2 threads"),
        ("mm", 32, "Xeon"),
        ("add", 8, "Xeon"),
    ):
        made.add(key(size, device, f"def {entry}"), [record("a", 1.0)], entry=entry)
    return made


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Filter(), ["add 8", "mm 64", "mm 32"]),
        (Filter(entry="mm"), ["mm 64", "mm 32"]),
        (Filter(device="xeon"), ["add 8", "mm 32"]),
        (Filter(device="2 THREADS", backend="cpu"), ["mm 64"]),
        (Filter(sizes=("[ 32 ]", "float")), ["mm 32"]),
        (Filter(version="18", sizes=("float32[8]",)), ["add 8"]),
    ],
)
def test_filters(cache: TuningCache, wanted: Filter, found: list[str]) -> None:
    assert [
        f"{each.entry} {each.key.inputs[0].shape[0]}" for each in insights(cache, DEFAULT, wanted)
    ] == found


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (Filter(entry="nm"), "has def 'nm'; there are: add; mm"),
        (Filter(entry="ad"), "has def 'ad'; did you mean add?"),
        (Filter(entry="mm", backend="cuda"), "has namespace 'cuda'; there are: cpu"),
        (
            Filter(sizes=("[63]",)),
            "has sizes '[63]'; there are: float32[8]; float32[64]; float32[32]",
        ),
        (Filter(version="17"), "has version '17'; there are: 18"),
        (Filter(entry="add", device="EPYC"), "has all of these at once"),
    ],
)
def test_why_nothing_is_found(cache: TuningCache, wanted: Filter, why: str) -> None:
    assert insights(cache, DEFAULT, wanted) == ()
    assert wanted.why_none(insights(cache, DEFAULT, Filter())) == why


def test_an_empty_cache(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "none.db")
    assert insights(cache, DEFAULT, Filter(entry="f")) == ()
    assert not cache.path.exists()
