"""How many candidates the tuner evaluates per second, and where the time goes.

    python -m benchmarks.throughput                      # a float32 product of about 0.2 ms
    python -m benchmarks.throughput --threads 2          # kernels on two cores, compiled in turns
    python -m benchmarks.throughput --generations 10 --seed 7 --out FILE

See ``benchmarks/README.md`` for what is counted and how.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.timed_backend import TimedBackend
from tcl.arrays.random_inputs import random_inputs
from tcl.backends.cpu_backend import CpuBackend
from tcl.codegen.options.options import MappingOptions
from tcl.common.scratch_folder import workspace
from tcl.executors.call_kernels import size
from tcl.grammar.check.definitions import check
from tcl.selection.best_options import DEFAULT, cache_key
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.run.events import CandidateDone, Event, FinalsStarted, GenerationStarted
from tcl.tuner.run.tuner import Tuner
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.workers.pool import WorkerPool

SOURCE = "def matmul(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
SIZE = 256
"""Rows and columns of the matrices: 34 million operations, 0.2 ms at 170 GFLOP/s."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Throughput:
    """One search."""

    threads: int
    seed: int
    best: float
    """Seconds per call of the winner."""
    verdicts: dict[str, int]
    search: float
    """Seconds from the first candidate's start to the last one's verdict."""
    whole: float
    """Seconds of ``tune``: with the reference before, and the finals after."""
    shares: dict[str, float]
    """Of ``search``, by what it is spent on. Processes work at the same time."""
    each: dict[str, float]
    """Milliseconds per candidate of the same."""

    @property
    def candidates(self) -> int:
        """With a verdict."""
        return sum(self.verdicts.values())


class _Clock:
    """Seconds by what they were spent on, while ``running``."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.running = False
        self._lock = threading.Lock()  # tasks end in threads of their pool

    def add(self, name: str, seconds: float) -> None:
        with self._lock:
            if self.running:
                self.seconds[name] += seconds


class _TimedCache(TuningCache):
    """A cache that notes how long its transactions take."""

    clock: _Clock

    def transaction(self, work: Callable[[Any], _T]) -> _T:
        begin = time.perf_counter()
        try:
            return super().transaction(work)
        finally:
            self.clock.add("cache", time.perf_counter() - begin)


class _Watch:
    """Follows a search: by its events, and by when tasks of its pools begin and end."""

    def __init__(self, clock: _Clock) -> None:
        self.clock = clock
        self.began = self.ended = 0.0
        self._idle_since = 0.0

    def event(self, event: Event[MappingOptions]) -> None:
        """Hear what the tuner reports."""
        now = time.perf_counter()
        if isinstance(event, GenerationStarted):
            if not self.began:
                self.began, self.clock.running = now, True
            else:
                self.clock.add("between", now - self._idle_since)
        elif isinstance(event, CandidateDone):
            self.ended = self._idle_since = now
        elif isinstance(event, FinalsStarted):
            self.clock.running = False

    def submit(
        self, original: Callable[..., Future[Any]], pool: WorkerPool, fn: Any, /, *args: Any
    ) -> Future[Any]:
        """Pass a task on and note how long it took. There is one at a time per process."""
        begin = time.perf_counter()
        future = original(pool, fn, *args)
        name: str = fn.__name__
        future.add_done_callback(lambda _: self.clock.add(name, time.perf_counter() - begin))
        return future


def measure(threads: int, extent: int, config: TunerConfig) -> Throughput:
    """Tune a product of this size once."""
    checked = check(SOURCE)["matmul"]
    inputs = random_inputs(checked, {"M": extent, "N": extent, "K": extent}, 0)
    clock = _Clock()
    watch = _Watch(clock)
    original = WorkerPool.submit
    with workspace() as folder:
        plain = CpuBackend.create(SOURCE, "matmul", inputs, folder, threads)
        backend = TimedBackend(plain)
        cache = _TimedCache(Path(folder) / "tuning.db")
        cache.clock = clock
        tuner: Tuner[MappingOptions] = Tuner(
            backend,
            MappingSpace(plain.program(), plain.device),
            config=config,
            cache=cache,
            key=cache_key(size(checked, inputs), inputs, threads),
            measure_cores=threads,
        )
        WorkerPool.submit = lambda pool, *a: watch.submit(original, pool, *a)  # type: ignore[method-assign,assignment]
        try:
            result = tuner.tune((DEFAULT,), watch.event)
        finally:
            WorkerPool.submit = original  # type: ignore[method-assign]
        search = watch.ended - watch.began
        seconds = _by_purpose(search, clock.seconds, backend)
    count = len(result.history)
    return Throughput(
        threads,
        config.settings.seed or 0,
        result.time or float("nan"),
        dict(Counter(c.outcome.verdict.value for c in result.history)),
        search,
        result.seconds,
        {name: s / search for name, s in seconds.items()},
        {name: 1e3 * s / count for name, s in seconds.items()},
    )


def _by_purpose(
    search: float, spent: Mapping[str, float], backend: TimedBackend
) -> dict[str, float]:
    """Seconds of a search by what they were spent on."""
    first, others = backend.sums("kernels.txt")
    (compiling,) = backend.sums("compiles.txt")
    return {
        "compiling": spent["compile_candidate"],
        "  processor time": compiling,
        "evaluating": spent["evaluate_candidate"],
        "  kernel, timed": others,
        "  kernel, first call": first,
        "  verifying and rest": spent["evaluate_candidate"] - first - others,
        "no evaluation": search - spent["evaluate_candidate"],
        "between generations": spent["between"],
        "cache": spent["cache"],
    }


def lines(found: Throughput) -> Iterator[str]:
    """What is printed about one search."""
    correct = found.verdicts.get("correct", 0)
    yield (
        f"{found.threads} thread(s), seed {found.seed}: {found.candidates} candidates in "
        f"{found.search:.1f} s, best {1e3 * found.best:.3f} ms"
    )
    yield (
        f"  {found.candidates / found.search:.1f} candidates per second "
        f"({correct / found.search:.1f} of them correct); {found.candidates / found.whole:.1f} "
        f"with the reference and the finals, {found.whole:.1f} s in all"
    )
    for name, share in found.shares.items():
        yield f"  {name:<24}{100 * share:6.1f} %{found.each[name]:9.2f} ms each"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--threads", type=int, default=1, help="of the kernels")
    parser.add_argument("--size", type=int, default=SIZE, help="rows and columns")
    parser.add_argument("--generations", type=int, help="default: the tuner's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=1, help="searches, each from the next seed")
    parser.add_argument("--out", type=Path, help="write everything here, as JSON")
    given = parser.parse_args()
    found = []
    for repeat in range(given.repeats):
        config = TunerConfig().seed(given.seed + repeat)
        if given.generations:
            config = config.generations(given.generations)
        found.append(measure(given.threads, given.size, config))
        print("\n".join(lines(found[-1])), flush=True)
    if given.out is not None:
        data = {
            "date": time.strftime("%Y-%m-%d"),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "size": given.size,
            "searches": [asdict(each) for each in found],
        }
        given.out.write_text(json.dumps(data) + "\n")


if __name__ == "__main__":
    main()
