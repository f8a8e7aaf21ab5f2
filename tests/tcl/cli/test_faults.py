"""What can go wrong while ``tcl tune`` runs, each on the command line in a process of its own.

Nothing that was measured is lost, nothing that is wrong wins, and every message is one sentence.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import here
from tuner_fakes import KEY, gone
from tuning_process import (
    MM,
    RUNNING,
    SIZE,
    SMALL,
    Done,
    Measured,
    TuningProcess,
    is_right,
    only_sentences,
    saved,
    unprivileged,
)

from tcl.bench.ceilings import Ceilings
from tcl.bench.roofline import measure_ceilings
from tcl.tuner.cache.ranking import Record
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.measure.verdict import Outcome, Verdict

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals, mounts, /proc")

BAD = {
    1: "segfaults",
    2: "is wrong",
    3: "raises",
    4: "exits",
    5: "is wrong later",
    6: "compiler crashes",
    7: "eats memory",
    8: "hangs",
    9: "compiler eats memory",
}


@pytest.fixture(scope="module", autouse=True)
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for what is kept, where what the machine can do is known: nothing measures it."""
    folder = tmp_path_factory.mktemp("kept")
    fastest = Ceilings(1e15, 1e15, 1e18)
    assert measure_ceilings(1, folder, lambda threads: [fastest] * 8) is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TCL_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module", autouse=True)
def bad(kept: Path) -> Iterator[TuningProcess]:
    """A search with every bad candidate there is. Most of its time it waits for the one that
    hangs, so that other tests run meanwhile, and those of its end stand at the end."""
    size = ("--generations", "2", "--population", "8")
    # A busy machine takes long to use up memory.
    process = TuningProcess(kept / "bad.db", *size, faults=BAD, TCL_TEST_REFERENCE="2")
    yield process
    process.kill()


@pytest.fixture(autouse=True)
def _nothing_left(bad: TuningProcess) -> Iterator[None]:
    """A test that fails leaves no process behind."""
    yield
    for process in list(RUNNING):
        if process is not bad:
            process.kill()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache" / "t.db"


def complete(done: Done, path: Path) -> bool:
    """Whether the cache has all that was measured, and what was said is well said."""
    return done.measured() <= saved(path) and only_sentences(done)


# Signals.


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_one_signal_finishes_what_is_in_flight(
    path: Path, number: signal.Signals, code: int
) -> None:
    tuning = TuningProcess(path, faults={4: "waits"})
    tuning.until("candidate", 4)
    tuning.began("waits")
    tuning.process.send_signal(number)
    tuning.until("interrupted")
    before = len([e for e in tuning.events if e["event"] == "candidate"])
    tuning.go_on()
    done = tuning.finish()
    assert done.code == code
    assert len(done.candidates) == before + 1 == 5
    assert done.candidates[-1]["verdict"] == "correct"
    assert done.faulty("waits") == done.candidates[-1:]
    assert done.result["unsaved"] == 0
    assert is_right(done.result["options"])
    assert complete(done, path)


def test_ctrl_c_twice_ends_at_once(path: Path) -> None:
    tuning = TuningProcess(path, faults={4: "hangs"})
    tuning.until("candidate", 4)
    tuning.began("hangs")
    tuning.process.send_signal(signal.SIGINT)
    tuning.until("interrupted")
    time.sleep(0.5)
    assert tuning.process.poll() is None  # it waits for the candidate that hangs
    workers = children(tuning.process.pid)
    tuning.process.send_signal(signal.SIGINT)
    done = tuning.finish()
    assert workers and all(gone(worker) for worker in workers)
    assert done.code == 130
    assert len(done.candidates) == 4
    assert is_right(done.result["options"])
    assert complete(done, path)


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_at_random_moments_and_resumed(path: Path, kills: int) -> None:
    size = ("--generations", "3", "--population", "6", "--resume")
    moments = random.Random(kills)
    measured: set[Measured] = set()
    for _ in range(kills):
        tuning = TuningProcess(path, *size)
        tuning.read(moments.randrange(1, 40))
        time.sleep(moments.uniform(0.0, 0.2))
        workers = children(tuning.process.pid)
        tuning.kill()
        measured |= tuning.finish().measured()
        assert measured <= saved(path)
        assert all(gone(worker) for worker in workers)
    done = TuningProcess(path, *size).finish()
    assert done.code == 0, done.errors
    assert {m for m in measured if not m[-1].startswith("in the finals")} <= done.measured()
    cache = TuningCache(path)
    (records,) = (cache.history(s.key) for s in cache.list())
    assert len({r.run for r in records}) == 1
    found = [(r.generation, r.options) for r in records if r.heat is None]
    assert len(found) == len(set(found)) == len(done.candidates)  # nothing twice
    assert is_right(done.result["options"])
    assert complete(done, path)


