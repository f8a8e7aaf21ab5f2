"""What features are: numbers that are known of every candidate, in an order with a version."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

DescribedT = TypeVar("DescribedT")
"""What features are read from: a nest, as candidates have it."""


@dataclass(frozen=True)
class Feature(Generic[DescribedT]):
    """A number that is known of every candidate."""

    name: str
    unit: str
    meaning: str
    of: Callable[[DescribedT], Any]
    """A number, or one for each candidate."""


@dataclass(frozen=True)
class Schema(Generic[DescribedT]):
    """The features of candidates on one kind of device."""

    version: int
    """Of the meanings: a feature that comes to mean something else has another one."""
    groups: Mapping[str, tuple[Feature[DescribedT], ...]]
    """``problem``, ``mapping``, ``interaction`` and ``hardware``."""

    @cached_property
    def features(self) -> tuple[Feature[DescribedT], ...]:
        """All of them, in their order."""
        return tuple(feature for rows in self.groups.values() for feature in rows)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the columns are called."""
        return tuple(f.name for f in self.features)

    @cached_property
    def digest(self) -> str:
        """A few hex digits that differ where names, units, meanings or the version do."""
        rows = [(f.name, f.unit, f.meaning) for f in self.features]
        return hashlib.sha256(repr((self.version, rows)).encode()).hexdigest()[:12]
