"""The tuner: measuring, verifying, worker processes, the search loop, interrupts.

A fake backend stands for the compiler, with candidates that fail in every way there is.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcl.codegen.errors import CompileError, OptionsError
from tcl.grammar.check import check
from tcl.grammar.errors import TclError
from tcl.grammar.ranges import infer
from tcl.tuner.backend import Kernel, Problem
from tcl.tuner.cache import CacheKey, TuningCache
from tcl.tuner.config import TunerConfig, TunerSettings
from tcl.tuner.errors import CacheError
from tcl.tuner.evaluate import Evaluator, compute_reference
from tcl.tuner.events import (
    Candidate,
    CandidateDone,
    Event,
    Finished,
    GenerationStarted,
    Interrupted,
    NewBest,
    Note,
)
from tcl.tuner.interrupt import FINISH, KILL, Interrupts
from tcl.tuner.knobs import Knob, Value
from tcl.tuner.measure import MeasureSettings, measure, spread
from tcl.tuner.pool import WorkerDied, WorkerPool, WorkerTimeout
from tcl.tuner.space import Config, SearchSpace
from tcl.tuner.tuner import Tuner, TuningResult, split_cores
from tcl.tuner.verdict import Outcome, Verdict, median
from tcl.tuner.verify import Guarded, accumulation_depths, mismatch, tolerance

Array = np.ndarray[Any, Any]

HERE = Path(__file__).resolve().parent
QUICK = MeasureSettings(sample=1e-4, budget=5e-3)


# A backend whose candidates do what their options say.


@dataclass(frozen=True, slots=True)
class FakeOptions:
    """Microseconds that the kernel takes, and how it behaves."""

    micros: int
    kind: str = "right"


@dataclass(frozen=True)
class FakeKernel:
    options: FakeOptions

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        (source,), (target,) = inputs, outputs
        end = time.perf_counter() + self.options.micros * 1e-6
        match self.options.kind:
            case "raises":
                raise RuntimeError("the kernel\nraised")
            case "segfault":
                ctypes.string_at(0)
            case "hang":
                time.sleep(1000)
            case "exit":
                os._exit(3)
            case "prints":
                print("noise on standard output", flush=True)
            case "changes input":
                source[0] += 1
        if self.options.kind == "partial":
            target[:-1] = source[:-1] * 2
        elif self.options.kind == "stray":
            target[:] = source * 2
            ctypes.memset(target.ctypes.data + target.nbytes, 0, 4)
        else:
            target[:] = source * (3 if self.options.kind == "wrong" else 2)
        while time.perf_counter() < end:
            pass


@dataclass(frozen=True)
class FakeBackend:
    """Doubles an array. ``delay``: seconds that compiling takes."""

    delay: float = 0.0
    reference_kind: str = "right"

    def compile(self, options: FakeOptions) -> bytes:
        time.sleep(self.delay)
        match options.kind:
            case "constraints":
                raise OptionsError("tile: it cannot be tiled")
            case "no compile":
                raise CompileError("the compiler refused")
            case "compiler crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "compiler hang":
                time.sleep(1000)
        return json.dumps([options.micros, options.kind]).encode()

    def load(self, code: bytes) -> Kernel:
        return FakeKernel(FakeOptions(*json.loads(code)))

    def problem(self) -> Problem:
        source = np.arange(1, 101, dtype=np.float32)
        return Problem((source,), (np.empty(100, np.float32),), ("O",), (False,), (1,))

    def reference(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        match self.reference_kind:
            case "raises":
                raise IndexError("index 12 is out of range for dimension 0 of tensor LUT")
            case "segfault":
                ctypes.string_at(0)
            case "hang":
                time.sleep(1000)
        outputs[0][:] = inputs[0] * 2


class FakeSpace:
    """``micros`` is the better the smaller, and ``kind`` may be fatal."""

    def __init__(self, *kinds: str, micros: Sequence[int] = tuple(range(50, 1000, 25))) -> None:
        kinds = kinds or ("right",)
        self.space = SearchSpace(
            (
                Knob("micros", tuple(micros), micros[-1], ordered=True),
                Knob("kind", kinds, kinds[0], ordered=False),
            )
        )

    def to_options(self, config: Config) -> FakeOptions:
        return FakeOptions(int(config[0]), str(config[1]))

    def from_options(self, options: FakeOptions) -> Config | None:
        config: Config = (options.micros, options.kind)
        return config if self.space.contains(config) else None

    def to_json(self, options: FakeOptions) -> str:
        return json.dumps({"kind": options.kind, "micros": options.micros})

    def from_json(self, text: str) -> FakeOptions:
        try:
            return FakeOptions(**json.loads(text))
        except (TypeError, ValueError):
            raise OptionsError("these are no options") from None


KEY = CacheKey("def double", "fake", (), "this machine", "1")


def fake_tuner(
    *kinds: str, cache: TuningCache | None = None, delay: float = 0.0, **settings: Any
) -> Tuner[FakeOptions]:
    values = {"seed": 1, "generations": 2, "population": 8, "compile_timeout": 20.0, **settings}
    return Tuner(
        FakeBackend(delay),
        FakeSpace(*kinds),
        config=TunerConfig(**values),
        cache=cache,
        key=KEY if cache is not None else None,
        entry="double",
        timing=QUICK,
    )


# Measuring.


class Clock:
    """Time that passes only while a kernel runs."""

    def __init__(self, durations: Iterator[float]) -> None:
        self.now = 0.0
        self.calls = 0
        self._durations = durations

    def __call__(self) -> float:
        return self.now

    def run(self) -> None:
        self.calls += 1
        self.now += next(self._durations)


def steady(seconds: float) -> Iterator[float]:
    while True:
        yield seconds


def jittery(seconds: float) -> Iterator[float]:
    while True:
        yield seconds
        yield seconds * 1.5
        yield seconds * 0.7


def test_short_kernels_are_batched_to_a_millisecond() -> None:
    clock = Clock(steady(1e-5))
    measured = measure(clock.run, clock=clock)
    assert measured.median == pytest.approx(1e-5)
    assert len(measured.times) == 9 and not measured.dropped
    assert clock.calls == pytest.approx(2 + (2 + 9) * 100, abs=11)


def test_cold_first_call_neither_counts_nor_spoils_the_batches() -> None:
    def durations() -> Iterator[float]:
        yield 1.0
        yield 2e-3
        yield from steady(1e-5)

    clock = Clock(durations())
    measured = measure(clock.run, clock=clock)
    assert measured.times == pytest.approx((1e-5,) * 9)
    assert clock.calls > 9 * 100


def test_noisy_kernels_are_sampled_until_the_budget_is_spent() -> None:
    clock = Clock(jittery(2e-3))
    measured = measure(clock.run, clock=clock)
    assert len(measured.times) > 50
    assert clock.now == pytest.approx(0.2, rel=0.2)


def test_long_kernels_are_sampled_three_times() -> None:
    clock = Clock(jittery(0.5))
    assert len(measure(clock.run, clock=clock).times) == 3


@pytest.mark.parametrize(("first", "calls"), [(0.2, 1), (0.02, 2), (0.0011, 2)])
def test_hopeless_kernels_are_dropped(first: float, calls: int) -> None:
    clock = Clock(iter([first, 0.0051, *[0.004] * 10_000]))
    measured = measure(clock.run, best=0.001, clock=clock)
    assert measured.dropped and clock.calls == calls and len(measured.times) == 1


def test_kernels_within_reach_of_the_best_are_not_dropped() -> None:
    clock = Clock(iter([0.09, *[0.004] * 10_000]))
    assert not measure(clock.run, best=0.001, clock=clock).dropped


def test_outputs_are_reset_before_every_sample_and_not_timed() -> None:
    clock = Clock(steady(1e-3))
    resets: list[int] = []

    def reset() -> None:
        resets.append(clock.calls)
        clock.now += 100.0 if len(resets) < 3 else 0.0

    measured = measure(clock.run, clock=clock, reset=reset)
    assert measured.median == pytest.approx(1e-3)
    assert resets == list(range(clock.calls))


def test_measuring_a_real_function() -> None:
    measured = measure(lambda: time.sleep(2e-3), settings=MeasureSettings(budget=0.05))
    assert 2e-3 <= measured.median < 2e-2


def test_median_and_spread() -> None:
    assert median((3.0, 1.0, 2.0)) == 2.0
    assert median((4.0, 1.0, 2.0, 3.0)) == 2.5
    assert spread((1.0, 1.0, 1.0)) == 0.0
    assert spread((1.0, 2.0, 3.0)) == 0.5
    with pytest.raises(ValueError):
        median(())


# Verifying.


def test_equal_and_rounded_results_are_right() -> None:
    expected = np.linspace(-1, 1, 101, dtype=np.float32)
    assert mismatch("O", expected.copy(), expected, 1) is None
    rounded = np.nextafter(expected, np.float32(2))
    assert mismatch("O", rounded, expected, 1) is None


def test_first_wrong_element_is_named() -> None:
    expected = np.ones((4, 5), np.float32)
    actual = expected.copy()
    actual[2, 3] = 1.001
    actual[3, 0] = np.nan
    sentence = mismatch("O", actual, expected, 1)
    assert sentence == (
        "output O differs from the reference at (2, 3): 1.0010000467300415 instead of 1.0 "
        "(2 of 20 elements differ)"
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_tolerance_grows_with_depth_and_still_finds_a_missing_term(dtype: str) -> None:
    terms = 256
    data = np.random.default_rng(0).uniform(1, 2, (50, terms))
    expected = data.sum(1).astype(dtype)
    if dtype != "float16":
        forth = np.cumsum(data.astype(dtype), axis=1, dtype=dtype)[:, -1]
        back = np.cumsum(data[:, ::-1].astype(dtype), axis=1, dtype=dtype)[:, -1]
        assert mismatch("O", forth, back, terms) is None
        assert mismatch("O", (data.sum(1) - data[:, 0]).astype(dtype), expected, terms)
    assert tolerance(dtype, terms) == 16 * tolerance(dtype, 1)


def test_cancelled_elements_are_judged_by_the_size_of_the_others() -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((64, 512)).astype(np.float32)
    b = rng.standard_normal((512, 64)).astype(np.float32)
    sequential = np.zeros((64, 64), np.float32)
    for k in range(512):
        sequential += a[:, k : k + 1] * b[k : k + 1]
    assert mismatch("C", a @ b, sequential, 512) is None
    wrong = a[:, 1:] @ b[1:]
    assert mismatch("C", wrong, sequential, 512) is not None


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        (np.nan, np.nan, True),
        (np.inf, np.inf, True),
        (-np.inf, np.inf, False),
        (np.nan, 1.0, False),
        (1.0, np.nan, False),
        (np.inf, 3e38, False),
        (1.0, np.inf, False),
        (0.0, -0.0, True),
        (0.0, 1e-30, False),
    ],
)
def test_values_that_are_not_finite(expected: float, actual: float, same: bool) -> None:
    pair = np.array([expected], np.float32), np.array([actual], np.float32)
    assert (mismatch("O", pair[1], pair[0], 1) is None) == same


def test_infinities_do_not_hide_errors_of_others() -> None:
    expected = np.array([np.inf, 1.0, 3e38], np.float32)
    assert mismatch("O", np.array([np.inf, 1.0, 3e38], np.float32), expected, 1) is None
    assert mismatch("O", np.array([np.inf, 1.0, 2e38], np.float32), expected, 1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "bool"])
def test_integers_and_bools_have_to_be_equal(dtype: str) -> None:
    expected = np.array([0, 1, 1, 0]).astype(dtype)
    assert mismatch("O", expected.copy(), expected, 1000) is None
    actual = expected.copy()
    actual[2] = 0
    assert "at (2)" in (mismatch("O", actual, expected, 1000) or "")


def test_large_integers_are_compared_exactly() -> None:
    expected = np.array([2**62 + 1], np.int64)
    assert mismatch("O", expected - 1, expected, 1) is not None


def test_outputs_of_rank_0_and_empty_ones() -> None:
    assert mismatch("O", np.float32(1.0) * np.ones(()), np.ones(()), 1) is None
    assert mismatch("O", np.zeros(()), np.ones(()), 1) == (
        "output O differs from the reference: 0.0 instead of 1.0 (1 of 1 elements differ)"
    )
    assert mismatch("O", np.ones((0, 3)), np.ones((0, 3)), 1) is None


def test_bfloat16_is_compared_as_a_float() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    expected = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    assert mismatch("O", np.array([1.0078125, 2.0], ml_dtypes.bfloat16), expected, 1) is None
    assert mismatch("O", np.array([1.25, 2.0], ml_dtypes.bfloat16), expected, 1) is not None
    guarded = Guarded(expected)
    guarded.poison()
    assert np.isnan(guarded.array.astype(np.float32)).all()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("value", [0, 1])
def test_elements_that_are_not_written_are_found(dtype: str, value: int) -> None:
    expected = np.full((3, 4), value, dtype)
    guarded = Guarded(expected)
    guarded.poison()
    guarded.array[:2] = expected[:2]
    assert "at (2, 0)" in (mismatch("O", guarded.array, expected, 1) or "")
    guarded.array[2] = expected[2]
    assert mismatch("O", guarded.array, expected, 1) is None


@pytest.mark.parametrize(
    "like",
    [
        np.empty((3, 4), np.float32),
        np.empty((3, 4), np.float64).T,
        np.empty(10, np.int16)[::-2],
        np.empty((), np.float32),
        np.empty((0, 3), np.float32),
        np.empty(100, np.uint8)[1:],
    ],
    ids=["plain", "transposed", "reversed", "scalar", "empty", "misaligned"],
)
def test_guarded_memory_is_laid_out_alike_and_notices_stray_writes(like: Array) -> None:
    guarded = Guarded(like)
    assert guarded.array.shape == like.shape and guarded.array.dtype == like.dtype
    assert guarded.array.strides == like.strides
    if like.size:
        low = [x.__array_interface__["data"][0] % 64 for x in (guarded.array, like)]
        assert low[0] == low[1]
    guarded.poison()
    guarded.array[...] = 0
    assert guarded.intact()
    reach = [(n - 1) * s for n, s in zip(like.shape, like.strides, strict=True) if n > 1]
    data = guarded.array.ctypes.data
    first, last = data + sum(r for r in reach if r < 0), data + sum(r for r in reach if r > 0)
    for address in (first - 1, last + like.itemsize):
        guarded.poison()
        ctypes.memset(address, 0, 1)
        assert not guarded.intact()


def test_depths_follow_what_is_read() -> None:
    text = """
    def f(float(N, K) I) -> (S, E, T, O, X) {
        S(n) +=! I(n, k)
        E(n, k) = exp(I(n, k) - S(n))
        T(n) +=! E(n, k)
        O(n, k) = E(n, k) / T(n)
        X(n) max=! I(n, k)
        X(n) max= O(n, k)
    }
    """
    depths = accumulation_depths(infer(check(text)["f"], {"I": (3, 10)}))
    assert depths == {"I": 0, "S": 10, "E": 11, "T": 21, "O": 22, "X": 32}


# Evaluating, in this process.


def evaluator(backend: FakeBackend) -> Evaluator:
    return Evaluator(backend, compute_reference(backend).outputs, QUICK)


@pytest.mark.parametrize(
    ("kind", "verdict", "message"),
    [
        ("right", Verdict.CORRECT, ""),
        ("wrong", Verdict.CORRECTNESS, "output O differs from the reference at (0): 3.0 instead"),
        ("partial", Verdict.CORRECTNESS, "output O differs from the reference at (99): nan"),
        ("stray", Verdict.CORRECTNESS, "the kernel wrote outside of output O"),
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


def test_slow_candidates_are_correct_and_say_that_they_were_dropped() -> None:
    backend = FakeBackend()
    outcome = evaluator(backend).evaluate(backend.compile(FakeOptions(20_000)), 1e-5)
    assert outcome.verdict is Verdict.CORRECT and "far slower" in outcome.message
    assert outcome.time is not None and outcome.time >= 0.02


@dataclass(frozen=True)
class InPlaceBackend(FakeBackend):
    """Adds the input to the output, which therefore has to be given."""

    def load(self, code: bytes) -> Kernel:
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


# Worker processes.


def double(value: int) -> int:
    return 2 * value


def pause(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def fail() -> None:
    raise OptionsError("no")


class Awkward(Exception):
    """Can be pickled, but not unpickled."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} {b}")


