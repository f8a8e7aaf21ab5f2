"""The tuner's progress: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tcl.common.number_format import plural
from tcl.progress.state import Event, SearchState, Yardstick
from tcl.progress.words import verdict
from tcl.tuner.run import events

_WIDTH = 84
"""Columns of the panel, at most."""
_ROOM = 4
"""Columns that stay free beside it. The terminal shows Ctrl+C as ``^C`` behind the last line;
without room that makes a new line, and the next frame would leave a border of this one behind."""


class Progress:
    """Shows events as they come; a context manager."""

    def __init__(
        self,
        title: str,
        yardstick: Yardstick | None = None,
        time_limit: float | None = None,
        console: Console | None = None,
    ) -> None:
        self._title = title
        self._console = console or Console()
        self._state = SearchState(yardstick, time_limit)
        self._live: Live | None = None
        self._drawn = 0
        """Columns of the last frame."""
        self._said: list[str] = []
        self.signalled = ""
        """The first signal that ended the search."""

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            self._live = Live(
                console=self._console, get_renderable=self.panel, refresh_per_second=8
            )
            self._live.start()
        else:
            self._say(f"tuning {self._title}")
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def _end(self) -> None:
        """Leave the last frame as it is."""
        if self._live is not None:
            self._live.stop()

    def report(self, event: Event) -> None:
        """Take one event."""
        self._state.take(event)
        match event:
            case events.Resumed(generation=generation, results=results):
                self._say(f"going on in generation {generation}, with {plural(results, 'result')}")
            case events.Interrupted(reason=reason, level=level):
                self.signalled = self.signalled or (reason if "SIG" in reason else "")
                self._say(
                    f"{reason}: what is in flight finishes, then the best is saved"
                    if level == 1
                    else f"{reason} again: stopped; everything measured is saved"
                )
            case events.Note(message=message):
                self._say(message)
            case events.CandidateDone(done=done, of=of) if self._live is None and done == of:
                self._say(self._state.line())
            case events.Raced() if self._live is None and self._state.finalists:
                self._say(self._state.finals_line())
            case events.Finished(decision=decision):
                self._end()
                self._say(verdict(decision))

    def _say(self, line: str) -> None:
        self._said.append(line)
        self._console.print(line, soft_wrap=True, highlight=False, markup=False)

    def panel(self) -> RenderableType:
        """The search as it is now."""
        columns = self._console.width
        torn = self._drawn > columns
        self._drawn = max(1, min(_WIDTH, columns - _ROOM))
        grid = Table.grid(padding=(0, 2))
        for name, value in self._state.facts():
            grid.add_row(Text(name, style="dim"), Text(value))
        whole = Table.grid()
        whole.add_row(ProgressBar(total=1.0, completed=self._state.progress, width=40))
        whole.add_row(grid)
        title = Text(f"tuning {self._title}")
        frame = Panel(whole, title=title, title_align="left", width=self._drawn)
        if not torn:
            return frame
        # A terminal that got narrower has broken the last frame's lines, so that nobody knows where
        # it begins: the screen is made anew.
        return Group(Control.clear(), Control.home(), *map(Text, self._said), frame)
