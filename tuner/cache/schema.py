"""The tables of the tuning cache's file, and whether a file has them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tcl.common.errors import CacheError

_APPLICATION_ID = 0x74636C31  # "tcl1"

VERSION = 2
"""Of the tables. A file of another one is set aside, and never written."""

_TABLES = f"""
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
CREATE TABLE results (
    id INTEGER PRIMARY KEY,
    problem INTEGER NOT NULL REFERENCES problems (id),
    options TEXT NOT NULL,
    verdict TEXT NOT NULL,
    time REAL,
    samples TEXT NOT NULL,
    message TEXT NOT NULL,
    created REAL NOT NULL,
    run TEXT NOT NULL,
    heat INTEGER,
    place INTEGER,
    generation INTEGER,
    conditions TEXT,
    placed TEXT
);
CREATE INDEX results_by_problem ON results (problem, time);
CREATE INDEX results_by_run ON results (run, created);
CREATE TABLE notes (
    kind TEXT NOT NULL,
    about TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    PRIMARY KEY (kind, about, name)
);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {VERSION}
"""

_COMPUTED = """
    SELECT (SELECT count(*) FROM sqlite_master m, pragma_index_xinfo(m.name) i
            WHERE m.type = 'index' AND i.cid = -2)
         + (SELECT count(*) FROM sqlite_master m, pragma_table_xinfo(m.name) c
            WHERE m.type = 'table' AND c.hidden > 1)
"""
"""How many columns of tables and indices are computed."""


def create(db: sqlite3.Connection) -> None:
    """Make the tables in an empty file, within the transaction that is open."""
    for statement in _TABLES.split(";"):
        db.execute(statement)


def version_of(db: sqlite3.Connection, path: Path) -> int | None:
    """Schema version of the file; None for an empty one. ``CacheError`` for a foreign database, and
    for one that has more than tables and indices of what is stored: a view may take for ever."""
    # In one statement: another process may be making the file between two.
    application, version, tables, others = db.execute(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master), "
        "(SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index') "
        "OR sql LIKE 'CREATE VIRTUAL%') FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    if application == 0 and tables == 0:
        return None
    if application != _APPLICATION_ID:
        raise CacheError(f"{path} is a database of another program; choose another cache file")
    if others or db.execute(_COMPUTED).fetchone()[0]:
        raise CacheError(
            f"the tuning cache {path} cannot be used: it has views, triggers or computed "
            "columns, which no cache of tcl has; choose another file, or move it away"
        )
    return int(version)


def version_problem(version: int | None) -> str:
    """Why a file of this version cannot be used; empty if it can, or is empty."""
    if version in (None, VERSION):
        return ""
    return f"it has schema version {version}; this tcl needs version {VERSION}"
