"""Results of one key, best first.

Of options that were measured several times the last record counts, so that one lucky sample, or a
verdict that was since refuted, does not win for ever. Finals outrank the clock: there the fastest
were timed in turns, and ties went to the incumbent. So who lost in the finals does not come before
who beat it, and nor does anybody who took part in that search and did not get so far, however
lucky its time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tcl.common.dataclass import dataclass
from tcl.tuner.measure.verdict import Conditions, Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Record:
    """One measurement of one candidate."""

    options: str
    """As JSON."""
    verdict: Verdict
    time: float | None
    """Seconds per call; None unless correct. See ``Outcome.time``."""
    samples: tuple[float, ...]
    message: str
    when: float
    """Seconds since the epoch."""
    run: str
    """Identity of the tuner run."""
    heat: int | None = None
    """Which heat of the run's finals this was measured in; None outside of the finals."""
    place: int | None = None
    """The place that this heat's verdict gave, from 1; None outside of the finals."""
    generation: int | None = None
    """Of its run, from 1; 0 for what the search started from; None if it is not known."""
    conditions: Conditions | None = None
    """Of the machine meanwhile, if they are known."""
    placed: tuple[tuple[str, tuple[float, ...]], ...] = ()
    """The samples on each placement of the arrays, by its name; empty if that is not known."""

    @classmethod
    def from_outcome(
        cls, options: str, outcome: Outcome, when: float, run: str, generation: int | None = None
    ) -> Record:
        measured = (outcome.verdict, outcome.time, tuple(outcome.times), outcome.message)
        finals = (outcome.heat, outcome.place)
        meanwhile = outcome.conditions
        return cls(options, *measured, when, run, *finals, generation, meanwhile, outcome.placed)

    @property
    def outcome(self) -> Outcome:
        """What the evaluation found."""
        measured = (self.verdict, self.samples, self.message, self.heat, self.place)
        return Outcome(*measured, conditions=self.conditions, placed=self.placed)


def history(records: Iterable[Record]) -> tuple[Record, ...]:
    """Every record: correct ones first, fastest first, then failures, oldest first."""
    return tuple(sorted(records, key=lambda r: (math.inf if r.time is None else r.time, r.when)))


def ranked(records: Iterable[Record]) -> tuple[Record, ...]:
    """The correct options, best first, each with its last record."""
    return tuple(record for _, record in ranks(records))


def ranks(records: Iterable[Record]) -> list[tuple[float, Record]]:
    """As ``ranked``, with the seconds that decide about each: at least those of its record."""
    oldest_first = sorted(records, key=lambda r: r.when)
    last = {record.options: record for record in oldest_first}
    times = {r.options: r.time for r in last.values() if r.time is not None}
    settled: dict[str, float] = {}
    champions: dict[str, tuple[float, float]] = {}
    for heat in heats(oldest_first):
        run, when = heat[0].run, heat[-1].when
        ahead, _ = champions.get(run, (0.0, when))
        for options in (record.options for record in heat):
            if options in times:
                settled.setdefault(options, max(times[options], ahead))
                ahead = max(ahead, settled[options])
                champions.setdefault(run, (ahead, when))
    places = {options: place for place, options in enumerate(settled)}

    def rank(options: str) -> tuple[float, float, float]:
        record = last[options]
        least, until = champions.get(record.run, (0.0, 0.0))
        time = max(times[options], least if record.when <= until else 0.0)
        return settled.get(options, time), places.get(options, math.inf), record.when

    return [(rank(options)[0], last[options]) for options in sorted(times, key=rank)]


def winners(records: Iterable[Record]) -> frozenset[str]:
    """The options that the searches ended with: one of each that found something."""
    of_runs: dict[str, list[Record]] = {}
    for record in records:
        of_runs.setdefault(record.run, []).append(record)
    return frozenset(best.options for run in of_runs.values() for best in ranked(run)[:1])


def heats(records: Iterable[Record]) -> list[list[Record]]:
    """The records of each heat in the order of its verdict, the newest heat first."""
    found: dict[tuple[str, int], list[Record]] = {}
    for record in sorted(records, key=lambda r: r.when, reverse=True):
        if record.heat is not None and record.place is not None:
            found.setdefault((record.run, record.heat), []).append(record)
    return [sorted(heat, key=lambda r: r.place or 0) for heat in found.values()]
