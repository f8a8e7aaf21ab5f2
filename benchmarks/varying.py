"""What a kernel for many sizes costs, and whether it is right: beside the kernel for each size.

    python -m benchmarks.varying                                   # the suite, 1 thread
    python -m benchmarks.varying --rows softmax --timed 25 --draws 0 --out FILE

Each row's batch dimension (of those without one, a size of its def) varies: sizes are drawn up to
the row's own, each order of magnitude as often as the others. Two things are looked at.

- ``--draws``: results at so many sizes, and at those around all borders, are compared with those of
  another kernel or of NumPy; the kernels that it took are counted, by their classes.
- ``--timed``: the kernel of ``define(..., varying=...)`` and the one for a size alone take turns on
  the same arrays. Printed are the ratio of their times (its geometric mean, and the worst size).

Kernels are kept in the cache folder: a second run compiles nothing.
"""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

import tcl
import tcl.executors.executor
import tcl.executors.varying
from benchmarks.common import command, samples, write
from tcl.arrays.random_inputs import input_shape, random_inputs
from tcl.bench.rows import SUITE, Row, select
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.reference.whole_array import whole_array
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.sizes.size_classes import BUCKETS
from tcl.grammar.sizes.varying import symbols_of
from tcl.tuner.measure.correctness import accumulation_depths, mismatch

SAMPLE = 2e-3
"""Seconds of a sample: shorter calls are repeated."""
SAMPLES = 15
"""Of which the least counts: whatever else runs makes others longer."""
LEAST_MOST = 32
"""Rows that have fewer in their batches are drawn up to this."""
Array = np.ndarray[Any, np.dtype[Any]]


def main() -> None:
    parser = command("varying", __doc__)
    parser.add_argument("--rows", default="", help="names or patterns, by commas")
    parser.add_argument(
        "--draws", type=int, default=1000, help="sizes that results are compared at"
    )
    parser.add_argument("--timed", type=int, default=6, help="sizes that both kernels are timed at")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    made = counted()
    found: dict[str, dict[str, Any]] = {}
    for row in select(given.rows) if given.rows else SUITE:
        subject = Subject(row, given.threads, given.seed)
        figures: dict[str, Any] = {"varies": subject.name, "up_to": subject.most}
        if given.draws:
            figures |= compared(subject, given.draws, made)
        if given.timed:
            figures |= beside_one(subject, given.timed)
        found[row.name] = figures
        print(f"{row.name:28}", *(f"{k} {v}" for k, v in figures.items()), sep="  ", flush=True)
    ratios = [x["ratio"] for x in found.values() if "ratio" in x]
    mean = round(statistics.geometric_mean(ratios), 3) if ratios else None
    right = sum(x.get("sizes", 0) for x in found.values())
    print(f"geometric mean {mean}; {right} sizes are right")
    write(given.out, {"threads": given.threads, "mean": mean, "rows": found})


@dataclass
class Subject:
    """A row, one size of which varies."""

    row: Row
    threads: int
    seed: int

    @property
    def name(self) -> str:
        """Of the size."""
        sizes = self.row.checked.sizes
        return self.row.batch or ("B" if "B" in sizes else sizes[0])

    @property
    def most(self) -> int:
        """The largest value that it has."""
        return max(self.row.values[self.name], LEAST_MOST)

    @cached_property
    def _largest(self) -> tuple[Array, ...]:
        values = {**self.row.values, self.name: self.most}
        return tuple(random_inputs(self.row.checked, values, self.seed))

    def inputs(self, size: int) -> tuple[Array, ...]:
        """Those of a size: the first rows of the largest ones."""
        found = []
        for tensor, array in zip(self.row.checked.inputs, self._largest, strict=True):
            for axis, dim in enumerate(tensor.dims or ()):
                if dim == self.name:
                    array = array[(slice(None),) * axis + (slice(size),)]
            found.append(np.asarray(array, order="C"))
        return tuple(found)

    def sized(self, size: int) -> SizedDef:
        """The def at a size."""
        checked, values = self.row.checked, {**self.row.values, self.name: size}
        return infer(checked, {t.name: input_shape(t, values) for t in checked.inputs})

    def outputs(self, size: int) -> tuple[Array, ...]:
        """Memory for those of a size, in which somebody has written."""
        shapes = self.sized(size).shapes
        return tuple(
            np.full(shapes[t.name], 1, numpy_dtype(t.type)) for t in self.row.checked.outputs
        )

    def many(self) -> Any:
        """The def for many sizes."""
        return tcl.define(self.row.text, varying=(self.name,), threads=self.threads)[self.row.entry]

    def one(self) -> Any:
        """The def for one size."""
        return tcl.define(self.row.text, threads=self.threads)[self.row.entry]

    def drawn(self, count: int) -> list[int]:
        """Random sizes, each once."""
        rng = random.Random(self.seed)
        top = math.log(self.most + 1)
        return sorted({int(math.exp(rng.uniform(0, top))) for _ in range(count)})

    def expected(self) -> Callable[[int, Sequence[Array]], Sequence[Array]]:
        """Gives what the outputs at a size have to be. Where a row's work falls apart along it, the
        first rows of what the kernel for the largest size gives, else what NumPy does."""
        if self.row.batch:
            largest = _several(self.one()(*self.inputs(self.most)))
            return lambda size, _: [each[:size] for each in largest]

        def numpys(size: int, inputs: Sequence[Array]) -> Sequence[Array]:
            found = self.outputs(size)
            whole_array(self.sized(size))(inputs, found)
            return found

        return numpys


