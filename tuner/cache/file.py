"""The file under the tuning cache: opening, copying, setting a bad one aside."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tcl.common.dataclass import dataclass
from tcl.common.errors import CacheError
from tcl.common.interrupts import of_system
from tcl.common.warn import warn
from tcl.tuner.cache import schema as cache_schema
from tcl.tuner.cache.watched import Watched

FILE_NAME = "tuning.db"
"""What the user's cache is called, in its folder."""

_RENAMING = 5.0
"""Seconds that setting a file aside may take another process."""
_PAGES = 4096
"""Copied at once: signals are heard between two times."""
_LONGEST = 64 << 20
"""Bytes of a row: what is longer is refused."""
_SAID = 300
"""Characters of what SQLite says that are passed on: it quotes what it cannot read."""
_MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was at one moment: users delete caches, other processes set damaged ones aside,
    disks lose ends of files, and whoever has such a file open notices nothing, and goes on to write
    where nobody will read."""

    identity: tuple[int, int] | None
    """Device and inode; None: there was none."""
    size: int

    @classmethod
    def at_path(cls, path: Path) -> FileState:
        """The file that stands at ``path`` now."""
        try:
            found = path.stat()
        except OSError as error:
            if not of_system(error):
                raise
            return cls(None, 0)
        return cls((found.st_dev, found.st_ino), found.st_size)

    def continues(self, before: FileState) -> bool:
        """Whether it is the same file, with all that it had. A cache shrinks only when another
        process compacts it, or something went wrong."""
        return self.identity == before.identity and self.size >= before.size


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the error says that the file is not, or no longer, a sound database."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_locked(error: sqlite3.Error) -> bool:
    """Whether the error says that another process did not let go of the file."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_interrupted(error: sqlite3.Error) -> bool:
    """Whether the error says that a ``Watched`` connection ended a query."""
    return _code(error) == sqlite3.SQLITE_INTERRUPT


def _code(error: sqlite3.Error) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def open_file(path: Path, patience: float) -> sqlite3.Connection:
    """A connection to the cache at ``path``.

    A damaged cache, or one of another schema version, is set aside first. ``CacheError`` if the
    file is none, or belongs to another program; ``sqlite3.Error`` if it cannot be opened.
    """
    for _ in range(3):
        _make_private(path)
        found = FileState.at_path(path).identity
        if _stranded(path):
            return snapshot(path, patience)
        connection = _connect(path, patience)
        try:
            version = cache_schema.version_of(connection, path)
            if version is None and not _writable(path):
                connection.close()
                return snapshot(path, patience)
            if version is None:
                version = _make_tables(connection, path, patience)
            if detail := cache_schema.version_problem(version):
                why = f"version-{version}"
            else:
                # Survives a killed process at every moment; a power cut may lose the last results.
                connection.execute("PRAGMA synchronous = NORMAL")
                return connection
        except sqlite3.Error as error:
            if not is_damage(error):
                connection.close()
                raise
            if not _was_a_cache(path):
                connection.close()
                raise CacheError(
                    f"{path} is not a tuning cache; choose another file, or move it away"
                ) from None
            why, detail = "damaged", str(error)
        except BaseException:
            connection.close()
            raise
        connection.close()
        set_aside(path, why, detail, found)
    raise CacheError(
        f"the tuning cache {path} is replaced again and again by a file that cannot be used"
    )


def _was_a_cache(path: Path) -> bool:
    """Whether a file that cannot be read may be a cache that was damaged: it has the name that
    only we give, the first bytes of a database, or (after a power cut) zeros in their place.
    Everything else is a file of the user's, named by mistake."""
    with open(path, "rb") as file:
        start = file.read(len(_MAGIC))
    return path.name == FILE_NAME or start == _MAGIC or not any(start)


