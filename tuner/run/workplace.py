"""Where candidates are compiled and measured: on this machine, or wherever an executor leads.

A workplace makes two executors, of which the pipeline knows nothing but that they are ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol

from tcl.tuner.measure.backend import Backend
from tcl.tuner.measure.cores import available_cores, split_cores
from tcl.tuner.measure.correctness import Expected
from tcl.tuner.measure.evaluate import set_up
from tcl.tuner.measure.memory_limit import allowance
from tcl.tuner.measure.timing import MeasureSettings
from tcl.workers.pool import WorkerPool


@dataclass(frozen=True, slots=True)
class Orders:
    """What has to be done there. Travels to other machines."""

    backend: Backend[Any]
    expected: tuple[Expected, ...] | None
    """What the outputs have to be; None if that is not known."""
    timing: MeasureSettings
    compile_timeout: float
    run_timeout: float
    """Both in seconds, for one candidate."""
    processes: int
    """That compile on each machine; 0: one for each core."""
    measure_cores: int
    """That a kernel is measured on."""
    size: int = 0
    """Bytes of the inputs and outputs."""
    check: Callable[[], object] | None = None
    """Raises on a machine that is not fit for it."""

    def pools(self) -> tuple[WorkerPool, WorkerPool, bool]:
        """Processes of this machine that compile, and the one that measures; whether they share
        cores and have to take turns. ``ArgumentError`` for more cores than there are."""
        compile_cores, measure_cores = split_cores(available_cores(), self.measure_cores)
        processes = self.processes or len(compile_cores)
        compiler = WorkerPool(
            processes,
            timeout=self.compile_timeout,
            memory=allowance(0, 0, 2 * processes),
            cpus=compile_cores,
        )
        evaluator = WorkerPool(
            1,
            initializer=set_up,
            initargs=(self.backend, self.expected, self.timing),
            timeout=self.run_timeout,
            memory=allowance(self.size, self.measure_cores, 2),  # as much as all compilers
            cpus=measure_cores,
        )
        return compiler, evaluator, not set(compile_cores).isdisjoint(measure_cores)

    def helpers(self) -> WorkerPool | None:
        """Processes that compile on the cores of the one that measures, in turns with it; None
        where all do, or where so many were not asked for."""
        compile_cores, measure_cores = split_cores(available_cores(), self.measure_cores)
        if self.processes or not set(compile_cores).isdisjoint(measure_cores):
            return None
        return WorkerPool(
            len(measure_cores),
            timeout=self.compile_timeout,
            memory=allowance(0, 0, 2 * (len(compile_cores) + len(measure_cores))),
            cpus=measure_cores,
        )


@dataclass(frozen=True, slots=True)
class Compilers:
    """An executor that compiles, and how many tasks at a time it gets."""

    executor: Executor
    width: int
    in_turns: bool = False
    """Whether it shares cores with the evaluator: they must not work at the same time."""


@dataclass(frozen=True, slots=True)
class Stages:
    """Executors at work."""

    compilers: tuple[Compilers, ...]
    evaluator: Executor
    evaluators: int
    """Tasks that ``evaluator`` runs at a time: one per device."""
    close: Callable[[], object]
    """Ends both at once, whatever they do."""


class Workplace(Protocol):
    """A place to work."""

    def open(self, orders: Orders) -> Stages:
        """Begin."""


class Here:
    """This machine."""

    def open(self, orders: Orders) -> Stages:
        """See ``Workplace``; ``ArgumentError`` for more cores than there are."""
        compiler, evaluator, in_turns = orders.pools()
        helpers = orders.helpers()
        compilers = [Compilers(compiler, compiler.workers, in_turns)]
        if helpers is not None:
            compilers.append(Compilers(helpers, helpers.workers, in_turns=True))

        def close() -> None:
            compiler.kill()
            evaluator.kill()
            if helpers is not None:
                helpers.kill()

        return Stages(tuple(compilers), evaluator, 1, close)


def check_cores(measure_cores: int) -> Sequence[int]:
    """The cores of this machine that kernels are measured on; ``ArgumentError`` if there are too
    few."""
    return split_cores(available_cores(), measure_cores)[1]
