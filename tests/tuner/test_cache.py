"""The tuning cache: what is stored, who may share it, and what happens to a file that is bad."""

from __future__ import annotations

import contextlib
import fcntl
import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import stat
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from at_once import at_once

from tcl.common.errors import CacheError, TclWarning
from tcl.tuner.cache import file as cache_file
from tcl.tuner.cache import schema as cache_schema
from tcl.tuner.cache.merge import merge
from tcl.tuner.cache.schema import VERSION
from tcl.tuner.cache.tuning_cache import ArrayLayout, CacheKey, Record, TuningCache, default_path
from tcl.tuner.measure.verdict import Outcome, Verdict

KEY = CacheKey(
    definition="def f0(float32(d0) t0) -> (t1) { t1(i0) = t0(i0) }",
    backend="cpu",
    inputs=(ArrayLayout((128,), (4,), "float32"),),
    device="skylake-avx512, 2 cores",
    codegen_version="1",
)


def correct(*times: float) -> Outcome:
    return Outcome(Verdict.CORRECT, times)


@pytest.fixture
def cache(tmp_path: Path) -> TuningCache:
    return TuningCache(tmp_path / "sub" / "tuning.db")


def test_stored_results_come_back_ranked(cache: TuningCache) -> None:
    cache.store(KEY, '{"a":1}', correct(3.0, 1.0, 2.0), run="r1", entry="copy")
    cache.store(KEY, '{"a":2}', Outcome(Verdict.COMPILE, message="no"), run="r1")
    cache.store(KEY, '{"a":3}', correct(0.5), run="r2")
    history = cache.history(KEY)
    assert [r.options for r in history] == ['{"a":3}', '{"a":1}', '{"a":2}']
    assert [r.time for r in history] == [0.5, 2.0, None]
    assert history[1].samples == (3.0, 1.0, 2.0)
    assert history[2].verdict is Verdict.COMPILE
    assert history[2].message == "no"
    assert [r.run for r in history] == ["r2", "r1", "r1"]
    best = cache.best(KEY)
    assert best is not None
    assert best.options == '{"a":3}'


def test_another_connection_sees_every_result_at_once(cache: TuningCache) -> None:
    other = TuningCache(cache.path)
    for i in range(3):
        cache.store(KEY, str(i), correct(1.0 + i), run="r")
        assert len(other.history(KEY)) == i + 1


def test_top_counts_the_last_measurement_of_each_options(cache: TuningCache) -> None:
    cache.store(KEY, "lucky", correct(0.1), run="r1")
    cache.store(KEY, "steady", correct(1.0), run="r1")
    cache.store(KEY, "wrong", correct(0.2), run="r1")
    cache.store(KEY, "lucky", correct(2.0), run="r2")
    cache.store(KEY, "wrong", Outcome(Verdict.CORRECTNESS, message="x"), run="r2")
    assert [(r.options, r.time) for r in cache.top(KEY, 5)] == [("steady", 1.0), ("lucky", 2.0)]
    assert [r.options for r in cache.top(KEY, 1)] == ["steady"]
    assert cache.top(KEY, 0) == ()
    assert len(cache.history(KEY)) == 5


@pytest.mark.parametrize(
    "other",
    [
        replace(KEY, definition="def g"),
        replace(KEY, backend="cuda"),
        replace(KEY, device="zen4"),
        replace(KEY, codegen_version="2"),
        replace(KEY, inputs=(ArrayLayout((128,), (8,), "float32"),)),
        replace(KEY, inputs=(ArrayLayout((128,), (4,), "int32"),)),
        replace(KEY, inputs=(ArrayLayout((64,), (4,), "float32"),)),
        replace(KEY, inputs=()),
    ],
    ids=["definition", "backend", "device", "version", "strides", "dtype", "shape", "inputs"],
)
def test_every_ingredient_of_the_key_counts(cache: TuningCache, other: CacheKey) -> None:
    cache.store(KEY, "mine", correct(1.0), run="r")
    assert cache.best(other) is None
    cache.store(other, "theirs", correct(0.5), run="r")
    best = cache.best(KEY)
    assert best is not None
    assert best.options == "mine"
    assert other.digest != KEY.digest


