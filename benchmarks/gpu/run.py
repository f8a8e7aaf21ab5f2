"""A run: ceilings, then row after row, until all are measured or the time is up."""

from __future__ import annotations

import contextlib
import datetime
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.gpu.child import DeviceSession
from benchmarks.gpu.counted import counts_of
from benchmarks.gpu.report import (
    THREADS,
    TORCH,
    GpuEntry,
    GpuReport,
    Measured,
    best_rates,
    ceilings,
)
from tcl.bench.contender import Contender, ContenderError, Spec
from tcl.bench.lanes import ExpectedResults, Lane, Lanes, Prepared, Say, prepare, started
from tcl.bench.rows import Row
from tcl.bench.run import as_result, tune, tuned_options
from tcl.bench.summary import Entry
from tcl.bench.task import OURS, TUNED
from tcl.codegen.counters.prediction import predict
from tcl.codegen.devices.gpu import GpuProfile, find, known
from tcl.common.dataclass import dataclass

_AHEAD = 2
"""Rows that are prepared beside the one at work: their arrays take space."""


class Preparation:
    """Rows that are being prepared, the next few at a time."""

    def __init__(self, rows: Sequence[Row], seed: int, processes: int = 2) -> None:
        self._rows = list(rows)
        self._seed = seed
        self._started: dict[int, Future[Prepared]] = {}
        # Not forked: a copy of a process with a CUDA context or threads is of no use.
        self._pool = ProcessPoolExecutor(processes, get_context("spawn"))

    def take(self, position: int) -> Prepared:
        """A row, once, when it is ready; raises what went wrong. The next ones are started."""
        for later in range(position, min(position + 1 + _AHEAD, len(self._rows))):
            if later not in self._started:
                self._started[later] = self._pool.submit(prepare, self._rows[later], self._seed)
        return self._started.pop(position).result()

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)


_LEAST = 20.0
"""Seconds that a request gets even when the time is up."""
_FIRST = 20.0
"""Seconds that a row is expected to take before any was measured."""


