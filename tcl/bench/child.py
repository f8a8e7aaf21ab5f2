"""The process of one contender: answers requests, one line of JSON each, until its input ends.

``python -m tcl.bench.child SETTINGS``, where SETTINGS is JSON: ``module`` that has ``make``,
``threads``, ``cores`` to stay on, ``folder`` for arrays. Requests:

    {"do": "hello"}                    -> versions
    {"do": "open", "task": ..., "inputs": FOLDER}
                                       -> forms with their times, those that failed, and facts
    {"do": "results", "form": ...}     -> the number of results, which are written as files
    {"do": "sample", "form": ..., "calls": ..., "cold": ...}   -> seconds per call
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
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from tcl.bench.arrays import Array, load, save
from tcl.bench.task import Peer, PeerForm, Task
from tcl.tuner.measure.placement import aligned

_LONG = 0.5
"""Seconds of a call beyond which one call is all that choosing among forms may take."""
_CHOOSING = 0.1
"""Seconds that timing one form may take, to choose among them."""


class PeerSession:
    """One contender at work."""

    def __init__(self, peer: Peer, folder: Path) -> None:
        self._peer = peer
        self._folder = folder
        self._forms: dict[str, PeerForm] = {}
        self._flush: Array | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a request asks."""
        match request["do"]:
            case "hello":
                return {"versions": self._peer.versions()}
            case "open":
                return self._open(Task.from_json(request["task"]), Path(request["inputs"]))
            case "results":
                results = self._forms[request["form"]].results()
                for position, array in enumerate(results):
                    save(self._folder, f"result-{position}", np.asarray(array))
                return {"count": len(results)}
            case "sample":
                return self._sample(request["form"], request["calls"], request["cold"])
            case "close":
                self._forms = {}
                gc.collect()
                return {}
            case other:
                raise ValueError(f"there is no request {other!r}")

    def _open(self, task: Task, folder: Path) -> dict[str, Any]:
        inputs = {name: load(folder, f"input-{name}", task.past) for name in task.inputs}
        opened: list[dict[str, Any]] = []
        failed: dict[str, str] = {}
        for name, make in self._peer.forms(task, inputs):
            begin = time.perf_counter()
            try:
                form = make()
                form.run()
                setup = time.perf_counter() - begin
                seconds = _estimate(form.run)
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {str(error)[:500]}"
                continue
            self._forms[name] = form
            opened.append(
                {"name": name, "seconds": seconds, "setup": setup, "threads": form.threads}
            )
        return {"forms": opened, "failed": failed, "facts": self._peer.facts(task)}

    def _sample(self, name: str, calls: int, cold: bool) -> dict[str, Any]:
        run = self._forms[name].run
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
        return {"seconds": (time.perf_counter() - begin) / calls}


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


def serve(peer: Peer, folder: Path, requests: IO[str], replies: IO[str]) -> None:
    """Answer requests until there are no more."""
    session = PeerSession(peer, folder)
    for line in requests:
        try:
            reply = session.answer(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {str(error)[:500]}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def main() -> None:
    """The process."""
    settings = json.loads(sys.argv[1])
    if settings["cores"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, settings["cores"])
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not mix with the replies
    gc.disable()
    peer: Peer = importlib.import_module(settings["module"]).make(settings["threads"])
    serve(peer, Path(settings["folder"]), sys.stdin, replies)


if __name__ == "__main__":
    main()
