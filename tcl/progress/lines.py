"""A search as plain lines: of a log, of a file, below a panel."""

from __future__ import annotations

from collections.abc import Callable

from tcl.common.number_format import plural
from tcl.progress.state import Event, SearchState
from tcl.progress.words import verdict
from tcl.tuner.run import events


class ProgressLines:
    """Says in lines what events tell; ``state`` has taken them before.

    ``briefly``: without those that a panel shows in place of lines.
    """

    def __init__(
        self, state: SearchState, say: Callable[[str], object], briefly: bool = False
    ) -> None:
        self._state = state
        self._say = say
        self._briefly = briefly

    def begin(self, title: str) -> None:
        """What a search is for."""
        if not self._briefly:
            self._say(f"tuning {title}")

    def report(self, event: Event) -> None:
        """Take one event."""
        match event:
            case events.Resumed(generation=generation, results=results):
                self._say(f"going on in generation {generation}, with {plural(results, 'result')}")
            case events.Interrupted(reason=reason, level=level):
                self._say(
                    f"{reason}: what is in flight finishes, then the best is saved"
                    if level == 1
                    else f"{reason} again: stopped; everything measured is saved"
                )
            case events.Note(message=message):
                self._say(message)
            case events.CandidateDone(done=done, of=of) if not self._briefly and done == of:
                self._say(self._state.line())
            case events.Raced() if not self._briefly and self._state.finalists:
                self._say(self._state.finals_line())
            case events.Finished(decision=decision):
                self._say(verdict(decision))
