"""What a tuner run reports while it goes on. A callback turns these into a panel, lines or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias

from tcl.tuner.measure.backend import OptionsT
from tcl.tuner.measure.verdict import Outcome
from tcl.tuner.space.search_space import Config


@dataclass(frozen=True, slots=True)
class Candidate(Generic[OptionsT]):
    """Options and what became of them."""

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
    """Who wins a search, and what it began with: both with times of the same measurement, which
    every display shows.

    That measurement is the finals, where candidates are timed in turns. Without finals, as after
    Ctrl+C, it is the first reading of each candidate, taken when it came up in the search.
    """

    winner: Candidate[OptionsT] | None
    """What is used from now on; None if nothing works."""
    start: Candidate[OptionsT] | None
    """What the search began with, the first of it that works; None if nothing of it does."""

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
    """An earlier search goes on. The events of its candidates follow, as if they came now."""

    run: str
    """Its identity, as in the cache."""
    generation: int
    """The one that it goes on in."""
    results: int
    """Candidates that have their verdict."""


@dataclass(frozen=True, slots=True)
class GenerationStarted:
    """``candidates`` new configurations are about to be tried."""

    generation: int
    generations: int
    """How many there will be at most."""
    candidates: int


@dataclass(frozen=True, slots=True)
class CandidateCompiled:
    """One more candidate of this generation is compiled, and waits to be evaluated."""

    generation: int


@dataclass(frozen=True, slots=True)
class CandidateDone(Generic[OptionsT]):
    """One candidate has its verdict. It is in the cache already."""

    candidate: Candidate[OptionsT]
    done: int
    """Candidates of this generation that have theirs."""
    of: int
    decision: Decision[OptionsT]
    """Who holds the first place now."""


@dataclass(frozen=True, slots=True)
class NewBest(Generic[OptionsT]):
    """This candidate is the fastest so far, by first readings; follows its ``CandidateDone``."""

    candidate: Candidate[OptionsT]
    time: float
    """Seconds per call."""


@dataclass(frozen=True, slots=True)
class FinalsStarted:
    """``candidates`` of the fastest, with the one that the search began with, are about to be
    timed in turns."""

    candidates: int


@dataclass(frozen=True, slots=True)
class Raced(Generic[OptionsT]):
    """A heat of the finals is over. One of an earlier part of the search comes after the candidates
    that this part takes over."""

    candidates: tuple[Candidate[OptionsT], ...]
    """All that have been timed in turns so far, with these times."""
    decision: Decision[OptionsT]
    """Who holds the first place now."""


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence for the user: why a generation was drawn anew, that saving failed, that other
    programs disturb the measurements."""

    message: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A signal, ``stop`` or the time limit was noticed. Level 1: what is in flight finishes;
    level 2: it was killed."""

    level: int
    reason: str


@dataclass(frozen=True, slots=True)
class Finished(Generic[OptionsT]):
    """The run is over."""

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
