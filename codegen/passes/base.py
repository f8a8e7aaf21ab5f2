"""What every pass is, how it refuses an option, and how options are tried.

A device has one list of steps, in the order in which they run. Which options a nest can have is
said by the passes of that list alone: a plan tries them and leaves off what refuses, and a search
draws what they let through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import NestOptions
from tcl.common.dataclass import dataclass, replace
from tcl.common.errors import OptionsError

Target = TypeVar("Target")


class Pass(Protocol):
    """A frozen dataclass whose fields are the pass's options."""

    def __call__(self, program: ir.Program) -> ir.Program:
        """The transformed program; ``OptionsError`` if the options do not fit it."""
        ...


def map_nest(program: ir.Program, name: str, change: Callable[[ir.Nest], ir.Nest]) -> ir.Program:
    """``program`` with the nest of this name changed; ``IRError`` if there is none."""
    for k, nest in enumerate(program.nests):
        if nest.name == name:
            nests = (*program.nests[:k], change(nest), *program.nests[k + 1 :])
            return replace(program, nests=nests)
    raise ir.IRError(f"program {program.name} has no nest {name}")


class RefusedError(OptionsError):
    """A pass refuses an option of a nest."""

    def __init__(self, option: str, nest: str, reason: str) -> None:
        super().__init__(f"{option}: nest {nest}: {reason}")
        self.option, self.reason = option, reason


def refuse(option: str, nest: str, reason: str | None) -> None:
    """Raise ``RefusedError`` if there is a reason why a nest cannot have an option."""
    if reason is not None:
        raise RefusedError(option, nest, reason)


def too_many(nest: ir.Nest, sizes: tuple[int, ...]) -> str | None:
    """Why there cannot be so many sizes, or None if each has a dimension."""
    if len(sizes) <= len(nest.dims):
        return None
    return f"it has {len(nest.dims)} dimensions, but {len(sizes)} sizes were given"


def why_not_along(nest: ir.Nest, mma: tuple[int, ...]) -> str | None:
    """Why nothing multiplies matrices along these dimensions (as of the option ``mma``, not empty),
    be it a tensor core or a matrix unit, or None if something may."""
    if max(mma) >= len(nest.dims):
        return f"it has {len(nest.dims)} dimensions, so there is no dimension {max(mma)}"
    if nest.sequential:
        return nest.sequential
    if [nest.dims[k].reduction for k in mma] != [False, False, True][: len(mma)]:
        return (
            "rows and columns must be dimensions of the result, and the third dimension a reduction"
        )
    if nest.reduces != (len(mma) == 3):
        return "a reduction needs three dimensions; a nest that is fused with it needs two"
    return None


@dataclass(frozen=True, slots=True)
class PassStep(Generic[Target]):
    """Passes of a nest that run before those of the next step do, of whichever nest."""

    name: str
    options: tuple[str, ...]
    """Those that decide what the passes do, or refuse."""
    passes: Callable[[str, NestOptions, Target], tuple[Pass, ...]]
    """Of a nest with these options, on a device."""


class _Tried:
    """What the first steps have made of a nest with some options, or the error of the one that
    refused; and what the next step makes of that, by its options."""

    __slots__ = ("made", "then")

    def __init__(self, made: ir.Program | OptionsError) -> None:
        self.made = made
        self.then: dict[tuple[Any, ...], _Tried] = {}


class Trials(Generic[Target]):
    """A device's passes, tried on the nests of a program. What a step has made is cached: trying
    another value of an option begins where that option is first looked at."""

    _MOST = 4096

    def __init__(
        self, program: ir.Program, steps: Sequence[PassStep[Target]], device: Target
    ) -> None:
        self.program, self._steps, self.device = program, steps, device
        first = {o: step for step in reversed(steps) for o in step.options}
        self._new = [(step, [o for o in step.options if first[o] is step]) for step in steps]
        """Each step, and the options that no step before it looks at."""
        self._first: dict[str, _Tried] = {}
        self._count = 0

    def through(self, last: str, nest: str, o: Any) -> ir.Program | OptionsError:
        """The program after the passes of one nest, up to those of the step ``last``; or the
        error with which one of them refused its option. ``o``: ``NestOptions``, or what has the
        same attributes, which need not be known before a step asks for them."""
        for step, made in self._each(nest, o):
            if isinstance(made, OptionsError) or step.name == last:
                return made
        raise ValueError(f"there is no step {last}")

    def first_refusal(self, nest: str, o: Any) -> tuple[PassStep[Target], OptionsError] | None:
        """The first step that refuses an option of a nest, and how; None if all let them through.
        ``o`` as in ``through``."""
        for step, made in self._each(nest, o):
            if isinstance(made, OptionsError):
                return step, made
        return None

    def _each(
        self, nest: str, o: Any
    ) -> Iterator[tuple[PassStep[Target], ir.Program | OptionsError]]:
        if self._count >= self._MOST:
            self._first.clear()
            self._count = 0
        node = self._first.setdefault(nest, _Tried(self.program))
        for step, options in self._new:
            values = tuple([getattr(o, name) for name in options])
            tried = node.then.get(values)
            if tried is None:
                assert not isinstance(node.made, OptionsError)
                tried = node.then[values] = _Tried(self._try(step, node.made, nest, o))
                self._count += 1
            node = tried
            yield step, node.made

    def _try(
        self, step: PassStep[Target], program: ir.Program, nest: str, o: Any
    ) -> ir.Program | OptionsError:
        try:
            for each in step.passes(nest, o, self.device):
                program = each(program)
        except OptionsError as refused:
            return refused.with_traceback(None)
        return program
