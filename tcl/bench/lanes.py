"""One row: what its results should be, by the reference and on large rows for a sample; contenders
open it, are compared with that, and are timed in turns."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from tcl.arrays.random_inputs import random_inputs
from tcl.bench.contender import Contender, ContenderError, Spec
from tcl.bench.rows import Row
from tcl.bench.summary import Entry
from tcl.bench.task import TUNED, Array, Task
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.executors.call_kernels import size
from tcl.tuner.measure.correctness import accumulation_depths, mismatch

_POINTS = 100_000_000
"""Points of iteration that the reference computes at most, if the row can be sampled."""


@dataclass(frozen=True, slots=True)
class ExpectedResults:
    """Names, right values and depths of accumulation of a row's results."""

    names: tuple[str, ...]
    arrays: tuple[Array, ...]
    depths: tuple[int, ...]
    picked: tuple[int, ...] | None
    """Positions along dimension 0 that were computed; None for all."""
    full: int
    """Extent of dimension 0 when only some positions were picked."""

    def why_wrong(self, results: Sequence[Array]) -> str | None:
        """What is wrong with a contender's results; None if nothing is."""
        if len(results) != len(self.names):
            return f"there are {len(results)} results, not {len(self.names)}"
        checks = zip(self.names, self.arrays, self.depths, results, strict=True)
        for name, wanted, depth, actual in checks:
            shape = wanted.shape if self.picked is None else (self.full, *wanted.shape[1:])
            if actual.shape != shape:
                return f"result {name} has shape {actual.shape}, not {shape}"
            if self.picked is not None:
                if actual.dtype.kind == "f" and not np.isfinite(actual).all():
                    return f"result {name} is not finite everywhere"
                actual = actual[list(self.picked)]
            if actual.dtype != wanted.dtype and wanted.dtype.kind in "iu":
                actual = actual.astype(wanted.dtype)  # peers count in other integers
            found = mismatch(name, actual, wanted, depth)
            if found is not None:
                return found
        return None


