"""Candidates for a def, ranked by a model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tcl.codegen.loopir import ir
from tcl.codegen.options.options import MappingOptions
from tcl.tuner.model.candidates import candidates
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.model import Model, Prediction
from tcl.tuner.model.subjects import Device, subject_type
from tcl.tuner.space.columns import Rows, different
from tcl.tuner.space.program_space import ProgramSpace


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

    def ratio(self, place: int) -> float:
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
