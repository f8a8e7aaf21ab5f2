"""The search itself: generations from a strategy, through a pipeline, into a ledger."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic

from tcl.common.errors import CacheError, OptionsError
from tcl.tuner.cache.ranking import Record, ranked
from tcl.tuner.measure.backend import OptionSpace, OptionsT
from tcl.tuner.measure.reliability import Doubts, settled
from tcl.tuner.measure.verdict import Outcome
from tcl.tuner.run import events
from tcl.tuner.run.checkpoint import OWNER, SECONDS, SavedSearch
from tcl.tuner.run.finals import Finals
from tcl.tuner.run.ledger import Ledger
from tcl.tuner.run.pipeline import CandidatePipeline, Job
from tcl.tuner.run.stop_requests import FINISH, Watch
from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies import make_strategy
from tcl.tuner.strategies.evolution import ENOUGH_TO_BREED
from tcl.tuner.strategies.screened import Prior
from tcl.tuner.strategies.strategy import Result


@dataclass(eq=False)
class Search(Generic[OptionsT]):
    """One search, from wherever its plan begins to its finals."""

    saved: SavedSearch
    options: OptionSpace[OptionsT]
    ledger: Ledger[OptionsT]
    watch: Watch
    report: Callable[[events.Event[OptionsT]], object]
    prior: Prior | None = None

    def __post_init__(self) -> None:
        settings, saved = self.saved.settings, self.saved
        self._doubts = Doubts()
        self._recalled: set[tuple[int, str]] = set()
        """Which known results were taken over; and whether one was missing."""
        self._missed = False
        self._new_strategy = partial(
            make_strategy,
            *(settings.strategy, self.options.space),
            settings=settings.search,
            seeds=saved.seeds,
            prior=self.prior,
        )
        self._strategy = self._new_strategy(rng=random.Random(settings.seed))
        self._known = saved.outcomes()
        self._state: dict[str, object] = {}

    def recall(self) -> None:
        """Take over what an earlier part of the search has found: the strategy proposes once more
        what it proposed then, and is told what came of it. ``CacheError`` if it is a search of
        another space."""
        saved = self.saved
        if not saved.begun:
            return
        self.watch.may_end()
        if not saved.suits(self.options.space):
            raise CacheError(
                f"the search {saved.name} started with other knobs, or other fixed values; fix "
                "the same values, or start a new search"
            )
        self.report(events.Resumed(saved.name, saved.generation, len(self._known)))
        for generation in range(saved.generation):
            self._searched(generation, None)
        left = {k: r for k, r in self._known.items() if k[0] < saved.generation}
        for key in self._recalled:
            left.pop(key, None)
        if left or self._missed:
            self._begin_anew(left.values())
        if saved.heats:  # what its last finals decided, as the cache ranks it
            raced = [self._candidate(r) for r in saved.records if r.heat == saved.heats - 1]
            self.ledger.decide(raced, self._candidate(ranked(saved.records)[0]))

    def _begin_anew(self, left: Collection[Record]) -> None:
        """Have a new strategy go on that is told all results, where the search was begun with
        another model, or another version of its strategy, or results of it were lost. ``left``:
        those that were not proposed again."""
        for done, record in enumerate(left, start=1):
            self.ledger.add(self._candidate(record), done, len(left), known=True)
        rng = random.Random(f"{self.saved.settings.seed} {self.saved.generation}")
        self._strategy = self._new_strategy(rng=rng)
        history = self.ledger.history
        times = settled([c.outcome for c in history])
        pairs = zip(history, times, strict=True)
        self._strategy.tell([(c.config, t) for c, t in pairs if c.config is not None])

    def run(self, pipeline: CandidatePipeline[OptionsT]) -> None:
        """Search, from where it was saved to the end."""
        saved = self.saved
        first, last = saved.generation, saved.settings.generations
        try:
            if first == 0:
                self._save(0)
                self._searched(0, pipeline)
            for generation in range(max(1, first), last + 1):
                if self.watch() >= FINISH:  # perhaps with a part of the generation before
                    break
                self._save(generation)
                if not self._searched(generation, pipeline):  # all there is has been tried
                    break
                self._advise(generation)
            if self.watch() < FINISH:  # else the last generation was perhaps cut short
                self._save(max(first, last + 1))
            if self.watch.in_time:
                finals = Finals(self.ledger, self.options, self.report, self._doubts)
                finals.hold_race(pipeline.race, saved.heats, lambda: self.watch.in_time)
        finally:
            if self._state:  # else what an earlier part saved stays as it is
                end = {**self._state, SECONDS: self._seconds, OWNER: None}
                self.ledger.save_state(saved.settings.as_dict(), end)

    def _searched(self, generation: int, pipeline: CandidatePipeline[OptionsT] | None) -> bool:
        """Take a generation to its end, or to that of the search: whether it had candidates.
        Without a ``pipeline`` those alone whose results are known."""
        strategy, asked = self._strategy, 0
        if generation == 0:  # what the search starts from
            start = [self.options.from_json(text) for text in self.saved.start]
            jobs = [Job(o, self._config(o), i) for i, o in enumerate(start)]
            if jobs:
                strategy.tell(self._tried(0, jobs, pipeline))
            return bool(jobs)
        while not asked or strategy.rest:
            if pipeline is not None and self.watch() >= FINISH:
                break
            configs, to_options = strategy.ask(), self.options.to_options
            jobs = [Job(to_options(c), c, asked + i) for i, c in enumerate(configs)]
            if not jobs:
                break
            strategy.tell(self._tried(generation, jobs, pipeline, strategy.rest))
            asked += len(jobs)
        return asked > 0

    @property
    def _seconds(self) -> float:
        """How long the search has taken, with its earlier parts."""
        return self.saved.seconds + self.watch.seconds

    def _save(self, generation: int) -> None:
        """Keep that ``generation`` is about to be searched."""
        self._state = self.saved.state(generation, self._seconds)
        self.ledger.save_state(self.saved.settings.as_dict(), self._state)

    def _candidate(self, record: Record) -> events.Candidate[OptionsT]:
        options = self.options.from_json(record.options)
        config = self._config(options)
        return events.Candidate(options, config, record.generation or 0, record.outcome)

    def _config(self, options: OptionsT) -> Config | None:
        """What stands for options that somebody gave. None also for those that no nest can have:
        they are refused when they are compiled, as candidates are, and the search goes on."""
        try:
            return self.options.from_options(options)
        except OptionsError:
            return None

    def _tried(
        self,
        generation: int,
        jobs: Sequence[Job[OptionsT]],
        pipeline: CandidatePipeline[OptionsT] | None,
        rest: int = 0,
    ) -> list[Result]:
        """Take one generation, or a part of it that ``rest`` more follow, through the pipeline;
        results in the order of the jobs, with times as they compare."""
        found: dict[int, int] = {}
        before = jobs[0].position
        of = before + len(jobs) + rest

        def done(job: Job[OptionsT], outcome: Outcome, *, known: bool = False) -> None:
            candidate = events.Candidate(job.options, job.config, generation, outcome)
            found[job.position] = len(self.ledger.history)
            self.ledger.add(candidate, before + len(found), of, known=known)
            if outcome.time is not None:
                self.watch.may_end()
            for text in () if known else self._doubts.take(outcome):
                self.report(events.Note(text))

        if not before:
            self._started(generation, of)
        waiting = defaultdict[tuple[int, str], list[Job[OptionsT]]](list)
        for job in jobs:
            waiting[generation, self.options.to_json(job.options)].append(job)
        for key, record in self._known.items():
            for job in waiting.pop(key, ()):
                done(job, record.outcome, known=True)
                self._recalled.add(key)
        new = [job for each in waiting.values() for job in each]
        # What the search starts from is measured in its order: the first one is the incumbent.
        # Whoever ends it before one has a time gets that one: it is in flight from the beginning.
        self._missed |= pipeline is None and bool(new)
        for batch in [new] if generation else [[job] for job in new]:
            if pipeline is None:
                break
            pipeline.run(
                batch,
                done,
                lambda job: self.report(events.CandidateCompiled(generation)),
                must=not generation and self.ledger.best is None,
            )
        self.watch.may_end()  # nothing worked, and the rest need not, either
        times = settled([c.outcome for c in self.ledger.history])
        return [
            (job.config, times[found[job.position]])
            for job in jobs
            if job.config is not None and job.position in found
        ]

    def _started(self, generation: int, candidates: int) -> None:
        most = max(generation, self.saved.settings.generations)
        self.report(events.GenerationStarted(generation, most, candidates))

    def _advise(self, generation: int) -> None:
        """Say what to relax when almost nothing works."""
        history = self.ledger.history
        tried = [c for c in history if c.generation == generation]
        valid = sum(c.time is not None for c in history)
        verdicts = Counter(c.outcome.verdict for c in tried if c.time is None)
        if valid >= ENOUGH_TO_BREED or not verdicts or self.watch():
            return
        verdict, count = verdicts.most_common(1)[0]
        example = next(c.outcome.message for c in tried if c.outcome.verdict is verdict)
        self.report(
            events.Note(
                f"only {valid} of {len(history)} candidates work, so the next generation is "
                f"drawn again around the best; {count} of {len(tried)} ended with verdict "
                f"{verdict.value}, for example: {example}"
            )
        )
