"""Where tables and panels are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import rich.console
from rich.segment import Segment

from tcl.common.terminal import escaped


class Console(rich.console.Console):  # noqa: TID251
    """rich's, for texts of others: what would control the terminal in them is written out."""

    def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
        """As rich's."""
        for part in super().render(*arguments, **options):
            yield part if part.control else part._replace(text=escaped(part.text))
