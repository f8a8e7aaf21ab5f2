"""CuPy's raw kernels on a device that is made up: the emulator runs their source on the CPU.

Blocks are one-dimensional, as the emulator's are, and arguments are arrays alone. What a launch
takes is said by the test, so that nothing depends on a clock.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from cuda_arrays import on_host

from tcl.block_tuning import raw_kernels
from tcl.codegen.cuda.emit.module import CudaModule, Launch
from tcl.codegen.cuda.emulator import Emulated, compile_modules
from tcl.codegen.devices.gpu import A100, GpuProfile
from tcl.codegen.loopir import ir
from tcl.grammar.syntax.types import scalar_type

cupy: Any = pytest.importorskip("cupy", reason="needs CuPy: pip install '.[cuda]'")

Array = np.ndarray[Any, np.dtype[Any]]
Seconds = Callable[[tuple[int, ...], dict[str, str]], float]


class Kernel(cupy.RawKernel):  # type: ignore[misc]
    """Runs in the emulator, or does what the test says."""

    effect: Callable[..., None] | None = None
    """Takes grid, block and the arrays, instead of the emulator."""
    taken: dict[str, int] | None = None
    """Attributes that differ from those of a small kernel."""
    max_dynamic_shared_size_bytes = 0

    @property
    def attributes(self) -> dict[str, int]:
        small = {"max_threads_per_block": 1024, "num_regs": 32, "shared_size_bytes": 0}
        return {**small, **(type(self).taken or {})}

    @property
    def macros(self) -> dict[str, str]:
        """What its options define."""
        defined = (o[2:].partition("=") for o in self.options if o.startswith("-D"))
        return {name: value for name, _, value in defined}

    def __call__(
        self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared_mem: int = 0
    ) -> None:
        arrays = [on_host(a) for a in args if hasattr(a, "dtype") and a.shape]
        effect = type(self).effect
        if effect is not None:
            effect(tuple(grid), tuple(block), *arrays)
            return
        macros = "".join(f"#define {name} {value}\n" for name, value in self.macros.items())
        emulate(macros + self.code, self.name, math.prod(grid), math.prod(block), arrays)


def emulate(source: str, name: str, blocks: int, threads: int, arrays: Sequence[Array]) -> None:
    """Run a kernel on arrays, all of which it may write."""
    emulated = _compiled(
        source, name, blocks, threads, tuple((a.dtype.name, a.shape) for a in arrays)
    )
    emulated.run({f"t{k}": a for k, a in enumerate(arrays)})


@functools.cache
def _compiled(
    source: str,
    name: str,
    blocks: int,
    threads: int,
    arrays: tuple[tuple[str, tuple[int, ...]], ...],
) -> Emulated:
    tensors = tuple(
        ir.Tensor(
            f"t{k}", ir.Role.OUTPUT, ir.contiguous(scalar_type(type_), shape, (0,) * len(shape))
        )
        for k, (type_, shape) in enumerate(arrays)
    )
    launch = Launch(name, blocks, threads, 0, tuple(t.name for t in tensors))
    return compile_modules([CudaModule(source, (launch,), tensors)], checked=False)[0]


@dataclass
class Device:
    """Runs launches at once; each takes as long as ``seconds`` says of block and macros."""

    seconds: Seconds = lambda block, macros: 1.0 / math.prod(block)
    empty: float = 1e-6
    launched: list[tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    """Grid and block of each launch."""
    done: list[str] = field(default_factory=list)
    captures: bool = False
    broken: str = ""
    """What every call says once the device is lost."""
    _took: float = 0.0

    def launch(
        self, kernel: Any, grid: Any, block: Any, arguments: Sequence[Any], shared: int
    ) -> None:
        if kernel is None:
            self._took += self.empty
            return
        self.done.append("launch")
        self.launched.append((grid, block))
        kernel(grid, block, arguments, shared_mem=shared)
        self._took += self.seconds(block, kernel.macros)

    def timed(self, run: Callable[[], object]) -> float:
        before = self._took
        run()
        return self._took - before

    def flush(self) -> None: ...

    def synchronise(self) -> None:
        self.done.append("synchronise")
        if self.broken:
            raise RuntimeError(self.broken)

    check = synchronise

    def capturing(self) -> bool:
        return self.captures

    def compiled(self, source: str, name: str) -> None:
        """The empty kernel."""


class HostArrays:
    """CuPy's arrays on the host's memory."""

    def is_array(self, value: object) -> bool:
        return isinstance(value, cupy.ndarray)

    def interface(self, array: Any) -> dict[str, Any]:
        return {"shape": array.shape, "strides": array.strides, "typestr": array.dtype.str}

    def writable(self, array: Any) -> bool:
        return True

    def device_number(self, array: Any) -> int:
        return int(array.data.device_id)

    def copy(self, array: Any) -> Array:
        return on_host(array).copy()

    def restore(self, array: Any, copy: Array) -> None:
        on_host(array)[...] = copy

    def fill(self, array: Any, value: float) -> None:
        on_host(array).fill(value)

    def values(self, array: Any) -> Array:
        return on_host(array)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, own_cache: None) -> Device:
    """This machine's GPU, and a tuning cache of its own."""
    made = Device()
    Kernel.effect = Kernel.taken = None
    profile: GpuProfile = A100
    monkeypatch.setattr(raw_kernels, "this_device", lambda: (profile, made, HostArrays(), 0))
    return made
