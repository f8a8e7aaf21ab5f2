"""The finals of what a search has found: sessions in fresh processes, until it is sure who wins."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Generic, TypeAlias

from tcl.common.number_format import plural, printable
from tcl.tuner.measure import paired
from tcl.tuner.measure.backend import OptionSpace, OptionsT
from tcl.tuner.measure.reliability import Doubts, scale, settled
from tcl.tuner.measure.timing import Placed
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.run.events import Candidate, Event, FinalsStarted, Note
from tcl.tuner.run.ledger import Ledger

IN_FINALS = "in the finals"
"""How the message of what was timed in turns begins."""
_UNTIMED = (
    "no process timed the fastest candidate beside the starting point, so the starting point "
    "is the result"
)

Race: TypeAlias = Callable[[Sequence[OptionsT]], Sequence[Placed | Outcome] | None]
"""A session, in a process of its own: times of candidates, taken in turns, or how one failed. None
if there are none: the process ended, or nobody waits any more."""


@dataclass(eq=False)
class Finals(Generic[OptionsT]):
    """The finals of what a ledger holds."""

    ledger: Ledger[OptionsT]
    options: OptionSpace[OptionsT]
    report: Callable[[Event[OptionsT]], object]
    doubts: Doubts
    rules: paired.RaceRules = paired.USUAL

    def __post_init__(self) -> None:
        working = (c for c in self.ledger.history if c.time is not None)
        self._known = {self.options.to_json(c.options): c for c in working}
        self._raced: dict[str, Candidate[OptionsT]] = {}
        """With the times that decide."""
        self._failed: dict[str, Outcome] = {}
        self._heat = 0
        """The number of the next verdict."""

    def hold_race(
        self,
        race: Race[OptionsT],
        first: int = 0,
        going_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """Hold sessions of the fastest candidates and the incumbent until they decide who wins,
        who then is the best of the ledger. ``first``: the number of the first verdict, where a
        search has had finals before. ``going_on``: whether another session may begin."""
        self._heat = first
        field = self._field()
        # What fails in a fresh process is out, what the search began with as well.
        while len(field) > 1 and not self._held(field, race, going_on):
            field = [name for name in field if name not in self._failed]

    def _held(
        self, field: Sequence[str], race: Race[OptionsT], going_on: Callable[[], bool]
    ) -> bool:
        """Sessions with the first of the field as the incumbent; False if it failed."""
        incumbent, *open_ = field
        sessions, found, began = paired.Sessions(), None, time.monotonic()
        for held in range(1, self.rules.most + 1):
            self.report(FinalsStarted(len(open_) + 1))
            found = self._session(sessions, race, incumbent, open_, going_on) or found
            if incumbent in self._failed:
                return False
            if found is None:
                break
            open_ = [name for name in found.open if name not in self._failed]
            enough = not open_ or (found.settled and held >= self.rules.least)
            if enough or not going_on() or time.monotonic() - began > self.rules.seconds:
                break
        if found is None:
            self.report(Note(_UNTIMED))
            self._decide([incumbent], {incumbent: self._known[incumbent].outcome})
        elif open_ and found.order[0] == incumbent:
            likely = sessions.compare(open_[0], incumbent)
            if likely.ratio < self.rules.clearly:
                self.report(Note(_unsure(likely, sessions.count(open_[0]))))
        return True

    def _session(
        self,
        sessions: paired.Sessions,
        race: Race[OptionsT],
        incumbent: str,
        challengers: Sequence[str],
        going_on: Callable[[], bool],
    ) -> paired.Standing | None:
        """What is known after one more session; None if that could not be held. Who fails in it is
        out; where a process ended, each challenger is tried alone, so that the one is out that
        ended it."""
        names = [incumbent, *challengers]
        found = race([self._known[name].options for name in names])
        if found is None:
            if len(challengers) == 1:
                self._failed[challengers[0]] = Outcome(Verdict.RUNTIME)
                return None
            alone = ([name] for name in challengers if going_on())
            each = [self._session(sessions, race, incumbent, one, going_on) for one in alone]
            return next((s for s in reversed(each) if s is not None), None)
        results = dict(zip(names, found, strict=True))
        failed = {name: each for name, each in results.items() if isinstance(each, Outcome)}
        if failed:
            self._failed |= failed
            self.ledger.store([replace(self._known[n], outcome=o) for n, o in failed.items()])
        if incumbent in failed:
            return None
        sessions.add({n: each for n, each in results.items() if not isinstance(each, Outcome)})
        timed = [name for name in self._known if sessions.count(name) and name not in self._failed]
        if not self._raced:
            pairs = [(geometric_mean(sessions.seconds(n)), self._compared[n]) for n in timed]
            for text in self.doubts.raced(scale(pairs)):
                self.report(Note(text))
        known = paired.standing(sessions, timed, incumbent, self.rules.clearly)
        now = {n: self._decided_outcome(sessions, n, incumbent) for n in names if n not in failed}
        self._decide(known.order, now)
        return known

    def _field(self) -> list[str]:
        """The incumbent and its challengers, the fastest first."""
        times = settled([c.outcome for c in self._known.values()])
        self._compared = {n: t or math.inf for n, t in zip(self._known, times, strict=True)}
        ranked = sorted(self._known, key=lambda name: self._compared[name])
        if not ranked:
            return []
        least = self._compared[ranked[0]]
        limit = max(self.rules.near * least, self._compared[ranked[: paired.FEWEST][-1]])
        near = [name for name in ranked if self._compared[name] <= limit]
        # What tells kernels apart is when each was timed.
        conditions = [self._known[name].outcome.conditions for name in near]
        moments = [c.moment if c is not None else None for c in conditions]
        start = self.ledger.start
        own = None if start is None else self.options.to_json(start.options)
        placements = len(self._known[ranked[0]].outcome.placements) or 1
        room = self.rules.room(least, placements)
        return paired.entering(own, zip(near, moments, strict=True), room)

    def _decided_outcome(self, sessions: paired.Sessions, name: str, incumbent: str) -> Outcome:
        """A kernel's time as the decision has it: the incumbent's, times the ratio of both; its
        samples are those of the sessions."""
        own = sessions.seconds(incumbent)
        ratios = [sessions.compare(name, incumbent, part) for part in range(len(own))]
        seconds = [t * c.ratio for t, c in zip(own, ratios, strict=True)]
        placed = zip(sessions.placements(incumbent), seconds, strict=True)
        message = f"{IN_FINALS}, in turns in {plural(sessions.count(name), 'session')}"
        if name != incumbent:
            whole = sessions.compare(name, incumbent)
            error = whole.ratio * paired.SURE * whole.error
            message += f": {whole.ratio:.3f} ± {error:.3f} times as long as the starting point"
        return replace(
            self._known[name].outcome,
            times=tuple(geometric_mean(own) * r for r in sessions.ratios(name, incumbent)),
            placed=tuple((place, (t,)) for place, t in placed),
            message=message,
        )

    def _decide(self, order: Sequence[str], outcomes: Mapping[str, Outcome]) -> None:
        """Take over a verdict, its winner first. Those without an outcome were dropped before."""
        now = [name for name in order if name in outcomes]
        for place, name in enumerate(now, start=1):
            outcome = replace(outcomes[name], heat=self._heat, place=place)
            self._raced[name] = replace(self._known[name], outcome=outcome)
        self._heat += 1
        self.ledger.store([self._raced[name] for name in now])
        self.ledger.decide([self._raced[n] for n in order], self._raced[order[0]])


def _unsure(likely: paired.PairedComparison, sessions: int) -> str:
    return printable(
        f"the starting point is the result: the fastest candidate takes {likely.ratio:.2f} ± "
        f"{likely.ratio * paired.SURE * likely.error:.2f} times as long, which is not certain "
        f"after {plural(sessions, 'session')}"
    )