def expected(row: Row, sizes: Mapping[str, int], arrays: Sequence[Array]) -> ExpectedResults:
    """The right results of a row for these inputs."""
    from tcl.codegen.reference import compile_reference

    checked = row.checked
    sized = size(checked, tuple(arrays))
    points = sum(math.prod(s.extent(i) for i in s.ranges) for s in sized.statements)
    picked: tuple[int, ...] | None = None
    full = sizes[row.batch] if row.batch else 0
    if row.batch and points > _POINTS:
        count = max(2, full * _POINTS // points)
        picked = tuple(sorted({round(i) for i in np.linspace(0, full - 1, count)}))
        arrays = [
            np.take(array, picked, axis=tensor.dims.index(row.batch))
            if tensor.dims and row.batch in tensor.dims
            else array
            for tensor, array in zip(checked.inputs, arrays, strict=True)
        ]
        sized = size(checked, tuple(arrays))
    outputs = {t.name: np.zeros(sized.shapes[t.name], numpy_dtype(t.type)) for t in checked.outputs}
    compile_reference(sized)(arrays, tuple(outputs.values()))
    depths = accumulation_depths(sized)
    for tensor in checked.outputs:
        if tensor.type.is_float and tensor.type.bits == 16:
            # Sums are in float32 and rounded once: their depth explains no error.
            depths[tensor.name] = 1
    return ExpectedResults(
        row.results,
        tuple(outputs[name] for name in row.results),
        tuple(depths[name] for name in row.results),
        picked,
        full,
    )


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that contenders need to do a row, and what they should find."""

    task: Task
    inputs: Mapping[str, Array]
    expected: ExpectedResults


def prepare(row: Row, seed: int) -> Prepared:
    """Make the inputs of a row, and what they lead to."""
    sizes, names = row.values, tuple(t.name for t in row.checked.inputs)
    arrays = random_inputs(row.checked, sizes, seed)
    wanted = expected(row, sizes, arrays)
    task = Task(row.text, row.entry, sizes, names, row.results)
    return Prepared(task, dict(zip(names, arrays, strict=True)), wanted)


Say: TypeAlias = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Lane:
    """One contender's form that is measured on a row."""

    name: str
    contender: Contender
    form: str
    seconds: float
    entry: Entry


@contextlib.contextmanager
def started(
    specs: Sequence[Spec], make: Callable[[Spec], Contender], absent: dict[str, str], say: Say
) -> Iterator[list[Contender]]:
    """The contenders that could be started; why others could not goes to ``absent``. All end with
    the block."""
    running: list[Contender] = []
    try:
        for spec in specs:
            if spec.needs and importlib.util.find_spec(spec.needs) is None:
                absent[spec.name] = f"{spec.needs} is not installed"
                say(f"without {spec.name}: {absent[spec.name]}")
                continue
            contender = make(spec)
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


class Lanes:
    """How contenders are measured on a row. What depends on the device are the first methods."""

    rounds: int
    seed: int

    def __init__(self, running: Sequence[Contender], say: Say) -> None:
        self.running = running
        self.say = say

    def waits(self, lane: Lane, entry: Entry, spent: float) -> bool:
        """Whether a lane with the samples of ``entry``, on which so many seconds were spent, gives
        more."""
        raise NotImplementedError

    def sample(self, lane: Lane) -> dict[str, Any]:
        """What a lane gives in its turn: lists by the fields of ``Entry``."""
        raise NotImplementedError

    def entry(self, form: str, **known: Any) -> Entry:
        """What is known of a form that has no samples yet."""
        return Entry(form, **{"threads": 0, "samples": (), **known})

    def patience(self, seconds: float) -> float:
        """Of what a request may take, what is granted."""
        return seconds

    def wanted(self, contender: Contender, expected: ExpectedResults) -> ExpectedResults:
        """What is asked of a contender's results."""
        return expected

    def measure(
        self, where: str, ready: Prepared, **more: Any
    ) -> tuple[dict[str, Entry], dict[str, Any]]:
        """What all contenders do with a task, and facts about ours. ``more`` is what else they need
        to open it."""
        entries: dict[str, Entry] = {}
        facts: dict[str, Any] = {}
        lanes: list[Lane] = []
        for contender in self.running:
            name, task = contender.spec.name, ready.task
            if name == TUNED and not task.tuned:
                continue
            self.say(f"{where}: {name}")
            given = replace(ready, task=task if name == TUNED else replace(task, tuned=""))
            try:
                if not contender.alive:  # an earlier row was too much for it
                    contender.start()
                found, about = self._open(contender, given, more)
            except ContenderError as error:
                found, about = self.entry("", error=str(error)), {}
            if isinstance(found, Lane):
                lanes.append(found)
            elif found is not None:
                entries[name] = found
            facts.update(about)
        self.say(f"{where}: timing")
        entries.update(self._timed(lanes))
        for contender in self.running:
            if contender.alive:
                with contextlib.suppress(ContenderError):
                    if contender.request(60, do="close")["spoiled"]:
                        contender.stop()
        return entries, facts

    def _open(
        self, contender: Contender, ready: Prepared, more: dict[str, Any]
    ) -> tuple[Lane | Entry | None, dict[str, Any]]:
        """A lane for the fastest form whose results are right; what is wrong with the fastest, if
        those of none are; or nothing, if there is no form. And facts about it."""
        patience = self.patience(contender.spec.patience)
        opened = contender.request(
            patience, do="open", task=ready.task, inputs=ready.inputs, **more
        )
        forms = {about.pop("name"): about for about in opened["forms"]}
        times = {name: about.pop("seconds") for name, about in forms.items()}
        failed: dict[str, str] = {}
        wanted = self.wanted(contender, ready.expected)
        for form in sorted(times, key=lambda name: times[name]):
            results = contender.request(patience, do="results", form=form)["results"]
            problem = wanted.why_wrong(results)
            if problem is None:
                others = {n: v for n, v in {**times, **opened["failed"], **failed}.items()
                          if n != form}  # fmt: skip
                entry = self.entry(form, other_forms=others, **forms[form])
                lane = Lane(contender.spec.name, contender, form, times[form], entry)
                return lane, opened["facts"]
            failed[form] = problem
        failed |= opened["failed"]
        if not failed:
            return None, opened["facts"]
        (form, error), *rest = failed.items()
        entry = self.entry(form, error=error, other_forms=dict(rest), **forms.get(form, {}))
        return entry, opened["facts"]

    def _timed(self, lanes: Sequence[Lane]) -> dict[str, Entry]:
        """Time the lanes in turns, in a new order each round."""
        entries = {lane.name: lane.entry for lane in lanes}
        spent = dict.fromkeys(entries, 0.0)
        rng = random.Random(self.seed)
        for _ in range(self.rounds):
            for lane in rng.sample(list(lanes), len(lanes)):
                entry = entries[lane.name]
                if entry.error or not self.waits(lane, entry, spent[lane.name]):
                    continue
                begin = time.perf_counter()
                try:
                    found = self.sample(lane)
                except ContenderError as error:
                    entries[lane.name] = replace(lane.entry, error=str(error))
                    continue
                longer: dict[str, Any] = {n: (*getattr(entry, n), *new) for n, new in found.items()}
                entries[lane.name] = replace(entry, **longer)
                spent[lane.name] += time.perf_counter() - begin
        return entries
