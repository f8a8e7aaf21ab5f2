"""Many configurations at once, as columns: what depends on few knobs is asked once for all that are
alike in these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tcl.tuner.space.knobs import Knob, Value
from tcl.tuner.space.search_space import Config, SearchSpace, reading

Places: TypeAlias = NDArray[np.intp]
_T = TypeVar("_T")


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
        if not len(self.places):
            return Column((), np.zeros(0, np.intp))
        names = reading(function, _Values(self.space.knobs, order, self.places[0]))[1]
        while True:
            places = [order[name] for name in sorted(names)]
            codes = _alike([self.places[:, k] for k in places], len(self.places))
            values: list[_T] = []
            for row in np.unique(codes, return_index=True)[1].tolist():
                value, read = reading(function, _Values(self.space.knobs, order, self.places[row]))
                values.append(value)
                if not read <= names:  # rows that were thought to be alike may not be
                    names |= read
                    break
            else:
                return Column(tuple(values), codes)


class _Values(Mapping[str, Value]):
    """The values of a row, of which few are looked at."""

    __slots__ = ("_knobs", "_order", "_row")

    def __init__(self, knobs: Sequence[Knob], order: Mapping[str, int], row: Places) -> None:
        self._knobs, self._order, self._row = knobs, order, row

    def __getitem__(self, name: str) -> Value:
        k = self._order[name]
        return self._knobs[k].choices[int(self._row[k])]

    def __iter__(self) -> Iterator[str]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)


def alike(columns: Sequence[Places]) -> Places:
    """A number for each row, counted from 0: the same for rows that are the same in all columns."""
    return _alike(columns, len(columns[0]))


def _alike(columns: Sequence[Places], count: int) -> Places:
    codes, most = np.zeros(count, np.intp), 1
    for column in columns:
        width = int(column.max()) + 1
        if most * width >= 1 << 62:
            codes = np.unique(codes, return_inverse=True)[1]
            most = int(codes.max()) + 1
        codes, most = codes * width + column, most * width
    found: Places = np.unique(codes, return_inverse=True)[1].astype(np.intp)
    return found
