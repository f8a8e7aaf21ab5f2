"""The tuner: a strategy proposes, a pool compiles, one process verifies and times."""

from __future__ import annotations

import math
import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Generic

from tcl.codegen.errors import CompileError
from tcl.grammar.errors import TclError
from tcl.tuner.backend import Backend, OptionSpace, OptionsT
from tcl.tuner.cache import CacheKey, TuningCache
from tcl.tuner.config import TunerConfig, available_cores, split_cores, split_processes
from tcl.tuner.errors import CacheError
from tcl.tuner.evaluate import Reference, compute_reference, set_up
from tcl.tuner.events import (
    Candidate,
    CandidateCompiled,
    CandidateDone,
    Event,
    FinalsStarted,
    Finished,
    GenerationStarted,
    Interrupted,
    NewBest,
    Note,
    Raced,
)
from tcl.tuner.finals import FINALISTS, HEATS, Entrant, placed
from tcl.tuner.interrupt import FINISH, KILL, Interrupts
from tcl.tuner.measure import MeasureSettings
from tcl.tuner.nearby import seeds
from tcl.tuner.pipeline import Compilers, Job, Pipeline
from tcl.tuner.pool import WorkerDiedError, WorkerPool
from tcl.tuner.space import Config
from tcl.tuner.strategies import make_strategy
from tcl.tuner.strategies.base import Result
from tcl.tuner.strategies.breeding import ENOUGH_TO_BREED
from tcl.tuner.verdict import Outcome

TIME_LIMIT = "time limit"
_LOOKED_AT = 4
"""Results of near sizes that are looked at for each one that is wanted: not all fit."""
_PATIENCE = 4.0
"""A cache that failed is left alone for so many times as long as it took to fail."""


@dataclass(frozen=True, slots=True)
class TuningResult(Generic[OptionsT]):
    """What a run found."""

    best: Candidate[OptionsT] | None
    """The fastest correct candidate; None if there was none."""
    history: tuple[Candidate[OptionsT], ...]
    """Every candidate with a verdict, in the order in which they got it."""
    interrupted: bool
    """Ended by a signal, ``stop`` or the time limit, rather than after all generations."""
    seconds: float
    run: str
    """Identity of the run, as in the cache."""
    unsaved: int
    """How many of ``history`` the cache did not take."""

    @property
    def options(self) -> OptionsT | None:
        """The best options."""
        return self.best.options if self.best is not None else None

    @property
    def time(self) -> float | None:
        """Median seconds per call of the best options."""
        return self.best.time if self.best is not None else None


@dataclass(slots=True)
class _Run(Generic[OptionsT]):
    """What changes while one search goes on."""

    name: str
    started: float
    report: Callable[[Event[OptionsT]], object]
    history: list[Candidate[OptionsT]] = field(default_factory=list)
    best: Candidate[OptionsT] | None = None
    unsaved: list[Candidate[OptionsT]] = field(default_factory=list)
    warned: bool = False
    retry_at: float = 0.0
    """When the cache, having failed, is tried again: each try may wait for a lock."""
    noticed: int = 0
    """Level of interruption that has been reported."""


