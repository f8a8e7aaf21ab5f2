"""The finals of a search: who is timed how, and who wins."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tuner_fakes import FakeOptions, FakeSpace

from tcl.tuner.measure.finals import BUDGET, FINALISTS, ROUNDS, Entrant, entering, race, winner
from tcl.tuner.measure.reliability import Doubts
from tcl.tuner.measure.verdict import Conditions, Outcome, Verdict
from tcl.tuner.run.events import Candidate, Event, Note, Raced
from tcl.tuner.run.ledger import Ledger
from tcl.tuner.run.search_loop import Finals


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
    assert text.startswith("-aaaa-aa-aa")


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
    entrants = [Entrant("new", tuple(new)), Entrant("old", tuple(old))]
    assert winner(entrants, "old").name == wins
    assert winner(entrants, None).name == ("new" if min(new) < 10 else "old")


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
        def timed(options: Sequence[FakeOptions]) -> list[tuple[float, ...]]:
            self.races.append([o.micros for o in options])
            return [(o.micros * slow,) * 3 for o in options]

        self._finals.hold(timed)
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
