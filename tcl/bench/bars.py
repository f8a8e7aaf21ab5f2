"""What this package sets out to reach on the suite, and whether a report shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tcl.bench.peers.names import DEFAULT
from tcl.bench.report import Report
from tcl.bench.rows import SHAPES, SUITE_KINDS, TYPED
from tcl.bench.summary import NEAR, Line, Quantity, beside, extreme, gain, lines, mean, ratio, shift


@dataclass(frozen=True, slots=True)
class Bar:
    """One thing to reach."""

    what: str
    limit: float
    found: float
    worse: tuple[tuple[str, float], ...] = ()
    """Rows that miss it, and their values, where it is about every row."""
    at_most: bool = False
    """Whether the value may not be larger; else it may not be smaller."""

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.found <= self.limit if self.at_most else self.found >= self.limit

    def __str__(self) -> str:
        sign = "at most" if self.at_most else "at least"
        rows = ", ".join(f"{name} {value:.2f}" for name, value in self.worse)
        said = f"{self.what}: {self.found:.2f}, {sign} {self.limit:.2f}: "
        return said + ("met" if self.met else f"missed{rows and f' ({rows})'}")


def bars(report: Report, threads: int) -> list[Bar]:
    """The bars on the rows with that many threads, of those that the report measured."""
    rows = lines(report.results_of(threads))
    found = list(_moved([r for r in rows if r.kind in SUITE_KINDS]))
    for placement in report.placements:
        found += _placed(rows, placement, threads)
    return found


def _placed(rows: Sequence[Line], placement: str, threads: int) -> Iterator[Bar]:
    where = f"{placement} arrays"
    suite = [r for r in rows if r.kind in SUITE_KINDS]
    typed = [r for r in rows if r.kind == TYPED and ("int8" in r.name or "bfloat16" in r.name)]
    one = threads == 1
    tuned = mean(suite, gain(placement)) is not None
    options = "tuned" if tuned else "default"
    limits = (1.40 if one else 1.45) if tuned else (1.35 if one else 1.40)
    yield from _mean(f"best peer / {options}, suite, {where}", suite, ratio(placement), limits)
    if tuned:
        best = ratio(placement, DEFAULT)
        yield from _mean(f"best peer / default, suite, {where}", suite, best, 1.35 if one else 1.40)
    timed = [r for r in rows if r.kind in (*SUITE_KINDS, SHAPES)]
    yield from _every(f"best peer / {options}, every row, {where}", timed, ratio(placement), NEAR)
    yield from _mean(f"default / tuned, {where}", rows, gain(placement), 1.06)
    yield from _every(f"default / tuned, every row, {where}", rows, gain(placement), 0.98)
    torch = beside(placement, "torch")
    yield from _mean(f"torch / {options}, 8 bits and bfloat16, {where}", typed, torch, 1.0)
    yield from _every(f"torch / {options}, each of these, {where}", typed, torch, 0.9)


def _moved(rows: Sequence[Line]) -> Iterator[Bar]:
    found, worst = mean(rows, shift), extreme(rows, shift, max)
    if found is not None and worst is not None:
        yield Bar("numpy / aligned arrays, suite", 1.06, found.middle, at_most=True)
        worse = _beyond(rows, shift, 1.15, at_most=True)
        yield Bar("numpy / aligned arrays, every row", 1.15, worst[1], worse, at_most=True)


def _mean(what: str, rows: Sequence[Line], quantity: Quantity, limit: float) -> Iterator[Bar]:
    if (found := mean(rows, quantity)) is not None:
        yield Bar(what, limit, found.middle)


def _every(what: str, rows: Sequence[Line], quantity: Quantity, limit: float) -> Iterator[Bar]:
    if (worst := extreme(rows, quantity)) is not None:
        yield Bar(what, limit, worst[1], _beyond(rows, quantity, limit))


def _beyond(
    rows: Sequence[Line], quantity: Quantity, limit: float, at_most: bool = False
) -> tuple[tuple[str, float], ...]:
    """Rows that miss a limit, the worst first."""
    found = [(row.name, s.middle) for row in rows if (s := row.spread(quantity)) is not None]
    missed = [(n, v) for n, v in found if (v > limit if at_most else v < limit)]
    return tuple(sorted(missed, key=lambda each: -each[1] if at_most else each[1]))
