"""What happens in worker processes: the reference, compiling, verifying and timing."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tcl.codegen.common.errors import OptionsError
from tcl.tuner.config import available_cores
from tcl.tuner.measure.backend import Backend, Kernel, Problem
from tcl.tuner.measure.correctness import Array, mismatch
from tcl.tuner.measure.finals import race
from tcl.tuner.measure.machine_speed import Yardstick
from tcl.tuner.measure.timing import Measurement, MeasureSettings, measure
from tcl.tuner.measure.verdict import Conditions, Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Reference:
    """What the outputs have to be."""

    outputs: tuple[Array, ...]
    seconds: float
    """How long the reference took, compiling included."""
    size: int
    """Bytes of the inputs and outputs."""


def compute_reference(backend: Backend[Any]) -> Reference:
    """Run the reference once; its errors are those of the def or its inputs."""
    started = time.perf_counter()
    problem = backend.problem()
    outputs = tuple(o.copy() for o in problem.outputs)
    backend.reference(problem.inputs, outputs)
    size = sum(a.nbytes for a in (*problem.inputs, *outputs))
    return Reference(outputs, time.perf_counter() - started, size)


def compile_candidate(backend: Backend[Any], options: object) -> bytes | Outcome:
    """Compiled code, or how compiling failed."""
    try:
        return backend.compile(options)
    except OptionsError as error:
        return Outcome(Verdict.CONSTRAINTS, message=str(error))
    except Exception as error:  # whatever a compiler raises ends this candidate only
        return Outcome(Verdict.COMPILE, message=_sentence(error))


@dataclass(frozen=True, slots=True)
class Timed:
    """A kernel that was correct, and the seconds that a call of it took."""

    code: bytes
    seconds: float


class Evaluator:
    """Verifies and times kernels on one problem; lives in the process that runs them."""

    def __init__(
        self, backend: Backend[Any], expected: Sequence[Array], settings: MeasureSettings
    ) -> None:
        self._backend = backend
        self._problem: Problem = backend.problem()
        self._expected = tuple(expected)
        self._settings = settings
        # Copies, so that a kernel that writes into its inputs cannot spoil the originals.
        self._bench = self._problem.bench
        self._inputs = tuple(self._bench.guarded(a) for a in self._problem.inputs)
        self._outputs = tuple(self._bench.guarded(o) for o in self._problem.outputs)
        self._restore_inputs()
        self._checksums = [g.checksum() for g in self._inputs]
        self._yardstick: Yardstick | None = None
        self._kernel = ""
        """Which one that is: a resumed search may have another."""
        self._others = Others()
        self._place = f"{platform.node()} {available_cores()}"

    def evaluate(self, code: bytes, best: float | None, yardstick: Timed | None = None) -> Outcome:
        """Verify, then time unless it is wrong. ``best`` is the time to beat, in seconds;
        ``yardstick``, which is timed now and then to see how fast the machine is, stays the same
        for all of a search."""
        with self._bench.alone():
            if yardstick is not None and self._yardstick is None:
                run = self._call(self._backend.load(yardstick.code))
                self._kernel = hashlib.sha256(yardstick.code).hexdigest()[:8]
                self._yardstick = Yardstick(
                    run, yardstick.seconds, reset=self._resetting, timer=self._bench.seconds
                )
            began = time.monotonic()
            self._others.start()
            outcome = self._evaluated(code, best)
            seconds = time.monotonic() - began
            others = self._others.share()
            at = time.time()
        reading = outcome.conditions.yardstick if outcome.conditions is not None else None
        conditions = Conditions(at, seconds, others, reading, self._place, self._kernel)
        return replace(outcome, conditions=conditions)

    def _evaluated(self, code: bytes, best: float | None) -> Outcome:
        try:
            kernel = self._backend.load(code)
            first, wrong = self._verify(kernel)
            if wrong is not None:
                outcome = Outcome(Verdict.CORRECTNESS, message=wrong)
            else:
                outcome = self._time(kernel, first, best)
                # Memory that it keeps between calls, or a race of its threads, may spoil results
                # later than the first. Kernels of which one call is too long to be timed in full
                # are spared: they do not win.
                spared = outcome.message and first > self._settings.budget
                wrong = None if spared else self._verify(kernel)[1]
                if wrong is not None:
                    outcome = Outcome(
                        Verdict.CORRECTNESS, message=f"right at first, then not: {wrong}"
                    )
        except Exception as error:  # a kernel's failure is its verdict
            self._bench.failed(error)
            outcome = Outcome(Verdict.RUNTIME, message=_sentence(error))
        if [g.checksum() for g in self._inputs] != self._checksums:
            self._restore_inputs()
            return Outcome(Verdict.CORRECTNESS, message="the kernel changed an input")
        return outcome

    def _verify(self, kernel: Kernel) -> tuple[float, str | None]:
        """Duration of the first call, and what is wrong with its results."""
        for guarded in self._outputs:
            guarded.poison()
        self._reset()
        first = self._bench.seconds(self._call(kernel), 1)
        for i, (guarded, expected) in enumerate(zip(self._outputs, self._expected, strict=True)):
            name, depth = self._problem.names[i], self._problem.depths[i]
            wrong = mismatch(name, guarded.values(), expected, depth)
            if wrong is None and not guarded.intact():
                wrong = f"the kernel wrote outside of output {name}"
            if wrong is not None:
                return first, wrong
        return first, None

    def _time(self, kernel: Kernel, first: float, best: float | None) -> Outcome:
        run = self._call(kernel)

        def take(pace: float) -> Measurement:
            # On a machine that is slower now than when the best was timed, all are.
            beat = None if best is None else best * pace
            return measure(
                run,
                first=first,
                best=beat,
                reset=self._resetting,
                settings=self._settings,
                timer=self._bench.seconds,
            )

        reading = None
        if self._yardstick is None:
            measured = take(1.0)
        else:
            measured, reading = self._yardstick.timed(take)
        message = "dropped early: far slower than the best" if measured.dropped else ""
        conditions = Conditions(0.0, 0.0, yardstick=reading)
        return Outcome(Verdict.CORRECT, measured.times, message, conditions=conditions)

    def _call(self, kernel: Kernel) -> Callable[[], object]:
        return self._bench.bound(kernel, self._inputs, self._outputs)

    @property
    def _resetting(self) -> Callable[[], object] | None:
        return self._reset if any(self._problem.initialised) else None

    def race(self, codes: Sequence[bytes]) -> list[tuple[float, ...]]:
        """Times of kernels that have been verified, taken in turns."""
        with self._bench.alone():
            runs = [self._call(self._backend.load(code)) for code in codes]
            return race(runs, self._resetting, timer=self._bench.seconds)

    def _reset(self) -> None:
        """Give outputs that the kernel starts from their first contents."""
        problem = self._problem
        for guarded, like, used in zip(
            self._outputs, problem.outputs, problem.initialised, strict=True
        ):
            if used:
                guarded.hold(like)

    def _restore_inputs(self) -> None:
        for guarded, original in zip(self._inputs, self._problem.inputs, strict=True):
            guarded.hold(original)


_evaluator: Evaluator | None = None
"""Of this worker process."""


def set_up(backend: Backend[Any], expected: Sequence[Array], settings: MeasureSettings) -> None:
    """Initialise an evaluating worker."""
    global _evaluator
    _evaluator = Evaluator(backend, expected, settings)


def evaluate_candidate(code: bytes, best: float | None, yardstick: Timed | None = None) -> Outcome:
    """Verdict and times of compiled code, in a worker that was set up."""
    if _evaluator is None:
        raise RuntimeError("this worker was not set up to evaluate")
    return _evaluator.evaluate(code, best, yardstick)


def race_candidates(codes: Sequence[bytes]) -> list[tuple[float, ...]]:
    """Times of compiled code, taken in turns, in a worker that was set up."""
    if _evaluator is None:
        raise RuntimeError("this worker was not set up to evaluate")
    return _evaluator.race(codes)


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:500] if text else type(error).__name__


_STAT = Path("/proc/stat")
_IDLE = (3, 4)
_TWICE = (8, 9)
"""Guests' time, which is part of the first two as well."""


