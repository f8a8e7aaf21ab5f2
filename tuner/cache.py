"""The tuning cache: everything that was ever measured, in one SQLite file.

Many processes read and write it at once (WAL); each result is committed by itself, the moment it
is known. It holds data only: options and states as JSON, nothing that is executed or unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import platformdirs

from tcl.tuner import cache_file
from tcl.tuner.cache_file import is_damage
from tcl.tuner.errors import CacheError
from tcl.tuner.verdict import Outcome, Verdict

_T = TypeVar("_T")
_Rows: TypeAlias = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class ArrayLayout:
    """What a kernel is compiled for, of one input."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes."""
    dtype: str


@dataclass(frozen=True, slots=True)
class CacheKey:
    """What a measured time depends on. Two keys that are equal may share winners."""

    definition: str
    """Canonical text of the def: names and layout do not matter."""
    backend: str
    """``cpu``, ``cuda``."""
    inputs: tuple[ArrayLayout, ...]
    device: str
    """Identity of the device, as the backend reports it."""
    codegen_version: str
    """Kernels made by another version may be faster, slower or wrong."""

    @property
    def definition_hash(self) -> str:
        """SHA-256 of the definition, in hex."""
        return hashlib.sha256(self.definition.encode()).hexdigest()

    @property
    def digest(self) -> str:
        """SHA-256 of all ingredients, in hex."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Record:
    """One measurement of one candidate."""

    options: str
    """As JSON."""
    verdict: Verdict
    time: float | None
    """Median seconds per call; None unless correct."""
    samples: tuple[float, ...]
    message: str
    when: float
    """Seconds since the epoch."""
    run: str
    """Identity of the tuner run."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What the cache knows of one key."""

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
    """``tuning.db`` in ``TCL_CACHE_DIR``, or in the user's cache folder."""
    folder = os.environ.get("TCL_CACHE_DIR")
    return (
        Path(folder or platformdirs.user_cache_dir("tcl", appauthor=False)) / cache_file.FILE_NAME
    )


