"""What contenders did on one row."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from tcl.bench.ceilings import Ceilings
from tcl.bench.peers.names import DEFAULT, OURS, TUNED
from tcl.codegen.loopir.cost import Cost


@dataclass(frozen=True, slots=True)
class Entry:
    """One contender on one row."""

    form: str
    """The form that it used: its fastest. Empty if it had none."""
    threads: int
    """That it may have used."""
    samples: tuple[float, ...]
    """Seconds per call, in the order measured. Empty if it failed."""
    setup: float = 0.0
    """Seconds of the first call, compilation included."""
    error: str = ""
    """Why there are no samples; a sentence."""
    other_forms: Mapping[str, float | str] = dataclasses.field(default_factory=dict)
    """The forms that it did not use: seconds per call, or what went wrong."""

    @property
    def seconds(self) -> float | None:
        """Median seconds per call."""
        return median(self.samples) if self.samples else None


@dataclass(frozen=True, slots=True)
class Result:
    """One row with a number of threads."""

    name: str
    kind: str
    file: str
    entry: str
    sizes: Mapping[str, int]
    threads: int
    flops: int
    read: int
    written: int
    entries: Mapping[str, Entry]
    """Contender to what it did."""
    facts: Mapping[str, Any]
    """Of ours: seconds to compile each of a few candidates, and the options used."""
    single: float | None = None
    """``flops`` as ``Cost.single``; None if they are the same."""
    products: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """As ``Cost.products``."""
    placement: str = "aligned"
    """Where arrays began: a name in ``tcl.tuner.measure.placement.PLACEMENTS``."""
    run: int = 1
    """Which one, from 1."""

    @property
    def cost(self) -> Cost:
        """The work that nobody can avoid."""
        single = float(self.flops) if self.single is None else self.single
        return Cost(self.flops, single, self.read, self.written, self.products)

    def fastest(self, names: Collection[str] | None = None) -> tuple[str, float] | None:
        """The fastest of these contenders, by default of all peers, and its seconds."""
        times = [
            (name, entry.seconds)
            for name, entry in self.entries.items()
            if (name not in OURS if names is None else name in names) and entry.seconds is not None
        ]
        return min(times, key=lambda each: each[1], default=None)

    @property
    def best_peer(self) -> tuple[str, float] | None:
        """The fastest peer and its seconds."""
        return self.fastest()

    @property
    def ours(self) -> tuple[str, float] | None:
        """Our best known options, tuned or, where nothing is known, default; and the seconds."""
        for name in (TUNED, DEFAULT):
            entry = self.entries.get(name)
            if entry is not None and entry.seconds is not None:
                return name, entry.seconds
        return None

    def ratio(self, name: str | None = None, peers: Collection[str] | None = None) -> float | None:
        """The best peer's time over ours, with the best known options or those of ``name``; of all
        peers or of these."""
        ours = self.ours if name is None else self.fastest((name,))
        peer = self.fastest(peers)
        return None if ours is None or peer is None else peer[1] / ours[1]

    def gain(self) -> float | None:
        """The default options' time over the tuned ones'; None where nothing is tuned."""
        times = [e.seconds for n in OURS if (e := self.entries.get(n)) is not None]
        if len(times) < 2 or times[0] is None or times[1] is None:
            return None
        return times[0] / times[1]

    def share(self, seconds: float | None, ceilings: Ceilings) -> float | None:
        """The part of the roofline that a time reaches: the least time possible over it. None if
        nothing is known of that."""
        if seconds is None:
            return None
        return ceilings.seconds(self.cost) / seconds or None

    @property
    def compile_seconds(self) -> float | None:
        """Median time to compile a candidate."""
        times = tuple(self.facts.get("compile_seconds", ()))
        return median(times) if times else None
