"""What the backends of all machines are to the tuner: one def on one set of inputs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tcl.arrays.arguments import Array
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.codegen.common.envelope import unseal
from tcl.codegen.common.errors import CompileError
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.lower import lower
from tcl.executors.calls import contiguous
from tcl.grammar.check import check
from tcl.grammar.ranges import infer
from tcl.grammar.sized import SizedDef
from tcl.tuner.cache.key import ArrayLayout
from tcl.tuner.measure.backend import Problem
from tcl.tuner.measure.correctness import accumulation_depths
from tcl.tuner.measure.harness import Bench

if TYPE_CHECKING:
    from tcl.codegen.reference import Computed

_B = TypeVar("_B", bound="ProgramBackend")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Layout:
    """An input's shape, and strides in bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProgramBackend:
    """One def on one set of inputs. Small, as it travels with every task: the inputs lie in
    files of a folder, which has to outlive the tuning run, or, for another machine, in here."""

    source: str
    entry: str
    inputs: tuple[Layout, ...]
    folder: str

    values: tuple[bytes, ...] = field(default=(), repr=False, kw_only=True)
    """Of the inputs, if they are not in the folder."""

    @classmethod
    def described(
        cls: type[_B], source: str, entry: str, arrays: Sequence[Array | ArrayLayout], *device: Any
    ) -> _B:
        """A backend that knows what these inputs are like and not their values: it can say how
        options map the def, and compile, but run nothing. ``device``: the class's own fields."""
        layouts = tuple(Layout(a.shape, a.strides) for a in arrays)
        return cls(source, entry, layouts, "", *device)

    def holding(self: _B, arrays: Sequence[Array], folder: str) -> _B:
        """The same with these inputs' values, which are saved in ``folder``."""
        for position, array in enumerate(arrays):
            stored = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            np.save(_file(folder, position), stored)
        return replace(self, folder=folder)

    @property
    def sized(self) -> SizedDef:
        """The definition with its sizes."""
        return _sized(self.source, self.entry, tuple(i.shape for i in self.inputs))

    def layouts(self) -> dict[str, ir.Layout]:
        """How all tensors lie in memory."""
        raise NotImplementedError

    def program(self) -> ir.Program:
        """The loop nests that options map, before anything is done to them."""
        return lower(self.sized, self.layouts())

    def strides(self) -> dict[str, tuple[int, ...]]:
        """Of the inputs, by name."""
        inputs = self.sized.checked.inputs
        return {t.name: i.strides for t, i in zip(inputs, self.inputs, strict=True)}

    def problem(self) -> Problem:
        """The inputs, read from their files, and outputs to write to."""
        return self._problem(Bench())

    def _problem(self, bench: Bench) -> Problem:
        sized = self.sized
        checked = sized.checked
        arrays = []
        for position, (tensor, layout) in enumerate(zip(checked.inputs, self.inputs, strict=True)):
            values = self._stored(position).view(numpy_dtype(tensor.type)).reshape(layout.shape)
            arrays.append(_with_strides(values, layout.strides))
        outputs = tuple(
            np.zeros(sized.shapes[t.name], numpy_dtype(t.type)) for t in checked.outputs
        )
        depths = accumulation_depths(sized)
        return Problem(
            inputs=tuple(arrays),
            outputs=outputs,
            names=tuple(t.name for t in checked.outputs),
            initialised=tuple(t.name in checked.uninitialised for t in checked.outputs),
            depths=tuple(depths[t.name] for t in checked.outputs),
            bench=bench,
        )

    def portable(self: _B) -> _B:
        """See ``tcl.tuner.measure.backend.Backend``."""
        values = tuple(self._stored(position).tobytes() for position in range(len(self.inputs)))
        return replace(self, folder="", values=values)

    def _stored(self, position: int) -> Array:
        """The bytes of an input."""
        if self.values:
            return np.frombuffer(self.values[position], np.uint8)
        stored: Array = np.load(_file(self.folder, position), allow_pickle=False)
        return stored

    def reference(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Computed:
        """Compute the outputs with the reference backend, of large ones a sample."""
        from tcl.codegen.reference import compute

        return compute(self.sized, inputs, outputs)


def arrived(class_: type[_T], content: bytes) -> _T:
    """What was sealed elsewhere. Raises ``CompileError`` for anything else."""
    found = unseal(class_, content)
    if found is None:
        raise CompileError("the kernel arrived damaged")
    return found


def _file(folder: str, position: int) -> Path:
    return Path(folder) / f"{position}.npy"


@functools.lru_cache(maxsize=8)
def _sized(source: str, entry: str, shapes: tuple[tuple[int, ...], ...]) -> SizedDef:
    checked = check(source)[entry]
    return infer(checked, {t.name: s for t, s in zip(checked.inputs, shapes, strict=True)})


def _with_strides(values: Array, strides: tuple[int, ...]) -> Array:
    """A copy of ``values`` in memory laid out by ``strides``."""
    if strides == contiguous(values.shape, values.itemsize) or values.size == 0:
        return values.copy()
    reach = [s * (n - 1) for s, n in zip(strides, values.shape, strict=True)]
    below, above = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    memory: Any = np.zeros(above - below + values.itemsize, np.uint8)
    result: Array = np.ndarray(values.shape, values.dtype, memory, -below, strides)
    result[...] = values
    return result
