"""What is asked of the description of candidates for a kind of device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from tcl.codegen.loopir import ir
from tcl.tuner.model.loops import Floats
from tcl.tuner.model.program_subject import ProgramSubject
from tcl.tuner.model.schema import Schema
from tcl.tuner.space.columns import Places, Rows
from tcl.tuner.space.program_space import ProgramSpace

SubjectT = TypeVar("SubjectT", bound=ProgramSubject[Any])
SpaceT = TypeVar("SpaceT", bound=ProgramSpace)


class Description(ABC, Generic[SubjectT, SpaceT]):
    """Of a kind of device."""

    schema: Schema[Any]
    """The features of candidates."""
    title: str
    """What the devices are called."""
    count: int
    """Candidates that are ranked where nobody says how many."""

    @abstractmethod
    def subject(self, program: ir.Program, device: Any) -> SubjectT:
        """Of a program that has just been lowered."""

    @abstractmethod
    def space(self, program: ir.Program, device: Any) -> SpaceT:
        """What there is to choose for it."""

    @abstractmethod
    def covers(self, space: SpaceT, subject: SubjectT) -> bool:
        """Whether the space has something to choose for all that candidates are described by."""

    @abstractmethod
    def extract(self, subject: SubjectT, choices: Sequence[Any]) -> tuple[Floats, Floats]:
        """Features (N x F) of candidates, as the subject's ``choices`` makes them, and what the
        analytic model expects each to take, in seconds (N)."""

    @abstractmethod
    def of_rows(self, subject: SubjectT, space: SpaceT, rows: Rows) -> tuple[Places, Floats]:
        """Which rows of the subject's space can be described, and the features of these."""
