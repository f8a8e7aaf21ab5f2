"""The model that a search of a def starts from: where it is found, and what it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from liking_models import FAR, likes

import tcl
from tcl.common.errors import OptionsError
from tcl.tuner.model import lookup
from tcl.tuner.run.events import Note

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"
A, B = np.ones((40, 24), np.float32), np.ones((24, 36), np.float32)
TILES = likes("tiles", 0.5)
SAID = "the search starts from the model cpu.json"

pytestmark = pytest.mark.usefixtures("searches_in_threads")


@pytest.fixture(autouse=True)
def folder(own_cache: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For the user's models; none comes with tcl."""
    monkeypatch.setattr(lookup, "SHIPPED", tmp_path / "shipped")
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def tuned(**settings: Any) -> tuple[list[bool], list[str]]:
    """Whether each candidate of the first generation has tiles, and what was said of models."""
    said: list[Any] = []
    config = tcl.TunerConfig(generations=1, population=20, threads=1, seed=1, **settings)
    result = tcl.Tuner(MM, threads=1).tune("mm", (A, B), None, config, report=said.append)
    first = [bool(c.options.nests[0].tile) for c in result.history if c.generation == 1]
    return first, [e.message for e in said if isinstance(e, Note) and "model" in e.message]


def test_a_search_starts_from_the_model_unless_it_is_told_not_to(folder: Path) -> None:
    (folder / "cpu.json").write_text(TILES)
    liked, said = tuned()
    assert said == [SAID]
    # After other lanes and register tiles, 7 on Zen 5 and 8 on Zen 4, come those that it is put to
    # the test by; one may be chosen without it.
    begin = liked.index(True)
    assert sum(liked[begin : begin + 5]) >= 4 and begin > 5
    without, said = tuned(model=False)
    assert sum(without[begin : begin + 5]) < 4 and said == []


def test_a_model_that_has_seen_nothing_like_it_is_not_asked(folder: Path) -> None:
    assert tuned()[1] == []
    (folder / "cpu.json").write_text(likes("tiles", 0.5, low=FAR / 2))
    assert tuned()[1] == []


def test_a_model_that_cannot_be_read_is_said(folder: Path) -> None:
    (folder / "cpu.json").write_text("{")
    said = tuned()[1]
    assert len(said) == 1
    assert said[0].startswith(f"the search starts from no model: the model {folder / 'cpu.json'}")


def test_varying_sizes_have_no_model(folder: Path) -> None:
    (folder / "cpu.json").write_text(TILES)
    said: list[Any] = []
    config = tcl.TunerConfig(generations=1, population=2, threads=1, seed=1)
    tuner = tcl.Tuner(MM, threads=1, varying=("M",))
    tuner.tune("mm", (A, B), None, config, report=said.append)
    assert SAID not in [e.message for e in said if isinstance(e, Note)]


def test_the_setting_is_true_or_false() -> None:
    assert not tcl.TunerConfig().model(False).settings.model
    with pytest.raises(OptionsError, match="model must be True or False, not 1"):
        tcl.TunerConfig(model=1)  # type: ignore[arg-type]
