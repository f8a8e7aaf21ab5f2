"""The search of the tune mode ``auto``: what is near the default, raced against it.

A ``Tuner`` starts half a dozen processes, has the reference compiled, and confirms who wins in a
process of its own: that takes seconds. Here one process runs kernels. While it starts, this one
computes a small sample of the reference, and compiles: nothing but kernels near one that is
compiled here anyway.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import chain, islice
from typing import Generic

from tcl.common.errors import ExecutorLostError
from tcl.tuner.cache.tuning_cache import CacheKey, TuningCache
from tcl.tuner.measure.backend import BriefBackend, OptionSpace, OptionsT
from tcl.tuner.measure.cores import available_cores, split_cores
from tcl.tuner.measure.evaluate import Reference, brief_reference, set_up
from tcl.tuner.measure.paired import RaceRules
from tcl.tuner.measure.reliability import Doubts
from tcl.tuner.measure.timing import MeasureSettings
from tcl.tuner.measure.verdict import Outcome
from tcl.tuner.run import events
from tcl.tuner.run.finals import Finals
from tcl.tuner.run.ledger import Ledger
from tcl.tuner.run.pipeline import CandidatePipeline, Job
from tcl.tuner.run.result import TuningResult
from tcl.tuner.run.stop_requests import FINISH, Interrupts, Watch
from tcl.tuner.run.workplace import Compilers, Stages, awaited_reference
from tcl.tuner.space.around import around
from tcl.tuner.space.search_space import Config
from tcl.workers.pool import WorkerPool
from tcl.workers.process_memory import allowance

SECONDS = 1.0
"""After which nothing new is compiled, once so many candidates ..."""
FEW = 10
"""... have a verdict, or ..."""
LONGEST = 4.0
"""... so many seconds have passed: large arrays take long to look at."""
PROMISING = 5
"""Candidates that a model of the machine finds nearly as good as the default come first: on Zen 4,
the best of five takes .969 of the default's time in the mean of 788 defs, of five one knob away
.972, of five of both each .953 (``benchmarks.alternatives``)."""
CANDIDATES = 40
"""Besides the default: these, those one knob away, what gains most first, then those two away."""
RULES = RaceRules(finalists=2, least=1, most=2, rounds=9, budget=0.5, clearly=0.97)
"""Sessions are held in one process, so that more is asked of who wins there."""
TIMING = MeasureSettings(samples=5, budget=0.02)
_AHEAD = 4
"""Compiled while the process starts that runs them."""
_TIMEOUT = 30.0
"""Seconds for verifying and timing one candidate."""


@dataclass(frozen=True, eq=False)
class BriefSearch(Generic[OptionsT]):
    """Tries what is near the default; arguments and errors are those of ``Tuner``.

    ``neighbours``: what differs in one knob from what it starts from is tried as well.
    ``seconds``: after so many nothing new is compiled, once ``FEW`` candidates have a verdict.
    """

    backend: BriefBackend[OptionsT]
    options: OptionSpace[OptionsT]
    _: KW_ONLY
    cache: TuningCache | None = None
    key: CacheKey | None = None
    entry: str = ""
    measure_cores: int = 1
    neighbours: bool = True
    seconds: float = SECONDS

    def tune(
        self,
        start: Sequence[OptionsT],
        report: Callable[[events.Event[OptionsT]], object] | None = None,
    ) -> TuningResult[OptionsT]:
        """Search. The first of ``start`` keeps its place unless another one is clearly faster.
        ``report`` is told what happens."""
        tell = report or (lambda event: None)
        interrupts = Interrupts()
        watch = Watch(
            interrupts, self.seconds, lambda level, reason: tell(events.Interrupted(level, reason))
        )
        name = uuid.uuid4().hex
        ledger = Ledger(name, self.options, self.cache, self.key, self.entry, tell)
        with interrupts:
            try:
                with self._stages(watch) as stages:
                    if stages is not None:
                        self._try_near(stages, watch, ledger, start, tell)
            finally:
                ledger.flush(last=True)
        return ledger.result(watch)

    def _try_near(
        self,
        stages: Stages,
        watch: Watch,
        ledger: Ledger[OptionsT],
        start: Sequence[OptionsT],
        tell: Callable[[events.Event[OptionsT]], object],
    ) -> None:
        doubts = Doubts()
        # What compiles is a thread of the caller's process, where Numba should not come.
        pipeline = CandidatePipeline(
            self.backend, stages, watch, ahead=_AHEAD, rules=RULES, apart=False
        )
        config = self.options.from_options(start[0]) if self.neighbours else None
        near: Iterable[Config] = ()
        if config is not None:
            others = self.options.promising(PROMISING)
            near = islice(chain(others, around(self.options.space, config)), CANDIDATES)
        options = list(dict.fromkeys((*start, *map(self.options.to_options, near))))
        jobs = [Job(o, self.options.from_options(o), i) for i, o in enumerate(options)]

        def done(job: Job[OptionsT], outcome: Outcome) -> None:
            candidate = events.Candidate(job.options, job.config, min(job.position, 1), outcome)
            ledger.add(candidate, len(ledger.history) + 1, len(jobs), known=False)
            known = len(ledger.history)
            enough = known >= FEW or watch.seconds >= LONGEST
            if enough and known >= len(start) and ledger.best is not None:
                watch.may_end()

        tell(events.GenerationStarted(1, 1, len(jobs)))
        pipeline.run(jobs, done, lambda job: tell(events.CandidateCompiled(min(job.position, 1))))
        if watch.in_time:
            finals = Finals(ledger, self.options, tell, doubts, RULES)
            finals.hold_race(partial(pipeline.race, afresh=False))

    @contextmanager
    def _stages(self, watch: Watch) -> Iterator[Stages | None]:
        """One thread of this process that compiles, and a process that runs kernels, once it knows
        what they have to compute; None if somebody ends that before."""
        compile_cores, measure_cores = split_cores(available_cores(), self.measure_cores)
        runner = self.backend.runner()
        evaluator = WorkerPool(
            1,
            initializer=set_up,
            initargs=(runner, None, TIMING),
            timeout=_TIMEOUT,
            memory=allowance(0, len(measure_cores), 2),
            cpus=measure_cores,
        )
        compiler = ThreadPoolExecutor(1, initializer=_stay_on, initargs=(compile_cores,))
        try:
            evaluator.submit(os.getpid)  # it starts
            reference = self._reference(evaluator, watch)
            if reference is None:
                yield None
                return
            initargs = (runner, reference.outputs, TIMING)
            evaluator.initialise(set_up, initargs)  # of what has to take its place
            try:
                evaluator.submit(set_up, *initargs).result()
            except Exception as error:  # else kernels would be compared with nothing
                raise ExecutorLostError(f"no process can be set up: {error}") from error
            in_turns = not set(compile_cores).isdisjoint(measure_cores)
            yield Stages((Compilers(compiler, 1, in_turns),), evaluator, 1, evaluator.kill)
        finally:
            evaluator.kill()
            compiler.shutdown(wait=False, cancel_futures=True)

    def _reference(self, evaluator: Executor, watch: Watch) -> Reference | None:
        """None if somebody ends the search before it is computed. Raises what it raises."""
        reference = brief_reference(self.backend)
        if reference is not None:
            return reference
        return awaited_reference(evaluator, self.backend, lambda: watch() >= FINISH)


def _stay_on(cores: Sequence[int]) -> None:
    """Have the calling thread run on these cores: nothing is measured there."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
