"""What a search notices of a machine that changes under it, by a clock that the tests set."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tuner_fakes import QUICK, FakeBackend, FakeOptions, SimulatedBench

from tcl.tuner.measure.cores import Others, busy_seconds
from tcl.tuner.measure.evaluate import Evaluator, Timed, compute_reference
from tcl.tuner.measure.reliability import ENOUGH, KERNELS, SHARE, Doubts, Yardstick, settled
from tcl.tuner.measure.timing import Measurement, measure
from tcl.tuner.measure.verdict import Conditions, Outcome, Verdict

Kernel = Callable[[], None]


class Machine:
    """Time passes only in kernels: more of it where the machine is slow."""

    def __init__(self, slow: Callable[[float], float] = lambda now: 1.0) -> None:
        self.now = 0.0
        self.yardstick = 0.0
        self._slow = slow
        self._rng = random.Random(0)

    def __call__(self) -> float:
        return self.now

    def kernel(self, seconds: float) -> Kernel:
        def run() -> None:
            self.now += seconds * self._slow(self.now) * self._rng.uniform(0.98, 1.06)

        return run

    def held(self, seconds: float) -> Yardstick:
        """A yardstick, whose time is counted."""
        kernel = self.kernel(seconds)

        def run() -> None:
            before = self.now
            kernel()
            self.yardstick += self.now - before

        return Yardstick(run, seconds, clock=self)

    def search(self, yardstick: Yardstick, seconds: list[float]) -> list[Outcome]:
        """Outcomes of candidates that take so long on a quiet machine."""
        found, best = [], None
        for each in seconds:
            run = self.kernel(each)

            def take(pace: float, run: Kernel = run, best: float | None = best) -> Measurement:
                return measure(run, best=best and best * pace, clock=self)

            began = self.now
            measured, reading = yardstick.timed(take)
            conditions = Conditions(self.now, self.now - began, None, reading)
            found.append(Outcome(Verdict.CORRECT, measured.times, conditions=conditions))
            best = min(best or 1.0, measured.median)
        return found


def first(values: list[float | None], count: int) -> list[int]:
    return sorted(range(len(values)), key=lambda k: values[k] or 9.0)[:count]


def test_candidates_of_a_bad_time_are_not_lost() -> None:
    """Something else takes half of the machine from the first second to the third."""
    machine = Machine(lambda now: 1.9 if 1 <= now < 3 else 1.0)
    rng = random.Random(1)
    seconds = [rng.uniform(1.2e-3, 3e-3) for _ in range(180)]
    outcomes = machine.search(machine.held(1.5e-3), seconds)
    inside = [k for k, o in enumerate(outcomes) if o.conditions and 1.2 < o.conditions.at < 2.9]
    best = inside[len(inside) // 2]
    seconds[best] = 1e-3  # the fastest of all, in the middle of it
    machine.now = machine.yardstick = 0.0
    outcomes = machine.search(machine.held(1.5e-3), seconds)
    assert first([o.time for o in outcomes], 6).count(best) == 0
    found = settled(outcomes)
    assert first(found, 1) == [best]
    assert found[best] == pytest.approx(1e-3, rel=0.2)
    raw = sum(abs((o.time or 0) / s - 1) > 0.2 for o, s in zip(outcomes, seconds, strict=True))
    left = sum(abs((f or 0) / s - 1) > 0.2 for f, s in zip(found, seconds, strict=True))
    assert raw > 20
    assert left < raw / 3  # those before it was noticed
    assert machine.yardstick <= 1.05 * SHARE * machine.now


def test_nothing_is_changed_on_a_machine_that_stays_the_same() -> None:
    machine = Machine()
    rng = random.Random(2)
    outcomes = machine.search(machine.held(1e-3), [rng.uniform(1e-3, 3e-3) for _ in range(120)])
    assert settled(outcomes) == [o.time for o in outcomes]
    assert (
        sum(o.conditions is not None and o.conditions.yardstick is not None for o in outcomes) > 5
    )
    doubts = Doubts()
    assert [text for o in outcomes for text in doubts.take(o)] == []


def test_a_candidate_is_timed_again_if_the_machine_changed_meanwhile() -> None:
    slow = 1.0
    machine = Machine(lambda now: slow)
    yardstick = machine.held(1e-3)
    machine.search(yardstick, [1e-3] * 30)
    takes: list[float] = []

    def take(pace: float) -> Measurement:
        nonlocal slow
        takes.append(pace)
        machine.now += 1.0  # so that the yardstick may be timed
        slow = 2.0  # from here on
        return Measurement((1e-3 if len(takes) == 1 else 2e-3,), False)

    measured, reading = yardstick.timed(take)
    assert measured.times == (2e-3,)
    assert reading == pytest.approx(2e-3, rel=0.1)
    assert takes == [1.0, pytest.approx(2.0, rel=0.1)]
    assert yardstick.timed(take)[0].times == (2e-3,)
    assert len(takes) == 3


def test_a_yardstick_that_takes_long_is_timed_seldom() -> None:
    machine = Machine()
    machine.search(machine.held(1.0), [1e-3] * 20)
    assert machine.yardstick == 0
    outcomes = machine.search(machine.held(0.05), [0.05] * 200)
    assert 0 < machine.yardstick <= SHARE * machine.now
    assert len(outcomes) == 200


def test_a_slower_machine_is_seen_where_all_candidates_are_dropped() -> None:
    """Else all would be, as they take longer than what was the best before."""
    slow = 1.0
    machine = Machine(lambda now: slow)
    yardstick = machine.held(1e-3)

    def take(pace: float) -> Measurement:
        machine.now += 1.0
        return Measurement((2.0,), True)

    assert yardstick.timed(take)[1] == pytest.approx(1e-3, rel=0.1)
    slow = 2.0
    assert yardstick.timed(take)[1] == pytest.approx(2e-3, rel=0.1)
    assert yardstick.pace == pytest.approx(2.0, rel=0.1)


def outcome(
    at: float, times: tuple[float, ...] = (1.0,), *, others: float | None = None,
    reading: float | None = None,
) -> Outcome:  # fmt: skip
    return Outcome(Verdict.CORRECT, times, conditions=Conditions(at, 0.1, others, reading))


def test_between_two_readings_the_lower_one_counts() -> None:
    readings = [1.0, None, 1.0, None, 2.0, None, 2.0, None, 2.0, None]
    found = settled([outcome(k, (4.0,), reading=r) for k, r in enumerate(readings)])
    assert found == [4, 4, 4, 4, 2, 2, 2, 2, 2, 2]


def test_one_bad_moment_is_no_change() -> None:
    readings = [1.0, 1.0, 5.0, 1.0, 1.1]
    assert settled([outcome(k, reading=r) for k, r in enumerate(readings)]) == [1.0] * 5


def test_what_was_not_timed_in_this_run_stays_as_it_is() -> None:
    failed, old = Outcome(Verdict.TIMEOUT), Outcome(Verdict.CORRECT, (3.0,))
    slow = [outcome(k, reading=r) for k, r in enumerate([1.0, 1.0, 2.0, 2.0])]
    assert settled([failed, old, *slow]) == [None, 3.0, 1.0, 1.0, 0.5, 0.5]
    again = slow[0]  # the same kernel under other options: its time is of then
    assert settled([*slow, again])[-1] == 1.0
    assert settled([failed, old]) == [None, 3.0]


def test_busy_cores_are_said_once() -> None:
    doubts, found = Doubts(), []
    for k in range(100):
        found.append(doubts.take(outcome(k, others=0.45 if k % 2 else 0.35)))
    said = [k for k, texts in enumerate(found) if texts]
    assert said == [pytest.approx(ENOUGH / 0.1, abs=1)]
    assert "other processes use 40% of the measuring cores" in found[said[0]][0]


def test_cores_of_ones_own_or_unknown_ones_are_not_mentioned() -> None:
    for others in (None, 0.02, -0.01):
        doubts = Doubts()
        assert not any(doubts.take(outcome(k, others=others)) for k in range(100))


def test_a_slower_machine_is_said_once_and_when_it_lasts() -> None:
    doubts, found = Doubts(), []
    readings = [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.9, None, 1.8, 1.9, 1.9, 1.9]
    for k, reading in enumerate(readings):
        found.append(doubts.take(outcome(k, reading=reading)))
    assert [k for k, texts in enumerate(found) if texts] == [9]
    assert "1.8 times as slow as earlier" in found[9][0]


def test_samples_that_differ_are_said_once() -> None:
    wide, narrow = (1.0, 1.2, 0.8) * 5, (1.0, 1.01, 0.99) * 5
    doubts = Doubts()
    assert not any(doubts.take(outcome(k, narrow)) for k in range(100))
    found = [doubts.take(outcome(100 + k, wide)) for k in range(50)]
    assert sum(map(len, found)) == 1
    assert "samples of one kernel differ by 10%" in next(t for t in found if t)[0]
    few = Doubts()
    assert not any(few.take(outcome(k, (1.0, 3.0, 2.0))) for k in range(2 * KERNELS))


def test_a_kernel_that_was_known_already_says_nothing_new() -> None:
    doubts, one = Doubts(), outcome(1.0, others=0.9)
    assert not any(doubts.take(one) for _ in range(1000))
    assert not doubts.take(replace(one, conditions=None))


STAT = """cpu  40 40 40 9999 9999 0 0 0 0 0
cpu0 100 50 25 7000 800 5 10 10 100 0
cpu1 300 0 0 9000 0 0 0 0 0 0
intr 1 2 3
"""


def test_what_linux_says_about_cores(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(STAT)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert busy_seconds([0], stat) == pytest.approx(200 * tick)
    assert busy_seconds([0, 1], stat) == pytest.approx(500 * tick)
    assert busy_seconds([2], stat) is None
    assert busy_seconds([0], tmp_path / "absent") is None


def test_the_share_of_others() -> None:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert count
    busy, own, now = 5.0, 2.0, 100.0
    others = Others(lambda: busy, lambda: own, lambda: now)
    assert others.busy_share() is None
    busy, own, now = 5 + 2.0 * count, 2 + 1.5 * count, 102.0
    assert others.busy_share() == pytest.approx(0.25)
    others.start()
    assert others.busy_share() is None
    assert Others(lambda: None).busy_share() is None


def test_evaluating_says_what_the_machine_was_like(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = partial(Yardstick, clock=lambda: SimulatedBench.now)
    monkeypatch.setattr("tcl.tuner.measure.evaluate.Yardstick", simulated)
    backend = FakeBackend()
    one = Evaluator(backend, compute_reference(backend).outputs, QUICK)
    code = backend.compile(FakeOptions(200))
    alone = one.evaluate(code, None).conditions
    assert alone is not None
    assert alone.seconds > 0
    assert alone.yardstick is None
    held = Timed(code, 2e-4)
    readings = []
    for micros in range(200, 300):  # at most a fiftieth of this goes to the yardstick
        found = one.evaluate(backend.compile(FakeOptions(micros)), None, held)
        assert found.conditions is not None
        readings.append(found.conditions.yardstick)
    known = [r for r in readings if r is not None]
    assert 1 <= len(known) < 100
    assert known == pytest.approx([2e-4] * len(known))
    wrong = one.evaluate(backend.compile(FakeOptions(10, "wrong")), None, held).conditions
    assert wrong is not None
    assert wrong.yardstick is None


def test_each_place_has_readings_of_its_own() -> None:
    """Two machines, one of them slower; their clocks have nothing to do with each other."""
    fast = [Conditions(k, 0.1, None, 1.0, "fast") for k in range(8)]
    slow = [Conditions(k + 0.5, 0.1, None, None if k % 2 else 1.5, "slow") for k in range(8)]
    both = [c for pair in zip(fast, slow, strict=True) for c in pair]
    outcomes = [Outcome(Verdict.CORRECT, (3.0,), conditions=c) for c in both]
    assert settled(outcomes) == [3.0, 2.0] * 8
    doubts = Doubts()
    assert not any(doubts.take(o) for o in outcomes)


def test_readings_of_two_yardsticks_are_not_compared() -> None:
    """A search that is resumed has another one, perhaps."""
    before = [Conditions(k, 0.1, None, 1.0, "here", "a") for k in range(8)]
    after = [Conditions(k, 0.1, None, 5.0 if k < 12 else 10.0, "here", "b") for k in range(8, 16)]
    outcomes = [Outcome(Verdict.CORRECT, (3.0,), conditions=c) for c in (*before, *after)]
    assert settled(outcomes) == [3.0] * 12 + [1.5] * 4
    doubts = Doubts()
    assert not any(doubts.take(o) for o in outcomes[:12])
