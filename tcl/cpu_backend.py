"""The CPU backend as the tuner sees it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tcl.arguments import Array
from tcl.codegen import ir
from tcl.codegen.cpu.compile import compile_object
from tcl.codegen.cpu.emit import emit
from tcl.codegen.cpu.kept import decode, encode
from tcl.codegen.cpu.kernel import layouts, to_keep
from tcl.codegen.cpu.launch import Launcher
from tcl.codegen.device import CpuProfile, host_cpu
from tcl.codegen.dtypes import numpy_dtype
from tcl.codegen.errors import CompileError
from tcl.codegen.ir_print import show
from tcl.codegen.lower import lower
from tcl.codegen.options import MappingOptions
from tcl.codegen.schedule import schedule
from tcl.codegen.worth import with_threads_worth
from tcl.executor import contiguous
from tcl.grammar.check import check
from tcl.grammar.ranges import infer
from tcl.grammar.sized import SizedDef
from tcl.tuner.backend import Problem
from tcl.tuner.verify import accumulation_depths


@dataclass(frozen=True, slots=True)
class Layout:
    """An input's shape, strides in bytes, and element type's name."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CpuBackend:
    """One def on one set of inputs. Small, as it travels with every task: the inputs lie in
    files of a folder, which has to outlive the tuning run, or, for another machine, in here."""

    source: str
    entry: str
    inputs: tuple[Layout, ...]
    folder: str
    threads: int = 1
    """That kernels run on, at most."""
    values: tuple[bytes, ...] = field(default=(), repr=False)
    """Of the inputs, if they are not in the folder."""

    @classmethod
    def create(
        cls, source: str, entry: str, arrays: Sequence[Array], folder: str, threads: int = 1
    ) -> CpuBackend:
        """A backend for these inputs, whose values are saved in ``folder``."""
        for position, array in enumerate(arrays):
            stored = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            np.save(_file(folder, position), stored)
        return replace(cls.described(source, entry, arrays, threads), folder=folder)

    @classmethod
    def described(
        cls, source: str, entry: str, arrays: Sequence[Array], threads: int = 1
    ) -> CpuBackend:
        """A backend that knows what these inputs are like and not their values: it can say how
        options map the def, and compile, but run nothing."""
        layouts_ = tuple(Layout(a.shape, a.strides) for a in arrays)
        return cls(source, entry, layouts_, "", threads)

    @property
    def sized(self) -> SizedDef:
        """The definition with its sizes."""
        return _sized(self.source, self.entry, tuple(i.shape for i in self.inputs))

    @property
    def device(self) -> CpuProfile:
        """This CPU, with that many threads."""
        return replace(host_cpu(), threads=self.threads)

    def program(self) -> ir.Program:
        """The loop nests that options map, before anything is done to them."""
        return lower(self.sized, self._layouts())

    def _layouts(self) -> dict[str, ir.Layout]:
        sized = self.sized
        strides = {
            t.name: i.strides for t, i in zip(sized.checked.inputs, self.inputs, strict=True)
        }
        return layouts(sized, strides, aligned=True)

    def compile(self, options: MappingOptions) -> bytes:
        """Object code and what else a run needs."""
        program, device = self._scheduled(options)
        source = emit(program, device)
        return encode(to_keep(program, source, compile_object(source.text, device), device))

    def explained(self, options: MappingOptions) -> dict[str, str]:
        """What becomes of the def with these options, as texts by title."""
        program, device = self._scheduled(options)
        return {"Loop program": show(program), "LLVM IR": emit(program, device).text}

    def _scheduled(self, options: MappingOptions) -> tuple[ir.Program, CpuProfile]:
        device = self.device
        if self.threads > 1:
            device = with_threads_worth(self.program(), device)
        return schedule(self.sized, options, device, self._layouts()), device

    def load(self, code: bytes) -> _Kernel:
        """The kernel in this process."""
        kept = decode(code)
        if kept is None:
            raise CompileError("the kernel arrived damaged")
        checked = self.sized.checked
        return _Kernel(Launcher(kept, [t.name for t in checked.inputs + checked.outputs]))

    def problem(self) -> Problem:
        """The inputs, read from their files, and outputs to write to."""
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
        )

    def portable(self) -> CpuBackend:
        """See ``tcl.tuner.backend.Backend``."""
        values = tuple(self._stored(position).tobytes() for position in range(len(self.inputs)))
        return replace(self, folder="", values=values)

    def _stored(self, position: int) -> Array:
        """The bytes of an input."""
        if self.values:
            return np.frombuffer(self.values[position], np.uint8)
        stored: Array = np.load(_file(self.folder, position), allow_pickle=False)
        return stored

    def reference(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the outputs with the reference backend."""
        from tcl.codegen.reference import compile_reference

        compile_reference(self.sized)(inputs, outputs)


def _file(folder: str, position: int) -> Path:
    return Path(folder) / f"{position}.npy"


class _Kernel:
    """Loaded code."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        self._launcher((*inputs, *outputs))


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
