"""Parameters of which a part is enough in CI."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], every: int) -> list[Any]:
    """The cases as parameters of a test, in tuples if they are several: the first of so many runs
    in CI, the others are ``slow``. Where a case combines several lists, ``every`` shares no divisor
    with the length of the last, so that the part has all of their values."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if k % every == 0 else pytest.mark.slow,
        )
        for k, case in enumerate(cases)
    ]


def swept(few: Iterable[Any], many: Iterable[Any]) -> list[Any]:
    """Parameters of a test: a few that run in CI, and many more that are ``slow``."""
    return [*few, *(pytest.param(each, marks=pytest.mark.slow, id=f"slow{each}") for each in many)]
