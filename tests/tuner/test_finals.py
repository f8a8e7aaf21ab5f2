"""The finals of a search: who is timed how, and who wins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tuner_fakes import QUICK, FakeBackend, FakeOptions, FakeSpace

from tcl.tuner.measure.backend import Kernel
from tcl.tuner.measure.evaluate import set_up
from tcl.tuner.measure.placement import ALIGNED, NUMPY
from tcl.tuner.measure.race import (
    BUDGET,
    FINALISTS,
    ROUNDS,
    Entrant,
    entering,
    interval,
    race,
    winner,
)
from tcl.tuner.measure.reliability import Doubts
from tcl.tuner.measure.timing import Placed
from tcl.tuner.measure.verdict import Conditions, Outcome, Verdict
from tcl.tuner.run.events import Candidate, Event, Note, Raced
from tcl.tuner.run.finals import AFRESH, Finals, why_not_faster
from tcl.tuner.run.ledger import Ledger
from tcl.tuner.run.pipeline import Pipeline
from tcl.tuner.run.workplace import Compilers, Stages
from tcl.workers.pool import WorkerPool


@dataclass(frozen=True)
class Noting(FakeBackend):
    """Its kernels write down in which process they run."""

    noted: str = ""

    def __init__(self, noted: str) -> None:
        super().__init__()
        object.__setattr__(self, "noted", noted)

    def load(self, code: bytes) -> Kernel:
        kernel = super().load(code)

        def run(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
            with open(self.noted, "a") as file:
                file.write(f"{os.getpid()} ")
            kernel(inputs, outputs)

        return run


class Clock:
    """Time that passes only in kernels."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order: list[str] = []

    def __call__(self) -> float:
        return self.now

    def kernel(self, name: str, seconds: float) -> object:
        def run() -> None:
            self.now += seconds
            self.order.append(name)

        return run


def test_all_are_timed_in_turns_and_in_changing_order() -> None:
    clock = Clock()
    runs = [clock.kernel(name, s) for name, s in (("a", 1e-3), ("b", 2e-3), ("c", 5e-3))]
    times = race(runs, clock=clock)  # type: ignore[arg-type]
    assert [len(t) for t in times] == [ROUNDS] * 3
    for taken, seconds in zip(times, (1e-3, 2e-3, 5e-3), strict=True):
        assert taken == pytest.approx([seconds] * ROUNDS)
    first = "".join(clock.order).replace("aaa", "A").replace("bb", "B").replace("cc", "C")
    assert len({first[k : k + 3] for k in range(6, len(first), 3)}) > 2


def test_long_kernels_are_timed_three_times() -> None:
    clock = Clock()
    runs = [clock.kernel("a", BUDGET), clock.kernel("b", BUDGET)]
    assert [len(t) for t in race(runs, clock=clock)] == [3, 3]  # type: ignore[arg-type]


def test_outputs_are_put_back_before_each_sample() -> None:
    clock = Clock()
    reset = clock.kernel("-", 0.0)
    race([clock.kernel("a", 1.0)], reset, clock)  # type: ignore[arg-type,list-item]
    text = "".join(clock.order)
    assert text.startswith("-a-a-a-a")  # of long calls none is repeated


def test_short_calls_are_repeated_so_that_caches_hold_what_they_need() -> None:
    clock = Clock()
    reset = clock.kernel("-", 0.0)
    race([clock.kernel("a", 0.01)], reset, clock)  # type: ignore[arg-type,list-item]
    assert "".join(clock.order).startswith("-aaaa-aa-aa")


def entrant(name: str, **placed: Sequence[float]) -> Entrant:
    return Entrant(name, tuple((place, tuple(times)) for place, times in placed.items()))


@pytest.mark.parametrize(
    ("old", "new", "wins"),
    [
        ([10, 10, 10], [9, 9, 9], "new"),
        ([10, 10, 10], [9.95, 9.95, 9.95], "old"),  # a tie
        ([10, 10, 10, 10, 10], [9, 9, 9, 12, 12], "old"),  # not clearly
        ([10, 10, 10], [11, 11, 11], "old"),
    ],
)
def test_ties_go_to_the_incumbent(old: list[float], new: list[float], wins: str) -> None:
    entrants = [entrant("new", here=new), entrant("old", here=old)]
    assert winner(entrants, "old").name == wins
    assert winner(entrants, None).name == ("new" if min(new) < 10 else "old")


