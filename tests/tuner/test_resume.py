"""Searches that end early and go on: where they end, and what they refuse."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tuner_fakes import (
    KEY,
    FakeBackend,
    FakeOptions,
    FakeSpace,
    as_recorded,
    events_of,
    fake_tuner,
    in_threads,
    race_recorded,
    started,
)

from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import ArgumentError, CacheError, OptionsError
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.model.model import Prediction
from tcl.tuner.run.checkpoint import SavedSearch
from tcl.tuner.run.events import (
    CandidateDone,
    Event,
    Finished,
    GenerationStarted,
    Note,
    Resumed,
)
from tcl.tuner.run.result import TuningResult
from tcl.tuner.run.tuner import Tuner
from tcl.tuner.space.search_space import Config
from tcl.tuning import Tuner as UserTuner
from tcl.tuning import autotune

START = (FakeOptions(400), FakeOptions(975))
KINDS = ("right", "raises")
SETTINGS = {
    "generations": 5,
    "population": 8,
    "seed": 11,
    "compile_timeout": 300.0,
    "run_timeout": 300.0,
}


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are always the same, and no processes are begun."""
    monkeypatch.setattr("tcl.tuner.run.pipeline.evaluate_candidate", as_recorded)
    in_threads(monkeypatch)
    monkeypatch.setattr("tcl.tuner.run.pipeline.race_candidates", race_recorded)


def tuner(path: Path, **settings: Any) -> Tuner[FakeOptions]:
    return fake_tuner(*KINDS, cache=TuningCache(path), **{**SETTINGS, **settings})


def found(result: TuningResult[FakeOptions]) -> list[list[tuple[str, str]]]:
    """The candidates of each generation, and what became of them."""
    last = max(c.generation for c in result.history)
    return [
        sorted((str(c.options), str(c.outcome)) for c in result.history if c.generation == g)
        for g in range(last + 1)
    ]


def saved(path: Path) -> SavedSearch:
    search = SavedSearch.last(TuningCache(path), KEY)
    assert search is not None
    return search


def whole(path: Path, **settings: Any) -> TuningResult[FakeOptions]:
    return tuner(path, **settings).tune(START)


@pytest.mark.parametrize("strategy", ["screened", "genetic", "random"])
def test_same_seed_and_same_measurements_make_the_same_search(
    tmp_path: Path, strategy: str
) -> None:
    first = whole(tmp_path / "1.db", strategy=strategy)
    second = whole(tmp_path / "2.db", strategy=strategy)
    assert found(first) == found(second)
    other = whole(tmp_path / "3.db", strategy=strategy, seed=12)
    assert found(other) != found(first)


