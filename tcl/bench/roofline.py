"""What the machine can do, measured once and kept; and how near to it a time comes."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tcl.bench.ceilings import Ceilings, Meter
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir.cost import Cost
from tcl.common.folder import cache_folder, keep, read_kept
from tcl.tuner.cache.fingerprint import device_identity
from tcl.tuner.measure.cores import available_cores
from tcl.workers.pool import WorkerDiedError, WorkerPool, WorkerTimeoutError

_FILE = "ceilings.json"
_RATES = ("read", "copy", "flops")
_SAMPLES = 6
"""Least number of samples."""
_WITNESSES = 3
"""Samples that have to come near the best of each rate: a machine that does something else, too,
never gets there twice."""
_NEAR = 0.9
_PATIENCE = 2.0
"""Seconds of sampling, at most."""
_INTENSE = 10.0
"""Operations per byte from which on arithmetic is taken to be what limits a def, on a machine that
was not measured."""
_FAILED = "not measured: "
"""Before a machine in the file, where measuring it failed; its value is when that was."""
_HOUR = 3600.0
_ROUNDING = 1.02
"""No time is nearer to the roofline than this: the measurement of one of them was disturbed."""


@dataclass(frozen=True, slots=True)
class MeasuredMachine:
    """What was measured, and when."""

    ceilings: Ceilings
    when: float
    """Seconds since the epoch."""


def kept_ceilings(threads: int, folder: Path | None = None) -> MeasuredMachine | None:
    """What this machine can do with so many threads, if it was measured before."""
    found = read_kept(folder or cache_folder(), _FILE).get(_identity(threads), {})
    try:
        rates = [float(found[name]) for name in (*_RATES, "when")]
        narrow = {str(k): float(v) for k, v in found["products"].items()}
    except (TypeError, KeyError, ValueError, AttributeError):
        return None
    if not all(math.isfinite(r) and r > 0 for r in (*rates, *narrow.values())):
        return None
    read, copy, flops, when = rates
    return MeasuredMachine(Ceilings(read, copy, flops, narrow), when)


def failed_lately(threads: int, folder: Path | None = None) -> bool:
    """Whether measuring with so many threads failed within the last hour, so that trying it again
    is likely to take seconds for nothing."""
    when = read_kept(folder or cache_folder(), _FILE).get(_FAILED + _identity(threads))
    return isinstance(when, int | float) and 0 <= time.time() - when < _HOUR


def measure_ceilings(
    threads: int,
    folder: Path | None = None,
    sample: Callable[[int], list[Ceilings]] | None = None,
) -> MeasuredMachine | None:
    """Measure what this machine can do with so many threads (some seconds), and keep it.

    Whatever else the machine does makes it look slower, so the best of many short readings of each
    rate counts, those of earlier times included. None if the machine is so busy that samples do not
    agree, or short of memory; that is kept, too. What cannot be kept is measured again next time.
    """
    samples = (sample or _sampled_apart)(threads)
    folder = folder or cache_folder()
    identity = _identity(threads)
    if not _agree(samples):
        keep(folder, _FILE, {_FAILED + identity: time.time()})
        return None
    before = kept_ceilings(threads, folder)
    if before is not None:
        samples = [*samples, before.ceilings]
    known = MeasuredMachine(Ceilings.best(samples), time.time())
    data = {**dataclasses.asdict(known.ceilings), "when": known.when}
    keep(folder, _FILE, {identity: data, _FAILED + identity: None})
    return known


@dataclass(frozen=True, slots=True)
class Roofline:
    """What a def has to do, and what the machine can."""

    cost: Cost
    ceilings: Ceilings | None
    """None where they were not measured."""
    cached: int
    """Bytes that stay in the caches of the cores from one call to the next."""

    @staticmethod
    def for_cost(cost: Cost, known: MeasuredMachine | None, threads: int) -> Roofline:
        """The yardstick for a def with this cost, on this machine with so many threads."""
        ceilings = None if known is None else known.ceilings
        return Roofline(cost, ceilings, host_cpu().l2_bytes * threads)

    @property
    def from_memory(self) -> bool:
        """Whether the data is too large for the cores' own caches."""
        return self.cost.bytes_moved > self.cached

    @property
    def limited_by_memory(self) -> bool:
        """Whether moving the data takes longer than computing with it, at best."""
        if not self.cost.operations:
            return True
        if self.ceilings is None:
            return self.from_memory and self.cost.operations < _INTENSE * self.cost.bytes_moved
        return self.from_memory and self._moving > self._computing

    @property
    def _computing(self) -> float:
        return self.ceilings.computing(self.cost) if self.ceilings else 0.0

    @property
    def _moving(self) -> float:
        return self.ceilings.moving(self.cost) if self.ceilings else 0.0

    def share(self, seconds: float) -> float | None:
        """The least time that the machine allows over this one, as in the roofline model
        (Williams, Waterman and Patterson 2009); None where that is not known.

        Data that stays in the cores' own caches costs nothing in it. A time that beats memory
        shows that the data was in a cache that they share, and one that beats arithmetic that the
        machine was busy when it was measured: then the share is not known.
        """
        least = max(self._computing, self._moving if self.from_memory else 0.0)
        if self.ceilings is None or least == 0.0 or least > _ROUNDING * seconds:
            return None
        return min(1.0, least / seconds)

    def beaten(self, seconds: float) -> bool:
        """Whether a time shows that the machine can compute faster than was measured."""
        return self._computing > _ROUNDING * seconds

    def rate(self, seconds: float) -> str:
        """What is done per second, of what limits the def: ``12.3 GFLOP/s`` (``GOP/s`` of integers)
        or ``4.5 GB/s``."""
        if self.limited_by_memory:
            return quantity(self.cost.bytes_moved / seconds, "B/s")
        return quantity(self.cost.operations / seconds, f"{self.cost.operation_unit}/s")

    def describe(self, seconds: float) -> str:
        """The rate, and the share of the roofline where it is known."""
        share = self.share(seconds)
        if share is not None:
            return f"{self.rate(seconds)}, {share:.0%} of the roofline"
        if self.beaten(seconds):
            return f"{self.rate(seconds)}, more than the measured peak of this machine"
        if self.ceilings is not None and self.limited_by_memory:
            return f"{self.rate(seconds)}, from the caches"
        return self.rate(seconds)


