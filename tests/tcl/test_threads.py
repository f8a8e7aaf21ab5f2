"""How many threads a kernel uses: asked for, found, worth it, and part of what is tuned."""

from __future__ import annotations

import copy
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import here
from cpu_kernels import MATMUL, NAIVE, cache_key, sized_of
from tuner_fakes import FakeBackend, FakeOptions

import tcl
from tcl.bench.peers.ours import make
from tcl.bench.task import DEFAULT_FORM, Task
from tcl.codegen.choose.cpu.thread_worth import with_threads_worth, worth_threads
from tcl.codegen.cpu import thread_count as threads
from tcl.codegen.cpu.run.ready import ingredients
from tcl.codegen.cpu.thread_count import thread_count, usable_cores
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.devices.known_cpus import PROFILES
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import MappingOptions
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.cache.tuning_cache import TuningCache, default_path
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.run import pipeline as pipelines
from tcl.tuner.run.pipeline import CandidatePipeline, Job
from tcl.tuner.run.workplace import Compilers, Stages

POOL = "def pool(float(M, W) A) -> (O) {{ O(m, w) +=! A(m, {} * w + k) where k in 0:3 }}"
TABLE = "def look_up(uint8(N) X, float(256) T) -> (Y) { Y(n) = T(X(n)) }"
HISTOGRAMS = "def f(float(T, F) P, int32(F) B) -> (float(T, 9) H) { H(t, B(f)) +=! P(t, f) }"
MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv(threads.VARIABLE, raising=False)
    threads._quota.cache_clear()
    yield
    threads._quota.cache_clear()


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def whole(size: int) -> Any:
    return np.ones(size, np.int32)


@pytest.mark.parametrize("wrong", [0, -1, 1025, 2.0, True, "2"])
def test_a_number_that_is_none(wrong: Any) -> None:
    for call in (
        lambda: tcl.define(MM, threads=wrong),
        lambda: tcl.compile(MM, "mm", "naive", ones(2, 2), ones(2, 2), threads=wrong),
        lambda: tcl.autotune(MM, "mm", ones(2, 2), ones(2, 2), threads=wrong),
        lambda: tcl.Executor(sized_of(MM, ones(2, 2), ones(2, 2)), NAIVE, wrong),
    ):
        with pytest.raises(tcl.ArgumentError, match="threads must be a whole number from 1 to"):
            call()


