"""What candidates are described against, whatever the machine: a def for its sizes on a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import OptionsError

ChoicesT = TypeVar("ChoicesT")
"""What becomes of the nests with some options."""


class ProgramSubject(ABC, Generic[ChoicesT]):
    """A def for its sizes on a device."""

    __slots__ = ()

    @abstractmethod
    def choices(self, options: MappingOptions) -> ChoicesT:
        """What candidates with these options are described by. ``OptionsError`` for options that
        cannot be described."""

    def describable(self, options: Sequence[MappingOptions]) -> list[tuple[int, ChoicesT]]:
        """(place, choices) of those of the options that have any here."""
        found = []
        for place, each in enumerate(options):
            try:
                found.append((place, self.choices(each)))
            except OptionsError:
                continue
        return found
