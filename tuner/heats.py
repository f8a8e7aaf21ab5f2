"""The finals of a search, heat by heat: who is in them, and what their verdicts change."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from tcl.tuner.backend import OptionSpace, OptionsT
from tcl.tuner.events import Candidate, Event, FinalsStarted, Raced
from tcl.tuner.finals import FINALISTS, HEATS, Entrant, placed
from tcl.tuner.ledger import Ledger

Race: TypeAlias = Callable[[Sequence[OptionsT]], list[tuple[float, ...]] | None]
"""Times of candidates, taken in turns; None if there are none, and the finals end."""


def hold_finals(
    ledger: Ledger[OptionsT],
    options: OptionSpace[OptionsT],
    race: Race[OptionsT],
    report: Callable[[Event[OptionsT]], object],
    first: int = 0,
) -> None:
    """Time the fastest candidates and the incumbent in turns; the winner is the best of the
    ledger. ``first``: the number of the first heat, where a search has had finals before."""
    known = {options.to_json(c.options): c for c in ledger.history if c.time is not None}
    incumbent = next((name for name, c in known.items() if c.generation == 0), None)
    raced: dict[str, Candidate[OptionsT]] = {}
    for heat in range(first, first + HEATS):
        ranked = sorted(known, key=lambda name: known[name].time or math.inf)
        names = dict.fromkeys([*([incumbent] if incumbent else []), *ranked[:FINALISTS]])
        if len(names) < 2 or raced.keys() >= names.keys():
            return
        report(FinalsStarted(len(names)))
        times = race([known[name].options for name in names])
        if times is None:
            return
        verdict = placed([Entrant(*e) for e in zip(names, times, strict=True)], incumbent)
        for place, entrant in enumerate(verdict, start=1):
            before = known[entrant.name]
            outcome = replace(before.outcome, times=entrant.times, message="in the finals")
            candidate = replace(before, outcome=replace(outcome, heat=heat, place=place))
            known[entrant.name] = raced[entrant.name] = candidate
        ledger.store([known[entrant.name] for entrant in verdict])
        ledger.best = raced[verdict[0].name]
        report(Raced(tuple(raced.values()), ledger.best))
