"""The search space of a program, whatever the machine: options as knobs, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.options.knobs import Knob, Value
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.parts import unsplit
from tcl.codegen.schedule.plan import Plan
from tcl.tuner.space.search_space import Config, Constraint, SearchSpace


class ProgramSpace(ABC):
    """Configurations that encode ``MappingOptions`` of one program.

    A machine's space says which knobs there are, and what they and options mean for each other;
    what is done with fixed knobs, merged dimensions and nests without knobs is the same for all.
    ``fixed``: knob name → value, for knobs that the search must leave alone; ``ValueError`` for
    one that there is not.
    """

    _preset: str
    """The preset of the nests without knobs."""
    _known: Container[str]
    """The names of those with knobs."""

    def __init__(self, program: ir.Program, fixed: Mapping[str, Value] | None) -> None:
        self._merge = True if merged(program) != program else None
        self._program = merged(program)
        self.fixed = dict(fixed or {})

    def _declare(
        self,
        knobs: Iterable[Knob],
        constraints: Iterable[Constraint],
        heuristics: Iterable[Constraint] = (),
    ) -> None:
        """To be called once, by the machine's space."""
        self._whole = SearchSpace(
            tuple(knobs), tuple(constraints), tuple(heuristics), self._canonical
        )
        self._space = self._whole.fix(self.fixed)

    @property
    def space(self) -> SearchSpace:
        """Knobs and constraints."""
        return self._space

    @abstractmethod
    def _canonical(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """The canonical values, among all that mean the same."""

    @abstractmethod
    def _decode(self, values: Mapping[str, Value]) -> dict[str, NestOptions]:
        """The options that the knobs encode, by nest."""

    @abstractmethod
    def _encode(self, resolved: Mapping[str, NestOptions]) -> dict[str, Value] | None:
        """Knob values for choices with nothing left open; None if the knobs cannot encode them."""

    @abstractmethod
    def _plan(self, options: MappingOptions) -> Plan[Any]:
        """What becomes of the program."""

    def _resolved(self, options: MappingOptions) -> dict[str, NestOptions]:
        """The choices for each nest, with nothing left open."""
        return unsplit(self._program, self._plan(options))

    def _mapped(self, options: MappingOptions) -> list[ir.Nest]:
        """The nests without knobs, with all of their loops."""
        *_, (_, program) = self._plan(options).applied()
        return [n for n in program.nests if n.name not in self._known]

    def to_options(self, config: Config) -> MappingOptions:
        choices = self._decode(self._space.values(config))
        options = MappingOptions(self._preset, merge=self._merge)
        for position, nest in enumerate(self._program.nests):
            options = options.with_nest(position, choices.get(nest.name, NestOptions()))
        return options

    def from_options(self, options: MappingOptions) -> Config | None:
        """The configuration that encodes these options; None if there is none.

        ``OptionsError`` for choices for a nest that the program lacks.
        """
        config = self._from_options(options)
        return config if config is not None and self._space.contains(config) else None

    def nearest(self, options: MappingOptions) -> Config:
        """The configuration with the fixed values, and those of the options where that can be."""
        config = self._from_options(options)
        if config is not None:
            values = {**self._whole.values(config), **self.fixed}
            if self._space.valid(near := self._space.config(values)):
                return near
        return self._space.default

    def _from_options(self, options: MappingOptions) -> Config | None:
        if self._merge and not options.merges:
            return None
        resolved = self._resolved(options)
        values = self._encode(resolved)
        if values is None or any(o.beyond_knobs for o in resolved.values()):
            return None
        config = tuple(values[k.name] for k in self._whole.knobs)
        if not (self._whole.contains(config) and self._whole.valid(config)):
            return None
        # What the nests without knobs get follows from the others.
        own = (self._mapped(o) for o in (options, self.to_options(config)))
        return config if next(own) == next(own) else None

    def promising(self, most: int) -> Iterator[Config]:
        """Up to ``most`` that a model of the machine finds nearly as good as the default, and that
        differ from it in several knobs."""
        return iter(())

    def to_json(self, options: MappingOptions) -> str:
        """The options as they are stored."""
        return options.to_json()

    def from_json(self, text: str) -> MappingOptions:
        """The inverse of ``to_json``; ``OptionsError`` if the text is not options."""
        return MappingOptions.from_json(text)
