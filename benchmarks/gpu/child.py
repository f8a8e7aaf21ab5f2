"""The process of one contender: answers requests, one line of JSON each, until its input ends.

``python -m benchmarks.gpu.child SETTINGS``; the settings are those of ``tcl.bench.child``, and what
``Setting`` has. Requests:

    {"do": "hello"}                   -> versions
    {"do": "build", "task": ..., "inputs": FOLDER}
                                      -> forms that ran once, those that failed, and facts
    {"do": "prepare", "moved": ...}   -> how the forms are replayed, and seconds of each
    {"do": "results", "form": ...}    -> the number of results, which are written as files
    {"do": "sample", "form": ..., "count": ...}   -> seconds and clock rates
    {"do": "probes"}, {"do": "latencies"}         -> what the device can do
    {"do": "close"}                   -> whether another process had better go on

A device that failed stays so for its process: the process says so and ends.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import IO, Any

import numpy as np

from benchmarks.gpu.clock import DeviceForm, Timed, schedule
from benchmarks.gpu.peer import GpuPeer, Setting
from benchmarks.gpu.samples import Sample
from tcl.bench.arrays import load, save, widened
from tcl.bench.task import Task

_PROBED = 10
"""Samples of a probe."""


class BrokenDeviceError(Exception):
    """The device does not answer any more."""


class Session:
    """One contender at work."""

    def __init__(self, peer: GpuPeer, folder: Path, setting: Setting) -> None:
        self._peer = peer
        self._folder = folder
        self._l2 = setting.l2_bytes
        self._forms: dict[str, DeviceForm] = {}
        self._timed: dict[str, Timed] = {}
        self._held = 0

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a request asks."""
        match request["do"]:
            case "hello":
                return {"versions": self._peer.versions()}
            case "build":
                return self._build(Task.from_json(request["task"]), Path(request["inputs"]))
            case "prepare":
                return self._prepare(request["moved"])
            case "results":
                return self._results(request["form"])
            case "sample":
                return self._sample(self._timed[request["form"]], request["count"])
            case "probes":
                return {"probes": [self._probe(p) for p in self._peer.probes()]}
            case "latencies":
                return {"latencies": self._peer.latencies()}
            case "close":
                self._forms, self._timed = {}, {}
                gc.collect()
                self._peer.close()
                return {"spoiled": self._peer.clock.spoiled}
            case other:
                raise ValueError(f"there is no request {other!r}")

    def _build(self, task: Task, folder: Path) -> dict[str, Any]:
        inputs = {name: load(folder, f"input-{name}") for name in task.inputs}
        self._held = sum(array.nbytes for array in inputs.values())
        opened: dict[str, float] = {}
        failed: dict[str, str] = {}
        for name, make in self._peer.forms(task, inputs):
            begin = time.perf_counter()
            try:
                form = make()
                form.runs(1)[0]()
                self._peer.clock.check()
            except Exception as error:
                failed[name] = self._failure(error)
                continue
            self._forms[name] = form
            opened[name] = time.perf_counter() - begin
        try:
            facts = self._peer.facts(task)
        except Exception as error:  # times are worth more
            facts = {"error": self._failure(error)}
        return {"setup": opened, "failed": failed, "facts": facts}

    def _failure(self, error: Exception) -> str:
        """A sentence on what went wrong, unless it broke the device."""
        message = f"{type(error).__name__}: {str(error)[:500]}"
        try:
            self._peer.clock.check()
        except Exception:
            raise BrokenDeviceError(message) from None
        return message

    def _prepare(self, moved: int) -> dict[str, Any]:
        ready: dict[str, dict[str, Any]] = {}
        failed: dict[str, str] = {}
        clock = self._peer.clock
        for name, form in list(self._forms.items()):
            try:
                timed = schedule(clock, form, moved, self._held + moved, self._l2)
                samples = self._sample(timed, 3)
            except Exception as error:
                failed[name] = self._failure(error)
                continue
            self._timed[name] = timed
            ready[name] = {
                "seconds": min(samples["seconds"]),
                "launches": timed.launches,
                "copies": timed.copies,
                "captured": timed.captured,
            }
        return {"forms": ready, "failed": failed}

    def _results(self, name: str) -> dict[str, Any]:
        results = self._forms[name].results()
        for position, array in enumerate(results):
            save(self._folder, f"result-{position}", widened(np.asarray(array)))
        return {"count": len(results)}

    def _sample(self, timed: Timed, count: int) -> dict[str, Any]:
        clock = self._peer.clock
        clock.sample(timed)  # others had the device since
        samples: list[Sample] = [clock.sample(timed) for _ in range(count)]
        return {"seconds": [s.seconds for s in samples], "mhz": [s.mhz for s in samples]}

    def _probe(self, probe: Any) -> dict[str, Any]:
        about = {"name": probe.name, "rate": probe.rate, "amount": probe.amount}
        try:
            timed = self._peer.clock.timed([probe.make()], 1)
            found = self._sample(timed, _PROBED)
        except Exception as error:
            return {**about, "seconds": [], "error": self._failure(error)}
        finally:
            self._peer.close()
        return {**about, "seconds": found["seconds"], "error": ""}


def serve(session: Session, requests: IO[str], replies: IO[str]) -> None:
    """Answer requests until there are no more, or the device fails."""
    for line in requests:
        broken = False
        try:
            reply = session.answer(json.loads(line))
        except BrokenDeviceError as error:
            reply, broken = {"error": f"the device failed: {error}", "broken": True}, True
        except Exception as error:
            traceback.print_exc()
            try:
                reply = {"error": session._failure(error)}
            except BrokenDeviceError as worse:
                reply, broken = {"error": f"the device failed: {worse}", "broken": True}, True
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
        if broken:
            os._exit(1)  # an orderly end would wait for the device


def main() -> None:
    """The process."""
    settings = json.loads(sys.argv[1])
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not mix with the replies
    gc.disable()
    setting = Setting(**{name: settings[name] for name in Setting.__slots__})
    peer: GpuPeer = importlib.import_module(settings["module"]).make(setting)
    serve(Session(peer, Path(settings["folder"]), setting), sys.stdin, replies)


if __name__ == "__main__":
    main()
