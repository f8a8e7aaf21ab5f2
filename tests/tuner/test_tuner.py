"""The search: what it finds, what it survives, what it reports; its settings."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tuner_fakes import (
    KEY,
    QUICK,
    FakeBackend,
    FakeOptions,
    FakeSpace,
    events_of,
    fake_tuner,
    gone,
    in_threads,
    only_hangs_time_out,
)

from tcl.backends.program_backend import CpuBackend
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import ComputedElements
from tcl.common.errors import ArgumentError, CacheError, OptionsError, TclError
from tcl.grammar.check.definitions import check
from tcl.tuner.cache.tuning_cache import ArrayLayout, CacheKey, Record, TuningCache
from tcl.tuner.config import TunerConfig, TunerSettings
from tcl.tuner.measure.backend import CompiledKernel
from tcl.tuner.measure.cores import available_cores, split_cores
from tcl.tuner.measure.correctness import Array
from tcl.tuner.measure.timing import Placed
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.run.events import (
    CandidateCompiled,
    CandidateDone,
    Event,
    FinalsStarted,
    Finished,
    GenerationStarted,
    Interrupted,
    NewBest,
    Note,
    Raced,
)
from tcl.tuner.run.finals import IN_FINALS
from tcl.tuner.run.result import TuningResult
from tcl.tuner.run.stop_requests import FINISH
from tcl.tuner.run.tuner import Tuner
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.tuner.space.search_space import Config

without_processes = pytest.mark.usefixtures("_without_processes")
"""For what does not depend on where candidates are compiled and measured."""


@pytest.fixture
def _without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    in_threads(monkeypatch)


@dataclass(frozen=True)
class NotingBackend(FakeBackend):
    """It notes in a folder which processes compute the reference and compile. Others run
    kernels."""

    folder: str = ""

    def load(self, code: bytes) -> CompiledKernel:
        raise AssertionError("a process that runs kernels has no use for what compiles")

    def runner(self) -> FakeBackend:
        return FakeBackend()

    def compile(self, options: FakeOptions) -> bytes:
        Path(self.folder, f"compiled in {os.getpid()}").touch()
        return super().compile(options)

    def reference(
        self, inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> ComputedElements | None:
        Path(self.folder, "reference").write_text(str(os.getpid()))
        return super().reference(inputs, outputs)


def test_the_process_that_has_computed_the_reference_compiles(tmp_path: Path) -> None:
    """It knows the def, and has loaded what compiles; and it ends with the search."""
    config = TunerConfig(seed=1, generations=1, population=4)
    backend = NotingBackend(folder=str(tmp_path))
    found = Tuner(backend, FakeSpace(), config=config, timing=QUICK).tune([FakeOptions(10)])
    number = int((tmp_path / "reference").read_text())
    assert found.time is not None
    assert (tmp_path / f"compiled in {number}").exists()
    assert gone(number)


@dataclass(frozen=True)
class WaitingBackend(FakeBackend):
    """Its reference is not computed before what the search starts from is compiled."""

    compiled: str = ""

    def compile(self, options: FakeOptions) -> bytes:
        Path(self.compiled, str(options.micros)).touch()
        return super().compile(options)

    def reference(
        self, inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> ComputedElements | None:
        end = time.monotonic() + 600
        while len(os.listdir(self.compiled)) < 2:
            assert time.monotonic() < end
            time.sleep(0.01)
        return super().reference(inputs, outputs)


@pytest.mark.skipif(len(available_cores()) < 2, reason="there is one core")
def test_what_a_search_starts_from_is_compiled_while_the_reference_is_computed(
    tmp_path: Path,
) -> None:
    config = TunerConfig(seed=1, generations=1, population=4)
    search = Tuner(WaitingBackend(compiled=str(tmp_path)), FakeSpace(), config=config, timing=QUICK)
    found, events = events_of(search, [FakeOptions(100), FakeOptions(50)])
    done = [e.candidate.options.micros for e in events if isinstance(e, CandidateDone)]
    assert done[:2] == [100, 50]
    assert found.time is not None


def searched(cache: TuningCache) -> list[Record]:
    """What the cache was told during the search."""
    return [r for r in cache.history(KEY) if r.heat is None]


def test_tuner_finds_the_fastest_and_stores_everything(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "t.db")
    result, events = events_of(fake_tuner(cache=cache, generations=6), [FakeOptions(975)])
    assert result.options is not None
    # Where other programs run besides, times of the fastest are no longer told apart.
    assert result.options.micros <= 200
    assert result.time is not None
    assert result.time > 4e-5
    assert not result.interrupted
    assert len(searched(cache)) == len(result.history) == len({c.options for c in result.history})
    # The last word have the finals, in which the fastest and the first are timed in turns.
    finals = [r for r in cache.history(KEY) if r.heat is not None]
    assert {json.loads(r.options)["micros"] for r in finals} >= {975, result.options.micros}
    assert result.best is not None and result.best.outcome.message.startswith(IN_FINALS)
    best = cache.best(KEY)
    assert best is not None
    assert json.loads(best.options)["micros"] == result.options.micros
    assert {r.run for r in cache.history(KEY)} == {result.run}
    assert cache.list()[0].entry == "double"

    assert result.history[0].options == FakeOptions(975)
    assert result.history[0].generation == 0
    assert isinstance(events[0], GenerationStarted)
    assert events[0].candidates == 1
    assert events[-1] == Finished(result.decision, result.seconds, False)
    done = [e.candidate for e in events if isinstance(e, CandidateDone)]
    assert tuple(done) == result.history
    times = [e.time for e in events if isinstance(e, NewBest)]
    assert times == sorted(times, reverse=True)
    generations = [e.generation for e in events if isinstance(e, GenerationStarted)]
    assert generations == list(range(7))
    compiled = sum(isinstance(e, CandidateCompiled) for e in events)
    assert compiled == len(result.history)  # nothing here fails to compile
    heats = [e for e in events if isinstance(e, FinalsStarted)]
    raced = [e for e in events if isinstance(e, Raced)]
    assert len(heats) == len(raced) >= 1
    assert raced[-1].decision == result.decision
    assert {c.options.micros for c in raced[-1].candidates} >= {975, result.options.micros}
    assert all(c.outcome.message.startswith(IN_FINALS) for c in raced[-1].candidates)


def test_every_failure_gets_its_verdict_and_the_search_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    only_hangs_time_out(monkeypatch)
    tuner = fake_tuner(generations=1, population=2, run_timeout=0.5)
    # The wrong ones would be the fastest.
    start = [FakeOptions(200 if k == "right" else 5000 if k == "prints" else 1, k) for k in kinds]
    result, events = events_of(tuner, start)
    verdicts = {c.options.kind: c.outcome.verdict for c in result.history if c.generation == 0}
    assert verdicts == kinds
    compiled = [e for e in events if e == CandidateCompiled(0)]
    assert len(compiled) == len(kinds) - 3  # constraints, no compile, compiler crash
    messages = {c.options.kind: c.outcome.message for c in result.history if c.generation == 0}
    assert messages["constraints"] == "tile: it cannot be tiled"
    assert messages["compiler crash"] == "its process was killed by SIGSEGV"
    assert messages["segfault"] == "its process was killed by SIGSEGV"
    assert messages["hang"] == "it took more than 0.5 s"
    assert result.best is not None
    assert result.best.options.kind == "right"


def test_compiler_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    only_hangs_time_out(monkeypatch)
    tuner = fake_tuner(generations=1, population=2, compile_timeout=0.5)
    result = tuner.tune([FakeOptions(1, "compiler hang")])
    assert result.history[0].outcome.verdict is Verdict.TIMEOUT
    assert result.best is not None


@without_processes
def test_same_kernel_from_other_options_is_measured_once() -> None:
    tuner = fake_tuner(generations=1, population=2)
    result = tuner.tune([FakeOptions(100), FakeOptions(100)])
    first, second = (c for c in result.history if c.generation == 0)
    assert first.outcome == second.outcome


def test_the_start_is_measured_in_its_order() -> None:
    start = [FakeOptions(n) for n in (900, 100, 300, 200, 800, 400)]
    result = fake_tuner(generations=1, population=2, threads=2, delay=0.05).tune(start)
    assert [c.options for c in result.history if c.generation == 0] == start


@without_processes
def test_nothing_that_works_is_said_and_is_no_winner() -> None:
    result, events = events_of(fake_tuner("constraints", "wrong", population=6))
    assert result.best is None
    assert result.options is None
    assert result.time is None
    notes = [e.message for e in events if isinstance(e, Note)]
    assert notes
    assert notes[0].startswith("only 0 of 6 candidates work")
    assert "verdict" in notes[0]
    assert "for example" in notes[0]


@without_processes
def test_the_cache_ranks_as_the_finals_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The incumbent ties with a challenger that is a little faster, and stays the best."""

    def race(self: object, options: Sequence[FakeOptions]) -> list[Placed]:
        times = [1e-4 if o.micros == 75 else 0.995e-4 for o in options]
        return [(("here", (each,) * 3),) for each in times]

    monkeypatch.setattr("tcl.tuner.run.pipeline.CandidatePipeline.race", race)
    cache = TuningCache(tmp_path / "t.db")
    result = fake_tuner(cache=cache, generations=2).tune([FakeOptions(75)])
    assert result.options == FakeOptions(75)
    ranked = cache.top(KEY, 100)
    assert json.loads(ranked[0].options)["micros"] == 75
    assert [r.place for r in ranked[:6]] == [1, 2, 3, 4, 5, 6]
    assert ranked[1].time is not None and ranked[1].time < (ranked[0].time or 0)
    again = TuningCache(cache.path).best(KEY)
    assert again is not None and (again.heat, again.place) == (ranked[0].heat, 1)


