"""The tuner's progress: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TypeAlias

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tcl.cli.common import duration
from tcl.codegen.options import MappingOptions
from tcl.tuner import events
from tcl.tuner.verdict import Verdict, median

Event: TypeAlias = events.Event[MappingOptions]


class Progress:
    """Shows events as they come; a context manager."""

    def __init__(self, title: str, console: Console | None = None) -> None:
        self._title = title
        self._console = console or Console()
        self._state = _State()
        self._live: Live | None = None
        self.signalled = False
        """Whether a signal ended the search."""

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            self._live = Live(
                console=self._console, get_renderable=self._panel, refresh_per_second=8
            )
            self._live.start()
        else:
            self._console.print(f"tuning {self._title}", soft_wrap=True, highlight=False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def report(self, event: Event) -> None:
        """Take one event."""
        self._state.take(event)
        match event:
            case events.Interrupted(reason=reason, level=level):
                self.signalled = self.signalled or "SIG" in reason
                self._say(
                    f"{reason}: what is in flight finishes, then the best is saved"
                    if level == 1
                    else f"{reason} again: stopped; everything measured is saved"
                )
            case events.Note(message=message):
                self._say(message)
            case events.CandidateDone(done=done, of=of) if self._live is None and done == of:
                self._say(self._state.line())

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, highlight=False, markup=False)

    def _panel(self) -> Panel:
        state = self._state
        grid = Table.grid(padding=(0, 2))
        for name, value in state.facts():
            grid.add_row(Text(name, style="dim"), value)
        bar = ProgressBar(total=max(1, state.of), completed=state.done, width=40)
        return Panel(Group(bar, grid), title=f"tuning {self._title}", title_align="left")


class _State:
    """The search so far."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.generation = self.generations = self.done = self.of = 0
        self.evaluated = 0
        self.failed: dict[Verdict, int] = {}
        self.first: float | None = None
        self.best: float | None = None
        self.current: list[float] = []

    def take(self, event: Event) -> None:
        match event:
            case events.GenerationStarted():
                self.generation, self.generations = event.generation, event.generations
                self.done, self.of, self.current = 0, event.candidates, []
            case events.CandidateDone(candidate=candidate, done=done, of=of):
                self.done, self.of = done, of
                self._count(candidate)
            case _:
                pass

    def _count(self, candidate: events.Candidate[MappingOptions]) -> None:
        if candidate.time is None:
            verdict = candidate.outcome.verdict
            self.failed[verdict] = self.failed.get(verdict, 0) + 1
            return
        self.evaluated += 1
        self.current.append(candidate.time)
        if self.first is None:
            self.first = candidate.time
        self.best = min(candidate.time, self.best or candidate.time)

    def facts(self) -> list[tuple[str, str]]:
        """Names and values for the panel."""
        generation = f"{self.generation} of {self.generations}, candidate {self.done} of {self.of}"
        return [
            ("generation", generation if self.generations else "computing the reference"),
            ("measured", f"{self.evaluated}{self._failures()}"),
            ("best", self._best()),
            ("this generation", self._generation()),
            ("elapsed", duration(time.monotonic() - self.started)),
        ]

    def line(self) -> str:
        """The state after a generation, on one line."""
        name = f"generation {self.generation}/{self.generations}" if self.generation else "start"
        return (
            f"{name}: best {self._best()}; this generation {self._generation()}; "
            f"{self.evaluated} measured{self._failures()}; "
            f"{duration(time.monotonic() - self.started)}"
        )

    def _best(self) -> str:
        if self.best is None or self.first is None:
            return "-"
        return f"{duration(self.best)} ({self.first / self.best:.2f} x the start)"

    def _generation(self) -> str:
        if not self.current:
            return "-"
        return f"best {duration(min(self.current))}, median {duration(median(tuple(self.current)))}"

    def _failures(self) -> str:
        if not self.failed:
            return ""
        return ", failed: " + ", ".join(f"{n} {v.value}" for v, n in self.failed.items())
