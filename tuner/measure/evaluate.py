"""What happens in worker processes: the reference, compiling, verifying and timing."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tcl.codegen.common.rounding import UNKNOWN, Rounding
from tcl.common.errors import OptionsError
from tcl.common.number_format import duration
from tcl.tuner.measure.backend import (
    Backend,
    BriefBackend,
    CompiledKernel,
    PlacedArrays,
    Problem,
    Runner,
)
from tcl.tuner.measure.cores import Others, available_cores
from tcl.tuner.measure.correctness import Array, Expected
from tcl.tuner.measure.harness import bytes_of, fingerprint
from tcl.tuner.measure.paired import BUDGET, ROUNDS, race
from tcl.tuner.measure.reliability import Yardstick
from tcl.tuner.measure.timing import (
    MeasureSettings,
    Placed,
    TooSlowError,
    at_most,
    measure,
    together,
)
from tcl.tuner.measure.verdict import Conditions, Outcome, Verdict

if TYPE_CHECKING:
    from tcl.codegen.reference import ComputedElements

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Reference:
    outputs: tuple[Expected, ...]
    seconds: float
    """How long the reference takes for all elements, compiling included: if only some were
    computed, that is estimated."""
    size: int
    """Bytes of the inputs and outputs."""


def compute_reference(backend: Backend[Any]) -> Reference:
    """Run the reference once; its errors are those of the def or its inputs."""
    return _reference(backend, backend.reference)[0]


def brief_reference(backend: BriefBackend[Any]) -> Reference | None:
    """``compute_reference`` of a small sample, by the interpreter, so that any process may do it;
    None if that cannot be done."""
    reference, computed = _reference(backend, backend.brief_reference)
    return None if computed is None else reference


def _reference(
    backend: Runner, compute: Callable[[Sequence[Array], Sequence[Array]], ComputedElements | None]
) -> tuple[Reference, ComputedElements | None]:
    """What ``compute`` makes of the outputs, and which of their elements it computed."""
    started = time.perf_counter()
    problem = backend.problem()
    outputs = tuple(o.copy() for o in problem.outputs)
    computed = compute(problem.inputs, outputs)
    share = 1.0 if computed is None else computed.share
    positions = [None] * len(outputs) if computed is None else computed.positions
    expected = tuple(
        Expected.from_array(*each)
        for each in zip(problem.names, outputs, problem.depths, positions, strict=True)
    )
    size = sum(a.nbytes for a in (*problem.inputs, *outputs))
    return Reference(expected, (time.perf_counter() - started) / share, size), computed


def compile_candidate(backend: Backend[Any], options: object) -> bytes | Outcome:
    """Compiled code, or how compiling failed."""
    try:
        return backend.compile(options)
    except OptionsError as error:
        return Outcome(Verdict.CONSTRAINTS, message=str(error))
    except Exception as error:  # whatever a compiler raises ends this candidate only
        return Outcome(Verdict.COMPILE, message=_sentence(error))


Roundings: TypeAlias = tuple[Sequence[Rounding], ...]
"""Of each output how far rounding takes what the reference computes: what is known soon, then what
``ALL_ROUNDINGS`` know. Both are computed only if kernels differ by more than what is known
before."""
ALL_ROUNDINGS = 2


def more_roundings(
    backend: Runner, known: Roundings, inputs: Sequence[Array] | None = None
) -> Roundings:
    """What is known, and what comes next. ``inputs``: the backend's, if they are there."""
    given = backend.problem().inputs if inputs is None else inputs
    return (*known, tuple(backend.roundings(given, briefly=len(known) < ALL_ROUNDINGS - 1)))


@dataclass(frozen=True, slots=True)
class Timed:
    """A kernel that was correct, and the seconds that a call of it took on the first placement."""

    code: bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class Doubted:
    """A kernel differs from the reference by more than what is known explains, and more can be
    known."""

    known: int
    """Of ``ALL_ROUNDINGS``."""


class _WrongError(Exception):
    """What is wrong with a kernel's results, as a sentence."""


PATIENCE = 2.5
"""A first call is ended that takes so many times as long as the best ..."""
LEAST_PATIENCE = 1.0
"""... and so many seconds, or half of them where even the best takes long."""
_DOUBTED = 1.0
"""Seconds of a first call up to which a second one tells whether the kernel is as slow as that."""
UNCOMPARED = "timed but not compared with the reference, which did not finish"
"""The message of such a candidate."""


