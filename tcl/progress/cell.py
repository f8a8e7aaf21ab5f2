"""A live picture below the cell of a notebook."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

from rich.console import RenderableType

from tcl.progress.console import Console

_EVERY = 0.25
"""Seconds between two pictures: more often, and the browser has nothing else to do."""
_FORMAT = (
    "<pre style=\"font-family: Menlo, 'DejaVu Sans Mono', Consolas, monospace; line-height: 1.2; "
    'white-space: pre; color: inherit; background: none">{code}</pre>'
)
"""All of a box's lines are as wide only in a font whose letters are, and where none is wrapped,
which a notebook's own style does not say of every output."""


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
