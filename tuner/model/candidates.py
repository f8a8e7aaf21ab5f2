"""Candidates worth ranking: what is around the default, drawn for many at once."""

from __future__ import annotations

import numpy as np

from tcl.tuner.space.around import changes
from tcl.tuner.space.columns import Places, Rows, different
from tcl.tuner.space.search_space import Config, SearchSpace

_KNOBS = (2, 2, 2, 3, 4)
"""How many knobs those change that change more than one."""


def candidates(space: SearchSpace, centre: Config, count: int, seed: int = 0) -> Rows:
    """Up to ``count`` different configurations, ``centre`` first, then what differs from it in one
    knob, nearest first, then some that differ in two to four. Equal arguments give equal ones.

    All of them are worth trying, as far as the space's heuristics say; whether they can be
    scheduled takes longer to tell, and is asked of those that are taken.
    """
    start = Rows.from_configs(space, [centre]).places[0]
    choice = [{value: k for k, value in enumerate(knob.choices)} for knob in space.knobs]
    single = [c for same in changes(space.knobs, centre) for c in same]
    knobs = np.array([place for place, _ in single], np.intp)
    values = np.array([choice[place][value] for place, value in single], np.intp)
    ones = np.tile(start, (len(single), 1))
    ones[np.arange(len(single)), knobs] = values
    left = max(0, count - 1 - len(single)) if single else 0
    rng = np.random.default_rng(seed)
    # A knob is as likely as any other, whatever number of choices it has.
    open_, first, sizes = np.unique(np.sort(knobs), return_index=True, return_counts=True)
    of_knob = np.argsort(knobs, kind="stable")
    many = np.tile(start, (left, 1))
    wanted = rng.choice(_KNOBS, left) if left else np.zeros(0, np.intp)
    for turn in range(max(_KNOBS)):
        rows = np.flatnonzero(wanted > turn)
        which = rng.integers(len(open_), size=len(rows)) if len(rows) else rows
        picked = of_knob[first[which] + (rng.random(len(rows)) * sizes[which]).astype(np.intp)]
        many[rows, knobs[picked]] = values[picked]
    places = np.vstack([start[None], ones, many])
    found = Rows(space, places[different(places)][:count])
    return found.part(_worth_trying(space, found))


def _worth_trying(space: SearchSpace, rows: Rows) -> Places:
    """Those that no heuristic is against; the first one stays."""
    kept = np.ones(len(rows.places), np.bool_)
    for heuristic in space.heuristics:
        column = rows.part(np.flatnonzero(kept)).column(heuristic)
        kept[kept] = np.array([reason is None for reason in column.values])[column.codes]
    kept[0] = True
    return np.flatnonzero(kept)
