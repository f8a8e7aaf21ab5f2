"""The tuner's progress for programs: one JSON object per line.

Every object has ``event``, and ``seconds`` since the search began; times of kernels are in seconds.
The first is ``started``, the last one of the search ``finished``; ``tcl tune`` adds a ``result``.
``placements`` has the time on arrays of each placement, ``time`` is their geometric mean.
``reading`` tells which measurement a candidate's time is from: ``first reading``, when it came up,
or ``finals``, where the fastest were timed in turns, which decides.
With ``--grid``, a ``grid`` comes before all, with the plan; a ``point`` and a ``point done`` stand
around each search, whose events have the number of the ``point``; and a ``grid done`` ends it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, TextIO, TypeAlias, assert_never

from tcl.codegen.options.options import MappingOptions
from tcl.progress.state import FIRST, Event, verdict
from tcl.tuner.run import events

_Candidate: TypeAlias = events.Candidate[MappingOptions]


class JsonProgress:
    """Writes events as they come; a context manager like ``Progress``.

    ``about`` is what the first one says, ``always`` what each of them does.
    """

    def __init__(
        self, about: Mapping[str, Any], stream: TextIO, always: Mapping[str, Any] | None = None
    ) -> None:
        self._about = about
        self._stream = stream
        self._always = always or {}
        self._started = time.monotonic()

    def __enter__(self) -> JsonProgress:
        self.write("started", self._about)
        return self

    def __exit__(self, *error: object) -> None: ...

    def report(self, event: Event) -> None:
        self.write(*as_data(event))

    def write(self, name: str, data: Mapping[str, Any]) -> None:
        """One line, at once: who reads it may be waiting."""
        seconds = round(time.monotonic() - self._started, 6)
        said = {"event": name, **self._always, "seconds": seconds, **data}
        line = json.dumps(said, allow_nan=False)
        self._stream.write(line + "\n")
        self._stream.flush()


def as_data(event: Event) -> tuple[str, dict[str, Any]]:
    """The name of an event, and what it says as JSON data."""
    match event:
        case events.Resumed(run=run, generation=number, results=count):
            return "resumed", {"run": run, "generation": number, "results": count}
        case events.GenerationStarted(generation=number, generations=most, candidates=count):
            return "generation", {"generation": number, "generations": most, "candidates": count}
        case events.CandidateCompiled(generation=number):
            return "compiled", {"generation": number}
        case events.CandidateDone(candidate=candidate, done=done, of=of):
            return "candidate", {**_candidate(candidate), "done": done, "of": of}
        case events.NewBest(candidate=candidate):
            return "best", _candidate(candidate)
        case events.FinalsStarted(candidates=count):
            return "finals", {"candidates": count}
        case events.Raced(candidates=raced, decision=decision):
            return "raced", {"candidates": [_candidate(c) for c in raced], **decided(decision)}
        case events.Note(message=message):
            return "note", {"message": message}
        case events.Interrupted(level=level, reason=reason):
            return "interrupted", {"level": level, "reason": reason}
        case events.Finished(decision=decision, interrupted=interrupted):
            return "finished", {**decided(decision), "interrupted": interrupted}
        case _:
            assert_never(event)


def decided(decision: events.Decision[MappingOptions]) -> dict[str, Any]:
    """Who wins, and by which measurement."""
    winner, start = decision.winner, decision.start
    return {
        "best": None if winner is None else _candidate(winner),
        "start": None if start is None else _candidate(start),
        "speedup": decision.speedup,
        "verdict": verdict(decision),
    }


def _candidate(candidate: _Candidate) -> dict[str, Any]:
    return {
        "generation": candidate.generation,
        "options": json.loads(candidate.options.to_json()),
        "verdict": candidate.outcome.verdict.value,
        "time": candidate.time,
        "reading": FIRST if candidate.outcome.heat is None else "finals",
        "samples": list(candidate.outcome.times),
        "placements": candidate.outcome.placements,
        "message": candidate.outcome.message,
    }
