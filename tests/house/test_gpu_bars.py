"""What the pages say of the bars of GPU kernels is what the committed counts come to."""

# The folder of the benchmarks is not where pytest looks by itself.

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from places import ROOT

if not (ROOT / "benchmarks").is_dir():
    pytest.skip("benchmarks are in the source tree only", allow_module_level=True)
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from benchmarks.gpu.bars import Bar, bars


def result(name: str) -> Any:
    path = ROOT / "benchmarks" / "results" / f"2026-11-27-{name}.json"
    return json.loads(path.read_text("utf-8"))


def test_the_committed_bars_are_those_of_the_committed_counts() -> None:
    """If this fails: ``python -m benchmarks.gpu.bars``."""
    code, sass = result("machine-code")["kernels"], result("counters-sass")
    found = [*bars(result("counters")["kernels"], code, sass)]
    kept = result("gpu-bars")["bars"]
    assert [b.name for b in found] == [line["bar"] for line in kept]
    for bar, line in zip(found, kept, strict=True):
        assert bar.values == pytest.approx(line["rows"])
        assert len(bar.values) - len(bar.missed) == line["met"], bar.name


def test_a_bar_is_missed_on_either_side() -> None:
    bar = Bar("a share", 1.0, {"low": 0.44, "at it": 0.45, "rounded": 0.4496, "high": 1.2}, 0.45)
    assert list(bar.missed) == ["low", "high"]