class Evaluator:
    """Verifies and times kernels on one problem; lives in the process that runs them.

    Kernels are called with arrays at all placements of the problem's bench, on each verified and
    then timed. What they compute is compared with ``expected``. Where that is a sample, it is
    compared as a whole with what the yardstick computes, which was right there; until there is
    one, with what the same kernel computes in another call, on other poison. ``expected`` is None
    if there is nothing to compare with: then this is all.
    """

    def __init__(
        self,
        backend: Runner,
        expected: Sequence[Expected] | None,
        settings: MeasureSettings,
    ) -> None:
        self._backend = backend
        self._problem: Problem = backend.problem()
        self._expected = None if expected is None else tuple(expected)
        self._bench = self._problem.bench
        self._places = [PlacedArrays(self._problem, each) for each in self._bench.placements]
        self._settings = settings.for_each_of(len(self._places))
        self._yardstick: Yardstick | None = None
        self._kernel = ""
        """Which one that is: a resumed search may have another."""
        self.roundings: Roundings = ()
        """Of the reference; none until a kernel differs from it by more than rounding
        usually explains."""
        self._asks = False
        """Whether somebody else computes them ..."""
        self.doubted = False
        """... and whether the last kernel needs them: what is said of it counts for nothing."""
        self._right: set[tuple[int, ...]] = set()
        """Fingerprints of results that were compared and are right: most kernels compute the same
        bits, and a fingerprint takes a tenth of a comparison."""
        self._whole: list[Expected] | None = None
        """All that the yardstick computes, where only a sample of the results is known."""
        self.used = False
        """Whether kernels ran in this process."""
        self._others = Others()
        self._place = f"{platform.node()} {available_cores()}"

    def evaluate(
        self,
        code: bytes,
        best: float | None,
        yardstick: Timed | None = None,
        *,
        asks: bool = False,
    ) -> Outcome:
        """Verify, then time unless it is wrong. ``best`` is the time to beat, in seconds;
        ``yardstick``, which is timed now and then to see how fast the machine is, stays the same
        for all of a search. ``asks``: where roundings decide, they are asked for, and not computed
        here, where kernels could be measured meanwhile."""
        self.used, self._asks, self.doubted = True, asks, False
        with self._bench.alone():
            if yardstick is not None and self._yardstick is None:
                self._meet(yardstick)
            began = time.monotonic()
            self._others.start()
            outcome = self._evaluated(code, best)
            seconds = time.monotonic() - began
            others = self._others.busy_share()
            at = time.time()
        reading = outcome.conditions.yardstick if outcome.conditions is not None else None
        conditions = Conditions(at, seconds, others, reading, self._place, self._kernel)
        self._asks = False
        return replace(outcome, conditions=conditions)

    def _meet(self, yardstick: Timed) -> None:
        kernel, place = self._backend.load(yardstick.code), self._places[0]
        self._kernel = hashlib.sha256(yardstick.code).hexdigest()[:8]
        self._yardstick = Yardstick(
            place.call(kernel),
            yardstick.seconds,
            reset=self._resetting,
            timer=self._bench.seconds,
        )
        if not self._knows_all:
            with suppress(_WrongError):  # not again: what it computes tells nothing
                self._verified(place, kernel, [])
                self._whole = self._written(place, "the result of the first correct kernel")

    @property
    def _knows_all(self) -> bool:
        """Whether it is known of every element what it has to be."""
        return self._expected is not None and all(e.positions is None for e in self._expected)

    def _written(self, place: PlacedArrays, than: str) -> list[Expected]:
        """What other results are compared with from now on. Both may differ from what is exact:
        by rounding twice as much as one of them."""
        return [
            Expected.from_array(name, values, 4 * depth, than=than)
            for name, values, depth in zip(
                self._problem.names, place.values(), self._problem.depths, strict=True
            )
        ]

    def _or_failed(self, trial: Callable[[], _T], best: float | None = None) -> _T | Outcome:
        """What a trial gives, or how it failed: whatever it raises is the kernel's verdict."""
        try:
            return trial()
        except _WrongError as error:
            return Outcome(Verdict.CORRECTNESS, message=str(error))
        except TooSlowError as error:
            message = f"{error}: the best takes {duration(best or 0.0)}"
            return Outcome(Verdict.TIMEOUT, message=message)
        except Exception as error:
            self._bench.failed(error)
            return Outcome(Verdict.RUNTIME, message=_sentence(error))

    def _evaluated(self, code: bytes, best: float | None) -> Outcome:
        outcome = self._or_failed(lambda: self._tried(self._backend.load(code), best), best)
        if any([place.changed() for place in self._places]):
            return Outcome(Verdict.CORRECTNESS, message="the kernel changed an input")
        return outcome

    def _tried(self, kernel: CompiledKernel, best: float | None) -> Outcome:
        """What becomes of a kernel. Raises ``_WrongError``, ``TooSlowError``, or what it raises."""
        limit = None
        if best is not None:
            least = LEAST_PATIENCE / 2 if best >= self._settings.long else LEAST_PATIENCE
            limit = max(least, PATIENCE * best)
        own: list[Expected] = []
        first = self._verified(self._places[0], kernel, own, limit=limit)
        if not self._knows_all and self._whole is None:
            own += self._written(self._places[0], "the result of its own earlier call")
        if self._hopeless(first, best) and first < _DOUBTED:
            # Something else may have had the core: one reading throws nothing away.
            first = min(first, self._verified(self._places[0], kernel, own, second=True))
        if self._hopeless(first, best):
            return Outcome(Verdict.CORRECT, (first,), self._message((first,), best))

        def take(pace: float) -> _PlacedTimes:
            # On a machine that is slower now than when the best was timed, all are.
            return self._timed(kernel, first, own, None if best is None else best * pace)

        if self._yardstick is None:
            taken, reading = take(1.0), None
        else:
            taken, reading = self._yardstick.timed(take)
        conditions = Conditions(0.0, 0.0, yardstick=reading)
        message = self._message(taken.times, best) if taken.dropped else ""
        if self._expected is None:
            message = UNCOMPARED
        return Outcome(
            Verdict.CORRECT, taken.times, message, conditions=conditions, placed=taken.placed
        )

    def _hopeless(self, first: float, best: float | None) -> bool:
        """Whether a kernel whose first call took so long is not timed."""
        return first >= self._settings.long and self._settings.gives_up(first, best)

    def _message(self, times: Sequence[float], best: float | None) -> str:
        ratio = median(times) / (best or math.inf)
        return f"dropped early: it takes {ratio:.2g} times as long as the best"

    def _timed(
        self, kernel: CompiledKernel, first: float, own: Sequence[Expected], best: float | None
    ) -> _PlacedTimes:
        """Time a kernel that was right on the first placement, and verify it on the others.

        Memory that it keeps between calls, or a race of its threads, may spoil results later than
        the first: that is seen there. A kernel that is dropped is not timed there, and if its calls
        are long not verified either: it does not win. Of one placement the second call is there.
        """
        taken: list[tuple[str, tuple[float, ...]]] = []
        for number, place in enumerate(self._places):
            if number:
                first = self._verified(place, kernel, own, second=True)
            measured = measure(
                place.call(kernel),
                first=first,
                best=None if best is None else _left(best, taken),
                reset=self._resetting,
                settings=self._settings,
                timer=self._bench.seconds,
            )
            taken.append((place.name, measured.times))
            if measured.dropped:
                break
        if len(taken) == 1 and not (measured.dropped and first > self._settings.long):
            self._verified(self._places[-1], kernel, own, second=True)
        return _PlacedTimes(tuple(taken), measured.dropped)

    def _verified(
        self,
        place: PlacedArrays,
        kernel: CompiledKernel,
        own: Sequence[Expected],
        *,
        second: bool = False,
        limit: float | None = None,
    ) -> float:
        """Duration of a call, the results of which are right; ``_WrongError`` if they are not, and
        ``TooSlowError`` if it takes longer than ``limit``. ``own``: what an earlier call computed,
        if there is nothing better to compare with."""
        place.poison(second=second)
        with at_most(limit):
            seconds = self._bench.seconds(place.call(kernel), 1)
        wrong = self._wrong(place, own) or place.stray()
        if wrong is not None:
            raise _WrongError(f"correct at first, wrong later: {wrong}" if second else wrong)
        return seconds

    def _wrong(self, place: PlacedArrays, own: Sequence[Expected]) -> str | None:
        """``_mismatch`` of results that are not known to be right, with the roundings that it
        needs."""
        found = tuple(fingerprint(bytes_of(values)) for values in place.values())
        if found in self._right:
            return None
        wrong = self._mismatch(place, own)
        while wrong is not None and len(self.roundings) < ALL_ROUNDINGS:
            if self._asks:
                self.doubted = True
                return wrong
            self.roundings = more_roundings(self._backend, self.roundings, self._problem.inputs)
            wrong = self._mismatch(place, own)
        if wrong is None and (self._knows_all or self._whole is not None):
            self._right.add(found)
        return wrong

    def _mismatch(self, place: PlacedArrays, own: Sequence[Expected]) -> str | None:
        """What is wrong with the results that lie at a place."""
        unknown = [UNKNOWN] * len(self._problem.names)
        roundings = self.roundings[-1] if self.roundings else unknown
        for comparisons, differing in ((self._expected or (), 1), (self._whole or own, 2)):
            compared = zip(comparisons, place.values(), roundings, strict=False)
            for expected, values, rounding in compared:
                wrong = expected.mismatch(values, rounding.times(differing))
                if wrong is not None:
                    return wrong
        return None

    @property
    def _resetting(self) -> Callable[[], object] | None:
        resets = [place.reset for place in self._places]
        return (lambda: [reset() for reset in resets]) if any(self._problem.initialised) else None

    def verify(self, code: bytes) -> Outcome | None:
        """How a kernel fails on one of the placements; None if it is right on all of them."""

        def trial() -> None:
            own, kernel = list[Expected](), self._backend.load(code)
            for number, place in enumerate(self._places):
                self._verified(place, kernel, own, second=number > 0)
                if not number and not self._knows_all:
                    own += self._written(place, "the result of its own earlier call")

        return self._or_failed(trial)

    def race(
        self, codes: Sequence[bytes], rounds: int = ROUNDS, budget: float = BUDGET
    ) -> list[Placed]:
        """Times of kernels that have been verified, taken in turns."""
        self.used = True
        with self._bench.alone():
            kernels = [self._backend.load(code) for code in codes]
            runs = [place.call(kernel) for kernel in kernels for place in self._places]
            timer = self._bench.seconds
            times = race(runs, self._resetting, timer=timer, rounds=rounds, budget=budget)
        names, count = [place.name for place in self._places], len(self._places)
        return [
            tuple(zip(names, times[k : k + count], strict=True))
            for k in range(0, len(times), count)
        ]