def _several(results: Any) -> tuple[Array, ...]:
    return results if isinstance(results, tuple) else (results,)


def counted() -> list[str]:
    """Grows by the class of every kernel for many sizes that is made, and by ``one size`` for every
    other one."""
    made: list[str] = []
    classes: Any = tcl.executors.varying
    alone: Any = tcl.executors.executor
    for_all, for_one = classes.ready_for_all, alone.ready

    def ready_for_all(sized: Any, *arguments: Any, **options: Any) -> Any:
        made.append(str(sorted(symbols_of(n for x in sized.shapes.values() for n in x).items())))
        return for_all(sized, *arguments, **options)

    def ready(*arguments: Any, **options: Any) -> Any:
        made.append("one size")
        return for_one(*arguments, **options)

    classes.ready_for_all = ready_for_all
    alone.ready = ready
    return made


def compared(subject: Subject, draws: int, made: list[str]) -> dict[str, Any]:
    """Compare results at many sizes."""
    edges = {near for b in (*BUCKETS, subject.most) for near in (b - 1, b, b + 1, 3 * b)}
    sizes = [*subject.drawn(draws), *(e for e in edges if e <= subject.most)]
    if not all(0 in (t.dims or ()) for t in subject.row.checked.inputs):
        sizes = [size for size in sizes if size > 0]
    random.Random(subject.seed).shuffle(sizes)
    expected = subject.expected()
    checked = subject.row.checked
    depths = accumulation_depths(subject.sized(subject.most))
    many = subject.many()
    before = len(made)
    right = 0
    for size in dict.fromkeys(sizes):
        inputs = subject.inputs(size)
        try:
            results = _several(many(*inputs))
        except tcl.RangeInferenceError:
            continue  # too few points for the def
        for tensor, a, b in zip(checked.outputs, results, expected(size, inputs), strict=True):
            wrong = mismatch(tensor.name, a, b, depths[tensor.name])
            if wrong is not None:
                raise SystemExit(f"{subject.row.name}, {subject.name} = {size}: {wrong}")
        right += 1
    classes = Counter(made[before:])
    alone = classes.pop("one size", 0)
    return {
        "sizes": right,
        "classes": len(classes),
        "kernels": sum(classes.values()),
        "kernels_of_a_class": max(classes.values(), default=0),
        "kernels_of_one_size": alone,
    }


def beside_one(subject: Subject, count: int) -> dict[str, Any]:
    """Time both kernels at some sizes."""
    ratios: dict[int, float] = {}
    many = subject.many()
    rng = random.Random(subject.seed)
    drawn = subject.drawn(1000)
    for size in sorted({*rng.sample(drawn, min(count, len(drawn))), subject.most}):
        inputs = subject.inputs(size)
        outputs = tuple(np.empty_like(r) for r in _several(many(*inputs)))
        forms = {"many": many, "one": subject.one()}
        calls = {n: partial(form, *inputs, outputs=outputs) for n, form in forms.items()}
        times = samples(calls, SAMPLES, least=SAMPLE)
        ratios[size] = min(times["many"]) / min(times["one"])
    worst = max(ratios, key=lambda size: ratios[size])
    return {
        "timed": len(ratios),
        "ratio": round(statistics.geometric_mean(ratios.values()), 3),
        "worst": round(ratios[worst], 3),
        "at": worst,
    }


if __name__ == "__main__":
    main()
