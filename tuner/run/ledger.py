"""What one search has found, and how it gets into the tuning cache: at once, whatever happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

from tcl.common.errors import CacheError
from tcl.tuner.cache.tuning_cache import CacheKey, Record, TuningCache
from tcl.tuner.measure.backend import OptionSpace, OptionsT
from tcl.tuner.run.events import (
    Candidate,
    CandidateDone,
    Decision,
    Event,
    Finished,
    NewBest,
    Note,
    Raced,
)
from tcl.tuner.run.result import TuningResult
from tcl.tuner.run.stop_requests import Watch

_PATIENCE = 4.0
"""A cache that failed is left alone for so many times as long as it took to fail."""


@dataclass(eq=False)
class Ledger(Generic[OptionsT]):
    """The candidates of one search, all of which go to the cache, where there is one.

    ``name`` is the search's, in the cache. ``report`` is told of each candidate, and once when
    the cache fails: the search goes on without it, and what could not be saved is tried again.
    """

    name: str
    options: OptionSpace[OptionsT]
    cache: TuningCache | None
    key: CacheKey | None
    entry: str
    report: Callable[[Event[OptionsT]], object]
    history: list[Candidate[OptionsT]] = field(default_factory=list)
    best: Candidate[OptionsT] | None = None
    _raced: Sequence[Candidate[OptionsT]] = ()
    _unsaved: list[tuple[Record, ...]] = field(default_factory=list)
    _saved: list[tuple[Record, ...]] = field(default_factory=list)
    _files: int = 0
    """``cache.files`` when these were saved."""
    _warned: bool = False
    _retry_at: float = 0.0

    @property
    def _place(self) -> tuple[TuningCache, CacheKey] | None:
        return None if self.cache is None or self.key is None else (self.cache, self.key)

    @property
    def start(self) -> Candidate[OptionsT] | None:
        """What the search began with, the first of it that works, as it was read first."""
        works = (c for c in self.history if c.generation == 0 and c.time is not None)
        return next(works, None)

    @property
    def decision(self) -> Decision[OptionsT]:
        return Decision.from_race(self.best, self.start, self._raced)

    def add(self, candidate: Candidate[OptionsT], done: int, of: int, *, known: bool) -> None:
        """Take over one candidate, the ``done``-th of its generation. ``known``: the cache has
        it, so that finals which were held since then have judged it."""
        if not known:
            self.store([candidate])
        self.history.append(candidate)
        time_, best = candidate.time, self.best.time if self.best is not None else None
        judged = known and self._raced
        if time_ is not None and not judged and (best is None or time_ < best):
            self.best = candidate
        self.report(CandidateDone(candidate, done, of, self.decision))
        if time_ is not None and self.best is candidate:
            self.report(NewBest(candidate, time_))

    def decide(self, raced: Sequence[Candidate[OptionsT]], best: Candidate[OptionsT]) -> None:
        """Take over a verdict of the finals: everybody with these times, and who is first."""
        self._raced, self.best = tuple(raced), best
        self.report(Raced(self._raced, self.decision))

    def store(self, candidates: Sequence[Candidate[OptionsT]]) -> None:
        """Save measurements: all of them at once."""
        if self._place is not None:
            to_json, now = self.options.to_json, time.time()
            records = (
                Record.from_outcome(to_json(c.options), c.outcome, now, self.name, c.generation)
                for c in candidates
            )
            self._unsaved.append(tuple(records))
            self.flush()

    def flush(self, *, last: bool = False) -> None:
        """Save what is not saved yet; ``last``: now or never."""
        began = time.monotonic()
        if self._place is None or (began < self._retry_at and not last):
            return
        cache, key = self._place
        try:
            while self._unsaved:
                cache.add(key, self._unsaved[0], entry=self.entry)
                self._saved.append(self._unsaved.pop(0))
            if self._saved and cache.files != self._files:  # deleted, or damaged and set aside
                cache.add(key, [r for each in self._saved for r in each])
                self._files = cache.files
        except CacheError as error:
            self.warn(str(error), began)

    def result(self, watch: Watch) -> TuningResult[OptionsT]:
        """What a search found that is over, which is reported."""
        seconds, interrupted = watch.seconds, watch() > 0
        self.report(Finished(self.decision, seconds, interrupted))
        return TuningResult(
            self.decision,
            tuple(self.history),
            interrupted,
            seconds,
            self.name,
            sum(map(len, self._unsaved)),
        )

    def save_state(self, config: Mapping[str, object], state: Mapping[str, object]) -> None:
        """Keep what a resumed search needs."""
        began = time.monotonic()
        if self._place is None or began < self._retry_at:
            return
        cache, key = self._place
        try:
            cache.save_run(key, self.name, config=config, state=state)
        except CacheError as error:
            self.warn(str(error), began)

    def warn(self, message: str, began: float) -> None:
        """Say once that the cache does not work, and let it rest: each try may wait for a lock,
        as this one did since ``began``."""
        now = time.monotonic()
        self._retry_at = now + _PATIENCE * (now - began)
        if not self._warned:
            self._warned = True
            self.report(Note(message))
