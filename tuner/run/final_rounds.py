"""The finals of a search, heat by heat: who is in them, and what their verdicts change."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Generic, TypeAlias

from tcl.tuner.measure.backend import OptionSpace, OptionsT
from tcl.tuner.measure.finals import HEATS, Entrant, entering, placed
from tcl.tuner.measure.machine_speed import scale, settled
from tcl.tuner.measure.reliability import Doubts
from tcl.tuner.run.events import Candidate, Event, FinalsStarted, Note
from tcl.tuner.run.ledger import Ledger

Race: TypeAlias = Callable[[Sequence[OptionsT]], list[tuple[float, ...]] | None]
"""Times of candidates, taken in turns; None if there are none, and the finals end."""


class Finals(Generic[OptionsT]):
    """The finals of what a ledger holds."""

    def __init__(
        self,
        ledger: Ledger[OptionsT],
        options: OptionSpace[OptionsT],
        report: Callable[[Event[OptionsT]], object],
        doubts: Doubts,
    ) -> None:
        self._ledger = ledger
        self._options = options
        self._report = report
        self._doubts = doubts
        self._known = {options.to_json(c.options): c for c in ledger.history if c.time is not None}
        times = settled([c.outcome for c in self._known.values()])
        self._compared = dict(zip(self._known, times, strict=True))
        """Seconds to compare candidates by, whichever of them have been timed in turns."""
        self._raced: dict[str, Candidate[OptionsT]] = {}

    def hold(self, race: Race[OptionsT], first: int = 0) -> None:
        """Time the fastest candidates and the incumbent in turns; the winner is the best of the
        ledger. ``first``: the number of the first heat, where a search has had finals before."""
        start = self._ledger.start
        incumbent = None if start is None else self._options.to_json(start.options)
        for heat in range(first, first + HEATS):
            ranked = sorted(self._known, key=lambda name: self._compared[name] or math.inf)
            # What tells kernels apart is when each was timed.
            conditions = [self._known[name].outcome.conditions for name in ranked]
            moments = [c.moment if c is not None else None for c in conditions]
            names = entering(incumbent, zip(ranked, moments, strict=True))
            if len(names) < 2 or self._raced.keys() >= set(names):
                return
            self._report(FinalsStarted(len(names)))
            times = race([self._known[name].options for name in names])
            if times is None:
                return
            entrants = [Entrant(*each) for each in zip(names, times, strict=True)]
            self._compare(entrants)
            verdict = placed(entrants, incumbent)
            for place, entrant in enumerate(verdict, start=1):
                before = self._known[entrant.name]
                outcome = replace(before.outcome, times=entrant.times, message="in the finals")
                candidate = replace(before, outcome=replace(outcome, heat=heat, place=place))
                self._known[entrant.name] = self._raced[entrant.name] = candidate
            self._ledger.store([self._known[entrant.name] for entrant in verdict])
            self._ledger.decide(tuple(self._raced.values()), self._raced[verdict[0].name])

    def _compare(self, entrants: Sequence[Entrant]) -> None:
        """Make the times of a heat comparable to those of candidates that were not in it."""
        found = {e.name: median(e.times) for e in entrants}
        slower = scale([(t, self._compared[name] or t) for name, t in found.items()])
        self._compared.update({name: t / slower for name, t in found.items()})
        for text in self._doubts.raced(slower):
            self._report(Note(text))