def busy_seconds(cores: Sequence[int], stat: Path = _STAT) -> float | None:
    """Seconds that these cores did anything, since the machine was started; None if unknown."""
    try:
        ticks = os.sysconf("SC_CLK_TCK")
        lines = [line.split() for line in stat.read_text().splitlines() if line.startswith("cpu")]
        times = {name: [int(x) for x in words] for name, *words in lines}
        wanted = [times[f"cpu{core}"] for core in cores]
    except (OSError, ValueError, KeyError, AttributeError):
        return None
    skipped = (*_IDLE, *_TWICE)
    return sum(x for each in wanted for k, x in enumerate(each) if k not in skipped) / ticks


class Others:
    """Which share of this process's cores others used, from one look to the next."""

    def __init__(
        self,
        busy: Callable[[], float | None] | None = None,
        own: Callable[[], float] = time.process_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cores = available_cores()
        self._busy = busy or (lambda: busy_seconds(self._cores))
        self._own = own
        self._clock = clock
        self.start()

    def start(self) -> None:
        """Begin anew."""
        self._before = self._look()

    def share(self) -> float | None:
        """From 0 to 1, since the start; None if unknown. For a short time it is a rough one, and
        may lie below 0: mean many."""
        (busy, own, now), (busy_then, own_then, then) = self._look(), self._before
        if busy is None or busy_then is None or now <= then:
            return None
        return (busy - busy_then - own + own_then) / ((now - then) * len(self._cores))

    def _look(self) -> tuple[float | None, float, float]:
        return self._busy(), self._own(), self._clock()
