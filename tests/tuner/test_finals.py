"""The finals of a search: who is timed how, and who wins."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from decisions import Noise, decided, recorded, rough, summary
from tuner_fakes import QUICK, FakeBackend, FakeOptions, FakeSpace

from tcl.tuner.measure.backend import CompiledKernel
from tcl.tuner.measure.evaluate import set_up
from tcl.tuner.measure.paired import BUDGET, ROUNDS, Sessions, entering, race, standing
from tcl.tuner.measure.placement import ALIGNED, NUMPY
from tcl.tuner.measure.reliability import Doubts
from tcl.tuner.measure.timing import Placed
from tcl.tuner.measure.verdict import Conditions, Outcome, Verdict
from tcl.tuner.run.events import Candidate, Event, Note, Raced
from tcl.tuner.run.finals import Finals
from tcl.tuner.run.ledger import Ledger
from tcl.tuner.run.pipeline import CandidatePipeline
from tcl.tuner.run.workplace import Compilers, Stages
from tcl.workers.pool import WorkerPool


@dataclass(frozen=True)
class Noting(FakeBackend):
    """Its kernels write down in which process they run."""

    noted: str = ""

    def __init__(self, noted: str) -> None:
        super().__init__()
        object.__setattr__(self, "noted", noted)

    def load(self, code: bytes) -> CompiledKernel:
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
    # Of each turn three calls that fill the caches, then those that are timed.
    first = [name for name, _ in groupby(clock.order)]
    assert len({tuple(first[k : k + 3]) for k in range(3, len(first) - 3, 3)}) > 2


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
    warm, sample = 3, 1
    for samples in "".join(clock.order).split("-")[2:]:
        assert samples == "a" * (warm + sample)


def test_a_kernel_is_called_until_it_takes_no_less_time() -> None:
    """What another one stored past the caches comes back to them in some calls."""
    clock, left = Clock(), [0]

    def polluting() -> None:
        clock.now += 1e-3
        left[0] = 6

    def polluted() -> None:
        clock.now += 1e-3 * (1 + 0.2 * left[0])
        left[0] = max(0, left[0] - 1)

    _, times = race([polluting, polluted], clock=clock)
    assert times == pytest.approx([1e-3] * ROUNDS)


def test_kernels_that_take_as_long_are_called_as_often_in_a_sample() -> None:
    """A sample of more calls finds more of the arrays in the caches, which is no merit."""
    clock, calls, cold = Clock(), [0, 0], [True]

    def first() -> None:
        clock.now += 1e-3 if cold[0] else 0.5e-3
        calls[0] += 1

    def second() -> None:
        cold[0] = False
        clock.now += 0.5e-3
        calls[1] += 1

    race([first, second], clock=clock)
    assert calls[0] == calls[1]


def sessions(*each: Mapping[str, Sequence[Sequence[float]]]) -> Sessions:
    """Of each session the rounds of each kernel, on one placement after the other."""
    found = Sessions()
    for times in each:
        found.add(
            {n: tuple((f"at {k}", tuple(t)) for k, t in enumerate(ts)) for n, ts in times.items()}
        )
    return found


def wins(*each: Mapping[str, Sequence[Sequence[float]]]) -> str:
    names = list(dict.fromkeys(name for times in each for name in times))
    return standing(sessions(*each), names, "old").order[0]


OLD = [[10.0] * 9]


@pytest.mark.parametrize(
    ("new", "count", "winner"),
    [
        ([9.0] * 9, 1, "new"),
        ([9.5] * 9, 1, "old"),  # one process may have done that
        ([9.5] * 9, 3, "new"),
        ([9.95] * 9, 9, "old"),  # a tie
        ([9, 9, 9, 9, 12, 12, 12, 12, 12], 9, "old"),  # not sure
        ([11.0] * 9, 3, "old"),
    ],
)
def test_ties_and_doubts_go_to_the_incumbent(new: list[float], count: int, winner: str) -> None:
    assert wins(*[{"old": OLD, "new": [new]}] * count) == winner


def test_a_slow_process_decides_nothing() -> None:
    """Whatever slows all of a process down, or a round of it."""
    slow = {"old": [[15.0] * 9], "new": [[13.5] * 9]}
    drifting = {"old": [[10.0 + k for k in range(9)]], "new": [[9.0 + 0.9 * k for k in range(9)]]}
    found = sessions(slow, drifting)
    assert found.compare("new", "old").ratio == pytest.approx(0.9)
    assert wins(slow, drifting) == "new"


def test_one_bad_process_of_several_asks_for_more_of_them() -> None:
    good, bad = {"old": OLD, "new": [[9.0] * 9]}, {"old": OLD, "new": [[13.0] * 9]}
    found = standing(sessions(good, good, good, bad), ["old", "new"], "old")
    assert (found.order[0], found.open, found.settled) == ("old", ("new",), False)
    assert wins(*[good] * 8, {"old": OLD, "new": [[10.5] * 9]}) == "new"


@pytest.mark.parametrize(
    ("near", "far", "winner"),
    [
        (8, 8, "new"),
        (5, 10, "new"),
        # By the mean ratio a fifth faster, and slower where arrays lie otherwise.
        (6, 11, "old"),
        (11, 6, "old"),
        (8, 10.05, "new"),  # that cannot be told
    ],
)
def test_who_is_slower_on_a_placement_does_not_win(near: float, far: float, winner: str) -> None:
    session = {"old": [[10.0] * 9] * 2, "new": [[near] * 9, [far] * 9]}
    assert wins(*[session] * 3) == winner


def test_the_next_fastest_wins_where_the_fastest_may_not() -> None:
    session = {
        "old": [[10.0] * 9] * 2,
        "lopsided": [[4.0] * 9, [12.0] * 9],
        "even": [[9.0] * 9] * 2,
    }
    assert wins(*[session] * 3) == "even"


@pytest.mark.parametrize(
    ("noise", "count"), [(rough, 400), (recorded("quiet"), 100), (recorded("loaded"), 100)]
)
def test_decisions_through_noise(noise: Noise, count: int) -> None:
    """Known true times. The bars of ``python -m benchmarks.decisions``, which makes 1,000."""
    found = summary([decided(seed, noise) for seed in range(count)])
    assert found["slower than the default by more than 1 %"] == 0
    assert found["within 3 % of the best"] >= 0.95
    assert found["default kept"] < 0.5


def test_one_kernel_is_timed_once_whatever_options_made_it() -> None:
    ranked = [("a", 1), ("b", 1), ("old", 2), ("c", 2), *((f"d{k}", None) for k in range(9))]
    found = entering("old", ranked, 6)
    assert found == ["old", "a", *(f"d{k}" for k in range(5))]
    assert entering(None, ranked[:4], 6) == ["a", "old"]
    assert entering("old", [], 6) == ["old"]


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

    def run(self, slow: float = 1.0, **failing: Outcome | None) -> FakeOptions:
        """Who wins where sessions take so many times as long. ``failing``: how candidates fail by
        their times, as ``at500``; None: they end the process."""

        def timed(options: Sequence[FakeOptions]) -> list[Placed | Outcome] | None:
            self.races.append([o.micros for o in options])
            outcomes = [failing.get(f"at{o.micros}", "right") for o in options]
            if None in outcomes:
                return None
            return [
                found if isinstance(found, Outcome) else (("here", (o.micros * slow,) * 3),)
                for o, found in zip(options, outcomes, strict=True)
            ]

        self._finals.hold_race(timed)
        assert self.ledger.best is not None
        return self.ledger.best.options

    @property
    def notes(self) -> list[str]:
        return [e.message for e in self.events if isinstance(e, Note)]


def test_the_finals_are_open_to_those_that_were_timed_in_a_bad_moment() -> None:
    held = Held([(k, 2.0 if k < 600 else 1.0) for k in (980, *range(600, 975, 25), 550, 560, 570)])
    assert held.run(1.0) == FakeOptions(550)
    assert held.races[0][:5] == [980, 550, 560, 570, 600]
    assert not held.notes


@pytest.mark.parametrize("slow", [1.0, 2.0, 0.5])
def test_finals_on_a_slower_machine_say_so_and_end_as_others(slow: float) -> None:
    held = Held([(k, 1.0) for k in range(500, 1000, 25)])
    assert held.run(slow) == FakeOptions(500)
    assert len(held.notes) == (slow > 1)
    assert all("the same kernels took 2 times as long" in note for note in held.notes)
    raced = next(e for e in held.events if isinstance(e, Raced))
    assert raced.decision.winner is not None
    assert raced.decision.winner.time == pytest.approx(500 * slow)  # as measured


WRONG = Outcome(Verdict.CORRECTNESS, message="output O differs")


def test_where_the_first_fails_in_a_fresh_process_the_next_has_its_turn() -> None:
    held = Held([(k, 1e-6) for k in (900, *range(500, 900, 25))])
    assert held.run(1e-6, at500=WRONG, at525=None) == FakeOptions(550)
    # A session that ends is held again for each of its challengers alone.
    assert [900, 525] in held.races and [900, 550] in held.races
    assert not held.notes
    (last,) = [e for e in held.events if isinstance(e, Raced)][-1:]
    assert not {500, 525} & {c.options.micros for c in last.candidates}


def test_where_nothing_can_be_timed_what_the_search_began_with_is_the_result() -> None:
    held = Held([(k, 1.0) for k in (900, 500, 600)])
    assert held.run(at900=None) == FakeOptions(900)
    assert held.notes == [
        "no process timed the fastest candidate beside the starting point, so the starting "
        "point is the result"
    ]
    assert held.ledger.decision.kept


def test_where_what_the_search_began_with_fails_the_others_are_compared() -> None:
    held = Held([(k, 1.0) for k in (900, 500, 600)])
    assert held.run(at900=WRONG) == FakeOptions(500)


def test_the_table_agrees_with_itself_and_with_the_decision() -> None:
    """Times are the incumbent's by the ratios that decided, on each placement and together."""
    held = Held([(k, 1e-6) for k in (900, 500, 600)])
    pace = iter((1.0, 1.5, 1.0, 2.0))

    def timed(options: Sequence[FakeOptions]) -> list[Placed]:
        now = next(pace)
        return [
            (("near", (o.micros * now,) * 5), ("far", (2 * o.micros * now, 9 * o.micros * now) * 3))
            for o in options
        ]

    held._finals.hold_race(timed)
    decision = held.ledger.decision
    assert decision.winner is not None and decision.start is not None
    for candidate in (decision.winner, decision.start):
        times = candidate.outcome.placements
        assert candidate.time == pytest.approx(math.sqrt(times["near"] * times["far"]))
        assert candidate.outcome.message.startswith("in the finals, in turns in ")
    assert decision.speedup == pytest.approx(900 / 500)


