"""A sample of ``cached_calls``: none fails, none is wrong, and each entry is warned about once."""

from __future__ import annotations

from pathlib import Path

import pytest
from cached_calls import run

from tcl.common import warn


def test_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(warn, "_told", set())
    found = run(calls=3000, count=8, layouts=4, folder=tmp_path, seed=1)
    assert found["right"] == 3000 and found["wrong"] == 0
    assert found["cached options do not apply"] > 0
    assert found["warnings while calls were repeated"] == 0