def test_list_summarises_last_used_first(cache: TuningCache) -> None:
    assert cache.list() == ()
    second = replace(KEY, backend="cuda")
    cache.store(KEY, "a", correct(2.0), run="r", entry="copy")
    cache.store(second, "b", Outcome(Verdict.TIMEOUT, message="slow"), run="r", entry="other")
    cache.store(KEY, "c", correct(1.0), run="r", entry="renamed")
    first, last = cache.list()
    assert (first.key, first.entry, first.measured, first.best) == (KEY, "copy", 2, 1.0)
    assert (last.key, last.entry, last.measured, last.best) == (second, "other", 1, None)
    assert first.last > last.last


def test_runs_keep_their_state(cache: TuningCache) -> None:
    assert cache.load_run("r") is None
    cache.save_run(KEY, "r", config={"seed": 1}, state={"generation": 1})
    cache.save_run(KEY, "r", config={"seed": 1}, state={"generation": 2, "x": [1, "a"]})
    assert TuningCache(cache.path).load_run("r") == (
        {"seed": 1},
        {"generation": 2, "x": [1, "a"]},
    )
    assert cache.list() == ()  # nothing was measured


def test_looking_up_leaves_nothing_behind(cache: TuningCache) -> None:
    assert cache.best(KEY) is None
    assert cache.list() == ()
    assert cache.load_run("r") is None
    assert not cache.path.parent.exists()


def test_file_and_folder_are_private(cache: TuningCache) -> None:
    before = os.umask(0o000)
    try:
        cache.store(KEY, "a", correct(1.0), run="r")
    finally:
        os.umask(before)
    assert stat.S_IMODE(cache.path.parent.stat().st_mode) == 0o700
    for file in cache.path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    TuningCache(tmp_path / "t.db").store(KEY, "a", correct(1.0), run="r")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_default_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path / "here"))
    assert default_path() == tmp_path / "here" / "tuning.db"
    assert TuningCache().path == default_path()
    monkeypatch.delenv("TCL_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_path().name == "tuning.db"
    assert "tcl" in default_path().parts


def _write(path: str, who: int, count: int) -> None:
    cache = TuningCache(path, patience=30)
    for i in range(count):
        cache.store(KEY, f"{who}-{i}", correct(1.0), run=str(who))


def test_several_processes_create_and_write_one_file(cache: TuningCache) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write, args=(str(cache.path), w, 40)) for w in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(600)
        assert process.exitcode == 0
    assert {r.options for r in cache.history(KEY)} == {
        f"{w}-{i}" for w in range(4) for i in range(40)
    }


def test_threads_share_one_cache(cache: TuningCache) -> None:
    def write(who: int) -> None:
        for i in range(25):
            cache.store(KEY, f"{who}-{i}", correct(1.0), run="r")
            cache.best(KEY)

    at_once(write, range(4))
    assert len(cache.history(KEY)) == 100


def test_cache_works_in_a_forked_child(cache: TuningCache) -> None:
    cache.store(KEY, "parent", correct(2.0), run="r")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            cache.store(KEY, "child", correct(1.0), run="r")
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    cache.store(KEY, "parent again", correct(3.0), run="r")
    assert [r.options for r in cache.history(KEY)] == ["child", "parent", "parent again"]


