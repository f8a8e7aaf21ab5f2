"""The tuning cache: everything that was ever measured, in one SQLite file.

Many processes read and write it at once (WAL); each result is committed by itself, the moment it
is known. It holds data only: options and states as JSON, nothing that is executed or unpickled.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tcl.common.dataclass import dataclass
from tcl.common.errors import CacheError
from tcl.common.folder import NoPlaceError, cache_place
from tcl.common.forks import reentrant_lock
from tcl.common.interrupts import deferred
from tcl.tuner.cache import file as cache_file
from tcl.tuner.cache import notes, ranking
from tcl.tuner.cache import table_rows as cache_rows
from tcl.tuner.cache.file import FileState, damage_in, is_damage, is_interrupted, is_locked
from tcl.tuner.cache.key import ArrayLayout, CacheKey
from tcl.tuner.cache.notes import Note
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.schema import VERSION
from tcl.tuner.cache.watched import Watched
from tcl.tuner.measure.verdict import Outcome

__all__ = ["ArrayLayout", "CacheKey", "Record", "Summary", "TuningCache", "default_path"]

_T = TypeVar("_T")
PATIENCE = 5.0
"""Seconds that a locked cache is waited for, and that looking something up for a call may take."""
_MOMENT = 0.1
"""Seconds that a cache is waited for that was found locked a moment ago."""
_GLANCE = 0.01
"""Seconds for which a query goes on that a signal has ended once."""
_locked: dict[str, float] = {}
"""Path of a cache → when it was found locked for longer than one waits, by ``time.monotonic``."""


@dataclass(frozen=True, slots=True)
class Summary:
    key: CacheKey
    entry: str
    """Name of the def when it was first tuned: for people, not part of the key."""
    measured: int
    """Number of records."""
    best: float | None
    """Seconds; None while nothing was correct."""
    last: float
    """When the last record was made, in seconds since the epoch."""


def default_path() -> Path:
    """``tuning.db`` in ``TCL_CACHE_DIR``, or in the user's cache folder. Raises ``CacheError`` if
    there is no place for one."""
    try:
        return cache_place() / cache_file.FILE_NAME
    except NoPlaceError as error:
        raise CacheError(
            f"the tuning cache has no folder: {error}; set TCL_CACHE_DIR to a folder"
        ) from None


class TuningCache:
    """One cache file. Opened when first used; safe to use from several threads and after a fork.

    A file that is damaged, or has another schema version, is set aside under another
    name with a ``TclWarning``, and a new one begun. ``CacheError`` when the file cannot be used:
    locked for longer than ``patience`` seconds, not readable, not writable, no space left.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, patience: float = PATIENCE):
        self.path = Path(path) if path is not None else default_path()
        self._patience = patience
        self._lock = reentrant_lock()
        self._connection: sqlite3.Connection | None = None
        self._standing: FileState | None = None
        self.files = 0
        """How many files were opened at ``path``, each in the place of the one before. What was
        stored while it was a smaller number may be lost."""
        self._owner = os.getpid()

    def check_writable(self) -> None:
        """Raise ``CacheError`` unless results can be stored."""

        def write(db: sqlite3.Connection) -> None:
            # Without a change SQLite looks neither at permissions nor for space.
            db.execute(f"PRAGMA user_version = {VERSION}")

        self.transaction(write)

    def store(
        self, key: CacheKey, options: str, outcome: Outcome, *, run: str, entry: str = ""
    ) -> None:
        """Add one measurement of ``options`` (JSON), made now."""
        self.add(key, [Record.from_outcome(options, outcome, time.time(), run)], entry=entry)

    def add(self, key: CacheKey, records: Sequence[Record], *, entry: str = "") -> None:
        """Add those measurements that are not there: all of them, committed when this returns, or
        none."""
        self.transaction(
            lambda db: cache_rows.insert(db, cache_rows.problem_id(db, key, entry), records)
        )

    def save_run(
        self,
        key: CacheKey,
        run: str,
        *,
        config: Mapping[str, object],
        state: Mapping[str, object],
    ) -> None:
        """Keep the settings and the state of a tuner run, replacing those saved before."""
        self.keep(notes.SEARCH, key.digest, run, {"config": config, "state": state})

    def load_run(self, run: str) -> tuple[dict[str, object], dict[str, object]] | None:
        """Settings and state of a tuner run; None if there is none of that name."""
        found = self.notes(notes.SEARCH, name=run)
        return (found[0].value["config"], found[0].value["state"]) if found else None

    def change_run(
        self, run: str, change: Callable[[dict[str, object]], Mapping[str, object]]
    ) -> None:
        """Replace the state of a tuner run, if there is such a run, by what ``change`` makes of it,
        with nobody in between. What that raises is raised, and nothing changed."""

        def write(db: sqlite3.Connection) -> None:
            for note in notes.found(db, notes.SEARCH, name=run):
                text = json.dumps({**note.value, "state": change(note.value["state"])})
                notes.put_rows(db, [(notes.SEARCH, note.about, run, text, *[note.updated] * 2)])

        self.transaction(write)

    def runs(self, key: CacheKey) -> tuple[str, ...]:
        """The tuner runs of this key whose state was saved, the last one to begin first."""
        return tuple(note.name for note in self.notes(notes.SEARCH, about=key.digest))

    def notes(self, kind: str, **known: str) -> list[Note]:
        """The notes of a kind, the last one that was begun first; see ``notes.found``."""
        nothing: list[Note] = []
        return self.read(lambda db: [*notes.found(db, kind, **known)], nothing, PATIENCE)

    def keep(
        self, kind: str, about: str, name: str, value: object, *, instead_of: str | None = ""
    ) -> None:
        """Keep a note in the place of the one of another name; None: of all about the same."""
        row = (kind, about, name, json.dumps(value), *[time.time()] * 2)

        def write(db: sqlite3.Connection) -> None:
            others = "DELETE FROM notes WHERE kind = ? AND about = ? AND name = ifnull(?, name)"
            db.execute(others, (kind, about, instead_of))
            notes.put_rows(db, [row])

        self.transaction(write)

    def of_run(self, key: CacheKey, run: str) -> tuple[Record, ...]:
        """What a tuner run measured, in the order in which it was stored."""
        return tuple(record for record in self._records(key) if record.run == run)

    def history(self, key: CacheKey) -> tuple[Record, ...]:
        """Every record: correct ones first, fastest first, then failures, oldest first."""
        return ranking.history(self._records(key))

    def top(self, key: CacheKey, count: int) -> tuple[Record, ...]:
        """The ``count`` best options, best first, each once; see ``tcl.tuner.cache.ranking``."""

        def read(db: sqlite3.Connection, problem: int) -> tuple[Record, ...]:
            rows = {record: row for row, record in cache_rows.leading(db, problem, count)}
            best = ranking.ranked(rows)[:count]
            return tuple(cache_rows.record_from_row(db, rows[each]) for each in best)

        return self._looked_up(key, read, (), self._patience)

    def deciding(self, key: CacheKey, best: int | None = None) -> tuple[list[Record], str | None]:
        """What plays a part in the ranking of a key, or in that of its ``best`` ones alone, without
        messages and conditions, of those rows that can be read, and what is wrong with the first of
        the others; None if nothing is."""
        damage, nothing = list[str](), list[Record]()

        def read(db: sqlite3.Connection, problem: int) -> list[Record]:
            if best is None:
                rows = cache_rows.deciding(db, problem, damage)
            else:
                rows = iter(cache_rows.leading(db, problem, best, damage))
            return [record for _, record in rows]

        found = self._looked_up(key, read, nothing, self._patience)
        return found, next(iter(damage), None)

    def best(self, key: CacheKey) -> Record | None:
        """The best options; None if no correct result is known."""
        return next(iter(self.top(key, 1)), None)

    def keys(self, like: CacheKey) -> tuple[CacheKey, ...]:
        """All keys of the same def."""

        def read(db: sqlite3.Connection) -> tuple[CacheKey, ...]:
            return tuple(key for _, key, _ in cache_rows.problems(db, like.definition_hash))

        return self.read(read, (), self._patience)

    def standing(self, key: CacheKey) -> tuple[tuple[object, ...], ...]:
        """What stands for all correct results of other sizes and strides of the same def, on the
        same device: another one once there are more. Empty if there are none."""
        return self.read(lambda db: cache_rows.standing(db, key), (), self._patience)

    def devices(self, like: CacheKey) -> tuple[str, ...]:
        """The devices for which there are correct results of a key that is otherwise the same."""
        return self.read(lambda db: cache_rows.devices(db, like), (), self._patience)

    def list(self) -> tuple[Summary, ...]:
        """What the cache holds, last used first."""

        def read(db: sqlite3.Connection) -> tuple[Summary, ...]:
            found, counts = [], cache_rows.counts(db)
            for problem, key, entry in cache_rows.problems(db):
                if problem in counts:
                    records = (record for _, record in cache_rows.leading(db, problem, 1))
                    best = next(iter(ranking.ranked(records)), None)
                    time_ = best.time if best is not None else None
                    found.append(Summary(key, entry, counts[problem][0], time_, counts[problem][1]))
            return tuple(sorted(found, key=lambda s: -s.last))

        return self.read(read, ())

    def _records(self, key: CacheKey) -> tuple[Record, ...]:
        def read(db: sqlite3.Connection, problem: int) -> tuple[Record, ...]:
            return tuple(record for _, record in cache_rows.records(db, problem))

        return self._looked_up(key, read, ())

    def _looked_up(
        self,
        key: CacheKey,
        action: Callable[[sqlite3.Connection, int], _T],
        absent: _T,
        within: float = math.inf,
    ) -> _T:
        """What ``action`` finds for the row of a key; ``absent`` if there is none."""

        def read(db: sqlite3.Connection) -> _T:
            row = db.execute("SELECT id FROM problems WHERE digest = ?", (key.digest,)).fetchone()
            return action(db, row[0]) if row else absent

        return self.read(read, absent, within)

    def compact(self) -> None:
        """Give the space of what was removed back to the disk, if nobody uses the file now."""
        with contextlib.suppress(CacheError):
            self._guarded(lambda db: db.execute("VACUUM"))

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    def read(
        self,
        action: Callable[[sqlite3.Connection], _T],
        absent: _T,
        within: float = math.inf,
    ) -> _T:
        """What ``action`` finds, all of it as of one moment; ``absent`` if there is no file.
        ``CacheError`` if its queries are not done ``within`` so many seconds."""
        if not os.path.exists(self.path):  # nor does this raise for what may not be looked into
            self.close()
            return absent  # looking something up leaves nothing behind

        def run(db: sqlite3.Connection) -> _T:
            with cache_file.transaction(db, "DEFERRED"):
                return action(db)

        return self._guarded(run, within)

    def transaction(self, write: Callable[[sqlite3.Connection], _T]) -> _T:
        """Change the file. What ``write`` did is committed when this returns, or not at all."""

        def run(db: sqlite3.Connection) -> _T:
            with cache_file.transaction(db):
                return write(db)

        return self._guarded(run)

    def _guarded(self, action: Callable[[sqlite3.Connection], _T], within: float = math.inf) -> _T:
        """Run ``action``; on a damaged file once more, after setting that aside. A signal ends what
        SQLite does, and the signal's handler is called; if that returns, ``action`` is run anew,
        and the next signal ends it later: those of a timer would do so for ever."""
        with self._lock:
            attempts, until, alone = 1, math.inf, 0.0
            while True:
                try:
                    with deferred() as came:
                        db = self._open()
                        if isinstance(db, Watched):
                            now = time.monotonic()
                            until = min(until, now + within)
                            db.until, db.came, db.heeds = until, came, now + alone
                        return action(db)
                except cache_rows.RowError as error:
                    raise CacheError(
                        f"the tuning cache {self.path} cannot be used: {error}; {cache_file.ELSE}"
                    ) from None
                except sqlite3.Error as error:
                    if came and is_interrupted(error) and time.monotonic() < until:
                        alone = 2 * alone or _GLANCE
                        continue
                    if is_locked(error):
                        _locked[str(self.path)] = time.monotonic()
                    if attempts == 2 or not is_damage(error):
                        raise cache_file.explained(error, self.path, self._patience) from error
                    attempts += 1
                    self.close()
                    self._set_aside(str(error))

    def _open(self) -> sqlite3.Connection:
        if self._owner != os.getpid():  # SQLite connections do not survive a fork
            self._connection, self._owner = None, os.getpid()
        before = self._standing
        changed = before is not None and not FileState.at_path(self.path).continues(before)
        if changed:
            self.close()
        # Who has just waited in vain does not wait again, as for the next step of the same call.
        waited = time.monotonic() - _locked.get(str(self.path), -math.inf) < self._patience
        patience = _MOMENT if waited else self._patience
        if self._connection is not None:
            cache_file.wait_for(self._connection, patience)
        if self._connection is None:
            self._connection = cache_file.open_file(self.path, patience)
            if changed and damage_in(self._connection) is not None:
                self.close()
                self._set_aside("a part of it is missing")
                self._connection = cache_file.open_file(self.path, patience)
            self.files += changed or before is None
        self._standing = FileState.at_path(self.path)
        return self._connection

    def _set_aside(self, detail: str) -> None:
        """Keep the file that was opened under another name, as it is damaged."""
        found = self._standing.identity if self._standing is not None else None
        cache_file.set_aside(self.path, "damaged", detail, found)
