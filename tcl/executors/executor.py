"""A def compiled for given sizes, element types and options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tcl.arrays.arguments import Array, Wanted
from tcl.arrays.given import Given
from tcl.arrays.user_input import check_flag
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.cpu.run.ready import ready
from tcl.codegen.cpu.thread_count import thread_count
from tcl.common.lazy import Lazy
from tcl.executors.calls import Calls, Repeat, Strides
from tcl.executors.host_repeat import HostRepeat, WithNumbers
from tcl.grammar.ranges.sized import SizedDef
from tcl.selection.suggested_options import Chosen

if TYPE_CHECKING:
    from tcl.executors import numba_call
else:
    numba_call = Lazy("tcl.executors.numba_call")


class Executor(Calls[Any]):
    """A compiled def for arrays in host memory: of NumPy, torch, JAX or any library with DLPack.

    ``executor(*inputs)`` returns the output, or a named tuple of several outputs in the order of
    the def. Outputs are arrays of the library of the inputs; ``outputs=`` writes into existing
    arrays. Inputs must have the sizes that the executor was compiled for, and may have any strides:
    a kernel is compiled for new strides, and kept. Calls from several threads are safe. A copy,
    also by pickle, compiles its own kernels.

    ``threads``: the number of threads that a call may use. Default: ``TCL_NUM_THREADS``, else all
    cores of this process. If two calls overlap, the later one runs on its caller's thread alone.
    ``wanted``: names of the outputs that calls return by default.
    """

    def __init__(
        self,
        sized: SizedDef,
        options: Chosen,
        threads: int | None = None,
        wanted: Wanted = None,
    ) -> None:
        super().__init__(sized, options, wanted)
        self._most = thread_count(threads)
        self._remembers = True
        """Whether calls like the next one, if it goes well, are to be quick."""
        self._tells: tuple[int, int, int] | None = None
        """As of ``HostRepeat``."""
        self._kernels: dict[tuple[bool, Strides], Launcher] = {}
        self._numbers = [(k, t) for k, t in enumerate(sized.checked.inputs) if t.rank == 0]
        """The inputs that may be Python's numbers, with their places."""

    def __reduce__(self) -> tuple[object, ...]:
        return Executor, (self._sized, self._chosen, self._most, self._wanted)

    @property
    def threads(self) -> int:
        """The number of threads that a call uses: the number that it may use, or 1 if more do not
        pay. Until a kernel is compiled, the number that it may use."""
        return max((k.threads for k in self._kernels.values()), default=self._most)

    def _run(self, given: Given, arrays: tuple[Array, ...], unchecked: bool, *about: Any) -> Any:
        kernel = self.kernel(tuple(view.strides for view in arrays), unchecked=unchecked)
        kernel(arrays)
        if not self._remembers or given.copied:
            return None
        results, returned = about
        repeat: Repeat = HostRepeat(
            kernel, given, results, self._sized, returned, tells=self._tells
        )
        return WithNumbers(repeat, self._numbers, given.library) if self._numbers else repeat

    def prepare(self, inputs: Sequence[Any]) -> None:
        """Compile for the strides of these inputs and for new outputs."""
        self.kernel(self._with_new_outputs(self._given(inputs)))

    def numba(self, *, unchecked: bool = False) -> Any:
        """The kernel as a function for code that Numba compiles. It takes row-major arrays: the
        inputs, then the outputs. If the outputs are left out, it makes new ones. It returns the
        outputs. ``tcl docs numba`` says more. Raises ``ArgumentError`` for types that Numba does
        not have."""
        check_flag("unchecked", unchecked)
        return numba_call.numba_function(self, self._usual, unchecked=unchecked)

    def kernel(self, strides: Strides, *, unchecked: bool = False) -> Launcher:
        """The kernel for arrays with these strides (in bytes; inputs, then outputs).

        It is compiled if neither this object nor the user's cache folder has it. Raises
        ``OptionsError`` if options that you gave cannot be applied.
        """
        return self._kept(
            self._kernels,
            (unchecked, strides),
            lambda options: ready(
                self._sized, options, strides, unchecked=unchecked, threads=self._most
            ),
        )
