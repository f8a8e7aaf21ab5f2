"""What tests of the command line share."""

from __future__ import annotations

from functools import partial

import pytest


@pytest.fixture
def brief_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands beside a winner is timed in one round: nothing is decided by it."""
    from tcl.bench.turns import interleaved

    monkeypatch.setattr("tcl.cli.tuned.interleaved", partial(interleaved, rounds=1))
