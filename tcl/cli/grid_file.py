"""The file of ``tcl tune --grid``: which defs, at which sizes, with which settings.

It is TOML. Settings, by the names of the command's options, stand at the top or, for some points
only, in a table; each ``[[tune]]`` names a def and sizes:

    generations = 10
    threads = 2

    [[tune]]
    file = "matmul.tc"
    entry = "matmul"
    sizes = { M = [256, 512], N = 512, K = [64, 128] }

    [[tune]]
    file = "softmax.tc"
    sizes = ["small", { N = 100, D = 1000 }]
    varying = ["N"]
    time_limit = 60

A list of values of a size stands for each of them, several for every combination; a text is a label
of the def's ``# sizes`` comments. Without ``sizes`` the first of these is taken. ``varying`` names
sizes whose classes are tuned for. A file is looked for beside the grid's.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcl.arrays.annotations import default_sizes, labelled_sizes, no_size, read_annotations
from tcl.cli.common import check_varying, load, pick, read, title_of
from tcl.cli.settings import SETTINGS, check_type
from tcl.codegen.cpu.thread_count import thread_count
from tcl.common.closest import did_you_mean
from tcl.common.errors import ArgumentError, TclError
from tcl.common.shown import shown
from tcl.grammar.tree.checked import CheckedDef

_TABLES = "tune"
_OWN = ("file", "entry", "sizes", "varying")
_MOST = 10_000
"""Points."""
_LARGEST = 10**18
_MOST_DOTS = 200
"""In a line: ``tomllib`` takes quadratic time in the parts of a key."""


class GridError(TclError):
    """All that is wrong with a grid's file, one sentence a line."""

    def __init__(self, problems: Iterable[str]) -> None:
        super().__init__("\n".join(problems))


@dataclass(frozen=True, slots=True)
class GridPoint:
    place: str
    """Which table it is from, for people."""
    text: str
    """Of the file that the def is in."""
    checked: CheckedDef
    sizes: Mapping[str, int]
    settings: Mapping[str, Any]
    """The table's, and the grid's where it has none."""
    varying: tuple[str, ...] = ()
    """Names of sizes: what is tuned for is their class."""

    @property
    def title(self) -> str:
        """The def and its sizes, for people."""
        return title_of(self.checked, self.sizes, self.varying)


def read_grid(path: Path) -> list[GridPoint]:
    """The points of a grid's file, in its order; ``GridError`` unless all of it is right."""
    reader = _Reader(path)
    points = reader.read_points()
    if reader.problems:
        raise GridError(dict.fromkeys(reader.problems))
    return points


def most_threads(points: Iterable[GridPoint], given: int | None) -> int:
    """The threads of the point that has the most; ``given`` holds for all, if it is there."""

    asked = {given if given is not None else p.settings.get("threads") for p in points}
    most = 0
    for each in asked:
        with contextlib.suppress(ArgumentError):  # the plan says so, with its place
            most = max(most, thread_count(each))
    return most or thread_count(given)


