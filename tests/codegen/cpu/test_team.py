"""The pool of threads: every thread of a call does its part, whatever else the process does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
import team_kernels as bodies
from places import SUPPORT
from team_kernels import Caller, kernel

import tcl
from tcl.codegen.common.envelope import seal
from tcl.codegen.cpu.abi import apart
from tcl.codegen.cpu.object_code import load
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.cpu.runtime import thread_pool as team

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX threads")

Array = np.ndarray[Any, np.dtype[Any]]
COUNTS = (1, 2, 3, 5, 16)
PREAMBLE = """
import os, sys, threading, time
import numpy as np
import team_kernels as bodies
from team_kernels import kernel
"""


@pytest.fixture(autouse=True)
def _together() -> Iterator[None]:
    bodies.keep_together()
    yield
    bodies.keep_together(False)


def words(*values: int) -> Array:
    return np.array(values, np.int64)


def who(threads: int) -> Array:
    """What the threads of a call saw."""
    out = np.zeros(threads + 1, np.int64)
    kernel(bodies.WHO, 1, threads=threads)([out])
    return out


def script(body: str, *, together: bool = True, **environment: str) -> str:
    """Run a program; what it prints. Fails when it does not end."""
    begin = PREAMBLE + ("bodies.keep_together()\n" if together else "")
    path = os.pathsep.join(p for p in (str(SUPPORT), *sys.path) if p)
    done = subprocess.run(
        [sys.executable, "-c", begin + body],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


def in_child(work: Callable[[], bool], seconds: float = 600) -> bool:
    """The result of ``work`` in a forked child; False if it hangs or dies."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            bodies.keep_together()
            code = 0 if work() else 2
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


@pytest.mark.parametrize("threads", COUNTS)
def test_every_thread_runs_the_kernel_once(threads: int) -> None:
    for _ in range(20):
        assert who(threads).tolist() == [*[threads] * threads, 0]


def test_numbers_of_threads_may_change_from_call_to_call() -> None:
    for threads in np.random.default_rng(0).integers(1, 9, 200):
        assert who(threads).tolist() == [*[threads] * threads, 0]


def test_workers_that_slept_are_woken() -> None:
    for _ in range(50):
        time.sleep(0.002)
        assert who(3).tolist() == [3, 3, 3, 0]


each_way = pytest.mark.parametrize("way", [lambda made: made, Caller], ids=["python", "native"])
"""As calls from Python are made, and as C functions are called."""
Way: TypeAlias = Callable[[Launcher], Callable[[Sequence[Array]], object]]


@each_way
@pytest.mark.parametrize("threads", COUNTS)
def test_work_is_shared(threads: int, way: Way) -> None:
    """Counters are 0 when a call begins: also in calls on one thread, and with several regions."""
    count = 10_000
    for regions in (1, 3):
        share = way(kernel(bodies.COUNT, 2, threads=threads, regions=regions))
        out = np.zeros(count + 1, np.int64)
        for k in range(1, 6):
            share([words(count), out])
            assert (out[:count] == k).all() and out[count] == 0


@each_way
@pytest.mark.parametrize("threads", COUNTS)
def test_threads_meet(threads: int, way: Way) -> None:
    regions, count = 300, 20
    meet = way(kernel(bodies.MEET, 3, threads=threads, regions=regions))
    for together in (True, False):
        bodies.keep_together(together)
        for _ in range(20):
            out, wrong = np.zeros(count, np.int64), words(0)
            meet([words(regions, count), out, wrong])
            assert (out == regions).all() and wrong[0] == 0


def test_without_regions_there_is_one_thread() -> None:
    alone = kernel(bodies.WHO, 1, threads=4, regions=0)
    out = np.zeros(4, np.int64)
    alone([out])
    assert alone.threads == 1 and out.tolist() == [1, 0, 0, 0]


@each_way
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_first_thread_that_failed_is_reported(threads: int, way: Way) -> None:
    fail = way(kernel(bodies.FAIL, 1, threads=threads))
    for first in range(threads):
        with pytest.raises(IndexError, match=f"index {first} is"):
            fail([words(first)])
        fail([words(threads)])  # and the next call knows nothing of it


@each_way
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [64, 1000])
def test_private_memory(threads: int, size: int, way: Way) -> None:
    scratch = (((size,), "uint8", True),)
    private = way(kernel(bodies.PRIVATE, 2, threads=threads, scratch=scratch))
    for _ in range(5):
        out = np.zeros(threads, np.int64)
        private([words(apart(size)), out])
        assert out.tolist() == list(range(1, threads + 1))


def test_private_memory_begins_on_lines_of_its_own() -> None:
    assert [apart(n) for n in (0, 1, 64, 65, 1000)] == [0, 64, 64, 128, 1024]


