"""The finals of what a search has found, and the check of who wins them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Generic, TypeAlias

from tcl.common.number_format import ratio_text
from tcl.tuner.measure.backend import OptionSpace, OptionsT
from tcl.tuner.measure.machine_speed import scale, settled
from tcl.tuner.measure.race import CLEARLY, USUAL, Entrant, Rules, entering, placed, slower
from tcl.tuner.measure.reliability import Doubts
from tcl.tuner.measure.timing import Placed
from tcl.tuner.run.events import Candidate, Event, FinalsStarted, Note
from tcl.tuner.run.ledger import Ledger

IN_FINALS = "in the finals"
"""The message of what was timed in turns ..."""
AFRESH = "in the finals, by a fresh process"
"""... and of what was timed so once more."""
_UNCONFIRMED = (
    "a fresh process did not time the winner of the finals: what the search began with is the "
    "result"
)
_NEAR = 1.25
"""What a search began with is timed once more if it took up to so many times as long as the
winner."""

Race: TypeAlias = Callable[[Sequence[OptionsT]], list[Placed] | None]
"""Times of candidates, taken in turns; None if there are none, and the finals end."""


class Finals(Generic[OptionsT]):
    """The finals of what a ledger holds."""

    def __init__(
        self,
        ledger: Ledger[OptionsT],
        options: OptionSpace[OptionsT],
        report: Callable[[Event[OptionsT]], object],
        doubts: Doubts,
        rules: Rules = USUAL,
    ) -> None:
        self._rules = rules
        self._ledger = ledger
        self._options = options
        self._report = report
        self._doubts = doubts
        self._known = {options.to_json(c.options): c for c in ledger.history if c.time is not None}
        times = settled([c.outcome for c in self._known.values()])
        self._compared = dict(zip(self._known, times, strict=True))
        """Seconds to compare candidates by, whichever of them have been timed in turns."""
        self._raced: dict[str, Candidate[OptionsT]] = {}
        self._heat = 0
        """The number of the next one."""

    @property
    def _incumbent(self) -> str | None:
        """What the search began with."""
        start = self._ledger.start
        return None if start is None else self._options.to_json(start.options)

    def hold(self, race: Race[OptionsT], first: int = 0) -> None:
        """Time the fastest candidates and the incumbent in turns; the winner is the best of the
        ledger. ``first``: the number of the first heat, where a search has had finals before."""
        self._heat = first
        for _ in range(self._rules.heats):
            ranked = sorted(self._known, key=lambda name: self._compared[name] or math.inf)
            # What tells kernels apart is when each was timed.
            conditions = [self._known[name].outcome.conditions for name in ranked]
            moments = [c.moment if c is not None else None for c in conditions]
            known = zip(ranked, moments, strict=True)
            names = entering(self._incumbent, known, self._rules.finalists)
            if len(names) < 2 or self._raced.keys() >= set(names):
                return
            self._report(FinalsStarted(len(names)))
            entrants = self._timed(race, names)
            if entrants is None:
                return
            self._compare(entrants)
            verdict = placed(entrants, self._incumbent, self._rules.clearly)
            self._decide(verdict, IN_FINALS)

    def confirm(self, race: Race[OptionsT], killed: Callable[[], bool] = lambda: False) -> None:
        """Time the winner once more beside what the search began with: ``race`` does that in a
        process that has run nothing before, on memory of its own. Unless the winner is clearly
        faster there, and on no placement slower, what the search began with is the result.
        ``killed``: whether nothing is waited for any more; then the finals have decided."""
        best, own = self._ledger.best, self._incumbent
        if best is None or own is None or not self._raced:
            return
        winner = self._options.to_json(best.options)
        if winner == own:
            return
        limit = _NEAR * (self._compared[winner] or math.inf)
        starts = (
            name
            for name, candidate in self._known.items()
            if candidate.generation == 0 and name not in (winner, own)
        )
        others = [own, *(n for n in starts if (self._compared[n] or math.inf) <= limit)]
        entrants = self._timed(race, [winner, *others])
        if entrants is None:
            if not killed():
                self._report(Note(_UNCONFIRMED))
                raced = [Entrant(n, self._raced[n].outcome.placed) for n in (own, winner)]
                self._decide(raced, IN_FINALS)
            return
        challenger, *rest = entrants
        reasons = [why for other in rest if (why := why_not_faster(challenger, other))]
        if reasons:
            beaten = sorted(rest, key=lambda e: median(e.times))
            self._report(
                Note(
                    f"the winner of the finals is not what runs fastest in a fresh process: "
                    f"{reasons[0]}; what the search began with is the result"
                )
            )
            self._decide([*beaten, challenger], AFRESH)
        else:
            self._decide([challenger, *sorted(rest, key=lambda e: median(e.times))], AFRESH)

    def _timed(self, race: Race[OptionsT], names: Sequence[str]) -> list[Entrant] | None:
        times = race([self._known[name].options for name in names])
        if times is None:
            return None
        return [Entrant(*each) for each in zip(names, times, strict=True)]

    def _decide(self, verdict: Sequence[Entrant], message: str) -> None:
        """Take over a heat, its winner first."""
        for place, entrant in enumerate(verdict, start=1):
            before = self._known[entrant.name]
            measured = replace(before.outcome, times=entrant.times, placed=entrant.placed)
            outcome = replace(measured, message=message, heat=self._heat, place=place)
            self._known[entrant.name] = self._raced[entrant.name] = replace(before, outcome=outcome)
        self._heat += 1
        self._ledger.store([self._known[entrant.name] for entrant in verdict])
        self._ledger.decide(tuple(self._raced.values()), self._raced[verdict[0].name])

    def _compare(self, entrants: Sequence[Entrant]) -> None:
        """Make the times of a heat comparable to those of candidates that were not in it."""
        found = {e.name: median(e.times) for e in entrants}
        slower = scale([(t, self._compared[name] or t) for name, t in found.items()])
        self._compared.update({name: t / slower for name, t in found.items()})
        for text in self._doubts.raced(slower):
            self._report(Note(text))


def why_not_faster(one: Entrant, other: Entrant) -> str | None:
    """Why the times of one do not say that it is clearly the faster one, in words; None if they
    do."""
    behind = slower(one, other)
    if behind:
        said = (f"{ratio_text(ratio)} as long on arrays {name}" for name, ratio in behind.items())
        return f"it takes {' and '.join(said)}"
    of_rounds = median(a / b for a, b in zip(one.times, other.times, strict=False))
    # Where the machine is busy the two may differ, and what is told is that of the medians.
    ratio = max(of_rounds, median(one.times) / median(other.times))
    if ratio >= CLEARLY:
        return f"it takes {ratio_text(ratio)} as long"
    return None
