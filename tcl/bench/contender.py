"""The parent's side of a contender's process."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tcl.bench.peers.names import DEFAULT, TUNED

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
    Spec("Halide", "tcl.bench.peers.halide_peer", "halide"),
)


class Contender:
    """A running process. It is idle except while ``ask`` waits for it."""

    def __init__(
        self,
        spec: Spec,
        threads: int,
        cores: Sequence[int],
        folder: Path,
        child: str = "tcl.bench.child",
        **more: Any,
    ) -> None:
        """``child`` is the module that answers in the process, which gets ``more`` as settings."""
        self.spec = spec
        self._child = child
        self.folder = folder / spec.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = self.folder / "log.txt"
        self._settings = {
            "module": spec.module,
            "threads": threads,
            "cores": list(cores),
            "folder": str(self.folder),
            **more,
        }
        self.threads = threads
        self.versions: dict[str, str] = {}

    def start(self, timeout: float = 120.0) -> None:
        """Start the process, or another one after one that ended; ``ContenderError`` if it does
        not come up."""
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._child, json.dumps(self._settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(self.threads),
                text=True,
                encoding="utf-8",
            )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        reading = (self._process.stdout, self._lines)
        threading.Thread(target=_read_lines, args=reading, daemon=True).start()
        self.versions = self.request(timeout, do="hello")["versions"]

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return self._process.poll() is None

    def request(self, timeout: float, **request: Any) -> dict[str, Any]:
        """The reply to a request. A process that takes longer than ``timeout`` seconds is killed.

        Raises ``ContenderError``.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            self.stop(kill=True)
            raise ContenderError(f"no answer in {timeout:.0f} s") from None
        except OSError:
            line = ""
        if not line:
            self._process.wait(10)
            lines = self._log.read_text("utf-8", "replace").strip().splitlines()
            last = lines[-1][:300] if lines else f"exit code {self._process.returncode}"
            raise ContenderError(f"the process ended: {last}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise ContenderError(reply["error"])
        return reply

    def stop(self, *, kill: bool = False) -> None:
        """End the process."""
        if kill:
            self._process.kill()
        elif self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _read_lines(stdout: IO[str], lines: queue.SimpleQueue[str]) -> None:
    for line in stdout:
        lines.put(line)
    lines.put("")


def _environment(threads: int) -> dict[str, str]:
    environment = dict(os.environ)
    environment.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    environment.setdefault("PYTHONWARNINGS", "ignore")
    flags = environment.get("XLA_FLAGS", "")
    if threads == 1:
        flags += " --xla_cpu_multi_thread_eigen=false"
    environment["XLA_FLAGS"] = flags.strip()
    environment["JAX_PLATFORMS"] = "cpu"
    return environment
