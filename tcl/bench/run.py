"""A run: every contender in a process of its own, one at work at a time, in interleaved rounds."""

from __future__ import annotations

import contextlib
import datetime
import importlib.metadata
import importlib.util
import math
import platform
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from tcl.arrays.random_inputs import random_inputs
from tcl.bench.arrays import Array, save
from tcl.bench.ceilings import Ceilings, Meter
from tcl.bench.contender import OURS, PEERS, Contender, ContenderError, Spec
from tcl.bench.expected import Expected, expected
from tcl.bench.peers.names import DEFAULT_FORM, TUNED_FORM
from tcl.bench.report import DEFAULT, TUNED, Entry, Report, Result
from tcl.bench.rows import Row
from tcl.bench.task import Task
from tcl.bench.tuning import tuned_options
from tcl.codegen.devices.cpu import host_cpu
from tcl.grammar.errors import ArgumentError
from tcl.selection.best_options import device_identity
from tcl.tuner.config import available_cores

Say: TypeAlias = Callable[[str], object]

_OPEN_TIMEOUT = 300.0
_PAUSE = 0.25
"""Seconds between contenders with several threads: idle workers spin for a while, those of the
Intel OpenMP runtime 0.2 s (its KMP_BLOCKTIME), and would take a core from the next contender."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to measure."""

    threads: tuple[int, ...] = (1,)
    cold: bool = False
    """Empty the caches before each call, and time single calls; else repeat calls."""
    rounds: int = 9
    sample: float = 0.02
    """Seconds that a sample takes at least; a long call is a sample of its own."""
    budget: float = 10.0
    """Seconds after which a contender is measured no more on a row (3 samples it always gets,
    unless one call alone takes as long)."""
    seed: int = 0

    @staticmethod
    def quick(**changes: Any) -> Settings:
        """Settings for a first impression."""
        return replace(Settings(rounds=5, sample=0.005, budget=2.0), **changes)


@dataclass(frozen=True, slots=True)
class _Lane:
    """One contender's form that is measured on a row."""

    name: str
    contender: Contender
    form: str
    seconds: float
    entry: Entry


def run(
    rows: Sequence[Row],
    settings: Settings,
    say: Say,
    *,
    peers: Sequence[Spec] = PEERS,
    ours: Spec = OURS,
    cache: Path | None = None,
    finished: Callable[[Result, Ceilings], object] = lambda result, ceilings: None,
) -> Report:
    """Measure ``rows``. ``say`` gets sentences about progress, ``finished`` every result; tuned
    options come from ``cache``, without which there are none.

    Raises ``ArgumentError`` for more threads than there are cores.
    """
    available = available_cores()
    results: list[Result] = []
    ceilings: dict[int, tuple[Ceilings, ...]] = {}
    versions: dict[str, str] = {"python": platform.python_version()}
    absent: dict[str, str] = {}
    for threads in settings.threads:
        if not 1 <= threads <= len(available):
            raise ArgumentError(f"{threads} threads need as many cores; there are {len(available)}")
        cores = available[:threads]
        samples: list[Ceilings] = []
        with _contenders((ours, *peers), threads, cores, absent, say) as running:
            for contender in running:
                versions.update(contender.versions)
            meter = Meter(cores)
            for row in rows:
                samples += [meter.sample() for _ in range(3)]
                result = _row(row, running, threads, settings, cache, say)
                results.append(result)
                finished(result, Ceilings.best(samples))
            samples += [meter.sample() for _ in range(3)]
            meter.close()
        ceilings[threads] = tuple(samples)
    return Report(
        datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        _machine(available),
        versions,
        {**asdict(settings), "threads": list(settings.threads)},
        ceilings,
        tuple(results),
        absent,
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
    settings: Settings,
    cache: Path | None,
    say: Say,
) -> Result:
    checked, sizes = row.checked, row.values
    arrays = random_inputs(checked, sizes, settings.seed)
    tuned = "" if cache is None else tuned_options(row, arrays, cache, threads)
    names = tuple(t.name for t in checked.inputs)
    task = Task(row.text, row.entry, sizes, names, row.results, tuned)
    wanted = expected(row, sizes, arrays)
    entries: dict[str, Entry] = {}
    facts: dict[str, Any] = {}
    lanes: list[_Lane] = []
    for contender in running:
        say(f"{row.name}: {contender.spec.name}")
        try:
            if not contender.alive:  # an earlier row was too much for it
                contender.start()
            found, more = _open(contender, task, arrays, wanted, entries)
            lanes += found
            facts.update(more)
        except ContenderError as error:
            ours = contender.spec.module == OURS.module
            name = DEFAULT if ours else contender.spec.name
            entries[name] = Entry("", threads, (), error=str(error))
    say(f"{row.name}: timing")
    entries.update(_rounds(lanes, settings, threads))
    for contender in running:
        if contender.alive:
            with contextlib.suppress(ContenderError):
                contender.ask(60, do="close")
    cost = row.cost()
    return Result(
        row.name,
        row.kind,
        row.file,
        row.entry,
        sizes,
        threads,
        cost.operations,
        cost.read,
        cost.written,
        entries,
        facts,
    )


def _open(
    contender: Contender,
    task: Task,
    arrays: Sequence[Array],
    wanted: Expected,
    entries: dict[str, Entry],
) -> tuple[list[_Lane], dict[str, Any]]:
    """The lanes of a contender whose results are right; the others go to ``entries``."""
    for name, array in zip(task.inputs, arrays, strict=True):
        save(contender.folder, f"input-{name}", array)
    opened = contender.ask(_OPEN_TIMEOUT, do="open", task=task.as_json())
    for name in task.inputs:
        (contender.folder / f"input-{name}.npy").unlink()
    forms = {form["name"]: form for form in opened["forms"]}
    others: dict[str, float | str] = {n: f["seconds"] for n, f in forms.items()} | opened["failed"]
    if contender.spec.module == OURS.module:
        chosen = {DEFAULT: DEFAULT_FORM, TUNED: TUNED_FORM}
        if TUNED_FORM not in others:
            del chosen[TUNED]
    elif others:
        fastest = min(forms, key=lambda n: forms[n]["seconds"], default=next(iter(others)))
        chosen = {contender.spec.name: fastest}
    else:
        chosen = {}
    lanes = []
    for name, form in chosen.items():
        if form not in forms:
            entries[name] = Entry(form, 0, (), error=str(others[form]), other_forms={})
            continue
        about = forms[form]
        rest = {n: v for n, v in others.items() if n != form}
        entry = Entry(form, about["threads"], (), about["setup"], "", rest)
        contender.ask(_OPEN_TIMEOUT, do="results", form=form)
        problem = wanted.problem(contender.folder)
        if problem is not None:
            entries[name] = replace(entry, error=problem)
        else:
            lanes.append(_Lane(name, contender, form, about["seconds"], entry))
    return lanes, opened["facts"]


def _rounds(lanes: Sequence[_Lane], settings: Settings, threads: int) -> dict[str, Entry]:
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
                seconds = lane.contender.ask(
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
            if threads > 1:
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
