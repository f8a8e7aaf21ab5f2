"""A problem's arrays at one placement: kernels run there, and what they wrote is looked at."""

from __future__ import annotations

from tcl.tuner.measure.backend import CompiledKernel, Problem
from tcl.tuner.measure.correctness import Array
from tcl.tuner.measure.harness import Run
from tcl.tuner.measure.placement import Placement


class PlacedArrays:
    """Copies of a problem's arrays, so that a kernel that writes into its inputs cannot spoil the
    originals."""

    def __init__(self, problem: Problem, placement: Placement) -> None:
        self.name = placement.name
        self._problem = problem
        bench = problem.bench
        self._inputs = tuple(bench.guarded(a, placement) for a in problem.inputs)
        self._outputs = tuple(bench.guarded(o, placement) for o in problem.outputs)
        self._restore()
        self._checksums = [g.checksum() for g in self._inputs]

    def call(self, kernel: CompiledKernel) -> Run:
        """A call of a kernel here."""
        return self._problem.bench.bound(kernel, self._inputs, self._outputs)

    def poison(self, *, second: bool) -> None:
        """Before a call that is looked at; ``second``: with another poison."""
        for guarded in self._outputs:
            guarded.poison(second=second)
        self.reset()

    def reset(self) -> None:
        """Give outputs that the kernel starts from their first contents."""
        problem = self._problem
        for guarded, like, used in zip(
            self._outputs, problem.outputs, problem.initialised, strict=True
        ):
            if used:
                guarded.hold(like)

    def values(self) -> list[Array]:
        """What the outputs hold: memory that the next call writes to."""
        return [guarded.values() for guarded in self._outputs]

    def stray(self) -> str | None:
        """What was written beside outputs, once ``values`` was asked for."""
        for name, guarded in zip(self._problem.names, self._outputs, strict=True):
            if not guarded.intact():
                return f"the kernel wrote outside of output {name}"
        return None

    def changed(self) -> bool:
        """Whether inputs are not as they were; afterwards they are."""
        if [g.checksum() for g in self._inputs] == self._checksums:
            return False
        self._restore()
        return True

    def _restore(self) -> None:
        for guarded, original in zip(self._inputs, self._problem.inputs, strict=True):
            guarded.hold(original)