@pytest.mark.parametrize("wrong", ["0", "-2", "many", "1.5", "1e9", "9" * 5000, "²"])
def test_a_variable_that_is_no_number(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(threads.VARIABLE, wrong)
    with pytest.raises(ValueError, match="TCL_NUM_THREADS must be a whole number") as error:
        tcl.define(MM)
    assert isinstance(error.value, tcl.ArgumentError)
    assert len(str(error.value)) < 200
    tcl.define(MM, threads=2)  # what is said in the program counts


def test_where_the_number_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    assert thread_count() == usable_cores() >= 1
    monkeypatch.setenv(threads.VARIABLE, " 3 ")
    assert thread_count() == 3
    assert thread_count(2) == 2
    monkeypatch.setenv(threads.VARIABLE, "")
    assert thread_count() == usable_cores()


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "350000 100000\n"}, 3),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "nonsense"}, 8),
        ({"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}, 8),
        ({"cpu.cfs_quota_us": "200000\n", "cpu.cfs_period_us": "100000\n"}, 2),
        ({}, 8),
    ],
)
def test_control_groups(
    files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(threads, "_groups", lambda: iter([tmp_path / "none", tmp_path]))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    assert usable_cores() == cores


def test_copies_keep_their_threads() -> None:
    executor = tcl.compile(MM, "mm", "naive", ones(3, 4), ones(4, 5), threads=3)
    for other in (copy.copy(executor), pickle.loads(pickle.dumps(executor))):
        assert other.threads == 3
    for defs in (tcl.define(MM, "naive", threads=3),):
        again = pickle.loads(pickle.dumps(defs))
        made, _ = again.executor("mm", (ones(3, 4), ones(4, 5)))
        assert made.threads == 3


def test_what_a_small_work_uses() -> None:
    executor = tcl.compile(MM, "mm", "mlp", ones(3, 4), ones(4, 5), threads=3)
    assert executor.threads == 1
    assert np.array_equal(executor(ones(3, 4), ones(4, 5)), np.full((3, 5), 4))


@pytest.mark.parametrize(
    ("text", "inputs", "worth"),
    [
        (MATMUL, (ones(8, 8), ones(8, 8)), False),
        (MATMUL, (ones(512, 512), ones(512, 512)), True),
        ("def f(float(N) X) -> (Y) { Y(n) = X(n) }", (ones(1000),), False),
        ("def f(float(N) X) -> (Y) { Y(n) = X(n) }", (ones(1 << 20),), True),
        ("def f(float(N) X) -> (Y) { Y(n) = tanh(X(n)) }", (ones(100_000),), True),
        ("def f(float(N) X) -> (S) { S() +=! X(n) }", (ones(1 << 20),), True),
        ("def f(float(N) X) -> (Y) { Y(n) = X(n) }", (ones(0),), False),
        # What lies apart in the lanes takes long; what is copied first, as a matrix, does not.
        (POOL.format(1), (ones(100, 800),), False),
        (POOL.format(2), (ones(100, 1600),), True),
        ("def f(float(M, K) A) -> (S) { S(m) +=! A(m, k) }", (ones(64, 1500),), False),
        # Nor is an element that data select a neighbour's, however often it is read.
        (TABLE, (np.ones(180_000, np.uint8), ones(256)), True),
        ("def f(uint8(N) X) -> (float(N) Y) { Y(n) = X(n) }", (np.ones(180_000, np.uint8),), False),
        # One quotient of integers after the other; by a constant it is a product.
        (
            "def f(int32(N) X, int32 q) -> (S) { S +=! X(n) % q }",
            (whole(200_000), np.int32(7)),
            True,
        ),
        ("def f(int32(N) X) -> (S) { S +=! X(n) % 7 }", (whole(200_000),), False),
        # Rows next to each other, of which data select the columns.
        (HISTOGRAMS, (ones(100, 1000), whole(1000)), True),
    ],
)
def test_what_is_worth_it(text: str, inputs: tuple[Any, ...], worth: bool) -> None:
    program = lower(sized_of(text, *inputs))
    two = replace(host_cpu(), threads=2)
    assert worth_threads(program, two) is worth
    assert with_threads_worth(program, two).threads == (2 if worth else 1)
    assert with_threads_worth(program, host_cpu()) == host_cpu()


def test_products_of_20_microseconds_are_worth_it() -> None:
    """Twice 128x48x256 operations on 16 lanes take some 25 µs on one thread of Zen 4."""
    (zen4,) = (replace(p, threads=2) for p in PROFILES if p.title == "Zen 4")
    for inner, worth in ((256, True), (128, False)):
        program = lower(sized_of(MATMUL, ones(128, inner), ones(inner, 48)))
        assert worth_threads(program, zen4) is worth


def test_steps_in_order_are_not_worth_it() -> None:
    program = lower(sized_of(MATMUL, ones(512, 512), ones(512, 512)))
    (nest,) = program.nests
    ordered = replace(program, nests=(replace(nest, sequential="it reads its own neighbours"),))
    assert worth_threads(program, host_cpu()) and not worth_threads(ordered, host_cpu())


def test_what_was_tuned_for_other_threads_is_not_used() -> None:
    arrays = (ones(8, 9), ones(9, 4))
    sized = sized_of(MM, *arrays)
    keys = [cache_key(sized, arrays, n) for n in (1, 2, 3)]
    assert len({k.digest for k in keys}) == 3
    assert keys[0] == cache_key(sized, arrays)
    assert "thread" not in keys[0].device  # as it was before there were several
    assert device_identity(replace(host_cpu(), threads=2)) == keys[0].device + "; 2 threads"
    strides = tuple(a.strides for a in arrays)
    digests = {ingredients(sized, NAIVE, strides, False, n).digest for n in (1, 2, 3)}
    assert len(digests) == 3


@pytest.mark.usefixtures("searches_in_threads")
def test_tuned_for_a_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = ones(64, 64), ones(64, 64)
    config = tcl.TunerConfig(generations=1, population=2, threads=1, seed=0)
    tcl.autotune(MM, "mm", *arrays, tuner_config=config, store_to_cache=True, threads=1)
    path, best = default_path(), MappingOptions("naive").tile(3, 5)
    key = cache_key(sized_of(MM, *arrays), arrays, 1)
    assert TuningCache(path).history(key)
    TuningCache(path).store(key, best.to_json(), Outcome(Verdict.CORRECT, (1e-9,)), run="")
    cache = tcl.MappingOptionsCache(path)
    assert cache.load(MM, "mm", arrays, threads=1) == [best]
    assert cache.load(MM, "mm", arrays, threads=2) == []
    monkeypatch.setenv(threads.VARIABLE, "1")
    assert cache.load(MM, "mm", arrays) == [best]
    assert tcl.make_load_from_cache_options_factory(path)(MM, "mm", *arrays) == best
    assert tcl.make_load_from_cache_options_factory(path, threads=2)(MM, "mm", *arrays) is None
    assert tcl.define(MM).executor("mm", arrays)[0].options == best
    assert tcl.define(MM, threads=2).executor("mm", arrays)[0].options != best


def test_measuring_needs_cores() -> None:
    with pytest.raises(tcl.ArgumentError, match="1000 threads need as many cores"):
        tcl.autotune(MM, "mm", ones(4, 4), ones(4, 4), threads=1000)


RANGE, ALL = "needs a whole number from 1 to 1024", "leave it out for all cores"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("run", "--threads", "2", "--no-reference"), 0, "on 1 thread, with the default options\n"),
        (("run", "-o", "mlp", "--no-reference"), 0, "thread, with the default options\n"),
        (("run", "-o", "naive", "--no-reference"), 0, 'thread, with options {"preset":"naive"}\n'),
        (("run", "--threads", "0"), 2, f"error: --threads {RANGE}, not '0'; {ALL}\n"),
        (("run", "--threads", "1025"), 2, f"error: --threads {RANGE}, not '1025'; {ALL}\n"),
        (("show", "-t", "one"), 2, f"error: --threads {RANGE}, not 'one'; {ALL}\n"),
        (("tune", "--threads", "1000"), 1, "1000 threads need as many cores"),
        (("tune", "--jobs", "-1"), 2, "-1 is not in the range"),
    ],
)
def test_command_line(arguments: tuple[str, ...], code: int, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "mm.tc"
    file.write_text(MM)
    command, *rest = arguments
    done = here(command, file, "-s", "M=4,K=4,N=4", *rest)
    assert done.returncode == code, done.stderr
    assert sentence in done.stdout + done.stderr


def test_tuning_on_two_cores() -> None:
    if usable_cores() < 2:
        pytest.skip("needs two cores")
    arrays = ones(128, 128), ones(128, 128)
    config = tcl.TunerConfig(generations=1, population=4, seed=0)
    events: list[Any] = []
    best = tcl.autotune(
        MM, "mm", *arrays, tuner_config=config, threads=2, report=events.append, store_to_cache=True
    )
    verdicts = {e.candidate.outcome.verdict for e in events if hasattr(e, "candidate")}
    assert best is not None and verdicts <= {Verdict.CORRECT, Verdict.CONSTRAINTS}
    executor, _ = tcl.define(MM, threads=2).executor("mm", arrays)
    assert executor.options == best
    assert np.array_equal(executor(*arrays), np.full((128, 128), 128))


def test_benchmarks_say_how_many_threads_there_were() -> None:
    peer = make(2)
    for n, used in ((8, 1), (300, 2)):
        task = Task(MM, "mm", {"M": n, "K": n, "N": n}, ("A", "B"), ("C",))
        forms = dict(peer.forms(task, {"A": ones(n, n), "B": ones(n, n)}))
        form = forms[DEFAULT_FORM]()
        assert form.threads == used
        assert np.array_equal(form.results()[0], np.full((n, n), n))


class _Watched(Executor):
    """Runs tasks in threads, and knows how many are at work."""

    def __init__(self, workers: int, do: Callable[[], Any]) -> None:
        self._pool = ThreadPoolExecutor(workers)
        self._workers = workers
        self._do = do
        self._lock = threading.Lock()
        self.working = 0
        self.beside: list[_Watched] = []
        self.most = 0
        self.together = False

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._pool.submit(self._work)

    def _work(self) -> Any:
        with self._lock:
            self.working += 1
            self.most = max(self.most, self.working)
        for k in range(300):  # a machine with other things to do starts threads late
            self.together |= any(other.working for other in self.beside)
            time.sleep(0.001)
            if k >= 4 and self.most == self._workers:
                break
        with self._lock:
            self.working -= 1
        return self._do()


@pytest.mark.parametrize(("beside", "sharing"), [(2, 0), (0, 2), (2, 1), (1, 1)])
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("count", [1, 3, 23])
def test_compiling_and_measuring_in_turns(
    beside: int, sharing: int, alike: bool, count: int
) -> None:
    numbers = iter(range(1000))
    widths = {False: beside, True: sharing}
    compilers = {
        in_turns: _Watched(width, lambda: b"%d" % (0 if alike else next(numbers)))
        for in_turns, width in widths.items()
        if width
    }
    evaluator = _Watched(1, lambda: Outcome(Verdict.CORRECT, (1.0,)))
    evaluator.beside = list(compilers.values())
    for watched in compilers.values():
        watched.beside = [evaluator]
    places = tuple(
        Compilers(each, widths[in_turns], in_turns) for in_turns, each in compilers.items()
    )
    stages = Stages(places, evaluator, 1, lambda: None)
    pipeline = CandidatePipeline[FakeOptions](FakeBackend(), stages, lambda: 0)
    done: list[int] = []
    jobs = [Job(FakeOptions(k), None, k) for k in range(count)]
    pipeline.run(jobs, lambda job, outcome: done.append(job.position))
    assert sorted(done) == list(range(count))
    assert sum(each.most for each in compilers.values()) == min(count, beside + sharing)
    assert evaluator.most == 1
    if True in compilers:
        assert not compilers[True].together
    if False in compilers and count > 3 and not alike:
        assert compilers[False].together or evaluator.together
    elif False not in compilers:
        assert not evaluator.together


class _Clock:
    """Ends the tasks of simulated executors, one after the other."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pending: list[tuple[float, Future[Any], Any]] = []
        self._ended = False

    def advance(self) -> int:
        """To the end of a task, in every second call: new ones are submitted between."""
        self._ended = not self._ended and bool(self.pending)
        if self._ended:
            first = min(self.pending, key=lambda each: each[0])
            self.pending.remove(first)
            self.now, future, result = first
            future.set_result(result)
        return 0


class _Simulated(Executor):
    """Each task takes so many units of a clock."""

    def __init__(self, clock: _Clock, duration: float, do: Callable[[], Any]) -> None:
        self._clock, self._duration, self._do = clock, duration, do

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._clock.pending.append((self._clock.now + self._duration, future, self._do()))
        return future


def test_the_last_candidates_are_compiled_while_others_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipelines, "_POLL", 0.0)
    clock, numbers = _Clock(), iter(range(10))
    own, shared = (_Simulated(clock, 48.0, lambda: b"%d" % next(numbers)) for _ in range(2))
    evaluator = _Simulated(clock, 22.0, lambda: Outcome(Verdict.CORRECT, (1.0,)))
    places = (Compilers(own, 1), Compilers(shared, 1, in_turns=True))
    stages = Stages(places, evaluator, 1, lambda: None)
    pipeline = CandidatePipeline[FakeOptions](FakeBackend(), stages, clock.advance)
    jobs = [Job(FakeOptions(k), None, k) for k in range(10)]
    pipeline.run(jobs, lambda job, outcome: None)
    assert clock.now < 1.1 * 10 * (48 + 22) / 2  # both cores are busy nearly all the time
