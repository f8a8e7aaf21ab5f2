"""The process of one contender: answers requests, one line of JSON each, until its input ends.

``python -m tcl.bench.child SETTINGS``, where SETTINGS is JSON: ``module`` that has ``make``,
``threads``, ``cores`` to stay on, ``folder`` for arrays. Requests:

    {"do": "hello"}                    -> versions
    {"do": "open", "task": ..., "inputs": FOLDER}
                                       -> forms with their times, those that failed, and facts
    {"do": "results", "form": ...}     -> the number of results, which are written as files
    {"do": "sample", "form": ..., "calls": ..., "cold": ...}   -> samples: seconds per call
    {"do": "close"}
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from tcl.bench.arrays import Array, load, save
from tcl.bench.task import Task
from tcl.tuner.measure.placement import aligned

_LONG = 0.5
"""Seconds of a call beyond which one call is all that choosing among forms may take."""
_CHOOSING = 0.1
"""Seconds that timing one form may take, to choose among them."""


class PeerSession:
    """One contender at work: ``do_X`` answers the request X. Benchmarks of other devices change how
    forms are run and timed."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.peer: Any = importlib.import_module(settings["module"]).make(self.given(settings))
        self.folder = Path(settings["folder"])
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
        """Versions."""
        return {"versions": self.peer.versions()}

    def do_open(self, task: Mapping[str, Any], inputs: str) -> dict[str, Any]:
        """Make the forms of a task, run each, and estimate its time."""
        wanted = Task.from_json(task)
        arrays = {name: load(Path(inputs), f"input-{name}", wanted.past) for name in wanted.inputs}
        opened: list[dict[str, Any]] = []
        failed: dict[str, str] = {}
        for name, make in self.peer.forms(wanted, arrays):
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
            facts = self.peer.facts(wanted)
        except Exception as error:  # times are worth more
            facts = {"error": self.failure(error)}
        return {"forms": opened, "failed": failed, "facts": facts}

    def run(self, form: Any) -> None:
        """Do a form once, to the end."""
        form.run()

    def estimate(self, name: str, form: Any) -> dict[str, Any]:
        """``seconds`` of a form that ran once, and what else an ``Entry`` has of it."""
        return {"seconds": _estimate(form.run), "threads": form.threads}

    def failure(self, error: Exception) -> str:
        """A sentence on what went wrong."""
        return f"{type(error).__name__}: {str(error)[:500]}"

    def do_results(self, form: str) -> dict[str, Any]:
        """Do a form once, and write its results as files."""
        results = self.forms[form].results()
        for position, array in enumerate(results):
            save(self.folder, f"result-{position}", np.asarray(array))
        return {"count": len(results)}

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


def _estimate(run: Callable[[], object]) -> float:
    """Seconds per call, roughly: the least of a few, as neighbours disturb some."""
    times: list[float] = []
    while sum(times) < _CHOOSING and len(times) < 20:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
        if times[-1] > _LONG:
            break
    return min(times)


def serve(session: PeerSession, requests: IO[str], replies: IO[str]) -> None:
    """Answer requests until there are no more."""
    for line in requests:
        try:
            reply = session.answer(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            reply = {"error": session.failure(error)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def main(kind: type[PeerSession] = PeerSession) -> None:
    """The process."""
    settings = json.loads(sys.argv[1])
    if settings["cores"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, settings["cores"])
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not mix with the replies
    gc.disable()
    serve(kind(settings), sys.stdin, replies)


if __name__ == "__main__":
    main()
