"""The tuner's progress: a live panel on a terminal or in a notebook, plain lines elsewhere."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.control import Control
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tcl.progress.console import Console
from tcl.progress.state import Event, ProgressLines, SearchState, Yardstick
from tcl.tuner.run import events

_EVERY = 0.25
"""Seconds between two pictures: more often, and the browser has nothing else to do."""
_FORMAT = (
    "<pre style=\"font-family: Menlo, 'DejaVu Sans Mono', Consolas, monospace; line-height: 1.35; "
    "white-space: pre-wrap; overflow-wrap: anywhere; color: inherit; background: none; "
    "display: inline-block; max-width: 100%; margin: .4em 0; padding: .6em 1em; "
    'border: 1px solid; border-radius: 4px">{code}</pre>'
)
"""The frame is the browser's: one of characters breaks where a font lacks them, or a line wraps."""


class Cell:
    """Shows what can be drawn as one output of IPython, drawn anew when it changes.

    It needs no widgets. ``ImportError`` where there is no IPython.
    """

    def __init__(
        self,
        get_renderable: Callable[[], RenderableType],
        width: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from IPython.display import HTML, display

        self._html: Any = HTML
        self._display: Any = display
        self._get = get_renderable
        self._width = width
        self._clock = clock
        self._shown: Any = None
        self._last = 0.0

    def start(self) -> None:
        """Show the first picture."""
        self._shown = self._display(self._picture(), display_id=True)
        self._last = self._clock()

    def refresh(self) -> None:
        """Show what it is now, unless that was done a moment ago."""
        if self._clock() - self._last >= _EVERY:
            self._update()

    def stop(self) -> None:
        """Leave the last picture as it is."""
        self._update()

    def _update(self) -> None:
        self._shown.update(self._picture())
        self._last = self._clock()

    def _picture(self) -> Any:
        drawn = Console(file=io.StringIO(), record=True, width=self._width, force_jupyter=False)
        drawn.print(self._get())
        return self._html(drawn.export_html(inline_styles=True, code_format=_FORMAT))


_WIDTH = 84
"""Columns of the panel, at most."""
_ROOM = 4
"""Columns that stay free beside it. The terminal shows Ctrl+C as ``^C`` behind the last line;
without room that makes a new line, and the next frame would leave a border of this one behind."""


class Progress:
    """Shows events as they come; a context manager. ``notebook``: below a notebook's cell."""

    def __init__(
        self,
        title: str,
        yardstick: Yardstick | None = None,
        time_limit: float | None = None,
        console: Console | None = None,
        notebook: bool = False,
    ) -> None:
        self._title = title
        self._console = console or Console()
        self._state = SearchState(yardstick, time_limit)
        self._drawn = 0
        """Columns of the last frame."""
        self._said: list[str] = []
        self._live: Live | Cell | None = None
        if notebook:
            self._live = Cell(self.panel, _WIDTH + _ROOM)
        elif self._console.is_terminal:
            self._live = Live(
                console=self._console, get_renderable=self.panel, refresh_per_second=8
            )
        self._lines = ProgressLines(self._state, self.say, briefly=self._live is not None)

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        self._lines.begin(self._title)
        return self

    def __exit__(self, *error: object) -> None:
        self._leave_frame()

    def _leave_frame(self) -> None:
        """Leave the last frame as it is."""
        if self._live is not None:
            self._live.stop()

    def report(self, event: Event) -> None:
        self._state.take(event)
        if isinstance(event, events.Finished):
            self._leave_frame()
        elif isinstance(self._live, Cell):
            self._live.refresh()
        self._lines.report(event)

    def say(self, line: str) -> None:
        """Print a line below, or above what is drawn anew; in a notebook, the last of its cell."""
        self._said.append(line)
        if isinstance(self._live, Cell):
            self._live.stop()  # drawn with it
        else:
            self._console.print(line, soft_wrap=True, highlight=False, markup=False)

    def panel(self) -> RenderableType:
        """The search as it is now."""
        columns = self._console.width
        torn = self._drawn > columns
        self._drawn = max(1, min(_WIDTH, columns - _ROOM))
        grid = Table.grid(padding=(0, 2))
        for name, value in self._state.settings_shown():
            grid.add_row(Text(name, style="dim"), Text(value))
        whole = Table.grid()
        whole.add_row(ProgressBar(total=1.0, completed=self._state.progress, width=40))
        whole.add_row(grid)
        title = Text(f"tuning {self._title}")
        if isinstance(self._live, Cell):
            title.stylize("bold")
            return Group(title, whole, *map(Text, self._said))
        frame = Panel(whole, title=title, title_align="left", width=self._drawn)
        if not torn:
            return frame
        # A terminal that got narrower has broken the last frame's lines, so that nobody knows where
        # it begins: the screen is made anew.
        return Group(Control.clear(), Control.home(), *map(Text, self._said), frame)
