"""Models as files: what is written is read again, and anything else is refused in a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from liking_models import likes

from tcl.common.errors import ModelError
from tcl.tuner.model.cpu_features import SCHEMA
from tcl.tuner.model.file import read, text_of
from tcl.tuner.model.model import Forest, Model


def model(trees: int = 6, depth: int = 3) -> Model:
    rng = np.random.default_rng(1)
    forest = Forest(
        (trees // 2, trees - trees // 2),
        rng.integers(0, len(SCHEMA.names), (trees, depth)),
        rng.normal(size=(trees, depth)),
        rng.normal(size=(trees, 1 << depth)).round(2),
    )
    low = rng.normal(size=len(SCHEMA.names))
    return Model(SCHEMA, forest, low, low + 1)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    before, path = model(), tmp_path / "m.json"
    path.write_text(text_of(before))
    after = read(path, "cpu")
    rows = np.random.default_rng(2).normal(size=(50, len(SCHEMA.names)))
    assert np.array_equal(after.forest.predict(rows), before.forest.predict(rows))
    assert np.array_equal(after.low, before.low) and np.array_equal(after.high, before.high)
    assert text_of(after) == text_of(before)


def test_trees_say_what_going_through_them_says() -> None:
    forest = model().forest
    rows = np.random.default_rng(3).normal(size=(20, len(SCHEMA.names)))
    for n, row in enumerate(rows):
        expected = [0.0, 0.0]
        for tree in range(6):
            asked = zip(forest.features[tree], forest.thresholds[tree], strict=True)
            leaf = sum(int(row[f] > t) << level for level, (f, t) in enumerate(asked))
            expected[tree // 3] += forest.leaves[tree][leaf]
        assert forest.predict(rows)[:, n] == pytest.approx(expected)
        assert np.array_equal(forest.predict(row[None])[:, 0], forest.predict(rows)[:, n])


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    data = json.loads(text_of(model()))
    change(data)
    return json.dumps(data)


def _renamed(data: dict[str, Any]) -> None:
    data["schema"]["names"][2] = "heat"


def _swapped(data: dict[str, Any]) -> None:
    names = data["schema"]["names"]
    names[0], names[1] = names[1], names[0]


DAMAGE = {
    "nothing": ("", "is damaged: Expecting value"),
    "cut short": (text_of(model())[:500], "is damaged: "),
    "another file": ("[1, 2]", "is damaged: it does not say that it is a 'tcl model 1'"),
    "no trees": (changed(lambda d: d.pop("trees")), "is damaged: 'trees' is missing"),
    "a tree less": (
        changed(lambda d: d["trees"].pop()),
        "is damaged: its members do not have as many trees as the file",
    ),
    "an unknown feature": (
        changed(lambda d: d["trees"][0]["features"].__setitem__(0, 999)),
        "is damaged: there is no feature 999",
    ),
    "a text for a number": (
        changed(lambda d: d["trees"][1]["leaves"].__setitem__(0, "1")),
        "is damaged: numbers of shape (6, 8) were expected",
    ),
    "no number": (
        changed(lambda d: d["seen"]["low"].__setitem__(0, float("nan"))),
        "is damaged: a number is not finite",
    ),
    "nested": ("[" * 100_000, "is damaged: "),
    "added and removed": (
        changed(_renamed),
        "does not fit this version of tcl: its features are others "
        "(added since: intensity; removed since: heat)",
    ),
    "reordered": (
        changed(_swapped),
        "does not fit this version of tcl: its features are others (reordered: flops, bytes)",
    ),
    "an unknown backend": (
        changed(lambda d: d["schema"].__setitem__("backend", "tpu")),
        "is damaged: there is no backend 'tpu'",
    ),
    "of GPUs": (
        likes("threads", 1, backend="cuda"),
        "is for GPUs; a model for CPUs is needed here",
    ),
    "other meanings": (
        changed(lambda d: d["schema"].__setitem__("version", 0)),
        "does not fit this version of tcl: its features are others (meanings of version 0 "
        f"({SCHEMA.digest}), now 1 ({SCHEMA.digest}))",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_anything_else_is_refused(case: str, tmp_path: Path) -> None:
    text, message = DAMAGE[case]
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(ModelError) as caught:
        read(path, "cpu")
    assert str(caught.value).startswith(f"the model {path} {message}")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot be read: No such file or directory$"):
        read(tmp_path / "none.json", "cpu")