def test_what_is_not_sure_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    held = Held([(k, 1e-6) for k in (900, 800)])
    turns = iter([(0.8, 1.0), (1.15, 1.0)] * 6)

    def timed(options: Sequence[FakeOptions]) -> list[Placed]:
        factor, _ = next(turns)
        found = [9e-4 * (1.0 if o.micros == 900 else factor) for o in options]
        return [(("here", (t,) * 5),) for t in found]

    held._finals.hold_race(timed)
    assert held.ledger.decision.kept
    (note,) = held.notes
    assert note.startswith("the starting point is the result: the fastest candidate takes 0.96 +- ")
    assert note.endswith("times as long, which is not certain after 12 sessions")


def test_finals_end_with_the_session_after_which_nothing_may_win() -> None:
    held = Held([(k, 1e-6) for k in (500, *range(550, 900, 25))])
    assert held.run(1e-6) == FakeOptions(500)
    assert len(held.races) == 1


def test_the_check_is_done_by_a_process_that_has_run_nothing(tmp_path: Path) -> None:
    """Each kernel writes down which process it runs in, and how often."""
    noted = str(tmp_path / "pids")
    pool = WorkerPool(1, initializer=set_up, initargs=(Noting(noted), None, QUICK))
    backend = Noting(noted)
    try:
        stages = Stages((Compilers(pool, 1),), pool, 1, pool.kill)
        pipeline = CandidatePipeline(backend, stages, lambda: 0)
        options = [FakeOptions(10), FakeOptions(20)]
        assert pipeline.race(options, afresh=False) is not None
        before = set(Path(noted).read_text().split())
        times = pipeline.race(options)
        after = set(Path(noted).read_text().split()) - before
    finally:
        pool.kill()
    assert times is not None
    found = [placed for placed in times if not isinstance(placed, Outcome)]
    assert [[name for name, _ in placed] for placed in found] == [[ALIGNED.name, NUMPY.name]] * 2
    assert len(before) == len(after) == 1
