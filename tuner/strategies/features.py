"""Configurations as numbers, knob by knob, and how far apart they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tcl.codegen.options.knobs import Knob, odd_part
from tcl.tuner.space.search_space import Config, ConfigSpace

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


class Features:
    """The choices of configurations, one for each knob that has a choice, and a table of how far
    apart the choices of a knob are.

    Knobs with an order have a scale from 0 to 1; two choices of one without are alike, at
    distance 0, or not, at distance 1. Numbers not all of which are powers of two count as two
    knobs, the second one for how far they are from these: powers of two are often fast, and what
    lies between them slow. A knob has few choices: whatever depends on a distance is computed for
    the table, and looked up for configurations.
    """

    def __init__(self, space: ConfigSpace) -> None:
        free = [i for i, k in enumerate(space.knobs) if k.cardinality > 1]
        odd = [i for i in free if space.knobs[i].ordered and any(_odd_parts(space.knobs[i]))]
        self._free = [*free, *odd]
        knobs = [space.knobs[i] for i in self._free]
        squares = [_squares(space.knobs[i]) for i in free]
        squares += [_apart(_odd_parts(space.knobs[i])) for i in odd]
        self._positions = [{choice: i for i, choice in enumerate(k.choices)} for k in knobs]
        counts = np.array([k.cardinality for k in knobs], np.intp)
        self._counts = counts
        self._starts = np.concatenate([np.zeros(1, np.intp), np.cumsum(counts * counts)])[:-1]
        self.knobs: Places = np.repeat(np.arange(len(knobs)), counts * counts)
        """Whose each entry of the table is."""
        self.table: Floats = np.concatenate([np.zeros(0), *(s.ravel() for s in squares)])
        """Squared distances of any two choices of a knob, knob by knob."""

    @property
    def count(self) -> int:
        """Of knobs, those that count as two twice."""
        return len(self._free)

    def rows(self, configs: Sequence[Config]) -> Places:
        """The positions of the choices, one row for each configuration."""
        pairs = tuple(zip(self._free, self._positions, strict=True))
        rows = [[of[config[i]] for i, of in pairs] for config in configs]
        return np.array(rows, np.intp).reshape(len(configs), self.count)

    def pairs(self, a: Places, b: Places) -> Places:
        """Where in the table the distances are of each row of ``a`` to the same row of ``b``: for
        each knob, for each row."""
        return np.ascontiguousarray((self._starts + a * self._counts + b).T)

    def across(self, a: Places, b: Places) -> Places:
        """The same of each row of ``a`` to each of ``b``: for each knob, for both."""
        first = (self._starts + a * self._counts).T
        found: Places = first[:, :, None] + b.T[:, None, :]
        return found

    def distances(self, a: Places, b: Places) -> Floats:
        """Squared distances over all knobs."""
        found: Floats = self.table.take(self.across(a, b)).sum(axis=0)
        return found


def _squares(knob: Knob) -> Floats:
    if not knob.ordered:
        return 1 - np.eye(knob.cardinality)
    return _apart([knob.encode(choice)[0] for choice in knob.choices])


def _odd_parts(knob: Knob) -> list[float]:
    return [odd_part(choice) for choice in knob.choices]


def _apart(codes: Sequence[float]) -> Floats:
    """Squared distances, of which the largest is 1."""
    scaled = np.array(codes) / ((max(codes) - min(codes)) or 1.0)
    found: Floats = (scaled[:, None] - scaled[None, :]) ** 2
    return found
