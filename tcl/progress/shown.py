"""How a search that Python asked for is shown: as a panel where somebody looks, and in the log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
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


@contextmanager
def shown_progress(
    progress: bool | None,
    entry_point: str,
    inputs: Sequence[Any],
    limit: float | None,
    report: Callable[[Event[Any]], object] | None,
) -> Iterator[tuple[Callable[[Event[Any]], None] | None, Callable[[str], None]]]:
    """What takes the events of a search, None if nobody wants them: shows them if that is wanted,
    logs them where somebody listens, and hands them to ``report``. And what tells one more line
    where the search is shown and logged. ``limit``: of the search, in seconds. With no ``progress``
    said, it is shown on a terminal and in a notebook, unless there is a ``report``."""
    reports = [] if report is None else [report]
    sayers: list[Callable[[str], object]] = []
    given = (getattr(each, "shape", ()) for each in inputs)  # which are not looked at yet
    shapes = (list(shape) if isinstance(shape, tuple) else [] for shape in given)
    title = f"{entry_point} on {', '.join(map(str, shapes))}"
    if progress is None:
        progress = report is None and (_in_notebook() or _is_terminal(sys.stderr))
    with ExitStack() as open_:
        if progress:
            shown = panel.Progress(title, None, limit, console.Console(stderr=True), _in_notebook())
            reports.append(open_.enter_context(shown).report)
            sayers.append(shown.say)
        if _log.isEnabledFor(logging.INFO):
            log, searched = partial(_log.info, "%s"), state.SearchState(None, limit)
            shown_lines = state.ProgressLines(searched, log)
            shown_lines.begin(title)
            reports.extend([searched.take, shown_lines.report])
            sayers.append(log)

        def take(event: Event[Any]) -> None:
            for each in reports:
                each(event)

        def say(line: str) -> None:
            for each in sayers:
                each(line)

        yield take if reports else None, say


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _in_notebook() -> bool:
    """Whether IPython runs a notebook's kernel: what it prints is shown under the cell."""
    python = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(python).__name__ == "ZMQInteractiveShell"
