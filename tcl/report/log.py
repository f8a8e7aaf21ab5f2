"""What a search reported, with the time of each event: what its page is made from."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from tcl.codegen.options.options import MappingOptions
from tcl.tuner.run import events

Candidate: TypeAlias = events.Candidate[MappingOptions]


@dataclass(frozen=True, slots=True)
class Try:
    """A candidate with its verdict."""

    seconds: float
    """Since the search began."""
    candidate: Candidate

    @property
    def best_time(self) -> float | None:
        """Seconds per call; None unless correct."""
        return self.candidate.time


@dataclass(slots=True)
class SearchLog:
    """Events as they come; ``take`` is the tuner's ``report``."""

    tries: list[Try] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    raced: tuple[Candidate, ...] = ()
    """With their times in the finals."""
    decision: events.Decision[MappingOptions] = field(
        default_factory=lambda: events.Decision(None, None)
    )
    compiled: int = 0
    ended_by: str = ""
    """What ended the search early; empty if nothing did."""
    seconds: float = 0.0
    """How long it took."""
    clock: Callable[[], float] = time.monotonic
    _started: float | None = None

    def take(self, event: events.Event[MappingOptions]) -> None:
        """Note one event."""
        if self._started is None:
            self._started = self.clock()
        match event:
            case events.CandidateCompiled():
                self.compiled += 1
            case events.CandidateDone(candidate=candidate, decision=decision):
                self.decision = decision
                self.tries.append(Try(self.clock() - self._started, candidate))
            case events.Raced(candidates=candidates, decision=decision):
                self.raced, self.decision = candidates, decision
            case events.Note(message=message):
                self.notes.append(message)
            case events.Interrupted(reason=reason):
                self.ended_by = reason
            case events.Finished(decision=decision, seconds=seconds):
                self.decision, self.seconds = decision, seconds

    @property
    def best(self) -> Candidate | None:
        """The winner."""
        return self.decision.winner

    @property
    def start(self) -> Candidate | None:
        """What the search began with, with times of the same measurement."""
        return self.decision.start
