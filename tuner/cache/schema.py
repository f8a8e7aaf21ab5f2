"""The tables of the tuning cache's file, and how those of an older version become ours."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from tcl.common.errors import CacheError

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
    # Finals: which heat of its run, and the place in its verdict.
    """
    ALTER TABLE results ADD COLUMN heat INTEGER;
    ALTER TABLE results ADD COLUMN place INTEGER;
    CREATE INDEX results_by_run ON results (run);
    """,
    # What a resumed search has to know: the generation, and how fast the machine was.
    """
    ALTER TABLE results ADD COLUMN generation INTEGER;
    ALTER TABLE results ADD COLUMN conditions TEXT;
    CREATE INDEX runs_by_problem ON runs (problem, started);
    """,
    # Where the arrays lay: the samples on each placement.
    """
    ALTER TABLE results ADD COLUMN placed TEXT;
    """,
    # Launch shapes of kernels that users wrote: what each tuning found, as JSON.
    """
    CREATE TABLE block_results (
        digest TEXT PRIMARY KEY,
        kernel TEXT NOT NULL,
        source_hash TEXT NOT NULL,
        launch TEXT NOT NULL,
        device TEXT NOT NULL,
        result TEXT NOT NULL,
        created REAL NOT NULL
    );
    """,
    # What was done when a key came up that nobody had tuned, also where nothing worked.
    """
    CREATE TABLE first_uses (
        digest TEXT NOT NULL,
        mode TEXT NOT NULL,
        winner TEXT,
        message TEXT NOT NULL,
        created REAL NOT NULL,
        PRIMARY KEY (digest, mode)
    );
    """,
    # Of inputs whose sizes vary: the classes of sizes that a key is for.
    """
    ALTER TABLE problems ADD COLUMN classes TEXT;
    """,
)
"""Schema version n is the first n of these. Never edit one that was released: append."""

SCHEMA_VERSION = len(MIGRATIONS)

_COMPUTED = """
    SELECT (SELECT count(*) FROM sqlite_master m, pragma_index_xinfo(m.name) i
            WHERE m.type = 'index' AND i.cid = -2)
         + (SELECT count(*) FROM sqlite_master m, pragma_table_xinfo(m.name) c
            WHERE m.type = 'table' AND c.hidden > 1)
"""
"""How many columns of tables and indices are computed."""


def migrate(db: sqlite3.Connection, found: int) -> int:
    """Apply the migrations that come after version ``found``; the version reached."""
    if found == 0:
        db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        db.execute("CREATE TABLE migrations (version INTEGER PRIMARY KEY, applied REAL NOT NULL)")
    for number, migration in enumerate(MIGRATIONS, start=1):
        if number > found:
            for statement in migration.split(";"):
                db.execute(statement)
            db.execute("INSERT INTO migrations VALUES (?, ?)", (number, time.time()))
    return max(found, SCHEMA_VERSION)


def version(db: sqlite3.Connection, path: Path) -> int:
    """Schema version of the file; 0 for an empty one. ``CacheError`` for a foreign database, and
    for one that has more than tables and indices of what is stored: a view may take for ever."""
    # In one statement: another process may be making the file between two.
    application, tables, others = db.execute(
        "SELECT application_id, (SELECT count(*) FROM sqlite_master), "
        "(SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index') "
        "OR sql LIKE 'CREATE VIRTUAL%') FROM pragma_application_id"
    ).fetchone()
    if not others and application == _APPLICATION_ID:
        (others,) = db.execute(_COMPUTED).fetchone()
    if others and application == _APPLICATION_ID:
        raise CacheError(
            f"the tuning cache {path} cannot be used: it has views, triggers or "
            "computed columns, and no cache of tcl has; choose another file, or move it away"
        )
    if application == _APPLICATION_ID:
        (found,) = db.execute("SELECT coalesce(max(version), 0) FROM migrations").fetchone()
        if not isinstance(found, int):
            raise CacheError(f"the tuning cache {path} cannot be used: it has no version")
        return found
    if application == 0 and tables == 0:
        return 0
    raise CacheError(f"{path} is a database of another program; choose another cache file")
