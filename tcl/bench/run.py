"""A run: every contender in a process of its own, one at work at a time, in interleaved rounds."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import importlib.util
import itertools
import math
import platform
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from tcl.arrays.random_inputs import random_inputs
from tcl.bench.arrays import save
from tcl.bench.ceilings import Ceilings, Meter
from tcl.bench.contender import OURS, PEERS, Contender, ContenderError, Spec
from tcl.bench.expected import ExpectedResults, expected
from tcl.bench.peers.names import TUNED
from tcl.bench.report import Report
from tcl.bench.result import Entry, Result
from tcl.bench.rows import Row
from tcl.bench.task import Task
from tcl.bench.tuning import tuned_options
from tcl.codegen.devices.cpu import host_cpu
from tcl.common.errors import ArgumentError
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.measure.cores import available_cores
from tcl.tuner.measure.placement import PLACEMENTS

Say: TypeAlias = Callable[[str], object]

_OPEN_TIMEOUT = 300.0
_PAUSE = 0.25
"""Seconds between contenders with several threads: idle workers spin for a while, those of the
Intel OpenMP runtime 0.2 s (its KMP_BLOCKTIME), and would take a core from the next contender."""


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How to measure."""

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


@dataclass(frozen=True, slots=True)
class _Lane:
    """One contender's form that is measured on a row."""

    name: str
    contender: Contender
    form: str
    seconds: float
    entry: Entry


@dataclass(slots=True)
class _Found:
    """What a run has so far."""

    results: list[Result] = field(default_factory=list)
    ceilings: dict[int, list[Ceilings]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def report(self, settings: BenchSettings, cores: Sequence[int], interrupted: bool) -> Report:
        """All of it."""
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
            _contenders((*ours, *peers), threads, cores, found.absent, say) as running,
            contextlib.closing(Meter(cores)) as meter,
        ):
            for contender in running:
                _check_versions(found.versions, contender.versions)
                found.versions.update(contender.versions)
            for row in missing:
                samples += [meter.sample() for _ in range(3)]
                try:
                    found.results += _row(row, running, threads, number, settings, cache, say)
                except ArgumentError as error:  # a type that is not there, or too little memory
                    found.left_out[row.name] = str(error)
                    say(f"without {row.name}: {error}")
                    continue
                finished(found.report(settings, available, interrupted=True))
            samples += [meter.sample() for _ in range(3)]
    return found.report(settings, available, interrupted=False)


