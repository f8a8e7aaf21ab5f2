"""Modules that are imported when something of them is needed first."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from tcl.common.forks import whole


class Lazy:
    """Stands for the module of this name. Type checkers are shown the import itself::

    if TYPE_CHECKING:
        from tcl.html import markup
    else:
        markup = Lazy("tcl.html.markup")
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if self._name not in sys.modules:
            with whole():
                import_module(self._name)
        return getattr(import_module(self._name), attribute)  # waits where another thread imports
