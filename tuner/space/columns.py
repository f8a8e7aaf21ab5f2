"""Many configurations at once, as columns: what depends on few knobs is asked once for all that are
alike in these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tcl.tuner.space.knobs import Knob, Value
from tcl.tuner.space.search_space import Config, SearchSpace

Places: TypeAlias = NDArray[np.intp]
_T = TypeVar("_T")
_TABLED = 8
"""Numbers for each row up to which a table of all of them takes less time than sorting."""


@dataclass(frozen=True, slots=True)
class Column(Generic[_T]):
    """One value for each of N rows."""

    values: tuple[_T, ...]
    codes: Places
    """N: the place of each row's among them."""

    @staticmethod
    def of(values: Sequence[_T]) -> Column[_T]:
        """Hashable values, one for each row. Rows have few different ones."""
        codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
        return Column(tuple(codes), np.array([*map(codes.__getitem__, values)], np.intp))

    def and_one(self, value: _T) -> Column[_T]:
        """The same with another row behind the others."""
        values = self.values if value in self.values else (*self.values, value)
        return Column(values, np.append(self.codes, values.index(value)))

    def part(self, rows: Places) -> Column[_T]:
        """The same of some rows."""
        return Column(self.values, self.codes[rows])


@dataclass(frozen=True, slots=True)
class Rows:
    """N configurations of a space with K knobs."""

    space: SearchSpace
    places: Places
    """N x K: the place of each knob's value among its choices."""

    @staticmethod
    def of(space: SearchSpace, configs: Sequence[Config]) -> Rows:
        """Of configurations."""
        tables = [{v: k for k, v in enumerate(knob.choices)} for knob in space.knobs]
        found = [[t[v] for t, v in zip(tables, config, strict=True)] for config in configs]
        return Rows(space, np.array(found, np.intp).reshape(len(configs), len(tables)))

    def config(self, row: int) -> Config:
        """One of them."""
        pairs = zip(self.space.knobs, self.places[row].tolist(), strict=True)
        return tuple(knob.choices[place] for knob, place in pairs)

    def part(self, rows: Places) -> Rows:
        """Some of them."""
        return Rows(self.space, self.places[rows])

    def column(self, function: Callable[[Mapping[str, Value]], _T]) -> Column[_T]:
        """What a function gives for the values of each row. It is asked once for all rows that are
        alike in what it has read."""
        order = {knob.name: k for k, knob in enumerate(self.space.knobs)}
        values: list[_T] = []
        codes = np.zeros(len(self.places), np.intp)
        left = np.arange(len(self.places))
        while len(left):
            read = _Looked(self.space.knobs, order, self.places[left[0]].tolist())
            function(read)
            names = [*read]
            at = [order[name] for name in names]
            same, firsts = _alike([self.places[left, k] for k in at], len(left))
            known = np.zeros(len(firsts), np.intp)
            pairs = tuple(zip(names, at, strict=True))
            for place, row in enumerate(self.places[left[firsts]].tolist()):
                looked = _Looked(self.space.knobs, order, row)
                looked.update({n: self.space.knobs[k].choices[row[k]] for n, k in pairs})
                value = function(looked)
                # Rows that were thought to be alike may not be in what else this one has read.
                enough = len(looked) == len(names)
                known[place] = len(values) if enough else -1
                if enough:
                    values.append(value)
            codes[left] = known[same]
            left = left[codes[left] < 0]
        return Column(tuple(values), codes)


class _Looked(dict[str, Value]):
    """The values of a row that have been looked at."""

    __slots__ = ("_knobs", "_order", "_row")

    def __init__(self, knobs: Sequence[Knob], order: Mapping[str, int], row: list[int]) -> None:
        self._knobs, self._order, self._row = knobs, order, row

    def __missing__(self, name: str) -> Value:
        k = self._order[name]
        value = self[name] = self._knobs[k].choices[self._row[k]]
        return value

    def get(self, name: str, default: Value | None = None) -> Value | None:  # type: ignore[override]
        """A value."""
        return self[name] if name in self._order else default


def alike(columns: Sequence[Places]) -> Places:
    """A number for each row, counted from 0: the same for rows that are the same in all columns."""
    return _alike(columns, len(columns[0]))[0]


def _alike(columns: Sequence[Places], count: int) -> tuple[Places, Places]:
    """``alike``, of ``count`` rows, and the first row of each number."""
    codes, most = np.zeros(count, np.intp), 1
    for column in columns:
        width = int(column.max()) + 1
        if most * width >= 1 << 62:
            codes = np.unique(codes, return_inverse=True)[1]
            most = int(codes.max()) + 1
        codes, most = codes * width + column, most * width
    if most > _TABLED * count:
        _, firsts, same = np.unique(codes, return_index=True, return_inverse=True)
        return same.astype(np.intp), firsts.astype(np.intp)
    # The same by a table, without sorting. Of what is written to a place, the last stays.
    table = np.full(most, count)
    table[codes[::-1]] = np.arange(count)[::-1]
    used = np.flatnonzero(table < count)
    firsts = table[used]
    table[used] = np.arange(len(used))
    return table[codes], firsts
