"""Results of other caches and of exchange files, added to a cache.

Options and times are taken, the states of searches, so that these can go on, and what was done on
first use, so that it is not done again; never code.
Each source is added whole or not at all, and adding it twice adds nothing.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tcl.common.errors import CacheError
from tcl.tuner.cache import file as cache_file
from tcl.tuner.cache import notes
from tcl.tuner.cache import table_rows as cache_rows
from tcl.tuner.cache.key import CacheKey
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import TuningCache


@dataclass(frozen=True, slots=True)
class Results:
    key: CacheKey
    entry: str
    """The def's name when it was first tuned."""
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Added:
    """What became of results that were to be added."""

    added: int
    known: int
    """That were there already."""


def add(into: TuningCache, found: Iterable[Results]) -> Added:
    return into.transaction(lambda db: _add(db, found))


def merge(into: TuningCache, source: Path, patience: float = 5.0) -> Added:
    """Add all that another cache file knows; that one is left as it is.

    ``CacheError`` if it is the same file, or no sound cache, or in use for longer than
    ``patience`` seconds.
    """
    if into.path.exists() and source.exists() and os.path.samefile(into.path, source):
        raise CacheError(f"{source} cannot be merged into itself")
    with contextlib.closing(cache_file.snapshot(source, patience)) as copy:
        try:
            found = list(_all_results(copy))
            kept = copy.execute(f"SELECT {notes.COLUMNS} FROM notes").fetchall()
        except cache_rows.RowError as error:
            raise CacheError(
                f"the tuning cache {source} cannot be used: {error}; {cache_file.ELSE}"
            ) from None
        except sqlite3.Error as error:
            raise cache_file.explained(error, source, patience) from error

    def write(db: sqlite3.Connection) -> Added:
        added = _add(db, found)
        notes.put_rows(db, kept, by_time=True)
        return added

    return into.transaction(write)


def results(cache: TuningCache) -> tuple[Results, ...]:
    """All that a cache holds, as of one moment."""
    return cache.read(_all_results, ())


def _all_results(db: sqlite3.Connection) -> tuple[Results, ...]:
    found = (
        Results(key, entry, tuple(record for _, record in cache_rows.records(db, problem)))
        for problem, key, entry in cache_rows.problems(db)
    )
    return tuple(each for each in found if each.records)


def _add(db: sqlite3.Connection, found: Iterable[Results]) -> Added:
    added = known = 0
    for each in found:
        problem = cache_rows.problem_id(db, each.key, each.entry)
        new = cache_rows.insert(db, problem, each.records)
        added, known = added + new, known + len(each.records) - new
    return Added(added, known)
