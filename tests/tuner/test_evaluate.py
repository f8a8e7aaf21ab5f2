"""The outcome of candidates, in the process that runs them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tuner_fakes import QUICK, FakeBackend, FakeOptions

from tcl.backends.program_backend import CpuBackend
from tcl.codegen.common.rounding import Rounding
from tcl.codegen.reference import ComputedElements, compute
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.tuner.measure.backend import CompiledKernel, Problem
from tcl.tuner.measure.correctness import Expected, accumulation_depths
from tcl.tuner.measure.evaluate import (
    Evaluator,
    compute_reference,
    more_roundings,
    set_up,
)
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.run.pipeline import CandidatePipeline, Job
from tcl.tuner.run.workplace import Compilers, Stages
from tcl.workers.pool import WorkerPool

Array = np.ndarray[Any, Any]


def evaluator(backend: FakeBackend) -> Evaluator:
    return Evaluator(backend, compute_reference(backend).outputs, QUICK)


@pytest.mark.parametrize(
    ("kind", "verdict", "message"),
    [
        ("right", Verdict.CORRECT, ""),
        ("wrong", Verdict.CORRECTNESS, "output O differs from the reference at (0): 3.0 instead"),
        ("partial", Verdict.CORRECTNESS, "output O differs from the reference at (99): nan"),
        ("stray", Verdict.CORRECTNESS, "the kernel wrote outside output O"),
        ("raises", Verdict.RUNTIME, "RuntimeError: the kernel raised"),
    ],
)
def test_outcomes_of_kernels(kind: str, verdict: Verdict, message: str) -> None:
    backend = FakeBackend()
    outcome = evaluator(backend).evaluate(backend.compile(FakeOptions(100, kind)), None)
    assert outcome.verdict is verdict
    assert outcome.message.startswith(message)
    assert (outcome.time is not None) == (verdict is Verdict.CORRECT)


def test_a_kernel_that_changes_inputs_spoils_nothing_for_the_next() -> None:
    backend = FakeBackend()
    one = evaluator(backend)
    bad = one.evaluate(backend.compile(FakeOptions(10, "changes input")), None)
    assert bad.verdict is Verdict.CORRECTNESS
    good = one.evaluate(backend.compile(FakeOptions(10)), None)
    assert good.verdict is Verdict.CORRECT


@dataclass(frozen=True)
class RoundingBackend(FakeBackend):
    """Its kernels are ``off`` by so much, and its reference by 1e-4, or 2e-5 as is known soon."""

    off: float = 0.0
    asked: list[bool] = field(default_factory=list)

    def load(self, code: bytes) -> CompiledKernel:
        def kernel(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            outputs[0][:] = inputs[0] * 2 + self.off

        return kernel

    def roundings(self, inputs: Sequence[Array], *, briefly: bool) -> Sequence[Rounding]:
        self.asked.append(briefly)
        return (Rounding(2e-5 if briefly else 1e-4),)


@pytest.mark.parametrize(
    ("off", "verdict", "asked"),
    [
        (0.0, Verdict.CORRECT, []),
        (2e-4, Verdict.CORRECT, [True]),
        (1e-3, Verdict.CORRECT, [True, False]),
        (1e-2, Verdict.CORRECTNESS, [True, False]),
    ],
)
def test_a_difference_is_held_against_the_references_own_error(
    off: float, verdict: Verdict, asked: list[bool]
) -> None:
    backend = RoundingBackend(off=off)
    one = evaluator(backend)
    for _ in range(2):
        outcome = one.evaluate(backend.compile(FakeOptions(1)), None)
        assert outcome.verdict is verdict, outcome
    assert backend.asked == asked  # once each, and only where something differs by more


def test_roundings_are_asked_for_and_not_computed_where_somebody_else_does() -> None:
    backend = RoundingBackend(off=1e-3)
    one, code = evaluator(backend), backend.compile(FakeOptions(1))
    for known in range(2):
        one.evaluate(code, None, asks=True)
        assert one.doubted and len(backend.asked) == known
        one.roundings = more_roundings(backend, one.roundings)
    assert one.evaluate(code, None, asks=True).verdict is Verdict.CORRECT
    assert not one.doubted


@dataclass(frozen=True)
class NotingBackend(RoundingBackend):
    """It writes down which process computes roundings, unless that ``fails`` but in the one that
    runs kernels."""

    noted: str = ""
    fails: int = 0

    def roundings(self, inputs: Sequence[Array], *, briefly: bool) -> Sequence[Rounding]:
        if self.fails and os.getpid() != self.fails:
            raise MemoryError
        with open(self.noted, "a") as file:
            file.write(f"{os.getpid()}\n")
        return super().roundings(inputs, briefly=briefly)


@pytest.mark.parametrize("fails", [False, True])
def test_a_process_that_compiles_computes_roundings_while_others_are_measured(
    fails: bool, tmp_path: Path
) -> None:
    noted, pools = tmp_path / "pids", (WorkerPool(1), WorkerPool(1))
    noted.touch()
    compiler, runner = pools
    try:
        pid = runner.submit(os.getpid).result()
        backend = NotingBackend(off=1e-3, noted=str(noted), fails=pid if fails else 0)
        expected = compute_reference(backend).outputs
        runner.submit(set_up, backend, expected, QUICK).result()
        stages = Stages((Compilers(compiler, 1),), runner, 1, compiler.kill)
        pipeline = CandidatePipeline[FakeOptions](backend, stages, lambda: 0)
        found = dict[int, Outcome]()
        jobs = [Job(FakeOptions(micros), None, micros) for micros in (10, 20, 30)]
        pipeline.run(jobs, lambda job, outcome: found.update({job.position: outcome}))
        times = pipeline.race([job.options for job in jobs], afresh=False)
    finally:
        for pool in pools:
            pool.kill()
    assert sorted(found) == [10, 20, 30] and times is not None
    assert {each.verdict for each in found.values()} == {Verdict.CORRECT}
    by = noted.read_text().split()
    assert len(by) == 2 and {int(each) == pid for each in by} == {fails}


@dataclass(frozen=True)
class ForgetfulBackend(FakeBackend):
    """Right ``times`` times, as with memory that is kept between calls and not cleared."""

    times: int = 1

    def load(self, code: bytes) -> CompiledKernel:
        left = [self.times]

        def kernel(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            outputs[0][:] = inputs[0] * (2 if left[0] > 0 else 3)
            left[0] -= 1

        return kernel


def test_a_kernel_that_is_right_at_first_only_is_wrong() -> None:
    backend = ForgetfulBackend(times=3)
    outcome = evaluator(backend).evaluate(backend.compile(FakeOptions(1)), None)
    assert outcome.verdict is Verdict.CORRECTNESS
    assert outcome.message.startswith("correct at first, wrong later: output O differs")
    assert outcome.time is None


def test_a_kernel_that_is_dropped_is_verified_again_unless_its_calls_are_long() -> None:
    backend = ForgetfulBackend(times=1)
    outcome = evaluator(backend).evaluate(backend.compile(FakeOptions(1)), 1e-12)
    assert outcome.message.startswith("correct at first, wrong later: output O differs")


def test_slow_candidates_are_correct_and_say_that_they_were_dropped() -> None:
    backend = FakeBackend()
    outcome = evaluator(backend).evaluate(backend.compile(FakeOptions(20_000)), 1e-5)
    assert outcome.verdict is Verdict.CORRECT
    assert outcome.message.startswith("dropped early: it takes")
    assert outcome.time == pytest.approx(0.02)


def test_results_that_are_known_to_be_right_are_not_compared_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend, compared = FakeBackend(), list[str]()
    one, mismatch = evaluator(backend), Expected.mismatch

    def counted(self: Expected, *given: Any) -> str | None:
        compared.append(self.name)
        return mismatch(self, *given)

    monkeypatch.setattr(Expected, "mismatch", counted)
    assert one.evaluate(backend.compile(FakeOptions(100)), None).time is not None
    assert one.evaluate(backend.compile(FakeOptions(200)), None).time is not None
    assert compared == ["O"]
    wrong = one.evaluate(backend.compile(FakeOptions(100, "wrong")), None)
    assert wrong.verdict is Verdict.CORRECTNESS


@dataclass(frozen=True)
class InPlaceBackend(FakeBackend):
    """Adds the input to the output, which therefore has to be given."""

    def load(self, code: bytes) -> CompiledKernel:
        def kernel(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            outputs[0][:] += inputs[0]

        return kernel

    def problem(self) -> Problem:
        base = super().problem()
        return replace(base, outputs=(np.full(100, 7, np.float32),), initialised=(True,))

    def reference(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][:] += inputs[0]


def test_outputs_that_kernels_start_from_are_given() -> None:
    backend = InPlaceBackend()
    one = evaluator(backend)
    for _ in range(2):
        outcome = one.evaluate(backend.compile(FakeOptions(1)), None)
        assert outcome.verdict is Verdict.CORRECT, outcome


@pytest.mark.parametrize(
    ("body", "ulps"),
    [
        ("(double(N) O) { O(i) = D(i) * 2 }", 1),
        ("(double(N) O) { O(i) = exp(F(i)) }", 2**29),
        ("(P, double(N) O) { P(i) = exp(F(i)) O(i) = D(i) + P(i) }", 2**29),
        ("(float(N) O) { O(i) = exp(F(i)) }", 1),
        ("(half(N) O) { O(i) = float16(exp(F(i))) }", 1),
        ("(double(N) O) { O(i) = F(i) }", 1),
    ],
)
def test_a_coarser_type_on_the_way_counts(body: str, ulps: int) -> None:
    """An error of one float32 rounding is many of float64, and no more than that is allowed."""
    source = f"def f(float(N) F, double(N) D) -> {body}"
    depths = accumulation_depths(infer(check(source)["f"], {"F": (4,), "D": (4,)}))
    depth = depths["O"] / (2 if "P" in body else 1)
    assert depth == ulps**2


def roundings_of(backend: CpuBackend) -> Sequence[Rounding]:
    """All that is known in the end."""
    return more_roundings(backend, ((),))[-1]


def test_a_process_that_has_computed_the_reference_asks_it_for_roundings_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the reference computes is known there."""
    source = "def f(float(M, N) A) -> (O, S) { O(m, n) = exp(A(m, n)) S(m) +=! O(m, n) }"
    a = np.random.default_rng(0).normal(0, 5, (13, 17)).astype(np.float32)
    backend = CpuBackend.described(source, "f", [a]).holding([a], str(tmp_path))
    alone = roundings_of(backend)
    compute_reference(backend)

    def computed(sized: SizedDef, *others: Any, **settings: Any) -> ComputedElements:
        assert sized is not backend.sized
        return compute(sized, *others, **settings)

    monkeypatch.setattr("tcl.codegen.reference.rounding.compute", computed)
    found = roundings_of(backend)
    with pytest.raises(AssertionError):  # it is not kept for longer
        roundings_of(backend)
    monkeypatch.setattr("tcl.backends.program_backend._KEPT", 13 * 17 * 4)  # the sums besides
    compute_reference(backend)
    with pytest.raises(AssertionError):
        roundings_of(backend)
    for one, other in zip(found, alone, strict=True):
        assert one.error == other.error > 0
        np.testing.assert_array_equal(one.places, other.places)
        np.testing.assert_array_equal(one.off, other.off)
