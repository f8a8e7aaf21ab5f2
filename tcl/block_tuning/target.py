"""What the tuning of launch shapes asks of a kernel and of the device that it runs on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tcl.block_tuning.arguments import Arrays
from tcl.block_tuning.candidates import Block, LaunchShape
from tcl.tuner.measure.cores import Others
from tcl.tuner.measure.harness import Run
from tcl.tuner.measure.timing import MeasureSettings
from tcl.tuner.measure.verdict import Verdict


class LaunchTarget(ABC):
    """A kernel on a device, for one global size."""

    arrays: Arrays
    settings: MeasureSettings
    """How its launches are timed."""
    name: str

    @property
    @abstractmethod
    def source(self) -> str | None:
        """What tells the kernel from others, as text; None if nothing does."""

    @property
    @abstractmethod
    def device(self) -> str:
        """What measured times depend on."""

    @abstractmethod
    def blocks(self) -> tuple[Block, ...]:
        """Candidates where nobody named any; the first is the fixed default."""

    @abstractmethod
    def why_not_asked(self, candidate: LaunchShape) -> str | None:
        """Why the device can never launch it, in a sentence: known before anything is compiled."""

    def why_not(self, candidate: LaunchShape) -> str | None:
        """Likewise, of the compiled kernel: known before anything runs. Raises what compiling
        raises."""
        return None

    @abstractmethod
    def launched(self, candidate: LaunchShape) -> tuple[Block, int]:
        """How many blocks its grid has, and the bytes of shared memory of each."""

    @abstractmethod
    def bound(self, candidate: LaunchShape, arguments: Sequence[Any]) -> Run:
        """A launch. Raises ``ArgumentError`` for arguments that the kernel does not take."""

    def launch(self, candidate: LaunchShape, arguments: Sequence[Any]) -> None:
        """Launch it as the user would."""
        self.bound(candidate, arguments)()

    @abstractmethod
    def check(self, arguments: Sequence[Any]) -> None:
        """Raise ``ArgumentError`` for arguments that the kernel does not take, or while nothing
        can be measured."""

    def trial(self, run: Run, limit: float) -> tuple[Verdict, str] | None:
        """How a launch failed that did no harm to this process, and what happened, in a sentence;
        None if it ended within ``limit`` seconds, or where nothing can tell that before."""
        return None

    def synchronise(self) -> None:
        """Wait for all that was launched on the device. Raises what a kernel's failure raises."""
        return

    @abstractmethod
    def seconds(self, run: Run, calls: int) -> float:
        """As a ``tcl.tuner.measure.harness.Timer``."""

    @abstractmethod
    def empty_launch(self) -> Callable[[], object]:
        """A launch that does no work: what launching takes."""

    @abstractmethod
    def alone(self) -> AbstractContextManager[object]:
        """A block in which nobody else of ours measures on the device."""

    def others(self) -> Others | None:
        """What other processes do meanwhile; None if that cannot be known."""
        return None

    def lost(self) -> bool:
        """Whether nothing runs on the device in this process any more."""
        return False
