"""A backend with stop watches. A module of its own, as worker processes import it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tcl.backends.cpu_backend import CpuBackend
from tcl.codegen.common.rounding import Rounding
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import ComputedElements
from tcl.tuner.measure.backend import CompiledKernel, Problem
from tcl.tuner.measure.correctness import Array


@dataclass(frozen=True, slots=True)
class TimedBackend:
    """Notes, in files of the backend's folder, how long kernels run and what compiling takes."""

    backend: CpuBackend

    def compile(self, options: MappingOptions) -> bytes:
        """See ``Backend``."""
        begin = time.process_time()
        try:
            return self.backend.compile(options)
        finally:
            self._note("compiles.txt", time.process_time() - begin)

    def load(self, code: bytes) -> CompiledKernel:
        """See ``Backend``."""
        global _last
        if _last is not None:
            self._note("kernels.txt", _last.first, _last.others)
        _last = _TimedKernel(self.backend.load(code))
        return _last

    def problem(self) -> Problem:
        """See ``Backend``."""
        return self.backend.problem()

    def reference(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> ComputedElements:
        """See ``Backend``."""
        return self.backend.reference(inputs, outputs)

    def roundings(self, inputs: Sequence[Array]) -> Sequence[Rounding]:
        """See ``Backend``."""
        return self.backend.roundings(inputs)

    def portable(self) -> CpuBackend:
        """See ``Backend``; elsewhere nothing is noted."""
        return self.backend.portable()

    def sums(self, name: str) -> list[float]:
        """What was noted in a file, added up by column."""
        lines = (Path(self.backend.folder) / name).read_text().splitlines()
        columns = zip(*(map(float, line.split()) for line in lines), strict=True)
        return [sum(column) for column in columns]

    def _note(self, name: str, *seconds: float) -> None:
        line = " ".join(map(str, seconds)) + "\n"
        with (Path(self.backend.folder) / name).open("a") as file:
            file.write(line)


class _TimedKernel:
    def __init__(self, kernel: CompiledKernel) -> None:
        self._kernel = kernel
        self.first = self.others = 0.0
        self._called = False

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        begin = time.perf_counter()
        self._kernel(inputs, outputs)
        spent = time.perf_counter() - begin
        if self._called:
            self.others += spent
        else:
            self.first, self._called = spent, True


_last: _TimedKernel | None = None
"""The kernel that this process loaded last."""
