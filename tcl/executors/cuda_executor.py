"""A def compiled for given sizes, element types and options, for arrays on a CUDA device."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tcl.arrays.arguments import Array, Wanted
from tcl.arrays.given import Given, given_inputs, given_outputs, new_array
from tcl.arrays.libraries import HOST, CudaLibrary
from tcl.codegen.cuda.run.launch import CudaLauncher
from tcl.codegen.cuda.run.ready import ready
from tcl.codegen.loopir.layouts import WIDEST
from tcl.common.errors import ArgumentError
from tcl.executors import machine
from tcl.executors.calls import Calls, Strides
from tcl.executors.host_repeat import distances
from tcl.grammar.ranges.sized import SizedDef
from tcl.selection.suggested_options import Chosen

Key: TypeAlias = tuple[bool, Strides, tuple[bool, ...]]


class CudaExecutor(Calls[Any]):
    """A callable kernel for arrays on one CUDA device: CuPy's, torch's, or what hands its memory
    over by DLPack or ``__cuda_array_interface__`` (it is seen as CuPy's).

    A call is like that of an ``Executor``. It launches on the caller's current stream and returns
    at once: CuPy's stream, or torch's for torch's tensors. Only for a def with data-dependent
    subscripts, unless ``unchecked``, it waits for the kernels, to raise what they found.
    """

    def __init__(
        self, sized: SizedDef, options: Chosen, device: int, wanted: Wanted = None
    ) -> None:
        super().__init__(sized, options, wanted)
        self._device = device
        self._kernels: dict[Key, CudaLauncher] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return CudaExecutor, (self._sized, self._chosen, self._device, self._wanted)

    @property
    def device(self) -> int:
        """The number of the device that it runs on."""
        return self._device

    @property
    def kernels(self) -> tuple[CudaLauncher, ...]:
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

    def _first(self, given: Given, outputs: Any, unchecked: bool, places: tuple[int, ...]) -> Any:
        library, device, tensors = given.library, self._device, self._sized.checked.outputs
        assert isinstance(library, CudaLibrary)
        chosen = [tensors[place] for place in places]
        with machine.driver().on(device):
            results, views = given_outputs(self._sized, given, outputs, chosen)
            memory = dict(zip(places, views, strict=True))
            scratch = {  # which goes back when this returns, in stream order
                place: new_array(self._sized, tensor, given.kind)
                for place, tensor in enumerate(tensors)
                if place not in places
            }
            memory |= {k: library.view(tensors[k].name, a) for k, a in scratch.items()}
            arrays = (*given.views, *(memory[place] for place in range(len(tensors))))
            kernel = self.kernel(arrays, unchecked=unchecked)
            library.permits((), None if outputs is None else results)
            addresses = [view.ctypes.data for view in arrays]
            kernel(addresses, library.stream(device), lambda size: library.memory(size, device))
        make = self.results(places)
        repeat = CudaRepeat(kernel, given, (results, views), self._sized, (places, make))
        self._keep(given, unchecked, places, repeat)
        kept = outputs if isinstance(outputs, tuple | list) else results
        return make(tuple(kept))

    def prepare(self, inputs: Sequence[Any]) -> None:
        """Compile for the strides of these inputs and for new outputs."""
        given = self._given(inputs)
        new = self._new_strides()
        strides = (*(view.strides for view in given.views), *new)
        self._kernel((False, strides, (*map(_aligned, given.views), *(True for _ in new))))

    def kernel(self, arrays: Sequence[Array], *, unchecked: bool = False) -> CudaLauncher:
        """The kernel for arrays like those that these stand for; inputs, then outputs.

        Compiled if neither this object nor the user's cache folder has it. Raises
        ``OptionsError`` for options that were given and do not apply.
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


class CudaRepeat:
    """Calls like one that went well, with its types, shapes, strides, library and device.

    What depends on those alone was found good and is not looked at again; what depends on the
    arrays at hand is: where they lie, and whether they overlap.
    """

    __slots__ = (
        *("_addresses", "_device", "_driver", "_empty", "_inputs", "_kernel", "_library", "_likes"),
        *("_make", "_outputs", "_pairs", "_scratch", "_slots"),
    )

    def __init__(
        self,
        kernel: CudaLauncher,
        given: Given,
        results: tuple[Sequence[Any], Sequence[Array]],
        sized: SizedDef,
        returned: tuple[tuple[int, ...], Callable[[tuple[Any, ...]], Any]],
    ) -> None:
        """``results`` are the wanted outputs, and what stands for them; ``returned`` their places
        among the def's, and what is made of them."""
        outputs, views = results
        places, self._make = returned
        library, checked = given.library, sized.checked
        assert isinstance(library, CudaLibrary)
        self._kernel = kernel
        self._driver = kernel.driver
        self._device = kernel.device
        self._library = library
        self._addresses = library.addresses
        self._inputs = len(given.arrays)
        self._outputs = len(outputs)
        self._slots = (*range(self._inputs), *(self._inputs + place for place in places))
        self._likes = tuple(
            library.like(array, WIDEST - 1 if _aligned(view) else view.dtype.itemsize - 1)
            for array, view in zip((*given.arrays, *outputs), (*given.views, *views), strict=True)
        )
        new = [(sized.shapes[t.name], t.type) for t in checked.outputs]
        self._empty = None if checked.uninitialised else [new[place] for place in places]
        self._scratch = [
            (self._inputs + place, math.prod(shape) * type_.bits // 8)
            for place, (shape, type_) in enumerate(new)
            if place not in places
        ]
        self._pairs = distances(given.views, views)

    def __call__(self, inputs: tuple[Any, ...], outputs: Any, /) -> Any:
        """Launch, and return the outputs; None if this call is not alike, or may be wrong. Raises
        ``IndexError``, as the kernel does."""
        if len(inputs) != self._inputs:
            return None
        if self._driver.current() == self._device:
            return self._call(inputs, outputs)
        with self._driver.on(self._device):
            return self._call(inputs, outputs)

    def _call(self, inputs: tuple[Any, ...], outputs: Any) -> Any:
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
        if not self._library.permits(inputs, None if outputs is None else results):
            return None
        kernel = self._kernel
        frame = kernel.frame()
        for slot, address in zip(self._slots, found, strict=True):
            frame.addresses[slot] = address
        held = [(slot, self._memory(size)) for slot, size in self._scratch]
        for slot, memory in held:  # which goes back when this returns, in stream order
            frame.addresses[slot] = memory.ptr
        kernel.launch(frame, self._library.stream(self._device), self._memory)
        return self._make(results)

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
