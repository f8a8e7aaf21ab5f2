"""Where candidates are compiled and measured: on this machine, or wherever an executor leads.

A workplace makes two executors, of which the pipeline knows nothing but that they are ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from typing import Any, Protocol

from tcl.common.errors import CompileError
from tcl.tuner.measure.backend import Backend
from tcl.tuner.measure.cores import available_cores, split_cores
from tcl.tuner.measure.correctness import Expected
from tcl.tuner.measure.evaluate import Reference, compute_reference, set_up
from tcl.tuner.measure.timing import MeasureSettings
from tcl.workers.pool import WorkerDiedError, WorkerPool
from tcl.workers.process_memory import allowance


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


@dataclass(frozen=True, slots=True)
class Compilers:
    """An executor that compiles, and how many tasks at a time it gets."""

    executor: Executor
    width: int
    in_turns: bool = False
    """Whether it shares cores with the evaluator: they must not work at the same time."""


@dataclass(frozen=True, slots=True)
class Stages:
    compilers: tuple[Compilers, ...]
    evaluator: Executor
    evaluators: int
    """Tasks that ``evaluator`` runs at a time: one per device."""
    close: Callable[[], object]
    """Ends both at once, whatever they do."""


class Workplace(Protocol):
    def open(self, orders: Orders) -> Stages:
        """Begin."""


class Here:
    """This machine. ``helped``: where cores are left to compile on, those that measure compile as
    well, in turns. ``first``: pools, as of ``first_pools``, that have begun: they know the def,
    have loaded what compiles, and compile from now on."""

    def __init__(self, *, helped: bool = True, first: Sequence[WorkerPool] = ()) -> None:
        self._helped = helped
        self._first = first

    def open(self, orders: Orders) -> Stages:
        """See ``Workplace``; ``ArgumentError`` for more cores than there are."""
        compile_cores, measure_cores = split_cores(available_cores(), orders.measure_cores)
        in_turns = not set(compile_cores).isdisjoint(measure_cores)
        width = orders.processes or len(compile_cores)
        places = [(width, compile_cores, in_turns, 2 * width)]
        if self._helped and not orders.processes and not in_turns:
            processes = 2 * (len(compile_cores) + len(measure_cores))
            places.append((len(measure_cores), measure_cores, True, processes))
        compilers: list[WorkerPool] = []
        for position, (workers, cores, _, processes) in enumerate(places):
            begun = position < len(self._first)
            pool = self._first[position] if begun else WorkerPool(workers, cpus=cores)
            pool.limit(workers, orders.compile_timeout, allowance(0, 0, processes))
            compilers.append(pool)
        evaluator = WorkerPool(
            1,
            initializer=set_up,
            initargs=(orders.backend.runner(), orders.expected, orders.timing),
            timeout=orders.run_timeout,
            memory=allowance(orders.size, orders.measure_cores, 2),  # as much as all compilers
            cpus=measure_cores,
        )

        def close() -> None:
            for pool in (*compilers, evaluator):
                pool.kill()

        each = zip(compilers, places, strict=True)
        return Stages(
            tuple(Compilers(pool, pool.workers, turns) for pool, (_, _, turns, _) in each),
            evaluator,
            1,
            close,
        )


def awaited_reference(
    executor: Executor, backend: Backend[Any], over: Callable[[], bool]
) -> Reference | None:
    """``compute_reference`` in a process of an executor; None if it is ``over`` before, also where
    the process ends then, as what asks a command to end may ask all of its processes."""
    computing = executor.submit(compute_reference, backend)
    while not wait([computing], timeout=0.05).done:
        if over():
            return None
    try:
        return computing.result()
    except WorkerDiedError as error:
        if over():
            return None
        raise CompileError(f"the reference kernel could not be run: {error}") from None


def first_pools(measure_cores: int) -> list[WorkerPool]:
    """A process to compute the reference, where ``Here`` compiles; and where other cores measure,
    those that compile there in turns: as long as nothing can be measured, they need not wait."""
    compiling, measuring = split_cores(available_cores(), measure_cores)
    apart = set(compiling).isdisjoint(measuring)
    return [
        WorkerPool(1, cpus=compiling),
        *([WorkerPool(len(measuring), cpus=measuring)] if apart else []),
    ]


def check_cores(measure_cores: int) -> Sequence[int]:
    """The cores of this machine that kernels are measured on; ``ArgumentError`` if there are too
    few."""
    return split_cores(available_cores(), measure_cores)[1]
