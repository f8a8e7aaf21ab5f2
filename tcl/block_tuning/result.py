"""What a tuning of launch shapes found."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from tcl.block_tuning.candidates import Block, LaunchShape
from tcl.codegen.options.knobs import Value
from tcl.tuner.measure.verdict import Verdict


@dataclass(frozen=True, slots=True)
class BlockTiming:
    """The result of one candidate."""

    block: Block
    defines: dict[str, Value]
    verdict: Verdict
    times: tuple[float, ...] = ()
    """Seconds per launch of each sample. If the candidate took part in the finals, samples of the
    last round."""
    message: str = ""
    """What is wrong, or why the candidate was not timed further."""

    @property
    def time_us(self) -> float | None:
        """Median of the samples in microseconds; None without samples."""
        return median(self.times) * 1e6 if self.times else None

    @property
    def candidate(self) -> LaunchShape:
        """The launch shape."""
        return LaunchShape(self.block, tuple(self.defines.items()))


@dataclass(frozen=True, slots=True)
class BlockTuningResult:
    """The best launch shape of a kernel, and all measurements."""

    block: Block
    """Threads of a block along x, y, z; on a CPU, the size of a chunk."""
    defines: dict[str, Value]
    """The values of the source's macros."""
    grid: Block
    """Blocks along x, y, z; on a CPU the number of chunks."""
    runtime_us: float
    """Median time of a launch in microseconds."""
    timings: tuple[BlockTiming, ...]
    """All candidates, fastest first, then those that failed."""
    launch_bound: bool = False
    """Whether the launch takes most of the time. Then nothing else was tried, and the block is a
    fixed default."""
    notes: tuple[str, ...] = ()
    """Reasons why the times may be unreliable."""
    cached: bool = False
    """Whether the result comes from an earlier tuning."""

    @property
    def candidate(self) -> LaunchShape:
        """The best launch shape."""
        return LaunchShape(self.block, tuple(self.defines.items()))

    def __str__(self) -> str:
        shape = self.candidate
        how = ", launch-bound" * self.launch_bound + ", cached" * self.cached
        return f"block {shape}: {self.runtime_us:.4g} µs{how}"

    def to_json(self) -> str:
        """The result as JSON, without ``cached``."""
        timings = [{**asdict(t), "verdict": t.verdict.value} for t in self.timings]
        return json.dumps({**asdict(self), "timings": timings})

    @classmethod
    def from_json(cls, text: str) -> BlockTuningResult:
        """The inverse of ``to_json``, as a cached result. Raises ``ValueError`` for any other
        text."""
        try:
            data: Any = json.loads(text)
            for each in (data, *data["timings"]):
                each["block"] = _sizes_from(each["block"])
                if not all(isinstance(v, int | str) for v in each["defines"].values()):
                    raise ValueError(f"{each['defines']!r} are not definitions")
            timings = [
                {**t, "verdict": Verdict(t["verdict"]), "times": tuple(map(float, t["times"]))}
                for t in data["timings"]
            ]
            return cls(
                **{
                    **data,
                    "grid": _sizes_from(data["grid"]),
                    "runtime_us": float(data["runtime_us"]),
                    "timings": tuple(BlockTiming(**t) for t in timings),
                    "notes": tuple(map(str, data["notes"])),
                    "cached": True,
                }
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is not a tuning result: {error!r}") from None


def in_order(timings: Iterable[BlockTiming], first: LaunchShape) -> tuple[BlockTiming, ...]:
    """The winner, then the others, fastest first, then those without a time."""

    def order(timing: BlockTiming) -> tuple[bool, bool, float]:
        correct = timing.verdict is Verdict.CORRECT
        return timing.candidate != first, not correct, timing.time_us or 0.0

    return tuple(sorted(timings, key=order))


def _sizes_from(data: Any) -> Block:
    numbers = tuple(data)
    if not numbers or not all(type(n) is int and n > 0 for n in numbers):
        raise ValueError(f"{data!r} are not sizes")
    return numbers
