"""The package's loggers: ``tcl``, and one below it for each room that has something to say.

Nothing is configured here but what ``TCL_LOG`` asks for. Progress is ``INFO``, what is done behind
a call ``DEBUG``; what a user has to know of is a ``TclWarning`` or an exception, and never logged
alone.
"""

from __future__ import annotations

import logging
import os

from tcl.common.closest import closest
from tcl.common.errors import UnknownNameError

VARIABLE = "TCL_LOG"
"""The environment variable that has logs written to standard error: a level for all loggers,
``ROOM=LEVEL`` for one, with commas between."""
LEVELS = ("debug", "info", "warning", "error", "off")
ROOMS = ("executors", "tensor_comprehensions", "tuning")


class _Lines(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to standard error, as long as the program itself has not said where logs go."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.root.handlers:
            super().emit(record)


def logger(room: str) -> logging.Logger:
    """The logger of a room: ``tcl.executors`` for ``executors``."""
    return logging.getLogger(f"tcl.{room}")


def listen(text: str) -> None:
    """Do what ``TCL_LOG`` says; nothing for an empty text. Raises ``UnknownNameError``."""
    found: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        room, equals, level = (word.strip().lower() for word in part.rpartition("="))
        if equals and room not in ROOMS:
            raise UnknownNameError(
                f"{VARIABLE} names the unknown logger {room[:40]!r}; {_did_you_mean(room, ROOMS)}"
            )
        if level not in LEVELS:
            raise UnknownNameError(
                f"{VARIABLE} names the unknown log level "
                f"{level[:40]!r}{equals and f' for {room}'}; {_did_you_mean(level, LEVELS)}"
            )
        if room in found:
            raise UnknownNameError(
                f"{VARIABLE} gives two levels for {room or 'all loggers'}: {text.strip()[:80]!r}"
            )
        found[room] = level
    for room, level in found.items():
        whose = logger(room) if room else logging.getLogger("tcl")
        whose.setLevel(logging.CRITICAL + 1 if level == "off" else level.upper())
    if found:
        lines = _Lines()
        lines.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        logging.getLogger("tcl").addHandler(lines)


def _did_you_mean(name: str, known: tuple[str, ...]) -> str:
    near = closest(name, known)
    hint = f"did you mean {near}? " if near else ""
    return f"{hint}there are {', '.join(known)}"


logging.getLogger("tcl").addHandler(logging.NullHandler())
listen(os.environ.get(VARIABLE, ""))
