"""What changes of one knob gain, and how good the order is that this gives: on a cache.

    python -m benchmarks.single_changes --cache model.db --out FILE [--threads 1]

Of a cache with searches for defs of the examples, the candidates that differ from the default in
one knob are taken. A kind of change is a knob's name without its loop, and whether the value goes
up. Its gain is the share of the default's time that one of the kind saves, in the mean over
problems; one that is no faster saves nothing. Then the candidates of each problem are put in the
order in which ``tcl.tuner.space.around.singles`` has them: by the gains as they stand there, by
gains from all problems of other defs, and by a random order. Printed is the time of the best of the
first 10, 20 and 40 over the default's, in the mean over problems. See ``benchmarks/README.md``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import fmean

from benchmarks.common import command, write
from tcl.bench.rows import EXAMPLES
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import DEFAULT
from tcl.grammar.check.definitions import check
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.model.cpu_subject import CpuSubject
from tcl.tuner.space.around import PAID, Change, Kind, change_kind, singles
from tcl.tuner.space.cpu.mapping import MappingSpace
from tcl.tuner.space.search_space import Config, SearchSpace
from tcl.tuner.training.history import MeasuredProblem, history

FIRST = (10, 20, 40)
_ALL = 1000
"""More than there are."""
_WAYS = {True: "up", False: "down", None: "to any other"}
_FEWEST = 20
"""Candidates that differ in one knob, of problems that take part."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The changes of one knob that were measured of a problem."""

    entry: str
    space: SearchSpace
    default: Config
    times: Mapping[Config, float]
    """Over the default's."""

    @staticmethod
    def of(problem: MeasuredProblem) -> Measured | None:
        """None where too few were measured."""
        subject = problem.subject
        if not isinstance(subject, CpuSubject) or problem.default is None:
            return None
        about = MappingSpace(subject.program, subject.device)
        default, times = about.nearest(DEFAULT), dict[Config, float]()
        for options, seconds in zip(problem.options, problem.seconds, strict=True):
            config = about.from_options(options)
            if config is not None and sum(map(lambda a, b: a != b, config, default)) == 1:
                times[config] = float(seconds / problem.seconds[problem.default])
        if len(times) < _FEWEST:
            return None
        return Measured(problem.entry, about.space, default, times)

    def kind(self, config: Config) -> Kind:
        """Of the change."""
        (place,) = (k for k, value in enumerate(config) if value != self.default[k])
        return change_kind(self.space.knobs[place], self.default[place], config[place])

    def best(self, order: Sequence[Config], count: int) -> float:
        """Time of the best of the first ``count`` and the default, over the default's."""
        return min(1.0, *(self.times[c] for c in order[:count]))

    def ordered(self, gains: Mapping[Kind, float]) -> list[Config]:
        """What was measured, by these gains."""

        def measured(changes: tuple[Change, ...]) -> Config | None:
            config = list(self.default)
            for place, value in changes:
                config[place] = value
            return tuple(config) if tuple(config) in self.times else None

        return [*singles(self.space.knobs, self.default, measured, gains)]


def gained(all_: Sequence[Measured]) -> dict[Kind, float]:
    """What a change of each kind saves, in the mean over the problems that have some."""
    by_kind: dict[Kind, list[float]] = defaultdict(list)
    for measured in all_:
        own: dict[Kind, list[float]] = defaultdict(list)
        for config, time in measured.times.items():
            own[measured.kind(config)].append(max(0.0, 1.0 - time))
        for kind, saved in own.items():
            by_kind[kind].append(fmean(saved))
    return {kind: fmean(saved) for kind, saved in by_kind.items()}


def main() -> None:
    """The command line."""
    parser = command("single_changes", __doc__)
    parser.add_argument("--cache", type=Path, required=True, help="a tuning cache")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    device = replace(host_cpu(), threads=given.threads)
    texts = [path.read_text("utf-8") for path in sorted(EXAMPLES.glob("*.tc"))]
    defs = [checked for text in texts for checked in check(text).values()]
    problems = history(TuningCache(given.cache), defs, {device_identity(device): device}).problems
    all_ = [found for p in problems if (found := Measured.of(p)) is not None]
    gains = sorted(gained(all_).items(), key=lambda item: -item[1])
    for (knob, up), gain in gains:
        print(f"{gain:.4f} {knob} {_WAYS[up]}")

    def others(entry: str) -> dict[Kind, float]:
        return gained([m for m in all_ if m.entry != entry])

    orders: dict[str, Callable[[Measured], list[Config]]] = {
        "as it stands": lambda m: m.ordered(PAID),
        "from other defs": lambda m: m.ordered(others(m.entry)),
        "at random": lambda m: Random(0).sample([*m.times], len(m.times)),
    }
    scores = {}
    for name, order in orders.items():
        pairs = [(m, order(m)) for m in all_]
        scores[name] = {n: fmean(m.best(o, n) for m, o in pairs) for n in (*FIRST, _ALL)}
        print(name, *(f"{n}: {score:.3f}" for n, score in scores[name].items()))
    data = {
        "threads": given.threads,
        "problems": len(all_),
        "changes": sum(len(m.times) for m in all_),
        "best_of_the_first": scores,
        "gains": [{"knob": k, "way": _WAYS[up], "gain": round(g, 5)} for (k, up), g in gains],
    }
    write(given.out, data)


if __name__ == "__main__":
    main()
