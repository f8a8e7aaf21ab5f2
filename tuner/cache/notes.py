"""What the tuning cache's file keeps besides results: searches, choices, launch shapes.

A note is JSON, found by its kind, what it is about (a digest) and a name. A later one takes its
place.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tcl.tuner.cache.table_rows import UNREADABLE, RowError

SEARCH = "search"
"""The kind of a tuner run: about a key, by the run's name."""
COLUMNS = "kind, about, name, value, created, updated"
"""The first of the last two is when a note of this name was begun."""


class Note(NamedTuple):
    about: str
    name: str
    value: dict[str, Any]
    updated: float
    """In seconds since the epoch."""


def put_rows(
    db: sqlite3.Connection, rows: Iterable[tuple[Any, ...]], *, by_time: bool = False
) -> None:
    """Keep notes: ``COLUMNS``. ``by_time``: of two the later one stays. Without it no clock is
    asked, which may have been set back."""
    later = "WHERE excluded.updated > notes.updated" if by_time else ""
    db.executemany(
        f"INSERT INTO notes ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (kind, about, name) "
        f"DO UPDATE SET value = excluded.value, updated = excluded.updated {later}",
        rows,
    )


def found(db: sqlite3.Connection, kind: str, **known: str) -> Iterator[Note]:
    """The notes of a kind, the last one that was begun first. ``known``: ``about``, ``name``.
    ``RowError`` for one that cannot be read."""
    wanted = "".join(f" AND {column} = ?" for column in known)
    query = f"SELECT about, name, value, updated FROM notes WHERE kind = ?{wanted}"
    ordered = f"{query} ORDER BY created DESC, name"
    for about, name, text, updated in db.execute(ordered, (kind, *known.values())).fetchall():
        try:
            value = json.loads(text)
            parts = (value["config"], value["state"]) if kind == SEARCH else ()
            if not all(isinstance(each, dict) for each in (value, *parts)):
                raise ValueError("values by name were expected")
            yield Note(about, name, value, float(updated))
        except (*UNREADABLE, LookupError) as error:
            raise RowError(f"a {kind} in it cannot be read: {error}") from None