def _left(best: float, taken: Sequence[tuple[str, tuple[float, ...]]]) -> float:
    """What a kernel may take on the next placement to be as fast as ``best`` in the mean ratio."""
    before = math.prod(median(times) for _, times in taken)
    return float(best ** (len(taken) + 1)) / before


@dataclass(frozen=True, slots=True)
class _PlacedTimes:
    placed: Placed
    dropped: bool

    @property
    def times(self) -> tuple[float, ...]:
        return together(self.placed)


_evaluators: list[Evaluator] = []
"""Of this worker process: one, once it is set up."""


def set_up(backend: Runner, expected: Sequence[Expected] | None, settings: MeasureSettings) -> None:
    """Initialise an evaluating worker."""
    _evaluators[:] = [Evaluator(backend, expected, settings)]


def evaluate_candidate(
    code: bytes,
    best: float | None,
    yardstick: Timed | None = None,
    roundings: Roundings = (),
    asks: bool = False,
) -> Outcome | Doubted:
    """Verdict and times of compiled code, in a worker that was set up. ``roundings``: of the
    reference, if they are known; else the worker computes them when they decide, or ``asks``."""
    (evaluator,) = _evaluators
    evaluator.roundings = max(evaluator.roundings, roundings, key=len)
    outcome = evaluator.evaluate(code, best, yardstick, asks=asks)
    return Doubted(len(evaluator.roundings)) if evaluator.doubted else outcome


def race_candidates(
    codes: Sequence[bytes],
    known: Sequence[bool] | None = None,
    rounds: int = ROUNDS,
    budget: float = BUDGET,
    roundings: Roundings = (),
) -> list[Placed | Outcome]:
    """Times of compiled code, taken in turns, in a worker that was set up. ``known``: it has to
    have run nothing before, and whether each is known to be right in such a process; those that are
    not are verified, and how they end that fail is the result. A process that has run something
    ends, so that the next one is asked."""
    (evaluator,) = _evaluators
    evaluator.roundings = max(evaluator.roundings, roundings, key=len)
    if known is not None and evaluator.used:
        os._exit(_USED)
    pairs = zip(codes, known or [True] * len(codes), strict=True)
    failed = [None if right else evaluator.verify(code) for code, right in pairs]
    right = [code for code, outcome in zip(codes, failed, strict=True) if outcome is None]
    times = iter(evaluator.race(right, rounds, budget))
    return [next(times) if outcome is None else outcome for outcome in failed]


_USED = 75
"""The exit code of a process that is not fresh any more."""


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:500] if text else type(error).__name__