def test_calls_beside_a_call_run_alone() -> None:
    """They neither wait for the pool nor take cores from it."""
    wait, out = kernel(bodies.WAIT, 2, threads=3), np.zeros(3, np.int64)
    go_on = words(0)
    other = threading.Thread(target=lambda: wait([go_on, out]))
    other.start()
    while not out.all() and other.is_alive():
        time.sleep(0.001)
    assert who(2).tolist() == [1, 0, 0]
    assert other.is_alive()  # still in its call, which nothing has ended
    go_on[0] = 1
    other.join()
    assert out.tolist() == [3, 3, 3]
    assert who(2).tolist() == [2, 2, 0]


def test_calls_run_alone_while_cores_are_busy_with_other_things() -> None:
    """Then they are tried together now and then, and together they stay when that goes well."""
    late, out = kernel(bodies.LATE, 2, threads=2), np.zeros(2, np.int64)

    def together(micros: int) -> bool:
        out[:] = 0
        late([words(micros), out])
        return bool(out[0] == 2)

    def comes(both: bool, micros: int) -> bool:
        end = time.monotonic() + 100  # however long others keep the cores
        while together(micros) != both:
            if time.monotonic() > end:
                return False
        return True

    assert all(together(5000) for _ in range(20))
    bodies.keep_together(False)
    assert comes(True, 5000) and comes(False, 5000) and comes(True, 5000)
    assert comes(True, 0)


@each_way
def test_many_python_threads(way: Way) -> None:
    share, wrong = way(kernel(bodies.COUNT, 2, threads=3)), []

    def work() -> None:
        for _ in range(300):
            out = np.zeros(50, np.int64)
            share([words(50), out])
            if not (out == 1).all():
                wrong.append(out)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(600)
        assert not t.is_alive()
    assert not wrong


@each_way
def test_a_forked_child_computes(way: Way) -> None:
    assert who(3).tolist() == [3, 3, 3, 0]
    share = way(kernel(bodies.COUNT, 2, threads=3))
    share([words(5), np.zeros(5, np.int64)])  # a frame that the child finds

    def work() -> bool:
        out = np.zeros(50, np.int64)
        share([words(50), out])
        again = in_child(lambda: bool(who(4)[3] == 4))
        return bool((out == 1).all() and who(3)[2] == 3 and again)

    for _ in range(10):
        assert in_child(work)
    assert who(3).tolist() == [3, 3, 3, 0]


def test_a_child_forked_during_a_call_computes() -> None:
    share, stop = kernel(bodies.COUNT, 2, threads=3), threading.Event()

    def keep_busy() -> None:
        out = np.zeros(20_000, np.int64)
        while not stop.is_set():
            share([words(len(out)), out])

    other = threading.Thread(target=keep_busy)
    other.start()
    try:
        for _ in range(20):
            assert in_child(lambda: who(3).tolist() == [3, 3, 3, 0])
    finally:
        stop.set()
        other.join(600)
    sleep, out = kernel(bodies.SLEEP, 2, threads=3), np.zeros(3, np.int64)
    other = threading.Thread(target=lambda: sleep([words(300_000), out]))
    other.start()
    time.sleep(0.1)
    assert in_child(lambda: who(3).tolist() == [3, 3, 3, 0])
    other.join(600)
    assert out.tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    "running",
    ["", "loop(COUNT, 20_000)", "loop(SLEEP, 200_000)", "loop(SLEEP, 5_000_000)"],
)
def test_the_interpreter_ends(running: str) -> None:
    """Also while a daemon thread is in a call."""
    text = script(f"""
def loop(body, count):
    call, out = kernel(body, 2, threads=3), np.zeros(count, np.int64)
    def forever():
        while True:
            call([np.array([count]), out])
    threading.Thread(target=forever, daemon=True).start()
    time.sleep(0.1)
COUNT, SLEEP = bodies.COUNT, bodies.SLEEP
out = np.zeros(3, np.int64)
kernel(bodies.WHO, 1, threads=3)([out])
{running}
print(out.tolist())
""")
    assert text == "[3, 3, 3]\n"


def test_ctrl_c_is_delivered_after_the_call_to_the_caller() -> None:
    text = script("""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in background
wait, out, go_on = kernel(bodies.WAIT, 2, threads=3), np.zeros(3, np.int64), np.array([1])
wait([go_on, out]); out[:] = go_on[:] = 0
def interrupt():
    while not out.all():
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)
    go_on[0] = 1
threading.Thread(target=interrupt).start()
try:
    wait([go_on, out])
    time.sleep(60)
    print("it was lost")
except KeyboardInterrupt:
    print(out.tolist(), go_on.tolist())
mask = {}
for task in os.listdir("/proc/self/task") if sys.platform == "linux" else []:
    for line in open(f"/proc/self/task/{task}/status"):
        if line.startswith("SigBlk"):
            mask[int(task)] = int(line.split()[1], 16)
blocked = [bool(m >> (signal.SIGINT - 1) & 1) for t, m in sorted(mask.items())]
print(blocked[0] if blocked else False, sum(blocked) == 2 or not blocked)
""")
    lines = text.splitlines()
    assert lines[0] == "[3, 3, 3] [1]"
    assert lines[1] == "False True"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="cores are chosen on Linux")
