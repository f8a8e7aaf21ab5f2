"""Which options come first: the last measurement counts, and the finals' verdict before that."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from tuner_fakes import KEY

from tcl.tuner.cache import table_rows
from tcl.tuner.cache.ranking import Record, ranked, winners
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.verdict import Outcome, Verdict


class History:
    """Records one after the other."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, options: str, time: float | None, run: str = "r", **finals: int) -> None:
        outcome = (
            Outcome(Verdict.CORRECTNESS) if time is None else Outcome(Verdict.CORRECT, (time,))
        )
        when = float(len(self.records))
        record = Record.from_outcome(options, outcome, when, run)
        values = {name: getattr(record, name) for name in Record.__slots__}
        self.records.append(Record(**{**values, **finals}))

    def heat(self, number: int, *entrants: tuple[str, float], run: str = "r") -> None:
        for place, (options, time) in enumerate(entrants, start=1):
            self.add(options, time, run, heat=number, place=place)

    @property
    def order(self) -> str:
        return "".join(r.options for r in ranked(reversed(self.records)))


@pytest.fixture
def h() -> History:
    return History()


def test_without_finals_the_last_time_counts(h: History) -> None:
    h.add("a", 1.0)
    h.add("b", 2.0)
    h.add("c", 0.5)
    h.add("c", 3.0)
    h.add("d", 0.1)
    h.add("d", None)
    assert h.order == "abc"


def test_a_tied_challenger_does_not_come_before_the_incumbent(h: History) -> None:
    h.heat(0, ("incumbent", 10.0), ("new", 9.95), ("slow", 12.0))
    assert [r.options for r in ranked(h.records)] == ["incumbent", "new", "slow"]
    assert [r.time for r in ranked(h.records)] == [10.0, 9.95, 12.0]


def test_nobody_else_of_that_search_comes_before_its_winner(h: History) -> None:
    h.add("l", 9.0)  # lucky, but after three heats nobody looked again
    h.heat(0, ("i", 10.0), ("n", 9.95))
    assert h.order[0] == "i"


def test_what_is_measured_after_the_finals_may_be_faster(h: History) -> None:
    h.heat(0, ("i", 10.0), ("n", 9.95))
    h.add("x", 9.0)
    assert h.order == "xin"


def test_another_search_may_find_something_faster(h: History) -> None:
    h.heat(0, ("i", 10.0), ("n", 9.95))
    h.add("x", 9.0, "later")
    h.add("y", 11.0, "later")
    assert h.order == "xiny"


def test_the_last_heat_counts(h: History) -> None:
    h.heat(0, ("i", 10.0), ("n", 9.95), ("o", 9.97))
    h.heat(1, ("n", 9.0), ("i", 10.0))
    assert h.order == "nio"  # o lost to i, whatever its time


def test_an_older_verdict_binds_those_that_the_newer_is_silent_on(h: History) -> None:
    h.heat(0, ("a", 1.0), ("b", 0.995), run="r1")
    h.heat(0, ("c", 1.0), ("a", 1.05), run="r2")
    assert h.order == "cab"


def test_a_verdict_outlives_a_search_that_did_not_reach_its_finals(h: History) -> None:
    h.heat(0, ("i", 10.0), ("n", 9.95), run="r1")
    h.add("i", 9.0, "r2")
    h.add("n", 8.9, "r2")
    assert h.order == "in"


def test_a_winner_that_was_refuted_is_gone(h: History) -> None:
    h.heat(0, ("i", 10.0), ("n", 9.95), ("o", 11.0))
    h.add("i", None, "r2")
    assert h.order == "no"


def test_each_search_has_one_winner(h: History) -> None:
    h.add("l", 9.0, "a")
    h.heat(0, ("i", 10.0), ("n", 9.95), run="a")
    h.add("n", 9.0, "b")
    h.add("x", None, "c")
    assert winners(h.records) == {"i", "n"}


@pytest.mark.parametrize("seed", range(40))
def test_a_look_up_finds_the_best_of_all_records(seed: int, tmp_path: Path) -> None:
    """Though it reads some of them only: few times, so that many are the same, and few options,
    so that some failed later or took part in finals of several searches."""
    chance = random.Random(seed)
    cache, records, kinds = TuningCache(tmp_path / "tuning.db"), [], chance.choice((12, 90))
    for when in chance.sample(range(200), chance.choice((30, 120))):
        fails, raced = chance.random() < 0.2, chance.random() < 0.2
        samples = () if fails else (chance.choice((chance.random(), chance.randint(1, 9) / 9)),)
        outcome = Outcome(
            Verdict.TIMEOUT if fails else Verdict.CORRECT,
            samples,
            heat=chance.randint(0, 2) if raced else None,
            place=chance.randint(1, 4) if raced else None,
        )
        options, run = f"o{chance.randrange(kinds)}", f"r{chance.randrange(3)}"
        records.append(Record.from_outcome(options, outcome, float(when), run))
    cache.add(KEY, records)
    once = {r.options for r in records if r.time is not None}
    right = ranked(r for r in records if r.options in once)
    for count in (0, 1, 2, 10, 10**9):
        assert cache.top(KEY, count) == right[:count]
    assert cache.list()[0].best == (right[0].time if right else None)


def test_what_a_look_up_reads_does_not_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, read = TuningCache(tmp_path / "tuning.db"), list[Record]()
    checked = table_rows.checked_record

    def counted(record: Record) -> Record:
        read.append(record)
        return checked(record)

    monkeypatch.setattr(table_rows, "checked_record", counted)
    counts = []
    for many in (100, 1000):
        key = replace(KEY, device=f"with {many} entries")
        cache.add(
            key,
            [
                Record.from_outcome(f"o{k}", Outcome(Verdict.CORRECT, (1.0 + k,)), float(k), "r")
                for k in range(many)
            ],
        )
        read.clear()
        assert [r.options for r in cache.top(key, 3)] == ["o0", "o1", "o2"]
        assert ranked(cache.deciding(key, best=3)[0])[0].options == "o0"
        counts.append(len(read))
    assert counts[0] == counts[1] < 50
