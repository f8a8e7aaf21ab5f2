"""A model as a search asks it: what it expects of configurations of one def's search space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcl.codegen.loopir import ir
from tcl.tuner.model.model import Model, Prediction
from tcl.tuner.model.subject import Subject
from tcl.tuner.model.subjects import Device, subject_type
from tcl.tuner.space.columns import Rows
from tcl.tuner.space.program_space import ProgramSpace
from tcl.tuner.space.search_space import Config


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
