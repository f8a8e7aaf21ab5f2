"""The package's loggers: ``tcl``, and one below it for each room that has something to say.

Nothing is configured here. Progress is ``INFO``, what is done behind a call ``DEBUG``; what a user
has to know of is a ``TclWarning`` or an exception, and never logged alone.
"""

from __future__ import annotations

import logging

logging.getLogger("tcl").addHandler(logging.NullHandler())


def logger(room: str) -> logging.Logger:
    """The logger of a room: ``tcl.executors`` for ``executors``."""
    return logging.getLogger(f"tcl.{room}")