def fail_awkwardly() -> None:
    raise Awkward(1, 2)


def crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave() -> None:
    sys.stderr.write("first\nfamous last words\n")
    sys.stderr.flush()
    os._exit(4)


_PLACE: list[int] = []


def remember(value: int) -> None:
    _PLACE.append(value)


def recall() -> tuple[list[int], int]:
    return _PLACE, os.getpid()


def say() -> str:
    print("hello", flush=True)
    return "said"


def affinity() -> set[int]:
    return os.sched_getaffinity(0)


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    found = WorkerPool(2, timeout=20.0)
    yield found
    found.kill()


def test_pool_returns_results_and_errors(pool: WorkerPool) -> None:
    assert [f.result(20) for f in [pool.submit(double, i) for i in range(10)]] == list(
        range(0, 20, 2)
    )
    with pytest.raises(OptionsError, match="^no$"):
        pool.submit(fail).result(20)
    with pytest.raises(RuntimeError, match="Awkward: 1 2"):
        pool.submit(fail_awkwardly).result(20)
    assert list(pool.map(double, [1, 2, 3])) == [2, 4, 6]


def test_crash_fails_its_task_alone(pool: WorkerPool) -> None:
    slow = pool.submit(pause, 0.3)
    with pytest.raises(WorkerDied, match="ended by SIGKILL"):
        pool.submit(crash).result(20)
    assert slow.result(20) == 0.3
    with pytest.raises(WorkerDied, match="status 4: famous last words"):
        pool.submit(leave).result(20)
    assert pool.submit(double, 4).result(20) == 8