@pytest.mark.parametrize(
    ("near", "far", "wins"),
    [
        ([8, 8, 8, 8, 8, 8], [8, 8, 8, 8, 8, 8], "new"),
        ([5, 5, 5, 5, 5, 5], [10, 10, 10, 10, 9, 11], "new"),
        # By the mean ratio a fifth faster, and slower where arrays lie otherwise.
        ([6, 6, 6, 6, 6, 6], [11, 11, 11, 11, 11, 11], "old"),
        ([11, 11, 11, 11, 11, 11], [6, 6, 6, 6, 6, 6], "old"),
        ([8, 8, 8, 8, 8, 8], [9, 11, 9, 11, 9, 11], "new"),  # that may be chance
    ],
)
def test_who_is_slower_on_a_placement_does_not_win(
    near: list[float], far: list[float], wins: str
) -> None:
    old = entrant("old", near=[10] * 6, far=[10] * 6)
    assert winner([old, entrant("new", near=near, far=far)], "old").name == wins


def test_the_next_fastest_wins_where_the_fastest_may_not() -> None:
    entrants = [
        entrant("old", near=[10] * 6, far=[10] * 6),
        entrant("lopsided", near=[4] * 6, far=[12] * 6),
        entrant("even", near=[9] * 6, far=[9] * 6),
    ]
    assert winner(entrants, "old").name == "even"
    assert winner(entrants, None).name == "lopsided"


@pytest.mark.parametrize(
    ("count", "ranks"), [(1, (0, 0)), (3, (0, 2)), (6, (0, 5)), (9, (1, 7)), (15, (3, 11))]
)
def test_intervals_of_medians_are_those_of_the_sign_test(
    count: int, ranks: tuple[int, int]
) -> None:
    """From 6 values on, with the ranks that tables of the sign test have for 5 %."""
    values = [float(k) for k in reversed(range(count))]
    assert interval(values) == ranks


def test_one_kernel_is_timed_once_whatever_options_made_it() -> None:
    ranked = [("a", 1), ("b", 1), ("old", 2), ("c", 2), *((f"d{k}", None) for k in range(9))]
    found = entering("old", ranked)
    assert found == ["old", "a", *(f"d{k}" for k in range(FINALISTS - 1))]
    assert entering(None, ranked[:4]) == ["a", "old"]
    assert entering("old", []) == ["old"]


class Held:
    """Finals of candidates that a search found: by their real times, and how many times as slow
    the machine was. Its yardstick takes a second."""

    def __init__(self, candidates: Sequence[tuple[int, float]]) -> None:
        self.events: list[Event[FakeOptions]] = []
        self.races: list[list[int]] = []
        space = FakeSpace()
        ledger = Ledger("it", space, None, None, "", self.events.append)
        for at, (micros, slow) in enumerate(candidates):
            conditions = Conditions(at, 0.1, None, slow)
            outcome = Outcome(Verdict.CORRECT, (micros * slow,), conditions=conditions)
            ledger.add(Candidate(FakeOptions(micros), None, min(at, 1), outcome), at, 1, known=True)
        self.ledger = ledger
        self._finals = Finals(ledger, space, self.events.append, Doubts())

    def run(self, slow: float) -> FakeOptions:
        def timed(options: Sequence[FakeOptions]) -> list[Placed]:
            self.races.append([o.micros for o in options])
            return [(("here", (o.micros * slow,) * 3),) for o in options]

        self._finals.hold(timed)
        assert self.ledger.best is not None
        return self.ledger.best.options

    def confirmed(self, afresh: dict[int, tuple[float, float]] | None) -> FakeOptions:
        """Who wins after the check, in which kernels take these times on two placements."""

        def timed(options: Sequence[FakeOptions]) -> list[Placed] | None:
            self.races.append([o.micros for o in options])
            if afresh is None:
                return None
            times = [afresh[o.micros] for o in options]
            return [(("near", (near,) * 6), ("far", (far,) * 6)) for near, far in times]

        self._finals.confirm(timed)
        assert self.ledger.best is not None
        return self.ledger.best.options

    @property
    def notes(self) -> list[str]:
        return [e.message for e in self.events if isinstance(e, Note)]


def test_the_finals_are_open_to_those_that_were_timed_in_a_bad_moment() -> None:
    held = Held([(k, 2.0 if k < 600 else 1.0) for k in (980, *range(600, 975, 25), 550, 560, 570)])
    assert held.run(1.0) == FakeOptions(550)
    assert len(held.races) == 1
    assert held.races[0][:5] == [980, 550, 560, 570, 600]
    assert not held.notes


