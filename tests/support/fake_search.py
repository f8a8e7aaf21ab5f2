"""A search that never ran: its events, with times that are made up."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tcl.backends.program_backend import CpuBackend
from tcl.codegen.options.options import MappingOptions
from tcl.grammar.check.definitions import check
from tcl.selection.best_options import DEFAULT
from tcl.tuner.measure.placement import ALIGNED, NUMPY
from tcl.tuner.measure.reliability import Doubts
from tcl.tuner.measure.timing import Placed
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.run import events
from tcl.tuner.run.finals import Finals
from tcl.tuner.run.ledger import Ledger
from tcl.tuner.run.stop_requests import FINISH
from tcl.tuner.space.cpu.mapping import MappingSpace

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }\n"
INPUTS = (np.zeros((64, 32), np.float32), np.zeros((32, 48), np.float32))
CHECKED = check(MM)["mm"]
Event: TypeAlias = events.Event[MappingOptions]
Candidate: TypeAlias = events.Candidate[MappingOptions]


def backend() -> CpuBackend:
    return CpuBackend.described(MM, "mm", INPUTS)


class Race(Enum):
    """What the finals find, in which everything takes twice as long as when it came up."""

    WON = "won"
    """Who was fastest before is fastest again."""
    TIE = "tie"
    """It is ahead by too little."""
    LOST = "lost"
    """What the search began with is faster than it had seemed."""
    NONE = "none"
    """They are not held, because Ctrl+C was pressed."""


def search(
    generations: int = 3,
    population: int = 20,
    *,
    message: str = "it took more than 1 s",
    start: float | None = 1e-3,
    race: Race = Race.WON,
    resumed: bool = False,
) -> Iterator[Event]:
    """Every seventh candidate fails; ``start``: the first one's time, None if it fails, too.
    ``resumed``: another process held finals after the first generation."""
    # Times that no space has a say in: a knob more draws other candidates.
    rng, drawing = random.Random(1), random.Random(2)
    space = MappingSpace(backend().program(), backend().device)
    events_: list[Event] = []
    ledger = Ledger("it", space, None, None, "", events_.append)
    finals = partial(_finals, ledger, space, events_.append, start or 1e-3)
    if resumed:
        yield events.Resumed("it", 2, population)
    for generation in range(generations + 1):
        count = population if generation else 1
        yield events.GenerationStarted(generation, generations, count)
        for k in range(count):
            config = space.space.sample(drawing)
            assert config is not None
            options = space.to_options(config) if generation else DEFAULT
            own = space.from_options(options)
            time = start if not generation else 1e-4 * rng.uniform(1, 20) / generation
            if generation and k % 7 == 6:
                time = None
            outcome = _outcome(time, message)
            if outcome.verdict is not Verdict.CONSTRAINTS:
                yield events.CandidateCompiled(generation)
            candidate: Candidate = events.Candidate(options, own, generation, outcome)
            ledger.add(candidate, k + 1, count, known=resumed and generation < 2)
            yield from _drained(events_)
        if resumed and generation == 1:
            finals(Race.WON)
            yield from (e for e in _drained(events_) if isinstance(e, events.Raced))
    if race is Race.NONE:
        yield events.Interrupted(FINISH, "SIGINT")
    else:
        finals(race)
        yield from _drained(events_)
    yield events.Finished(ledger.decision, 12.5, race is Race.NONE)


def _drained(found: list[Event]) -> Iterator[Event]:
    while found:
        yield found.pop(0)


def _outcome(time: float | None, message: str) -> Outcome:
    if time is None:
        return Outcome(Verdict.CONSTRAINTS, message=message)
    return Outcome(Verdict.CORRECT, (time, 0.9 * time, 1.1 * time))


def _finals(
    ledger: Ledger[MappingOptions],
    space: MappingSpace,
    report: Callable[[Event], object],
    start: float,
    race: Race,
) -> None:
    first = {c.options: c.time for c in ledger.history if c.time is not None}
    best = min(first.values())

    def timed(options: Sequence[MappingOptions]) -> list[Placed]:
        own = {Race.WON: start, Race.TIE: 1.005 * best, Race.LOST: 0.5 * best}[race]
        times = [2 * (own if o == DEFAULT else first[o]) for o in options]
        # Aligned arrays are a tenth faster, the others a tenth slower.
        near = [(t, 0.98 * t, 1.03 * t) for t in times]
        return [
            (
                (ALIGNED.name, tuple(0.9 * t for t in each)),
                (NUMPY.name, tuple(t / 0.9 for t in each)),
            )
            for each in near
        ]

    Finals(ledger, space, report, Doubts()).hold_race(timed)


def failing() -> Iterator[Event]:
    """Nothing works."""
    yield events.GenerationStarted(0, 1, 1)
    outcome = Outcome(Verdict.RUNTIME, message="its process was killed by SIGSEGV")
    candidate: Candidate = events.Candidate(MappingOptions("naive"), None, 0, outcome)
    nothing: events.Decision[MappingOptions] = events.Decision(None, None)
    yield events.CandidateDone(candidate, 1, 1, nothing)
    yield events.Note("only 0 of 1 candidates work")
    yield events.Finished(nothing, 1.0, False)


def take(taker: Any, found: Iterator[Event]) -> Any:
    """What has ``take`` or ``report``, after these events."""
    for event in found:
        (taker.take if hasattr(taker, "take") else taker.report)(event)
    return taker