def test_task_that_takes_too_long_is_killed() -> None:
    pool = WorkerPool(1, timeout=0.5)
    try:
        slow, next_one = pool.submit(pause, 1000), pool.submit(double, 3)
        with pytest.raises(WorkerTimeout, match="more than 0.5 s"):
            slow.result(20)
        assert next_one.result(20) == 6
    finally:
        pool.kill()


def test_every_process_is_set_up_once() -> None:
    pool = WorkerPool(1, initializer=remember, initargs=(5,))
    try:
        first, again = pool.submit(recall).result(20), pool.submit(recall).result(20)
        assert first == again and first[0] == [5]
        with pytest.raises(WorkerDied):
            pool.submit(crash).result(20)
        restarted = pool.submit(recall).result(20)
        assert restarted[0] == [5] and restarted[1] != first[1]
    finally:
        pool.kill()


def test_failing_set_up_is_the_tasks_error() -> None:
    pool = WorkerPool(1, initializer=fail)
    try:
        with pytest.raises(OptionsError):
            pool.submit(double, 1).result(20)
    finally:
        pool.kill()


def test_what_tasks_print_does_not_disturb(pool: WorkerPool) -> None:
    assert pool.submit(say).result(20) == "said"
    assert pool.submit(double, 1).result(20) == 2