def _make_private(path: Path) -> None:
    """Create the file, and the folder of the user's own cache, with access for the user alone,
    where they do not exist. For a file that the user names, a folder that is not there was
    mistyped: ``CacheError``."""
    try:
        if not path.parent.exists():
            if path.name != FILE_NAME:
                raise CacheError(
                    f"the tuning cache {path} cannot be created: the folder {path.parent} does "
                    "not exist; make it, or name another file"
                )
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        if not of_system(error):
            raise
        reason = error.strerror
        raise CacheError(f"the tuning cache {path} cannot be created: {reason}") from error


def snapshot(path: Path, patience: float) -> sqlite3.Connection:
    """A copy in memory of a cache that is left as it is. ``CacheError`` unless it is sound."""
    if not os.path.exists(path):  # nor does this raise for what may not be looked into
        raise CacheError(f"there is no tuning cache {path}")
    copy = sqlite3.connect(
        ":memory:", isolation_level=None, check_same_thread=False, factory=Watched
    )
    try:
        with _reading(path, patience) as (source, version):
            source.backup(copy, pages=_PAGES, progress=lambda *_: None)
            _check_sound(copy, path)
        if version is None:
            cache_schema.create(copy)
        copy.execute("PRAGMA query_only = ON")
        return copy
    except BaseException:
        copy.close()
        raise


def check_sound(path: Path, patience: float = 5.0) -> bool:
    """``CacheError`` unless the file is a sound cache; whether it is more than an empty file.
    Nothing is changed, nor set aside; all of the file is read once."""
    with _reading(path, patience) as (source, version):
        _check_sound(source, path)
        return version is not None


@contextlib.contextmanager
def _reading(path: Path, patience: float) -> Iterator[tuple[sqlite3.Connection, int | None]]:
    """A connection that only reads, and the file's schema version, None if it is empty."""
    try:
        with (
            _readable(path) as readable,
            contextlib.closing(_connect(readable, patience)) as source,
        ):
            version = cache_schema.version_of(source, path)
            if detail := cache_schema.version_problem(version):
                raise CacheError(f"the tuning cache {path} cannot be used: {detail}; {ELSE}")
            yield source, version
    except sqlite3.Error as error:
        if is_damage(error) and not _was_a_cache(path):
            raise CacheError(f"{path} is not a tuning cache; name another file") from None
        raise explained(error, path, patience) from error


def _check_sound(db: sqlite3.Connection, path: Path) -> None:
    if damage := damage_in(db):
        raise CacheError(
            f"the tuning cache {path} cannot be used: it is damaged ({damage}); {ELSE}"
        )


ELSE = "move it away, or name another file"
"""What to do about a file that cannot be used."""


def damage_in(db: sqlite3.Connection) -> str | None:
    """What is missing in a file, going by a look at all of it; None if nothing is."""
    found = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    return None if found == "ok" else found


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[Path]:
    """The file, or a copy of it where SQLite could not read it."""
    if not _stranded(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="tcl-cache-") as folder:
        copy = Path(folder) / path.name
        try:
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        except OSError as error:
            if not of_system(error):
                raise
            raise CacheError(
                f"the tuning cache {path} cannot be read from a copy: {error.strerror}"
            ) from error
        yield copy


def _stranded(path: Path) -> bool:
    """Whether its last results are still in the log, which needs a folder that can be written."""
    log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    return not _writable(path) and not os.path.exists(index) and FileState.at_path(log).size > 0


