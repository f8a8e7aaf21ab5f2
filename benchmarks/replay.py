"""Recorded measurements as a search space, and searches replayed on them.

A recorded space is a table: one row a configuration, in which the last column, ``time_ms``, is
empty where the configuration failed. What is not in the table is invalid.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import Random

from tcl.codegen.options.knobs import Knob, Value
from tcl.common.dataclass import dataclass
from tcl.tuner.space.search_space import Config
from tcl.tuner.strategies.strategy import Strategy

TIME = "time_ms"


@dataclass(frozen=True, slots=True)
class RecordedSpace:
    """A space of which every configuration has been measured."""

    name: str
    knobs: tuple[Knob, ...]
    times: Mapping[Config, float | None]
    """By valid configuration; None where it failed."""
    _configs: tuple[Config, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_configs", tuple(self.times))

    @property
    def cardinality(self) -> int:
        """Number of configurations, valid or not."""
        return math.prod(k.cardinality for k in self.knobs)

    @property
    def optimum(self) -> float:
        """The shortest time."""
        return min(t for t in self.times.values() if t is not None)

    def valid(self, config: Config) -> bool:
        """Whether it is in the table."""
        return config in self.times

    def sample(self, rng: Random) -> Config | None:
        """A row of the table."""
        return rng.choice(self._configs) if self._configs else None

    def neighbours(self, config: Config) -> Iterator[Config]:
        """Rows that differ in one knob, by one step where it is ordered."""
        for i, (knob, value) in enumerate(zip(self.knobs, config, strict=True)):
            for other in knob.neighbours(value):
                candidate = (*config[:i], other, *config[i + 1 :])
                if candidate in self.times:
                    yield candidate

    def enumerate(self) -> Iterator[Config]:
        """The rows, in the order of the table."""
        return iter(self._configs)


@cache
def load_space(path: Path) -> RecordedSpace:
    """Read ``NAME.csv.gz``; ``ValueError`` if it is not such a table."""
    with gzip.open(path, "rt", newline="") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    if header[-1:] != [TIME] or not rows:
        raise ValueError(f"{path}: a table whose last column is {TIME} was expected")
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"{path}: rows of different length")
    columns = [[row[i] for row in rows] for i in range(len(header) - 1)]
    parsed = [_column(name, texts) for name, texts in zip(header, columns, strict=False)]
    configs = zip(*(values for _, values in parsed), strict=True)
    measured = (float(row[-1]) / 1e3 if row[-1] else None for row in rows)
    times = dict(zip(configs, measured, strict=True))
    if len(times) < len(rows):
        raise ValueError(f"{path}: a configuration is there twice")
    knobs = tuple(knob for knob, _ in parsed)
    return RecordedSpace(path.name.removesuffix(".csv.gz"), knobs, times)


def _column(name: str, texts: Sequence[str]) -> tuple[Knob, list[Value]]:
    """A knob and its value in each row: ordered if all are numbers, and more than two."""
    values: list[Value]
    try:
        sizes = {text: float(text) for text in texts}
    except ValueError:
        values = list(texts)
        choices = tuple(dict.fromkeys(sorted(texts)))
        return Knob(name, choices, choices[0], ordered=False), values
    whole = all(size.is_integer() for size in sizes.values())
    values = [int(sizes[text]) if whole else text for text in texts]
    of = dict(zip(values, (sizes[text] for text in texts), strict=True))
    ranked = tuple(sorted(of, key=lambda value: of[value]))
    return Knob(name, ranked, ranked[0], ordered=len(ranked) > 2), values


def replay(strategy: Strategy, space: RecordedSpace, evaluations: int) -> list[float | None]:
    """The times that a search would have measured, in order; fewer when nothing is left."""
    times: list[float | None] = []
    while len(times) < evaluations and (asked := strategy.ask()):
        results = [(config, space.times[config]) for config in asked]
        strategy.tell(results)
        times += [time for _, time in results]
    return times[:evaluations]


def reached(
    space: RecordedSpace, times: Sequence[float | None], counts: Sequence[int]
) -> tuple[float, ...]:
    """Optimum / best found, after so many evaluations each."""
    best = list(accumulate((math.inf if t is None else t for t in times), min))
    return tuple(space.optimum / best[min(n, len(best)) - 1] for n in counts)
