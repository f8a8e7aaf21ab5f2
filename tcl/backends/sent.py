"""What is sent to a process that runs kernels and compiles none: arrays, and compiled code.

It has no definition, and loads neither grammar nor compiler: so it is ready in half of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tcl.codegen.common.envelope import unseal
from tcl.codegen.common.rounding import Rounding
from tcl.codegen.cpu.object_code.kernel_code import KernelCode
from tcl.codegen.cpu.run.launch import Launcher
from tcl.common.errors import CompileError
from tcl.common.lazy import Lazy
from tcl.tuner.measure.backend import CompiledKernel, Problem
from tcl.tuner.measure.correctness import Array
from tcl.tuner.measure.harness import Bench

if TYPE_CHECKING:
    from tcl.backends import sized as sized_defs
    from tcl.codegen import reference
else:
    sized_defs, reference = Lazy("tcl.backends.sized"), Lazy("tcl.codegen.reference")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Like:
    """What an array is like."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes; of no matter for outputs."""
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class SentProblem:
    """A ``Problem`` whose inputs lie in files of a folder, or in here."""

    inputs: tuple[Like, ...]
    outputs: tuple[Like, ...]
    names: tuple[str, ...]
    """Of the outputs, as the other fields."""
    initialised: tuple[bool, ...]
    depths: tuple[int, ...]
    folder: str
    values: tuple[bytes, ...] = field(default=(), repr=False)
    """Of the inputs, if they are not in the folder."""

    def on(self, bench: Bench) -> Problem:
        """The inputs, and outputs to write to."""
        return Problem(
            inputs=tuple(
                with_strides(self.stored(k).view(like.dtype).reshape(like.shape), like.strides)
                for k, like in enumerate(self.inputs)
            ),
            outputs=tuple(np.zeros(like.shape, like.dtype) for like in self.outputs),
            names=self.names,
            initialised=self.initialised,
            depths=self.depths,
            bench=bench,
        )

    def stored(self, position: int) -> Array:
        """The bytes of an input."""
        if self.values:
            return np.frombuffer(self.values[position], np.uint8)
        found: Array = np.load(file_of(self.folder, position), allow_pickle=False)
        return found


@dataclass(frozen=True, slots=True)
class CpuRunner:
    """Runs kernels of ``CpuBackend``."""

    sent: SentProblem
    tensors: tuple[str, ...]
    """The names of inputs and outputs."""
    source: str
    """Of the def, and ..."""
    entry: str
    """... its name: read only if a result has to be looked at again."""
    bench: Bench
    sizes: tuple[tuple[str, int], ...] = ()
    """Those that vary, of the arrays, by their names."""

    def problem(self) -> Problem:
        """See ``tcl.tuner.measure.backend.Runner``."""
        return self.sent.on(self.bench)

    def load(self, code: bytes) -> CompiledKernel:
        """See ``tcl.tuner.measure.backend.Runner``."""
        found = arrived(KernelCode, code)
        launcher = Launcher(found, list(self.tensors))
        if self.sizes:
            launcher = launcher.at(found.at(dict(self.sizes)))
        return lambda inputs, outputs: launcher((*inputs, *outputs))

    def roundings(self, inputs: Sequence[Array], *, briefly: bool) -> Sequence[Rounding]:
        """See ``tcl.tuner.measure.backend.Runner``."""
        sized = sized_defs.sized_once(self.source, self.entry, tuple(a.shape for a in inputs))
        return reference.roundings(sized, inputs, self.problem().outputs, briefly=briefly)


def arrived(class_: type[_T], content: bytes) -> _T:
    """What was sealed elsewhere. Raises ``CompileError`` for anything else."""
    found = unseal(class_, content)
    if found is None:
        raise CompileError("the kernel arrived damaged")
    return found


def file_of(folder: str, position: int) -> Path:
    """Where an input lies."""
    return Path(folder) / f"{position}.npy"


def with_strides(values: Array, strides: Sequence[int]) -> Array:
    """A copy of contiguous ``values`` in memory laid out by ``strides``, in bytes."""
    if tuple(strides) == values.strides or values.size == 0:
        return values.copy()
    reach = [s * (n - 1) for s, n in zip(strides, values.shape, strict=True)]
    below, above = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    memory: Any = np.zeros(above - below + values.itemsize, np.uint8)
    result: Array = np.ndarray(values.shape, values.dtype, memory, -below, tuple(strides))
    result[...] = values
    return result