def test_kill_ends_everything_at_once(pool: WorkerPool) -> None:
    pid = pool.submit(recall).result(20)[1]
    running = [pool.submit(pause, 1000) for _ in range(2)]
    waiting = pool.submit(double, 1)
    time.sleep(0.2)
    begin = time.monotonic()
    pool.kill()
    for future in running:
        with pytest.raises((WorkerDied, CancelledError)):
            future.result(5)
    with pytest.raises(CancelledError):
        waiting.result(5)
    assert time.monotonic() - begin < 1.0
    assert gone(pid)
    with pytest.raises(RuntimeError, match="shut down"):
        pool.submit(double, 1)


def test_shutdown_finishes_what_was_submitted() -> None:
    pool = WorkerPool(1)
    futures = [pool.submit(double, i) for i in range(3)]
    pool.shutdown()
    assert [f.result(0) for f in futures] == [0, 2, 4]
    with WorkerPool(1) as other:
        cancelled: Future[float]
        running, cancelled = other.submit(pause, 0.3), other.submit(pause, 0.3)
        time.sleep(0.1)
        other.shutdown(cancel_futures=True)
        assert running.result(0) == 0.3 and cancelled.cancelled()


def test_workers_run_on_the_cores_they_are_given() -> None:
    core = min(os.sched_getaffinity(0))
    pool = WorkerPool(1, cpus=[core])
    try:
        assert pool.submit(affinity).result(20) == {core}
    finally:
        pool.kill()


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = (
        "from test_tuner import *; pool = WorkerPool(1); "
        "print(pool.submit(recall).result()[1], flush=True); "
        "pool.submit(pause, 1000); import time; time.sleep(1000)"
    )
    parent = started(script)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    assert not gone(worker, patience=0.2)
    parent.kill()
    parent.wait()
    assert gone(worker)


