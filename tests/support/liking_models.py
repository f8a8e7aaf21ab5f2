"""Models that like one thing, to see whether somebody asks them."""

from __future__ import annotations

import numpy as np

from tcl.tuner.model.file import text_of
from tcl.tuner.model.model import Forest, Model
from tcl.tuner.model.subject import subject_type

FAR = 1e9


def likes(
    feature: str, above: float, log: float = -2.0, low: float = -FAR, backend: str = "cpu"
) -> str:
    """A model that thinks candidates of which a feature is larger to take e^log of the time."""
    schema = subject_type(backend).schema
    names = schema.names
    tree = np.array([[names.index(feature)]]), np.array([[above]]), np.array([[0.0, log]])
    ends = np.full(len(names), low), np.full(len(names), FAR)
    return text_of(Model(schema, Forest((1,), *tree), *ends))
