"""Files that are there as a whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a text file such that readers, and a crash, see the old contents or the new ones.

    What a link leads to is written, and what is no plain file (a pipe, a terminal) is written to
    as it is. Raises ``OSError``.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_text(text, "utf-8")
        return
    partial = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(partial, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