def gone(pid: int, patience: float = 5.0) -> bool:
    """Whether a process has ended, or does within ``patience`` seconds."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


def started(script: str, *arguments: str) -> subprocess.Popen[str]:
    """A Python process of its own, in its own group, that can import this file."""
    path = [str(HERE), *(p or os.getcwd() for p in sys.path)]
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        start_new_session=True,
    )


# Searching.


def events_of(
    tuner: Tuner[FakeOptions], start: Sequence[FakeOptions] = ()
) -> tuple[TuningResult[FakeOptions], list[Event[FakeOptions]]]:
    events: list[Event[FakeOptions]] = []
    return tuner.tune(start, events.append), events


def test_tuner_finds_the_fastest_and_stores_everything(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "t.db")
    result, events = events_of(fake_tuner(cache=cache, generations=6), [FakeOptions(975)])
    assert result.options is not None and result.options.micros <= 75
    assert result.time is not None and 4e-5 < result.time < 2e-4
    assert not result.interrupted
    assert len(cache.history(KEY)) == len(result.history) == len(set(c.options for c in result.history))
    best = cache.best(KEY)
    assert best is not None and json.loads(best.options)["micros"] == result.options.micros
    assert {r.run for r in cache.history(KEY)} == {result.run}
    assert cache.list()[0].entry == "double"

    assert result.history[0].options == FakeOptions(975) and result.history[0].generation == 0
    assert isinstance(events[0], GenerationStarted) and events[0].candidates == 1
    assert events[-1] == Finished(result.best, result.seconds, False)
    done = [e.candidate for e in events if isinstance(e, CandidateDone)]
    assert tuple(done) == result.history
    times = [e.time for e in events if isinstance(e, NewBest)]
    assert times == sorted(times, reverse=True) and times[-1] == result.time
    generations = [e.generation for e in events if isinstance(e, GenerationStarted)]
    assert generations == list(range(7))


def test_every_failure_gets_its_verdict_and_the_search_goes_on() -> None:
    kinds = {
        "constraints": Verdict.CONSTRAINTS,
        "no compile": Verdict.COMPILE,
        "compiler crash": Verdict.COMPILE,
        "segfault": Verdict.RUNTIME,
        "exit": Verdict.RUNTIME,
        "raises": Verdict.RUNTIME,
        "hang": Verdict.TIMEOUT,
        "wrong": Verdict.CORRECTNESS,
        "partial": Verdict.CORRECTNESS,
        "changes input": Verdict.CORRECTNESS,
        "prints": Verdict.CORRECT,
        "right": Verdict.CORRECT,
    }
    tuner = fake_tuner(generations=1, population=2, run_timeout=1.0)
    # The wrong ones would be the fastest.
    start = [FakeOptions(200 if k == "right" else 300 if k == "prints" else 1, k) for k in kinds]
    result = tuner.tune(start)
    verdicts = {c.options.kind: c.outcome.verdict for c in result.history if c.generation == 0}
    assert verdicts == kinds
    messages = {c.options.kind: c.outcome.message for c in result.history if c.generation == 0}
    assert messages["constraints"] == "tile: it cannot be tiled"
    assert messages["compiler crash"] == "its process was ended by SIGSEGV"
    assert messages["segfault"] == "its process was ended by SIGSEGV"
    assert messages["hang"] == "it took more than 1 s"
    assert result.best is not None and result.best.options.kind == "right"


def test_compiler_that_hangs_is_ended() -> None:
    tuner = fake_tuner(generations=1, population=2, compile_timeout=0.5)
    result = tuner.tune([FakeOptions(1, "compiler hang")])
    assert result.history[0].outcome.verdict is Verdict.TIMEOUT
    assert result.best is not None


def test_same_kernel_from_other_options_is_measured_once() -> None:
    tuner = fake_tuner(generations=1, population=2)
    result = tuner.tune([FakeOptions(100), FakeOptions(100)])
    first, second = (c for c in result.history if c.generation == 0)
    assert first.outcome == second.outcome


def test_nothing_that_works_is_said_and_is_no_winner() -> None:
    result, events = events_of(fake_tuner("constraints", "wrong", population=6))
    assert result.best is None and result.options is None and result.time is None
    notes = [e.message for e in events if isinstance(e, Note)]
    assert notes and notes[0].startswith("only 0 of 6 candidates work")
    assert "verdict" in notes[0] and "for example" in notes[0]


def test_cached_results_open_the_next_search(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "t.db")
    cache.store(KEY, '{"kind":"right","micros":50}', Outcome(Verdict.CORRECT, (5e-5,)), run="old")
    cache.store(KEY, '{"kind":"right","micros":3}', Outcome(Verdict.CORRECT, (1e-6,)), run="old")
    cache.store(KEY, '{"who":"knows"}', Outcome(Verdict.CORRECT, (1e-7,)), run="old")
    result = fake_tuner(cache=cache, generations=1).tune()
    assert FakeOptions(50) in [c.options for c in result.history]
    assert FakeOptions(3) not in [c.options for c in result.history]  # not in this space
    assert result.options == FakeOptions(50)
    without = fake_tuner(cache=cache, generations=1, cached_seeds=0, seed=2).tune()
    assert FakeOptions(50) not in [c.options for c in without.history]


def test_options_outside_of_the_space_are_measured_too() -> None:
    result = fake_tuner(generations=1).tune([FakeOptions(7)])
    assert result.history[0].options == FakeOptions(7) and result.history[0].config is None
    assert result.options == FakeOptions(7)


def test_same_seed_proposes_the_same_first_generation() -> None:
    runs = [
        {c.options for c in fake_tuner(generations=1, seed=s).tune().history} for s in (3, 3, 4)
    ]
    assert runs[0] == runs[1] != runs[2]


def test_state_of_the_search_is_saved(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "t.db")
    result = fake_tuner(cache=cache, generations=2, seed=None).tune()
    saved = cache.load_run(result.run)
    assert saved is not None
    settings, state = saved
    assert isinstance(settings["seed"], int) and settings["population"] == 8
    assert state["generation"] == 2
    strategy = state["strategy"]
    assert isinstance(strategy, dict) and len(strategy["results"]) == 8


class FailingCache(TuningCache):
    """Cannot be written for a while."""

    failures = 3

    def store(self, key: CacheKey, options: str, outcome: Outcome, **names: str) -> None:
        if self.failures:
            self.failures -= 1
            raise CacheError("the tuning cache is locked")
        super().store(key, options, outcome, run=names["run"], entry=names["entry"])


def test_cache_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    cache = FailingCache(tmp_path / "t.db")
    result, events = events_of(fake_tuner(cache=cache))
    assert [e.message for e in events if isinstance(e, Note)] == ["the tuning cache is locked"]
    assert len(cache.history(KEY)) == len(result.history)


def test_errors_of_the_reference_are_raised() -> None:
    for kind, error, message in (
        ("raises", IndexError, "index 12 is out of range"),
        ("segfault", TclError, "the reference kernel could not be run: .*SIGSEGV"),
    ):
        with pytest.raises(error, match=message):
            Tuner(FakeBackend(0.0, kind), FakeSpace()).tune()


def test_time_limit_ends_the_search() -> None:
    result, events = events_of(fake_tuner(delay=0.2, generations=1000, time_limit=2.0))
    assert result.interrupted and 2.0 <= result.seconds < 6.0
    assert Interrupted(FINISH, "time limit") in events
    assert result.best is not None


@pytest.mark.parametrize("kill", [False, True])
def test_stop_from_another_thread(kill: bool) -> None:
    tuner = fake_tuner(delay=0.1, generations=1000)
    seen = threading.Event()
    outcome: list[TuningResult[FakeOptions]] = []

    def report(event: Event[FakeOptions]) -> None:
        if isinstance(event, CandidateDone):
            seen.set()

    # Not the main thread: no signals can be handled there, and none have to be.
    thread = threading.Thread(target=lambda: outcome.append(tuner.tune((), report)))
    thread.start()
    assert seen.wait(30)
    begin = time.monotonic()
    tuner.stop(kill=kill)
    thread.join(10)
    assert time.monotonic() - begin < (1.0 if kill else 5.0)
    assert outcome and outcome[0].interrupted and outcome[0].best is not None


def test_error_in_the_callback_ends_the_workers() -> None:
    def report(event: Event[FakeOptions]) -> None:
        if isinstance(event, CandidateDone):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fake_tuner().tune((), report)
    handler = signal.getsignal(signal.SIGINT)
    assert handler is signal.default_int_handler


# Interrupts.


def test_signals_are_counted_and_handlers_restored() -> None:
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert (interrupts.level, interrupts.reason) == (FINISH, "SIGTERM")
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.level == KILL
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before


_SCRIPT = """
import sys
from test_tuner import *
def report(event):
    print(type(event).__name__, getattr(event, "level", ""), flush=True)