@pytest.mark.parametrize("slow", [1.0, 2.0, 0.5])
def test_finals_on_a_slower_machine_say_so_and_end_as_others(slow: float) -> None:
    held = Held([(k, 1.0) for k in range(500, 1000, 25)])
    assert held.run(slow) == FakeOptions(500)
    assert len(held.races) == 1
    assert len(held.notes) == (slow > 1)
    assert all("the finals took 2 times as long" in note for note in held.notes)
    raced = next(e for e in held.events if isinstance(e, Raced))
    assert raced.decision.winner is not None
    assert raced.decision.winner.time == pytest.approx(500 * slow)  # as measured


@pytest.mark.parametrize(
    ("winner_", "default", "stays", "why"),
    [
        ((5.0, 5.0), (9.0, 9.0), True, ""),
        ((5.0, 9.0), (9.0, 9.0), True, ""),
        ((5.0, 9.1), (9.0, 9.0), False, "it takes 1.01 × as long on arrays far"),
        ((9.0, 9.0), (9.0, 9.0), False, "it takes 1.00 × as long"),
        ((8.95, 8.95), (9.0, 9.0), False, "it takes 0.99 × as long"),  # ties go to the default
        ((18.0, 9.9), (9.0, 9.0), False, "2.00 × as long on arrays near and 1.10 × as long on"),
    ],
)
def test_a_fresh_process_has_the_last_word(
    winner_: tuple[float, float], default: tuple[float, float], stays: bool, why: str
) -> None:
    held = Held([(k, 1.0) for k in (900, *range(500, 900, 25))])
    assert held.run(1.0) == FakeOptions(500)
    found = held.confirmed({500: winner_, 900: default})
    assert found == FakeOptions(500 if stays else 900)
    assert held.races[-1] == [500, 900]
    assert len(held.notes) == (not stays)
    assert all(why in note and "what the search began with" in note for note in held.notes)
    decision = held.ledger.decision
    assert decision.kept != stays
    assert decision.winner is not None and decision.start is not None
    assert decision.winner.outcome.message == decision.start.outcome.message == AFRESH
    assert decision.start.outcome.placements == {"near": default[0], "far": default[1]}


def test_one_that_is_faster_in_most_rounds_and_by_its_median_slower_does_not_win() -> None:
    """As may be where the machine is busy."""
    one, other = entrant("one", here=[1, 5, 9, 7, 7]), entrant("other", here=[2, 6, 10, 3, 3])
    assert why_not_faster(one, other) == "it takes 2.33 × as long"


def test_a_winner_that_a_fresh_process_could_not_time_is_not_confirmed() -> None:
    held = Held([(k, 1.0) for k in (900, *range(500, 900, 25))])
    held.run(1.0)
    assert held.confirmed(None) == FakeOptions(900)
    assert held.notes == [
        "a fresh process did not time the winner of the finals: what the search began with is the "
        "result"
    ]
    (last,) = [e for e in held.events if isinstance(e, Raced)][-1:]
    places = {c.options.micros: c.outcome.place for c in last.candidates}
    assert (places[900], places[500]) == (1, 2)  # in the cache as well


def test_nothing_is_confirmed_where_nothing_won() -> None:
    held = Held([(k, 1.0) for k in (500, *range(510, 900, 25))])
    assert held.run(1.0) == FakeOptions(500)
    races = len(held.races)
    assert held.confirmed({}) == FakeOptions(500)
    assert len(held.races) == races


def test_the_check_is_done_by_a_process_that_has_run_nothing(tmp_path: Path) -> None:
    """Each kernel writes down which process it runs in, and how often."""
    noted = str(tmp_path / "pids")
    pool = WorkerPool(1, initializer=set_up, initargs=(Noting(noted), None, QUICK))
    backend = Noting(noted)
    try:
        stages = Stages((Compilers(pool, 1),), pool, 1, pool.kill)
        pipeline = Pipeline(backend, stages, lambda: 0)
        options = [FakeOptions(10), FakeOptions(20)]
        assert pipeline.race(options) is not None
        before = set(Path(noted).read_text().split())
        times = pipeline.race_afresh(options)
        after = set(Path(noted).read_text().split()) - before
    finally:
        pool.kill()
    assert times is not None
    assert [[name for name, _ in placed] for placed in times] == [[ALIGNED.name, NUMPY.name]] * 2
    assert len(before) == len(after) == 1
