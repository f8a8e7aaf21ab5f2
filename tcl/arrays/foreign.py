"""Arrays of libraries that hand their memory over: kernels see NumPy's or CuPy's arrays on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import ModuleType
from typing import Any

import numpy as np

from tcl.arrays import cupy_arrays
from tcl.arrays.libraries import Library
from tcl.arrays.numpy_arrays import NUMPY
from tcl.codegen.devices.cupy_driver import cupy
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.grammar.syntax.types import ScalarType


class Foreign(ABC):
    """What such a library is asked for besides. Equal ones may meet in one call, if they lie on
    the same device."""

    noun: str
    """What one of its arrays is called."""
    place: str
    """The device, as the library calls it."""

    @abstractmethod
    def returned(self, what: str, array: Any) -> Any:
        """The library's own array on the memory of one that was made for it. Raises
        ``ArgumentError`` if it takes none."""

    @abstractmethod
    def conversion(self, type_: ScalarType) -> str:
        """How one becomes one of another type."""

    @abstractmethod
    def moving(self) -> str:
        """How an array of another device comes to this one."""

    @abstractmethod
    def check_new(self, what: str, type_: ScalarType) -> None:
        """Raise ``ArgumentError`` if there are no arrays of this type."""

    @abstractmethod
    def check_output(self, what: str) -> None:
        """Raise ``ArgumentError`` if arrays cannot be written to."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """An array of a library, and whose it really is, if not that one's."""

    library: Library
    array: Any
    foreign: Foreign | None = None

    @property
    def noun(self) -> str:
        """What such an array is called."""
        return self.library.noun if self.foreign is None else self.foreign.noun


@dataclass(frozen=True, slots=True)
class Namespace(Foreign):
    """A library with a namespace of the array API standard, in which there is ``from_dlpack``."""

    module: ModuleType
    place: str

    @property
    def noun(self) -> str:  # type: ignore[override]
        return f"an array of {self.module.__name__}"

    def conversion(self, type_: ScalarType) -> str:
        return f"astype(..., {type_.name})"

    def moving(self) -> str:
        return ".to_device(...)"

    def check_new(self, what: str, type_: ScalarType) -> None:
        """Which types there are is seen when one is returned."""

    def check_output(self, what: str) -> None:
        """Whether the memory is read-only was said when it was handed over."""

    def returned(self, what: str, array: Any) -> Any:
        try:
            return self.module.from_dlpack(array)
        except Exception as error:  # the standard names none: each library raises its own
            raise ArgumentError(
                f"{what}: {self.module.__name__}.from_dlpack does not take it: {error}; "
                "pass outputs="
            ) from error


HOST_MEMORY = (1, 3, 11)
"""DLPack's numbers for memory that NumPy reads: the host's, and what CUDA and ROCm pinned."""
CUDA_MEMORY = (2, 13)
"""DLPack's numbers for memory of a CUDA device, and for memory that it shares with the host."""


def by_dlpack(what: str, argument: Any) -> Adopted:
    """What hands its memory over by DLPack. Raises ``ArgumentError`` if it does not."""
    try:
        kind, number = map(int, argument.__dlpack_device__())
        if kind in CUDA_MEMORY:
            library: Library = cupy_arrays.cupy_arrays()
            array = cupy(FOREIGN).from_dlpack(argument)
        elif kind in HOST_MEMORY:
            library, array = NUMPY, np.from_dlpack(argument)
        else:
            raise ArgumentError(
                f"{what} lies on a device of a kind (DLPack's {kind}) for which there are no "
                "kernels; move it to the host, or to a CUDA device"
            )
    except ArgumentError:
        raise
    except Exception as error:  # the producer's code ran, and it may raise what it likes
        raise ArgumentError(f"{what} does not hand its memory over by DLPack: {error}") from error
    namespace = getattr(argument, "__array_namespace__", None)
    module = None if namespace is None else namespace()
    if module is None or not hasattr(module, "from_dlpack"):
        return Adopted(library, array)
    return Adopted(library, array, Namespace(module, f"{kind}:{number}"))


FOREIGN = "an array on a CUDA device that is neither CuPy's nor torch's"
