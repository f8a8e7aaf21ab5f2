"""What is known of a search while it goes on, and how it is told: in words, facts and lines."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple, Protocol, TypeAlias

from tcl.codegen.options.options import MappingOptions
from tcl.common.number_format import duration, plural, ratio_text
from tcl.selection.best_options import DEFAULT
from tcl.tuner.run import events
from tcl.tuner.run.events import Decision

UNTUNED = "the untuned default"
FINALS = "timed in turns in the finals"
FIRST = "first reading"
"""Of a candidate: its time from when it came up in the search, with nothing beside it."""

BESIDE = "beside the winner, timed in turns after the search"
"""Others, as NumPy. These times do not decide, so only what they are of the winner's is told."""


def name_of(options: MappingOptions) -> str:
    """What a search began with, or ended with, by its name."""
    return UNTUNED if options == DEFAULT else "the start"


def winner_name(decision: Decision[MappingOptions]) -> str:
    """The winner, with its name where it was not found by the search."""
    name = UNTUNED if decision.winner is None else name_of(decision.winner.options)
    return f"the winner: {name}" if decision.kept or name == UNTUNED else "the winner"


def reading(decision: Decision[MappingOptions]) -> str:
    """Which measurement the times of winner and start are from."""
    return FINALS if decision.in_finals else f"{FIRST}s"


def figures(decision: Decision[MappingOptions]) -> str:
    """The winner's time and how it compares: ``242 µs, 1.10 × as fast as the untuned default``."""
    winner, start = decision.winner, decision.start
    if winner is None or winner.time is None:
        return "-"
    if decision.kept:
        return f"{duration(winner.time)}, {name_of(winner.options)}"
    faster = decision.speedup
    if faster is None or start is None:
        return duration(winner.time)
    return f"{duration(winner.time)}, {ratio_text(faster)} as fast as {name_of(start.options)}"


def verdict(decision: Decision[MappingOptions]) -> str:
    """Who wins, and by which measurement; a sentence without its full stop."""
    winner, start = decision.winner, decision.start
    if winner is None:
        return "nothing was found"
    if decision.kept and decision.in_finals:
        return f"{name_of(winner.options)} wins: nothing was clearly faster, {FINALS}"
    if decision.kept:
        return f"{name_of(winner.options)} wins: nothing was faster, by {FIRST}s without finals"
    who = UNTUNED if winner.options == DEFAULT else "the winner"
    by = FINALS if decision.in_finals else f"by {FIRST}s without finals"
    if start is None or decision.speedup is None:
        return f"{who} is the fastest that works, {by}"
    ratio = ratio_text(decision.speedup)
    return f"{who} is {ratio} as fast as {name_of(start.options)}, {by}"


Event: TypeAlias = events.Event[MappingOptions]
Candidate: TypeAlias = events.Candidate[MappingOptions]

_RECENT = 40
"""Candidates that say how long the next ones will take."""


class Yardstick(Protocol):
    """What says how good a time is."""

    def describe(self, seconds: float) -> str:
        """In words."""


class Try(NamedTuple):
    seconds: float
    """Since the search began."""
    candidate: Candidate

    @property
    def best_time(self) -> float | None:
        """Seconds per call; None unless correct."""
        return self.candidate.time


