"""Executors of a def whose sizes vary, for arrays on a CUDA device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from tcl.arrays.arguments import Wanted
from tcl.codegen.cuda.run.launch import CudaLauncher
from tcl.codegen.cuda.run.varying import ready_for_all
from tcl.common.dataclass import dataclass
from tcl.common.log import logger
from tcl.executors import machine
from tcl.executors.cuda_executor import CudaExecutor, Key
from tcl.executors.other_sizes import OtherSizes
from tcl.executors.size_classes import NOT_FOR_ALL
from tcl.executors.varying import Class, OfClass, lies_so

_log = logger("executors")


@dataclass(slots=True)
class CudaClass(Class):
    """Sizes that one kernel is for on a CUDA device, and the kernel."""

    device: int = field(kw_only=True)
    """Its number."""
    _loaded: dict[
        tuple[bool, tuple[bool, ...]], Callable[[Mapping[str, int]], CudaLauncher] | None
    ] = field(default_factory=dict)
    """By whether subscripts are unchecked, and which arrays begin at multiples of ``WIDEST``; None
    where no kernel can be for all of the sizes."""

    def compile(self, sizes: Mapping[str, int]) -> None:
        """As ``Class.compile``: for new arrays, which begin at multiples of ``WIDEST``."""
        checked = self.symbolic.checked
        aligned = (True,) * len(checked.inputs + checked.outputs)
        self._loaded[False, aligned] = self._ready(unchecked=False, aligned=aligned)

    def executor(
        self, sizes: Mapping[str, int], wanted: Wanted, others: OtherSizes | None
    ) -> VaryingCudaExecutor:
        """As ``Class.executor``."""
        return VaryingCudaExecutor(self, sizes, wanted)

    def on_device(
        self, sizes: Mapping[str, int], *, unchecked: bool, aligned: tuple[bool, ...]
    ) -> CudaLauncher | None:
        """The kernel for some of the sizes and row-major arrays; None if there is none."""
        key = unchecked, aligned
        if key not in self._loaded:
            try:
                self._loaded[key] = self._ready(unchecked=unchecked, aligned=aligned)
            except NOT_FOR_ALL as reason:
                name = self.symbolic.checked.name
                _log.info("%s: no kernel for arrays that begin so: %s", name, reason)
                self._loaded[key] = None
        at = self._loaded[key]
        return None if at is None else at(sizes)

    def _ready(
        self, *, unchecked: bool, aligned: tuple[bool, ...]
    ) -> Callable[[Mapping[str, int]], CudaLauncher]:
        return ready_for_all(
            self.symbolic,
            self.options,
            aligned,
            self.device,
            machine.this_machine(),
            unchecked=unchecked,
        )


class VaryingCudaExecutor(OfClass, CudaExecutor):
    """The executor for some sizes of a class."""

    def __init__(self, class_: CudaClass, sizes: Mapping[str, int], wanted: Wanted) -> None:
        sized, self._row_major = class_.sized(sizes)
        super().__init__(sized, class_.options, class_.device, wanted)
        self._class, self._sizes = class_, sizes

    def __reduce__(self) -> tuple[object, ...]:
        return CudaExecutor, (self.sized, self._chosen, self._device, self._wanted)

    def _kernel(self, key: Key) -> CudaLauncher:
        """The class's kernel for row-major arrays, one of their own for others."""
        found = self._kernels.get(key)
        if found is not None:
            return found
        unchecked, strides, aligned = key
        if lies_so(self._sized, strides, self._row_major):
            with self._lock:
                found = self._class.on_device(self._sizes, unchecked=unchecked, aligned=aligned)
            if found is not None:
                return self._kept(self._kernels, key, lambda _: found)
        self._sized = self.sized
        return super()._kernel(key)
