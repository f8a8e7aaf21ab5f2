"""What candidates are described against: a def for its sizes on a device. A kind of device is a
subclass; ``subject_type`` knows all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import OptionsError
from tcl.common.lazy import Lazy
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.schema import Schema
from tcl.tuner.space.columns import Places, Rows
from tcl.tuner.space.program_space import ProgramSpace

if TYPE_CHECKING:
    from tcl.tuner.model import cpu_subject, gpu_subject
else:
    cpu_subject = Lazy("tcl.tuner.model.cpu_subject")
    gpu_subject = Lazy("tcl.tuner.model.gpu_subject")


ChoicesT = TypeVar("ChoicesT")
"""What becomes of the nests with some options."""
SpaceT = TypeVar("SpaceT", bound=ProgramSpace)


class Subject(ABC, Generic[ChoicesT, SpaceT]):
    """A def for its sizes on a device."""

    __slots__ = ()
    schema: ClassVar[Schema[Any]]
    """The features of candidates."""
    title: ClassVar[str]
    """What the devices are called."""
    count: ClassVar[int]
    """Candidates that are ranked where nobody says how many."""
    program: ir.Program
    device: Any

    @classmethod
    @abstractmethod
    def read(cls, program: ir.Program, device: Any) -> Self:
        """Of a program that has just been lowered."""

    @staticmethod
    @abstractmethod
    def space(program: ir.Program, device: Any) -> SpaceT:
        """What there is to choose for a program that has just been lowered."""

    @abstractmethod
    def covered_by(self, space: SpaceT) -> bool:
        """Whether the space has something to choose for all that candidates are described by."""

    @abstractmethod
    def choices(self, options: MappingOptions) -> ChoicesT:
        """What candidates with these options are described by. ``OptionsError`` for options that
        cannot be described."""

    @abstractmethod
    def extract(self, choices: Sequence[ChoicesT]) -> tuple[Floats, Floats]:
        """Features (N x F) of candidates, and what the analytic model expects each to take, in
        seconds (N)."""

    @abstractmethod
    def extract_rows(self, space: SpaceT, rows: Rows) -> tuple[Places, Floats]:
        """Which rows of the space can be described, and the features of these."""

    def describable(self, options: Sequence[MappingOptions]) -> list[tuple[int, ChoicesT]]:
        """(place, choices) of those of the options that have any here."""
        found = []
        for place, each in enumerate(options):
            try:
                found.append((place, self.choices(each)))
            except OptionsError:
                continue
        return found


Device: TypeAlias = CpuProfile | GpuProfile
BACKENDS = (CpuProfile.backend, GpuProfile.backend)
"""For which there are models."""


def subject_type(backend: str) -> type[Subject[Any, Any]]:
    """For what this makes kernels for: ``cpu`` or ``cuda``, as profiles have it."""
    if backend == CpuProfile.backend:
        return cpu_subject.CpuSubject
    if backend == GpuProfile.backend:
        return gpu_subject.GpuSubject
    raise KeyError(backend)