kind, path = sys.argv[1:]
tuner = Tuner(
    FakeBackend(delay=0.15), FakeSpace(*dict.fromkeys(("right", kind))),
    config=TunerConfig(seed=5, generations=1000, threads=1, run_timeout=60.0),
    cache=TuningCache(path), key=KEY, timing=QUICK,
)
start = [FakeOptions(10), FakeOptions(20), FakeOptions(30)]
result = tuner.tune(start + [FakeOptions(1, kind)] * (kind != "right"), report)
print("RESULT", result.interrupted, result.options.micros, len(result.history), flush=True)
"""


class Interrupted_:
    """A tuner in a process of its own that has measured three candidates, and is at work."""

    def __init__(self, tmp_path: Path, kind: str) -> None:
        self.path = tmp_path / "t.db"
        self.process = started(_SCRIPT, kind, str(self.path))
        self.until("CandidateDone", 3)
        if kind == "hang":
            time.sleep(0.5)  # until the fourth is being evaluated

    def until(self, line: str, count: int = 1) -> None:
        """Read output up to the ``count``-th such line."""
        assert self.process.stdout is not None and self.process.stderr is not None
        while count:
            read = self.process.stdout.readline()
            assert read, self.process.stderr.read()
            count -= read.startswith(line)

    def finish(self, patience: float) -> tuple[list[str], str]:
        """The RESULT line in words, and what was written to standard error."""
        try:
            output, errors = self.process.communicate(timeout=patience)
        finally:
            self.process.kill()
        lines = [x for x in output.splitlines() if x.startswith("RESULT")]
        assert lines, errors
        return lines[0].split(), errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_finishes_what_is_in_flight(tmp_path: Path, number: int) -> None:
    tuner = Interrupted_(tmp_path, "right")
    os.killpg(tuner.process.pid, number)  # as a terminal does: the whole group
    (_, interrupted, micros, count), errors = tuner.finish(10)
    assert tuner.process.returncode == 0 and errors == ""
    assert interrupted == "True" and micros == "10"
    records = TuningCache(tuner.path).history(KEY)
    assert len(records) == int(count) >= 3
    assert all(r.verdict is Verdict.CORRECT for r in records)


def test_second_signal_kills_what_is_in_flight(tmp_path: Path) -> None:
    tuner = Interrupted_(tmp_path, "hang")
    tuner.process.send_signal(signal.SIGINT)
    tuner.until("Interrupted 1")
    time.sleep(0.5)
    assert tuner.process.poll() is None  # it waits for the candidate that hangs
    begin = time.monotonic()
    tuner.process.send_signal(signal.SIGINT)
    (_, interrupted, micros, count), errors = tuner.finish(10)
    assert time.monotonic() - begin < 1.5
    assert tuner.process.returncode == 0 and errors == ""
    assert interrupted == "True" and micros == "10"
    assert len(TuningCache(tuner.path).history(KEY)) == int(count) >= 3


def test_killed_tuner_loses_nothing(tmp_path: Path) -> None:
    tuner = Interrupted_(tmp_path, "right")
    tuner.process.kill()
    tuner.process.wait()
    assert len(TuningCache(tuner.path).history(KEY)) >= 3


def test_signal_during_the_reference_returns_at_once(tmp_path: Path) -> None:
    script = (
        "from test_tuner import *\n"
        "print('ready', flush=True)\n"
        "result = Tuner(FakeBackend(0.0, 'hang'), FakeSpace()).tune()\n"
        "print('RESULT', result.interrupted, result.best)"
    )
    process = started(script)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=10)
    assert output.split() == ["RESULT", "True", "None"], errors


def test_script_without_main_guard_can_tune(tmp_path: Path) -> None:
    script = tmp_path / "user_script.py"
    script.write_text(
        "from test_tuner import *\n"
        "print('once')\n"
        "print(fake_tuner(generations=1).tune().options is not None)\n"
    )
    process = started(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    output, errors = process.communicate(timeout=60)
    assert output.split() == ["once", "True"], errors


# Settings.


def test_both_styles_of_configuration_agree() -> None:
    fluent = (
        TunerConfig()
        .generations(5)
        .pop_size(30)
        .number_elites(12)
        .crossover_rate(70)
        .mutation_rate(9)
        .threads(3)
        .seed(1)
        .time_limit(60)
        .strategy("random")
    )
    direct = TunerConfig(
        generations=5,
        population=30,
        elites=12,
        crossover_rate=70,
        mutation_rate=9,
        threads=3,
        seed=1,
        time_limit=60,
        strategy="random",
    )
    assert fluent == direct and hash(fluent) == hash(direct)
    assert fluent.settings.search.crossover == 0.7
    assert TunerConfig().elites(12).population(30) == TunerConfig().population(30).elites(12)
    assert TunerConfig().settings == TunerSettings()
    assert TunerConfig(population=6).settings.search.elites == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TunerConfig(generations=0), "generations must be a whole number from 1 to"),
        (lambda: TunerConfig(population=1), "population must be a whole number from 2 to"),
        (lambda: TunerConfig().crossover_rate(101), "crossover_rate .* from 0 to 100, not 101"),
        (lambda: TunerConfig().mutation_rate(-1), "mutation_rate must be"),
        (lambda: TunerConfig(threads=1.5), "threads must be a whole number .*, not 1.5"),
        (lambda: TunerConfig(threads=True), "threads must be .*, not True"),
        (lambda: TunerConfig(seed="1"), "seed must be a whole number or None, not '1'"),
        (lambda: TunerConfig(time_limit=0), "time_limit must be a number of seconds above 0"),
        (lambda: TunerConfig(time_limit=float("nan")), "time_limit must be"),
        (lambda: TunerConfig(compile_timeout=None), "compile_timeout must be"),
        (lambda: TunerConfig(strategy="annealing"), "strategy must be one of genetic, random"),
        (lambda: TunerConfig(pop=3), "there is no setting 'pop'; settings are generations"),
        (lambda: fake_tuner(population=8, elites=5), "elites must be at most half"),
    ],
)
def test_bad_settings_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(OptionsError, match=message):
        make()


def test_cores_are_split_between_compiling_and_measuring() -> None:
    assert split_cores([0, 1, 2, 3]) == ((0, 1, 2), (3,))
    assert split_cores([5]) == ((5,), (5,))


def test_a_cache_needs_a_key(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a cache needs a key"):
        Tuner(FakeBackend(), FakeSpace(), cache=TuningCache(tmp_path / "t.db"))


def test_candidates_are_data() -> None:
    outcome = Outcome(Verdict.CORRECT, (1.0, 3.0))
    candidate = Candidate(FakeOptions(1), None, 0, outcome)
    values: Mapping[str, Value] = {"micros": 1}
    assert candidate.time == 2.0 and values["micros"] == candidate.options.micros
    assert Outcome(Verdict.RUNTIME, message="x").time is None
