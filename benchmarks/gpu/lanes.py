"""One row: contenders are built, checked, and timed in turns."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.gpu.budget import Budget
from benchmarks.gpu.prepared import Prepared
from benchmarks.gpu.report import COMPILED, Entry
from benchmarks.gpu.rows import GpuRow
from benchmarks.gpu.samples import Sample, enough
from tcl.bench.contender import Contender, ContenderError
from tcl.bench.peers.names import DEFAULT, DEFAULT_FORM, TUNED, TUNED_FORM

OURS = "tcl"
"""The name of our contender; its lanes are those of the options."""
_PATIENCE = 90.0
"""Seconds that a contender may take to compile a row, to choose among its forms, or to compute."""
_COMPILING = 300.0
"""The same for one that tries many kernels."""
_BURST = 5
"""Samples that a contender gives in its turn."""
_ROUNDS = 12
_BROKEN = "the device failed"


@dataclass(frozen=True, slots=True)
class Lane:
    """One contender's form that is timed."""

    name: str
    contender: Contender
    form: str
    seconds: float
    entry: Entry


def ask(contender: Contender, timeout: float, **request: Any) -> dict[str, Any]:
    """``Contender.ask``; a process whose device failed is ended, so that another one is started
    for the next row."""
    try:
        return contender.request(timeout, **request)
    except ContenderError as error:
        if str(error).startswith(_BROKEN):
            contender.stop(kill=True)
        raise


def measure(
    row: GpuRow,
    ready: Prepared,
    contenders: Sequence[Contender],
    budget: Budget,
    seed: int,
    highest_mhz: int | None,
    say: Callable[[str], object],
) -> tuple[dict[str, Entry], dict[str, Any]]:
    """What every contender did, and facts about ours."""
    entries: dict[str, Entry] = {}
    facts: dict[str, Any] = {}
    lanes: list[Lane] = []
    for contender in contenders:
        say(f"{row.name}: {contender.spec.name}")
        try:
            if not contender.alive:  # an earlier row was too much for it
                contender.start()
            found, more = _open(row, ready, contender, budget, entries)
            lanes += found
            facts.update(more)
        except ContenderError as error:
            name = DEFAULT if contender.spec.name == OURS else contender.spec.name
            entries[name] = Entry("", error=str(error))
    say(f"{row.name}: timing")
    entries.update(_rounds(lanes, seed, budget))
    for contender in contenders:
        if contender.alive:
            with contextlib.suppress(ContenderError):
                if ask(contender, 60, do="close")["spoiled"]:
                    contender.stop()
    return {n: replace(e, highest_mhz=highest_mhz) for n, e in entries.items()}, facts


def _open(
    row: GpuRow,
    ready: Prepared,
    contender: Contender,
    budget: Budget,
    entries: dict[str, Entry],
) -> tuple[list[Lane], dict[str, Any]]:
    """The lanes of a contender whose results are right; the others go to ``entries``."""
    patience = _COMPILING if contender.spec.name == COMPILED else _PATIENCE
    task, folder = ready.task.as_json(), str(ready.folder)
    built = ask(contender, budget.within(patience), do="build", task=task, inputs=folder)
    prepared = ask(contender, budget.within(_PATIENCE), do="prepare", moved=row.cost().bytes_moved)
    opened = _Opened(prepared["forms"], built["failed"] | prepared["failed"], built["setup"])
    lanes = []
    for name, candidates in _candidates(contender.spec.name, opened).items():
        found = _first_right(name, candidates, opened, ready, contender, budget)
        if isinstance(found, Lane):
            lanes.append(found)
        else:
            entries[name] = found
    return lanes, built["facts"]


@dataclass(frozen=True, slots=True)
class _Opened:
    """The forms of a contender on a row."""

    ready: dict[str, dict[str, Any]]
    """Those that can be timed: seconds and how they are replayed."""
    failed: dict[str, str]
    """The others, and why not; wrong ones come to them."""
    setup: dict[str, float]

    def entry(self, form: str) -> Entry:
        """What is known of a form before it is timed."""
        rest: dict[str, float | str] = {n: f["seconds"] for n, f in self.ready.items()}
        rest |= self.failed
        others = {n: v for n, v in rest.items() if n != form}
        if form not in self.ready:
            return Entry(form, error=self.failed[form], other_forms=others)
        about = self.ready[form]
        return Entry(
            form,
            launches=about["launches"],
            copies=about["copies"],
            captured=about["captured"],
            setup=self.setup[form],
            other_forms=others,
        )


def _first_right(
    name: str,
    candidates: Sequence[str],
    opened: _Opened,
    ready: Prepared,
    contender: Contender,
    budget: Budget,
) -> Lane | Entry:
    """A lane for the first form whose results are right, else what is wrong with the first."""
    wrong: Entry | None = None
    for form in candidates:
        entry = opened.entry(form)
        if not entry.error:
            ask(contender, budget.within(_PATIENCE), do="results", form=form)
            wanted = ready.expected if contender.spec.name == OURS else ready.lenient
            problem = wanted.why_wrong(contender.folder)
            if problem is None:
                return Lane(name, contender, form, opened.ready[form]["seconds"], entry)
            opened.failed[form] = problem
            entry = replace(entry, error=problem)
        wrong = wrong or entry
    assert wrong is not None
    return wrong


def _candidates(contender: str, opened: _Opened) -> dict[str, list[str]]:
    """The lanes of a contender, and the forms that may be each, best first: a peer's by time."""
    known = [*opened.ready, *opened.failed]
    if contender == OURS:
        forms = ((DEFAULT, DEFAULT_FORM), (TUNED, TUNED_FORM))
        return {lane: [form] for lane, form in forms if form in known}
    by_time = sorted(opened.ready, key=lambda form: opened.ready[form]["seconds"])
    return {contender: by_time or known[:1]} if known else {}


def _rounds(lanes: Sequence[Lane], seed: int, budget: Budget) -> dict[str, Entry]:
    """Time the lanes in turns, in a new order each round, until each has given enough."""
    samples: dict[str, list[Sample]] = {lane.name: [] for lane in lanes}
    failed: dict[str, str] = {}
    rng = random.Random(seed)
    for _ in range(_ROUNDS):
        waiting = [
            lane
            for lane in lanes
            if lane.name not in failed and not enough(samples[lane.name], lane.entry.launches)
        ]
        for lane in rng.sample(waiting, len(waiting)):
            long = lane.seconds * lane.entry.launches
            try:
                found = ask(
                    lane.contender,
                    budget.within(60 + 2 * _BURST * long),
                    do="sample",
                    form=lane.form,
                    count=_BURST,
                )
            except ContenderError as error:
                failed[lane.name] = str(error)
                continue
            pairs = zip(found["seconds"], found["mhz"], strict=True)
            samples[lane.name] += [Sample(seconds, mhz) for seconds, mhz in pairs]
    return {
        lane.name: replace(lane.entry, error=failed[lane.name])
        if lane.name in failed
        else replace(lane.entry, samples=tuple(samples[lane.name]))
        for lane in lanes
    }
