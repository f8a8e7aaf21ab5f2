"""How a search that Python asked for is shown: as a panel where somebody looks, and in the log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from tcl.grammar.log import logger
from tcl.tuner.run.events import Event

_log = logger("tuning")


@contextmanager
def shown_progress(
    progress: bool | None,
    entry_point: str,
    inputs: Sequence[Any],
    limit: float | None,
    report: Callable[[Event[Any]], object] | None,
) -> Iterator[Callable[[Event[Any]], object] | None]:
    """What takes the events of a search: shows them if that is wanted, logs them where somebody
    listens, and hands them to ``report``; None if nobody wants them. ``limit``: of the search, in
    seconds. With no ``progress`` said, it is shown on a terminal and in a notebook, unless there
    is a ``report``."""
    told = [] if report is None else [report]
    given = (getattr(each, "shape", ()) for each in inputs)  # which are not looked at yet
    shapes = (list(shape) if isinstance(shape, tuple) else [] for shape in given)
    title = f"{entry_point} on {', '.join(map(str, shapes))}"
    if progress is None:
        progress = report is None and (_in_notebook() or _is_terminal(sys.stderr))
    with ExitStack() as open_:
        if progress:
            from tcl.progress.console import Console
            from tcl.progress.panel import Progress

            shown = Progress(title, None, limit, Console(stderr=True), _in_notebook())
            told.append(open_.enter_context(shown).report)
        if _log.isEnabledFor(logging.INFO):
            from tcl.progress.lines import Lines
            from tcl.progress.state import SearchState

            state = SearchState(None, limit)
            lines = Lines(state, lambda line: _log.info("%s", line))
            lines.begin(title)
            told += [state.take, lines.report]

        def tell(event: Event[Any]) -> None:
            for each in told:
                each(event)

        yield tell if told else None


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _in_notebook() -> bool:
    """Whether IPython runs a notebook's kernel: what it prints is shown under the cell."""
    python = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(python).__name__ == "ZMQInteractiveShell"
