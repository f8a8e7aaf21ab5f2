"""A search that never ran: its events, with times that are made up."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from tcl.codegen.options import MappingOptions
from tcl.cpu_backend import CpuBackend
from tcl.grammar.check import check
from tcl.tuner import events
from tcl.tuner.interrupt import FINISH
from tcl.tuner.mapping import MappingSpace
from tcl.tuner.verdict import Outcome, Verdict

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }\n"
INPUTS = (np.zeros((64, 32), np.float32), np.zeros((32, 48), np.float32))
CHECKED = check(MM)["mm"]
Event: TypeAlias = events.Event[MappingOptions]
Candidate: TypeAlias = events.Candidate[MappingOptions]


def backend() -> CpuBackend:
    return CpuBackend.described(MM, "mm", INPUTS)


def search(
    generations: int = 3,
    population: int = 20,
    *,
    message: str = "it took more than 1 s",
    start: float | None = 1e-3,
    interrupted: bool = False,
    finals: bool = True,
) -> Iterator[Event]:
    """Every seventh candidate fails; ``start``: the first one's time, None if it fails, too."""
    rng = random.Random(1)
    space = MappingSpace(backend().program(), backend().device)
    best: Candidate | None = None
    tried: list[Candidate] = []
    for generation in range(generations + 1):
        count = population if generation else 1
        yield events.GenerationStarted(generation, generations, count)
        for k in range(count):
            config = space.space.sample(rng)
            assert config is not None
            options = space.to_options(config) if generation else MappingOptions("naive")
            own = space.from_options(options)
            time = start if not generation else 1e-4 * rng.uniform(1, 20) / generation
            if generation and k % 7 == 6:
                time = None
            outcome = _outcome(time, message)
            if outcome.verdict is not Verdict.CONSTRAINTS:
                yield events.CandidateCompiled(generation)
            candidate: Candidate = events.Candidate(options, own, generation, outcome)
            tried.append(candidate)
            yield events.CandidateDone(candidate, k + 1, count)
            if time is not None and (best is None or best.time is None or time < best.time):
                best = candidate
                yield events.NewBest(candidate, time)
    if interrupted:
        yield events.Interrupted(FINISH, "SIGINT")
    elif finals and best is not None:
        yield events.FinalsStarted(4)
        raced = _raced(tried)
        best = next(c for c in raced if c.options == best.options)
        yield events.Raced(raced, best)
    yield events.Finished(best, 12.5, interrupted)


def _outcome(time: float | None, message: str) -> Outcome:
    if time is None:
        return Outcome(Verdict.CONSTRAINTS, message=message)
    return Outcome(Verdict.CORRECT, (time, 0.9 * time, 1.1 * time))


def _raced(tried: list[Candidate]) -> tuple[Candidate, ...]:
    ranked = sorted((c for c in tried if c.time is not None), key=lambda c: c.time or 0.0)
    again = [tried[0], *ranked[:3]] if tried[0].time is not None else ranked[:3]
    return tuple(replace(c, outcome=replace(c.outcome, message="in the finals")) for c in again)


def failing() -> Iterator[Event]:
    """Nothing works."""
    yield events.GenerationStarted(0, 1, 1)
    outcome = Outcome(Verdict.RUNTIME, message="its process was ended by SIGSEGV")
    candidate: Candidate = events.Candidate(MappingOptions("naive"), None, 0, outcome)
    yield events.CandidateDone(candidate, 1, 1)
    yield events.Note("only 0 of 1 candidates work")
    yield events.Finished(None, 1.0, False)


def take(taker: Any, found: Iterator[Event]) -> Any:
    """What has ``take`` or ``report``, after these events."""
    for event in found:
        (taker.take if hasattr(taker, "take") else taker.report)(event)
    return taker