@without_processes
def test_cached_results_open_the_next_search(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "t.db")
    cache.store(KEY, '{"kind":"right","micros":50}', Outcome(Verdict.CORRECT, (5e-5,)), run="old")
    cache.store(KEY, '{"kind":"right","micros":3}', Outcome(Verdict.CORRECT, (1e-6,)), run="old")
    cache.store(KEY, '{"who":"knows"}', Outcome(Verdict.CORRECT, (1e-7,)), run="old")
    result = fake_tuner(cache=cache, generations=1).tune()
    assert FakeOptions(50) in [c.options for c in result.history]
    assert FakeOptions(3) not in [c.options for c in result.history]  # not in this space
    without = fake_tuner(
        cache=cache, strategy="random", generations=1, cached_seeds=0, seed=2
    ).tune()
    assert FakeOptions(50) not in [c.options for c in without.history]


@without_processes
def test_results_for_near_sizes_open_a_search_too(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "t.db")
    sizes = [(ArrayLayout((n,), (4,), "float32"),) for n in (100, 120, 4000)]
    here, near, far = (replace(KEY, inputs=inputs) for inputs in sizes)
    for key, micros in ((far, 75), (near, 50)):
        options = json.dumps({"kind": "right", "micros": micros})
        cache.store(key, options, Outcome(Verdict.CORRECT, (1e-5,)), run="old")
    tuned = fake_tuner(cache=cache, key=here, generations=1, population=2, cached_seeds=1).tune()
    proposed = [c.options for c in tuned.history]
    assert FakeOptions(50) in proposed
    assert FakeOptions(75) not in proposed