def explained(error: sqlite3.Error, path: Path, patience: float) -> CacheError:
    """What SQLite says, in one sentence for people."""
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            reason = f"another process has locked it for more than {patience:g} s"
        case sqlite3.SQLITE_INTERRUPT:
            reason = "it takes too long to read"
        case sqlite3.SQLITE_TOOBIG:
            reason = f"a row of it has more than {_LONGEST >> 20} MB; {ELSE}"
        case sqlite3.SQLITE_READONLY:
            reason = "it is read-only"
        case sqlite3.SQLITE_FULL:
            reason = "the disk is full"
        case sqlite3.SQLITE_CANTOPEN:
            reason = "it cannot be opened; check that the folder exists and is writable"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            reason = f"it is damaged ({str(error)[:_SAID]}); {ELSE}"
        case sqlite3.SQLITE_ERROR:  # of a statement: a table or a column of it is missing
            reason = f"it is not complete ({str(error)[:_SAID]}); {ELSE}"
        case _:
            reason = str(error)[:_SAID]
    return CacheError(f"the tuning cache {path} cannot be used: {reason}")


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _connect(path: Path, patience: float) -> sqlite3.Connection:
    _check_plain(path)
    # Autocommit: transactions are written out. Threads take turns under the cache's lock.
    name, uri = str(path), False
    if not _writable(path):
        # Readers of a WAL file write beside it, unless told that nobody can change it.
        log = Path(f"{path}-wal")
        frozen = not FileState.at_path(log).size
        name, uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if frozen else ''}", True
    connection = sqlite3.connect(
        *(name, patience),
        isolation_level=None,
        check_same_thread=False,
        factory=Watched,
        uri=uri,
    )
    wait_for(connection, patience)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    return connection


def _check_plain(path: Path) -> None:
    """``CacheError`` for what SQLite would read without an end, or wait for: devices, pipes and
    others in the place of the file or of those beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        each = f"{path}{suffix}"
        if os.path.exists(each) and not os.path.isfile(each):
            kind = "a folder; name a file in it" if os.path.isdir(each) else "not a regular file"
            what = each if suffix else "it"
            raise CacheError(f"the tuning cache {path} cannot be used: {what} is {kind}")


def wait_for(db: sqlite3.Connection, patience: float) -> None:
    """From now on other processes are waited for so many seconds."""
    db.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")


def _make_tables(db: sqlite3.Connection, path: Path, patience: float) -> int:
    """Make an empty file a cache. The version of its tables: another process, of another version,
    may have been quicker."""
    _use_wal(db, patience)
    with transaction(db):
        version = cache_schema.version_of(db, path)
        if version is None:
            cache_schema.create(db)
    return version or cache_schema.VERSION


@contextlib.contextmanager
def transaction(db: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """What is done within is committed at the end, or not at all."""
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _use_wal(db: sqlite3.Connection, patience: float) -> None:
    """Switch to WAL. SQLite does not wait for other processes here, so this does."""
    deadline = time.monotonic() + patience
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_locked(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def set_aside(path: Path, why: str, detail: str, found: tuple[int, int] | None) -> None:
    """Rename the file, and what SQLite keeps beside it, and warn that this was done.

    Nothing happens if ``found``, the file that was seen to be bad, is no longer at ``path``:
    another process was quicker, and what stands there now is good.
    """
    name = f"{path.name}.{why}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (name, *(f"{name}-{i}" for i in range(1, 10_000)))
    target = next(unused for each in names if not (unused := path.with_name(each)).exists())
    try:
        with open(path, "rb") as file, _locked(file.fileno()):
            now = os.fstat(file.fileno())
            if not (now.st_dev, now.st_ino) == found == FileState.at_path(path).identity:
                return
            # The log first: a new file must never meet the log of an old one.
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.rename(f"{path}{suffix}", f"{target}{suffix}")
            os.rename(path, target)
    except FileNotFoundError:
        return
    except OSError as error:
        if not of_system(error):
            raise
        raise CacheError(
            f"the tuning cache {path} cannot be used ({detail}) and cannot be renamed: "
            f"{error.strerror}"
        ) from error
    warn(
        f"the tuning cache {path} cannot be used ({detail}); it is renamed to {target.name}, "
        "and a new one is created"
    )


@contextlib.contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    """Hold the one lock under which a cache file is renamed, for a moment. ``OSError`` if another
    process, stopped in the middle, holds it for long."""
    deadline = time.monotonic() + _RENAMING
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released by closing
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    yield
