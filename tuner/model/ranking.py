"""Candidates for a def, ranked by a model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcl.codegen.loopir import ir
from tcl.codegen.options.options import MappingOptions
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.model import Model, Prediction
from tcl.tuner.model.subject import Device, Subject, subject_type
from tcl.tuner.space.around import changes
from tcl.tuner.space.columns import Places, Rows, different
from tcl.tuner.space.program_space import ProgramSpace
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


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a model expects of the candidates of a def, the default first."""

    space: ProgramSpace
    rows: Rows
    expected: Prediction
    unseen: str | None
    """A feature of the problem or the device that lies outside of all that the model has learned
    from; None if there is none."""

    def __len__(self) -> int:
        return len(self.rows.places)

    def best(self) -> Iterator[int]:
        """The places of candidates that can be scheduled, the most promising first."""
        for place in self.expected.cautious.argsort(kind="stable").tolist():
            if self.space.space.valid(self.rows.config(place)):
                yield place

    def preferred(self) -> Iterator[int]:
        """The places of those that are worth preferring to the default, the most promising first;
        none where the model has not seen anything like it."""
        if self.unseen is None:
            for place in self.best():
                if not self.expected.worth(place, 0):
                    return
                yield place

    def options(self, place: int) -> MappingOptions:
        """A candidate's."""
        return self.space.to_options(self.rows.config(place))

    def expected_ratio(self, place: int) -> float:
        """The part of the default's time that a candidate is expected to take."""
        return math.exp(float(self.expected.logs[place] - self.expected.logs[0]))


def ranked(
    model: Model,
    program: ir.Program,
    device: Device,
    default: MappingOptions,
    count: int | None = None,
    seed: int = 0,
) -> Ranking | None:
    """Candidates around the default of a program that has just been lowered; None where there is
    nothing to choose, or knobs cannot say what the default is. Equal arguments give equal ones.

    Half of them are around the default, the others around the best of these.
    """
    subject = subject_type(device.backend).read(program, device)
    space = subject.space(program, subject.device)
    centre = space.from_options(default)
    if centre is None or not subject.covered_by(space):
        return None
    count = count or subject.count

    def described(rows: Rows) -> tuple[Rows, Floats]:
        places, features = subject.extract_rows(space, rows)
        return rows.part(places), features

    near, features = described(candidates(space.space, centre, count // 2, seed))
    first = Ranking(space, near, model.predict_rows(features), model.unseen(features[0]))
    best = next(first.preferred(), None)
    if best is None:
        return first
    wanted = count - len(near.places)
    far, more = described(candidates(space.space, near.config(best), wanted, seed + 1))
    places = np.vstack([near.places, far.places])
    unique = different(places)
    rows = Rows(space.space, places[unique])
    features = np.vstack([features, more])[unique]
    expected = model.predict_rows(features)
    return Ranking(space, rows, expected, first.unseen)


@dataclass(frozen=True, slots=True)
class SearchPrior:
    """What a search with this space starts from."""

    model: Model
    subject: Subject[Any, Any]
    space: ProgramSpace
    identity: str
    """What stands for the model's contents."""
    title: str
    """How the model is called."""

    def predict(self, configs: Sequence[Config]) -> Prediction:
        """What the model expects of configurations of the space. Those that cannot be described
        are expected to be as slow as the slowest."""
        rows = Rows.from_configs(self.space.space, configs)
        places, features = self.subject.extract_rows(self.space, rows)
        found = self.model.predict_rows(features)
        if len(places) == len(configs):
            return found
        if not len(places):
            return Prediction(np.zeros(len(configs)), np.zeros(len(configs)))
        logs, spread = (np.full(len(configs), x.max()) for x in (found.logs, found.spread))
        logs[places], spread[places] = found.logs, found.spread
        return Prediction(logs, spread)


def search_prior(
    model: Model,
    program: ir.Program,
    device: Device,
    space: ProgramSpace,
    identity: str,
    title: str,
) -> SearchPrior | None:
    """For a program that has just been lowered, and its search space; None where the model has not
    seen anything like the program or the device, or there is nothing to choose."""
    subject = subject_type(device.backend).read(program, device)
    if not subject.covered_by(space):
        return None
    default = Rows.from_configs(space.space, [space.space.default])
    _, features = subject.extract_rows(space, default)
    if not len(features) or model.unseen(features[0]) is not None:
        return None
    return SearchPrior(model, subject, space, identity, title)
