"""What a tuner run reports while it goes on. A callback turns these into a panel, lines or JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias

from tcl.tuner.backend import OptionsT
from tcl.tuner.space import Config
from tcl.tuner.verdict import Outcome


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


@dataclass(frozen=True, slots=True)
class NewBest(Generic[OptionsT]):
    """This candidate is the fastest so far; follows its ``CandidateDone``."""

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
    """A heat of the finals is over."""

    candidates: tuple[Candidate[OptionsT], ...]
    """All that have been timed in turns so far, with these times."""
    best: Candidate[OptionsT]
    """The one that holds the first place now."""


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

    best: Candidate[OptionsT] | None
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
