"""What features are: numbers that are known of every candidate, in an order with a version.

What is said of a nest is said again by how much it differs from the heuristic default's, as far as
candidates differ in it, and a few numbers are of all nests together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

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
    """The features of candidates for one kind of device."""

    backend: str
    """What makes kernels for it, as keys of tuning caches have it."""
    version: int
    """Of the meanings: a feature that comes to mean something else has another one."""
    groups: Mapping[str, tuple[Feature[DescribedT], ...]]
    """``problem``, ``mapping``, ``interaction`` and ``hardware``."""
    whole: Mapping[str, str]
    """Those of all nests together, and their meanings."""

    @cached_property
    def features(self) -> tuple[Feature[DescribedT], ...]:
        """All that are of a nest, in their order."""
        return tuple(feature for rows in self.groups.values() for feature in rows)

    @cached_property
    def compared(self) -> NDArray[np.intp]:
        """The places of those that are different for candidates of the same def."""
        places = [k for k, f in enumerate(self.features) if f.name not in self.common]
        return np.array(places, np.intp)

    @cached_property
    def common(self) -> tuple[str, ...]:
        """The names of those that all candidates of a def on a device have in common, or nearly."""
        return tuple(f.name for group in ("problem", "hardware") for f in self.groups[group])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the columns are called: features, by how much they differ from the default's, and
        those of all nests."""
        own = [f.name for f in self.features]
        return (*own, *(f"{own[k]}.change" for k in self.compared), *self.whole)

    @cached_property
    def digest(self) -> str:
        """A few hex digits that differ where names, units, meanings or the version do."""
        rows = [(f.name, f.unit, f.meaning) for f in self.features]
        about = self.backend, self.version, rows, dict(self.whole)
        return hashlib.sha256(repr(about).encode()).hexdigest()[:12]
