"""A run: ceilings, then row after row, until all are measured or the time is up."""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.gpu.budget import Budget
from benchmarks.gpu.ceilings import Measured
from benchmarks.gpu.lanes import OURS, ask, measure
from benchmarks.gpu.prepared import Preparation, scratch
from benchmarks.gpu.report import COMPILED, TORCH, Report, Result
from benchmarks.gpu.rows import GpuRow
from benchmarks.gpu.tuning import options_for
from tcl.bench.contender import Contender, ContenderError, Spec

_PEERS = "benchmarks.gpu.peers"
SPECS = (
    Spec(OURS, f"{_PEERS}.ours_peer"),
    Spec(TORCH, f"{_PEERS}.torch_eager", "torch"),
    Spec(COMPILED, f"{_PEERS}.torch_compiled", "torch"),
    Spec("CuPy", f"{_PEERS}.cupy_peer"),
    Spec("Triton", f"{_PEERS}.triton_peer", "triton"),
)
"""Ours, then the peers."""
_THREADS = 4
"""Of the host, for what libraries do there."""
_PROBING = 120.0

Say: TypeAlias = Callable[[str], object]


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


def run(
    rows: Sequence[GpuRow],
    settings: Settings,
    device: Mapping[str, Any],
    say: Say,
    *,
    specs: Sequence[Spec] = SPECS,
    cache: Path | None = None,
    finished: Callable[[Report], object] = lambda report: None,
) -> Report:
    """Measure ``rows``. ``say`` gets sentences about progress, ``finished`` the report so far after
    every row; ``cache`` is where tuned options go."""
    budget = Budget(settings.budget)
    date = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    versions = {"python": platform.python_version()}
    absent: dict[str, str] = {}
    with scratch() as name, _contenders(specs, settings, device, Path(name), absent, say) as all_:
        for contender in all_:
            versions.update(contender.versions)
        say("ceilings")
        probes, latencies = _limits(all_, absent, budget)
        report = Report(date, device, versions, asdict(settings), probes, latencies, (), {}, absent)
        finished(report)
        preparation = Preparation(rows, Path(name), settings.seed)
        runner = _Runner(settings, device, all_, preparation, budget, say, cache)
        try:
            for position, row in enumerate(rows):
                if not budget.fits():
                    skipped = {r.name: "the time was up" for r in rows[position:]}
                    report = replace(report, skipped={**report.skipped, **skipped})
                    break
                report = runner.add(report, row, position)
                finished(report)
        finally:
            preparation.close()
    finished(report)
    return report


@dataclass(frozen=True, slots=True)
class _Runner:
    """What all rows have in common."""

    settings: Settings
    device: Mapping[str, Any]
    contenders: Sequence[Contender]
    preparation: Preparation
    budget: Budget
    say: Say
    cache: Path | None

    def add(self, report: Report, row: GpuRow, position: int) -> Report:
        """The report with a row more."""
        begin = time.monotonic()
        self.say(f"{row.name}: inputs and right results")
        try:
            ready = self.preparation.take(position)
        except Exception as error:  # no memory or no space; others may do
            return _without(report, row, "its inputs cannot be made", error)
        try:
            ready = replace(ready, task=replace(ready.task, tuned=self._tuned(row)))
            entries, facts = measure(
                row,
                ready,
                self.contenders,
                self.budget,
                self.settings.seed,
                self.device.get("highest_mhz"),
                self.say,
            )
        except Exception as error:  # nobody thought of it; the other rows are worth as much
            return _without(report, row, "it cannot be measured", error)
        finally:
            self.preparation.done(position)
            wall = time.monotonic() - begin
            self.budget.took(wall)
        cost = row.cost()
        result = Result(
            row.name,
            row.kind,
            row.file,
            row.entry,
            row.type,
            row.values,
            row.suite,
            cost.operations,
            cost.read,
            cost.written,
            entries,
            facts,
            wall,
        )
        return replace(report, results=(*report.results, result))

    def _tuned(self, row: GpuRow) -> str:
        """Options from the cache, and from a search before, if one is asked for."""
        settings = self.settings
        if self.cache is None:
            return ""
        if settings.tune:
            self.say(f"{row.name}: tuning")
        return options_for(row, settings.tune, self.cache, settings.seed, settings.device)


def _without(report: Report, row: GpuRow, what: str, error: Exception) -> Report:
    """The report without a row, and why."""
    reason = f"{what}: {type(error).__name__}: {str(error)[:300]}"
    return replace(report, skipped={**report.skipped, row.name: reason})


@contextlib.contextmanager
def _contenders(
    specs: Sequence[Spec],
    settings: Settings,
    device: Mapping[str, Any],
    folder: Path,
    absent: dict[str, str],
    say: Say,
) -> Iterator[list[Contender]]:
    """The contenders that could be started. All end with the block."""
    running: list[Contender] = []
    about = {
        "device": settings.device,
        "quick": settings.quick,
        "l2_bytes": device["l2_bytes"],
        "bus": device["bus"],
    }
    try:
        for spec in specs:
            if spec.needs and importlib.util.find_spec(spec.needs) is None:
                absent[spec.name] = f"{spec.needs} is not installed"
                continue
            say(f"starting {spec.name}")
            contender = Contender(spec, _THREADS, (), folder, "benchmarks.gpu.child", **about)
            try:
                contender.start()
            except ContenderError as error:
                contender.stop(kill=True)
                absent[spec.name] = str(error)
                continue
            running.append(contender)
        yield running
    finally:
        for contender in running:
            contender.stop()


def _limits(
    contenders: Sequence[Contender], absent: dict[str, str], budget: Budget
) -> tuple[tuple[Measured, ...], dict[str, list[float]]]:
    """What the contenders find out of the device."""
    probes: list[Measured] = []
    latencies: dict[str, list[float]] = {}
    for contender in contenders:
        name = contender.spec.name
        try:
            found = ask(contender, budget.within(_PROBING), do="probes")["probes"]
            probes += [Measured.of(probe) for probe in found]
        except ContenderError as error:
            absent[f"{name}'s share of the ceilings"] = str(error)
        try:
            if not contender.alive:
                contender.start()
            latencies.update(ask(contender, budget.within(_PROBING), do="latencies")["latencies"])
        except ContenderError as error:
            absent[f"{name}'s share of the latencies"] = str(error)
    return tuple(probes), latencies