def children(pid: int) -> list[int]:
    """Processes that a process started."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in found for child in file.read_text().split()]


# The disk.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Use up all the space."""
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(256))
    return filler


def of_a_full_disk(note: str) -> bool:
    return note.endswith("cannot be used: the disk is full")


def test_a_disk_that_is_full_is_said_before_the_search(small_disk: Path) -> None:
    fill(small_disk)
    done = TuningProcess(small_disk / "t.db").finish()
    assert (done.code, done.events) == (1, [])
    assert re.fullmatch(r"error: the tuning cache .*t\.db cannot .*\n", done.errors)
    assert only_sentences(done)


def test_a_disk_that_fills_up(small_disk: Path) -> None:
    tuning = TuningProcess(small_disk / "t.db", faults={3: "waits"})
    tuning.until("candidate", 3)
    filler = fill(small_disk)
    tuning.go_on()
    done = tuning.finish()
    filler.unlink()
    assert done.code == 1
    assert sum(map(of_a_full_disk, done.notes)) == 1  # a busy machine has its own notes
    count = done.result["unsaved"]
    assert count > 0
    assert re.search(rf"error: {count} results? could not be saved in \S+; the best", done.errors)
    lost = [c for c in done.measured() if c not in saved(small_disk / "t.db")]
    assert len(lost) == count
    assert is_right(done.result["options"])
    assert only_sentences(done)


def test_a_disk_that_has_space_again(small_disk: Path) -> None:
    tuning = TuningProcess(small_disk / "t.db", faults={3: "waits", 6: "waits again"})
    tuning.until("candidate", 3)
    filler = fill(small_disk)
    tuning.go_on()
    while not of_a_full_disk(tuning.until("note")["message"]):
        pass
    tuning.until("candidate")
    filler.unlink()
    tuning.go_on("again")
    done = tuning.finish()
    assert done.code == 0, done.errors
    assert done.result["unsaved"] == 0
    assert complete(done, small_disk / "t.db")


# The cache.


