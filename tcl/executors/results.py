"""What a call of a def with several outputs returns: a tuple with their names."""

from __future__ import annotations

import functools
from collections import namedtuple
from operator import itemgetter
from typing import Any


class _Results(tuple[Any, ...]):
    """A copy, pickled or not, is of the same names; no module has the class itself."""

    __slots__ = ()
    _of: tuple[str, tuple[str, ...]]

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (*self._of, tuple(self))


@functools.cache
def results_class(entry: str, names: tuple[str, ...]) -> type[Any]:
    """A named tuple, equal to a plain one with the same items.

    Where a name cannot be a field of a named tuple, as ``lambda`` cannot, the field is called by
    its place, ``_1``; ``getattr`` with the name itself finds the item too, unless every named tuple
    has an attribute of that name.
    """
    plain = namedtuple("Results", names, rename=True)  # type: ignore[misc]
    made = type(entry, (_Results, plain), {"__slots__": (), "_of": (entry, names)})
    taken = dir(type("_", (_Results, namedtuple("Results", ())), {}))
    for position, name in enumerate(names):
        if name in ("count", "index") or name not in taken:
            setattr(made, name, property(itemgetter(position)))
    return made


def _again(entry: str, names: tuple[str, ...], items: tuple[Any, ...]) -> Any:
    return results_class(entry, names)(*items)
