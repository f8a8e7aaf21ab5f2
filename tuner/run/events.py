"""The events of a search. A callback turns these into a panel, lines or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias

from tcl.tuner.measure.backend import OptionsT
from tcl.tuner.measure.verdict import Outcome
from tcl.tuner.space.search_space import Config


@dataclass(frozen=True, slots=True)
class Candidate(Generic[OptionsT]):
    options: OptionsT
    config: Config | None
    """The point of the search space; None for options of the user that are not in it."""
    generation: int
    """From 1; 0 for the options that the search starts from."""
    outcome: Outcome

    @property
    def time(self) -> float | None:
        """Median seconds per call; None unless correct."""
        return self.outcome.time


@dataclass(frozen=True, slots=True)
class Decision(Generic[OptionsT]):
    """The winner of a search and its starting point, with times of the same measurement. Every
    display shows these times.

    The measurement is the finals, which time candidates in turns. Without finals, for example after
    Ctrl+C, it is the first reading of each candidate during the search.
    """

    winner: Candidate[OptionsT] | None
    """The result; None if no candidate works."""
    start: Candidate[OptionsT] | None
    """The first of the starting options that works; None if none works."""

    @staticmethod
    def from_race(
        winner: Candidate[OptionsT] | None,
        start: Candidate[OptionsT] | None,
        raced: Sequence[Candidate[OptionsT]] = (),
    ) -> Decision[OptionsT]:
        """With the first reading of ``start``, and all that the finals have timed so far."""
        if winner is None or start is None:
            return Decision(winner, start)
        if winner.outcome.heat is not None:
            start = next((c for c in raced if c.options == start.options), start)
        return Decision(winner, start)

    @property
    def in_finals(self) -> bool:
        """Whether the finals decided, rather than first readings."""
        return self.winner is not None and self.winner.outcome.heat is not None

    @property
    def kept(self) -> bool:
        """Whether what the search began with wins: nothing was clearly faster."""
        both = self.winner is not None and self.start is not None
        return both and self.winner.options == self.start.options  # type: ignore[union-attr]

    @property
    def speedup(self) -> float | None:
        """The start's time over the winner's; None if one of them is missing, or if they were not
        timed together."""
        if self.winner is None or self.start is None:
            return None
        if self.winner.outcome.heat != self.start.outcome.heat:
            return None
        return (self.start.time or 0.0) / (self.winner.time or 1.0)


@dataclass(frozen=True, slots=True)
class Resumed:
    """An earlier search continues. The events of its candidates follow, as if they came now."""

    run: str
    """The name of the search in the cache."""
    generation: int
    """The generation in which the search continues."""
    results: int
    """The number of candidates that have a verdict."""


@dataclass(frozen=True, slots=True)
class GenerationStarted:
    """A generation starts, with this number of new candidates."""

    generation: int
    generations: int
    """The maximum number of generations."""
    candidates: int


@dataclass(frozen=True, slots=True)
class CandidateCompiled:
    """One more candidate of this generation is compiled, and waits to be evaluated."""

    generation: int


@dataclass(frozen=True, slots=True)
class CandidateDone(Generic[OptionsT]):
    """A candidate has a verdict, which is already in the cache."""

    candidate: Candidate[OptionsT]
    done: int
    """The number of candidates of this generation that have a verdict."""
    of: int
    """The number of candidates of this generation."""
    decision: Decision[OptionsT]
    """The winner so far."""


@dataclass(frozen=True, slots=True)
class NewBest(Generic[OptionsT]):
    """This candidate is the fastest so far, by first readings. It follows ``CandidateDone``."""

    candidate: Candidate[OptionsT]
    time: float
    """Seconds per call."""


@dataclass(frozen=True, slots=True)
class FinalsStarted:
    """The finals start. They time the fastest candidates and the starting point in turns."""

    candidates: int


@dataclass(frozen=True, slots=True)
class Raced(Generic[OptionsT]):
    """A heat of the finals has ended. In a resumed search, the heats of its earlier part come after
    the candidates of that part."""

    candidates: tuple[Candidate[OptionsT], ...]
    """All candidates that the finals have timed so far, with these times."""
    decision: Decision[OptionsT]
    """The winner so far."""


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence for the user, for example that a result could not be saved, or that other programs
    disturb the measurements."""

    message: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A signal, ``stop`` or the time limit interrupts the search. Level 1: running candidates
    finish. Level 2: they were stopped."""

    level: int
    reason: str


@dataclass(frozen=True, slots=True)
class Finished(Generic[OptionsT]):
    """The search has ended."""

    decision: Decision[OptionsT]
    seconds: float
    interrupted: bool


Event: TypeAlias = (
    Resumed
    | GenerationStarted
    | CandidateCompiled
    | CandidateDone[OptionsT]
    | NewBest[OptionsT]
    | FinalsStarted
    | Raced[OptionsT]
    | Note
    | Interrupted
    | Finished[OptionsT]
)