def filled(path: Path) -> None:
    """Make a cache with results of another def."""
    cache = TuningCache(path)
    right = Outcome(Verdict.CORRECT, (1.0,))
    cache.add(
        KEY, [Record.from_outcome(f'{{"n": {number}}}', right, 0.0, "r") for number in range(200)]
    )
    cache.close()


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_cache_that_may_not_be_written(path: Path, what: str) -> None:
    filled(path)
    target, mode = (path, 0o400) if what == "file" else (path.parent, 0o500)
    target.chmod(mode)
    try:
        done = TuningProcess(path, before=unprivileged).finish()
    finally:
        target.chmod(0o700)
    assert (done.code, done.events) == (1, [])
    assert re.fullmatch(
        r"error: the tuning cache .*t\.db cannot be used: it is read-only; "
        r"name another file with --cache\n",
        done.errors,
    )


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def of_another_version(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
        db.commit()


@pytest.mark.parametrize(
    ("spoil", "name"), [(cut_in_half, "damaged"), (of_another_version, "version-99")]
)
def test_a_cache_that_cannot_be_used_is_set_aside(
    path: Path, spoil: Callable[[Path], None], name: str
) -> None:
    filled(path)
    spoil(path)
    done = TuningProcess(path, *SMALL).finish()
    assert done.code == 0, done.errors
    assert done.errors.count("warning: ") == 1
    (aside,) = path.parent.glob(f"t.db.{name}-*[0-9]")
    assert f"it is renamed to {aside.name}, and a new one is created" in done.errors
    assert complete(done, path)


def test_a_cache_that_is_truncated_during_the_search(path: Path) -> None:
    filled(path)
    tuning = TuningProcess(path, faults={3: "waits"})
    tuning.until("candidate", 3)
    os.truncate(path, 4096)
    tuning.go_on()
    done = tuning.finish()
    assert done.code == 0, done.errors
    assert done.errors.count("warning: ") == 1
    (aside,) = path.parent.glob("t.db.damaged-*[0-9]")
    assert f"it is renamed to {aside.name}, and a new one is created" in done.errors
    assert complete(done, path)


def test_a_cache_that_is_deleted_during_the_search(path: Path) -> None:
    tuning = TuningProcess(path, faults={3: "waits"})
    tuning.until("candidate", 3)
    path.unlink()
    tuning.go_on()
    done = tuning.finish()
    assert done.code == 0, done.errors
    assert complete(done, path)


# Several at once.

_READER = """
import sys, time
from pathlib import Path
from tcl.bench.ceilings import Ceilings
from tcl.bench.roofline import measure_ceilings
from tcl.tuner.cache.tuning_cache import TuningCache
path, seconds = Path(sys.argv[1]), float(sys.argv[2])
end, seen, rounds = time.monotonic() + seconds, 0, 0
cache = TuningCache(path)
while not rounds or time.monotonic() < end:
    if rounds % 2:
        cache.close()
    for summary in cache.list():
        found = len(cache.history(summary.key))
        assert found >= summary.measured
        assert found >= seen, (found, seen)
        best = cache.top(summary.key, 3)
        assert all(r.time is not None for r in best)
        seen, rounds = found, rounds + 1
    time.sleep(0.01)
print(rounds)
"""


@pytest.mark.parametrize("seconds", [1, pytest.param(60, marks=pytest.mark.slow)])
def test_two_tuners_and_three_readers_share_a_cache(path: Path, seconds: int) -> None:
    endless = ("--generations", "100000")
    tuners = [TuningProcess(path, *endless, "--seed", str(seed)) for seed in (1, 2)]
    for tuner in tuners:
        tuner.until("candidate", 2)
    command = [sys.executable, "-c", _READER, str(path), str(seconds)]
    readers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    (path.parent / "mm.tc").write_text(MM)
    commands = (
        ["list"],
        ["export", str(path.parent / "t.json")],
        ["why", str(path.parent / "mm.tc"), "-s", f"M={SIZE},K={SIZE},N={SIZE}", "-t", "1"],
    )
    end = time.monotonic() + seconds
    while time.monotonic() < end or any(reader.poll() is None for reader in readers):
        for words in commands:  # the third one
            shown = here("cache", *words, "--cache", path)
            assert (shown.returncode, shown.stderr) == (0, "")
    for reader in readers:
        output, errors = reader.communicate(timeout=600)
        assert errors == ""
        assert int(output) > 0
    for tuner in tuners:
        tuner.until("candidate", 4)  # with both at work, however busy the machine is
        tuner.process.send_signal(signal.SIGTERM)
    for tuner in tuners:
        done = tuner.finish()
        assert done.code == 143, done.errors
        # Each says that the other one disturbs it; the cache does not.
        assert not [note for note in done.notes if "cache" in note]
        assert is_right(done.result["options"])
        assert complete(done, path)


# Bad candidates.


@pytest.fixture(scope="module")
def bad_end(bad: TuningProcess) -> Done:
    return bad.finish()


@pytest.mark.parametrize(
    ("fault", "verdict", "message"),
    [
        ("segfaults", "runtime", r"its process was killed by SIGSEGV"),
        ("raises", "runtime", r"RuntimeError: the kernel raised"),
        ("exits", "runtime", r"its process ended with status 3"),
        ("eats memory", "runtime", r"it took more than [\d.]+ .B of memory in addition to .*"),
        ("hangs", "timeout", r"it took more than [\d.]+ s"),
        ("is wrong", "correctness", r"output C differs from the reference at \(0, 1\): .*"),
        ("is wrong later", "correctness", r"correct at first, wrong later: output C differs .*"),
        ("compiler crashes", "compile", r"its process was killed by SIGSEGV"),
        (
            "compiler eats memory",
            "compile",
            r"it took more than [\d.]+ .B of memory in addition .*",
        ),
    ],
)
def test_a_bad_candidate(bad_end: Done, fault: str, verdict: str, message: str) -> None:
    (candidate,) = bad_end.faulty(fault)
    assert candidate["verdict"] == verdict
    assert re.fullmatch(message, candidate["message"])
    assert candidate["time"] is None


def test_bad_candidates_neither_end_a_search_nor_win(kept: Path, bad_end: Done) -> None:
    assert bad_end.code == 0, bad_end.errors
    assert max(c["generation"] for c in bad_end.candidates) == 2
    assert len(bad_end.named("raced")) > 0
    correct = [c for c in bad_end.candidates if c["verdict"] == "correct"]
    assert len(bad_end.candidates) - len(correct) == len(BAD)
    assert bad_end.result["options"] in [c["options"] for c in correct]
    assert is_right(bad_end.result["options"])
    assert complete(bad_end, kept / "bad.db")
    (best,) = (
        TuningCache(kept / "bad.db").best(s.key) for s in TuningCache(kept / "bad.db").list()
    )
    assert best is not None
    assert json.loads(best.options) == bad_end.result["options"]
