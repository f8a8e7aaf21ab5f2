"""Candidates for a def, ranked by a model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import MappingOptions
from tcl.tuner.model.candidates import candidates
from tcl.tuner.model.features import extract_columns
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.model import Model, Prediction
from tcl.tuner.model.subject import Subject
from tcl.tuner.space.columns import Rows
from tcl.tuner.space.cpu.mapping import MappingSpace

COUNT = 400
"""Candidates that are ranked where nobody says how many."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a model expects of the candidates of a def, the default first."""

    space: MappingSpace
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

    def ratio(self, place: int) -> float:
        """The part of the default's time that a candidate is expected to take."""
        return math.exp(float(self.expected.logs[place] - self.expected.logs[0]))


def ranked(
    model: Model,
    program: ir.Program,
    device: CpuProfile,
    default: MappingOptions,
    count: int = COUNT,
    seed: int = 0,
) -> Ranking | None:
    """Candidates around the default of a program that has just been lowered; None where there is
    nothing to choose, or knobs cannot say what the default is. Equal arguments give equal ones.

    Half of them are around the default, the others around the best of these.
    """
    subject = Subject.of(program, device)
    space = MappingSpace(program, subject.device)
    centre = space.from_options(default)
    if centre is None or not {n.position for n in subject.nests} <= space.positions:
        return None
    near = candidates(space.space, centre, count // 2, seed)
    features, seconds = described(subject, space, near)
    first = Ranking(space, near, model.of_rows(features, seconds), model.unseen(features[0]))
    best = next(first.preferred(), None)
    if best is None:
        return first
    far = candidates(space.space, near.config(best), count - len(near.places), seed + 1)
    places = np.vstack([near.places, far.places])
    unique = np.sort(np.unique(places, axis=0, return_index=True)[1])
    rows = Rows(space.space, places[unique])
    more, longer = described(subject, space, far)
    features = np.vstack([features, more])[unique]
    expected = model.of_rows(features, np.concatenate([seconds, longer])[unique])
    return Ranking(space, rows, expected, first.unseen)


def described(subject: Subject, space: MappingSpace, rows: Rows) -> tuple[Floats, Floats]:
    """Features (N x F) of rows of the subject's space, and the seconds that the analytic model
    expects of each (N)."""
    columns = space.columns(rows)
    own = [columns[nest.position] for nest in subject.nests]
    return extract_columns(subject, len(rows.places), own)