class SearchState:
    """The search so far. ``yardstick`` says what a time means; ``time_limit`` is the user's."""

    def __init__(
        self,
        yardstick: Yardstick | None = None,
        time_limit: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._yardstick = yardstick
        self._limit = time_limit
        self._clock = clock
        self.started = clock()
        self.generation = self.generations = self.done = self.of = self.compiled = 0
        self.tries: list[Try] = []
        self.notes: list[str] = []
        self.decision: events.Decision[MappingOptions] = events.Decision(None, None)
        self.current: list[float] = []
        self.finalists = 0
        """How many are in the finals; 0 before these."""
        self.raced: Sequence[Candidate] = ()
        """With their times in the finals."""
        self.interruptions: list[str] = []
        """Reasons; from the first one on what is in flight finishes."""
        self.ended = False
        self.seconds = 0.0
        """How long it took."""
        self._recent: deque[float] = deque([self.started], maxlen=_RECENT)
        self._recalled = 0
        """Candidates still to come that an earlier part of the search has measured."""

    def take(self, event: Event) -> None:
        """Add what happened."""
        match event:
            case events.Resumed(results=results):
                self._recalled = results
            case events.GenerationStarted():
                self.generation, self.generations = event.generation, event.generations
                self.done, self.of, self.current = 0, event.candidates, []
                if event.generation <= 1:
                    self._begin_timing()
            case events.CandidateCompiled():
                self.compiled += 1
            case events.CandidateDone(candidate=candidate, done=done, of=of, decision=decision):
                self.done, self.of, self.decision = done, of, decision
                now = self._clock()
                self._recent.append(now)
                if self._recalled:
                    self._recalled -= 1
                    self._begin_timing()
                self.tries.append(Try(now - self.started, candidate))
                if candidate.time is not None:
                    self.current.append(candidate.time)
            case events.FinalsStarted(candidates=count):
                self.finalists = count
            case events.Raced(candidates=candidates, decision=decision):
                self.raced, self.decision = candidates, decision
            case events.Note(message=message):
                self.notes.append(message)
            case events.Interrupted(reason=reason):
                self.interruptions.append(reason)
            case events.Finished(decision=decision, seconds=seconds):
                self.decision, self.ended, self.seconds = decision, True, seconds

    @property
    def signalled(self) -> str:
        """The first signal that ended the search; empty if none did."""
        return next((reason for reason in self.interruptions if "SIG" in reason), "")

    def _begin_timing(self) -> None:
        """What came before says nothing about how long what comes now takes."""
        self._recent.clear()
        self._recent.append(self._clock())

    # For people.

    @property
    def progress(self) -> float:
        """The part of all candidates that has its verdict, about."""
        if not self.generations:
            return 0.0
        if self.finalists or self.ended:
            return 1.0
        part = self.done / self.of if self.of else 0.0
        return max(0.0, (self.generation - 1 + part) / self.generations)

    def settings_shown(self) -> list[tuple[str, str]]:
        """Names and values for the panel."""
        facts = [
            ("generation", self._where()),
            ("compiled", str(self.compiled)),
            ("evaluated", str(len(self.tries))),
            ("failed", self._failures() or "none"),
            (self._place, self._figures()),
        ]
        if rate := self._rate():
            facts.append(("", rate))
        if not self.ended:
            facts.append(("this generation", self._this_generation()))
        facts.append(("elapsed", minutes(self._clock() - self.started)))
        if not self.ended:
            facts.append(("left", self._left()))
        return facts

    def line(self) -> str:
        """The state after a generation, on one line."""
        name = f"generation {self.generation}/{self.generations}" if self.generation else "start"
        parts = [
            f"{self._place} {self._figures()}",
            f"this generation {self._this_generation()}",
            f"{self.compiled} compiled, {len(self.tries)} evaluated"
            + (f", failed: {failures}" if (failures := self._failures()) else ""),
            minutes(self._clock() - self.started),
        ]
        if rate := self._rate():
            parts.insert(1, rate)
        if self.generation:
            parts.append(f"{self._left()} left")
        return f"{name}: {'; '.join(parts)}"

    def finals_line(self) -> str:
        """The state after a heat of the finals, on one line."""
        rate = f"; {self._rate()}" if self._rate() else ""
        return f"finals: {self._place} {self._figures()}{rate}; {self._in_turns()}"

    def seconds_left(self) -> float | None:
        """About how long the search goes on; None while nothing says."""
        elapsed = self._clock() - self.started
        limit = math.inf if self._limit is None else max(0.0, self._limit - elapsed)
        span, count = self._recent[-1] - self._recent[0], len(self._recent) - 1
        candidates = self.of - self.done + (self.generations - self.generation) * self.of
        rest = span / count * candidates if self.generation and count else math.inf
        left = min(limit, rest)
        return left if math.isfinite(left) else None

    def _where(self) -> str:
        if self.ended:
            done = self.generation == self.generations and self.done == self.of
            return f"{'all' if done else f'ended in {self.generation}'} of {self.generations}"
        if self.interruptions:
            return "ending: running candidates finish"
        if self.finalists:
            return f"finals: {self._in_turns()}"
        if not self.generations:
            return "computing the reference"
        if not self.generation:
            return "the options that the search starts from"
        return f"{self.generation} of {self.generations}, candidate {self.done} of {self.of}"

    def _left(self) -> str:
        if self.finalists or self.interruptions:
            return "seconds"
        left = self.seconds_left()
        if left == 0.0:
            return "the finals are"
        return "?" if left is None else f"about {minutes(left)}"

    @property
    def _place(self) -> str:
        return "winner" if self.decision.in_finals or self.ended else "best so far"

    def _figures(self) -> str:
        label = "" if self.decision.in_finals or self.decision.winner is None else f" ({FIRST})"
        return f"{figures(self.decision)}{label}"

    def _rate(self) -> str:
        winner = self.decision.winner
        if self._yardstick is None or winner is None or winner.time is None:
            return ""
        return self._yardstick.describe(winner.time)

    def _in_turns(self) -> str:
        return f"{plural(self.finalists, 'candidate')} timed in turns"

    def _this_generation(self) -> str:
        if not self.current:
            return "-"
        middle = duration(median(self.current))
        return f"best {duration(min(self.current))}, median {middle} ({FIRST}s)"

    def _failures(self) -> str:
        failed = Counter(t.candidate.outcome.verdict for t in self.tries if t.best_time is None)
        return ", ".join(f"{n} {verdict.value}" for verdict, n in failed.items())


def minutes(seconds: float) -> str:
    """``45 s``, ``3 min``, ``1 h 5 min``."""
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class ProgressLines:
    """Says in lines what events tell; ``state`` has taken them before.

    ``briefly``: without those that a panel shows in place of lines.
    """

    def __init__(
        self, state: SearchState, say: Callable[[str], object], briefly: bool = False
    ) -> None:
        self._state = state
        self._say = say
        self._briefly = briefly

    def begin(self, title: str) -> None:
        """What a search is for."""
        if not self._briefly:
            self._say(f"tuning {title}")

    def report(self, event: Event) -> None:
        match event:
            case events.Resumed(generation=generation, results=results):
                self._say(
                    f"continuing in generation {generation}, with {plural(results, 'result')}"
                )
            case events.Interrupted(reason=reason, level=level):
                self._say(
                    f"{reason}: running candidates finish, then the best is saved"
                    if level == 1
                    else f"{reason} again: stopped; everything measured is saved"
                )
            case events.Note(message=message):
                self._say(message)
            case events.CandidateDone(done=done, of=of) if not self._briefly and done == of:
                self._say(self._state.line())
            case events.Raced() if not self._briefly and self._state.finalists:
                self._say(self._state.finals_line())
            case events.Finished(decision=decision):
                self._say(verdict(decision))
