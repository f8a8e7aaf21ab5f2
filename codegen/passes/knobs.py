"""What a search may choose of an option, as knobs: beside the pass that honours it.

Each option has a function: from the nest to its knobs, a decoder of their values, and an encoder of
a given option. What values fit together is not decoded here: the passes are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.kinds import WIDTHS
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import OPTIONS, PLAIN, NestOptions
from tcl.codegen.passes.base import Trials
from tcl.grammar.sizes.varying import representative

NONE = "none"
"""The value of a knob that asks for nothing, where others are lists of numbers."""
OPERANDS = 3
"""Operands that get a knob of an option: the first ones that can have it."""

Values = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class KnobSubject:
    program: ir.Program
    nest: ir.Nest
    """Without any loops but those over its points."""
    device: CpuProfile
    default: NestOptions
    """What the knobs have to be able to encode."""
    trials: Trials[CpuProfile]

    @property
    def movable(self) -> tuple[int, ...]:
        """Positions of the dimensions with more than one point: others have no loops to order."""
        return tuple(k for k, d in enumerate(self.nest.dims) if d.extent > 1)

    @property
    def lane_choices(self) -> tuple[int, ...]:
        longest = max((d.extent for d in self.nest.dims), default=0)
        most = min(self.device.lanes(self.nest.point.type), longest)
        own = (self.default.vectorize or (-1, 1))[1]
        return tuple(w for w in WIDTHS if w == 1 or w <= most or w == own)

    @property
    def last_result(self) -> int:
        """The position of the last dimension that is no reduction; -1 if there is none."""
        return sum(not d.reduction for d in self.nest.dims) - 1

    @property
    def last_output(self) -> int:
        """The last movable dimension that is no reduction, else the last movable one."""
        return max((k for k in self.movable if k <= self.last_result), default=self.movable[-1])

    def points_inside(self, chunk: tuple[int, ...], tile: tuple[int, ...]) -> tuple[int, ...]:
        """The points that the nest will have inside of a tile, per dimension."""
        dims, found = self.nest.dims, []
        for dim, *sizes in zip_longest(dims, chunk[: len(dims)], tile[: len(dims)]):
            extent = representative(dim.extent)
            found.append(min(extent, *(size or extent for size in sizes)))
        return tuple(found)

    def may_have(self, **options: Any) -> bool:
        """Whether the passes let the nest have options, with some lanes or without."""
        pairs = [(-1, 1), *((k, w) for k in self.movable for w in self.lane_choices if w > 1)]
        ways = (replace(PLAIN, vectorize=pair, **options) for pair in pairs)
        return any(self.trials.first_refusal(self.nest.name, o) is None for o in ways)

    def past_second_cache(self, tensor: str) -> bool:
        """Whether a tensor does not fit the second cache."""
        layout = self.program.tensor(tensor).layout
        return layout.bytes > self.device.l2_bytes


@dataclass(frozen=True, slots=True)
class OptionKnobs:
    """The knobs of an option, or of a few that are decided together."""

    option: str
    knobs: tuple[Knob, ...]
    decode: Callable[[Values, Decoded], Any]
    """The option for values of the knobs."""
    encode: Callable[[NestOptions], Mapping[str, Value]]
    """The inverse; values that are no choices of the knobs stand for what these cannot encode."""
    canonical: Callable[[Values, Decoded], Mapping[str, Value]] = lambda *_: {}
    """Of values that mean the same, the canonical ones, as far as they differ."""
    redundant: Callable[[Values, Decoded], str | None] = lambda *_: None
    """Why values are no others than those of another configuration, where ``canonical`` does
    not say which. What it reads of them by ``[]`` is drawn again then."""
    exact: bool = True
    """Whether the knobs may not be able to encode a value, nor the passes to honour it. Tiles and
    orders are always possible, and those that no knob has mean the same as some that one has."""


class Decoded:
    """The options of a nest that knob values encode, each decoded when it is asked for."""

    def __init__(self, decoders: Mapping[str, Callable[[Values, Decoded], Any]], values: Values):
        self._decoders, self._values = decoders, values

    def __getattr__(self, option: str) -> Any:
        value = self._decoders[option](self._values, self)
        setattr(self, option, value)
        return value


def without_knobs(option: str) -> OptionKnobs:
    """Of an option that stays as it is where nothing is asked for."""
    return OptionKnobs(option, (), lambda *_: OPTIONS[option].kind.neutral, lambda _: {})


def flag_knobs(on: KnobSubject, option: str, *, able: bool) -> OptionKnobs:
    """Those of an option that is on or off: none unless the nest is ``able`` to have it."""
    knob = Knob(f"{on.nest.name}.{option}", (0, 1), 0, ordered=False)

    def decode(values: Values, _: Decoded) -> bool:
        return able and values[knob.name] == 1

    def encode(o: NestOptions) -> dict[str, Value]:
        return {knob.name: int(bool(getattr(o, option)))}

    return OptionKnobs(option, (knob,) if able else (), decode, encode)


def padded(sizes: Sequence[int] | None, count: int) -> list[int]:
    """So many sizes; 0 where there are fewer."""
    return [*(sizes or ()), *[0] * count][:count]


def and_own(choices: tuple[Value, ...], own: Value) -> tuple[Value, ...]:
    """The choices and the default's own, numbers in order; 0 and no text stand for none."""
    if not own or own in choices:
        return choices
    more = (*choices, own)
    return tuple(sorted(more, key=int)) if isinstance(own, int) else more


def as_text(*numbers: int) -> str:
    """Several numbers as one value of a knob."""
    return " ".join(map(str, numbers))


@lru_cache(maxsize=4096)
def as_numbers(text: Value) -> tuple[int, ...]:
    """The inverse of ``as_text``."""
    return tuple(map(int, str(text).split()))
