"""Text of others, such as names of files, on a terminal: seen, and never obeyed."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

_UNUSUAL = re.compile(r"[^\n\t -~]")
_SEVERITY = re.compile(r"^((?:[^\s|].*?: )?)(error|warning):", re.MULTILINE)
_COLOURS = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m"}


def escaped(text: str) -> str:
    """A text with all characters that control a terminal, or cannot be seen, written out."""
    return _UNUSUAL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable() or unicodedata.category(character) == "Zs":  # spaces of other widths
        return character
    return character.encode("unicode_escape").decode("ascii")


class Shown:
    """A text stream that writes ``escaped`` text to another one. As ``messages``, it colours the
    words "error:" and "warning:" where that is a terminal with colours."""

    buffer = None
    """Click would write past this one into it, where the other one's encoding is ASCII."""

    def __init__(self, stream: Any, *, messages: bool = False) -> None:
        self.rich_proxied_file = stream
        """Where rich writes: it has escapes of its own, and ``progress.console`` no others."""
        self._coloured = messages and coloured(stream)

    def write(self, text: str) -> int:
        """As a stream's."""
        shown = escaped(text)
        if self._coloured:
            shown = _SEVERITY.sub(lambda m: f"{m[1]}{_COLOURS[m[2]]}{m[2]}:\x1b[0m", shown)
        self.rich_proxied_file.write(shown)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Likewise."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def coloured(stream: Any) -> bool:
    """Whether a stream is a terminal that shows colours, and its user wants them."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and bool(stream.isatty())
