"""What is measured is what runs: kernels on arrays as they lie for users, and what is compared."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tuner_fakes import (
    KEY,
    QUICK,
    FakeBackend,
    FakeKernel,
    FakeOptions,
    as_recorded,
    events_of,
    fake_tuner,
    in_threads,
)

from tcl.codegen.reference import ComputedElements
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.backend import CompiledKernel, Problem
from tcl.tuner.measure.evaluate import (
    UNCOMPARED,
    Evaluator,
    Timed,
    compute_reference,
    race_candidates,
)
from tcl.tuner.measure.placement import ALIGNED, NUMPY, shown
from tcl.tuner.measure.timing import TooSlowError, at_most
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.run.events import Interrupted, Note

Array = np.ndarray[Any, Any]
NAMES = [ALIGNED.name, NUMPY.name]


def past(array: Array) -> int:
    """Bytes past a cache line at which it begins."""
    return array.ctypes.data % 64


@dataclass(frozen=True)
class PickyBackend(FakeBackend):
    """What its kernels do depends on where arrays lie: those of kind ``aligned only`` are wrong on
    others, and ``slow past`` takes twice as long there."""

    def load(self, code: bytes) -> CompiledKernel:
        kernel = super().load(code)
        assert isinstance(kernel, FakeKernel)
        options = kernel.options

        def run(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            assert past(inputs[0]) == past(outputs[0])
            there = past(inputs[0]) != 0
            slow = 2 if there and options.kind == "slow past" else 1
            FakeKernel(FakeOptions(slow * options.micros))(inputs, outputs)
            if there and options.kind == "aligned only":
                outputs[0][5] = 0

        return run


def evaluated(backend: FakeBackend, options: FakeOptions) -> Outcome:
    one = Evaluator(backend, compute_reference(backend).outputs, QUICK)
    return one.evaluate(backend.compile(options), None)


def test_candidates_are_timed_on_arrays_as_users_have_them() -> None:
    outcome = evaluated(PickyBackend(), FakeOptions(200, "slow past"))
    assert [name for name, _ in outcome.placed] == NAMES
    assert list(outcome.placements.values()) == pytest.approx([200e-6, 400e-6])
    assert outcome.time == pytest.approx(200e-6 * 2**0.5)
    counts = [len(times) for _, times in outcome.placed]
    assert len(outcome.times) == min(counts)


def test_what_is_slow_on_one_placement_alone_is_read_as_often_as_the_best() -> None:
    """It takes more than ``clear`` times the best there, and less in the mean ratio."""
    backend = PickyBackend()
    one = Evaluator(backend, compute_reference(backend).outputs, QUICK)
    code = backend.compile(FakeOptions(1000, "slow past"))
    ahead, behind = one.evaluate(code, 1.6e-3), one.evaluate(code, 0.6e-3)
    assert ahead.message == ""
    assert [name for name, _ in ahead.placed] == NAMES
    assert behind.message.startswith("dropped early")
    assert [name for name, _ in behind.placed] == NAMES[:1]


def test_a_kernel_that_is_wrong_on_one_placement_is_wrong() -> None:
    outcome = evaluated(PickyBackend(), FakeOptions(1, "aligned only"))
    assert outcome.verdict is Verdict.CORRECTNESS
    assert "output O differs from the reference at (5)" in outcome.message


def test_finals_are_held_on_all_placements(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = PickyBackend()
    one = Evaluator(backend, compute_reference(backend).outputs, QUICK)
    monkeypatch.setattr("tcl.tuner.measure.evaluate._evaluators", [one])
    codes = [backend.compile(FakeOptions(100, kind)) for kind in ("right", "slow past")]
    times = [each for each in race_candidates(codes) if not isinstance(each, Outcome)]
    assert [[name for name, _ in placed] for placed in times] == [NAMES, NAMES]
    (_, (_, twice)) = times
    assert twice[1] == pytest.approx([200e-6] * len(twice[1]))


# Large results, of which a sample is known.


@dataclass(frozen=True)
class SampledBackend(FakeBackend):
    """The reference computes three elements. Kernels of kind ``hidden`` are wrong elsewhere,
    ``alike`` is wrong there in the same way each time, and ``gap`` leaves one alone."""

    def reference(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> ComputedElements:
        positions = np.array([0, 50, 99])
        outputs[0][positions] = inputs[0][positions] * 2
        return ComputedElements((positions,), 0.1)

    def load(self, code: bytes) -> CompiledKernel:
        kernel = super().load(code)
        assert isinstance(kernel, FakeKernel)
        kind = kernel.options.kind
        calls = [0]

        def run(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            before = outputs[0][70]
            FakeKernel(FakeOptions(kernel.options.micros))(inputs, outputs)
            calls[0] += 1
            if kind == "hidden":
                outputs[0][70] = calls[0]
            elif kind == "alike":
                outputs[0][70] = 0
            elif kind == "gap":
                outputs[0][70] = before
            elif kind == "known":
                outputs[0][50] = 0

        return run


def sampled(settled: bool) -> tuple[SampledBackend, Evaluator, Timed | None]:
    """``settled``: with a first kernel that was right."""
    backend = SampledBackend()
    one = Evaluator(backend, compute_reference(backend).outputs, QUICK)
    timed = Timed(backend.compile(FakeOptions(1)), 1e-6) if settled else None
    return backend, one, timed


@pytest.mark.parametrize("kind", ["known", "hidden", "gap"])
@pytest.mark.parametrize("settled", [False, True])
def test_what_the_sample_does_not_have_is_seen_by_other_means(kind: str, settled: bool) -> None:
    backend, one, timed = sampled(settled)
    outcome = one.evaluate(backend.compile(FakeOptions(1, kind)), None, timed)
    assert outcome.verdict is Verdict.CORRECTNESS
    assert f"at ({50 if kind == 'known' else 70})" in outcome.message
    assert one.evaluate(backend.compile(FakeOptions(2)), None, timed).verdict is Verdict.CORRECT


def test_whole_results_are_compared_with_the_first_that_was_right() -> None:
    backend, one, timed = sampled(True)
    code = backend.compile(FakeOptions(2, "alike"))
    outcome = one.evaluate(code, None, timed)
    assert outcome.verdict is Verdict.CORRECTNESS
    assert outcome.message == (
        "output O differs from the result of the first correct kernel at (70): 0.0 instead of "
        "142.0 (1 of 100 elements differ; rounding explains 0.00027 there)"
    )


def test_the_reference_says_how_long_all_of_it_would_take() -> None:
    reference = compute_reference(SampledBackend())
    assert reference.outputs[0].positions is not None
    assert reference.seconds > 0
    assert compute_reference(FakeBackend()).outputs[0].positions is None


def test_without_a_reference_results_are_compared_with_themselves() -> None:
    backend = SampledBackend()
    one = Evaluator(backend, None, QUICK)
    outcome = one.evaluate(backend.compile(FakeOptions(1)), None)
    assert (outcome.verdict, outcome.message) == (Verdict.CORRECT, UNCOMPARED)
    wrong = one.evaluate(backend.compile(FakeOptions(1, "gap")), None)
    assert wrong.verdict is Verdict.CORRECTNESS


# What takes too long.


def test_a_block_that_takes_too_long_is_ended() -> None:
    with pytest.raises(TooSlowError, match=r"stopped after 0\.01 s"), at_most(0.01):
        time.sleep(60)
    with at_most(None):
        pass
    with at_most(60.0):
        pass
    time.sleep(0.02)  # nothing is left that would go off


def test_outside_of_the_main_thread_nothing_is_ended() -> None:
    found = []

    def run() -> None:
        with at_most(1e-3):
            time.sleep(5e-3)
        found.append("ended by itself")

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == ["ended by itself"]


def test_candidates_far_behind_the_best_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcl.tuner.measure.evaluate.LEAST_PATIENCE", 0.02)

    class Sleeping(FakeBackend):
        def load(self, code: bytes) -> CompiledKernel:
            kernel = super().load(code)
            return kernel if b"right" in code else lambda inputs, outputs: time.sleep(60)

    backend = Sleeping()
    one = Evaluator(backend, compute_reference(backend).outputs, QUICK)
    outcome = one.evaluate(backend.compile(FakeOptions(1, "sleeps")), 1e-3)
    assert outcome.verdict is Verdict.TIMEOUT
    assert outcome.message == "it was stopped after 0.02 s: the best takes 1.00 ms"
    monkeypatch.setattr("tcl.tuner.measure.evaluate.LEAST_PATIENCE", 60.0)
    assert one.evaluate(backend.compile(FakeOptions(1)), 1e-3).verdict is Verdict.CORRECT


# Whoever ends a search early has what it began with.


@pytest.mark.parametrize("kill", [False, True])
def test_a_search_that_is_ended_at_once_has_the_time_of_what_it_began_with(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, kill: bool
) -> None:
    in_threads(monkeypatch)
    monkeypatch.setattr("tcl.tuner.run.pipeline.evaluate_candidate", as_recorded)
    tuner = fake_tuner(cache=TuningCache(tmp_path / "t.db"))
    reference = FakeBackend.reference

    def slow(self: FakeBackend, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        tuner.stop(kill=kill)
        time.sleep(0.3)
        reference(self, inputs, outputs)

    monkeypatch.setattr(FakeBackend, "reference", slow)
    result, events = events_of(tuner, [FakeOptions(500), FakeOptions(600)])
    assert result.interrupted
    assert [e.level for e in events if isinstance(e, Interrupted)] == [2 if kill else 1]
    notes = [e.message for e in events if isinstance(e, Note)]
    records = TuningCache(tmp_path / "t.db").history(KEY)
    if kill:
        assert result.options is None
        assert records == ()
        assert notes == []
    else:
        assert result.options == FakeOptions(500)
        assert [r.time for r in records] == [pytest.approx(500e-6, rel=0.01)]
        assert notes[0].startswith("the reference did not finish")


def test_a_time_limit_ends_the_reference_and_not_the_first_candidate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_threads(monkeypatch)
    monkeypatch.setattr("tcl.tuner.run.tuner.REFERENCE", 0.05)
    over = threading.Event()

    def slow(self: FakeBackend, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        over.wait(60)

    monkeypatch.setattr(FakeBackend, "reference", slow)
    result, _ = events_of(fake_tuner(time_limit=0.05), [FakeOptions(500), FakeOptions(600)])
    over.set()
    assert result.interrupted
    assert [c.options for c in result.history] == [FakeOptions(500)]
    assert result.history[0].outcome.message == UNCOMPARED
    assert result.options == FakeOptions(500)


def test_outputs_that_kernels_start_from_are_given_on_all_placements() -> None:
    @dataclass(frozen=True)
    class Adding(FakeBackend):
        def load(self, code: bytes) -> CompiledKernel:
            def kernel(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
                outputs[0][:] += inputs[0]

            return kernel

        def problem(self) -> Problem:
            given = (np.full(100, 7, np.float32),)
            return replace(super().problem(), outputs=given, initialised=(True,))

        def reference(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            outputs[0][:] += inputs[0]

    outcome = evaluated(Adding(), FakeOptions(1))
    assert outcome.verdict is Verdict.CORRECT, outcome
    assert list(outcome.placements) == NAMES


def test_times_on_placements_are_kept(tmp_path: Any) -> None:
    placed = ((NAMES[0], (1.0, 4.0)), (NAMES[1], (9.0, 4.0)))
    cache = TuningCache(tmp_path / "t.db")
    cache.store(KEY, "{}", Outcome(Verdict.CORRECT, (3.0, 4.0), placed=placed), run="one")
    (record,) = TuningCache(cache.path).history(KEY)
    assert record.placed == record.outcome.placed == placed
    assert record.outcome.placements == {NAMES[0]: 2.5, NAMES[1]: 6.5}


def test_names_for_people() -> None:
    assert [shown(name) for name in NAMES] == ["at 64 bytes", "as NumPy's"]