def _continued(before: Report, settings: BenchSettings, cores: Sequence[int]) -> _Found:
    """What a report has, to go on from there."""
    machine = _machine(cores)
    for name in ("cpu", "features", "cores"):
        had = before.machine.get(name)
        if had != machine[name]:
            raise ArgumentError(
                f"the report that is there was made on another machine: {name} is not {had}"
            )
    for name, value in settings.as_json().items():
        had = before.settings.get(name)
        if name not in ("threads", "runs") and had != value:
            raise ArgumentError(
                f"the report that is there was made with other settings: {name} {had}, not {value}"
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
            raise ArgumentError(
                f"the report that is there was made with {name} {had}, not {version}"
            )


@contextlib.contextmanager
def _contenders(
    specs: Sequence[Spec], threads: int, cores: Sequence[int], absent: dict[str, str], say: Say
) -> Iterator[list[Contender]]:
    """The contenders that could be started. All end with the block."""
    running: list[Contender] = []
    with tempfile.TemporaryDirectory(prefix="tcl-bench-") as folder:
        try:
            for spec in specs:
                if spec.needs and importlib.util.find_spec(spec.needs) is None:
                    absent[spec.name] = f"{spec.needs} is not installed"
                    say(f"without {spec.name}: {absent[spec.name]}")
                    continue
                contender = Contender(spec, threads, cores, Path(folder))
                running.append(contender)
                try:
                    contender.start()
                except ContenderError as error:
                    running.remove(contender)
                    contender.stop(kill=True)
                    absent[spec.name] = str(error)
                    say(f"without {spec.name}: {error}")
            yield running
        finally:
            for contender in running:
                contender.stop()


def _row(
    row: Row,
    running: Sequence[Contender],
    threads: int,
    number: int,
    settings: BenchSettings,
    cache: Path | None,
    say: Say,
) -> list[Result]:
    """What all contenders do with a row, on each placement."""
    checked, sizes = row.checked, row.values
    arrays = random_inputs(checked, sizes, settings.seed)
    wanted = expected(row, sizes, arrays)
    names = tuple(t.name for t in checked.inputs)
    cost = row.cost()
    results = []
    with tempfile.TemporaryDirectory(prefix="tcl-bench-") as folder:
        for name, array in zip(names, arrays, strict=True):
            save(Path(folder), f"input-{name}", array)
        for placement in settings.placements:
            past = PLACEMENTS[placement].past
            tuned = "" if cache is None else tuned_options(row, arrays, cache, threads, past=past)
            task = Task(row.text, row.entry, sizes, names, row.results, tuned, past)
            where = f"{row.name}, {placement}" if len(settings.placements) > 1 else row.name
            entries, facts = _placed(where, task, Path(folder), wanted, running, settings, say)
            result = Result(
                name=row.name,
                kind=row.kind,
                file=row.file,
                entry=row.entry,
                sizes=sizes,
                threads=threads,
                flops=cost.operations,
                read=cost.read,
                written=cost.written,
                entries={n: replace(e, threads=e.threads or threads) for n, e in entries.items()},
                facts=facts,
                single=cost.single,
                products=dict(cost.products),
                placement=placement,
                run=number,
            )
            results.append(result)
    return results


def _placed(
    where: str,
    task: Task,
    inputs: Path,
    wanted: ExpectedResults,
    running: Sequence[Contender],
    settings: BenchSettings,
    say: Say,
) -> tuple[dict[str, Entry], dict[str, Any]]:
    """What all contenders do with a task, and facts about ours."""
    entries: dict[str, Entry] = {}
    facts: dict[str, Any] = {}
    lanes: list[_Lane] = []
    for contender in running:
        name = contender.spec.name
        if name == TUNED and not task.tuned:
            continue
        say(f"{where}: {name}")
        given = task if name == TUNED else replace(task, tuned="")
        try:
            if not contender.alive:  # an earlier row was too much for it
                contender.start()
            found, more = _open(contender, given, inputs, wanted)
        except ContenderError as error:
            found, more = Entry("", 0, (), error=str(error)), {}
        if isinstance(found, _Lane):
            lanes.append(found)
        elif found is not None:
            entries[name] = found
        facts.update(more)
    say(f"{where}: timing")
    entries.update(_rounds(lanes, settings))
    for contender in running:
        if contender.alive:
            with contextlib.suppress(ContenderError):
                contender.request(60, do="close")
    return entries, facts


def _open(
    contender: Contender, task: Task, inputs: Path, wanted: ExpectedResults
) -> tuple[_Lane | Entry | None, dict[str, Any]]:
    """A lane for the fastest form of a contender; what is wrong, if it or its results are; or
    nothing, if there is no form. And facts about it."""
    opened = contender.request(_OPEN_TIMEOUT, do="open", task=task.as_json(), inputs=str(inputs))
    forms = {form["name"]: form for form in opened["forms"]}
    others: dict[str, float | str] = {n: f["seconds"] for n, f in forms.items()} | opened["failed"]
    if not others:
        return None, opened["facts"]
    form = min(forms, key=lambda n: forms[n]["seconds"], default=next(iter(others)))
    rest = {n: v for n, v in others.items() if n != form}
    if form not in forms:
        entry = Entry(form, 0, (), error=str(others[form]), other_forms=rest)
        return entry, opened["facts"]
    about = forms[form]
    entry = Entry(form, about["threads"], (), about["setup"], "", rest)
    contender.request(_OPEN_TIMEOUT, do="results", form=form)
    problem = wanted.why_wrong(contender.folder)
    if problem is not None:
        return replace(entry, error=problem), opened["facts"]
    lane = _Lane(contender.spec.name, contender, form, about["seconds"], entry)
    return lane, opened["facts"]


def _rounds(lanes: Sequence[_Lane], settings: BenchSettings) -> dict[str, Entry]:
    """Time the lanes in turns, in a new order each round."""
    times: dict[str, list[float]] = {lane.name: [] for lane in lanes}
    spent = dict.fromkeys(times, 0.0)
    failed: dict[str, str] = {}
    rng = random.Random(settings.seed)
    for _ in range(settings.rounds):
        for lane in rng.sample(list(lanes), len(lanes)):
            samples = len(times[lane.name])
            over = spent[lane.name] > settings.budget
            if lane.name in failed or (over and samples >= (3 if lane.seconds < 1 else 1)):
                continue
            calls = max(1, math.ceil(settings.sample / max(lane.seconds, 1e-9)))
            begin = time.perf_counter()
            try:
                seconds = lane.contender.request(
                    60 + 20 * lane.seconds * calls,
                    do="sample",
                    form=lane.form,
                    calls=calls,
                    cold=settings.cold,
                )["seconds"]
            except ContenderError as error:
                failed[lane.name] = str(error)
                continue
            times[lane.name].append(seconds)
            spent[lane.name] += time.perf_counter() - begin
            if lane.contender.threads > 1:
                time.sleep(_PAUSE)
    return {
        lane.name: replace(lane.entry, error=failed[lane.name])
        if lane.name in failed
        else replace(lane.entry, samples=tuple(times[lane.name]))
        for lane in lanes
    }


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
