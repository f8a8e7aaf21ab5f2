"""Taking old results out of a cache."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass

from tcl.tuner.cache import block_results, notes, ranking
from tcl.tuner.cache import table_rows as cache_rows
from tcl.tuner.cache.key import CacheKey
from tcl.tuner.cache.tuning_cache import TuningCache


@dataclass(frozen=True, slots=True)
class PruneRules:
    """Which results go: those that every given rule names, but for the ``keep`` best options."""

    older_than: float | None = None
    """Seconds since they were measured."""
    versions: frozenset[str] | None = None
    """Of the code generator."""
    except_version: str | None = None
    """All versions of the code generator but this one."""
    keep: int | None = None
    """The best so many options of each key stay, with all their results."""

    @property
    def shapes_before(self) -> float | None:
        """Launch shapes of users' kernels go that were measured before this moment. They have no
        version of the code generator, and each is the best of its kernel; None: none go."""
        if self.older_than is None or self.keep or self.versions or self.except_version:
            return None
        return time.time() - self.older_than

    def rule_names(self, key: CacheKey) -> bool:
        """Whether results of this key may go."""
        version = key.codegen_version
        return (self.versions is None or version in self.versions) and (
            self.except_version is None or version != self.except_version
        )


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or would be."""

    results: int
    of: int
    keys: int
    """Of which nothing is left."""
    of_keys: int
    shapes: int = 0
    """Launch shapes of users' kernels."""


def prune(cache: TuningCache, rules: PruneRules, *, dry_run: bool = False) -> Pruned:
    """Remove results, and keys and searches of which none are left; with ``dry_run``, only say what
    would be removed."""
    nothing = Pruned(0, 0, 0, 0)
    if dry_run:
        return cache.read(lambda db: _doomed(db, rules)[0], nothing)
    if not cache.path.exists():
        return nothing

    def write(db: sqlite3.Connection) -> Pruned:
        pruned, doomed = _doomed(db, rules)
        if pruned.shapes:
            old = "DELETE FROM notes WHERE kind = ? AND updated < ?"
            db.execute(old, (block_results.KIND, rules.shapes_before))
        if not doomed:
            return pruned
        db.executemany("DELETE FROM results WHERE id = ?", ((row,) for row, _ in doomed))
        # Searches that lost their last result. One that had none yet may have just begun.
        db.executemany(
            "DELETE FROM notes WHERE kind = ?1 AND name = ?2 "
            "AND NOT EXISTS (SELECT 1 FROM results WHERE run = ?2)",
            ((notes.SEARCH, run) for run in sorted({record.run for _, record in doomed})),
        )
        db.execute("DELETE FROM problems WHERE id NOT IN (SELECT problem FROM results)")
        # What was done on first use of such keys is done again.
        others = "SELECT digest FROM problems"
        chosen = f"DELETE FROM notes WHERE kind NOT IN (?, ?) AND about NOT IN ({others})"
        db.execute(chosen, (notes.SEARCH, block_results.KIND))
        return pruned

    pruned = cache.transaction(write)
    if pruned.results or pruned.shapes:
        cache.compact()
    return pruned


def _doomed(
    db: sqlite3.Connection, rules: PruneRules
) -> tuple[Pruned, list[tuple[int, ranking.Record]]]:
    """What will have been removed, and the rows of the results that have to be."""
    doomed: list[tuple[int, ranking.Record]] = []
    total = emptied = keys = 0
    before = time.time() - rules.older_than if rules.older_than is not None else None
    for problem, key, _ in cache_rows.problems(db):
        rows = list(cache_rows.records(db, problem, cache_rows.BRIEF))
        total, keys = total + len(rows), keys + bool(rows)
        if not rules.rule_names(key):
            continue
        best = ranking.ranked(record for _, record in rows)[: rules.keep or 0]
        kept = {record.options for record in best}
        own = [
            (row, record)
            for row, record in rows
            if record.options not in kept and (before is None or record.when < before)
        ]
        doomed += own
        emptied += bool(rows) and len(own) == len(rows)
    older = "SELECT count(*) FROM notes WHERE kind = ? AND updated < ?"  # none is less than NULL
    (shapes,) = db.execute(older, (block_results.KIND, rules.shapes_before)).fetchone()
    return Pruned(len(doomed), total, emptied, keys, shapes), doomed
