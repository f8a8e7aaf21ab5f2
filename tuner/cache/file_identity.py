"""Which file stands where the tuning cache is, and whether it is still the same.

Users delete caches, other processes set damaged ones aside, disks lose ends of files: whoever has
such a file open notices nothing, and goes on to write where nobody will read.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Standing:
    """A file as it was at one moment."""

    identity: tuple[int, int] | None
    """Device and inode; None: there was none."""
    size: int

    @classmethod
    def of(cls, path: Path) -> Standing:
        """The file that stands at ``path`` now."""
        try:
            found = path.stat()
        except OSError:
            return cls(None, 0)
        return cls((found.st_dev, found.st_ino), found.st_size)

    def continues(self, before: Standing) -> bool:
        """Whether it is the same file, with all that it had. A cache shrinks only when another
        process compacts it, or something went wrong."""
        return self.identity == before.identity and self.size >= before.size


def is_sound(db: sqlite3.Connection) -> bool:
    """Whether nothing is missing in a file, going by a look at all of it."""
    return bool(db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