@without_processes
def test_options_outside_of_the_space_are_measured_too() -> None:
    result = fake_tuner(generations=1).tune([FakeOptions(7)])
    assert result.history[0].options == FakeOptions(7)
    assert result.history[0].config is None
    assert result.options == FakeOptions(7)


@without_processes
def test_state_of_the_search_is_saved(tmp_path: Path) -> None:
    cache = TuningCache(tmp_path / "t.db")
    result = fake_tuner(cache=cache, generations=2, seed=None).tune()
    saved = cache.load_run(result.run)
    assert saved is not None
    settings, state = saved
    assert isinstance(settings["seed"], int)
    assert settings["population"] == 8
    assert state["generation"] == 3  # nothing is left to do
    assert state["owner"] is None
    assert [r.generation for r in cache.of_run(KEY, result.run)][:12] == [1] * 8 + [2] * 4


class FailingCache(TuningCache):
    """Cannot be written for a while."""

    failures = 3

    def add(self, key: CacheKey, records: Sequence[Record], *, entry: str = "") -> None:
        if self.failures:
            self.failures -= 1
            raise CacheError("the tuning cache is locked")
        super().add(key, records, entry=entry)


@without_processes
def test_cache_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    cache = FailingCache(tmp_path / "t.db")
    result, events = events_of(fake_tuner(cache=cache))
    notes = [e.message for e in events if isinstance(e, Note)]
    assert notes.count("the tuning cache is locked") == 1  # the machine may have been noisy besides
    assert len(searched(cache)) == len(result.history)
    assert result.unsaved == 0


