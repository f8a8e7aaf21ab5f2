"""A run: every contender in a process of its own, one at work at a time, in interleaved rounds.
Before it, rows can be tuned."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import itertools
import math
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tcl.arrays.random_inputs import input_shape, random_inputs
from tcl.backends.targets import target
from tcl.bench.ceilings import Ceilings, Meter
from tcl.bench.contender import OURS, PEERS, Contender, Spec
from tcl.bench.lanes import Lane, Lanes, Say, prepare, started
from tcl.bench.report import Report
from tcl.bench.rows import Row
from tcl.bench.summary import Entry, Result
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.devices.cpu import host_cpu
from tcl.common.errors import ArgumentError
from tcl.executors.call_kernels import size
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.measure.cores import available_cores
from tcl.tuner.measure.placement import PLACEMENTS, aligned
from tcl.tuning import Tuner

_GENERATIONS = 1000


def tune(
    rows: Sequence[Row],
    seconds: float,
    cache: Path,
    seed: int,
    say: Callable[[str], object],
    threads: int = 1,
    device: str = "cpu",
) -> dict[str, str]:
    """Tune each row for about ``seconds``; rows without a result, and why. ``device`` is as for
    ``Tuner``.

    What is found goes to ``cache``, from which runs load it; what is there already is where the
    search begins. Ctrl+C ends one row's search early and is then raised as ``KeyboardInterrupt``.
    """
    failed: dict[str, str] = {}
    for row in rows:
        say(f"tuning {row.name} for {seconds:.0f} s, {threads} thread{'s' * (threads > 1)}")
        config = TunerConfig(generations=_GENERATIONS, time_limit=seconds, seed=seed)
        inputs = random_inputs(row.checked, row.values, seed)
        tuner = Tuner(row.text, cache, threads=threads, device=device)
        result = tuner.tune(row.entry, inputs, None, config, progress=False)
        if result.interrupted and result.seconds < 0.9 * seconds:
            raise KeyboardInterrupt
        if result.options is None:
            messages = dict.fromkeys(c.outcome.message for c in result.history)
            reason = "; ".join(list(messages)[:2]) or "no candidate was finished"
            failed[row.name] = f"{len(result.history)} candidates, none worked: {reason}"
    return failed


def tuned_options(
    row: Row, cache: Path, threads: int = 1, device: str = "cpu", past: int = 0
) -> str:
    """The best options for a row that a cache file holds, for arrays that begin ``past`` bytes
    after a cache line, as JSON; empty if it holds none.

    Looked up here and not where kernels run: the key holds the number of cores, and the processes
    of contenders are pinned to some.
    """
    if not cache.exists():
        return ""
    lying = tuple(
        aligned(input_shape(t, row.values), numpy_dtype(t.type), past) for t in row.checked.inputs
    )
    sized = size(row.checked, lying)
    record = TuningCache(cache).best(target(device, threads).query(sized, lying).key)
    return "" if record is None else record.options


_PAUSE = 0.25
"""Seconds between contenders with several threads: idle workers spin for a while, those of the
Intel OpenMP runtime 0.2 s (its KMP_BLOCKTIME), and would take a core from the next contender."""


@dataclass(frozen=True, slots=True)
class BenchSettings:
    threads: tuple[int, ...] = (1,)
    placements: tuple[str, ...] = ("aligned",)
    """Where arrays begin: names in ``tcl.tuner.measure.placement.PLACEMENTS``."""
    runs: int = 1
    """How often everything is measured, by new processes each time: what they get of the machine's
    memory differs, and with it times, by more than the samples of one run do."""
    cold: bool = False
    """Empty the caches before each call, and time single calls; else repeat calls."""
    rounds: int = 9
    sample: float = 0.02
    """Seconds that a sample takes at least; a long call is a sample of its own."""
    budget: float = 10.0
    """Seconds after which a contender is measured no more on a row (3 samples it always gets,
    unless one call alone takes as long)."""
    seed: int = 0

    def as_json(self) -> dict[str, Any]:
        """As a report has them."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @staticmethod
    def quick(**changes: Any) -> BenchSettings:
        """Settings for a first impression."""
        return replace(BenchSettings(rounds=5, sample=0.005, budget=2.0), **changes)


