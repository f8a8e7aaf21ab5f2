"""``tcl tune`` as a process of its own: what it said, and what it left in the cache."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import tcl
from tcl.codegen.options.options import MappingOptions
from tcl.tuner.cache.tuning_cache import TuningCache

HERE = Path(__file__).resolve().parent
SIZE = 32
SMALL = ("--generations", "1", "--population", "2")
"""The least search."""
MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }\n"
Event: TypeAlias = dict[str, Any]
Measured: TypeAlias = tuple[str, str, tuple[float, ...], str]
"""Options, verdict, samples and message of one measurement."""


@dataclass(frozen=True)
class Done:
    """How a process ended."""

    code: int
    events: list[Event]
    errors: str
    faults: dict[str, str]
    """Digests of the options that were made to misbehave, and how."""

    def named(self, name: str) -> list[Event]:
        """The events of one kind."""
        return [event for event in self.events if event["event"] == name]

    @property
    def candidates(self) -> list[Event]:
        return self.named("candidate")

    @property
    def result(self) -> Event:
        (found,) = self.named("result")
        return found

    @property
    def notes(self) -> list[str]:
        return [event["message"] for event in self.named("note")]

    def faulty(self, kind: str) -> list[Event]:
        """The candidates that were made to misbehave so."""
        return [c for c in self.candidates if self.faults.get(_digest(c["options"])) == kind]

    def measured(self) -> set[Measured]:
        """Everything that it said was measured."""
        raced = [c for event in self.named("raced") for c in event["candidates"]]
        return {_measured(c) for c in (*self.candidates, *raced)}


class TuningProcess:
    """A ``tcl tune`` that runs. Its events are read as they come.

    ``faults``: how the n-th candidate behaves, see ``faulty/sitecustomize.py``.
    """

    def __init__(
        self,
        cache: Path,
        *arguments: str,
        faults: Mapping[int, str] | None = None,
        before: Callable[[], object] = lambda: None,
        **environment: str,
    ) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="faults-")
        work = Path(self.folder.name)
        (work / "mm.tc").write_text(MM)
        self._faults = {str(number): kind for number, kind in (faults or {}).items()}
        (work / "plan.json").write_text(json.dumps(self._faults))
        settings = ["-s", f"M={SIZE},K={SIZE},N={SIZE}", "--threads", "1", "--jobs", "1"]
        if "--generations" not in arguments:
            settings += ["--generations", "1", "--population", "6"]
        if "--seed" not in arguments:
            settings += ["--seed", "1"]

        def prepare() -> None:
            # A test run in the background of a shell ignores it, and children inherit that.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            before()

        command = [sys.executable, "-m", "tcl", "tune", str(work / "mm.tc")]
        path = [str(HERE / "faulty"), *(p or os.getcwd() for p in sys.path)]
        self.process = subprocess.Popen(
            [*command, "--json", "--cache", str(cache), *settings, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(path),
                "TCL_TEST_FAULTS": str(work),
                **environment,
            },
            start_new_session=True,
            preexec_fn=prepare,
        )
        self.events: list[Event] = []
        self._lines: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._errors: list[str] = []
        self._threads = [
            threading.Thread(target=read, daemon=True) for read in (self._read, self._hear)
        ]
        RUNNING.append(self)
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # Of a process that was killed the last line may be half a one.
            self._lines.put(json.loads(line) if line.endswith("}\n") else None)
        self._lines.put(None)

    def _hear(self) -> None:
        assert self.process.stderr is not None
        self._errors.append(self.process.stderr.read())

    def until(self, name: str, count: int = 1, patience: float = 600.0) -> Event:
        """Wait for the ``count``-th event of that name from now on."""
        deadline = time.monotonic() + patience
        while True:
            event = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            assert event is not None, f"it ended first: {self.finish().errors}"
            self.events.append(event)
            count -= event["event"] == name
            if not count:
                return event

    def began(self, kind: str, patience: float = 600.0) -> None:
        """Wait until a kernel that was made to misbehave so is called."""
        deadline = time.monotonic() + patience
        ended = False
        while not (Path(self.folder.name) / f"began {kind}").exists():
            assert not ended and time.monotonic() < deadline, f"no kernel that {kind} was called"
            ended = self.process.poll() is not None
            time.sleep(0.02)

    def go_on(self, *more: str) -> None:
        """Let kernels that wait run; ``again``: those that wait again."""
        (Path(self.folder.name) / " ".join(("go on", *more))).touch()

    def read(self, count: int, patience: float = 600.0) -> None:
        """Wait for so many events, or for its end."""
        while count and (event := self._lines.get(timeout=patience)) is not None:
            self.events.append(event)
            count -= 1

    def finish(self, patience: float = 600.0) -> Done:
        """Wait for its end."""
        try:
            code = self.process.wait(patience)
        finally:
            self.kill()
        for thread in self._threads:
            thread.join()
        while not self._lines.empty():
            event = self._lines.get()
            if event is not None:
                self.events.append(event)
        taken = {f.name: f.read_text() for f in Path(self.folder.name).iterdir() if f.is_file()}
        faults = {name: self._faults[n] for name, n in taken.items() if n in self._faults}
        self.folder.cleanup()
        return Done(code, self.events, self._errors[0], faults)

    def kill(self) -> None:
        """``kill -9``, if it still runs."""
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(ValueError):
            RUNNING.remove(self)


RUNNING: list[TuningProcess] = []
"""Those that have not been waited for."""


def unprivileged() -> None:
    """Make permissions of files count for what root starts, too; for ``before``."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
                raise OSError(ctypes.get_errno(), "a capability cannot be dropped")


_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2


def saved(path: Path) -> set[Measured]:
    """Everything that a cache holds."""
    cache = TuningCache(path)
    return {
        (_canonical(r.options), r.verdict.value, r.samples, r.message)
        for summary in cache.list()
        for r in cache.history(summary.key)
    }


def _measured(candidate: Event) -> Measured:
    options = _canonical(json.dumps(candidate["options"]))
    return options, candidate["verdict"], tuple(candidate["samples"]), candidate["message"]


def _digest(options: Mapping[str, Any]) -> str:
    """As ``faulty/sitecustomize.py`` makes it."""
    text = MappingOptions.from_json(json.dumps(options)).to_json()
    return hashlib.sha256(text.encode()).hexdigest()


def _canonical(options: str) -> str:
    return json.dumps(json.loads(options), sort_keys=True)


def is_right(options: Mapping[str, Any]) -> bool:
    """Whether the def computes what it should with these options."""
    random = np.random.default_rng(0)
    a, b = (random.random((SIZE, SIZE), np.float32) for _ in range(2))
    chosen = MappingOptions.from_json(json.dumps(options))
    found = tcl.compile(MM, "mm", chosen, a, b, threads=1)(a, b)
    return np.allclose(found, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5)


def is_sentence(text: str) -> bool:
    """Whether a message is one line and one sentence, and nothing that only a programmer reads."""
    several = re.search(r"[.!?]\s+[A-Z]", text)
    return 0 < len(text) < 400 and "\n" not in text and "Traceback" not in text and not several


def only_sentences(done: Done) -> bool:
    """Whether everything that it said is."""
    verdicts = [c["message"] for c in done.candidates if c["message"]]
    lines = [line for line in done.errors.splitlines() if line]
    return all(map(is_sentence, [*verdicts, *done.notes, *lines]))