def test_workers_keep_off_the_callers_core() -> None:
    """But stay on the cores that the caller may use."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    text = script("""
allowed = sorted(os.sched_getaffinity(0))[:2]
os.sched_setaffinity(0, allowed)
call, out = kernel(bodies.CORES, 1, threads=2), np.zeros(2, np.int64)
main = set(os.listdir("/proc/self/task"))
call([out])
while len(others := set(os.listdir("/proc/self/task")) - main) > 1:
    time.sleep(0.01)  # a first call runs on a thread of its own, which is about to end
(worker,) = map(int, others)
def sent_away(core):
    os.sched_setaffinity(0, [core])  # both are moved there
    os.sched_setaffinity(worker, [core])
    call([out])
    os.sched_setaffinity(0, allowed)
    call([out])
    return os.sched_getaffinity(worker) == set(allowed) - {core}
for core in allowed * 3:  # a busy system may move the caller, and later the worker may run anywhere
    print(any(sent_away(core) for _ in range(1000)))
""")
    assert text == "True\n" * 6


def test_the_pool_is_compiled_once(tmp_path: Path) -> None:
    run = """
import tcl.codegen.cpu.object_code.compile as compile
bodies._object(bodies.WHO)
calls = []
real = compile._optimised
compile._optimised = lambda *a: calls.append(1) or real(*a)
out = np.zeros(2, np.int64)
call = kernel(bodies.WHO, 1, threads=2)
bodies.keep_together()
call([out])
print(out.tolist(), len(calls))
"""
    assert script(run, together=False, TCL_CACHE_DIR=str(tmp_path)) == "[2, 2] 1\n"
    assert script(run, together=False, TCL_CACHE_DIR=str(tmp_path)) == "[2, 2] 0\n"
    (kept,) = (tmp_path / "objects").glob("*.tclo")
    damaged = seal(KernelCode(b"\x7fELF but no more"), kept.stem)
    kept.write_bytes(damaged)
    assert script(run, together=False, TCL_CACHE_DIR=str(tmp_path)) == "[2, 2] 1\n"


def test_where_there_are_no_threads_calls_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "team", lambda: None)
    alone = kernel(bodies.WHO, 1, threads=3)
    out = np.zeros(3, np.int64)
    alone([out])
    assert alone.threads == 1 and out.tolist() == [1, 0, 0]


def test_threads_that_cannot_be_started_are_done_without() -> None:
    """As where a process has as many as it may."""
    text = script("""
import resource
kernel(bodies.WHO, 1, threads=1)([np.zeros(1, np.int64)])
from tcl.codegen.cpu.runtime.thread_pool import team
team()
used = int(next(l for l in open("/proc/self/status") if l.startswith("VmSize")).split()[1]) << 10
call, out = kernel(bodies.WHO, 1, threads=64), np.zeros(64, np.int64)
resource.setrlimit(resource.RLIMIT_AS, (used + (30 << 20), resource.RLIM_INFINITY))
call([out])
n = int((out != 0).sum())
print(1 <= n < 64, set(out[:n].tolist()) == {n}, not out[n:].any())
""") if sys.platform.startswith("linux") else "True True True\n"  # fmt: skip
    assert text == "True True True\n"


def test_beside_the_threads_of_torch() -> None:
    torch = pytest.importorskip("torch")
    share, wrong = kernel(bodies.COUNT, 2, threads=3), []
    square = torch.ones(128, 128)

    def work() -> None:
        for _ in range(100):
            out = np.zeros(500, np.int64)
            share([words(500), out])
            if not (out == 1).all() or float((square @ square)[5, 5]) != 128:
                wrong.append(out)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(600)
        assert not t.is_alive()
    assert not wrong


def test_fork_while_the_pool_is_being_made() -> None:
    """Nobody lets go of a lock in the child; of that of the loader neither."""
    with team._process.lock, load._sessions.lock:
        assert in_child(lambda: team._process.lock.acquire(blocking=False))
        assert in_child(lambda: who(2).tolist() == [2, 2, 0])


@pytest.mark.parametrize("threads", COUNTS)
def test_a_subscript_out_of_range_in_any_thread(threads: int) -> None:
    text = "def lut(float(R, D) T, int32(N) I) -> (O) { O(n, d) = T(I(n), d) }"
    table, n = np.ones((10, 512), np.float32), 2000
    executor = tcl.compile(text, "lut", "mlp", table, np.zeros(n, np.int32), threads=threads)
    assert executor.threads == threads
    for place in (0, n // 2, n - 1):
        rows = np.full(n, 9, np.int32)
        assert executor(table, rows).sum() == n * 512  # type: ignore[union-attr]
        rows[place] = 10
        with pytest.raises(IndexError, match="index 10 is out of range for dimension 0"):
            executor(table, rows)
