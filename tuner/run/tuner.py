"""The tuner: a strategy proposes, a pool compiles, one process verifies and times."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Generic

from tcl.common.errors import CacheError
from tcl.tuner.cache.nearby import opening_configs
from tcl.tuner.cache.tuning_cache import CacheKey, TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.measure.backend import Backend, OptionSpace, OptionsT
from tcl.tuner.measure.evaluate import Reference
from tcl.tuner.measure.timing import MeasureSettings
from tcl.tuner.run.checkpoint import SavedSearch, kept, knobs_of
from tcl.tuner.run.events import Candidate, Event, Interrupted, Note
from tcl.tuner.run.ledger import Ledger
from tcl.tuner.run.pipeline import CandidatePipeline, Compiling, compile_all
from tcl.tuner.run.result import TuningResult
from tcl.tuner.run.search_loop import Search
from tcl.tuner.run.stop_requests import FINISH, KILL, Interrupts, Watch
from tcl.tuner.run.workplace import (
    Here,
    Orders,
    Workplace,
    awaited_reference,
    check_cores,
    first_pools,
)
from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies.screened import NamedPrior
from tcl.workers.pool import WorkerPool

REFERENCE = 10.0
"""Seconds that the reference may take, however soon the search is to end."""
_LONGEST = 60.0
"""Seconds of the reference, which is plain code, by which a candidate's time is bounded at most:
where all elements would take it hours, a kernel that hangs is still ended within minutes."""
_PROMISING = 0.4
"""Of the first generation, candidates with other lanes and register tiles that open it, at most."""
_SILENT = 3.0
"""Seconds after which the user is told that the reference takes a while."""
_WAITING = "the reference, plain code that every kernel is compared with, takes a while to compute"
_UNFINISHED = (
    "the reference did not finish: only the starting point is timed, and its results are not "
    "checked"
)
_NOT_CONTINUED = "the reference did not finish: the search is as it was, with its earlier results"
_ANOTHER_MODEL = (
    "the search started from another model than the current one: it continues without a model"
)


@dataclass(eq=False)
class Tuner(Generic[OptionsT]):
    """Searches for the fastest options of one def, on one set of inputs, for one device.

    With ``cache`` and ``key``, every measurement is stored there the moment it is known, and the
    best ones stored before open the search. ``entry`` is the def's name, for listings.
    Kernels are measured on ``measure_cores`` cores, on which nothing is compiled meanwhile: there,
    candidates are compiled and measured in turns. ``workplace``: where all that happens, if not on
    this machine. ``prior``: the model that a ``screened`` search starts from, unless the settings
    say otherwise. ``OptionsError`` for settings that do not fit each other, ``ArgumentError`` for
    more cores than there are, ``ValueError`` for a cache without a key.
    """

    backend: Backend[OptionsT]
    options: OptionSpace[OptionsT]
    _: KW_ONLY
    config: TunerConfig = field(default_factory=TunerConfig)
    cache: TuningCache | None = None
    key: CacheKey | None = None
    entry: str = ""
    timing: MeasureSettings = field(default_factory=MeasureSettings)
    measure_cores: int = 1
    workplace: Workplace | None = None
    prior: NamedPrior | None = None

    def __post_init__(self) -> None:
        if self.workplace is None:
            check_cores(self.measure_cores)
        if self.cache is not None and self.key is None:
            raise ValueError("a cache needs a key")
        self._settings = self.config.settings
        self._settings.check()
        self._interrupts = Interrupts()

    def stop(self, *, kill: bool = False) -> None:
        """From any thread: end the search as Ctrl+C does; ``kill``: as pressing it twice does."""
        self._interrupts.request(KILL if kill else FINISH, "stop")

    def tune(
        self,
        start: Sequence[OptionsT] = (),
        report: Callable[[Event[OptionsT]], object] | None = None,
        resume: SavedSearch | None = None,
    ) -> TuningResult[OptionsT]:
        """Search. ``start`` is measured first, in this order; ``report`` is told what happens, in
        this thread. ``resume``: go on with this search, which says itself what it started from,
        with the tuner's settings; ``CacheError`` if its state does not fit, or if somebody else is
        at it.

        Errors of the reference (an index of the inputs out of range, say) are raised, and
        ``ExecutorLostError`` when a workplace cannot be reached any more. Signals are
        handled if this is the main thread: see ``tcl.tuner.run.stop_requests``.
        """
        self._interrupts = Interrupts()
        tell = report or (lambda event: None)
        watch = Watch(
            self._interrupts,
            self._settings.time_limit,
            lambda level, reason: tell(Interrupted(level, reason)),
        )
        starts = self._settings.model and self._settings.strategy == "screened"
        prior = self.prior if starts else None
        name = uuid.uuid4().hex if resume is None else resume.name
        ledger = Ledger(name, self.options, self.cache, self.key, self.entry, tell)
        with (
            self._pools() as pools,
            self._interrupts,
            kept(name, self.cache, self.key, resume) as saved,
        ):
            new = resume is None or not resume.begun
            early = self._compile_early(pools, start) if new else {}
            reference = self._reference(watch, pools[0], tell)
            if reference is None and watch() < KILL:
                tell(Note(_UNFINISHED if saved is None else _NOT_CONTINUED))
            try:
                if reference is not None or watch() < KILL:
                    # A search that is resumed has a time already, and is best left as it is.
                    goes_on = reference is not None or saved is None
                    if saved is None:
                        saved = self._new_search(ledger, start, prior)
                    if prior is None or prior.identity != saved.model:
                        prior = None
                        if saved.model is not None:
                            tell(Note(_ANOTHER_MODEL))
                    else:
                        tell(Note(f"the search starts from the model {prior.title}"))
                    settings = replace(self._settings, seed=saved.settings.seed)
                    model = None if prior is None else prior.identity
                    saved = replace(saved, settings=settings, model=model)
                    search = Search(saved, self.options, ledger, watch, tell, prior)
                    search.recall()
                    if goes_on:
                        pipeline_of = self._pipeline(pools, early, reference, watch, ledger.best)
                        with pipeline_of as pipeline:
                            search.run(pipeline)
            finally:  # also where machines were lost, or ``report`` raised
                ledger.flush(last=True)
        return ledger.result(watch)

    def _new_search(
        self,
        ledger: Ledger[OptionsT],
        start: Sequence[OptionsT],
        prior: NamedPrior | None,
    ) -> SavedSearch:
        """A search that has not begun."""
        settings = self._settings
        if settings.seed is None:
            settings = replace(settings, seed=random.SystemRandom().getrandbits(32))
        promising = int(_PROMISING * settings.population)
        return SavedSearch(
            ledger.name,
            settings,
            tuple(map(self.options.to_json, start)),
            tuple(dict.fromkeys((*self._cached(ledger), *self.options.promising(promising)))),
            knobs_of(self.options.space),
            model=None if prior is None else prior.identity,
        )

    @contextmanager
    def _pools(self) -> Iterator[list[WorkerPool]]:
        """A process for the reference, and perhaps others, which end with the search at the
        latest."""
        here = self.workplace is None
        pools = first_pools(self.measure_cores) if here else [WorkerPool(1)]
        try:
            yield pools
        finally:
            for pool in pools:
                pool.kill()

    def _compile_early(
        self, pools: Sequence[WorkerPool], start: Sequence[OptionsT]
    ) -> Compiling[OptionsT]:
        """What the search starts from, compiled while the reference is computed, if there are cores
        for both."""
        if self._settings.threads or len(pools) == 1:
            return {}
        pools[1].limit(pools[1].workers, self._settings.compile_timeout, None)
        return compile_all(pools[1], self.backend, start)

    def _reference(
        self, watch: Watch, pool: WorkerPool, tell: Callable[[Note], object]
    ) -> Reference | None:
        """What the outputs have to be; None if interrupted, or if that takes longer than the whole
        search may."""
        notes = [Note(_WAITING)]

        def over() -> bool:
            if notes and watch.seconds > _SILENT:
                tell(notes.pop())
            return watch() >= FINISH or watch.late(REFERENCE)

        found = awaited_reference(pool, self.backend, over)
        if found is None or self.workplace is not None:  # it is at work still, or not needed
            pool.kill()
        return found

    def _cached(self, ledger: Ledger[OptionsT]) -> list[Config]:
        """The best configurations that the cache knows for this key, then some for near ones."""
        wanted = self._settings.cached_seeds
        if self.cache is None or self.key is None or not wanted:
            return []
        began = time.monotonic()
        try:
            return opening_configs(self.cache, self.key, self.options, wanted)
        except CacheError as error:
            ledger.warn(str(error), began)
            return []

    @contextmanager
    def _pipeline(
        self,
        pools: Sequence[WorkerPool],
        early: Compiling[OptionsT],
        reference: Reference | None,
        watch: Watch,
        best: Candidate[OptionsT] | None,
    ) -> Iterator[CandidatePipeline[OptionsT]]:
        """Candidates go through it while the context lasts. ``pools``: the first one has computed
        the reference, if that is known. ``early``: what they compile already."""
        settings = self._settings
        # The reference is plain code: what takes much longer than it is not worth waiting for.
        longest = watch.seconds if reference is None else reference.seconds
        run_timeout = settings.run_timeout or 10.0 + 10.0 * min(longest, _LONGEST)
        workplace = self.workplace or Here(first=() if reference is None else pools)
        stages = workplace.open(
            Orders(
                self.backend,
                None if reference is None else reference.outputs,
                self.timing,
                settings.compile_timeout,
                run_timeout,
                settings.threads,
                self.measure_cores,
                0 if reference is None else reference.size,
            )
        )
        try:
            best_time = None if best is None else best.time
            yield CandidatePipeline(self.backend, stages, watch, best=best_time, early=early)
        finally:
            stages.close()
