"""A def compiled for given sizes, element types and options, for arrays on a CUDA device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tcl.arrays.arguments import Array
from tcl.arrays.given import Given, given_inputs, given_outputs
from tcl.arrays.libraries import HOST, CudaLibrary
from tcl.codegen.common.errors import ArgumentError
from tcl.codegen.cuda.run.launch import Launcher
from tcl.codegen.cuda.run.ready import ready
from tcl.codegen.loopir.layouts import WIDEST
from tcl.executors import machine
from tcl.executors.executor import Calls, Strides, distances
from tcl.grammar.sized import SizedDef
from tcl.selection.suggested_options import Chosen

Key: TypeAlias = tuple[bool, Strides, tuple[bool, ...]]


class CudaExecutor(Calls[Any]):
    """A callable kernel for arrays on one CUDA device: CuPy's, torch's, or what hands its memory
    over by DLPack or ``__cuda_array_interface__`` (it is seen as CuPy's).

    A call is like that of an ``Executor``. It launches on the caller's current stream and returns
    at once: CuPy's stream, or torch's for torch's tensors. Only for a def with data-dependent
    subscripts, unless ``unchecked``, it waits for the kernels, to raise what they found.
    """

    def __init__(self, sized: SizedDef, options: Chosen, device: int) -> None:
        super().__init__(sized, options)
        self._device = device
        self._kernels: dict[Key, Launcher] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return CudaExecutor, (self._sized, self._chosen, self._device)

    @property
    def device(self) -> int:
        """The number of the device that it runs on."""
        return self._device

    @property
    def kernels(self) -> tuple[Launcher, ...]:
        """Those that calls needed so far."""
        return tuple(self._kernels.values())

    def _given(self, inputs: Sequence[Any]) -> Given:
        given = given_inputs(self._sized.checked, inputs, machine.driver)
        if given.device != self._device:
            where = "in the host's memory" if given.device == HOST else f"on cuda:{given.device}"
            raise ArgumentError(
                f"this executor of {self._sized.checked.name} runs on cuda:{self._device}, "
                f"but the inputs lie {where}"
            )
        return given

    def _first(self, given: Given, outputs: Any, unchecked: bool) -> Any:
        library, device = given.library, self._device
        assert isinstance(library, CudaLibrary)
        with machine.driver().on(device):
            results, views = given_outputs(self._sized, given, outputs)
            memory = (*given.views, *views)
            kernel = self.kernel(memory, unchecked=unchecked)
            if outputs is not None:
                library.written(results)
            addresses = [view.ctypes.data for view in memory]
            kernel(addresses, library.stream(device), lambda size: library.memory(size, device))
        self._repeats[unchecked] = CudaRepeat(kernel, given, (results, views), self._sized)
        kept = outputs if isinstance(outputs, tuple | list) else results
        return kept[0] if len(kept) == 1 else tuple(kept)

    def prepare(self, inputs: Sequence[Any]) -> None:
        """Compile for the strides of these inputs and for new outputs."""
        given = self._given(inputs)
        new = self._new_strides()
        strides = (*(view.strides for view in given.views), *new)
        self._kernel((False, strides, (*map(_aligned, given.views), *(True for _ in new))))

    def kernel(self, arrays: Sequence[Array], *, unchecked: bool = False) -> Launcher:
        """The kernel for arrays like those that these stand for; inputs, then outputs.

        Compiled if neither this object nor the user's cache folder has it. Raises
        ``OptionsError`` for options that were given and do not apply.
        """
        strides = tuple(a.strides for a in arrays)
        return self._kernel((unchecked, strides, tuple(map(_aligned, arrays))))

    def _kernel(self, key: Key) -> Launcher:
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


class CudaRepeat:
    """Calls like one that went well, with its types, shapes, strides, library and device.

    What depends on those alone was found good and is not looked at again; what depends on the
    arrays at hand is: where they lie, and whether they overlap.
    """

    __slots__ = (
        *("_addresses", "_device", "_driver", "_empty", "_inputs", "_kernel", "_library", "_likes"),
        *("_outputs", "_pairs", "_single"),
    )

    def __init__(
        self,
        kernel: Launcher,
        given: Given,
        results: tuple[Sequence[Any], Sequence[Array]],
        sized: SizedDef,
    ) -> None:
        """``results`` are the outputs, and what stands for them."""
        outputs, views = results
        library = given.library
        assert isinstance(library, CudaLibrary)
        self._kernel = kernel
        self._driver = kernel.driver
        self._device = kernel.device
        self._library = library
        self._addresses = library.addresses
        self._inputs = len(given.arrays)
        self._outputs = len(outputs)
        self._single = len(outputs) == 1
        self._likes = tuple(
            library.like(array, WIDEST - 1 if _aligned(view) else view.dtype.itemsize - 1)
            for array, view in zip((*given.arrays, *outputs), (*given.views, *views), strict=True)
        )
        checked = sized.checked
        new = tuple((sized.shapes[t.name], t.type) for t in checked.outputs)
        self._empty = None if checked.uninitialised else new
        self._pairs = distances(given.views, views)

    def __call__(self, inputs: tuple[Any, ...], outputs: Sequence[Any] | None) -> Any:
        """Launch, and return the outputs; None if this call is not alike, or may be wrong. Raises
        ``IndexError``, as the kernel does."""
        if len(inputs) != self._inputs:
            return None
        if self._driver.current() == self._device:
            return self._call(inputs, outputs)
        with self._driver.on(self._device):
            return self._call(inputs, outputs)

    def _call(self, inputs: tuple[Any, ...], outputs: Sequence[Any] | None) -> Any:
        results = self._results(outputs)
        if results is None or len(results) != self._outputs:
            return None
        found = self._addresses(inputs + results, self._likes)
        if found is None:
            return None
        if outputs is not None:
            for output, other, low, high in self._pairs:
                if low < found[output] - found[other] < high:
                    return None
            if not self._library.written(results):
                return None
        kernel = self._kernel
        frame = kernel.frame()
        for slot, address in enumerate(found):
            frame.addresses[slot] = address
        kernel.launch(frame, self._library.stream(self._device), self._memory)
        return results[0] if self._single else results

    def _memory(self, size: int) -> Any:
        return self._library.memory(size, self._device)

    def _results(self, outputs: Sequence[Any] | None) -> tuple[Any, ...] | None:
        if outputs is not None:
            return tuple(outputs) if isinstance(outputs, tuple | list) else None
        if self._empty is None:
            return None
        empty, device = self._library.empty, self._device
        return tuple([empty(shape, type_, device) for shape, type_ in self._empty])


def _aligned(view: Array) -> bool:
    return view.ctypes.data % WIDEST == 0