@without_processes
def test_a_search_that_ends_by_an_exception_saves_what_it_can(tmp_path: Path) -> None:
    cache = FailingCache(tmp_path / "t.db")
    cache.failures = 1000
    done: list[Event[FakeOptions]] = []

    def report(event: Event[FakeOptions]) -> None:
        done.extend([event] if isinstance(event, CandidateDone) else [])
        if len(done) == 3:
            cache.failures = 0
            raise KeyError("of the user's own")

    with pytest.raises(KeyError, match="of the user's own"):
        fake_tuner(cache=cache).tune((), report)
    assert len(searched(cache)) == 3


class LockedCache(TuningCache):
    """Takes its time to fail."""

    tries = 0

    def add(self, key: CacheKey, records: Sequence[Record], *, entry: str = "") -> None:
        self.tries += 1
        time.sleep(0.5)
        raise CacheError("the tuning cache is locked")


@without_processes
def test_cache_that_stays_locked_does_not_hold_up_the_search(tmp_path: Path) -> None:
    cache = LockedCache(tmp_path / "t.db")
    result, _ = events_of(fake_tuner(cache=cache, generations=4))
    assert result.unsaved >= len(result.history) > 10
    assert cache.tries <= 1 + result.seconds / 2.0 + 1  # now and then, and at the end


def test_errors_of_the_reference_are_raised() -> None:
    for kind, error, message in (
        ("raises", IndexError, "index 12 is out of range"),
        ("segfault", TclError, "the reference kernel could not be run: .*SIGSEGV"),
    ):
        with pytest.raises(error, match=message):
            Tuner(FakeBackend(0.0, kind), FakeSpace()).tune()


def test_time_limit_ends_the_search() -> None:
    result, events = events_of(fake_tuner(delay=0.2, generations=1000, time_limit=2.0, threads=1))
    assert result.interrupted
    assert result.seconds >= 2.0
    assert Interrupted(FINISH, "time limit") in events
    assert result.best is not None


def test_a_limit_that_passes_at_once_leaves_the_first_that_works() -> None:
    start = [FakeOptions(500, "wrong"), FakeOptions(400), FakeOptions(300)]
    result, events = events_of(fake_tuner(generations=1000, time_limit=1e-6), start)
    assert [c.options for c in result.history] == start[:2]
    assert result.options == start[1]
    assert result.interrupted and Interrupted(FINISH, "time limit") in events


