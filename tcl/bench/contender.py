"""A contender: the process in which it works, and the parent's side of that."""

from __future__ import annotations

import contextlib
import gc
import importlib
import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from tcl.bench.task import DEFAULT, TUNED, Array, Task
from tcl.tuner.measure.placement import aligned

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "HL_NUM_THREADS",
    "TCL_NUM_THREADS",
)
_LONG = 0.5
"""Seconds of a call beyond which one call is all that choosing among forms may take."""
_CHOOSING = 0.1
"""Seconds that timing one form may take, to choose among them."""


class ContenderError(Exception):
    """The process did not answer, or its answer is an error."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A contender that can be started."""

    name: str
    module: str
    """It has ``make(threads) -> Peer``; imported in the contender's process alone."""
    needs: str = ""
    """A package without which it cannot run."""
    patience: float = 300.0
    """Seconds that it may take to compile a row, to choose among its forms, or to compute."""


OURS = (Spec(DEFAULT, "tcl.bench.peers.ours"), Spec(TUNED, "tcl.bench.peers.ours"))
"""Our own kernels: with the untuned default options, and with the best that the cache knows. Each
is a process of its own, so that neither finds what the other left in memory."""
PEERS = (
    Spec("NumPy", "tcl.bench.peers.numpy_peer"),
    Spec("torch", "tcl.bench.peers.torch_peer", "torch"),
    Spec("torch.compile", "tcl.bench.peers.torch_compile", "torch"),
    Spec("JAX", "tcl.bench.peers.jax_peer", "jax"),
    Spec("ONNX Runtime", "tcl.bench.peers.onnx_peer", "onnxruntime"),
    Spec("Halide", "tcl.bench.peers.halide_peer", "halide"),
)