class Tuner(Generic[OptionsT]):
    """Searches for the fastest options of one def, on one set of inputs, for one device.

    With ``cache`` and ``key``, every measurement is stored there the moment it is known, and the
    best ones stored before open the search. ``entry`` is the def's name, for listings.
    Kernels are measured on ``measure_cores`` cores, on which nothing is compiled meanwhile: there,
    candidates are compiled and measured in turns. ``OptionsError`` for settings that do not fit
    each other, ``ArgumentError`` for more cores than there are.
    """

    def __init__(
        self,
        backend: Backend[OptionsT],
        options: OptionSpace[OptionsT],
        *,
        config: TunerConfig | None = None,
        cache: TuningCache | None = None,
        key: CacheKey | None = None,
        entry: str = "",
        timing: MeasureSettings | None = None,
        measure_cores: int = 1,
    ) -> None:
        self._cores = split_cores(available_cores(), measure_cores)
        if cache is not None and key is None:
            raise ValueError("a cache needs a key")
        self._backend = backend
        self._options = options
        self._settings = (config or TunerConfig()).settings
        self._search = self._settings.search
        self._cache = cache
        self._key = key
        self._entry = entry
        self._timing = timing or MeasureSettings()
        self._interrupts = Interrupts()

    def stop(self, *, kill: bool = False) -> None:
        """From any thread: end the search as Ctrl+C does; ``kill``: as pressing it twice does."""
        self._interrupts.request(KILL if kill else FINISH, "stop")

    def tune(
        self,
        start: Sequence[OptionsT] = (),
        report: Callable[[Event[OptionsT]], object] | None = None,
    ) -> TuningResult[OptionsT]:
        """Search. ``start`` is measured first, in this order; ``report`` is told what happens, in
        this thread.

        Errors of the reference (an index of the inputs out of range, say) are raised. Signals are
        handled if this is the main thread: see ``tcl.tuner.interrupt``.
        """
        self._interrupts = Interrupts()
        run: _Run[OptionsT] = _Run(
            uuid.uuid4().hex, time.monotonic(), report or (lambda event: None)
        )
        with self._interrupts:
            reference = self._reference(run)
            if reference is not None:
                self._with_pools(run, start, reference)
            self._flush(run, last=True)
        seconds, interrupted = time.monotonic() - run.started, self._level(run) > 0
        run.report(Finished(run.best, seconds, interrupted))
        return TuningResult(
            run.best, tuple(run.history), interrupted, seconds, run.name, len(run.unsaved)
        )

    def _level(self, run: _Run[OptionsT]) -> int:
        """The level of interruption; reports it when it rises."""
        limit = self._settings.time_limit
        if limit is not None and time.monotonic() - run.started >= limit:
            self._interrupts.request(FINISH, TIME_LIMIT)
        level = self._interrupts.level
        if level > run.noticed:
            run.noticed = level
            run.report(Interrupted(level, self._interrupts.reason))
        return level

    def _reference(self, run: _Run[OptionsT]) -> Reference | None:
        """What the outputs have to be; None if interrupted, as nothing is worth waiting for yet."""
        pool = WorkerPool(1)
        try:
            future = pool.submit(compute_reference, self._backend)
            while not future.done():
                if self._level(run) >= FINISH:
                    return None
                wait([future], timeout=0.05)
            return future.result()
        except WorkerDiedError as error:
            raise CompileError(f"the reference kernel could not be run: {error}") from None
        finally:
            pool.kill()

    def _with_pools(
        self, run: _Run[OptionsT], start: Sequence[OptionsT], reference: Reference
    ) -> None:
        settings = self._settings
        compile_cores, measure_cores = self._cores
        beside, in_turns = split_processes(settings.threads, compile_cores, measure_cores)
        # The reference is plain code: what takes much longer than it is not worth waiting for.
        run_timeout = settings.run_timeout or 10.0 + 10.0 * reference.seconds
        pools = [
            (WorkerPool(count, timeout=settings.compile_timeout, cpus=cores), count, cores)
            for count, cores in ((beside, compile_cores), (in_turns, measure_cores))
            if count
        ]
        evaluator = WorkerPool(
            1,
            initializer=set_up,
            initargs=(self._backend, reference.outputs, self._timing),
            timeout=run_timeout,
            cpus=measure_cores,
        )
        try:
            pipeline = Pipeline(
                self._backend,
                [Compilers(pool, count, cores is measure_cores) for pool, count, cores in pools],
                evaluator,
                lambda: self._level(run),
            )
            self._generations(run, start, pipeline)
        finally:
            for pool, _, _ in pools:
                pool.kill()
            evaluator.kill()

    def _generations(
        self, run: _Run[OptionsT], start: Sequence[OptionsT], pipeline: Pipeline[OptionsT]
    ) -> None:
        settings, space = self._settings, self._options.space
        seed = settings.seed if settings.seed is not None else random.SystemRandom().getrandbits(32)
        saved = {**settings.as_dict(), "seed": seed}
        strategy = make_strategy(
            settings.strategy, space, random.Random(seed), self._search, self._cached(run)
        )
        if start:
            jobs = [Job(o, self._options.from_options(o), i) for i, o in enumerate(start)]
            strategy.tell(self._generation(run, 0, jobs, pipeline))
        for generation in range(1, settings.generations + 1):
            self._save_run(run, saved, strategy.state(), generation)
            configs = strategy.ask() if self._level(run) < FINISH else ()
            if not configs:
                break
            jobs = [Job(self._options.to_options(c), c, i) for i, c in enumerate(configs)]
            strategy.tell(self._generation(run, generation, jobs, pipeline))
            self._advise(run, generation)
        if self._level(run) < FINISH or self._interrupts.reason == TIME_LIMIT:
            self._finals(run, pipeline)

    def _finals(self, run: _Run[OptionsT], pipeline: Pipeline[OptionsT]) -> None:
        """Time the fastest candidates and the incumbent in turns; the winner is the best."""
        known = {self._options.to_json(c.options): c for c in run.history if c.time is not None}
        incumbent = next((name for name, c in known.items() if c.generation == 0), None)
        raced: dict[str, Candidate[OptionsT]] = {}
        for heat in range(HEATS):
            ranked = sorted(known, key=lambda name: known[name].time or math.inf)
            names = dict.fromkeys([*([incumbent] if incumbent else []), *ranked[:FINALISTS]])
            if len(names) < 2 or raced.keys() >= names.keys():
                return
            run.report(FinalsStarted(len(names)))
            times = pipeline.race([known[name].options for name in names])
            if times is None:
                return
            verdict = placed([Entrant(*e) for e in zip(names, times, strict=True)], incumbent)
            for place, entrant in enumerate(verdict, start=1):
                before = known[entrant.name]
                outcome = replace(before.outcome, times=entrant.times, message="in the finals")
                candidate = replace(before, outcome=replace(outcome, heat=heat, place=place))
                known[entrant.name] = raced[entrant.name] = candidate
                self._store(run, candidate)
            run.best = raced[verdict[0].name]
            run.report(Raced(tuple(raced.values()), run.best))

    def _generation(
        self,
        run: _Run[OptionsT],
        generation: int,
        jobs: Sequence[Job[OptionsT]],
        pipeline: Pipeline[OptionsT],
    ) -> list[Result]:
        """Take one generation through the pipeline; results in the order of the jobs."""
        times: dict[int, float | None] = {}

        def done(job: Job[OptionsT], outcome: Outcome) -> None:
            candidate = Candidate(job.options, job.config, generation, outcome)
            times[job.position] = candidate.time
            self._store(run, candidate)
            run.history.append(candidate)
            run.report(CandidateDone(candidate, len(times), len(jobs)))
            time_, best = candidate.time, run.best.time if run.best is not None else None
            if time_ is not None and (best is None or time_ < best):
                run.best = candidate
                run.report(NewBest(candidate, time_))

        run.report(GenerationStarted(generation, self._settings.generations, len(jobs)))
        pipeline.run(jobs, done, lambda job: run.report(CandidateCompiled(generation)))
        return [
            (job.config, times[job.position])
            for job in jobs
            if job.config is not None and job.position in times
        ]

    def _cached(self, run: _Run[OptionsT]) -> list[Config]:
        """The best configurations that the cache knows for this key, then some for near ones."""
        wanted = self._settings.cached_seeds
        if self._cache is None or self._key is None or not wanted:
            return []
        began = time.monotonic()
        found: dict[Config, None] = {}
        try:
            for near in islice(seeds(self._cache, self._key, wanted), _LOOKED_AT * wanted):
                try:
                    config = self._options.from_options(
                        self._options.from_json(near.record.options)
                    )
                except TclError:  # they do not fit these sizes, or are of another version
                    continue
                if config is not None:
                    found[config] = None
                if len(found) >= wanted:
                    break
        except CacheError as error:
            self._warn(run, str(error), began)
        return list(found)

    def _store(self, run: _Run[OptionsT], candidate: Candidate[OptionsT]) -> None:
        run.unsaved.append(candidate)
        self._flush(run)

    def _flush(self, run: _Run[OptionsT], *, last: bool = False) -> None:
        """Save what is not saved yet. What fails is tried again later."""
        if self._cache is None or self._key is None:
            run.unsaved.clear()
            return
        began = time.monotonic()
        if began < run.retry_at and not last:
            return
        try:
            while run.unsaved:
                candidate = run.unsaved[0]
                options = self._options.to_json(candidate.options)
                self._cache.store(
                    self._key, options, candidate.outcome, run=run.name, entry=self._entry
                )
                del run.unsaved[0]
        except CacheError as error:
            self._warn(run, str(error), began)

    def _save_run(
        self,
        run: _Run[OptionsT],
        config: dict[str, object],
        state: dict[str, object],
        generation: int,
    ) -> None:
        """Keep what a resumed search needs, as it is before ``generation``."""
        began = time.monotonic()
        if self._cache is None or self._key is None or began < run.retry_at:
            return
        try:
            self._cache.save_run(
                self._key,
                run.name,
                config=config,
                state={"generation": generation, "strategy": state},
                entry=self._entry,
            )
        except CacheError as error:
            self._warn(run, str(error), began)

    def _warn(self, run: _Run[OptionsT], message: str, began: float) -> None:
        """Say once that the cache does not work; the search goes on without it."""
        now = time.monotonic()
        run.retry_at = now + _PATIENCE * (now - began)
        if not run.warned:
            run.warned = True
            run.report(Note(message))

    def _advise(self, run: _Run[OptionsT], generation: int) -> None:
        """Say what to relax when almost nothing works."""
        tried = [c for c in run.history if c.generation == generation]
        valid = sum(c.time is not None for c in run.history)
        verdicts = Counter(c.outcome.verdict for c in tried if c.time is None)
        if valid >= ENOUGH_TO_BREED or not verdicts or self._level(run):
            return
        verdict, count = verdicts.most_common(1)[0]
        example = next(c.outcome.message for c in tried if c.outcome.verdict is verdict)
        run.report(
            Note(
                f"only {valid} of {len(run.history)} candidates work, so the next generation is "
                f"drawn anew around the best; {count} of {len(tried)} ended with verdict "
                f"{verdict.value}, for example: {example}"
            )
        )