@dataclass(slots=True)
class _Found:
    results: list[Result] = field(default_factory=list)
    ceilings: dict[int, list[Ceilings]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def report(self, settings: BenchSettings, cores: Sequence[int], interrupted: bool) -> Report:
        measured = {result.threads for result in self.results}
        return Report(
            datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            _machine(cores),
            {"python": platform.python_version(), **self.versions},
            settings.as_json(),
            {n: tuple(samples) for n, samples in self.ceilings.items() if n in measured},
            tuple(self.results),
            self.absent,
            self.left_out,
            interrupted,
        )


def run(
    rows: Sequence[Row],
    settings: BenchSettings,
    say: Say,
    *,
    peers: Sequence[Spec] = PEERS,
    ours: Sequence[Spec] = OURS,
    cache: Path | None = None,
    finished: Callable[[Report], object] = lambda report: None,
    before: Report | None = None,
) -> Report:
    """Measure ``rows``. ``say`` gets sentences about progress, ``finished`` after every row the
    report so far; tuned options come from ``cache``, without which there are none. What is in
    ``before`` is not measured again, and is in the report, too.

    Raises ``ArgumentError`` for more threads than there are cores, and for a report ``before`` of
    another machine, other settings or other versions of what is measured.
    """
    available = available_cores()
    for threads in settings.threads:
        if not 1 <= threads <= len(available):
            raise ArgumentError(f"{threads} threads need as many cores; there are {len(available)}")
    found = _Found()
    if before is not None:
        found = _continued(before, settings, available)
    done = {(r.run, r.threads, r.name) for r in found.results}
    for number, threads in itertools.product(range(1, settings.runs + 1), settings.threads):
        missing = [row for row in rows if (number, threads, row.name) not in done]
        if not missing:
            continue
        cores = available[:threads]
        samples = found.ceilings.setdefault(threads, [])
        with (
            started(
                (*ours, *peers),
                partial(Contender, threads=threads, cores=cores),
                found.absent,
                say,
            ) as running,
            contextlib.closing(Meter(cores)) as meter,
        ):
            lanes = _CpuLanes(running, settings, say)
            for contender in running:
                _check_versions(found.versions, contender.versions)
                found.versions.update(contender.versions)
            for row in missing:
                samples += [meter.sample() for _ in range(3)]
                try:
                    found.results += [*_row(row, lanes, threads, number, cache)]
                except ArgumentError as error:  # a type that is not there, or too little memory
                    found.left_out[row.name] = str(error)
                    say(f"without {row.name}: {error}")
                    continue
                finished(found.report(settings, available, interrupted=True))
            samples += [meter.sample() for _ in range(3)]
    return found.report(settings, available, interrupted=False)


def _continued(before: Report, settings: BenchSettings, cores: Sequence[int]) -> _Found:
    machine = _machine(cores)
    for name in ("cpu", "features", "cores"):
        had = before.machine.get(name)
        if had != machine[name]:
            raise ArgumentError(f"the existing report is from another machine: {name} is not {had}")
    for name, value in settings.as_json().items():
        had = before.settings.get(name)
        if name not in ("threads", "runs") and had != value:
            raise ArgumentError(
                f"the existing report has other settings: {name} {had}, not {value}"
            )
    _check_versions(before.versions, {"python": platform.python_version()})
    return _Found(
        list(before.results),
        {threads: list(samples) for threads, samples in before.ceilings.items()},
        dict(before.versions),
        dict(before.absent),
    )


def _check_versions(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """A report has one version of everything."""
    for name, version in now.items():
        had = before.get(name, version)
        if had != version:
            raise ArgumentError(f"the existing report was made with {name} {had}, not {version}")


class _CpuLanes(Lanes):
    """Calls, timed by the contender itself."""

    def __init__(self, running: Sequence[Contender], settings: BenchSettings, say: Say) -> None:
        super().__init__(running, say)
        self.settings = settings
        self.rounds, self.seed = settings.rounds, settings.seed

    def waits(self, lane: Lane, entry: Entry, spent: float) -> bool:
        """Until the budget is spent, if there is something to show."""
        enough = 3 if lane.seconds < 1 else 1
        return spent <= self.settings.budget or len(entry.samples) < enough

    def sample(self, lane: Lane) -> dict[str, Any]:
        """One sample; then a pause, if there are threads to fall asleep."""
        calls = max(1, math.ceil(self.settings.sample / max(lane.seconds, 1e-9)))
        found = lane.contender.request(
            60 + 20 * lane.seconds * calls,
            do="sample",
            form=lane.form,
            calls=calls,
            cold=self.settings.cold,
        )
        if lane.contender.threads > 1:
            time.sleep(_PAUSE)
        return found


def _row(
    row: Row, lanes: _CpuLanes, threads: int, number: int, cache: Path | None
) -> Iterator[Result]:
    """What all contenders do with a row, on each placement."""
    settings = lanes.settings
    ready = prepare(row, settings.seed)
    for placement in settings.placements:
        past = PLACEMENTS[placement].past
        tuned = "" if cache is None else tuned_options(row, cache, threads, past=past)
        placed = replace(ready, task=replace(ready.task, tuned=tuned, past=past))
        where = f"{row.name}, {placement}" if len(settings.placements) > 1 else row.name
        entries, facts = lanes.measure(where, placed)
        entries = {n: replace(e, threads=e.threads or threads) for n, e in entries.items()}
        result = as_result(row, threads, entries, facts)
        yield replace(result, placement=placement, run=number)


def as_result(
    row: Row, threads: int, entries: Mapping[str, Entry], facts: Mapping[str, Any]
) -> Result:
    """A row with what was measured of it."""
    cost = row.cost()
    return Result(
        name=row.name,
        kind=row.kind,
        file=row.file,
        entry=row.entry,
        sizes=row.values,
        threads=threads,
        flops=cost.operations,
        read=cost.read,
        written=cost.written,
        entries=entries,
        facts=facts,
        single=cost.single,
        products=dict(cost.products),
    )


def _machine(cores: Sequence[int]) -> dict[str, Any]:
    device = host_cpu()
    return {
        "cpu": device_identity(device),
        "llvm_name": device.name,
        "features": device.features,
        "vector_bits": device.vector_bits,
        "cores": list(cores),
        "l1_bytes": device.l1_bytes,
        "l2_bytes": device.l2_bytes,
        "l3_bytes": device.l3_bytes,
        "system": platform.platform(),
        "llvmlite": importlib.metadata.version("llvmlite"),
    }
