"""Searches whose work is done elsewhere: through executors, on machines that may get lost."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from threading import Semaphore
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import of_brief_searches
from known_machine import known_machine
from tuner_fakes import (
    KEY,
    QUICK,
    FakeBackend,
    FakeOptions,
    FakeSpace,
    as_recorded,
    gone,
    only_hangs_time_out,
)

from tcl.cluster import DaskWorkers, Worker, workplace
from tcl.common.errors import ArgumentError, ExecutorLostError
from tcl.tuner.cache.tuning_cache import TuningCache
from tcl.tuner.config import TunerConfig
from tcl.tuner.measure.correctness import Expected
from tcl.tuner.measure.evaluate import compute_reference
from tcl.tuner.measure.verdict import Verdict
from tcl.tuner.run import host
from tcl.tuner.run.checkpoint import SavedSearch
from tcl.tuner.run.host import RemoteMachine, SpreadExecutor, TaskRole
from tcl.tuner.run.tuner import Tuner
from tcl.tuner.run.workplace import Compilers, Here, Orders, Stages, Workplace

HERE = Path(__file__).resolve().parent


class Threads:
    """Two machines, each a thread of this process that does tasks in processes of its own."""

    def __init__(self, wrap: Callable[[Executor], Executor] = lambda executor: executor) -> None:
        self._wrap = wrap

    def open(self, orders: Orders) -> Stages:
        data = pickle.dumps(orders)
        with ExitStack() as stack:
            executors = [stack.enter_context(ThreadPoolExecutor(2)) for _ in range(2)]
            machines = [RemoteMachine(self._wrap(executor)) for executor in executors]
            compiler = SpreadExecutor(machines, TaskRole.COMPILE, data)
            evaluator = SpreadExecutor(machines, TaskRole.MEASURE, data)
            stack.callback(host.forget, host.token(data))
            return Stages((Compilers(compiler, 2),), evaluator, 2, stack.pop_all().close)
        raise AssertionError


def tuner(
    place: Workplace, cache: TuningCache | None = None, **settings: Any
) -> Tuner[FakeOptions]:
    """A search that says the same on every machine, but for how long things take."""
    patient = {"compile_timeout": 300.0, "run_timeout": 300.0}
    values = {"seed": 1, "generations": 3, "population": 6, **patient, **settings}
    return Tuner(
        FakeBackend(),
        FakeSpace("right", "raises"),
        config=TunerConfig(**values),
        cache=cache,
        key=KEY if cache is not None else None,
        timing=QUICK,
        workplace=place,
    )


def test_it_does_not_matter_where_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcl.tuner.run.pipeline.evaluate_candidate", as_recorded)
    runs = [tuner(place).tune([FakeOptions(500)]) for place in (Here(), Threads())]
    here, there = ({(c.generation, c.options, c.outcome) for c in run.history} for run in runs)
    assert here == there


def test_a_bad_candidate_does_not_harm_the_machine_it_runs_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    only_hangs_time_out(monkeypatch)
    start = [FakeOptions(900)] + [FakeOptions(1, k) for k in ("segfault", "exit", "hang", "wrong")]
    result = tuner(Threads(), generations=1, run_timeout=0.5).tune(start)
    verdicts = {c.options.kind: c.outcome for c in result.history if c.generation == 0}
    assert {kind: outcome.verdict for kind, outcome in verdicts.items()} == {
        "right": Verdict.CORRECT,
        "segfault": Verdict.RUNTIME,
        "exit": Verdict.RUNTIME,
        "hang": Verdict.TIMEOUT,
        "wrong": Verdict.CORRECTNESS,
    }
    assert verdicts["segfault"].message == "its process was killed by SIGSEGV"
    assert result.options is not None and result.options.kind == "right"


class Losing(Executor):
    """Loses some of its tasks, in all the ways there are."""

    def __init__(self, executor: Executor, lost: set[int], counter: Iterator[int]) -> None:
        self._executor, self._lost, self._counter = executor, lost, counter

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        number = next(self._counter)
        if number not in self._lost:
            return self._executor.submit(fn, *args, **kwargs)
        failed: Future[Any] = Future()
        match number % 3:
            case 0:
                failed.set_exception(ConnectionError("the worker\nis gone"))
            case 1:
                failed.cancel()
                failed.set_running_or_notify_cancel()
            case _:
                failed.set_exception(CancelledError())
        return failed


def test_what_gets_lost_with_a_machine_is_done_on_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcl.tuner.run.pipeline.evaluate_candidate", as_recorded)
    counter = iter(range(10**6))
    lost = {0, 1, 2, 7, 8, 9, 20, 30, 31, 32}
    there = tuner(Threads(lambda e: Losing(e, lost, counter))).tune([FakeOptions(500)])
    here = tuner(Here()).tune([FakeOptions(500)])
    assert {(c.options, c.outcome) for c in there.history} == {
        (c.options, c.outcome) for c in here.history
    }


def test_a_search_that_lost_all_machines_says_so_and_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcl.tuner.run.pipeline.evaluate_candidate", as_recorded)
    cache = TuningCache(tmp_path / "t.db")
    counter = iter(range(10**6))
    lost = set(range(16, 10**6))
    place = Threads(lambda e: Losing(e, lost, counter))
    with pytest.raises(ExecutorLostError, match=r"can no longer be reached .* can be resumed$"):
        tuner(place, cache).tune([FakeOptions(500)])
    saved = SavedSearch.last(cache, KEY)
    assert saved is not None
    assert saved.records and all(r.verdict is not Verdict.COMPILE for r in saved.records)
    result = tuner(Here(), cache).tune((), None, saved)
    whole = tuner(Here()).tune([FakeOptions(500)])
    assert {(c.options, c.outcome) for c in result.history} == {
        (c.options, c.outcome) for c in whole.history
    }


def _noted(folder: str, name: str) -> None:
    path = Path(folder) / name
    begin = time.monotonic()
    time.sleep(0.1)
    path.write_text(json.dumps([begin, time.monotonic()]))


def test_one_at_a_time_is_measured_on_a_machine(tmp_path: Path) -> None:
    orders = pickle.dumps(
        Orders(FakeBackend(), fake_expected(), QUICK, 20.0, 20.0, 1, 1), protocol=5
    )
    with ThreadPoolExecutor(4) as executor:
        spread = SpreadExecutor(
            [RemoteMachine(executor), RemoteMachine(executor)], TaskRole.MEASURE, orders
        )
        tasks = [spread.submit(_noted, str(tmp_path), f"{n}") for n in range(4)]
        for task in tasks:
            task.result(600)
    host.forget(host.token(orders))
    spans = sorted(json.loads(path.read_text()) for path in tmp_path.iterdir())
    assert len(spans) == 4
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def fake_expected() -> tuple[Expected, ...]:
    return compute_reference(FakeBackend()).outputs


def test_what_was_given_up_is_not_waited_for() -> None:
    class Never(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            return Future()

    spread = SpreadExecutor([RemoteMachine(Never())], TaskRole.COMPILE, b"")
    task = spread.submit(print)
    spread.abandon(TimeoutError("no worker for 30 s"))
    for each in (task, spread.submit(print)):
        with pytest.raises(ExecutorLostError, match=r"\(TimeoutError: no worker for 30 s\)"):
            each.result(1)
    spread.shutdown()
    with pytest.raises(RuntimeError, match="shut down"):
        spread.submit(print)


def test_a_search_that_is_over_starts_nothing_on_a_machine() -> None:
    """It was sent, has not come back, and asks for orders after the machine forgot them."""

    sent: list[Future[Any]] = []

    class Later(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            sent.append(Future())
            return sent[-1]

    spread = SpreadExecutor([RemoteMachine(Later())], TaskRole.COMPILE, b"")
    task = spread.submit(print)
    spread.shutdown()
    sent[0].set_result(None)
    with pytest.raises(CancelledError):
        task.result(1)
    assert len(sent) == 1


def _until(mark: str) -> None:
    while not Path(mark).exists():
        time.sleep(0.01)


def test_processes_of_a_search_that_was_killed_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, looks = 0.0, Semaphore(0)
    idle: Any = host._Site.idle

    def looked(site: Any) -> Any:
        looks.release()
        return idle.fget(site)

    monkeypatch.setattr(host, "_IDLE", 0.2)
    monkeypatch.setattr(host, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(host._Site, "idle", property(looked))
    orders = pickle.dumps(Orders(FakeBackend(), fake_expected(), QUICK, 20.0, 20.0, 1, 1))
    name, mark = host.token(orders), tmp_path / "mark"
    with ThreadPoolExecutor(1) as executor:
        busy = executor.submit(host.run, name, orders, TaskRole.COMPILE, _until, (str(mark),))
        assert looks.acquire(timeout=600)
        now = 100.0  # longer than may be idle
        for _ in range(2):
            assert looks.acquire(timeout=600)
        mark.touch()
        assert busy.result(600) == (True, None)
    found = host.run(name, None, TaskRole.COMPILE, os.getpid, ())
    assert found is not None
    now = 200.0
    assert gone(found[1])
    assert host.run(name, None, TaskRole.COMPILE, os.getpid, ()) is None  # wants its orders again


# Dask.


class FakeClient:
    """Keeps what it is asked to do: (workers or None for any, future)."""

    def __init__(self) -> None:
        self.sent: list[tuple[list[str] | None, Future[Any]]] = []

    def get_executor(
        self, pure: bool, workers: list[str] | None = None, allow_other_workers: bool = False
    ) -> Executor:
        client = self

        class Sending(Executor):
            def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
                future: Future[Any] = Future()
                client.sent.append((workers, future))
                return future

        return Sending()


def test_nothing_waits_for_workers_that_are_gone() -> None:
    client = FakeClient()
    workers = DaskWorkers(client, ["a", "b"])
    done, waits = workers.submit(print), workers.submit(print)
    client.sent[0][1].set_result(None)
    workers.see({"b", "c"})
    assert not waits.cancelled()
    assert workers.submit(print) is client.sent[-1][1]
    workers.see({"c"})
    assert waits.cancelled() and not done.cancelled()
    anywhere = workers.submit(print)
    workers.see(set())
    assert not anywhere.cancelled()
    assert [each for each, _ in client.sent] == [["a", "b"], ["a", "b"], ["b"], None]


def test_workers_have_to_be_like_this_machine() -> None:
    here = Worker("a", "a processor; 1 threads", "tcl 1", 4)
    assert here.unfit(here, 4) is None
    assert Worker("b", "another", "tcl 1", 4).unfit(here, 1) == (
        "its processor is another, not a processor; 1 threads"
    )
    assert Worker("b", here.device, "tcl 2", 4).unfit(here, 1) == "it has tcl 2, not tcl 1"
    assert Worker("b", here.device, "tcl 1", 4).unfit(here, 5) == (
        "it has 4 cores for kernels with 5 threads"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dusk:tcp://h:1", "there is no executor 'dusk:tcp://h:1'; use local, or dask:tcp://"),
        ("dask:", "there is no executor 'dask:'; use local, or dask:tcp://"),
        ("dask:nonsense://h:1", "no Dask scheduler answers at nonsense://h:1: "),
        (
            "dask:inproc://h/1/1",
            "the cluster at inproc://h/1/1 is in this process, which can search",
        ),
        ("dask:h", "no Dask scheduler answers at h: missing port"),
        ("dask:tcp://h:x", "no Dask scheduler answers at tcp://h:x: "),
    ],
)
def test_mistakes_in_the_executor(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    # A client that was made in vain writes a traceback when the program ends.
    monkeypatch.setattr(distributed, "Client", None)
    with pytest.raises(ArgumentError, match=message), workplace(name, 1, print):
        pass


def test_a_cluster_whose_workers_all_die_goes_on_with_new_ones(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE), *(p or os.getcwd() for p in sys.path)]),
        "TCL_CACHE_DIR": str(tmp_path),
    }
    with ExitStack() as stack:
        scheduler = stack.enter_context(
            Process("scheduler", "--port", "0", environment=environment)
        )
        address = scheduler.said("Scheduler at:").split()[-1]

        def begin() -> Process:
            work = Process(
                "worker", address, "--nthreads", "1", "--no-nanny", environment=environment
            )
            return stack.enter_context(work)

        first = begin()
        client = stack.enter_context(distributed.Client(address, set_as_default=False))
        client.wait_for_workers(1, timeout=600)
        workers = DaskWorkers(client, list(client.nthreads()))
        lost = workers.submit(time.sleep, 60.0)
        time.sleep(0.5)
        first.process.kill()
        while client.nthreads():
            time.sleep(0.05)
        workers.see(frozenset(client.nthreads()))
        assert lost.cancelled()
        again = workers.submit(abs, -1)
        begin()
        assert again.result(600) == 1


def test_dask_cluster_of_two_workers_one_of_which_is_killed(tmp_path: Path) -> None:
    """The real command, a real cluster."""
    distributed = pytest.importorskip("distributed")
    environment = of_brief_searches(TCL_CACHE_DIR=str(known_machine(tmp_path)))
    with ExitStack() as stack:
        scheduler = Process("scheduler", "--port", "0", environment=environment)
        stack.enter_context(scheduler)
        address = scheduler.said("Scheduler at:").split()[-1]
        workers = [
            stack.enter_context(
                Process("worker", address, "--nthreads", "1", "--no-nanny", environment=environment)
            )
            for _ in range(2)
        ]
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=600)
        file = tmp_path / "scaled.tc"
        file.write_text("def scaled(float(N) A) -> (B) { B(n) = 2 * A(n) }")
        command = [
            *(sys.executable, "-m", "tcl", "tune", str(file), "--sizes", "N=1000"),
            *("--threads", "1", "--generations", "2", "--population", "6", "--json"),
            *("--executor", f"dask:{address}"),
        ]
        done = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        stack.callback(done.kill)
        assert done.stdout is not None
        measured = []
        for line in done.stdout:
            event = json.loads(line)
            if event["event"] == "candidate":
                measured.append(event)
                if len(measured) == 4:
                    workers[0].process.send_signal(signal.SIGKILL)
            last = event
        assert done.wait(600) == 0
        assert done.stderr is not None
        assert "2 workers on 1 machine" in done.stderr.read()
    assert {m["verdict"] for m in measured} == {"correct"}
    assert len(measured) == 2 + 6 + 3  # two presets open it
    assert last["event"] == "result" and last["unsaved"] == 0
    (summary,) = TuningCache(tmp_path / "tuning.db").list()
    assert summary.measured >= len(measured)


class Process:
    """A process of Dask."""

    def __init__(self, kind: str, *arguments: str, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments),
                *("--no-dashboard", "--host", "127.0.0.1"),
            ],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def said(self, words: str) -> str:
        """The first line with these words."""
        assert self.process.stderr is not None
        return next(line for line in self.process.stderr if words in line)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()
