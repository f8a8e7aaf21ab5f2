"""Candidates through two stages that overlap: compiling, by many, and evaluating, one a device."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import KW_ONLY, dataclass, field
from itertools import cycle
from typing import Any, Generic, TypeAlias, TypeVar

from tcl.common.errors import ExecutorLostError
from tcl.tuner.measure.backend import Backend, OptionsT
from tcl.tuner.measure.evaluate import (
    ALL_ROUNDINGS,
    Doubted,
    Roundings,
    Timed,
    compile_candidate,
    evaluate_candidate,
    more_roundings,
    race_candidates,
)
from tcl.tuner.measure.paired import USUAL, RaceRules
from tcl.tuner.measure.timing import Placed
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.run.stop_requests import FINISH, KILL
from tcl.tuner.run.workplace import Compilers, Stages
from tcl.tuner.space.search_space import Config
from tcl.workers.pool import WorkerDiedError, WorkerStartError, WorkerTimeoutError

_POLL = 0.05
"""Seconds between two looks at interrupts."""
_AHEAD = 2


@dataclass(frozen=True, slots=True)
class Job(Generic[OptionsT]):
    """A candidate on its way."""

    options: OptionsT
    config: Config | None
    position: int
    """In its generation."""


_T = TypeVar("_T")
Done: TypeAlias = Callable[[Job[OptionsT], Outcome], object]
Compiling: TypeAlias = Mapping[OptionsT, Future[bytes | Outcome]]
"""Candidates, and what comes of their compilation."""


def compile_all(
    executor: Executor, backend: Backend[OptionsT], options: Iterable[OptionsT]
) -> Compiling[OptionsT]:
    """Begin to compile candidates."""
    return {o: executor.submit(compile_candidate, backend, o) for o in options}


@dataclass(eq=False)
class CandidatePipeline(Generic[OptionsT]):
    """Runs candidates on the executors of a workplace.

    ``level`` is asked all the time: from ``FINISH`` on nothing new starts, from ``KILL`` on nothing
    is waited for. Executors that share cores take turns: a few candidates are compiled, then these
    are evaluated, and never both at once.
    ``best``: the seconds to beat, if that is known before. ``ahead``: candidates that are compiled
    before they can be evaluated, per process that compiles. ``rules``: of races. ``apart``: if it
    has to be known how far rounding takes the reference, a process that compiles computes it, and
    others are measured meanwhile. ``early``: candidates whose compilation has begun.
    """

    backend: Backend[OptionsT]
    stages: Stages
    level: Callable[[], int]
    _: KW_ONLY
    best: float | None = None
    ahead: int = _AHEAD
    rules: RaceRules = USUAL
    apart: bool = True
    early: Compiling[OptionsT] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._early = dict(self.early)
        self._compilers = self.stages.compilers
        self._evaluator = self.stages.evaluator
        self._evaluators = self.stages.evaluators
        self._ahead = self.ahead * sum(each.width for each in self._compilers)
        self._in_turns = any(each.in_turns for each in self._compilers)
        self._beside = sum(each.width for each in self._compilers if not each.in_turns)
        """Candidates that are compiled at a time while others are evaluated."""
        self._evaluators_turn = False
        self._yardstick: Timed | None = None
        """The first one that was correct: any would do that is not too slow to be timed often."""
        self._known: dict[bytes, Outcome] = {}
        self._codes_kept: dict[OptionsT, bytes] = {}
        self._verified: set[OptionsT] = set()
        """In a process that had run nothing before."""
        self._waiting: deque[Job[OptionsT]] = deque()
        self._compiling: dict[Future[bytes | Outcome], tuple[Job[OptionsT], Compilers]] = {}
        self._compiled: deque[tuple[Job[OptionsT], bytes]] = deque()
        self._evaluating: dict[Future[Outcome | Doubted], tuple[Job[OptionsT], bytes]] = {}
        self._asks = self.apart and not self._compilers[0].in_turns
        """Whether the evaluator asks for roundings, which are computed here ..."""
        self._roundings: Roundings = ()
        self._computing: Future[Roundings] | None = None
        self._doubted: deque[tuple[Job[OptionsT], bytes]] = deque()
        """... and candidates that wait for them."""

    def run(
        self,
        jobs: Iterable[Job[OptionsT]],
        done: Done[OptionsT],
        compiled: Callable[[Job[OptionsT]], object] = lambda job: None,
        *,
        must: bool = False,
    ) -> None:
        """Take all jobs to a verdict, calling ``done`` as soon as each has its own, and
        ``compiled`` before that when it is compiled.

        Returns early, with jobs left out, when interrupted; if they ``must`` be done, at ``KILL``
        alone.
        """
        self._waiting.extend(jobs)
        while (level := self.level()) < KILL:
            if level >= FINISH and not must:
                self._waiting.clear()
                self._compiled.clear()
                self._doubted.clear()
            self._submit_waiting(done)
            futures: list[Future[Any]] = [*self._compiling, *self._evaluating]
            if self._computing is not None and self._doubted:
                futures.append(self._computing)
            if not futures:
                return
            finished, _ = wait(futures, timeout=_POLL, return_when=FIRST_COMPLETED)
            self._collect(finished, done, compiled)

    def race(
        self, options: Sequence[OptionsT], *, afresh: bool = True
    ) -> list[Placed | Outcome] | None:
        """Times of candidates that are known to be correct, taken in turns; None if one of them
        failed after all, or nothing is waited for any more. ``afresh``: in a process that has run
        nothing yet, in which they are verified as well if none was before: how those ended that
        fail there."""
        codes = self._codes(options)
        if codes is None:
            return None
        known = [each in self._verified for each in options] if afresh else None
        # A process that has run something ends when it is asked this; another takes its place.
        found, rules = None, self.rules
        for _ in range(self._evaluators + 1 if afresh else 1):
            if found is None and self.level() < KILL:
                wanted = (codes, known, rules.rounds, rules.budget, self._roundings)
                found = self._awaited(self._evaluator.submit(race_candidates, *wanted))
        self._verified.update(options if afresh and found is not None else ())
        return found

    def _codes(self, options: Sequence[OptionsT]) -> list[bytes] | None:
        """Compiled code of each; None if that failed."""
        places = [each.executor for each in self._compilers for _ in range(each.width)]
        kept, unknown = self._codes_kept, [o for o in options if o not in self._codes_kept]
        compiling = {
            each: executor.submit(compile_candidate, self.backend, each)
            for each, executor in zip(unknown, cycle(places), strict=False)
        }
        found = [kept[o] if o in kept else self._awaited(compiling[o]) for o in options]
        codes = [code for code in found if isinstance(code, bytes)]
        return codes if len(codes) == len(options) else None

    def _awaited(self, future: Future[_T]) -> _T | None:
        while self.level() < KILL:
            if wait([future], timeout=_POLL).done:
                found = _result_or_outcome(future, Verdict.RUNTIME)
                return None if isinstance(found, Outcome) else found
        return None

    def _submit_waiting(self, done: Done[OptionsT]) -> None:
        while self._compiled and len(self._evaluating) < self._evaluators:
            self._take_turns()
            busy = any(compilers.in_turns for _, compilers in self._compiling.values())
            if self._in_turns and (busy or not self._evaluators_turn):
                break
            job, code = self._compiled.popleft()
            known = self._known.get(_digest(code))
            if known is not None:  # other options, the same kernel
                done(job, known)
                continue
            wanted = (code, self.best, self._yardstick, self._roundings, self._asks)
            future = self._evaluator.submit(evaluate_candidate, *wanted)
            self._evaluating[future] = (job, code)
        for compilers in self._compilers:
            while self._may_compile(compilers):
                job = self._waiting.popleft()
                task = self._early.pop(job.options, None)
                if task is None:
                    options = job.options
                    task = compilers.executor.submit(compile_candidate, self.backend, options)
                self._compiling[task] = job, compilers

    def _may_compile(self, compilers: Compilers) -> bool:
        self._take_turns()
        if compilers.in_turns and self._evaluators_turn:
            return False
        at_work = sum(each is compilers for _, each in self._compiling.values())
        at_work += self._computing is not None and compilers is self._compilers[0]
        # Not further ahead than the evaluator can use: an interrupt should find little to do.
        room = at_work < compilers.width and len(self._compiled) < self._ahead
        return bool(self._waiting) and room

    def _take_turns(self) -> None:
        """The evaluator's turn begins when as much is compiled as is kept for it, or others can
        compile all that is left meanwhile, and ends when it has nothing left."""
        if not self._compiled and not self._evaluating:
            self._evaluators_turn = False
        elif (
            len(self._waiting) <= self._beside
            or len(self._compiled) + len(self._compiling) >= self._ahead
        ):
            self._evaluators_turn = True

    def _collect(
        self,
        finished: Set[Future[Any]],
        done: Done[OptionsT],
        compiled: Callable[[Job[OptionsT]], object],
    ) -> None:
        """Take over what is finished, in the order of its submission."""
        for measured in [f for f in self._evaluating if f in finished]:
            job, code = self._evaluating.pop(measured)
            outcome = _result_or_outcome(measured, Verdict.RUNTIME)
            if isinstance(outcome, Doubted):
                self._doubt(job, code, outcome.known)
                continue
            if self._yardstick is None and outcome.time is not None and not outcome.message:
                first = next(iter(outcome.placements.values()), outcome.time)
                self._yardstick = Timed(code, first)
            self._known[_digest(code)] = outcome
            if outcome.time is not None and (self.best is None or outcome.time < self.best):
                self.best = outcome.time
            # What may be in the finals is compiled once.
            if outcome.time is not None and outcome.time <= self.rules.near * (self.best or 0.0):
                self._codes_kept[job.options] = code
            done(job, outcome)
        for task in [f for f in self._compiling if f in finished]:
            (job, _), result = self._compiling.pop(task), _result_or_outcome(task, Verdict.COMPILE)
            if isinstance(result, Outcome):
                done(job, result)
            else:
                compiled(job)
                self._compiled.append((job, result))
        if self._computing is not None and self._computing.done():
            found = _result_or_outcome(self._computing, Verdict.RUNTIME)
            # If that failed, the evaluator computes them itself, and it counts as the candidate's.
            self._roundings = self._roundings if isinstance(found, Outcome) else found
            self._asks = found is self._roundings and len(found) < ALL_ROUNDINGS
            self._computing = None
            self._compiled.extendleft(reversed(self._doubted))
            self._doubted.clear()

    def _doubt(self, job: Job[OptionsT], code: bytes, known: int) -> None:
        """Have a candidate wait until more is known of how far rounding takes the reference."""
        if not self._asks or known < len(self._roundings):  # that has become known meanwhile
            self._compiled.appendleft((job, code))
            return
        self._doubted.append((job, code))
        if self._computing is None:
            executor = self._compilers[0].executor
            self._computing = executor.submit(more_roundings, self.backend, self._roundings)


def _result_or_outcome(future: Future[_T], failure: Verdict) -> _T | Outcome:
    """The result, or the outcome that the failure of its process means."""
    try:
        return future.result()
    except ExecutorLostError:  # says nothing about the candidate
        raise
    except WorkerStartError as error:  # nor does this
        raise ExecutorLostError(str(error)) from error
    except WorkerTimeoutError as error:
        return Outcome(Verdict.TIMEOUT, message=str(error))
    except (WorkerDiedError, CancelledError) as error:
        return Outcome(failure, message=str(error))
    except Exception as error:  # of the executor or the set-up of its process
        return Outcome(failure, message=f"{type(error).__name__}: {error}")


def _digest(code: bytes) -> bytes:
    return hashlib.sha256(code).digest()
