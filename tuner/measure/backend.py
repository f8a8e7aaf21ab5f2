"""What the tuner asks of a backend and of a mapping from configurations to options.

The tuner knows nothing else about either, so that a GPU, a fake, or a kernel that tcl did not
write are tuned by the same code. Backends travel to worker processes: they must be picklable,
and hold data, not compiled code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tcl.common.dataclass import dataclass
from tcl.tuner.measure.correctness import Array
from tcl.tuner.measure.harness import Bench, Run
from tcl.tuner.measure.placement import Placement

if TYPE_CHECKING:
    from tcl.codegen.common.rounding import Rounding
    from tcl.codegen.reference import ComputedElements
    from tcl.tuner.space.search_space import Config, SearchSpace

OptionsT = TypeVar("OptionsT")
_Options_contra = TypeVar("_Options_contra", contravariant=True)


class CompiledKernel(Protocol):
    """A compiled kernel."""

    def __call__(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> object:
        """Run once, writing into ``outputs``: arrays as the problem's bench holds them."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The arrays that candidates are verified and timed on."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    """Shape, strides and type of each output; contents count only where ``initialised``."""
    names: tuple[str, ...]
    """Of the outputs, for messages."""
    initialised: tuple[bool, ...]
    """Whether the kernel starts from what the output holds, rather than overwriting all of it."""
    depths: tuple[int, ...]
    """Of accumulation, per output; see ``tcl.tuner.measure.correctness.accumulation_depths``."""
    bench: Bench = field(default_factory=Bench)
    """Where copies of the arrays lie that kernels run on, and how these are timed."""


class PlacedArrays:
    """Copies of a problem's arrays, so that a kernel that writes into its inputs cannot spoil the
    originals."""

    def __init__(self, problem: Problem, placement: Placement) -> None:
        self.name = placement.name
        self._problem = problem
        bench = problem.bench
        self._inputs = tuple(bench.guarded(a, placement) for a in problem.inputs)
        self._outputs = tuple(bench.guarded(o, placement) for o in problem.outputs)
        self._restore()
        self._checksums = [g.checksum() for g in self._inputs]

    def call(self, kernel: CompiledKernel) -> Run:
        return self._problem.bench.bound(kernel, self._inputs, self._outputs)

    def poison(self, *, second: bool) -> None:
        """Before a call that is looked at; ``second``: with another poison."""
        for guarded in self._outputs:
            guarded.poison(second=second)
        self.reset()

    def reset(self) -> None:
        """Give outputs that the kernel starts from their first contents."""
        problem = self._problem
        for guarded, like, used in zip(
            self._outputs, problem.outputs, problem.initialised, strict=True
        ):
            if used:
                guarded.hold(like)

    def values(self) -> list[Array]:
        """What the outputs hold: memory that the next call writes to."""
        return [guarded.values() for guarded in self._outputs]

    def stray(self) -> str | None:
        """What was written beside outputs, once ``values`` was asked for."""
        for name, guarded in zip(self._problem.names, self._outputs, strict=True):
            if not guarded.intact():
                return f"the kernel wrote outside output {name}"
        return None

    def changed(self) -> bool:
        """Whether inputs are not as they were; afterwards they are."""
        if [g.checksum() for g in self._inputs] == self._checksums:
            return False
        self._restore()
        return True

    def _restore(self) -> None:
        for guarded, original in zip(self._inputs, self._problem.inputs, strict=True):
            guarded.hold(original)


class Runner(Protocol):
    """Runs compiled candidates for one def, on one set of inputs, on one device."""

    def load(self, code: bytes) -> CompiledKernel:
        """The kernel, in the process that runs it."""

    def problem(self) -> Problem:
        """The arrays, in the process that runs the kernels; called once there."""

    def roundings(self, inputs: Sequence[Array], *, briefly: bool) -> Sequence[Rounding]:
        """Of each output how far rounding takes what ``reference`` computes. Takes a few times as
        long as ``reference``, unless ``briefly``: then it is what is known soon."""


class Backend(Runner, Protocol[_Options_contra]):
    """Compiles candidates as well."""

    def compile(self, options: _Options_contra) -> bytes:
        """Compiled code, in any process. ``OptionsError`` when the options cannot be applied;
        any other exception is a failure of the compiler."""

    def portable(self) -> Backend[_Options_contra]:
        """The same for another machine: it holds the inputs' values, if it finds them on this
        one."""

    def runner(self) -> Runner:
        """The part of it that a process needs which runs kernels: the less that has to load, the
        sooner it is ready."""

    def reference(
        self, inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> ComputedElements | None:
        """Compute the outputs as the def means them, in place: all elements, or those of a sample,
        which is then returned. Errors are the user's to see."""


class BriefBackend(Backend[_Options_contra], Protocol[_Options_contra]):
    """What ``BriefSearch`` asks besides."""

    def brief_reference(
        self, inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> ComputedElements | None:
        """``reference`` of a small sample, computed in this process in some tenths of a second;
        None if that cannot be done."""


class OptionSpace(Protocol[OptionsT]):
    """A search space whose configurations stand for options."""

    @property
    def space(self) -> SearchSpace:
        """Knobs and constraints."""

    def to_options(self, config: Config) -> OptionsT:
        """The options that a configuration stands for."""

    def from_options(self, options: OptionsT) -> Config | None:
        """The configuration that stands for these options; None if there is none."""

    def promising(self, most: int) -> Iterator[Config]:
        """Up to ``most`` that a model finds nearly as good as the default."""

    def to_json(self, options: OptionsT) -> str:
        """The options as they are stored."""

    def from_json(self, text: str) -> OptionsT:
        """The inverse of ``to_json``; ``TclError`` if the text is not options."""