def test_locked_file_is_not_waited_for_longer_than_allowed(cache: TuningCache) -> None:
    cache.store(KEY, "a", correct(1.0), run="r")
    blocker = sqlite3.connect(cache.path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    hasty = TuningCache(cache.path, patience=0.1)
    with pytest.raises(CacheError, match=r"locked it for more than 0.1 s$"):
        hasty.store(KEY, "b", correct(1.0), run="r")
    assert len(hasty.history(KEY)) == 1  # readers do not wait for writers
    blocker.execute("ROLLBACK")
    hasty.store(KEY, "b", correct(1.0), run="r")
    assert len(cache.history(KEY)) == 2


def test_who_has_waited_in_vain_does_not_wait_again(cache: TuningCache) -> None:
    """A call opens the cache several times; the last wait of these would else be the third."""
    cache.store(KEY, "a", correct(1.0), run="r")
    cache.close()
    blocker = sqlite3.connect(cache.path, isolation_level=None)
    blocker.execute("PRAGMA journal_mode = DELETE")
    blocker.execute("BEGIN EXCLUSIVE")
    with pytest.raises(CacheError, match=r"locked it for more than 1 s$"):
        TuningCache(cache.path, patience=1.0).history(KEY)
    for _ in range(3):
        with pytest.raises(CacheError, match="locked it for"):
            TuningCache(cache.path, patience=1000.0).history(KEY)
    blocker.execute("ROLLBACK")
    assert len(TuningCache(cache.path).history(KEY)) == 1


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "


@pytest.mark.parametrize(
    "statements",
    [
        ["ALTER TABLE results RENAME TO r", f"CREATE VIEW results AS {ENDLESS} r.* FROM n, r"],
        ["CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM results; END"],
        ["CREATE INDEX slow ON results (hex(message))"],
        ["ALTER TABLE results ADD COLUMN slow AS (hex(zeroblob(100000000)))"],
    ],
)
def test_a_cache_of_more_than_tables_is_refused(
    statements: list[str], cache: TuningCache, tmp_path: Path
) -> None:
    cache.store(KEY, "a", correct(1.0), run="r")
    cache.close()
    with contextlib.closing(sqlite3.connect(cache.path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    for use in (
        lambda: TuningCache(cache.path).deciding(KEY),
        lambda: TuningCache(cache.path).store(KEY, "b", correct(1.0), run="r"),
        lambda: merge(TuningCache(tmp_path / "own.db"), cache.path),
    ):
        with pytest.raises(CacheError, match="it has views, triggers or computed"):
            use()


def test_what_takes_too_long_to_read_is_left(cache: TuningCache) -> None:
    cache.store(KEY, "a", correct(1.0), run="r")
    query = f"{ENDLESS} count(*) FROM n"
    with pytest.raises(CacheError, match="it takes too long to read"):
        cache.read(lambda db: db.execute(query).fetchone(), None, within=0.05)
    assert len(cache.history(KEY)) == 1


def test_a_signal_ends_a_query(cache: TuningCache) -> None:
    cache.store(KEY, "a", correct(1.0), run="r")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            cache.read(lambda db: db.execute(f"{ENDLESS} count(*) FROM n").fetchone(), None)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(cache.history(KEY)) == 1


def test_texts_are_kept_and_read_up_to_a_length(cache: TuningCache) -> None:
    cache.store(KEY, "a", Outcome(Verdict.COMPILE, message="x" * 100_000), run="r")
    (record,) = cache.history(KEY)
    assert record.message == "x" * 2000
    with contextlib.closing(sqlite3.connect(cache.path)) as db:
        db.execute("UPDATE results SET message = ?", ("x" * 2_000_000,))
        db.commit()
    with pytest.raises(CacheError, match="a text in it has more than 1,048,576 characters"):
        cache.history(KEY)


def kept(path: Path, why: str) -> list[Path]:
    """The files that were set aside, without SQLite's own beside them."""
    found = path.parent.glob(f"{path.name}.{why}-*")
    return [f for f in found if not f.name.endswith(("-wal", "-shm"))]


def filled(path: Path, count: int) -> None:
    cache = TuningCache(path)
    for i in range(count):
        cache.store(KEY, f"{i}" * 200, correct(1.0 + i), run="r")
    cache.close()


def reuse(cache: TuningCache) -> None:
    """A truncated file may only be noticed when the missing part is read."""
    cache.history(KEY)
    cache.store(KEY, "new", correct(1.0), run="r")


def test_file_that_is_no_database_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "tuning.db"
    path.write_bytes(b"precious but broken" * 100)
    with pytest.warns(
        TclWarning, match=r"tuning.db cannot be used .*renamed to tuning.db.damaged-"
    ):
        TuningCache(path).store(KEY, "a", correct(1.0), run="r")
    (aside,) = kept(path, "damaged")
    assert aside.read_bytes() == b"precious but broken" * 100
    assert len(TuningCache(path).history(KEY)) == 1


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9])
def test_truncated_file_is_set_aside(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "tuning.db"
    filled(path, 200)
    content = path.read_bytes()[: int(keep * path.stat().st_size)]
    path.write_bytes(content)
    cache = TuningCache(path)
    with pytest.warns(TclWarning, match="damaged"):
        reuse(cache)
    (aside,) = kept(path, "damaged")
    assert aside.read_bytes() == content
    assert [r.options for r in cache.history(KEY)] == ["new"]


def test_file_damaged_while_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "tuning.db"
    filled(path, 100)
    cache = TuningCache(path)
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(random.Random(1).randbytes(path.stat().st_size - 4096))
    with pytest.warns(TclWarning, match="damaged"):
        cache.store(KEY, "new", correct(1.0), run="r")
    assert len(kept(path, "damaged")) == 1
    assert [r.options for r in cache.history(KEY)] == ["new"]


def test_file_that_is_deleted_or_set_aside_while_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    cache = TuningCache(path)
    cache.store(KEY, "{}", correct(1.0), run="r")
    assert cache.files == 1
    path.unlink()
    assert cache.history(KEY) == ()
    assert not path.exists()
    records = [Record.from_outcome("{}", correct(t), 1.0 + t, "r") for t in (1.0, 2.0)]
    cache.add(KEY, records[:1])
    assert cache.files == 2
    cache.add(KEY, records)
    assert len(cache.history(KEY)) == 2
    with pytest.warns(TclWarning):  # as another process would
        cache_file.set_aside(
            path, "damaged", "so it says", cache_file.FileState.at_path(path).identity
        )
    filled(path, 3)
    assert len(cache.history(KEY)) == 3
    assert cache.files == 3


@pytest.mark.parametrize(
    ("beside", "detail"), [(False, "malformed"), (True, "a part of it is missing")]
)
def test_file_cut_short_while_it_is_open(tmp_path: Path, beside: bool, detail: str) -> None:
    path = tmp_path / "t.db"
    filled(path, 200)
    cache, other = TuningCache(path), TuningCache(path)
    assert len(cache.history(KEY)) == 200
    if beside:  # its log, which goes by the size that the file had
        other.store(KEY, "another", correct(1.0), run="r")
    os.truncate(path, path.stat().st_size - 8 * 4096)
    with pytest.warns(TclWarning, match=detail):
        cache.store(KEY, "{}", correct(1.0), run="r")
    assert (cache.files, len(cache.history(KEY))) == (2, 1)
    assert kept(path, "damaged")
    other.store(KEY, "yet another", correct(1.0), run="r")
    assert (other.files, len(cache.history(KEY))) == (1 + beside, 2)


def test_file_that_another_process_compacts_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    filled(path, 200)
    cache, other = TuningCache(path), TuningCache(path)
    assert len(cache.history(KEY)) == 200
    other.transaction(lambda db: db.execute("DELETE FROM results WHERE id > 100"))
    other.compact()
    other.close()
    assert len(cache.history(KEY)) == 100
    assert not list(tmp_path.glob("*.damaged*"))


def test_empty_file_becomes_a_cache(tmp_path: Path) -> None:
    path = tmp_path / "tuning.db"
    path.touch()
    TuningCache(path).store(KEY, "a", correct(1.0), run="r")
    assert list(tmp_path.glob("*damaged*")) == []
    assert len(TuningCache(path).history(KEY)) == 1


@pytest.mark.parametrize("version", [0, VERSION + 1])
def test_file_of_another_version_is_set_aside_whole(tmp_path: Path, version: int) -> None:
    path = tmp_path / "tuning.db"
    filled(path, 3)
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {version}")
    db.close()
    message = rf"schema version {version}; this tcl needs version {VERSION}\); it is renamed to .*"
    with pytest.warns(TclWarning, match=message):
        assert TuningCache(path).history(KEY) == ()
    (aside,) = kept(path, f"version-{version}")
    with sqlite3.connect(aside) as db:
        assert db.execute("SELECT count(*) FROM results").fetchone() == (3,)
    db.close()


def test_setting_aside_twice_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tuning.db"
    for text in ("first", "second", "third"):
        path.write_text(text * 300)
        cache = TuningCache(path)
        with pytest.warns(TclWarning):
            cache.store(KEY, "a", correct(1.0), run="r")
        cache.close()
    assert sorted(f.read_text()[:5] for f in kept(path, "damaged")) == ["first", "secon", "third"]


def test_file_replaced_by_another_process_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "tuning.db"
    path.write_text("bad" * 500)
    seen = cache_file.FileState.at_path(path).identity
    path.rename(tmp_path / "elsewhere")
    filled(path, 1)
    cache_file.set_aside(path, "damaged", "it was", seen)
    assert len(TuningCache(path).history(KEY)) == 1
    assert not kept(path, "damaged")


def test_database_of_another_program_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "photos.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE photos (name TEXT)")
    db.close()
    content = path.read_bytes()
    with pytest.raises(CacheError, match=r"photos.db is a database of another program"):
        TuningCache(path).store(KEY, "a", correct(1.0), run="r")
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_log_that_was_left_beside_a_file_that_may_not_be_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of a cache in use: the last results are in the log alone."""
    source = TuningCache(tmp_path / "source.db")
    source.store(KEY, "a", correct(1.0), run="r")
    folder = tmp_path / "copy"
    folder.mkdir()
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"source.db{end}", folder / f"tuning.db{end}")
    source.close()
    forbid_writing(monkeypatch)
    cache = TuningCache(folder / "tuning.db")
    assert [r.options for r in cache.history(KEY)] == ["a"]
    with pytest.raises(CacheError, match=r"it is read-only$"):
        cache.store(KEY, "b", correct(1.0), run="r")
    assert sorted(f.name for f in folder.iterdir()) == ["tuning.db", "tuning.db-wal"]


def forbid_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing may be written: the tests may run as root, who may write anything."""
    real = os.access

    def access(where: Any, mode: int) -> bool:
        return mode != os.W_OK and real(where, mode)

    monkeypatch.setattr(os, "access", access)


def test_setting_aside_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tuning.db"
    path.write_text("bad" * 500)
    monkeypatch.setattr(cache_file, "_RENAMING", 0.1)
    with open(path, "rb") as other:  # a process that was stopped in the middle of it
        fcntl.flock(other.fileno(), fcntl.LOCK_EX)
        with pytest.raises(CacheError, match="and cannot be renamed"):
            TuningCache(path).history(KEY)
    with pytest.warns(TclWarning, match="damaged"):
        assert TuningCache(path).history(KEY) == ()


def test_row_that_nobody_of_ours_wrote_is_one_sentence(cache: TuningCache) -> None:
    cache.store(KEY, "a", correct(1.0), run="r")
    for column, value in (
        ("verdict", "'fine'"),
        ("samples", "'[NaN]'"),
        ("time", "-1"),
        ("time", "2"),
    ):
        cache.store(KEY, "b", correct(3.0), run="r")
        with sqlite3.connect(cache.path) as db:
            db.execute(f"UPDATE results SET {column} = {value} WHERE options = 'b'")
        with pytest.raises(CacheError, match=r"cannot be used: a result in it cannot be read"):
            cache.best(KEY)
        with sqlite3.connect(cache.path) as db:
            db.execute("DELETE FROM results WHERE options = 'b'")
        db.close()
    assert cache.best(KEY) is not None


def test_tables_that_cannot_be_made_leave_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = TuningCache(tmp_path / "tuning.db")
    with monkeypatch.context() as patch:
        patch.setattr(
            cache_schema, "_TABLES", "CREATE TABLE notes (x); SELECT nonsense FROM nowhere"
        )
        with pytest.raises(CacheError, match="nowhere"):
            cache.store(KEY, "a", correct(1.0), run="r")
    cache.store(KEY, "a", correct(1.0), run="r")
    assert len(cache.history(KEY)) == 1


def test_file_that_may_not_be_written_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tuning.db"
    filled(path, 2)
    forbid_writing(monkeypatch)
    cache = TuningCache(path)
    assert len(cache.history(KEY)) == 2
    with pytest.raises(CacheError, match=r"it is read-only$"):
        cache.store(KEY, "a", correct(1.0), run="r")
    assert sorted(f.name for f in tmp_path.iterdir()) == ["tuning.db"]


def test_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match=r"cannot be created: .*$") as caught:
        TuningCache(tmp_path / "file" / "tuning.db").store(KEY, "a", correct(1.0), run="r")
    assert "\n" not in str(caught.value)