class _Reader:
    """Reads one file. What is wrong is noted in ``problems``, and the rest read all the same."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._load = functools.cache(load)
        self.problems: list[str] = []

    @contextlib.contextmanager
    def _noted(self, place: object) -> Iterator[None]:
        """What is wrong within is noted, with its place."""
        try:
            yield
        except ArgumentError as error:
            self.problems.append(f"{place}: error: {error}")
        except TclError as error:  # with places of its own
            self.problems.append(str(error))

    def read_points(self) -> list[GridPoint]:
        text = read(self._path)
        found: list[GridPoint] = []
        with self._noted(self._path):
            for number, line in enumerate(text.split("\n"), start=1):
                if line.count(".") > _MOST_DOTS:
                    raise ArgumentError(
                        f"line {number} has more than {_MOST_DOTS} dots; no grid needs so many"
                    )
            try:
                data = tomllib.loads(text)
            except (ValueError, RecursionError) as error:  # also for a number of too many digits
                raise ArgumentError(f"this is not TOML: {error}") from None
            tables = data.pop(_TABLES, [])
            settings = self._settings(self._path, data, (_TABLES,))
            if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
                raise ArgumentError(f"tables of a grid need two brackets: [[{_TABLES}]]")
            if not tables:
                raise ArgumentError(
                    f"there is nothing to tune; add a table [[{_TABLES}]] with a file"
                )
            for number, table in enumerate(tables, start=1):
                found += self._table(f"{self._path}: [[{_TABLES}]] {number}", table, settings)
            if len(found) > _MOST:
                raise ArgumentError(f"the grid has {len(found)} points; the limit is {_MOST}")
        return found

    def _table(
        self, place: str, table: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> Iterator[GridPoint]:
        own = {k: v for k, v in table.items() if k not in _OWN}
        settings = {**settings, **self._settings(place, own, _OWN)}
        with self._noted(place):
            text, checked = self._chosen(table)
            varying = _varying(table.get("varying", []), checked)
            for sizes in _size_sets(table.get("sizes"), checked):
                yield GridPoint(place, text, checked, sizes, settings, varying)

    def _settings(
        self, place: object, data: Mapping[str, Any], others: Iterable[str]
    ) -> dict[str, Any]:
        """Those of a table; ``others`` are the keys that it may have besides."""
        right = {}
        for name, value in data.items():
            with self._noted(place):
                if name not in SETTINGS:
                    raise ArgumentError(_unknown("key", name, (*others, *SETTINGS)))
                check_type(name, value)
                right[name] = value
        return right

    def _chosen(self, table: Mapping[str, Any]) -> tuple[str, CheckedDef]:
        """The text of the table's file and its def."""
        name, entry = table.get("file"), table.get("entry")
        if name is None:
            raise ArgumentError('it needs a file, as file = "matmul.tc"')
        if not isinstance(name, str) or not isinstance(entry, str | None):
            wrong = "file" if not isinstance(name, str) else "entry"
            raise ArgumentError(f"{wrong} must be a text in quotes, not {table.get(wrong)!r}")
        file = self._path.parent / name
        text, defs = self._load(file)
        if entry is None and len(defs) > 1:
            entries = " or ".join(f'"{name}"' for name in defs)
            raise ArgumentError(f"{file} has {len(defs)} defs; choose one with entry = {entries}")
        return text, pick(defs, file, entry)


def _varying(given: object, checked: CheckedDef) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(
            f'varying has to be names of sizes, as varying = ["N"], not {shown(given)}'
        )
    check_varying(checked, names, "varying")
    return tuple(dict.fromkeys(names))


def _size_sets(given: object, checked: CheckedDef) -> list[dict[str, int]]:
    """The sizes that a table asks for; ``ArgumentError`` unless each is complete."""
    if given is None:
        if checked.sizes and not read_annotations(checked).sizes:
            raise ArgumentError(_missing(checked, checked.sizes))
        return [default_sizes(checked)]
    parts = given if isinstance(given, list) else [given]
    if not parts:
        raise ArgumentError("sizes is an empty list; leave it out, or give sizes")
    return [sizes for part in parts for sizes in _size_set(part, checked)]


def _size_set(given: object, checked: CheckedDef) -> list[dict[str, int]]:
    if isinstance(given, str):
        known = read_annotations(checked).sizes
        if given not in known:
            raise ArgumentError(_unknown(f"label of sizes of {checked.name}", given, known))
        return [labelled_sizes(checked, given)]
    if not isinstance(given, dict):
        raise ArgumentError(
            f"sizes must look like {_example(checked)}, or be a label, not {given!r}"
        )
    for name in given:
        if name not in checked.sizes:
            raise ArgumentError(no_size(checked, name))
    missing = [name for name in checked.sizes if name not in given]
    if missing:
        raise ArgumentError(_missing(checked, missing))
    lists = [_values(name, given[name]) for name in checked.sizes]
    if math.prod(map(len, lists)) > _MOST:
        raise ArgumentError(
            f"sizes are {math.prod(map(len, lists))} combinations; a grid can have at most "
            f"{_MOST} points"
        )
    return [dict(zip(checked.sizes, c, strict=True)) for c in itertools.product(*lists)]


def _values(name: str, given: object) -> list[int]:
    values: list[int] = []
    for value in given if isinstance(given, list) else [given]:
        if type(value) is not int or not 0 <= value < _LARGEST:
            raise ArgumentError(f"the size {name} must be a whole number, not {value!r}")
        values.append(value)
    if not values:
        raise ArgumentError(f"the size {name} has no value; its list is empty")
    return values


def _missing(checked: CheckedDef, names: Iterable[str]) -> str:
    return f"{checked.name} needs a value for {', '.join(names)}; write sizes = {_example(checked)}"


def _example(checked: CheckedDef) -> str:
    return f"{{ {', '.join(f'{s} = ...' for s in checked.sizes)} }}"


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    """That there is no such thing, and what there is."""
    names = list(known)
    there = f"there is {', '.join(names)}" if names else "there is none"
    return f"there is no {what} {name!r}; {did_you_mean(name, names, there)}"