class PeerSession:
    """One contender at work, in its process: ``do_X`` answers the request X. Benchmarks of other
    devices change how forms are run and timed."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.peer: Any = importlib.import_module(settings["module"]).make(self.given(settings))
        self.forms: dict[str, Any] = {}
        self._flush: Array | None = None

    def given(self, settings: Mapping[str, Any]) -> Any:
        """What a module's ``make`` takes."""
        return settings["threads"]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a request asks."""
        name = request.pop("do")
        do = getattr(self, f"do_{name}", None)
        if do is None:
            raise ValueError(f"there is no request {name!r}")
        found: dict[str, Any] = do(**request)
        return found

    def do_hello(self) -> dict[str, Any]:
        return {"versions": self.peer.versions()}

    def do_open(self, task: Task, inputs: Mapping[str, Array]) -> dict[str, Any]:
        """Make the forms of a task, run each, and estimate its time."""
        arrays = {}
        for name in task.inputs:
            arrays[name] = aligned(inputs[name].shape, inputs[name].dtype, task.past)
            arrays[name][...] = inputs[name]
        opened: list[dict[str, Any]] = []
        failed: dict[str, str] = {}
        for name, make in self.peer.forms(task, arrays):
            begin = time.perf_counter()
            try:
                form = make()
                self.run(form)
                setup = time.perf_counter() - begin
                about = self.estimate(name, form)
            except Exception as error:
                failed[name] = self.failure(error)
                continue
            self.forms[name] = form
            opened.append({"name": name, "setup": setup, **about})
        try:
            facts = self.peer.facts(task)
        except Exception as error:  # times are worth more
            facts = {"error": self.failure(error)}
        return {"forms": opened, "failed": failed, "facts": facts}

    def run(self, form: Any) -> None:
        """Do a form once, to the end."""
        form.run()

    def estimate(self, name: str, form: Any) -> dict[str, Any]:
        """``seconds`` of a form that ran once, and what else an ``Entry`` has of it."""
        times: list[float] = []  # the least of a few, as neighbours disturb some
        while sum(times) < _CHOOSING and len(times) < 20:
            begin = time.perf_counter()
            form.run()
            times.append(time.perf_counter() - begin)
            if times[-1] > _LONG:
                break
        return {"seconds": min(times), "threads": form.threads}

    def failure(self, error: Exception) -> str:
        """A sentence on what went wrong."""
        return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"

    def do_results(self, form: str) -> dict[str, Any]:
        return {"results": [np.asarray(array) for array in self.forms[form].results()]}

    def do_sample(self, form: str, calls: int, cold: bool) -> dict[str, Any]:
        """Seconds of a call, on average."""
        run = self.forms[form].run
        if cold:
            if self._flush is None:
                from tcl.codegen.devices.cpu import host_cpu

                # Twice the last level, within reason: virtual machines report the cache of the
                # whole host.
                flushed = min(max(2 * host_cpu().l3_bytes, 64 << 20), 512 << 20)
                self._flush = aligned((flushed,), np.uint8)
            self._flush += 1  # read and written: nothing else stays in the caches
            calls = 1
        else:
            run()  # other processes ran since: caches and clocks are theirs
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        return {"samples": [(time.perf_counter() - begin) / calls]}

    def do_close(self) -> dict[str, Any]:
        """Forget the task; whether another process had better go on."""
        self.forms = {}
        gc.collect()
        return {"spoiled": False}


def _serve(
    connection: Connection, session: type[PeerSession], settings: Mapping[str, Any], log: str
) -> None:
    """The process: answer requests until there are no more."""
    written = os.open(log, os.O_WRONLY | os.O_TRUNC)
    for number in (1, 2):
        os.dup2(written, number)
    if settings["cores"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, settings["cores"])
    gc.disable()
    working = session(settings)
    with contextlib.suppress(EOFError):
        while True:
            request = connection.recv()
            try:
                reply = working.answer(request)
            except Exception as error:
                traceback.print_exc()
                reply = {"error": working.failure(error)}
            connection.send(reply)


class Contender:
    """A running process. It is idle except while ``request`` waits for it."""

    def __init__(
        self,
        spec: Spec,
        threads: int,
        cores: Sequence[int],
        session: type[PeerSession] = PeerSession,
        **more: Any,
    ) -> None:
        """``session`` answers in the process; it gets ``more`` as settings."""
        self.spec = spec
        self.threads = threads
        self.versions: dict[str, str] = {}
        self._session = session
        self._settings = {"module": spec.module, "threads": threads, "cores": [*cores], **more}

    def start(self, timeout: float = 120.0) -> None:
        """Start the process, or another one after one that ended; ``ContenderError`` if it does
        not come up."""
        number, self._log = tempfile.mkstemp(prefix="tcl-bench-")
        os.close(number)
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        given = (theirs, self._session, self._settings, self._log)
        self._process = context.Process(target=_serve, args=given)
        with _environment(self.threads), theirs:
            self._process.start()
        self.versions = self.request(timeout, do="hello")["versions"]

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return self._process.is_alive()

    def request(self, timeout: float, **request: Any) -> dict[str, Any]:
        """The reply to a request. A process that takes longer than ``timeout`` seconds is killed.

        Raises ``ContenderError``.
        """
        try:
            self._connection.send(request)
            if not self._connection.poll(timeout):
                self.stop(kill=True)
                raise ContenderError(f"no answer in {timeout:.0f} s")
            reply: dict[str, Any] = self._connection.recv()
        except (EOFError, OSError):
            self._process.join(10)
            lines = Path(self._log).read_text("utf-8", "replace").strip().splitlines()
            last = lines[-1][:300] if lines else f"exit code {self._process.exitcode}"
            self.stop(kill=True)
            raise ContenderError(f"the process ended: {last}") from None
        if "error" in reply:
            raise ContenderError(reply["error"])
        return reply

    def stop(self, *, kill: bool = False) -> None:
        """End the process."""
        self._connection.close()
        if not kill:
            self._process.join(5)
        self._process.kill()
        self._process.join()
        Path(self._log).unlink(missing_ok=True)


@contextlib.contextmanager
def _environment(threads: int) -> Iterator[None]:
    """What processes that start within find in their environment."""
    before = dict(os.environ)
    flags = before.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false" * (threads == 1)
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    os.environ.update(XLA_FLAGS=flags.strip(), JAX_PLATFORMS="cpu")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
