"""Worker processes: each may crash, hang or be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tuner_fakes import gone, only_hangs_time_out, started

from tcl.common.errors import OptionsError
from tcl.workers import process_memory as memory
from tcl.workers import template
from tcl.workers.pool import (
    WorkerCrashedError,
    WorkerDiedError,
    WorkerMemoryError,
    WorkerPool,
    WorkerStartError,
    WorkerTimeoutError,
)
from tcl.workers.process_memory import allowance, available, in_words, resident

HERE = Path(__file__).resolve().parent


def double(value: int) -> int:
    return 2 * value


def pause(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def fail() -> None:
    raise OptionsError("no")


def take(megabytes: int) -> int:
    _HELD.append([bytearray(b"x") * 1_000_000 for _ in range(megabytes)])
    return megabytes


class AwkwardError(Exception):
    """Can be pickled, but not unpickled."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} {b}")


def fail_awkwardly() -> None:
    raise AwkwardError(1, 2)


def crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def be_killed(marks: Path, times: int) -> None:
    """The first times that anyone calls it."""
    begun = len(list(marks.iterdir()))
    (marks / f"{begun}").touch()
    if begun < times:
        crash()


def fault() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def leave() -> None:
    sys.stderr.write("first\nfamous last words\n")
    sys.stderr.flush()
    os._exit(4)


_PLACE: list[int] = []
_HELD: list[list[bytearray]] = []


def remember(value: int) -> None:
    _PLACE.append(value)


def recall() -> tuple[list[int], int]:
    return _PLACE, os.getpid()


def say() -> str:
    print("hello", flush=True)
    return "said"


def affinity() -> set[int]:
    return os.sched_getaffinity(0)


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    found = WorkerPool(2, timeout=120.0)
    yield found
    found.kill()


def test_pool_returns_results_and_errors(pool: WorkerPool) -> None:
    assert [f.result(600) for f in [pool.submit(double, i) for i in range(10)]] == list(
        range(0, 20, 2)
    )
    with pytest.raises(OptionsError, match=r"^no$"):
        pool.submit(fail).result(600)
    with pytest.raises(RuntimeError, match="AwkwardError: 1 2"):
        pool.submit(fail_awkwardly).result(600)
    assert list(pool.map(double, [1, 2, 3])) == [2, 4, 6]


def test_crash_fails_its_task_alone(pool: WorkerPool) -> None:
    slow = pool.submit(pause, 0.3)
    with pytest.raises(WorkerDiedError, match="killed by SIGKILL"):
        pool.submit(crash).result(600)
    assert slow.result(600) == 0.3
    with pytest.raises(WorkerDiedError, match="status 4: famous last words"):
        pool.submit(leave).result(600)
    assert pool.submit(double, 4).result(600) == 8


def test_whether_a_process_ended_by_its_own_fault(pool: WorkerPool) -> None:
    with pytest.raises(WorkerCrashedError, match="killed by SIGSEGV"):
        pool.submit(fault).result(600)
    for task in (crash, leave):
        with pytest.raises(WorkerDiedError) as error:
            pool.submit(task).result(600)
        assert not isinstance(error.value, WorkerCrashedError)


