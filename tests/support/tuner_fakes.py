"""A backend that stands for a compiler, with candidates that fail in every way there is."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tcl.codegen.common.rounding import UNKNOWN, Rounding
from tcl.codegen.options.knobs import Knob
from tcl.common.errors import CompileError, OptionsError
from tcl.tuner.cache.tuning_cache import CacheKey, TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.measure import evaluate
from tcl.tuner.measure.backend import CompiledKernel, Problem
from tcl.tuner.measure.harness import Bench, Run, by_clock
from tcl.tuner.measure.timing import MeasureSettings, Placed
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.run import brief, pipeline, workplace
from tcl.tuner.run import tuner as tuner_module
from tcl.tuner.run.checkpoint import SavedSearch
from tcl.tuner.run.events import Event
from tcl.tuner.run.result import TuningResult
from tcl.tuner.run.tuner import Tuner
from tcl.tuner.space.search_space import Config, SearchSpace
from tcl.tuner.strategies.screened import NamedPrior
from tcl.workers import pool

if TYPE_CHECKING:  # processes of searches import this file, and have no need of it
    import pytest

    from tcl.codegen.reference import ComputedElements

Array = np.ndarray[Any, Any]
HERE = Path(__file__).resolve().parent
BEGAN = "FAKE_TUNER_BEGAN"
"""Names a file, if it is set: it is there as soon as something hangs."""
QUICK = MeasureSettings(sample=1e-4, budget=5e-3)


@dataclass(frozen=True, slots=True)
class FakeOptions:
    """Microseconds that the kernel takes, and how it behaves."""

    micros: int
    kind: str = "right"


class SimulatedBench(Bench):
    """The host's memory, and a clock of each process on which time passes in fake kernels alone:
    what else the machine does changes none of their times."""

    now = 0.0

    def seconds(self, run: Run, calls: int) -> float:
        """As a ``Timer``; kernels that move no clock take 0.1 ms."""
        return by_clock(lambda: SimulatedBench.now)(run, calls) or 1e-4


@dataclass(frozen=True)
class FakeKernel:
    """Doubles an array, and moves the simulated clock."""

    options: FakeOptions

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        (source,), (target,) = inputs, outputs
        match self.options.kind:
            case "raises":
                raise RuntimeError("the kernel\nraised")
            case "segfault":
                ctypes.string_at(0)
            case "hang":
                _hang()
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
        SimulatedBench.now += self.options.micros * 1e-6


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

    def load(self, code: bytes) -> CompiledKernel:
        return FakeKernel(FakeOptions(*json.loads(code)))

    def problem(self) -> Problem:
        source = np.arange(1, 101, dtype=np.float32)
        target, bench = np.empty(100, np.float32), SimulatedBench()
        return Problem((source,), (target,), ("O",), (False,), (1,), bench)

    def portable(self) -> FakeBackend:
        return self

    def reference(
        self, inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> ComputedElements | None:
        match self.reference_kind:
            case "raises":
                raise IndexError("index 12 is out of range for dimension 0 of tensor LUT")
            case "segfault":
                ctypes.string_at(0)
            case "hang":
                _hang()
        outputs[0][:] = inputs[0] * 2
        return None

    def roundings(self, inputs: Sequence[Array], *, briefly: bool) -> Sequence[Rounding]:
        return (UNKNOWN,)

    def runner(self) -> FakeBackend:
        return self

    def brief_reference(
        self, inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> ComputedElements | None:
        """None: it is only computed whole."""
        return None


class FakeSpace:
    """``micros`` is the better the smaller, and ``kind`` may be fatal."""

    def __init__(
        self,
        *kinds: str,
        micros: Sequence[int] = tuple(range(50, 1000, 25)),
        promising: Sequence[int] = (),
    ) -> None:
        kinds = kinds or ("right",)
        self._promising = promising
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

    def promising(self, most: int) -> Iterator[Config]:
        return ((micros, "right") for micros in self._promising[:most])

    def to_json(self, options: FakeOptions) -> str:
        return json.dumps({"kind": options.kind, "micros": options.micros})

    def from_json(self, text: str) -> FakeOptions:
        try:
            return FakeOptions(**json.loads(text))
        except (TypeError, ValueError):
            raise OptionsError("these are no options") from None


def as_recorded(code: bytes, best: float | None, *known: object) -> Outcome:
    """An evaluation that finds what it always finds, in place of ``evaluate_candidate``."""
    micros, kind = json.loads(code)
    if kind != "right":
        return Outcome(Verdict.RUNTIME, message=kind)
    return Outcome(Verdict.CORRECT, tuple(1e-6 * (micros + jitter) for jitter in (0.3, 0.1, 0.2)))


def race_recorded(codes: Sequence[bytes], *rules: object) -> list[Placed]:
    """Finals on a machine that is half as fast then, in place of ``race_candidates``."""
    return [(("anywhere", (2e-6 * json.loads(code)[0],) * 3),) for code in codes]


KEY = CacheKey("def double", "fake", (), "this machine", "1")


def fake_tuner(
    *kinds: str,
    cache: TuningCache | None = None,
    key: CacheKey = KEY,
    delay: float = 0.0,
    prior: NamedPrior | None = None,
    **settings: Any,
) -> Tuner[FakeOptions]:
    values = {"seed": 1, "generations": 2, "population": 8, "compile_timeout": 20.0, **settings}
    return Tuner(
        FakeBackend(delay),
        FakeSpace(*kinds),
        config=TunerConfig(**values),
        cache=cache,
        key=key if cache is not None else None,
        entry="double",
        timing=QUICK,
        prior=prior,
    )


def _hang() -> None:
    if BEGAN in os.environ:
        Path(os.environ[BEGAN]).touch()
    # As machine code that does not look for what would end it.
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    time.sleep(1000)


def only_hangs_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates that hang are ended when their time is over, all others take as long as they take
    on a machine that has other things to do."""
    call = pool._WorkerProcess.call

    def patient(
        self: Any, message: bytes, timeout: float | None = None, memory: int | None = None
    ) -> tuple[bool, Any]:
        hangs = re.search(rb"hang(?!es)", message)
        return call(self, message, timeout if hangs else None, memory)

    monkeypatch.setattr(pool._WorkerProcess, "call", patient)


