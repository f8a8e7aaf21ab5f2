"""A def compiled for given sizes, element types and options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tcl.arrays.arguments import Wanted, new_output
from tcl.arrays.given import Given, given_inputs, given_outputs
from tcl.arrays.libraries import HOST
from tcl.arrays.user_input import check_flag
from tcl.codegen.cpu.run.launch import Launcher
from tcl.codegen.cpu.run.memory import empty
from tcl.codegen.cpu.run.ready import ready
from tcl.codegen.cpu.thread_count import thread_count
from tcl.common.errors import ArgumentError
from tcl.common.lazy import Lazy
from tcl.executors import machine
from tcl.executors.calls import Calls, Repeat, Strides
from tcl.executors.host_repeat import HostRepeat
from tcl.executors.numbers import WithNumbers
from tcl.grammar.ranges.sized import SizedDef
from tcl.selection.suggested_options import Chosen

if TYPE_CHECKING:
    from tcl.executors import numba_call
else:
    numba_call = Lazy("tcl.executors.numba_call")


class Executor(Calls[Any]):
    """A callable kernel for arrays in the host's memory: NumPy's, torch's, JAX's, or of what hands
    its memory over by DLPack.

    ``executor(*inputs)`` returns the output (or a named tuple of outputs, in the order of the def),
    of the library that the inputs are of; ``outputs=`` writes into existing arrays. Inputs must
    have the sizes it was compiled for. ``wanted``: what calls return if they do not say.
    Arrays may have any strides: kernels are compiled for strides as they come up, and kept.
    Safe to call from several threads at once. A copy, pickled or not, compiles anew.

    ``threads`` is how many threads a call may use; None: what ``TCL_NUM_THREADS`` says, else all
    cores of this process. One call at a time has the others: calls beside it run on their own
    thread alone.
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
        """The threads that a call uses: as many as it may, or one where more are not worth it.
        Known once a kernel is compiled; until then, how many it may use."""
        return max((k.threads for k in self._kernels.values()), default=self._most)

    def _given(self, inputs: Sequence[Any]) -> Given:
        given = given_inputs(self._sized.checked, inputs, machine.driver)
        if given.device != HOST:
            raise ArgumentError(
                f"this executor of {self._sized.checked.name} runs on the CPU, "
                f"but the inputs lie on cuda:{given.device}"
            )
        return given

    def _first(self, given: Given, outputs: Any, unchecked: bool, places: tuple[int, ...]) -> Any:
        tensors = self._sized.checked.outputs
        chosen = [tensors[place] for place in places]
        results, views = given_outputs(self._sized, given, outputs, chosen)
        memory = dict(zip(places, views, strict=True))
        for place, tensor in enumerate(tensors):
            if place not in memory:
                memory[place] = new_output(self._sized, tensor, empty)
        arrays = (*given.views, *(memory[place] for place in range(len(tensors))))
        kernel = self.kernel(tuple(view.strides for view in arrays), unchecked=unchecked)
        given.library.permits((), None if outputs is None else results)
        kernel(arrays)
        make = self.results(places)
        if self._remembers and not given.copied:
            about = self._sized, (places, make), self._tells
            repeat: Repeat = HostRepeat(kernel, given, (results, views), *about)
            if self._numbers:
                repeat = WithNumbers(repeat, self._numbers, given.library)
            self._keep(given, unchecked, places, repeat)
        if isinstance(outputs, tuple | list):  # the caller's own, of whichever class they are
            results = tuple(outputs)
        elif outputs is not None:
            results = (outputs,)
        return make(results)

    def prepare(self, inputs: Sequence[Any]) -> None:
        """Compile for the strides of these inputs and for new outputs."""
        given = self._given(inputs)
        self.kernel((*(view.strides for view in given.views), *self._new_strides()))

    def numba(self, *, unchecked: bool = False) -> Any:
        """The kernel as a function for code that Numba compiles: of row-major arrays, inputs and
        then outputs, of which new ones are made if they are left out; it returns the outputs.
        ``tcl docs numba`` says more. Raises ``ArgumentError`` for types that Numba lacks."""
        check_flag("unchecked", unchecked)
        return numba_call.numba_function(self, self._usual, unchecked=unchecked)

    def kernel(self, strides: Strides, *, unchecked: bool = False) -> Launcher:
        """The kernel for arrays of these strides (in bytes; inputs, then outputs).

        Compiled if neither this object nor the user's cache folder has it. Raises
        ``OptionsError`` for options that were given and do not apply.
        """
        return self._kept(
            self._kernels,
            (unchecked, strides),
            lambda options: ready(
                self._sized, options, strides, unchecked=unchecked, threads=self._most
            ),
        )
