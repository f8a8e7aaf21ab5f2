"""What a search found, and what a notebook shows of it: a table, and how the best time fell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from tcl.common.number_format import duration, plural, ratio_text
from tcl.html.charts import ChartDot, ChartLine, Ticks, times_chart
from tcl.html.markup import Markup, shown, table, table_row
from tcl.tuner.measure.backend import OptionsT
from tcl.tuner.run.events import Candidate, Decision


@dataclass(frozen=True, slots=True)
class TuningResult(Generic[OptionsT]):
    """The result of a search."""

    decision: Decision[OptionsT]
    """The winner, and the starting point that it is compared with."""
    history: tuple[Candidate[OptionsT], ...]
    """Every candidate with a verdict, in the order of the verdicts."""
    interrupted: bool
    """Whether a signal, ``stop`` or the time limit ended the search before all generations."""
    seconds: float
    run: str
    """The name of the search in the cache."""
    unsaved: int
    """The number of measurements, finals included, that the cache could not save."""

    @property
    def best(self) -> Candidate[OptionsT] | None:
        """The winner, or None if no candidate works."""
        return self.decision.winner

    @property
    def options(self) -> OptionsT | None:
        """The best options."""
        return self.best.options if self.best is not None else None

    @property
    def time(self) -> float | None:
        """Median seconds per call of the best options."""
        return self.best.time if self.best is not None else None

    def _repr_html_(self) -> str:
        winner = self.decision.winner
        rows, options = [], None
        if winner is None:
            rows.append(table_row("winner", "none: no candidate worked"))
        else:
            rows.append(table_row("winner", f"{duration(winner.time or 0.0)} a call"))
            if self.decision.speedup is not None and not self.decision.kept:
                faster = f"{ratio_text(self.decision.speedup)} as fast as the starting point"
                rows.append(table_row("won", faster))
            elif self.decision.kept:
                rows.append(table_row("won", "nothing: the starting point won"))
            if hasattr(winner.options, "_html_table_"):
                options = winner.options._html_table_()
        verdicts = Counter(candidate.outcome.verdict.value for candidate in self.history)
        told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
        rows.append(table_row("candidates", f"{len(self.history)}: {told}" if told else "none"))
        took = f"{self.seconds:.0f} s, ended early" if self.interrupted else f"{self.seconds:.0f} s"
        rows.append(table_row("took", took))
        return shown(
            table((), rows),
            options,
            _curve(self.decision, self.history) if self.history else None,
        )


def _curve(decision: Decision[OptionsT], history: Sequence[Candidate[OptionsT]]) -> Markup:
    """The times of the candidates in the order in which they got them, and the best so far."""
    dots: list[ChartDot] = []
    best: list[tuple[float, float]] = []
    for number, candidate in enumerate(history, 1):
        what = candidate.outcome.verdict.value
        if candidate.time is not None:
            what = f"{duration(candidate.time)} a call"
            if not best or candidate.time < best[-1][1]:
                best.append((number, candidate.time))
        won = decision.winner is not None and candidate.options == decision.winner.options
        dots.append(ChartDot(number, candidate.time, what, "winner" if won else "dot"))
    if best:  # the last value holds to the end
        best.append((len(history), best[-1][1]))
    name = f"Time a call of {plural(len(history), 'candidate')}, and the best so far"
    ticks = Ticks("evaluations", max(len(history), 2.0))
    return times_chart(name, ticks, dots, [ChartLine(best, "best", steps=True)])