def test_a_limit_ends_a_search_in_which_nothing_works() -> None:
    start = [FakeOptions(500, "wrong"), FakeOptions(400, "wrong")]
    result, _ = events_of(fake_tuner(generations=1000, time_limit=1e-6), start)
    assert [c.options for c in result.history] == start
    assert result.interrupted and result.options is None


@pytest.mark.parametrize("kill", [False, True])
def test_stop_from_another_thread(kill: bool) -> None:
    """At once, though a candidate hangs; or when what is in flight has finished."""
    kinds = ("right", "hang") if kill else ("right",)
    tuner = fake_tuner(*kinds, delay=0.1, generations=1000, run_timeout=1000.0)
    start = [FakeOptions(500, kind) for kind in kinds]
    seen = threading.Event()
    outcome: list[TuningResult[FakeOptions]] = []

    def report(event: Event[FakeOptions]) -> None:
        if isinstance(event, CandidateDone):
            seen.set()

    # Not the main thread: no signals can be handled there, and none have to be.
    thread = threading.Thread(target=lambda: outcome.append(tuner.tune(start, report)))
    thread.start()
    assert seen.wait(600)
    tuner.stop(kill=kill)
    thread.join(600)
    assert outcome
    assert outcome[0].interrupted
    assert outcome[0].best is not None


def test_error_in_the_callback_ends_the_workers() -> None:
    def report(event: Event[FakeOptions]) -> None:
        if isinstance(event, CandidateDone):
            raise ZeroDivisionError

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError):
        fake_tuner().tune((), report)
    assert signal.getsignal(signal.SIGINT) is before


# Settings.


_REAL = {
    "mm": (
        "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
        {"A": (40, 33), "B": (33, 50)},
    ),
    "softmax": (
        """
        def softmax(float(N, D) I) -> (O, M, S) {
            M(n) max=! I(n, d)
            S(n) +=! exp(I(n, d) - M(n))
            O(n, d) = exp(I(n, d) - M(n)) / S(n)
        }
        """,
        {"I": (30, 70)},
    ),
    "add_to": (
        "def add_to(double(N, M) I) -> (O) { O(n) += I(n, m) }",
        {"I": (20, 90)},
    ),
    "halves": (
        "def halves(float16(N, M) I) -> (O) { O(m) +=! I(n, m) }",
        {"I": (100, 24)},
    ),
}


@pytest.mark.parametrize("name", _REAL)
def test_real_kernels_are_all_correct_and_get_faster(name: str, tmp_path: Path) -> None:
    source, shapes = _REAL[name]
    rng = np.random.default_rng(0)
    checked = check(source)[name]
    arrays = [
        rng.standard_normal(shapes[t.name]).astype(numpy_dtype(t.type)) for t in checked.inputs
    ]
    backend = CpuBackend.described(source, name, arrays).holding(arrays, str(tmp_path))
    tuner = Tuner(
        backend,
        MappingSpace(backend.program(), host_cpu()),
        # One with compilers on the core that measures, too, as by default.
        config=TunerConfig(seed=1, generations=2, population=5, threads=0 if name == "mm" else 1),
        cache=TuningCache(tmp_path / "t.db"),
        key=KEY,
        timing=QUICK,
    )
    result = tuner.tune([MappingOptions("naive")])
    messages = [(c.outcome.message, c.options) for c in result.history if c.time is None]
    assert not messages
    assert len(result.history) >= 8
    # By one measurement: readings of different moments differ on a busy machine.
    assert result.decision.speedup is not None
    assert result.decision.speedup >= 1.0
    best = TuningCache(tmp_path / "t.db").best(KEY)
    assert best is not None
    assert MappingOptions.from_json(best.options) == result.options


