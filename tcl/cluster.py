"""Many machines: searches whose candidates are compiled and measured on a Dask cluster.

The cluster is the user's: ``dask scheduler`` and ``dask worker`` on machines of one kind, with tcl
of this version installed. On each machine one kernel at a time is measured, however many workers
it has; what is measured there counts as measured here, so the machines have to be like this one.
"""

from __future__ import annotations

import logging
import pickle
import platform
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence, Set
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any, ParamSpec, TypeVar

from tcl import __version__
from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.codegen.devices.cpu import host_cpu
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.common.extras import installing
from tcl.common.number_format import plural
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.measure.cores import available_cores
from tcl.tuner.run import host
from tcl.tuner.run.host import RemoteMachine, SpreadExecutor, TaskRole
from tcl.tuner.run.workplace import Compilers, Orders, Stages, Workplace

_P = ParamSpec("_P")
_T = TypeVar("_T")


class DaskWorkers(Executor):
    """The workers at ``addresses`` as an executor; once none of them is left, whichever there are.

    A task that Dask was told to keep to some workers, with leave to run on others, still waits for
    ever if it was sent while all of them were gone and new ones come: of new workers it looks only
    at those it was told. So nothing is kept to workers that are gone.
    """

    def __init__(self, client: Any, addresses: Sequence[str]) -> None:
        self._client = client
        self._addresses = tuple(addresses)
        self._present: Set[str] = frozenset(addresses)
        self._lock = threading.Lock()
        self._bound: set[Future[Any]] = set()

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """See ``Executor``. The future is cancelled if the workers are lost."""
        left = [address for address in self._addresses if address in self._present]
        bounds = {"workers": left, "allow_other_workers": True} if left else {}
        executor = self._client.get_executor(pure=False, **bounds)
        future: Future[_T] = executor.submit(fn, *args, **kwargs)
        if left:
            with self._lock:
                self._bound.add(future)
            future.add_done_callback(self._unbind)
        return future

    def see(self, present: Set[str]) -> None:
        """Take note of the workers that the cluster has now. To be called again and again."""
        self._present = present
        if present.isdisjoint(self._addresses):
            with self._lock:
                lost = list(self._bound)
            for future in lost:
                future.cancel()

    def _unbind(self, future: Future[Any]) -> None:
        with self._lock:
            self._bound.discard(future)


PREFIX = "dask:"
_PATIENCE = 10.0
"""Seconds to wait for the scheduler, and for its first worker."""
_GIVEN_UP = 30.0
"""Seconds without any worker after which none is expected to come back."""


@dataclass(frozen=True, slots=True)
class Worker:
    machine: str
    """Its name: workers of one name measure in turns."""
    device: str
    """As in cache keys, with the threads of the kernels."""
    versions: str
    """Of what compiles and measures there."""
    cores: int
    """That the worker may run on."""

    @classmethod
    def here(cls, threads: int) -> Worker:
        """Of this process."""
        device = device_identity(replace(host_cpu(), threads=threads))
        versions = f"tcl {__version__}, code generator {CODEGEN_VERSION}"
        return cls(platform.node(), device, versions, len(available_cores()))

    def unfit(self, wanted: Worker, threads: int) -> str | None:
        """Why its measurements would not count where ``wanted`` is; None if they do."""
        if self.versions != wanted.versions:
            return f"it has {self.versions}, not {wanted.versions}"
        if self.device != wanted.device:
            return f"its processor is {self.device}, not {wanted.device}"
        if self.cores < threads:
            return f"it has {self.cores} cores for kernels with {threads} threads"
        return None


def _check_worker(wanted: Worker, threads: int) -> None:
    reason = Worker.here(threads).unfit(wanted, threads)
    if reason is not None:
        raise ArgumentError(f"the worker on {platform.node()} cannot be used: {reason}")


LOCAL = "local"


def check_name(name: str) -> None:
    """Raise ``ArgumentError`` for what cannot be the name of a workplace."""
    if name != LOCAL and (not name.startswith(PREFIX) or name == PREFIX):
        raise ArgumentError(
            f"there is no executor {name!r}; use {LOCAL}, or {PREFIX}tcp://HOST:PORT for a Dask "
            "cluster"
        )


def workplace(
    name: str, threads: int, say: Callable[[str], object]
) -> AbstractContextManager[Workplace | None]:
    """The workplace of this name, ``local`` or ``dask:ADDRESS``, for kernels with so many threads.

    ``say`` is told what it is. ``ArgumentError`` if there is none.
    """
    check_name(name)
    if name == LOCAL:
        return nullcontext()
    cluster = Cluster(name, threads)
    # Let Dask say nothing: when a connection is lost, it logs tracebacks.
    for logger in ("distributed", *logging.root.manager.loggerDict):
        if logger.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
    for line in (f"compiling and measuring with {cluster.description}", *cluster.left_out):
        say(line)
    return cluster