class Budget:
    """Seconds of a whole run. A row is begun if the slowest of the last few would still fit."""

    def __init__(
        self,
        seconds: float | None,
        reserve: float = 20.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``reserve`` is kept for what comes after the last row; None: as long as it takes."""
        self._now = now
        self._begin = now()
        self._end = None if seconds is None else self._begin + seconds - reserve
        self._last: list[float] = []

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return self._now() - self._begin

    @property
    def left(self) -> float:
        """Seconds that may still be used."""
        return float("inf") if self._end is None else max(0.0, self._end - self._now())

    def took(self, seconds: float) -> None:
        """Note how long a row took."""
        self._last = [*self._last[-2:], seconds]

    def fits(self) -> bool:
        """Whether there is time for another row."""
        return self.left >= max(self._last, default=_FIRST)

    def within(self, seconds: float) -> float:
        """A time limit for one request: this, or less if less is left, within reason: what was
        begun should end well."""
        return min(seconds, max(_LEAST, self.left))


_PEERS = "benchmarks.gpu.peers"
_PATIENCE = 180.0
OWN = tuple(Spec(name, f"{_PEERS}.ours", patience=_PATIENCE) for name in OURS)
PEERS = (
    Spec(TORCH, f"{_PEERS}.torch_eager", "torch", _PATIENCE),
    Spec("torch.compile", f"{_PEERS}.torch_compiled", "torch", 390.0),  # it tries many kernels
    Spec("CuPy", f"{_PEERS}.cupy_peer", patience=_PATIENCE),
    Spec("Triton", f"{_PEERS}.triton_peer", "triton", _PATIENCE),
)
_PROBING = 120.0
_BURST = 5
"""Samples that a contender gives in its turn."""
_LENIENCE = 64
"""What explains eight times the error: it grows with the square root of the depth."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to measure."""

    device: str = "cuda"
    """``cpu`` in a rehearsal."""
    quick: bool = False
    budget: float | None = None
    """Seconds of the whole run."""
    tune: float = 0.0
    """Seconds per row to search for options before it is measured."""
    seed: int = 0


class GpuLanes(Lanes):
    """Replays, until each contender has given enough of them."""

    rounds = 12

    def __init__(
        self, running: Sequence[Contender], seed: int, budget: Budget, highest: int | None, say: Say
    ) -> None:
        """``highest``: the highest clock of the device, in MHz."""
        super().__init__(running, say)
        self.seed = seed
        self._budget = budget
        self._highest = highest

    def waits(self, lane: Lane, entry: Entry, spent: float) -> bool:
        """Until there are enough."""
        return isinstance(entry, GpuEntry) and not entry.enough

    def sample(self, lane: Lane) -> dict[str, Any]:
        """A burst of them."""
        assert isinstance(lane.entry, GpuEntry)
        patience = self.patience(60 + 2 * _BURST * lane.seconds * lane.entry.launches)
        return lane.contender.request(patience, do="sample", form=lane.form, count=_BURST)

    def entry(self, form: str, **known: Any) -> GpuEntry:
        """What is known of a form that has no samples yet."""
        given = {"threads": THREADS, "samples": (), "highest_mhz": self._highest, **known}
        return GpuEntry(form, **given)

    def patience(self, seconds: float) -> float:
        """As long as the budget lasts."""
        return self._budget.within(seconds)

    def wanted(self, contender: Contender, expected: ExpectedResults) -> ExpectedResults:
        """Of peers, who may multiply less exactly than term by term (Winograd's convolutions):
        eight times the rounding. With tf32 they would still be found out."""
        if contender.spec.name in OURS:
            return expected
        return replace(expected, depths=tuple(_LENIENCE * depth for depth in expected.depths))


def run(
    rows: Sequence[Row],
    settings: Settings,
    device: Mapping[str, Any],
    say: Say,
    *,
    specs: Sequence[Spec] = (*OWN, *PEERS),
    cache: Path | None = None,
    finished: Callable[[GpuReport], object] = lambda report: None,
) -> GpuReport:
    """Measure ``rows``. ``say`` gets sentences about progress, ``finished`` the report so far after
    every row; ``cache`` is where tuned options go."""
    budget = Budget(settings.budget)
    date = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    about: dict[str, Any] = {"device": settings.device, "quick": settings.quick}
    about |= {name: device[name] for name in ("l2_bytes", "bus")}
    absent: dict[str, str] = {}
    tunes = settings.tune > 0 or (cache is not None and cache.exists())
    with contextlib.ExitStack() as stack:
        make = partial(Contender, threads=THREADS, cores=(), session=DeviceSession, **about)
        specs = [spec for spec in specs if spec.name != TUNED or tunes]
        running = stack.enter_context(started(specs, make, absent, say))
        versions = {"python": platform.python_version()}
        for contender in running:
            versions.update(contender.versions)
        say("ceilings")
        probes, latencies = _limits(running, absent, budget)
        report = GpuReport(
            date,
            device,
            versions,
            asdict(settings),
            {THREADS: (ceilings(best_rates(probes)),)},
            (),
            absent,
            probes=probes,
            latencies=latencies,
        )
        finished(report)
        preparation = Preparation(rows, settings.seed)
        stack.callback(preparation.close)
        lanes = GpuLanes(running, settings.seed, budget, device.get("highest_mhz"), say)
        for position, row in enumerate(rows):
            if not budget.fits():
                left_out = {r.name: "the time was up" for r in rows[position:]}
                report = replace(report, left_out={**report.left_out, **left_out})
                break
            begin = time.monotonic()
            tuned = partial(options_for, row, settings, cache)
            take = partial(preparation.take, position)
            report = _added(report, row, take, tuned, lanes, profile_of(device))
            budget.took(time.monotonic() - begin)
            finished(report)
    finished(report)
    return report


def profile_of(device: Mapping[str, Any]) -> GpuProfile | None:
    """What is known of a device that is described so; None if nothing is."""
    if "profile" in device:
        return find(device["profile"])
    if "capability" not in device:
        return None
    return known(str(device["name"]), f"sm_{device['capability']}", device["multiprocessors"])


def _added(
    report: GpuReport,
    row: Row,
    take: Callable[[], Any],
    tuned: Callable[[], str],
    lanes: GpuLanes,
    profile: GpuProfile | None,
) -> GpuReport:
    """The report with a row more, or with the reason why it is not there: others are worth as
    much."""
    lanes.say(f"{row.name}: inputs and right results")
    what = "its inputs cannot be made"
    try:
        ready = take()
        what = "it cannot be measured"
        ready = replace(ready, task=replace(ready.task, tuned=tuned()))
        entries, facts = lanes.measure(row.name, ready, moved=row.cost().bytes_moved)
        if profile is not None:
            seconds = sum(predict(c).seconds for c in counts_of(row, profile))
            facts = {**facts, "predicted_seconds": seconds}
    except Exception as error:  # no memory, no space, or what nobody thought of
        reason = f"{what}: {type(error).__name__}: {str(error)[:300]}"
        return replace(report, left_out={**report.left_out, row.name: reason})
    return replace(report, results=(*report.results, as_result(row, THREADS, entries, facts)))


def options_for(row: Row, settings: Settings, cache: Path | None) -> str:
    """The best options that a cache file has for a row, as JSON, or nothing; before, a search adds
    to it, if one is asked for."""
    if cache is None:
        return ""
    device = "cpu" if settings.device == "cpu" else "cuda:0"  # the only one that is to be seen
    if settings.tune:
        tune([row], settings.tune, cache, settings.seed, lambda text: None, device=device)
    return tuned_options(row, cache, device=device)


def _limits(
    running: Sequence[Contender], absent: dict[str, str], budget: Budget
) -> tuple[tuple[Measured, ...], dict[str, list[float]]]:
    """What the contenders find out of the device."""
    found: dict[str, list[Any]] = {"probes": [], "latencies": []}
    for contender in running:
        name = contender.spec.name
        for what, all_ in found.items():
            if name == TUNED:  # it would find what the default does
                continue
            try:
                if not contender.alive:
                    contender.start()
                all_.append(contender.request(budget.within(_PROBING), do=what)[what])
            except ContenderError as error:
                share = "ceilings" if what == "probes" else what
                absent[f"{name}'s share of the {share}"] = str(error)
    probes = tuple(Measured(**probe) for each in found["probes"] for probe in each)
    return probes, {name: samples for each in found["latencies"] for name, samples in each.items()}
