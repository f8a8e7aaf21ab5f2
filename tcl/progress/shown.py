"""How a search that Python asked for is shown: as a panel where somebody looks, and in the log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcl.common.lazy import Lazy
from tcl.common.log import logger
from tcl.tuner.run.events import Event

if TYPE_CHECKING:
    from tcl.progress import console, panel, state
else:  # most searches are shown to nobody
    console, panel = Lazy("tcl.progress.console"), Lazy("tcl.progress.panel")
    state = Lazy("tcl.progress.state")

_log = logger("tuning")


@dataclass(frozen=True, slots=True)
class Followers:
    """Who follows a search."""

    reports: list[Callable[[Event[Any]], object]]
    lines: list[Callable[[str], object]]

    @property
    def report(self) -> Callable[[Event[Any]], None] | None:
        """What takes events; None if nobody wants them."""
        return self._report if self.reports else None

    def _report(self, event: Event[Any]) -> None:
        for each in self.reports:
            each(event)

    def say(self, line: str) -> None:
        """Where the search is shown, and logged, one more line."""
        for each in self.lines:
            each(line)


@contextmanager
def shown_progress(
    progress: bool | None,
    entry_point: str,
    inputs: Sequence[Any],
    limit: float | None,
    report: Callable[[Event[Any]], object] | None,
) -> Iterator[Followers]:
    """What takes the events of a search: shows them if that is wanted, logs them where somebody
    listens, and hands them to ``report``. ``limit``: of the search, in seconds. With no
    ``progress`` said, it is shown on a terminal and in a notebook, unless there is a ``report``."""
    told = Followers([] if report is None else [report], [])
    given = (getattr(each, "shape", ()) for each in inputs)  # which are not looked at yet
    shapes = (list(shape) if isinstance(shape, tuple) else [] for shape in given)
    title = f"{entry_point} on {', '.join(map(str, shapes))}"
    if progress is None:
        progress = report is None and (_in_notebook() or _is_terminal(sys.stderr))
    with ExitStack() as open_:
        if progress:
            shown = panel.Progress(title, None, limit, console.Console(stderr=True), _in_notebook())
            told.reports.append(open_.enter_context(shown).report)
            told.lines.append(shown.say)
        if _log.isEnabledFor(logging.INFO):

            def log(line: str) -> None:
                _log.info("%s", line)

            searched = state.SearchState(None, limit)
            shown_lines = state.ProgressLines(searched, log)
            shown_lines.begin(title)
            told.reports.extend([searched.take, shown_lines.report])
            told.lines.append(log)
        yield told


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _in_notebook() -> bool:
    """Whether IPython runs a notebook's kernel: what it prints is shown under the cell."""
    python = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(python).__name__ == "ZMQInteractiveShell"