def quantity(value: float, unit: str) -> str:
    """A number for people: ``1.23 GFLOP``."""
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def describe_ceilings(ceilings: Ceilings) -> str:
    """The machine's roofline in words."""
    narrow = "".join(
        f", {quantity(rate, 'FLOP/s' if 'float' in kind else 'OP/s')} of {kind}"
        for kind, rate in ceilings.products.items()
    )
    return (
        f"{quantity(ceilings.flops, 'FLOP/s')}{narrow}; memory: "
        f"{quantity(ceilings.read, 'B/s')} read, {quantity(ceilings.copy, 'B/s')} copied"
    )


def _sampled_apart(threads: int) -> list[Ceilings]:
    """In a process of its own: it takes memory, and must not take this one with it."""
    pool = WorkerPool(1, timeout=_PATIENCE + 60.0)
    try:
        return pool.submit(_sample, threads).result()
    except (WorkerDiedError, WorkerTimeoutError, MemoryError):
        return []
    finally:
        pool.kill()


def _sample(threads: int) -> list[Ceilings]:
    cores = available_cores()
    meter = Meter(cores[len(cores) - threads :])  # those that the tuner measures on
    samples: list[Ceilings] = []
    begin = time.monotonic()
    try:
        while time.monotonic() - begin < _PATIENCE:
            samples.append(meter.sample())
            if len(samples) >= _SAMPLES and _agree(samples):
                break
        return samples
    finally:
        meter.close()


def _agree(samples: Sequence[Ceilings]) -> bool:
    if len(samples) < _WITNESSES:
        return False
    best = Ceilings.best(samples)
    return all(
        sum(getattr(s, k) >= _NEAR * getattr(best, k) for s in samples) >= _WITNESSES
        for k in _RATES
    )


def _identity(threads: int) -> str:
    return device_identity(replace(host_cpu(), threads=threads))
