"""A model as a search asks it: what it expects of configurations of one def's search space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.tuner.model.model import Model, Prediction
from tcl.tuner.model.ranking import described
from tcl.tuner.model.subject import Subject
from tcl.tuner.space.columns import Rows
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.tuner.space.search_space import Config


@dataclass(frozen=True, slots=True)
class SearchPrior:
    """What a search with this space starts from."""

    model: Model
    subject: Subject
    space: MappingSpace
    identity: str
    """What stands for the model's contents."""
    title: str
    """How the model is called."""

    def predict(self, configs: Sequence[Config]) -> Prediction:
        """What the model expects of configurations of the space."""
        rows = Rows.of(self.space.space, configs)
        return self.model.of_rows(*described(self.subject, self.space, rows))


def search_prior(
    model: Model,
    program: ir.Program,
    device: CpuProfile,
    space: MappingSpace,
    identity: str,
    title: str,
) -> SearchPrior | None:
    """For a program that has just been lowered, and its search space; None where the model has not
    seen anything like the program or the device, or there is nothing to choose."""
    subject = Subject.of(program, device)
    if not subject.nests or not {n.position for n in subject.nests} <= space.positions:
        return None
    default = Rows.of(space.space, [space.space.default])
    features, _ = described(subject, space, default)
    if model.unseen(features[0]) is not None:
        return None
    return SearchPrior(model, subject, space, identity, title)
