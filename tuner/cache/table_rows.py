"""Keys and records as rows of the tuning cache's file."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from tcl.grammar.sizes.size_classes import SizeClass
from tcl.tuner.cache import ranking
from tcl.tuner.cache.key import ArrayLayout, CacheKey
from tcl.tuner.cache.ranking import Record
from tcl.tuner.measure.verdict import Conditions, Verdict

if TYPE_CHECKING:
    from tcl.tuner.measure.timing import Placed

RESULT = (
    "options, verdict, time, samples, message, created, run, heat, place, generation, conditions, "
    "placed"
)
"""The columns of a record, as ``record`` takes them."""
BRIEF = "options, verdict, time, samples, '', created, run, heat, place, generation, NULL, placed"
"""Without messages and conditions: of most results these are the longest, and rank nothing."""
_KEY = "definition, backend, inputs, device, codegen_version"
MESSAGE = 2000
"""Characters of a message that are kept."""
_TEXT = 1 << 20
"""Characters of a text that are read."""
_MANY = 1 << 31
_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_800
"""Seconds since the epoch, between which the calendar has dates."""
_TIMED = "FROM results WHERE problem = ?1 AND time IS NOT NULL"
_FASTEST = 16
"""Results that are read first where the best ones are looked for."""
_SAME_MOMENT = 1e-6
"""Seconds. Exchange formats hold times to the microsecond."""


UNREADABLE = (ValueError, TypeError, OverflowError, RecursionError)
"""What reading a value of JSON raises that is none of ours; of a number without an end, too."""


class RowError(Exception):
    """A row that we did not write."""


def problem_id(db: sqlite3.Connection, key: CacheKey, entry: str) -> int:
    """The row of ``key``, made if there is none."""
    db.execute(
        f"INSERT OR IGNORE INTO problems (digest, definition_hash, entry, created, {_KEY}) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(key.digest, key.definition_hash, entry, time.time(), key.definition, key.backend),
            *(_inputs(key), key.device, key.codegen_version),
        ),
    )
    row = db.execute("SELECT id FROM problems WHERE digest = ?", (key.digest,)).fetchone()
    if row is None or not isinstance(row[0], int):
        raise RowError("a key in it has no number")
    return row[0]


def _inputs(key: CacheKey) -> str:
    return json.dumps([layout_data(each) for each in key.inputs])


def devices(db: sqlite3.Connection, key: CacheKey) -> tuple[str, ...]:
    """The devices for which there are correct results of a key that is otherwise the same."""
    query = (
        "SELECT device FROM problems AS p WHERE definition_hash = ? AND backend = ? "
        "AND codegen_version = ? AND inputs = ? AND typeof(device) = 'text' "
        "AND EXISTS (SELECT 1 FROM results WHERE problem = p.id AND time IS NOT NULL)"
    )
    given = key.definition_hash, key.backend, key.codegen_version, _inputs(key)
    return tuple(device for (device,) in db.execute(query, given))


def standing(db: sqlite3.Connection, key: CacheKey) -> tuple[tuple[object, ...], ...]:
    """What stands for the correct results of other inputs of the same def on the same device."""
    query = (
        "SELECT p.digest, p.created, count(*), max(r.id) FROM problems p JOIN results r "
        "ON r.problem = p.id WHERE definition_hash = ? AND backend = ? AND codegen_version = ? "
        "AND device = ? AND digest != ? AND r.time IS NOT NULL GROUP BY p.id ORDER BY p.digest"
    )
    about = key.definition_hash, key.backend, key.codegen_version, key.device, key.digest
    return tuple(db.execute(query, about))


def problems(
    db: sqlite3.Connection, definition_hash: str | None = None
) -> Iterator[tuple[int, CacheKey, str]]:
    """(row, key, the def's name) of each key, or of each with this definition."""
    query = f"SELECT id, entry, {_KEY} FROM problems"
    given: tuple[str, ...] = ()
    if definition_hash is not None:
        query, given = f"{query} WHERE definition_hash = ?", (definition_hash,)
    for row, entry, *key in db.execute(f"{query} ORDER BY id", given).fetchall():
        if not isinstance(entry, str):
            raise RowError("a key in it cannot be read: the def's name has to be a text")
        yield row, _key(*key), entry


def records(
    db: sqlite3.Connection, problem: int, columns: str = RESULT
) -> Iterator[tuple[int, Record]]:
    """(row, record) of each result of a key. ``columns``: ``RESULT`` or ``BRIEF``."""
    query = f"SELECT id, {columns} FROM results WHERE problem = ? ORDER BY id"
    for row, *values in db.execute(query, (problem,)):
        yield row, _record(*values)


def record_from_row(db: sqlite3.Connection, row: int) -> Record:
    found = db.execute(f"SELECT {RESULT} FROM results WHERE id = ?", (row,)).fetchone()
    if found is None:
        raise RowError("a result in it has no number")
    return _record(*found)


def leading(
    db: sqlite3.Connection, problem: int, best: int, damage: list[str] | None = None
) -> list[tuple[int, Record]]:
    """``deciding`` as far as it decides which are the ``best`` ones of a key: what a look-up takes
    does not grow with what a search tried besides."""
    fastest = min(max(_FASTEST, 2 * best), _MANY)
    while True:
        found = list(deciding(db, problem, damage, fastest))
        ranks = ranking.ranks(record for _, record in found)[:best]
        # No options are ranked by less than the time of their last record.
        others = f"SELECT CAST(time AS REAL) {_TIMED} ORDER BY time LIMIT 1 OFFSET ?2"
        other = db.execute(others, (problem, fastest)).fetchone()
        if other is None or (len(ranks) == best and all(r < other[0] for r, _ in ranks)):
            return found
        fastest *= 4


def deciding(
    db: sqlite3.Connection, problem: int, damage: list[str] | None = None, fastest: int = -1
) -> Iterator[tuple[int, Record]]:
    """``records`` in brief that play a part in the ranking of a key: of all options, or of those of
    the finals and of the ``fastest`` results. ``damage``: gets what is wrong with rows that cannot
    be read, which are left out then."""
    # A failure counts for options that were correct before.
    finals = (
        "SELECT options FROM results AS r WHERE problem = ?1 AND heat IS NOT NULL AND (time IS NOT "
        f"NULL OR EXISTS (SELECT 1 {_TIMED} AND options = r.options))"
    )
    options = f"SELECT * FROM (SELECT options {_TIMED} ORDER BY time LIMIT ?2) UNION {finals}"
    query = f"SELECT id, {BRIEF} FROM results WHERE problem = ?1 AND options IN ({options})"
    if damage is not None:
        damage.clear()
    for row, *values in db.execute(f"{query} ORDER BY id", (problem, fastest)):
        try:
            yield row, _record(*values)
        except RowError as error:
            if damage is None:
                raise
            damage.append(str(error))


def counts(db: sqlite3.Connection) -> dict[int, tuple[int, float]]:
    """Row of a key → how many results it has, and when the last one was made."""
    query = "SELECT problem, count(*), max(created) FROM results GROUP BY problem"
    found = {problem: (count, last) for problem, count, last in db.execute(query)}
    if not all(isinstance(last, int | float) for _, last in found.values()):
        raise RowError("a result in it cannot be read: its date is not valid")
    return found


def insert(db: sqlite3.Connection, problem: int, found: Iterable[Record]) -> int:
    """Add the records that are not there: none that the same run made of the same options at that
    moment. How many they are."""
    before = db.total_changes
    marks = ", ".join(f"?{n}" for n in range(1, len(RESULT.split(", ")) + 2))
    there = (
        "SELECT 1 FROM results WHERE run = ?8 AND problem = ?1 AND options = ?2 "
        f"AND created BETWEEN ?7 - {_SAME_MOMENT} AND ?7 + {_SAME_MOMENT}"
    )
    db.executemany(
        f"INSERT INTO results (problem, {RESULT}) SELECT {marks} WHERE NOT EXISTS ({there})",
        (
            (
                *(problem, record.options, record.verdict.value, record.time),
                *(json.dumps(record.samples), record.message[:MESSAGE], record.when, record.run),
                *(record.heat, record.place, record.generation),
                None if record.conditions is None else json.dumps(astuple(record.conditions)),
                json.dumps(dict(record.placed)) if record.placed else None,
            )
            for record in found
        ),
    )
    return db.total_changes - before


def layout_data(layout: ArrayLayout) -> dict[str, object]:
    """An input as JSON has it."""
    data = {"shape": layout.shape, "strides": layout.strides, "dtype": layout.dtype}
    classes = [None if each is None else astuple(each) for each in layout.classes]
    return data | ({"classes": classes} if classes else {})


def layout_of(data: Any) -> ArrayLayout:
    """The inverse of ``layout_data``; ``ValueError`` for what is none."""
    shape, strides = (_ints(member(data, name, list), name) for name in ("shape", "strides"))
    if len(shape) != len(strides):
        raise ValueError("an input needs a stride for each dimension")
    if min(shape, default=0) < 0:
        raise ValueError("shape has to be a list of whole numbers from 0")
    classes = data.get("classes", [])
    if not isinstance(classes, list) or len(classes) not in (0, len(shape)):
        raise ValueError("an input needs a class of sizes for each dimension, or no classes")
    found = []
    for each in classes:
        if each is not None and (
            not isinstance(each, list)
            or [type(n) for n in each] != [int] * 3
            or min(each) < 1
            or each[1] > each[2]
        ):
            raise ValueError("a class of sizes has a divisor, a minimum and a maximum")
        found.append(None if each is None else SizeClass(*each))
    return ArrayLayout(shape, strides, member(data, "dtype", str), tuple(found))


def member(data: Any, name: str, kind: type[Any]) -> Any:
    """A member of an object; ``ValueError`` unless it is of this type."""
    value = data.get(name) if isinstance(data, dict) else None
    if type(value) is not kind:
        raise ValueError(f"{name} has to be {_KINDS[kind]}")
    return value


_KINDS = {str: "a text", int: "a whole number", list: "a list", dict: "an object"}


def _ints(values: list[Any], name: str) -> tuple[int, ...]:
    if any(type(value) is not int for value in values):
        raise ValueError(f"{name} has to be a list of whole numbers")
    return tuple(values)


def _key(definition: str, backend: str, inputs: str, device: str, version: str) -> CacheKey:
    try:
        if not all(isinstance(text, str) for text in (definition, backend, device, version)):
            raise ValueError("def, backend, device and version have to be texts")
        layouts = tuple(map(layout_of, json.loads(inputs)))
    except UNREADABLE as error:
        raise RowError(f"a key in it cannot be read: {error}") from None
    return CacheKey(definition, backend, layouts, device, version)


def _record(*columns: Any) -> Record:
    options, verdict, seconds, samples, message, when, run, *rest = columns
    heat, place, generation, conditions, placed = rest
    try:
        times = tuple(map(float, json.loads(samples)))
        meanwhile = None if conditions is None else Conditions.from_json(json.loads(conditions))
        found = (options, Verdict(verdict), seconds, times, message, float(when), run)
        where = () if placed is None else placed_of(json.loads(placed))
        return checked_record(Record(*found, heat, place, generation, meanwhile, where))
    except UNREADABLE as error:
        raise RowError(f"a result in it cannot be read: {error}") from None


def placed_of(data: Any) -> Placed:
    """``ValueError`` unless these are times by placement."""
    if not isinstance(data, dict):
        raise ValueError("times on placements must be numbers with names")
    return tuple((str(name), tuple(map(float, times))) for name, times in data.items())


def checked_record(record: Record) -> Record:
    """The record; ``ValueError`` unless it can be one."""
    texts: tuple[Any, ...] = (record.options, record.message, record.run)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("options, message and run have to be texts")
    if max(map(len, texts)) > _TEXT:
        raise ValueError(f"a text in it has more than {_TEXT:,} characters")
    for text in texts:
        text.encode()  # raises for what no file can hold
    if not _YEAR_1 <= record.when < _YEAR_10000:
        raise ValueError(f"{record.when} is not a valid date")
    times = (*record.samples, *(t for _, placed in record.placed for t in placed))
    if not all(math.isfinite(t) and t >= 0 for t in times):
        raise ValueError("times have to be finite and not below 0")
    correct = record.verdict is Verdict.CORRECT and record.samples
    right = record.outcome.time if correct else None
    if record.time != right:
        raise ValueError(f"its time is {record.time}, its samples say {right}")
    if (record.heat is None) != (record.place is None):
        raise ValueError("heat and place must be given together")
    counts = (record.heat, record.place, record.generation)
    if not all(0 <= n < _MANY for n in counts if n is not None):
        raise ValueError("heats, places and generations are counted from 0, 1 and 0")
    return record
