"""Which operands of a nest a GPU's block copies to its shared memory, as knobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.knobs import Knob, Value

_OPERANDS = 4
"""Operands that get a knob: the first ones that can be staged."""
_BUFFERS = (1, 2, 3, 4)
NO, LOOP, BLOCK = "no", "loop", "block"
"""To leave an operand where it is; to copy it inside of all loops that move it and that threads run
together (further out a panel would be larger, further in it would be copied more often); or to
copy what the block needs of it once."""


@dataclass(frozen=True, slots=True)
class PanelKnobs:
    """One choice per operand, and how many copies there are of what is filled in loops."""

    reads: tuple[ir.Load, ...]
    chosen: Mapping[int, Knob]
    """By position of the operand."""
    buffers: tuple[Knob, ...]

    @staticmethod
    def from_nest(nest: ir.Nest, own: Mapping[str, Value]) -> PanelKnobs:
        """The knobs of a nest without loops; ``own`` are their defaults."""
        reads = operands(nest.point)
        named = {k: f"{nest.name}.stage{k}" for k in range(len(reads))}
        able = [k for k, load in enumerate(reads) if _can(nest, load)][:_OPERANDS]
        chosen = {}
        for k, name in named.items():
            if k in able or own[name] != NO:
                choices = tuple(dict.fromkeys((NO, LOOP, BLOCK, own[name])))
                chosen[k] = Knob(name, choices, own[name], ordered=False)
        buffers: tuple[Knob, ...] = ()
        if chosen:
            count = int(own[f"{nest.name}.buffers"])
            copies = tuple(sorted({*_BUFFERS, count}))
            buffers = (Knob(f"{nest.name}.buffers", copies, count, ordered=True),)
        return PanelKnobs(reads, chosen, buffers)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        return (*self.chosen.values(), *self.buffers)

    def texts(self, values: Mapping[str, Value], needed: Collection[int]) -> dict[int, str]:
        """What is chosen for each operand that is copied, as those are that are ``needed``."""
        found = {k: str(values[knob.name]) for k, knob in self.chosen.items()}
        found = {k: LOOP if text == NO and k in needed else text for k, text in found.items()}
        return {k: text for k, text in found.items() if text != NO}

    def levels(
        self, values: Mapping[str, Value], loops: Sequence[str], needed: Collection[int]
    ) -> dict[int, int]:
        """Operand → level, for those that are copied; ``loops`` are the dimensions of the loops
        that all threads run together, from the outermost."""
        texts = self.texts(values, needed).items()
        return {k: _level(text, self.reads[k], loops) for k, text in texts}

    def option(
        self, values: Mapping[str, Value], loops: Sequence[str], needed: Collection[int]
    ) -> tuple[int, ...]:
        levels = self.levels(values, loops, needed)
        return tuple(levels.get(k, -1) for k in range(len(self.reads))) if levels else ()

    def copies(self, values: Mapping[str, Value]) -> int:
        """The option ``buffers``."""
        return int(values[self.buffers[0].name]) if self.buffers else 1

    def canonical(
        self, values: Mapping[str, Value], loops: Sequence[str], needed: Collection[int]
    ) -> dict[str, Value]:
        """The first values of these knobs that mean the same."""
        levels = self.levels(values, loops, needed)
        found: dict[str, Value] = {}
        for k, knob in self.chosen.items():
            text = _stage_choice(levels.get(k, -1), self.reads[k], loops)
            found[knob.name] = text if text in knob.choices else values[knob.name]
        if self.buffers:
            in_loops = any(level > 1 for level in levels.values())
            found[self.buffers[0].name] = values[self.buffers[0].name] if in_loops else 1
        return found


def said_of_panels(
    nest: ir.Nest, levels: Sequence[int], buffers: int, loops: Sequence[str]
) -> dict[str, Value]:
    """What the knobs of a nest would be set to."""
    reads = operands(nest.point)
    found: dict[str, Value] = {}
    for k, load in enumerate(reads):
        level = levels[k] if k < len(levels) else -1
        found[f"{nest.name}.stage{k}"] = _stage_choice(level, load, loops)
    found[f"{nest.name}.buffers"] = buffers if any(level > 1 for level in levels) else 1
    return found


def _can(nest: ir.Nest, load: ir.Load) -> bool:
    """Whether a copy of an operand can be made, and is of use: other points read the same, and
    more than a single element."""
    dims = load.ref.names
    again = any(d.extent > 1 and d.name not in dims for d in nest.dims)
    windows = any(len(s.terms) > 1 for s in load.ref.affine)
    known = bool(load.ref.subscripts) and load.ref.is_affine
    return known and (again or windows) and load.ref.tensor != nest.point.target.tensor


def _level(text: str, load: ir.Load, loops: Sequence[str]) -> int:
    if text == NO:
        return -1
    if text == BLOCK:
        return 1
    if text == LOOP:
        moving = load.ref.names
        return 1 + max((k + 1 for k, name in enumerate(loops) if name in moving), default=0)
    return int(text)


def _stage_choice(level: int, load: ir.Load, loops: Sequence[str]) -> str:
    """The first choice that says so; the level itself if none does."""
    texts = (NO, LOOP, BLOCK)
    return next((t for t in texts if _level(t, load, loops) == level), str(level))