def test_files_of_the_current_folder_are_not_imported(
    pool: WorkerPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the ``tcl`` command itself does not."""
    for name in ("json", "pickle", "tcl"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.delenv("PYTHONPATH", raising=False)  # which may name the current folder
    monkeypatch.chdir(tmp_path)
    assert pool.submit(double, 4).result(600) == 8


def take_and_hang(megabytes: int) -> None:
    take(megabytes)
    time.sleep(1000)  # until somebody looks


def hang() -> None:
    time.sleep(1000)


def test_task_that_takes_too_long_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    only_hangs_time_out(monkeypatch)
    pool = WorkerPool(1, timeout=0.5)
    try:
        slow, next_one = pool.submit(hang), pool.submit(double, 3)
        with pytest.raises(WorkerTimeoutError, match=r"more than 0\.5 s"):
            slow.result(600)
        assert next_one.result(600) == 6
    finally:
        pool.kill()


@pytest.mark.skipif(resident(os.getpid()) is None, reason="the system does not tell")
def test_task_that_takes_too_much_memory_is_killed() -> None:
    pool = WorkerPool(1, memory=200_000_000)
    try:
        for _ in range(3):  # what one task leaves behind is not the next one's fault
            assert pool.submit(take, 90).result(600) == 90
        big, next_one = pool.submit(take_and_hang, 600), pool.submit(double, 3)
        with pytest.raises(WorkerMemoryError, match=r"^it took more than 200 MB of memory"):
            big.result(600)
        assert next_one.result(600) == 6
    finally:
        pool.kill()


def test_how_much_a_candidate_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcl.workers.process_memory.available", lambda: 64_000_000_000)
    assert allowance(0, 1, 1) == 1_000_000_000
    assert allowance(1_000_000_000, 4, 1) == 9_000_000_000
    assert allowance(100_000_000_000, 1, 1) == 32_000_000_000
    assert allowance(100_000_000_000, 1, 8) == 4_000_000_000
    monkeypatch.setattr("tcl.workers.process_memory.available", lambda: 1_000)
    assert allowance(0, 1, 1) == 500_000_000
    monkeypatch.setattr("tcl.workers.process_memory.available", lambda: None)
    assert allowance(0, 1, 1) == 1_000_000_000


def test_memory_is_told_in_bytes() -> None:
    assert [in_words(n) for n in (500_000_000, 10**9, 2_340_000_000)] == [
        "500 MB",
        "1 GB",
        "2.3 GB",
    ]
    assert resident(2**22 + 1) is None  # no process has such a number
    if sys.platform == "linux":
        assert 10**6 < (resident(os.getpid()) or 0) < (available() or 0)


def test_every_process_is_set_up_once() -> None:
    pool = WorkerPool(1, initializer=remember, initargs=(5,))
    try:
        first, again = pool.submit(recall).result(600), pool.submit(recall).result(600)
        assert first == again
        assert first[0] == [5]
        with pytest.raises(WorkerDiedError):
            pool.submit(crash).result(600)
        restarted = pool.submit(recall).result(600)
        assert restarted[0] == [5]
        assert restarted[1] != first[1]
    finally:
        pool.kill()


def test_a_process_that_cannot_be_set_up_is_no_tasks_fault() -> None:
    pool = WorkerPool(1, initializer=fail)
    try:
        with pytest.raises(WorkerStartError, match="no process can be started: OptionsError"):
            pool.submit(double, 1).result(600)
    finally:
        pool.kill()


@pytest.mark.parametrize("times", [1, 2])
def test_a_process_that_somebody_ends_at_its_start_is_replaced_once(
    times: int, tmp_path: Path
) -> None:
    pool = WorkerPool(1, initializer=be_killed, initargs=(tmp_path, times))
    try:
        task = pool.submit(double, 1)
        if times == 1:
            assert task.result(600) == 2
        else:
            with pytest.raises(WorkerStartError, match="killed by SIGKILL"):
                task.result(600)
        assert len(list(tmp_path.iterdir())) == 2
    finally:
        pool.kill()


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/true"])
def test_a_process_that_cannot_start_is_no_tasks_fault(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = WorkerPool(1)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", program)
            error = pool.submit(double, 1).exception(600)
        assert isinstance(error, WorkerStartError)
        assert str(error).startswith("no process can be started: ")
        assert pool.submit(double, 1).result(600) == 2  # the next one may
    finally:
        pool.kill()


def test_what_tasks_print_does_not_disturb(pool: WorkerPool) -> None:
    assert pool.submit(say).result(600) == "said"
    assert pool.submit(double, 1).result(600) == 2


def test_kill_ends_everything_at_once(pool: WorkerPool) -> None:
    pid = pool.submit(recall).result(600)[1]
    running = [pool.submit(pause, 1000) for _ in range(2)]
    waiting = pool.submit(double, 1)
    time.sleep(0.2)
    pool.kill()
    for future in running:
        with pytest.raises((WorkerDiedError, CancelledError)):
            future.result(600)
    with pytest.raises(CancelledError):
        waiting.result(600)
    assert gone(pid)
    with pytest.raises(RuntimeError, match="shut down"):
        pool.submit(double, 1)


def test_a_template_that_was_ended_is_replaced(pool: WorkerPool) -> None:
    """And how a process ended whose template was gone by then is known, too."""
    worker = pool.submit(recall).result(600)[1]
    parent = int(Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(parent, signal.SIGKILL)
    assert gone(parent)
    with pytest.raises(WorkerDiedError, match="killed by SIGKILL"):
        pool.submit(crash).result(600)
    assert pool.submit(double, 4).result(600) == 8


def test_a_template_hears_of_no_ctrl_c_while_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Asked(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            self.send_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Asked)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    made = template._Template()
    try:
        status = Path(f"/proc/{made._process.pid}/status")
        while not int(status.read_text().partition("SigIgn:")[2].split()[0], 16) & 2:
            assert made._process.poll() is None
            time.sleep(0.01)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
    finally:
        made.end()


def addresses() -> int:
    return np.empty(1 << 20).ctypes.data


def test_memory_of_processes_lies_in_different_places() -> None:
    """Else one process would stand for all in the finals."""
    found = set()
    for _ in range(4):
        pool = WorkerPool(1)
        found.add(pool.submit(addresses).result(600))
        pool.kill()
    assert len(found) > 2


def surroundings() -> tuple[str, str | None, list[str]]:
    return os.getcwd(), os.environ.get("TCL_TEST_POOL"), sys.path


def test_processes_have_the_surroundings_of_the_program(
    pool: WorkerPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are when a process starts, however long ago the first one did."""
    pool.submit(double, 1).result(600)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TCL_TEST_POOL", "yes")
    monkeypatch.syspath_prepend(str(tmp_path / "there"))
    other = WorkerPool(1)
    try:
        assert other.submit(surroundings).result(600) == (str(tmp_path), "yes", sys.path)
    finally:
        other.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not list threads")
def test_the_template_has_no_threads(pool: WorkerPool) -> None:
    for _ in range(2):  # NumPy's import starts some, and another fork is to find none
        worker = pool.submit(recall).result(600)[1]
        parent = Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[1]
        pool.submit(addresses).result(600)
        with pytest.raises(WorkerDiedError):
            pool.submit(crash).result(600)
    assert len(os.listdir(f"/proc/{parent}/task")) == 1


def until(mark: Path) -> str:
    while not mark.exists():
        time.sleep(0.01)
    return "went on"


def test_shutdown_finishes_what_was_submitted(tmp_path: Path) -> None:
    pool = WorkerPool(1)
    futures = [pool.submit(double, i) for i in range(3)]
    pool.shutdown()
    assert [f.result(0) for f in futures] == [0, 2, 4]
    with WorkerPool(1) as other:
        running, cancelled = other.submit(until, tmp_path / "mark"), other.submit(double, 1)
        while not running.running():
            time.sleep(0.01)
        other.shutdown(wait=False, cancel_futures=True)
        assert cancelled.cancelled()
        (tmp_path / "mark").touch()
        other.shutdown()
        assert running.result(0) == "went on"


def test_workers_run_on_the_cores_they_are_given() -> None:
    core = min(os.sched_getaffinity(0))
    pool = WorkerPool(1, cpus=[core])
    try:
        assert pool.submit(affinity).result(600) == {core}
    finally:
        pool.kill()


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); "
        "from test_pool import *; pool = WorkerPool(1); "
        "print(pool.submit(recall).result()[1], flush=True); "
        "pool.submit(pause, 1000); import time; time.sleep(1000)"
    )
    parent = started(script)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    template = int(Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[1])
    assert not gone(worker, patience=0.2)
    parent.kill()
    parent.wait()
    assert gone(worker) and gone(template)