class TuningCache:
    """One cache file. Opened when first used; safe to use from several threads and after a fork.

    A file that is damaged, or was written by a newer version of tcl, is set aside under another
    name with a ``TclWarning``, and a new one begun. ``CacheError`` when the file cannot be used:
    locked for longer than ``patience`` seconds, not readable, not writable, no space left.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, patience: float = 5.0):
        self.path = Path(path) if path is not None else default_path()
        self._patience = patience
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._owner = os.getpid()

    def check_writable(self) -> None:
        """Raise ``CacheError`` unless results can be stored."""
        self._transaction(lambda db: None)

    def store(
        self, key: CacheKey, options: str, outcome: Outcome, *, run: str, entry: str = ""
    ) -> None:
        """Add one measurement of ``options`` (JSON). It is committed when this returns."""
        values = (
            options,
            outcome.verdict.value,
            outcome.time,
            json.dumps(outcome.times),
            outcome.message,
            time.time(),
            run,
        )

        def write(db: sqlite3.Connection) -> None:
            problem = _problem_id(db, key, entry)
            db.execute(
                "INSERT INTO results (problem, options, verdict, time, samples, message, created, "
                "run) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (problem, *values),
            )

        self._transaction(write)

    def save_run(
        self,
        key: CacheKey,
        run: str,
        *,
        config: Mapping[str, object],
        state: Mapping[str, object],
        entry: str = "",
    ) -> None:
        """Keep the settings and the state of a tuner run, replacing those saved before."""
        now, texts = time.time(), (json.dumps(config), json.dumps(state))

        def write(db: sqlite3.Connection) -> None:
            problem = _problem_id(db, key, entry)
            db.execute(
                "INSERT INTO runs (run, problem, config, state, started, updated) "
                "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run) DO UPDATE SET "
                "config = excluded.config, state = excluded.state, updated = excluded.updated",
                (run, problem, *texts, now, now),
            )

        self._transaction(write)

    def load_run(self, run: str) -> tuple[dict[str, object], dict[str, object]] | None:
        """Settings and state of a tuner run; None if there is none of that name."""
        rows = self._read("SELECT config, state FROM runs WHERE run = ?", (run,))
        return (json.loads(rows[0][0]), json.loads(rows[0][1])) if rows else None

    def history(self, key: CacheKey) -> tuple[Record, ...]:
        """Every record, ranked: correct ones first, fastest first, then failures, oldest first."""
        rows = self._read(
            "SELECT options, verdict, time, samples, message, created, run FROM results "
            "WHERE problem = (SELECT id FROM problems WHERE digest = ?) "
            "ORDER BY time IS NULL, time, id",
            (key.digest,),
        )
        return tuple(
            Record(o, Verdict(v), t, tuple(json.loads(samples)), message, when, run)
            for o, v, t, samples, message, when, run in rows
        )

    def top(self, key: CacheKey, count: int) -> tuple[Record, ...]:
        """The ``count`` fastest options, fastest first, each once.

        Of options that were measured several times the last record counts, so that one lucky
        sample, or a verdict that was since refuted, does not win for ever.
        """
        last: dict[str, Record] = {}
        for record in sorted(self.history(key), key=lambda r: r.when):
            last[record.options] = record
        correct = [(r.time, r) for r in last.values() if r.time is not None]
        return tuple(r for _, r in sorted(correct, key=lambda pair: pair[0])[:count])

    def best(self, key: CacheKey) -> Record | None:
        """The fastest options; None if nothing correct is known."""
        return next(iter(self.top(key, 1)), None)

    def list(self) -> tuple[Summary, ...]:
        """What the cache holds, last used first."""
        rows = self._read(
            "SELECT definition, backend, inputs, device, codegen_version, entry, "
            "(SELECT max(created) FROM results WHERE problem = p.id) AS last FROM problems p "
            "WHERE last IS NOT NULL ORDER BY last DESC, p.id",
            (),
        )
        found = []
        for definition, backend, inputs, device, version, entry, last in rows:
            layouts = tuple(
                ArrayLayout(tuple(shape), tuple(strides), dtype)
                for shape, strides, dtype in json.loads(inputs)
            )
            key = CacheKey(definition, backend, layouts, device, version)
            best, count = self.best(key), len(self.history(key))
            found.append(Summary(key, entry, count, best.time if best else None, last))
        return tuple(found)

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    def _read(self, query: str, values: Sequence[object]) -> _Rows:
        if self._connection is None and not self.path.exists():
            return ()  # looking something up leaves nothing behind
        return self._guarded(lambda db: tuple(db.execute(query, values)))

    def _transaction(self, write: Callable[[sqlite3.Connection], None]) -> None:
        def run(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            try:
                write(db)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

        self._guarded(run)

    def _guarded(self, action: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run ``action``; on a damaged file once more, after setting that aside."""
        with self._lock:
            for attempt in (1, 2):
                try:
                    return action(self._open())
                except sqlite3.Error as error:
                    if attempt == 2 or not is_damage(error):
                        raise self._explained(error) from error
                    self.close()
                    cache_file.set_aside(self.path, "damaged", str(error), self._identity)
            raise AssertionError("unreachable")

    def _open(self) -> sqlite3.Connection:
        if self._owner != os.getpid():  # SQLite connections do not survive a fork
            self._connection, self._owner = None, os.getpid()
        if self._connection is None:
            self._connection = cache_file.open_file(self.path, self._patience)
            self._identity = cache_file.identity(self.path)
        return self._connection

    def _explained(self, error: sqlite3.Error) -> CacheError:
        code = getattr(error, "sqlite_errorcode", None)
        primary = code & 0xFF if isinstance(code, int) else None
        match primary:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                reason = f"another process has kept it locked for more than {self._patience:g} s"
            case sqlite3.SQLITE_READONLY:
                reason = "it is read-only"
            case sqlite3.SQLITE_FULL:
                reason = "the disk is full"
            case sqlite3.SQLITE_CANTOPEN:
                reason = "it cannot be opened; check that the folder exists and is writable"
            case _:
                reason = str(error)
        return CacheError(f"the tuning cache {self.path} cannot be used: {reason}")


def _problem_id(db: sqlite3.Connection, key: CacheKey, entry: str) -> int:
    """The row of ``key``, made if there is none."""
    inputs = json.dumps([[i.shape, i.strides, i.dtype] for i in key.inputs])
    db.execute(
        "INSERT OR IGNORE INTO problems (digest, definition_hash, definition, entry, backend, "
        "inputs, device, codegen_version, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(key.digest, key.definition_hash, key.definition, entry, key.backend, inputs),
            *(key.device, key.codegen_version, time.time()),
        ),
    )
    row = db.execute("SELECT id FROM problems WHERE digest = ?", (key.digest,)).fetchone()
    return int(row[0])
