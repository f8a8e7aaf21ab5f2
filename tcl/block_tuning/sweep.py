"""Measuring candidates: each is compared with the first run, then timed; the fastest are raced."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from statistics import median
from typing import Any

from tcl.block_tuning import candidates
from tcl.block_tuning.arguments import Arguments
from tcl.block_tuning.result import BlockTiming, BlockTuningResult, in_order
from tcl.block_tuning.target import LaunchTarget
from tcl.codegen.options.knobs import Value
from tcl.common.errors import ArgumentError, OptionsError, TclError
from tcl.common.number_format import duration
from tcl.common.warn import warn
from tcl.tuner.measure.harness import Run
from tcl.tuner.measure.paired import Sessions, race, standing
from tcl.tuner.measure.reliability import BUSY, NOISY, scale
from tcl.tuner.measure.timing import Measurement, measure, spread
from tcl.tuner.measure.verdict import Verdict
from tcl.tuner.space.search_space import Config, SearchSpace
from tcl.tuner.strategies import make_strategy
from tcl.tuner.strategies.strategy import SearchSettings

_LAUNCH_BOUND = 2.0
"""A kernel that takes less than so many times as long as launching nothing is not worth tuning."""
_JUDGED = 0.25
"""Seconds of measuring from which on it is said what else runs: the system counts in hundredths."""
_FINALISTS = 6
"""The fastest, besides the default."""
_LOOKS = 3
"""At a candidate that seems to be far behind."""
_LIMIT = 10.0
"""Seconds, and ..."""
_PATIENCE = 20.0
"""... times as long as the best so far, that a launch may take: then it is given up for hanging."""
_UNENDED = 2
"""Candidates that may be given up before any other one has ended: then it is not they that hang,
but the kernel is slow, or cannot run in a copy of this process."""
_NOT_LAUNCHED = (Verdict.CONSTRAINTS, Verdict.COMPILE)
_REMEDY = "check what else runs, and tune once more with again=True"


@dataclass(slots=True)
class Sweep:
    """One tuning of a kernel on the user's arguments."""

    target: LaunchTarget
    values: Sequence[Any]
    arguments: Arguments
    defines: Mapping[str, tuple[Value, ...]]
    found: dict[candidates.LaunchShape, BlockTiming] = field(default_factory=dict)
    best: float | None = None
    """Seconds."""
    tried_apart: bool = True
    """Whether a candidate is launched first where it can do no harm."""

    def run(self, blocks: Sequence[candidates.Block], most: int, seed: int) -> BlockTuningResult:
        """Try these blocks with all definitions, or ``most`` of these candidates. The first that
        can be launched is what all others are compared with. Raises ``OptionsError`` if none can,
        ``TclError`` if the device is lost, what ``Arguments.learn`` raises."""
        space = candidates.space_of(blocks, self.defines, self.target.why_not_asked)
        for block in blocks:
            candidate = candidates.LaunchShape(
                block, tuple((n, v[0]) for n, v in self.defines.items())
            )
            reason = self.target.why_not_asked(candidate)
            if reason is not None:
                self._finish(candidate, Verdict.CONSTRAINTS, reason)
        others, began = self.target.others(), time.monotonic()
        first = self._first_launchable(space)
        chosen, notes, bound = first, list[str](), self._launch_bound(first)
        if not bound:
            self._try_all(space, most, seed)
            chosen, notes = self._race(first)
        share = others.busy_share() if others is not None else None
        if share is not None and share > BUSY and time.monotonic() - began >= _JUDGED:
            notes = [
                f"the device is busy: other processes used {share:.0%} of its cores, so times "
                f"are too long and hard to compare; {_REMEDY}"
            ]
        chosen = self._confirmed(chosen)
        return BlockTuningResult(
            chosen.block,
            dict(chosen.defines),
            self.target.launched(chosen)[0],
            self.found[chosen].time_us or 0.0,
            in_order(self.found.values(), chosen),
            bound,
            tuple(notes),
        )

    def _confirmed(self, chosen: candidates.LaunchShape) -> candidates.LaunchShape:
        """The fastest that is still right when it runs once more, which leaves the arguments as one
        run does."""
        while True:
            self.arguments.restore()
            self._once(self.target.bound(chosen, self.values))
            wrong = self.arguments.mismatch()
            if wrong is None:
                return chosen
            self._finish(chosen, Verdict.CORRECTNESS, f"correct at first, wrong later: {wrong}")
            right = [t.candidate for t in self.found.values() if t.verdict is Verdict.CORRECT]
            if not right:
                raise _unsteady(wrong)
            chosen = min(right, key=self._median)

    def _first_launchable(self, space: SearchSpace) -> candidates.LaunchShape:
        """The first candidate that can be launched, after the runs by which it is known what a run
        does. The very first, which may compile, is not timed."""
        for candidate in self._in_turn(space):
            run = self._launch(candidate)
            if run is not None:
                with self._ending(candidate, Verdict.RUNTIME):
                    self.arguments.learn(lambda run=run: self._once(run))  # type: ignore[misc]
                    self._time_run(candidate, run)
                    if self.found[candidate].verdict is not Verdict.CORRECT:
                        raise _unsteady(self.found[candidate].message)
                    return candidate
                self.arguments.restore()
            if len(self._unended) >= _UNENDED:
                break
        if not self.found:
            raise OptionsError("there is no candidate to launch")
        if not self._unended:
            raise candidates.none_left({c: t.message for c, t in self.found.items()})
        blocks = " and ".join(f"block {candidate}" for candidate in self._unended)
        warn(
            f"{self.target.name} with {blocks} did not end within {duration(_LIMIT)} in a "
            "separate process, so all candidates now run in this process, where a candidate "
            "that hangs cannot be stopped"
        )
        self.tried_apart = False
        for candidate in self._unended:
            del self.found[candidate]
        return self._first_launchable(space)

    @property
    def _unended(self) -> list[candidates.LaunchShape]:
        """Those that were given up for hanging, if nothing else came of any that was launched."""
        launched = [t for t in self.found.values() if t.verdict not in _NOT_LAUNCHED]
        late = [t.candidate for t in launched if t.verdict is Verdict.TIMEOUT]
        return late if len(late) == len(launched) else []

    def _in_turn(self, space: SearchSpace) -> Iterator[candidates.LaunchShape]:
        """All, the default first."""
        first = (space.default,) if space.valid(space.default) else ()
        others = (config for config in space.enumerate() if config not in first)
        return map(self._candidate, chain(first, others))

    def _candidate(self, config: Config) -> candidates.LaunchShape:
        return candidates.candidate_of(config, len(config) - len(self.defines), self.defines)

    def _launch_bound(self, first: candidates.LaunchShape) -> bool:
        nothing = measure(
            self.target.empty_launch(), settings=self.target.settings, timer=self.target.seconds
        )
        # The least of both: whatever interrupts a launch only adds to it.
        return min(self.found[first].times) < _LAUNCH_BOUND * min(nothing.times)

    def _try_all(self, space: SearchSpace, most: int, seed: int) -> None:
        """All candidates if there are no more than ``most``, else a genetic search among them."""
        settings = SearchSettings(population=min(20, most), elites=min(10, most // 2))
        few = len(list(islice(space.enumerate(), most + 1))) <= most
        name = "exhaustive" if few else "genetic"
        seeds = [candidates.config_of(candidate) for candidate in self.found]
        strategy = make_strategy(name, space, random.Random(seed), settings, seeds)
        tried = 0
        while tried < most:
            configs = strategy.ask()
            if not configs:
                return
            results = []
            for config in configs:
                candidate = self._candidate(config)
                if candidate not in self.found and tried < most:
                    run = self._launch(candidate)
                    if run is not None:
                        with self._ending(candidate, Verdict.RUNTIME):
                            self._time_run(candidate, run)
                tried += 1
                known = self.found.get(candidate)
                results.append((config, known.time_us if known is not None else None))
            strategy.tell(results)

    def _launch(self, candidate: candidates.LaunchShape) -> Run | None:
        """A launch of a candidate; None if it cannot be compiled or launched, or does not end."""
        with self._ending(candidate, Verdict.COMPILE):
            reason = self.target.why_not(candidate)
            if reason is not None:
                self._finish(candidate, Verdict.CONSTRAINTS, reason)
        if candidate in self.found:
            return None
        run = self.target.bound(candidate, self.values)
        if self.tried_apart:
            failed = self.target.trial(run, max(_LIMIT, _PATIENCE * (self.best or 0.0)))
            self.arguments.restore()  # what lies in memory that processes share
            if failed is not None:
                self._finish(candidate, *failed)
                return None
        return run

    def _time_run(self, candidate: candidates.LaunchShape, run: Run) -> None:
        """Compare a run with the first one, then time more of them."""
        self.arguments.ready()
        first = self.target.seconds(run, 1)
        self.target.synchronise()
        wrong = self.arguments.mismatch()
        if wrong is not None:
            self._finish(candidate, Verdict.CORRECTNESS, wrong)
            return
        measured = self._measured(run, first)
        message = "dropped early: it is far behind the best" if measured.dropped else ""
        self._finish(candidate, Verdict.CORRECT, message, measured.times)
        if not measured.dropped:
            self.best = min(measured.median, self.best or measured.median)

    def _measured(self, run: Run, first: float) -> Measurement:
        """A short kernel is not dropped for one bad moment."""
        settings = self.target.settings
        for _ in range(_LOOKS):
            measured = measure(
                run, first=first, best=self.best, settings=settings, timer=self._seconds
            )
            if not measured.dropped or measured.times[-1] >= settings.long:
                break
            first = self._seconds(run, 1)
        return measured

    def _seconds(self, run: Run, calls: int) -> float:
        """Outputs that runs add to are restored before each, untimed."""
        if not self.arguments.accumulates:
            return self.target.seconds(run, calls)
        total = 0.0
        for _ in range(calls):
            self.arguments.renew()
            total += self.target.seconds(run, 1)
        return total / calls

    def _race(self, first: candidates.LaunchShape) -> tuple[candidates.LaunchShape, list[str]]:
        """The fastest and the default, in turns; the winner, and what makes times doubtful."""
        ranked = [
            t.candidate
            for t in in_order(self.found.values(), first)
            if t.verdict is Verdict.CORRECT and not t.message
        ]
        entrants = list(dict.fromkeys([first, *sorted(ranked, key=self._median)[:_FINALISTS]]))
        if len(entrants) == 1:
            return first, []
        runs = [self.target.bound(candidate, self.values) for candidate in entrants]
        renew = self.arguments.renew if self.arguments.accumulates else None
        times = race(runs, renew, timer=self._seconds)
        pairs = [
            (median(after), self._median(candidate))
            for candidate, after in zip(entrants, times, strict=True)
        ]
        session = {str(k): (("", samples),) for k, samples in enumerate(times)}
        winner, *_ = standing(Sessions([session]), list(session), "0").order
        chosen = entrants[int(winner)]
        for candidate, samples in zip(entrants, times, strict=True):
            self.found[candidate] = replace(self.found[candidate], times=samples)
        return chosen, self._doubts(pairs, times)

    def _doubts(
        self, pairs: Sequence[tuple[float, float]], times: Sequence[tuple[float, ...]]
    ) -> list[str]:
        pace, noise = scale(pairs), median(map(spread, times))
        if max(pace, 1 / pace) > 1:
            what = f"{max(pace, 1 / pace):.2g} times as {'slow' if pace > 1 else 'fast'}"
            return [f"the device seems busy: at the end kernels were {what} as before; {_REMEDY}"]
        if noise > NOISY:
            return [
                f"the device seems busy: samples of one kernel differ by {noise:.0%}; {_REMEDY}"
            ]
        return []

    def _once(self, run: Run) -> None:
        run()
        self.target.synchronise()

    def _median(self, candidate: candidates.LaunchShape) -> float:
        return median(self.found[candidate].times)

    @contextmanager
    def _ending(self, candidate: candidates.LaunchShape, verdict: Verdict) -> Iterator[None]:
        """A block whose errors are the candidate's verdict, but for what the user did wrong.
        ``TclError`` if the device is lost."""
        try:
            yield
        except (ArgumentError, OptionsError):
            raise
        except Exception as error:
            if self.target.lost():
                raise TclError(
                    f"{self.target.name} failed with block {candidate}; this process can no "
                    f"longer use the device, so restart it: {_sentence(error)}"
                ) from error
            self._finish(candidate, verdict, _sentence(error))

    def _finish(
        self,
        candidate: candidates.LaunchShape,
        verdict: Verdict,
        message: str = "",
        times: tuple[float, ...] = (),
    ) -> None:
        self.found[candidate] = BlockTiming(
            candidate.block, dict(candidate.defines), verdict, times, message
        )


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text[:500] or type(error).__name__


def _unsteady(message: str) -> OptionsError:
    return OptionsError(
        f"the kernel gives different results in each run: {message}; set tolerance= if this is "
        "rounding"
    )