def loaded(name: str) -> bool:
    return name in sys.modules


@pytest.mark.parametrize("call", ["learn", "prepare"])
def test_the_first_worker_finds_imported_what_is_known_to_be_needed(call: str) -> None:
    """Else it imports that alone, and the next one waits until their template has done it again."""
    name = "tcl.codegen.common.chebyshev"
    script = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); "
        f"from test_pool import *; from tcl.workers import template; template.{call}([{name!r}]); "
        f"pool = WorkerPool(1); print(loaded({name!r}), pool.submit(loaded, {name!r}).result())"
    )
    program = started(script)
    assert program.communicate()[0].split() == ["False", "True"]


def test_modules_are_imported_before_the_first_worker_is_asked_for(tmp_path: Path) -> None:
    """By the template, while the program goes on."""
    package, done = tmp_path / "numba", tmp_path / "imported"
    package.mkdir()
    (package / "__init__.py").write_text(f"open({str(done)!r}, 'w').close()")
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import os, time; "
        "from tcl.workers import template; template.prepare(['numba']); "
        f"end = time.monotonic() + 600\nwhile not os.path.exists({str(done)!r}): "
        "assert time.monotonic() < end; time.sleep(0.01)\nprint('numba' in sys.modules)"
    )
    assert started(script).communicate()[0].split() == ["False"]


@pytest.mark.parametrize("name", ["inactive_file", "total_inactive_file"])
def test_what_a_container_has_read_from_files_counts_as_free(tmp_path: Path, name: str) -> None:
    stat = tmp_path / "memory.stat"
    stat.write_text(f"anon 5\n{name} 4096\nfile 7000\n")
    assert memory._reclaimable(stat) == 4096
