"""What tests of the command line share."""

from __future__ import annotations

from functools import partial

import pytest


@pytest.fixture(autouse=True)
def _brief_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """``tcl run`` in this process takes a thousandth of a second for the time that it prints, and
    not 0.2 s: no test is about that."""
    from tcl.tuner.measure.timing import MeasureSettings, measure

    settings = MeasureSettings(sample=1e-5, budget=1e-3)
    monkeypatch.setattr("tcl.cli.run.measure", partial(measure, settings=settings))


@pytest.fixture
def brief_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands beside a winner is timed in one round: nothing is decided by it."""
    from tcl.bench.turns import interleaved

    monkeypatch.setattr("tcl.cli.tuned.interleaved", partial(interleaved, rounds=1))