def until_it_hangs(began: Path, patience: float = 600.0) -> None:
    """Wait for the file that ``BEGAN`` names."""
    deadline = time.monotonic() + patience
    while not began.exists():
        assert time.monotonic() < deadline, "nothing hangs"
        time.sleep(0.02)


def gone(pid: int, patience: float = 600.0) -> bool:
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


def started(script: str, *arguments: str, stdin: int | None = None) -> subprocess.Popen[str]:
    """A Python process of its own, in its own group, that can import this file."""
    path = [str(HERE), *(p or os.getcwd() for p in sys.path)]
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        start_new_session=True,
    )


def events_of(
    tuner: Tuner[FakeOptions],
    start: Sequence[FakeOptions] = (),
    resume: SavedSearch | None = None,
) -> tuple[TuningResult[FakeOptions], list[Event[FakeOptions]]]:
    events: list[Event[FakeOptions]] = []
    return tuner.tune(start, events.append, resume), events


class InThreads(ThreadPoolExecutor):
    """In place of ``WorkerPool``: a thread of this process, for searches that are not about
    processes. A task that runs as it is killed comes to its end. Candidates are timed briefly."""

    def __init__(
        self,
        workers: int,
        *,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        **limits: object,
    ) -> None:
        brief: tuple[Any, ...] = tuple(
            QUICK if isinstance(x, MeasureSettings) else x for x in initargs
        )
        super().__init__(workers, initializer=initializer, initargs=brief)
        self.workers = workers

    def limit(self, workers: int, timeout: float | None, memory: int | None) -> None:
        """There is none but of threads."""
        self.workers = self._max_workers = workers

    def initialise(self, initializer: Callable[..., object], initargs: object) -> None:
        """No other thread starts."""

    def kill(self) -> None:
        """As that of the pool."""
        self.shutdown(wait=False, cancel_futures=True)


def in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches begin no processes, and time candidates no longer than it takes to rank them."""
    for module in (brief, tuner_module, workplace):
        monkeypatch.setattr(module, "WorkerPool", InThreads)
    # A thread cannot end its process, and begin in a fresh one.
    monkeypatch.setattr(pipeline, "race_candidates", _race_anywhere)


def _race_anywhere(codes: Sequence[bytes], known: object, *rules: Any) -> list[Placed | Outcome]:
    return evaluate.race_candidates(codes, None, rounds=5, budget=0.05)
