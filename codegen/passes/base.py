"""What every pass is, how it refuses an option, and how options are tried.

A device has one list of steps, in the order in which they run. Which options a nest can have is
said by the passes of that list alone: a plan tries them and leaves off what refuses, and a search
draws what they let through.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import NestOptions
from tcl.common.errors import OptionsError

Target = TypeVar("Target")


class Pass(Protocol):
    """A frozen dataclass whose fields are the pass's options."""

    def __call__(self, program: ir.Program) -> ir.Program:
        """The transformed program; ``OptionsError`` if the options do not fit it."""
        ...


def map_nest(program: ir.Program, name: str, change: Callable[[ir.Nest], ir.Nest]) -> ir.Program:
    """``program`` with the nest of this name changed; ``IRError`` if there is none."""
    if all(n.name != name for n in program.nests):
        raise ir.IRError(f"program {program.name} has no nest {name}")
    nests = tuple(change(n) if n.name == name else n for n in program.nests)
    return replace(program, nests=nests)


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
    return f"it has {len(nest.dims)} dimensions, {len(sizes)} sizes were given"


def why_not_along(nest: ir.Nest, mma: tuple[int, ...]) -> str | None:
    """Why nothing multiplies matrices along these dimensions (as of the option ``mma``, not empty),
    be it a tensor core or a matrix unit, or None if something may."""
    if max(mma) >= len(nest.dims):
        return f"it has {len(nest.dims)} dimensions, there is no dimension {max(mma)}"
    if nest.sequential:
        return nest.sequential
    if [nest.dims[k].reduction for k in mma] != [False, False, True][: len(mma)]:
        return "rows and columns are results, and the third dimension is a reduction"
    if nest.reduces != (len(mma) == 3):
        return "a reduction needs three dimensions, and what goes along with one two"
    return None


@dataclass(frozen=True, slots=True)
class Step(Generic[Target]):
    """Passes of a nest that run before those of the next step do, of whichever nest."""

    name: str
    options: tuple[str, ...]
    """Those that decide what the passes do, or refuse."""
    passes: Callable[[str, NestOptions, Target], tuple[Pass, ...]]
    """Of a nest with these options, on a device."""


class Trials(Generic[Target]):
    """A device's passes, tried on the nests of a program. What a step has made is cached: trying
    another value of an option begins where that option is first looked at."""

    _MOST = 4096

    def __init__(self, program: ir.Program, steps: Sequence[Step[Target]], device: Target) -> None:
        self.program, self._steps, self._device = program, steps, device
        self._places = {step.name: k for k, step in enumerate(steps)}
        options = itertools.accumulate((step.options for step in steps), operator.add)
        self._options = [tuple(dict.fromkeys(own)) for own in options]
        """Of each step, with those before it."""
        self._made: dict[tuple[Any, ...], ir.Program | OptionsError] = {}

    def through(self, last: str, nest: str, o: Any) -> ir.Program | OptionsError:
        """The program after the passes of one nest, up to those of the step ``last``; or the
        error with which one of them refused its option. ``o``: ``NestOptions``, or what has the
        same attributes, which need not be known before a step asks for them."""
        place = self._places[last]
        chosen = [getattr(o, name) for name in self._options[place]]
        keys = [(k, nest, *chosen[: len(self._options[k])]) for k in range(place + 1)]
        known = (k for k in range(place, -1, -1) if keys[k] in self._made)
        begin = next(known, -1)
        found = self.program if begin < 0 else self._made[keys[begin]]
        for k in range(begin + 1, place + 1):
            try:
                if not isinstance(found, OptionsError):
                    for each in self._steps[k].passes(nest, o, self._device):
                        found = each(found)
            except OptionsError as refused:
                found = refused.with_traceback(None)
            if len(self._made) >= self._MOST:
                self._made.clear()
            self._made[keys[k]] = found
        return found
