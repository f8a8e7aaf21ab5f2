"""Caches that are damaged, very large, or no caches: no call hangs or ends for them."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tcl.common.errors import CacheError
from tcl.tuner.cache import block_results, first_uses
from tcl.tuner.cache.file import check_sound
from tcl.tuner.cache.merge import merge, results
from tcl.tuner.cache.prune import PruneRules, prune
from tcl.tuner.cache.ranking import ranked, winners
from tcl.tuner.cache.t4_format import to_t4
from tcl.tuner.cache.tuning_cache import ArrayLayout, CacheKey, TuningCache
from tcl.tuner.measure.verdict import Outcome, Verdict

KEY = CacheKey("def f0(float(d0) t0) -> (t1) {}", "cpu", (ArrayLayout((8,), (4,), "float32"),),
               "a cpu", "1")  # fmt: skip
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"

posix = pytest.mark.skipif(os.name != "posix", reason="others have no such files, nor alarms")


@pytest.fixture
def cache(tmp_path: Path) -> TuningCache:
    found = TuningCache(tmp_path / "tuning.db")
    found.store(KEY, '{"a":1}', Outcome(Verdict.CORRECT, (1.0,)), run="r", entry="f")
    found.close()
    return found


def change(cache: TuningCache, *statements: str) -> None:
    with closing(sqlite3.connect(cache.path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def test_messages_are_not_read_where_options_are_looked_up(cache: TuningCache) -> None:
    """A message that cannot be read, as it is too long, is in nobody's way."""
    cache.store(KEY, '{"a":2}', Outcome(Verdict.COMPILE, message="x"), run="r")
    cache.store(KEY, '{"a":1}', Outcome(Verdict.COMPILE, message="later"), run="r")
    cache.store(KEY, '{"a":3}', Outcome(Verdict.CORRECT, (2.0,)), run="r")
    change(cache, f"UPDATE results SET message = hex(zeroblob({1 << 20}))")
    records, _ = cache.deciding(KEY)
    assert [r.options for r in ranked(records)] == ['{"a":3}']  # the first one failed
    assert winners(records) == {'{"a":3}'}
    assert [s.measured for s in cache.list()] == [4]
    assert prune(cache, PruneRules(keep=9), dry_run=True).results == 3
    with pytest.raises(CacheError, match="a text in it has more than"):
        cache.history(KEY)


@posix
def test_signals_whose_handlers_return_end_no_query(cache: TuningCache) -> None:
    """Nor do those of a timer keep one from ever ending."""
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        counted = ENDLESS.replace("+ 1 FROM c", "+ 1 FROM c WHERE x < 1000000")
        rows = cache.read(lambda db: db.execute(counted).fetchone(), None)
        assert rows == (1_000_000,) and heard
        with pytest.raises(CacheError, match="it takes too long to read"):
            cache.read(lambda db: db.execute(ENDLESS).fetchone(), None, within=0.3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert len(cache.top(KEY, 9)) == 1


@posix
def test_what_a_handler_raises_ends_a_check(
    cache: TuningCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing defers signals then, and the sqlite3 module drops what is raised within SQLite."""

    def damage_in(db: sqlite3.Connection) -> str | None:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        return str(db.execute(ENDLESS).fetchone())

    monkeypatch.setattr("tcl.tuner.cache.file.damage_in", damage_in)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            check_sound(cache.path)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("date", ["1e300", "-1e300", "253402300800.0", "9e999"])
def test_a_date_that_no_calendar_has(date: str, cache: TuningCache) -> None:
    """An export writes dates out: it ended with a traceback."""
    change(cache, f"UPDATE results SET created = {date}")
    for read in (lambda: cache.history(KEY), lambda: to_t4(results(cache))):
        with pytest.raises(CacheError, match="is not a valid date; move it away, or name another"):
            read()


@pytest.mark.parametrize("table", ["problems", "results", "notes"])
def test_a_table_that_is_missing(table: str, cache: TuningCache) -> None:
    change(cache, f"DROP TABLE {table}")
    read = cache.list if table != "notes" else lambda: cache.load_run("r")
    with pytest.raises(CacheError, match=rf"not complete \(no such table: {table}\); move it away"):
        read()


def test_what_a_search_left_that_is_no_state(cache: TuningCache) -> None:
    cache.save_run(KEY, "r", config={}, state={})
    for text in ("{", "[]", "{}", '{"config":{},"state":[]}', "[" * 10_000):
        change(cache, f"UPDATE notes SET value = '{text}'")
        with pytest.raises(CacheError, match="a search in it cannot be read"):
            cache.load_run("r")
        with pytest.raises(CacheError, match="a search in it cannot be read"):
            cache.change_run("r", lambda state: state)


def test_a_launch_shape_that_cannot_be_read(cache: TuningCache) -> None:
    key = block_results.BlockKey("k", "source", (8,), ("float",), "", "a cpu")
    block_results.store(cache, key, "{}")
    change(cache, "UPDATE notes SET value = '{}'")
    with pytest.raises(CacheError, match=r"a launch shape in it cannot be read: .*; move"):
        block_results.stored_shapes(cache)


def uses(cache: TuningCache, other: TuningCache) -> list[Callable[[], object]]:
    """What may be done with a file."""
    return [
        lambda: check_sound(cache.path),
        lambda: merge(other, cache.path),
        cache.list,
        lambda: cache.deciding(KEY),
        lambda: cache.top(KEY, 9),
        lambda: cache.devices(KEY),
        lambda: cache.history(KEY),
        lambda: cache.load_run("r"),
        lambda: first_uses.load(cache, KEY),
        lambda: block_results.stored_shapes(cache),
        lambda: prune(cache, PruneRules(keep=1)),
    ]


@pytest.mark.parametrize("end", [4096, None])
def test_random_damage_is_one_sentence(end: int | None, cache: TuningCache, tmp_path: Path) -> None:
    """Whatever is found, or set aside, nothing else is raised. The first page has the tables'
    names, which SQLite quotes."""
    for n in range(20):
        cache.store(KEY, f'{{"a":{n}}}', Outcome(Verdict.COMPILE, message="no" * 300), run="r")
    cache.save_run(KEY, "r", config={}, state={})
    cache.close()
    change(cache, "PRAGMA journal_mode = DELETE")
    sound, chance = cache.path.read_bytes(), random.Random(1)
    (tmp_path / "others").mkdir()
    refused = 0
    for _ in range(75):
        damaged = bytearray(sound)
        for _ in range(chance.choice((1, 3, 30))):
            damaged[chance.randrange(end or len(damaged))] = chance.randrange(256)
        with warnings.catch_warnings(), closing(TuningCache(tmp_path / "others/t.db")) as other:
            warnings.simplefilter("ignore")
            cache.path.write_bytes(damaged)
            for use in uses(cache, other):
                refused += 1
                with suppress(CacheError):
                    use()
                    refused -= 1
        cache.close()
        for kept in cache.path.parent.glob("tuning.db?*"):
            kept.unlink()
    assert refused


@posix
@pytest.mark.parametrize("suffix", ["", "-wal", "-journal"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_what_is_no_plain_file_is_said_at_once(
    kind: str, suffix: str, cache: TuningCache, tmp_path: Path
) -> None:
    path = tmp_path / "stranger.db"
    path.write_bytes(cache.path.read_bytes())
    file = tmp_path / f"stranger.db{suffix}"
    file.unlink(missing_ok=True)
    match kind:
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
    own = TuningCache(path)
    for use in (*uses(own, cache), own.check_writable):
        with pytest.raises(
            CacheError, match=r"stranger.db.* is (a folder; name|not a regular file)"
        ):
            use()