@pytest.mark.parametrize(
    ("strategy", "kill", "processes"),
    [
        *(("screened", False, False), ("screened", True, False), ("screened", True, True)),
        *(("genetic", False, False), ("genetic", True, False)),
    ],
)
def test_it_ends_as_if_it_had_not_been_interrupted(
    tmp_path: Path, strategy: str, kill: bool, processes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often, and where what ends is processes, too."""
    expected = whole(tmp_path / "whole.db", strategy=strategy)
    if processes:
        monkeypatch.undo()
        monkeypatch.setattr("tcl.tuner.run.pipeline.evaluate_candidate", as_recorded)
    path = tmp_path / "parts.db"
    parts, stops = 0, [1, 10, 17] if processes else [1, 5, 10, 11, 17, 22]
    search: SavedSearch | None = None
    while True:
        part = tuner(path, strategy=strategy)
        count = 0

        def report(event: Event[FakeOptions], part: Tuner[FakeOptions] = part) -> None:
            nonlocal count
            count += isinstance(event, CandidateDone)
            if stops and count >= stops[0]:
                stops.pop(0)
                part.stop(kill=kill)

        result = part.tune(START if search is None else (), report, search)
        parts += 1
        search = saved(path)
        if not result.interrupted:
            break
    assert parts > 3
    assert found(result) == found(expected)
    # Nothing was measured twice.
    records = [r for r in TuningCache(path).of_run(KEY, search.name) if r.heat is None]
    assert max(Counter((r.generation, r.options) for r in records).values()) == 1
    assert len(records) == len(expected.history)


_SCRIPT = """
import sys
import tcl.tuner.run.pipeline
from tuner_fakes import *
from tcl.tuner.model.model import Prediction
from tcl.tuner.run.checkpoint import SavedSearch
tcl.tuner.run.pipeline.evaluate_candidate = as_recorded
cache = TuningCache(sys.argv[1])
tuner = fake_tuner("right", "raises", cache=cache, generations=5, population=8, seed=11,
                   compile_timeout=300.0, run_timeout=300.0)
resume = SavedSearch.last(cache, KEY)
count = 0
def report(event):
    global count
    count += type(event).__name__ == "CandidateDone"
    if count == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
tuner.tune((FakeOptions(400), FakeOptions(975)), report, resume)
"""


def test_a_killed_process_loses_nothing_and_another_one_goes_on(tmp_path: Path) -> None:
    expected = whole(tmp_path / "whole.db")
    path = tmp_path / "killed.db"
    for count in (1, 11, 20):
        process = started(_SCRIPT, str(path), str(count))
        _, errors = process.communicate(timeout=600)
        assert process.returncode == -9, errors
        assert len(saved(path).outcomes()) >= count
    result, events = events_of(tuner(path), resume=saved(path))
    assert found(result) == found(expected)
    assert isinstance(events[0], Resumed)
    done = [e.candidate for e in events if isinstance(e, CandidateDone)]
    assert tuple(done) == result.history
    generations = [e.generation for e in events if isinstance(e, GenerationStarted)]
    assert generations == sorted(generations)


def test_a_search_that_is_stopped_as_it_goes_on_is_not_lost(tmp_path: Path) -> None:
    """Nothing of it has been done again by then."""
    path = tmp_path / "t.db"
    whole(path, generations=2)
    again = tuner(path)
    again.tune((), lambda e: again.stop() if isinstance(e, Resumed) else None, saved(path))
    result, _ = events_of(tuner(path), resume=saved(path))
    assert found(result) == found(whole(tmp_path / "whole.db"))


def test_a_complete_search_goes_on_for_more_generations(tmp_path: Path) -> None:
    longer = whole(tmp_path / "longer.db", generations=7)
    path = tmp_path / "t.db"
    whole(path)
    result, events = events_of(tuner(path, generations=7), resume=saved(path))
    assert found(result) == found(longer)
    assert isinstance(events[-1], Finished)
    # Its finals are told from those before.
    heats = Counter((r.heat, r.place) for r in saved(path).records if r.heat is not None)
    assert max(heats.values()) == 1
    again, _ = events_of(tuner(path, generations=7), resume=saved(path))
    assert found(again) == found(longer)  # nothing was left to do


def test_what_the_search_began_with_is_what_it_goes_on_with(tmp_path: Path) -> None:
    """Seeds of the cache, which holds other results by then."""
    path = tmp_path / "t.db"
    other = replace(KEY, definition="another")
    cache = TuningCache(path)
    part = tuner(path)
    part.tune(START, lambda e: part.stop() if isinstance(e, CandidateDone) else None)
    search = saved(path)
    assert search.start == tuple(f'{{"kind": "right", "micros": {n}}}' for n in (400, 975))
    assert SavedSearch.last(cache, other) is None
    fake_tuner(*KINDS, cache=cache, seed=3, generations=1).tune()
    result, _ = events_of(tuner(path), resume=search)
    assert found(result) == found(whole(tmp_path / "whole.db"))


def test_a_search_is_complete_when_its_generations_are_done(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    part = tuner(path)
    part.tune(START, lambda e: part.stop() if isinstance(e, GenerationStarted) else None)
    assert not saved(path).complete(TunerConfig(generations=5).settings)
    tuner(path).tune((), None, saved(path))
    (search,) = SavedSearch.ended(TuningCache(path), KEY)
    assert search.found
    assert search.complete(TunerConfig(generations=5).settings)
    assert search.complete(TunerConfig(generations=4).settings)
    assert not search.complete(TunerConfig(generations=6).settings)


def test_a_search_is_complete_when_nothing_is_left_to_try(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    few = Tuner(
        FakeBackend(),
        FakeSpace(micros=(50, 75, 100, 125)),
        config=TunerConfig(generations=9, population=3, seed=1),
        cache=TuningCache(path),
        key=KEY,
    )
    assert len(few.tune().history) == 4
    assert saved(path).complete(TunerConfig(generations=9).settings)


def test_a_search_is_complete_when_its_time_is_spent(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    result = tuner(path, time_limit=3.0, generations=1000, delay=0.2, threads=1).tune(START)
    first = saved(path)
    assert first.seconds >= 3.0
    assert first.complete(TunerConfig(generations=1000, time_limit=3.0).settings)
    assert not first.complete(TunerConfig(generations=1000, time_limit=1e6).settings)
    assert not first.complete(TunerConfig(generations=1000).settings)
    more = tuner(path, time_limit=1.0, generations=1000, delay=0.2, threads=1).tune((), None, first)
    # Breaks do not count, earlier parts do.
    assert saved(path).seconds == pytest.approx(first.seconds + more.seconds, abs=10.0)
    assert result.run == more.run


# Refusals.


def test_a_search_that_is_going_on_is_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    waits = "print('there', flush=True); sys.stdin.read()"
    script = _SCRIPT.replace("os.kill(os.getpid(), signal.SIGKILL)", waits)
    process = started(script, str(path), "3", stdin=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        with pytest.raises(CacheError, match=f"still running, in process {process.pid}; stop it"):
            saved(path)
    finally:
        process.kill()
        process.communicate()
    assert saved(path).generation == 1


def test_a_search_of_this_process_is_not_taken_over_either(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    refused: list[object] = []

    def report(event: Event[FakeOptions]) -> None:
        if isinstance(event, CandidateDone) and not refused:
            with pytest.raises(CacheError, match="is still running, in process"):
                saved(path)
            refused.append(event)

    tuner(path, generations=1).tune(START, report)
    assert refused
    assert saved(path).generation == 2


def test_of_two_that_resume_at_once_one_is_refused(tmp_path: Path) -> None:
    """Both looked up the search while nobody was at it."""
    path = tmp_path / "t.db"
    whole(path, generations=1)
    first, second = saved(path), saved(path)
    waits = "print('there', flush=True); sys.stdin.read()"
    script = _SCRIPT.replace("os.kill(os.getpid(), signal.SIGKILL)", waits)
    process = started(script, str(path), "12", stdin=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        with pytest.raises(CacheError, match=f"still running, in process {process.pid}; stop it"):
            tuner(path).tune((), None, first)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(600) == 0
    finally:
        process.kill()
        process.wait()
    # By now the search has gone on, and that is where it goes on from.
    result = tuner(path).tune((), None, second)
    assert found(result) == found(whole(tmp_path / "whole.db"))
    records = [r for r in TuningCache(path).of_run(KEY, second.name) if r.heat is None]
    assert len(records) == len(result.history)


def test_of_two_threads_that_resume_at_once_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    whole(path, generations=1)
    search = saved(path)
    refused: list[str] = []

    def report(event: Event[FakeOptions]) -> None:
        if isinstance(event, CandidateDone) and not refused:
            for again in (lambda: tuner(path).tune((), None, search), lambda: saved(path)):
                with pytest.raises(CacheError, match=f"running, in process {os.getpid()}; stop"):
                    again()
                refused.append("once")

    result = tuner(path).tune((), report, search)
    assert refused == ["once", "once"]
    assert found(result) == found(whole(tmp_path / "whole.db"))
    assert saved(path).name == search.name  # nobody is at it any more


@pytest.mark.parametrize("kill", [False, True])
def test_an_end_before_it_goes_on_changes_nothing(tmp_path: Path, kill: bool) -> None:
    path = tmp_path / "t.db"
    whole(path, generations=2)
    part = tuner(path)
    result = part.tune((), lambda e: part.stop(kill=kill), saved(path))
    assert result.interrupted
    final = tuner(path).tune((), None, saved(path))
    assert found(final) == found(whole(tmp_path / "whole.db"))


def test_what_is_known_is_the_result_though_the_reference_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that was resumed on a busy machine had no result, and said that none was there."""
    path, over = tmp_path / "t.db", threading.Event()
    known = whole(path, generations=2)
    before = TuningCache(path).history(KEY)
    monkeypatch.setattr("tcl.tuner.run.tuner.REFERENCE", 0.05)
    monkeypatch.setattr("tcl.tuner.run.tuner._SILENT", 0.0)
    monkeypatch.setattr(FakeBackend, "reference", lambda *arrays: over.wait(60))
    events: list[Event[FakeOptions]] = []
    result = tuner(path, time_limit=0.05).tune((), events.append, saved(path))
    over.set()
    assert result.options == known.options and found(result) == found(known)
    notes = [e.message for e in events if isinstance(e, Note)]
    assert any(note.startswith("the reference did not finish") for note in notes)
    assert sum(note.startswith("the reference, plain code") for note in notes) == 1
    assert TuningCache(path).history(KEY) == before


@pytest.mark.parametrize(
    ("column", "path", "value"),
    [
        ("config", "$.population", 1),
        ("config", "$.sorcery", 1),
        ("config", "$.seed", "many"),
        ("state", "$.start", 3),
        ("state", "$.seeds", [1]),
        ("state", "$.generation", None),
    ],
)
def test_a_state_that_is_not_ours_is_refused(
    tmp_path: Path, column: str, path: str, value: object
) -> None:
    file = tmp_path / "t.db"
    whole(file, generations=2)
    with sqlite3.connect(file) as db:
        db.execute(
            "UPDATE notes SET value = json_set(value, ?, json(?))",
            (path.replace("$", f"$.{column}"), json.dumps(value)),
        )
    db.close()
    with pytest.raises(
        CacheError, match="by another version of tcl and cannot continue; start a new"
    ):
        tuner(file).tune((), None, saved(file))


def test_other_knobs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    whole(path, generations=1)
    settings: dict[str, Any] = SETTINGS
    other = fake_tuner("right", cache=TuningCache(path), **settings)
    with pytest.raises(CacheError, match="with other knobs, or other fixed values; fix the same"):
        other.tune((), None, saved(path))


# As users have it.

_SOURCE = "def scaled(float(N) A) -> (B) { B(n) = 2 * A(n) }"


def test_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # these are kernels
    in_threads(monkeypatch)
    path = tmp_path / "t.db"
    A = np.arange(100, dtype=np.float32)
    user = UserTuner(_SOURCE, path, threads=1)
    events: list[Event[MappingOptions]] = []
    config = TunerConfig(generations=1, population=4, seed=1)
    first = user.tune("scaled", [A], None, config, resume=True, report=events.append)
    assert events[0] == Note("there is no search to resume; this one is new")
    more = user.tune("scaled", [A], None, TunerConfig(generations=2), resume=True)
    assert more.run == first.run
    assert more.history[: len(first.history)] == first.history
    assert len(more.history) > len(first.history)
    with pytest.raises(OptionsError, match="started with population 4, not 6; leave it out"):
        user.tune("scaled", [A], None, TunerConfig().population(6), resume=True)
    with pytest.raises(
        ArgumentError, match=r"started from .*; leave out the options, or start a new"
    ):
        user.tune("scaled", [A], "naive", resume=True)
    with pytest.raises(ArgumentError, match="only from a cache; name its file"):
        UserTuner(_SOURCE).tune("scaled", [A], resume=True)
    with pytest.raises(ArgumentError, match="resume=True needs store_to_cache=True"):
        autotune(_SOURCE, "scaled", A, resume=True)
    found = autotune(
        _SOURCE, "scaled", A, cache_filename=path, store_to_cache=True, resume=True, threads=1
    )
    assert found is not None


def test_fixed_knobs_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    in_threads(monkeypatch)
    A = np.arange(100, dtype=np.float32)
    user = UserTuner(_SOURCE, tmp_path / "t.db", threads=1)
    config = TunerConfig(generations=2, population=4, seed=1)
    result = user.tune("scaled", [A], None, config, fixed={"s0.lanes": 4})
    vectors = [c.options.nests[0].vectorize for c in result.history]
    assert {lanes for _, lanes in filter(None, vectors)} == {4}
    with pytest.raises(CacheError, match="fixed values; fix"):
        user.tune("scaled", [A], None, config, resume=True)
    more = config.generations(3)
    resumed = user.tune("scaled", [A], None, more, fixed={"s0.lanes": 4}, resume=True)
    assert len(resumed.history) > len(result.history)
    with pytest.raises(OptionsError, match=r"there is no knob 's0.lane'; knobs are s0"):
        user.tune("scaled", [A], fixed={"s0.lane": 4})
    with pytest.raises(OptionsError, match=r"s0.lanes cannot be 3; it can be one of: 1, 2, 4"):
        user.tune("scaled", [A], fixed={"s0.lanes": 3})
    with pytest.raises(OptionsError, match="options do not have the values of the fixed knobs"):
        user.tune("scaled", [A], "naive", fixed={"s0.lanes": 4})


def test_what_was_not_chosen_is_as_it_was() -> None:
    before = TunerConfig(generations=3, population=7, seed=5).settings
    config = TunerConfig(generations=9, threads=2).going_on(before)
    assert (config.settings.generations, config.settings.threads) == (9, 2)
    assert (config.settings.population, config.settings.seed) == (7, 5)
    assert config.with_defaults(population=99, seed=4) == config  # all of it is chosen now
    assert TunerConfig(population=6).with_defaults(population=9, seed=4) == TunerConfig(
        population=6, seed=4
    )


@dataclass(frozen=True)
class Guess:
    """A model that likes what takes long."""

    identity: str
    title: str = "cpu.json"

    def predict(self, configs: Sequence[Config]) -> Prediction:
        return Prediction(np.array([-float(c[0]) for c in configs]), np.ones(len(configs)))


def notes(tuner: Tuner[FakeOptions], search: SavedSearch | None = None) -> list[str]:
    said: list[Any] = []
    tuner.tune(() if search else START, said.append, search)
    return [e.message for e in said if isinstance(e, Note) and "model" in e.message]


def test_a_search_goes_on_with_the_model_that_it_began_with(tmp_path: Path) -> None:
    starts = ["the search starts from the model cpu.json"]
    one = Guess("one")
    expected = whole(tmp_path / "whole.db", prior=one)
    assert found(expected) != found(whole(tmp_path / "without.db"))
    path = tmp_path / "parts.db"
    assert notes(tuner(path, prior=one, generations=2)) == starts
    assert notes(tuner(path, prior=one), saved(path)) == starts
    assert proposed(path) == proposed(tmp_path / "whole.db")


def proposed(path: Path) -> list[tuple[int | None, str]]:
    """The candidates of a search, with their generations."""
    return sorted((r.generation, r.options) for r in saved(path).records if r.heat is None)


def test_a_search_of_which_results_were_lost_goes_on_with_the_others(tmp_path: Path) -> None:
    """Its strategy proposes something else without them."""
    path = tmp_path / "t.db"
    whole(path, generations=3)
    lost = "DELETE FROM results WHERE generation = 2"
    TuningCache(path).transaction(lambda db: db.execute(lost))
    left = proposed(path)
    result, _ = events_of(tuner(path), resume=saved(path))
    tried = [(c.generation, FakeSpace().to_json(c.options)) for c in result.history]
    assert set(left) < set(tried) and len({options for _, options in tried}) == len(tried)
    assert {generation for generation, _ in tried} == {0, 1, 3, 4, 5}


def test_a_search_whose_model_has_changed_goes_on_without_one_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "parts.db"
    tuner(path, prior=Guess("one"), generations=2).tune(START)
    another = [
        "the search started from another model than the current one: it continues without a model"
    ]
    assert notes(tuner(path, prior=Guess("two"), generations=3), saved(path)) == another
    assert notes(tuner(path, prior=Guess("one"), generations=4), saved(path)) == []
    before = tmp_path / "before.db"
    tuner(before, generations=2).tune(START)
    assert notes(tuner(before, prior=Guess("one"), generations=3), saved(before)) == []


@pytest.mark.parametrize("settings", [{"model": False}, {"strategy": "genetic"}])
def test_a_model_can_be_left_out(tmp_path: Path, settings: dict[str, Any]) -> None:
    assert notes(tuner(tmp_path / "x.db", prior=Guess("one"), generations=1, **settings)) == []
