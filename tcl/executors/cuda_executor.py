"""A def compiled for given sizes, element types and options, for arrays on a CUDA device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, TypeAlias

from tcl.arrays.arguments import Array, Wanted
from tcl.arrays.given import Given
from tcl.arrays.likeness import Comparison
from tcl.codegen.cuda.run.launch import CudaFrame, CudaLauncher
from tcl.codegen.cuda.run.ready import ready, ready_for_all
from tcl.codegen.devices.cupy_driver import Memory
from tcl.codegen.loopir.layouts import WIDEST
from tcl.common.dataclass import dataclass
from tcl.executors import machine
from tcl.executors.calls import Calls, Strides
from tcl.executors.host_repeat import KnownCall, comparing_by_python
from tcl.executors.other_sizes import OtherSizes
from tcl.executors.varying import Class, OfClass, lies_so
from tcl.grammar.ranges.sized import SizedDef
from tcl.selection.suggested_options import Chosen

Key: TypeAlias = tuple[bool, Strides, tuple[bool, ...]]


class CudaExecutor(Calls[Any]):
    """A compiled def for arrays on one CUDA device: of CuPy, of torch, or of a library with DLPack
    or ``__cuda_array_interface__`` (such arrays are handled as CuPy arrays).

    A call is like a call of ``Executor``. It launches on the current stream of the caller, CuPy's
    or torch's, and returns at once. Only a def with data-dependent subscripts waits for its
    kernels, to raise an error that they found; with ``unchecked`` it does not wait.
    """

    def __init__(
        self, sized: SizedDef, options: Chosen, device: int, wanted: Wanted = None
    ) -> None:
        super().__init__(sized, options, wanted, device)
        self._kernels: dict[Key, CudaLauncher] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return CudaExecutor, (self._sized, self._chosen, self._device, self._wanted)

    @property
    def device(self) -> int:
        """The number of the CUDA device."""
        return self._device

    @property
    def kernels(self) -> tuple[CudaLauncher, ...]:
        """The kernels that calls have used so far."""
        return tuple(self._kernels.values())

    def _run(self, given: Given, arrays: tuple[Array, ...], unchecked: bool, *about: Any) -> Any:
        library: Any = given.library
        kernel = self.kernel(arrays, unchecked=unchecked)
        addresses, stream = [view.ctypes.data for view in arrays], library.stream(self._device)
        kernel(addresses, stream, lambda size: library.memory(size, self._device))
        results, returned = about
        return CudaRepeat(kernel, given, results, self._sized, returned)

    def prepare(self, inputs: Sequence[Any]) -> None:
        """Compile for the strides of these inputs and for new outputs."""
        given = self._given(inputs)
        aligned = (*map(_aligned, given.views), *(True for _ in self._sized.checked.outputs))
        self._kernel((False, self._with_new_outputs(given), aligned))

    def kernel(self, arrays: Sequence[Array], *, unchecked: bool = False) -> CudaLauncher:
        """The kernel for the strides and alignment of ``arrays``: the inputs, then the outputs.

        It is compiled if neither this object nor the user's cache folder has it. Raises
        ``OptionsError`` if options that you gave cannot be applied.
        """
        strides = tuple(a.strides for a in arrays)
        return self._kernel((unchecked, strides, tuple(map(_aligned, arrays))))

    def _kernel(self, key: Key) -> CudaLauncher:
        unchecked, strides, aligned = key
        return self._kept(
            self._kernels,
            key,
            lambda options: ready(
                self._sized,
                options,
                strides,
                aligned,
                self._device,
                machine.this_machine(),
                unchecked=unchecked,
            ),
        )


class CudaRepeat(KnownCall):
    """Calls like one that went well, on arrays on a device."""

    __slots__ = ("_alike", "_comparison", "_device", "_driver", "_memory", "_permits", "_stream")

    def __init__(
        self,
        kernel: CudaLauncher,
        given: Given,
        results: tuple[Sequence[Any], Sequence[Array]],
        *about: Any,
    ) -> None:
        """``about``: what else ``KnownCall`` takes."""
        super().__init__(kernel, given, results, *about)
        library: Any = self._library
        self._driver, self._device = kernel.driver, kernel.device
        self._stream, self._memory = library.stream, partial(library.memory, device=self._device)
        arrays, views = (*given.arrays, *results[0]), (*given.views, *results[1])
        bits = [(WIDEST if _aligned(view) else view.dtype.itemsize) - 1 for view in views]
        count, slots, native = len(given.arrays), self._slots, library.reader()
        pairs = [(slots[one], slots[other], low, high) for one, other, low, high in self._pairs]
        self._permits: Callable[[Any, Any], bool] | None = library.permits
        if native is None:
            likes = tuple(map(library.like, arrays, bits))
            self._alike = comparing_by_python(library, likes, count, slots, pairs)
            return
        self._permits = None  # CuPy permits everything
        records = map(library.record, arrays, bits, slots)
        keep = [(type(array), array.dtype) for array in arrays]
        self._comparison = Comparison([*records], count, pairs, 0, keep)
        self._alike = native.comparing(self._comparison)

    def __call__(self, inputs: tuple[Any, ...], outputs: Any, /) -> Any:
        """Launch, and return the outputs; None if this call is not alike, or may be wrong. Raises
        ``IndexError``, as the kernel does."""
        if self._driver.current() != self._device:
            with self._driver.on(self._device):
                return self(inputs, outputs)
        results = outputs if type(outputs) is tuple else self._results(outputs)
        if results is None:
            return None
        permits = self._permits
        if permits is not None and not permits(inputs, None if outputs is None else results):
            return None
        frame = self._kernel.frame()
        if self._alike(inputs, results, frame.at):
            self._kernel.frames.append(frame)
            return None
        held = self._held(frame) if self._scratch else ()
        self._kernel.launch(frame, self._stream(self._device), self._memory)
        del held  # goes back in stream order
        return self._make(results)

    def _held(self, frame: CudaFrame) -> list[Memory]:
        """Memory for the outputs that nobody wants."""
        held = []
        for slot, tensor in self._scratch:
            size = math.prod(self._sized.shapes[tensor.name]) * tensor.type.itemsize
            held.append(self._memory(size))
            frame.addresses[slot] = held[-1].ptr
        return held


def _aligned(view: Array) -> bool:
    return view.ctypes.data % WIDEST == 0


@dataclass(slots=True)
class CudaClass(Class):
    """Sizes that one kernel is for on a CUDA device, and the kernel."""

    device: int = field(kw_only=True)

    def executor(
        self, sizes: Mapping[str, int], wanted: Wanted, others: OtherSizes | None
    ) -> VaryingCudaExecutor:
        return VaryingCudaExecutor(self, sizes, wanted)

    def _new(self) -> tuple[bool, ...]:
        checked = self.symbolic.checked
        return (True,) * len(checked.inputs + checked.outputs)

    def _ready(self, unchecked: bool, aligned: tuple[bool, ...]) -> Any:
        about = aligned, self.device, machine.this_machine()
        return ready_for_all(self.symbolic, self.options, *about, unchecked=unchecked)


class VaryingCudaExecutor(OfClass, CudaExecutor):
    def __init__(self, class_: CudaClass, sizes: Mapping[str, int], wanted: Wanted) -> None:
        sized, self._row_major = class_.sized(sizes)
        super().__init__(sized, class_.options, class_.device, wanted)
        self._class, self._sizes = class_, sizes

    def __reduce__(self) -> tuple[object, ...]:
        return CudaExecutor, (self.sized, self._chosen, self._device, self._wanted)

    def _kernel(self, key: Key) -> CudaLauncher:
        """The class's kernel for row-major arrays, one of their own for others."""
        unchecked, strides, aligned = key
        found = self._kernels.get(key)
        if found is None and lies_so(self._sized, strides, self._row_major):
            with self._lock:
                found = self._class.launcher(self._sizes, unchecked=unchecked, aligned=aligned)
        if found is not None:
            return self._kept(self._kernels, key, lambda _: found)
        self._sized = self.sized
        return super()._kernel(key)
