"""Many configurations at once, as columns: what depends on few knobs is asked once for all that are
alike in these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tcl.codegen.options.knobs import Value
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
    def from_values(values: Sequence[_T]) -> Column[_T]:
        """Hashable values, one for each row. Rows have few different ones."""
        codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
        return Column(tuple(codes), np.array([*map(codes.__getitem__, values)], np.intp))

    def and_one(self, value: _T) -> Column[_T]:
        """The same with another row behind the others."""
        values = self.values if value in self.values else (*self.values, value)
        return Column(values, np.append(self.codes, values.index(value)))

    def part(self, rows: Places) -> Column[_T]:
        return Column(self.values, self.codes[rows])


@dataclass(frozen=True, slots=True)
class Rows:
    """N configurations of a space with K knobs."""

    space: SearchSpace
    places: Places
    """N x K: the place of each knob's value among its choices."""
    _order: dict[str, int] = field(init=False, repr=False, compare=False)
    """The place of each knob, by its name."""

    def __post_init__(self) -> None:
        order = {knob.name: k for k, knob in enumerate(self.space.knobs)}
        object.__setattr__(self, "_order", order)

    @staticmethod
    def from_configs(space: SearchSpace, configs: Sequence[Config]) -> Rows:
        """Of configurations."""
        tables = [{v: k for k, v in enumerate(knob.choices)} for knob in space.knobs]
        found = [[t[v] for t, v in zip(tables, config, strict=True)] for config in configs]
        return Rows(space, np.array(found, np.intp).reshape(len(configs), len(tables)))

    def config(self, row: int) -> Config:
        pairs = zip(self.space.knobs, self.places[row].tolist(), strict=True)
        return tuple(knob.choices[place] for knob, place in pairs)

    def part(self, rows: Places) -> Rows:
        return Rows(self.space, self.places[rows])

    def knob(self, name: str) -> Column[Value]:
        place = self._order[name]
        return Column(self.space.knobs[place].choices, self.places[:, place])

    def column(self, function: Callable[[Mapping[str, Value]], _T]) -> Column[_T]:
        """What a function gives for the values of each row. It is asked once for all rows that are
        alike in what it has read."""
        values: list[_T] = []
        codes = np.zeros(len(self.places), np.intp)
        left = np.arange(len(self.places))
        while len(left):
            read = _Looked(self, int(left[0]))
            value = function(read)
            if not read:
                return Column((value,), codes)
            names = [*read]
            columns = [self.knob(name) for name in names]
            same, firsts = _alike([column.codes[left] for column in columns], len(left))
            known = np.zeros(len(firsts), np.intp)
            rows = left[firsts]
            given = [[c.values[code] for code in c.codes[rows].tolist()] for c in columns]
            for place, (row, *each) in enumerate(zip(rows.tolist(), *given, strict=True)):
                looked = _Looked(self, row)
                looked.update(zip(names, each, strict=True))
                value = function(looked)
                # Rows that were thought to be alike may not be in what else this one has read.
                enough = len(looked) == len(names)
                known[place] = len(values) if enough else -1
                if enough:
                    values.append(value)
            codes[left] = known[same]
            left = left[codes[left] < 0]
        return Column(tuple(values), codes)

    def value(self, name: str, row: int) -> Value:
        place = self._order[name]
        return self.space.knobs[place].choices[int(self.places[row, place])]

    def has(self, name: str) -> bool:
        """Whether there is a knob of this name."""
        return name in self._order


class _Looked(dict[str, Value]):
    __slots__ = ("_row", "_rows")

    def __init__(self, rows: Rows, row: int) -> None:
        self._rows, self._row = rows, row

    def __missing__(self, name: str) -> Value:
        value = self[name] = self._rows.value(name, self._row)
        return value

    def get(self, name: str, default: Value | None = None) -> Value | None:  # type: ignore[override]
        return self[name] if self._rows.has(name) else default


def different(places: Places) -> Places:
    """The first of the rows (N x K) of each kind, in their order."""
    firsts: dict[bytes, int] = {}
    for place, row in enumerate(places.astype(np.int32)):
        firsts.setdefault(row.tobytes(), place)
    return np.array([*firsts.values()], np.intp)


def equal_row_codes(columns: Sequence[Places]) -> Places:
    """A number for each row, counted from 0: the same for rows that are the same in all columns."""
    return _alike(columns, len(columns[0]))[0]


def _alike(columns: Sequence[Places], count: int) -> tuple[Places, Places]:
    """``equal_row_codes``, of ``count`` rows, and the first row of each number."""
    codes, most = np.zeros(count, np.intp), 1
    if not count:
        return codes, codes
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
