"""Where tables and panels are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import rich.console
from rich.segment import Segment

from tcl.common.terminal import escaped


class Console(rich.console.Console):  # noqa: TID251
    """rich's, for texts of others: what would control the terminal in them is written out."""

    @property
    def file(self) -> IO[str]:
        """Where rich writes. A live display puts a stream of its own before the command's, which is
        before the terminal: rich goes past one of them, this past all."""
        stream = super().file
        while hasattr(stream, "rich_proxied_file"):
            stream = stream.rich_proxied_file
        return stream

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream

    def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
        """As rich's."""
        for part in super().render(*arguments, **options):
            yield part if part.control else part._replace(text=escaped(part.text))
