"""The process of one contender on a GPU: what a ``PeerSession`` answers, by the device's clock.

A form is replayed (see ``clock``), so that ``open`` says how, too; ``sample`` takes a ``count`` and
adds clock rates. More requests:

    {"do": "probes"}, {"do": "latencies"}         -> what the device can do

A device that failed stays so for its process, which says so and ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.gpu.clock import DeviceForm, Timed, schedule
from benchmarks.gpu.peer import Probe, Setting
from tcl.bench.contender import PeerSession
from tcl.bench.task import Array, Task

_PROBED = 10
"""Samples of a probe."""


class DeviceSession(PeerSession):
    """One contender at work."""

    def given(self, settings: Mapping[str, Any]) -> Setting:
        """What a module's ``make`` takes."""
        self._l2 = settings["l2_bytes"]
        self._timed: dict[str, Timed] = {}
        return Setting(**{name: settings[name] for name in Setting.__slots__})

    def do_open(self, task: Task, inputs: Mapping[str, Array], moved: int = 0) -> dict[str, Any]:
        """``moved``: bytes that a launch moves."""
        self._moved = moved
        self._held = moved + sum(array.nbytes for array in inputs.values())
        return super().do_open(task, inputs)

    def run(self, form: DeviceForm) -> None:
        """Launch it once, and wait."""
        form.runs(1)[0]()
        self.peer.clock.check()

    def estimate(self, name: str, form: DeviceForm) -> dict[str, Any]:
        """By a replay."""
        timed = schedule(self.peer.clock, form, self._moved, self._held, self._l2)
        seconds = min(self._samples(timed, 3)["samples"])
        self._timed[name] = timed
        about = {"launches": timed.launches, "copies": timed.copies, "captured": timed.captured}
        return {"seconds": seconds, **about}

    def failure(self, error: Exception) -> str:
        """A sentence on what went wrong, unless it broke the device."""
        message = super().failure(error)
        try:
            self.peer.clock.check()
        except Exception:
            print(f"the device failed: {message}", file=sys.stderr, flush=True)
            os._exit(1)  # an orderly end would wait for the device
        return message

    def do_sample(self, form: str, count: int) -> dict[str, Any]:  # type: ignore[override]
        """So many replays: seconds of a launch, and clock rates."""
        return self._samples(self._timed[form], count)

    def _samples(self, timed: Timed, count: int) -> dict[str, Any]:
        clock = self.peer.clock
        clock.sample(timed)  # others had the device since
        found = [clock.sample(timed) for _ in range(count)]
        seconds = [float(f"{sample.seconds:.6g}") for sample in found]
        reasons = [list(sample.held_down) for sample in found]
        return {"samples": seconds, "mhz": [sample.mhz for sample in found], "held_down": reasons}

    def do_probes(self) -> dict[str, Any]:
        """What the peer finds out of the device's limits."""
        return {"probes": [self._probe(probe) for probe in self.peer.probes()]}

    def _probe(self, probe: Probe) -> dict[str, Any]:
        about = {"name": probe.name, "rate": probe.rate, "amount": probe.amount}
        try:
            timed = self.peer.clock.timed([probe.make()], 1)
            return {**about, "samples": self._samples(timed, _PROBED)["samples"]}
        except Exception as error:
            return {**about, "samples": [], "error": self.failure(error)}
        finally:
            self.peer.close()

    def do_latencies(self) -> dict[str, Any]:
        """What the peer finds out of the cost of a launch."""
        return {"latencies": self.peer.latencies()}

    def do_close(self) -> dict[str, Any]:
        """Forget the task; whether another process had better go on."""
        self._timed = {}
        super().do_close()
        self.peer.close()
        return {"spoiled": self.peer.clock.spoiled}
