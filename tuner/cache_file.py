"""The file under the tuning cache: opening, schema, migrations, setting a bad file aside."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from tcl.grammar.errors import TclWarning
from tcl.tuner.errors import CacheError

FILE_NAME = "tuning.db"
"""What the user's cache is called, in its folder."""

_MAGIC = b"SQLite format 3\0"
_APPLICATION_ID = 0x74636C31  # "tcl1"

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE problems (
        id INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        definition_hash TEXT NOT NULL,
        definition TEXT NOT NULL,
        entry TEXT NOT NULL,
        backend TEXT NOT NULL,
        inputs TEXT NOT NULL,
        device TEXT NOT NULL,
        codegen_version TEXT NOT NULL,
        created REAL NOT NULL
    );
    CREATE INDEX problems_by_definition ON problems (definition_hash);
    CREATE TABLE runs (
        run TEXT PRIMARY KEY,
        problem INTEGER NOT NULL REFERENCES problems (id),
        config TEXT NOT NULL,
        state TEXT NOT NULL,
        started REAL NOT NULL,
        updated REAL NOT NULL
    );
    CREATE TABLE results (
        id INTEGER PRIMARY KEY,
        problem INTEGER NOT NULL REFERENCES problems (id),
        options TEXT NOT NULL,
        verdict TEXT NOT NULL,
        time REAL,
        samples TEXT NOT NULL,
        message TEXT NOT NULL,
        created REAL NOT NULL,
        run TEXT NOT NULL
    );
    CREATE INDEX results_by_problem ON results (problem, time);
    """,
)
"""Schema version n is the first n of these. Never edit one that was released: append."""

SCHEMA_VERSION = len(MIGRATIONS)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the error says that the file is not, or no longer, a sound database."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return False
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def open_file(path: Path, patience: float) -> sqlite3.Connection:
    """A connection to the cache at ``path``, at the current schema version.

    A damaged cache, or one of a newer version, is set aside first. ``CacheError`` if the file
    is none, or belongs to another program; ``sqlite3.Error`` if it cannot be opened.
    """
    for _ in range(3):
        _make_private(path)
        found = identity(path)
        connection = _connect(path, patience)
        try:
            version = _prepare(connection, path, patience)
        except sqlite3.Error as error:
            connection.close()
            if not is_damage(error):
                raise
            if not _was_a_cache(path):
                raise CacheError(
                    f"{path} is not a tuning cache; choose another file, or move it away"
                ) from None
            set_aside(path, "damaged", str(error), found)
            continue
        except BaseException:
            connection.close()
            raise
        if version <= SCHEMA_VERSION:
            return connection
        connection.close()
        detail = f"it has schema version {version}, this tcl knows up to {SCHEMA_VERSION}"
        set_aside(path, f"newer-v{version}", detail, found)
    raise CacheError(f"the tuning cache {path} keeps being replaced by one that cannot be used")


def _was_a_cache(path: Path) -> bool:
    """Whether a file that cannot be read may be a cache that was damaged: it has the name that
    only we give, the first bytes of a database, or (after a power cut) zeros in their place.
    Everything else is a file of the user's, named by mistake."""
    with open(path, "rb") as file:
        start = file.read(len(_MAGIC))
    return path.name == FILE_NAME or start == _MAGIC or not any(start)


def _make_private(path: Path) -> None:
    """Create folder and file with access for the user alone, where they do not exist."""
    try:
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        reason = error.strerror or str(error)
        raise CacheError(f"the tuning cache {path} cannot be created: {reason}") from error


def _connect(path: Path, patience: float) -> sqlite3.Connection:
    # Autocommit: transactions are written out. Threads take turns under the cache's lock.
    name, uri = str(path), False
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        # Readers of a WAL file write beside it, unless told that nobody can change it.
        log = Path(f"{path}-wal")
        frozen = not (log.exists() and log.stat().st_size)
        name, uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if frozen else ''}", True
    connection = sqlite3.connect(
        name, timeout=patience, isolation_level=None, check_same_thread=False, uri=uri
    )
    connection.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
    return connection


def _prepare(db: sqlite3.Connection, path: Path, patience: float) -> int:
    """Bring the schema up to date. Returns the version found if that is newer, else ours."""
    version = _version(db, path)
    if version < SCHEMA_VERSION:
        _use_wal(db, patience)
        db.execute("BEGIN IMMEDIATE")
        try:
            version = _migrate(db, _version(db, path))  # another process may have been quicker
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    # Survives a killed process at every moment; a power cut may lose the last results only.
    db.execute("PRAGMA synchronous = NORMAL")
    return version


def _use_wal(db: sqlite3.Connection, patience: float) -> None:
    """Switch to WAL. SQLite does not wait for other processes here, so this does."""
    deadline = time.monotonic() + patience
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _migrate(db: sqlite3.Connection, version: int) -> int:
    """Apply the migrations that come after ``version``; the version reached."""
    if version == 0:
        db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        db.execute("CREATE TABLE migrations (version INTEGER PRIMARY KEY, applied REAL NOT NULL)")
    for number, migration in enumerate(MIGRATIONS, start=1):
        if number > version:
            for statement in migration.split(";"):
                db.execute(statement)
            db.execute("INSERT INTO migrations VALUES (?, ?)", (number, time.time()))
    return max(version, SCHEMA_VERSION)


def _version(db: sqlite3.Connection, path: Path) -> int:
    """Schema version of the file; 0 for an empty one. ``CacheError`` for a foreign database."""
    # In one statement: another process may be making the file between two.
    application, tables = db.execute(
        "SELECT application_id, (SELECT count(*) FROM sqlite_master) FROM pragma_application_id"
    ).fetchone()
    if application == _APPLICATION_ID:
        return int(db.execute("SELECT coalesce(max(version), 0) FROM migrations").fetchone()[0])
    if application == 0 and tables == 0:
        return 0
    raise CacheError(f"{path} is a database of another program; choose another cache file")


def identity(path: Path) -> tuple[int, int] | None:
    """Which file stands at ``path`` (device, inode); None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def set_aside(path: Path, why: str, detail: str, found: tuple[int, int] | None) -> None:
    """Rename the file, and what SQLite keeps beside it, and warn that this was done.

    Nothing happens if ``found``, the file that was seen to be bad, is no longer at ``path``:
    another process was quicker, and what stands there now is good.
    """
    target = _unused(f"{path.name}.{why}-{time.strftime('%Y%m%d-%H%M%S')}", path)
    try:
        with open(path, "rb") as file, _locked(file.fileno()):
            now = os.fstat(file.fileno())
            if (now.st_dev, now.st_ino) != found or identity(path) != found:
                return
            # The log first: a new file must never meet the log of an old one.
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.rename(f"{path}{suffix}", f"{target}{suffix}")
            os.rename(path, target)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CacheError(
            f"the tuning cache {path} cannot be used ({detail}), nor set aside: {error.strerror}"
        ) from error
    warnings.warn(
        f"the tuning cache {path} cannot be used ({detail}); it is kept as {target.name}, and a "
        "new one is begun",
        TclWarning,
        stacklevel=2,
    )


def _unused(name: str, path: Path) -> Path:
    """A path beside ``path`` that does not exist, called ``name`` or ``name`` and a number."""
    candidates = (path.with_name(name + end) for end in ("", *(f"-{i}" for i in range(1, 10_000))))
    return next(c for c in candidates if not c.exists())


@contextlib.contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Hold the one lock under which a cache file is renamed."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)  # released when the file is closed
    yield
