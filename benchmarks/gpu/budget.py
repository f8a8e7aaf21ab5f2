"""How long a run may take, and what still fits."""

from __future__ import annotations

import time
from collections.abc import Callable

_LEAST = 20.0
"""Seconds that a request gets even when the time is up."""
_FIRST = 20.0
"""Seconds that a row is expected to take before any was measured."""


class Budget:
    """Seconds of a whole run. A row is begun if the slowest of the last few would still fit."""

    def __init__(
        self,
        seconds: float | None,
        reserve: float = 20.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``reserve`` is kept for what comes after the last row; None: as long as it takes."""
        self._now = now
        self._begin = now()
        self._end = None if seconds is None else self._begin + seconds - reserve
        self._last: list[float] = []

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return self._now() - self._begin

    @property
    def left(self) -> float:
        """Seconds that may still be used."""
        return float("inf") if self._end is None else max(0.0, self._end - self._now())

    def took(self, seconds: float) -> None:
        """Note how long a row took."""
        self._last = [*self._last[-2:], seconds]

    def fits(self) -> bool:
        """Whether there is time for another row."""
        return self.left >= max(self._last, default=_FIRST)

    def within(self, seconds: float) -> float:
        """A time limit for one request: this, or less if less is left, within reason: what was
        begun should end well."""
        return min(seconds, max(_LEAST, self.left))
