"""Turns between processes: whoever waits, whatever was planted, and what is left behind."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tcl.common.errors import TclWarning
from tcl.common.scratch_folder import workspace
from tcl.tuner.measure.machine_lock import locked

HOLDER = """
import sys
from tcl.tuner.measure.machine_lock import locked
with locked("turn", shared=sys.argv[1] == "shared"):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where locks are."""
    monkeypatch.setenv("TCL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("tcl.common.warn._told", set())
    return tmp_path / "cache" / "locks"


@pytest.fixture
def held(folder: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A process that has its turn until it is sent a line, or ends."""
    command = [sys.executable, "-c", HOLDER, getattr(request, "param", "alone")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_nothing_is_left_and_only_this_user_may_look(folder: Path) -> None:
    with locked("turn"):
        assert (folder / "turn.lock").stat().st_mode & 0o777 == 0o600
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("end", ["let go", "killed"])
def test_a_turn_is_waited_for(held: subprocess.Popen[str], end: str, folder: Path) -> None:
    assert held.stdin is not None
    came = []

    def wait() -> None:
        with locked("turn"):
            came.append(held.poll() if end == "killed" else "mine")

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert not came
    if end == "killed":
        held.kill()
        held.wait()
    else:
        held.stdin.write("\n")
        held.stdin.flush()
    for thread in threads:
        thread.join(600)
    assert len(came) == 3
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("held", ["shared"], indirect=True)
def test_shared_turns_are_had_at_once(held: subprocess.Popen[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with locked("turn", shared=True, patience=0.0):
            pass


def test_nobody_waits_longer_than_said(held: subprocess.Popen[str]) -> None:
    with (
        pytest.warns(TclWarning, match="another process has held turn.lock for 0 s"),
        locked("turn", patience=0.0),
    ):
        pass


@pytest.mark.parametrize("planted", ["folder", "pipe", "dangling link", "link", "open to others"])
def test_what_is_planted_is_neither_followed_nor_waited_for(
    planted: str, folder: Path, tmp_path: Path
) -> None:
    folder.mkdir(mode=0o700, parents=True)
    path, other = folder / "turn.lock", tmp_path / "other"
    match planted:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "dangling link":
            path.symlink_to(other)
        case "link":
            other.write_text("kept")
            other.chmod(0o640)  # whatever the umask is
            path.symlink_to(other)
        case "open to others":
            folder.chmod(0o777)
    done = []
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with locked("turn", patience=1.0):
            done.append(1)
    assert done
    assert len(found) == (planted != "pipe")
    assert all("processes cannot take turns when they measure: " in str(f.message) for f in found)
    assert other.exists() == (planted == "link")
    if planted == "link":
        assert other.read_text() == "kept"
        assert other.stat().st_mode & 0o777 == 0o640


def test_a_scratch_folder_waits_for_no_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "tcl-planted").mkdir()
    os.mkfifo(tmp_path / "tcl-planted" / "lock")
    with workspace() as folder:
        assert Path(folder).parent == tmp_path
    assert (tmp_path / "tcl-planted").exists()


SOMEBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may act as another user")


@contextmanager
def somebody(act: Callable[[], object]) -> Iterator[None]:
    """Another user's process, after ``act`` and until the end."""
    done, told = os.pipe()
    until, end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(end)
            os.setgroups([])
            os.setgid(SOMEBODY)
            os.setuid(SOMEBODY)
            act()
            os.write(told, b"!")
            os.read(until, 1)
        finally:
            os._exit(0)
    for each in (told, until):
        os.close(each)
    try:
        assert os.read(done, 1) == b"!"
        yield
    finally:
        os.close(end)
        os.close(done)
        os.waitpid(child, 0)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder in which everybody may write, as the temporary one; pytest's are closed."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def plant(kind: str, path: Path, victim: Path) -> None:
    match kind:
        case "held":
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            fcntl.flock(file, fcntl.LOCK_EX)
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link" | "dangling link":
            path.symlink_to(victim)


TEXT = "def f(float(N) A) -> (B) { B(n) = 2 * A(n) }"
FIRST_CALL = f"""
import sys, warnings
import numpy as np
import tcl
from tcl.api import Definitions
from tcl.executors.call_kernels import size
from tcl.backends.targets import CpuTarget
from tcl.common.scratch_folder import workspace
from tcl.executors.call_inputs import inputs_of
from tcl.tuner.measure.machine_lock import locked
warnings.simplefilter("error")
A = np.ones(8, np.float32)
d = Definitions({TEXT!r}).definition("f")
found = inputs_of(d, (A,))
key = CpuTarget(1).query(size(d, found.arrays), found.arrays, ()).key
name = "tcl-first-use-" + key.digest[:32]
print(name, flush=True)
sys.stdin.readline()
if sys.argv[1] == "held":
    tcl.define({TEXT!r}, threads=1, tune_mode="auto").f(A)
else:
    with locked(name), locked("tcl-measuring"), workspace():
        pass
"""


@as_root
@pytest.mark.parametrize("kind", ["held", "folder", "pipe", "dangling link", "link"])
def test_what_another_user_planted_in_the_temporary_folder_is_left_alone(
    kind: str, shared: Path, folder: Path
) -> None:
    """Also at the places where locks were in earlier versions."""
    victim = shared / "victim"
    command = [sys.executable, "-c", FIRST_CALL, kind]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    environment = {**os.environ, "TMPDIR": str(shared)}
    user = subprocess.Popen(command, text=True, env=environment, **pipes)  # type: ignore[call-overload]
    name = user.stdout.readline().strip()
    (shared / "tcl-planted").mkdir(mode=0o777)
    shutil.chown(shared / "tcl-planted", SOMEBODY)

    def act() -> None:
        if kind == "link":
            victim.write_text("kept")
            victim.chmod(0o600)
        for each in (f"{name}.lock", "tcl-measuring.lock", "tcl-planted/lock"):
            plant(kind, shared / each, victim)

    with user, somebody(act):
        before = {p: p.lstat() for p in shared.rglob("*")}
        try:
            user.communicate("\n", timeout=600)
        finally:
            user.kill()
        assert user.returncode == 0
        after = {p: p.lstat() for p in shared.rglob("*")}
        assert before.keys() == after.keys() and len(before) == 4 + (kind == "link")
        for path, was in before.items():
            now = after[path]
            assert (now.st_mode, now.st_uid, now.st_mtime_ns, now.st_size) == (
                *(was.st_mode, was.st_uid, was.st_mtime_ns, was.st_size),
            )


@as_root
def test_locks_of_another_user_are_not_used(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both have one cache."""
    monkeypatch.setenv("TCL_CACHE_DIR", str(shared))
    monkeypatch.setattr("tcl.common.warn._told", set())

    def act() -> None:
        with locked("turn"):
            pass
        (shared / "locks" / "turn.lock").symlink_to(shared / "victim")

    with (
        somebody(act),
        pytest.warns(TclWarning, match="it belongs to another user, but"),
        locked("turn"),
    ):
        pass
    assert [p.name for p in shared.rglob("*")] == ["locks", "turn.lock"]


@as_root
def test_who_may_not_lock_goes_on(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other way round: the folder of locks is root's."""
    monkeypatch.setenv("TCL_CACHE_DIR", str(shared))
    monkeypatch.setattr("tcl.common.warn._told", set())

    def act() -> None:
        said = "turn.lock cannot be locked: Permission denied"
        with pytest.warns(TclWarning, match=said), locked("turn"):
            pass

    with locked("turn"), somebody(act):
        pass
