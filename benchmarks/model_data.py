"""Measures candidates for a model to learn from, those first from which it learns most.

    python -m benchmarks.model_data --cache model.db                     # an hour
    python -m benchmarks.model_data --cache model.db --seconds 60 --problems matmul,softmax

Problems are taken in turns, those with the fewest first, so that it may be stopped at any time; a
second run goes on where the first one ended. A turn reads every candidate's time once, shortly,
then times the fastest ones and the default in turns with each other (``tcl.tuner.measure.race``):
the least of many single readings is mostly luck.

Nearly all that is much faster than the default differs from it in one option or two. So the first
turn of a problem measures candidates that differ in one knob. Later ones measure what is left of
these, and others within a few knobs of the default or of the best so far: those that a model of
everything so far expects to be fastest, those about which its members disagree most, and some at
random. A few are from anywhere in the search space, so that it is known what is bad. See
``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import math
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from random import Random
from statistics import median

from benchmarks.model_problems import PROBLEMS
from tcl.arrays.annotations import parse_sizes
from tcl.arrays.arguments import Array
from tcl.arrays.random_inputs import random_inputs
from tcl.backends.program_backend import CpuBackend
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import MappingOptions
from tcl.common.scratch_folder import workspace
from tcl.executors.call_kernels import size
from tcl.grammar.check.definitions import check
from tcl.grammar.tree.checked import CheckedDef
from tcl.selection.best_options import DEFAULT, cache_key
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.cache.key import CacheKey
from tcl.tuner.cache.tuning_cache import Record, TuningCache
from tcl.tuner.measure.evaluate import Reference, compute_reference
from tcl.tuner.measure.timing import MeasureSettings, Placed, together
from tcl.tuner.measure.verdict import Outcome, Verdict
from tcl.tuner.model.cpu_subject import CpuSubject
from tcl.tuner.model.model import Model
from tcl.tuner.run.finals import IN_FINALS
from tcl.tuner.run.pipeline import CandidatePipeline, Job
from tcl.tuner.run.workplace import Here, Orders
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.tuner.space.search_space import Config, SearchSpace
from tcl.tuner.training.history import history
from tcl.tuner.training.learn import learn

EXAMPLES = Path(__file__).parent.parent / "examples"
TIMING = MeasureSettings(
    sample=3e-4, discard=1, samples=5, agreement=0.02, budget=0.03, hopeless=1000, slow=30
)
"""Of the first reading of a candidate. One or two calls do not say that it is slow: where others
work on the machine, a third of all were given up as taking three times as long as the default, of
which a second reading confirmed half."""
_DRAWN = 250
"""Candidates that are ranked in a turn."""
_RACED = 12
"""Candidates that are timed in turns, besides the default ..."""
_AGAIN = 4
"""... of which so many are the fastest of earlier turns."""
PATIENCE = 20.0
"""Seconds for compiling a candidate."""


@dataclass(frozen=True, slots=True)
class Turn:
    """How many candidates are measured in a turn of a problem, and of what kind."""

    single: int = 40
    """Those that differ from the default in one knob, in the first turn; in later ones a part."""
    best: int = 16
    doubted: int = 8
    chance: int = 10
    anywhere: int = 4


@cache
def sources() -> dict[str, str]:
    """Def → the text of the file that has it."""
    texts = [path.read_text("utf-8") for path in sorted(EXAMPLES.glob("*.tc"))]
    return {name: text for text in texts for name in check(text)}


@dataclass(frozen=True)
class Task:
    """A def with its sizes."""

    name: str
    sizes: str
    threads: int

    @property
    def source(self) -> str:
        """The text that has the def."""
        return sources()[self.name]

    @property
    def checked(self) -> CheckedDef:
        """The def."""
        return check(self.source)[self.name]

    @property
    def inputs(self) -> tuple[Array, ...]:
        """The same ones every time."""
        return random_inputs(self.checked, parse_sizes(self.sizes, self.checked), 0)

    @cached_property
    def key(self) -> CacheKey:
        """Under which its candidates are kept."""
        inputs = self.inputs
        return cache_key(size(self.checked, inputs), inputs, self.threads)


def singles(space: SearchSpace, start: Config) -> list[Config]:
    """Everything valid that differs in one knob, a value of each knob after the other."""
    rng, by_knob = Random(0), list[list[Config]]()
    for k, knob in enumerate(space.knobs):
        others = [c for c in knob.choices if c != start[k]]
        rng.shuffle(others)
        changed = ((*start[:k], c, *start[k + 1 :]) for c in others)
        by_knob.append([c for c in changed if space.valid(c)])
    rng.shuffle(by_knob)
    longest = max(map(len, by_knob), default=0)
    return [own[k] for k in range(longest) for own in by_knob if k < len(own)]


def near(space: SearchSpace, starts: Sequence[Config], count: int, rng: Random) -> list[Config]:
    """Up to ``count`` that differ from one of these in one to three knobs."""
    found: dict[Config, None] = {}
    open_ = [k for k, knob in enumerate(space.knobs) if knob.cardinality > 1]
    for _ in range(4 * count if open_ else 0):
        if len(found) >= count:
            break
        config = rng.choice(starts)
        for _ in range(rng.choice((1, 2, 2, 3))):
            k = rng.choice(open_)
            moved = (*config[:k], space.knobs[k].mutate(config[k], rng), *config[k + 1 :])
            config = moved if space.valid(moved) else config
        if config not in starts:
            found[config] = None
    return [*found]


def chosen(
    model: Model | None, subject: CpuSubject, drawn: Sequence[MappingOptions], turn: Turn
) -> list[MappingOptions]:
    """Of drawn candidates, those to measure."""
    if model is None:
        return [*drawn[: turn.best + turn.doubted + turn.chance]]
    described = subject.describable(drawn)
    expected = model.predict_rows(subject.extract([choices for _, choices in described])[0])
    found: dict[int, None] = dict.fromkeys(expected.logs.argsort()[: turn.best].tolist())
    for order, count in (
        ((-expected.spread).argsort().tolist(), turn.doubted),
        (range(len(described)), turn.chance),  # in the order in which they were drawn
    ):
        wanted = len(found) + count
        for k in order:
            if len(found) >= wanted:
                break
            found[k] = None
    return [drawn[described[k][0]] for k in found]


def proposed(
    task: Task,
    space: MappingSpace,
    model: Model | None,
    subject: CpuSubject,
    known: Sequence[Record],
    turn: Turn,
    rng: Random,
) -> list[MappingOptions]:
    """What a turn measures besides the default."""
    start = space.nearest(DEFAULT)
    measured = {r.options for r in known}

    def new(configs: Sequence[Config]) -> Iterator[MappingOptions]:
        for options in map(space.to_options, configs):
            if (text := options.to_json()) not in measured:
                measured.add(text)
                yield options

    single = [*new(singles(space.space, start))]
    anywhere = [space.space.sample(rng) for _ in range(turn.anywhere)]
    some = [*new([c for c in anywhere if c is not None])]
    if not known:
        return [*single[: turn.single], *some]
    raced = sorted((r.time, r.options) for r in known if r.time and r.heat is not None)
    fastest = [*dict.fromkeys(text for _, text in raced)][:3]
    starts = [space.from_options(MappingOptions.from_json(text)) for text in fastest]
    around = [start, start, *(c for c in starts if c is not None)]
    drawn = [*new(near(space.space, around, _DRAWN, rng))]
    rest = single[: turn.single // 2]
    return [*rest, *chosen(model, subject, [*drawn, *single[len(rest) :]], turn), *some]


def measure(
    cache: TuningCache,
    task: Task,
    reference: Reference | None,
    model: Model | None,
    turn: Turn,
    seed: int,
) -> tuple[str, Reference]:
    """One turn of a problem; what to say about it, and what its outputs have to be."""
    began, run, known = time.monotonic(), uuid.uuid4().hex, cache.history(task.key)
    with workspace() as folder:
        backend = CpuBackend.create(task.source, task.name, task.inputs, folder, task.threads)
        space = MappingSpace(backend.program(), backend.device)
        subject = CpuSubject.read(backend.program(), backend.device)
        options = proposed(task, space, model, subject, known, turn, Random(seed))
        expected = reference or compute_reference(backend)
        orders = Orders(
            *(backend, expected.outputs, TIMING, PATIENCE, 10.0 + 10.0 * expected.seconds, 0),
            *(task.threads, expected.size),
        )
        stages = Here().open(orders)
        try:
            pipeline = CandidatePipeline(backend, stages, lambda: 0)
            found: dict[str, Outcome] = {}

            def done(job: Job[MappingOptions], outcome: Outcome) -> None:
                found[job.options.to_json()] = outcome

            pipeline.run([Job(DEFAULT, None, 0)], done)
            pipeline.run([Job(o, None, k) for k, o in enumerate(options, 1)], done)
            finalists = _finalists(found, known)
            times = pipeline.race([MappingOptions.from_json(text) for text in finalists])
        finally:
            stages.close()
    now = time.time()
    records = [Record.from_outcome(text, outcome, now, run, 1) for text, outcome in found.items()]
    raced = dict(zip(finalists, times or (), strict=False))
    cache.add(task.key, [*records, *_heat(raced, now, run)], entry=task.name)
    works = sum(o.time is not None for o in found.values())
    said = f"{task.name} {task.sizes}: {works} of {len(found)} work"
    if raced:
        default, best = (median(together(raced[t])) for t in (finalists[0], _best(raced)))
        said += f", default {default * 1e6:.0f} us, best {best / default:.3f} of it"
    return f"{said}, in {time.monotonic() - began:.0f} s", expected


def _best(raced: dict[str, Placed]) -> str:
    return min(raced, key=lambda text: median(together(raced[text])))


def _finalists(found: dict[str, Outcome], known: Sequence[Record]) -> list[str]:
    """The default, the fastest of this turn, and the fastest of those before; of options that make
    one kernel, the first."""
    default = DEFAULT.to_json()
    own, seen = [default], {c.moment for c in [found[default].conditions] if c is not None}
    for text in sorted(found, key=lambda t: found[t].time or math.inf):
        outcome = found[text]
        if outcome.time is None or len(own) > _RACED - _AGAIN:
            break
        if outcome.conditions is None or outcome.conditions.moment not in seen:
            seen |= {c.moment for c in [outcome.conditions] if c is not None}
            own.append(text)
    times: dict[str, list[float]] = {}
    for record in known:
        if record.heat is not None and record.time is not None:
            times.setdefault(record.options, []).append(record.time)
    before = sorted(times, key=lambda text: median(times[text]))
    again = [text for text in before if text not in own]
    return [*own, *again[: _RACED + 1 - len(own)][:_AGAIN]]


def _heat(raced: dict[str, Placed], now: float, run: str) -> Iterator[Record]:
    """What was timed in turns, the fastest first."""
    ordered = sorted(raced, key=lambda text: median(together(raced[text])))
    for place, text in enumerate(ordered, start=1):
        times = together(raced[text])
        outcome = Outcome(
            Verdict.CORRECT, times, IN_FINALS, heat=0, place=place, placed=raced[text]
        )
        yield Record.from_outcome(text, outcome, now, run, 1)


def model_of(cache: TuningCache, tasks: Sequence[Task]) -> Model | None:
    """What everything measured so far says; None if there is nothing."""
    device = replace(host_cpu(), threads=tasks[0].threads)
    defs = {task.name: task.checked for task in tasks}.values()
    learned = history(cache, defs, {device_identity(device): device}).problems
    return learn(learned) if learned else None


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_data", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--cache", type=Path, required=True, help="a tuning cache of its own")
    parser.add_argument("--seconds", type=float, default=3600, help="no turn begins after these")
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="names, with commas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    names = given.problems.split(",")
    for name in names:
        if name not in PROBLEMS:
            parser.error(f"there is no problem {name!r}; there are {', '.join(PROBLEMS)}")
    longest = max(len(PROBLEMS[name]) for name in names)
    # One of each def after the other.
    tasks = [
        Task(name, PROBLEMS[name][k], given.threads)
        for k in range(longest)
        for name in names
        if k < len(PROBLEMS[name])
    ]
    tuned, began = TuningCache(given.cache), time.monotonic()
    turns = {task: len({r.run for r in tuned.history(task.key)}) for task in tasks}
    references: dict[Task, Reference] = {}
    model, learned = None, 0
    while True:
        task = min(tasks, key=lambda t: turns[t])
        if time.monotonic() - began > given.seconds:
            return
        if turns[task] > learned:
            model, learned = model_of(tuned, tasks), turns[task]
        seed = given.seed + turns[task]
        said, references[task] = measure(tuned, task, references.get(task), model, Turn(), seed)
        turns[task] += 1
        print(f"{turns[task]}: {said}", flush=True)


if __name__ == "__main__":
    main()