class Cluster:
    """A Dask cluster that compiles and measures candidates; a context manager.

    ``address``: the address of the scheduler, such as ``dask:tcp://HOST:PORT``. ``threads``: the
    number of threads of the kernels. Raises ``ArgumentError`` if no scheduler answers, or if the
    cluster has no suitable worker.
    """

    def __init__(self, address: str, threads: int) -> None:
        self._address = address.removeprefix(PREFIX)
        self._threads = threads
        self._client = _connect(self._address)
        self._closing = threading.Event()
        try:
            self._here = Worker.here(threads)
            self._workers, self.left_out = self._fit()
        except BaseException:
            self._client.close()
            raise

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        self._client.close()

    @property
    def description(self) -> str:
        """The number of workers and machines, as text."""
        machines = len({w.machine for w in self._workers.values()})
        count = len(self._workers)
        return f"{plural(count, 'worker')} on {plural(machines, 'machine')} at {self._address}"

    def open(self, orders: Orders) -> Stages:
        """See ``Workplace``."""
        check = partial(_check_worker, self._here, self._threads)
        data = pickle.dumps(replace(orders, backend=orders.backend.portable(), check=check))
        machines: dict[str, list[str]] = defaultdict(list)
        for address, worker in self._workers.items():
            machines[worker.machine].append(address)
        anywhere = DaskWorkers(self._client, list(self._workers))
        each = [DaskWorkers(self._client, addresses) for addresses in machines.values()]
        compiler = SpreadExecutor([RemoteMachine(anywhere)], TaskRole.COMPILE, data)
        evaluator = SpreadExecutor(
            [RemoteMachine(workers) for workers in each], TaskRole.MEASURE, data
        )
        width = sum(self._client.nthreads().get(address, 0) for address in self._workers)
        ended = threading.Event()
        threading.Thread(
            target=self._watch, args=(ended, (compiler, evaluator), (anywhere, *each)), daemon=True
        ).start()

        def close() -> None:
            ended.set()
            compiler.shutdown()
            evaluator.shutdown()
            with suppress(Exception):  # where the cluster is gone, so are its processes
                self._client.run(host.forget, host.token(data), on_error="ignore")

        return Stages((Compilers(compiler, max(1, width)),), evaluator, len(each), close)

    def _watch(
        self,
        ended: threading.Event,
        spreads: tuple[SpreadExecutor, ...],
        executors: tuple[DaskWorkers, ...],
    ) -> None:
        """Dask waits for ever for workers to come; we do not."""
        seen = time.monotonic()
        while not (ended.wait(1.0) or self._closing.is_set()):
            error: BaseException = TimeoutError(f"no worker for {_GIVEN_UP:g} s")
            try:
                present = frozenset(self._client.nthreads())
            except Exception:  # whatever Dask raises when it has lost its connection
                error = ConnectionError(f"the scheduler at {self._address} does not answer")
            else:
                for executor in executors:
                    executor.see(present)
                if present:
                    seen = time.monotonic()
            if time.monotonic() - seen > _GIVEN_UP:
                for spread in spreads:
                    spread.abandon(error)
                return

    def _fit(self) -> tuple[dict[str, Worker], list[str]]:
        """Workers by address, and sentences about those that are left out."""
        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE)
            found = self._client.run(Worker.here, self._threads, on_error="return")
        except TimeoutError:
            raise ArgumentError(
                f"the cluster at {self._address} has no workers; start some with: "
                f"dask worker {self._address}"
            ) from None
        fit: dict[str, Worker] = {}
        left_out = []
        for address, worker in found.items():
            if isinstance(worker, Worker):
                reason = worker.unfit(self._here, self._threads)
            else:
                reason = f"tcl does not run there ({type(worker).__name__}: {worker})"
            if reason is None:
                fit[address] = worker
            else:
                left_out.append(f"the worker at {address} is left out: {reason}")
        if not fit:
            raise ArgumentError(f"the cluster has no suitable worker; {'; '.join(left_out)}")
        return fit, left_out


def _connect(address: str) -> Any:
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
        from distributed.comm.registry import get_backend
    except ImportError:
        raise ArgumentError(
            "a Dask cluster needs the extra 'distributed'; install it with "
            f"{installing('distributed')}"
        ) from None
    if address.startswith("inproc://"):
        raise ArgumentError(
            f"the cluster at {address} is in this process, which can search without it; leave out "
            "the cluster, or start one of processes: LocalCluster(processes=True)"
        )
    try:
        connect: Any = Client
        # A client made with a bad address writes a traceback when the program ends.
        get_backend(address.rpartition("://")[0] or "tcp")
        get_address_host_port(address)
        return connect(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        text = " ".join(str(error).split())
        raise ArgumentError(f"no Dask scheduler answers at {address}: {text}") from None