def test_full_disk_is_said_and_loses_nothing(cache: TuningCache) -> None:
    cache.store(KEY, "a", correct(1.0), run="r")
    db = cache._open()
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(CacheError, match=r"the disk is full$"):
        cache.store(KEY, "b" * 100_000, correct(1.0), run="r")
    db.execute("PRAGMA max_page_count = 100000")
    cache.store(KEY, "c", correct(2.0), run="r")
    assert [r.options for r in cache.history(KEY)] == ["a", "c"]


def test_only_data_is_stored(cache: TuningCache) -> None:
    cache.store(KEY, '{"a":1}', correct(1.0), run="r", entry="copy")
    cache.save_run(KEY, "r", config={"seed": 1}, state={})
    with sqlite3.connect(cache.path) as db:
        for table in ("problems", "notes", "results"):
            for row in db.execute(f"SELECT * FROM {table}"):
                assert all(isinstance(v, str | int | float | None) for v in row)
        inputs = db.execute("SELECT inputs FROM problems").fetchone()[0]
    db.close()
    assert json.loads(inputs) == [{"shape": [128], "strides": [4], "dtype": "float32"}]


def test_file_that_never_was_a_cache_is_refused_and_untouched(tmp_path: Path) -> None:
    """A mistyped ``--cache mm.tc`` must not move the user's program away."""
    path = tmp_path / "mm.tc"
    path.write_text("def f(float(N) A) -> (O) { O(i) = A(i) }" * 50)
    content = path.read_bytes()
    with pytest.raises(CacheError, match=r"mm.tc is not a tuning cache"):
        TuningCache(path).store(KEY, "a", correct(1.0), run="r")
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_cache_of_any_name_that_lost_its_content_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_bytes(bytes(8192))  # what a power cut may leave
    with pytest.warns(TclWarning, match="damaged"):
        TuningCache(path).store(KEY, "a", correct(1.0), run="r")


def test_whether_results_can_be_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.db"
    TuningCache(path).check_writable()
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CacheError, match="another process has locked it for"):
            TuningCache(path, patience=0.1).check_writable()
    other.close()
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match="cannot be created"):
        TuningCache(tmp_path / "file" / "t.db").check_writable()
    forbid_writing(monkeypatch)
    with pytest.raises(CacheError, match="it is read-only"):
        TuningCache(path).check_writable()
