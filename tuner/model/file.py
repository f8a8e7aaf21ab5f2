"""Models as files: JSON, checked value by value. Nothing in them is ever executed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tcl.common.errors import ModelError
from tcl.common.files import open_plain, read_most
from tcl.common.interrupts import of_system
from tcl.tuner.model.model import MAX_DEPTH, Forest, Model
from tcl.tuner.model.schema import Schema
from tcl.tuner.model.subject import BACKENDS, subject_type

FORMAT = "tcl model 1"
_LARGEST = 32 << 20
_DIGITS = 5
"""Of a leaf: there are many."""


def text_of(model: Model) -> str:
    forest = model.forest
    trees = [
        {"features": f, "thresholds": t, "leaves": [float(f"{x:.{_DIGITS}g}") for x in leaves]}
        for f, t, leaves in zip(
            *(forest.features.tolist(), forest.thresholds.tolist(), forest.leaves.tolist()),
            strict=True,
        )
    ]
    about = model.schema
    schema = {"backend": about.backend, "version": about.version, "digest": about.digest}
    schema["names"] = list(about.names)
    seen = {"low": model.low.tolist(), "high": model.high.tolist()}
    data = {"format": FORMAT, "schema": schema, "seen": seen, "members": forest.members}
    return json.dumps({**data, "trees": trees}, separators=(",", ":"), allow_nan=False) + "\n"


def read(path: Path, backend: str) -> Model:
    """The model in a file, which has to be of what this backend makes kernels for. Raises
    ``ModelError``, one sentence, for anything else."""
    try:
        with open_plain(path) as file:
            data = json.loads(read_most(file, _LARGEST))
        return _model(data, backend)
    except OSError as error:
        if not of_system(error):
            raise
        raise ModelError(f"the model {path} cannot be read: {error.strerror}") from None
    except ModelError as error:
        raise ModelError(f"the model {path} {error}") from None
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise ModelError(f"the model {path} is damaged: {_said(error)}") from None


def schema_difference(
    schema: Schema[Any], names: Sequence[str], version: int, digest: str
) -> str | None:
    """In what features that were learned from differ from ours; None if they do not."""
    ours, theirs = list(schema.names), list(names)
    found = []
    if added := [n for n in ours if n not in theirs]:
        found.append(f"added since: {', '.join(added)}")
    if removed := [n for n in theirs if n not in ours]:
        found.append(f"removed since: {', '.join(removed)}")
    if not found and (moved := [n for n, o in zip(ours, theirs, strict=False) if n != o]):
        found.append(f"reordered: {', '.join(moved)}")
    if not found and len(ours) != len(theirs):
        found.append("a feature appears twice")
    if not found and (version, digest) != (now := (schema.version, schema.digest)):
        found.append(f"meanings of version {version} ({digest}), now {now[0]} ({now[1]})")
    return "its features are others (" + "; ".join(found) + ")" if found else None


def _model(data: Any, backend: str) -> Model:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"it does not say that it is a {FORMAT!r}")
    about = data["schema"]
    if about["backend"] not in BACKENDS:
        raise ValueError(f"there is no backend {about['backend']!r}")
    if about["backend"] != backend:
        ours, theirs = (subject_type(each).title for each in (backend, about["backend"]))
        raise ModelError(f"is for {theirs}; a model for {ours} is needed here")
    schema = subject_type(backend).schema
    count = len(schema.names)
    difference = schema_difference(schema, about["names"], about["version"], about["digest"])
    if difference:
        raise ModelError(f"does not fit this version of tcl: {difference}")
    trees, members = data["trees"], data["members"]
    if not all(type(m) is int and m >= 0 for m in members) or sum(members) != len(trees):
        raise ValueError("its members do not have as many trees as the file")
    depth = len(trees[0]["features"]) if trees else 1
    if not 1 <= depth <= MAX_DEPTH:
        raise ValueError(f"its trees have {depth} levels; the limit is {MAX_DEPTH}")
    features = [[_index(x, count) for x in t["features"]] for t in trees]
    forest = Forest(
        tuple(members),
        np.array(features, np.int64).reshape(len(trees), depth),
        _numbers([t["thresholds"] for t in trees], (len(trees), depth)),
        _numbers([t["leaves"] for t in trees], (len(trees), 1 << depth)),
    )
    low, high = (_numbers(data["seen"][side], (count,)) for side in ("low", "high"))
    return Model(schema, forest, low, high)


def _index(value: object, count: int) -> int:
    if type(value) is not int or not 0 <= value < count:
        raise ValueError(f"there is no feature {value!r}")
    return value


def _numbers(values: object, shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.float64]]:
    found = np.array(values)
    if found.size == 0:
        found = found.astype(np.float64)
    if found.dtype.kind not in "if" or (found.shape != shape and found.size != 0):
        raise ValueError(f"numbers of shape {shape} were expected")
    found = found.astype(np.float64).reshape(shape)
    if not np.isfinite(found).all():
        raise ValueError("a number is not finite")
    return found


def _said(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0]!r} is missing"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error).split("\n")[0]