def test_both_styles_of_configuration_agree() -> None:
    settings: dict[str, Any] = {
        "generations": 5,
        "population": 30,
        "elites": 12,
        "crossover_rate": 70,
        "mutation_rate": 9,
        "selection": "roulette",
        "parents": 2,
        "threads": 3,
        "seed": 1,
        "time_limit": 60,
        "strategy": "random",
        "model": False,
    }
    fluent, direct = TunerConfig(), TunerConfig(**settings)
    for name, value in settings.items():
        fluent = getattr(fluent, name)(value)
    assert fluent.pop_size(30).number_elites(12) == direct
    assert fluent == direct
    assert hash(fluent) == hash(direct)
    assert fluent.settings.search.crossover == 0.7
    config = TunerConfig(generations=25).seed(3)
    assert repr(config) == "TunerConfig(generations=25, seed=3)" and eval(repr(config)) == config
    assert TunerConfig().elites(12).population(30) == TunerConfig().population(30).elites(12)
    assert TunerConfig().settings == TunerSettings()
    assert TunerConfig(population=6).settings.search.elites == 3


def _config(**settings: Any) -> TunerConfig:
    return TunerConfig(**settings)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: _config(generations=0), "generations must be a whole number from 1 to"),
        (lambda: _config(population=1), "population must be a whole number from 2 to"),
        (lambda: _config().crossover_rate(101), "crossover_rate .* from 0 to 100, not 101"),
        (lambda: _config().mutation_rate(-1), "mutation_rate must be"),
        (lambda: _config(threads=1.5), "threads must be a whole number .*, not 1.5"),
        (lambda: _config(threads=True), "threads must be .*, not True"),
        (lambda: _config(seed="1"), "seed must be a whole number or None, not '1'"),
        (lambda: _config(time_limit=0), "time_limit must be a number of seconds above 0"),
        (lambda: _config(time_limit=float("nan")), "time_limit must be"),
        (lambda: _config(compile_timeout=None), "compile_timeout must be"),
        (lambda: _config(strategy="annealing"), "strategy must be one of exhaustive, genetic"),
        (lambda: _config(selection="luck"), "selection must be rank or roulette, not 'luck'"),
        (lambda: _config(parents=4), "parents must be a whole number from 2 to 3, not 4"),
        (lambda: _config(pop=3), "there is no setting 'pop'; settings are generations"),
        (lambda: fake_tuner(population=8, elites=5), "elites must be at most half"),
    ],
)
def test_bad_settings_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(OptionsError, match=message):
        make()


def test_cores_are_split_between_compiling_and_measuring() -> None:
    assert split_cores([0, 1, 2, 3]) == ((0, 1, 2), (3,))
    assert split_cores([5]) == ((5,), (5,))
    assert split_cores([0, 1, 2, 3], 3) == ((0,), (1, 2, 3))
    assert split_cores([0, 1], 2) == ((0, 1), (0, 1))
    with pytest.raises(ArgumentError, match=r"3 threads need as many cores .*; there are 2"):
        split_cores([0, 1], 3)


def test_a_cache_needs_a_key(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a cache needs a key"):
        Tuner(FakeBackend(), FakeSpace(), cache=TuningCache(tmp_path / "t.db"))


class Picky(FakeSpace):
    """Says itself that no nest can have some options."""

    def from_options(self, options: FakeOptions) -> Config | None:
        if options.kind == "constraints":
            raise OptionsError("no nest can have this")
        return super().from_options(options)


@without_processes
def test_options_to_start_from_that_no_nest_can_have_are_refused_and_the_search_goes_on() -> None:
    config = TunerConfig(seed=1, generations=1, population=4)
    tuner = Tuner(FakeBackend(), Picky(), config=config, timing=QUICK)
    result = tuner.tune([FakeOptions(50, "constraints"), FakeOptions(300)])
    first = result.history[0]
    assert (first.config, first.outcome.verdict) == (None, Verdict.CONSTRAINTS)
    assert first.outcome.message == "tile: it cannot be tiled"
    assert result.decision.start is not None
    assert result.decision.start.options == FakeOptions(300)
    assert len(result.history) == 6 and result.options is not None
