"""``dataclass`` as the standard library's, at a tenth of its cost while modules are imported.

The standard library compiles the methods of a class from text when the class is made, which takes
.2 to .4 ms, and a process has a hundred of them before its first call. Here fields are the standard
library's, so that ``replace``, ``fields``, ``astuple``, copies and ``match`` work as with its own;
methods are the same functions for all classes, or compiled when they are first asked for.

A class with a slot ``_hash`` computes its hash once.

``made_often`` is for classes of which a compile makes thousands: they are frozen for type checkers
alone, and made in half of the time.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError, fields
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

__all__ = ("Hashed", "dataclass", "made_often", "replace")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import dataclass as made_often
    from dataclasses import replace as replace
else:

    def replace(made, /, **changes):
        """The standard library's, by a function of each class, which takes half of the time."""
        cls = made.__class__
        return (_REPLACING.get(cls) or _replacing(cls))(made, **changes)

    def made_often(cls=None, /, **settings):
        """``dataclass`` without a guard against changes."""
        return dataclass(cls, guarded=False, **settings)

    def dataclass(
        cls=None,
        /,
        *,
        frozen=False,
        slots=False,
        eq=True,
        init=True,
        kw_only=False,
        guarded=True,
    ):
        """The standard library's, as far as it is used here."""

        def decorate(plain):
            own = plain.__dict__
            plain.__doc__ = plain.__doc__ or plain.__name__  # else ``inspect`` makes one up
            below = (getattr(base, "__dataclass_params__", None) for base in plain.__mro__[1:])
            bare = dataclasses.dataclass(
                **{"init": False, "repr": False, "eq": False, "slots": slots, "kw_only": kw_only},
                frozen=frozen and any(params is not None and params.frozen for params in below),
            )
            made = bare(plain)
            made.__dataclass_params__.frozen = frozen
            methods = {"__repr__": _repr}
            if init:
                methods["__init__"] = _LazyMethod(made, "__init__", frozen and guarded)
            if eq:
                methods["__eq__"] = _LazyMethod(made, "__eq__", frozen)
                methods["__hash__"] = _LazyMethod(made, "__hash__", frozen) if frozen else None
            if frozen and guarded:
                methods |= {"__setattr__": _refuse_change, "__delattr__": _refuse_change}
            if frozen and slots:  # what restores copies would set attributes
                methods |= {"__getstate__": _state, "__setstate__": _restore}
            for name, method in methods.items():
                if own.get(name) is None:
                    setattr(made, name, method)
            return made

        return decorate if cls is None else decorate(cls)


_REPLACING: dict[type, Any] = {}
"""By class, what makes another one of one of them."""


def _replacing(cls: Any) -> Any:
    given = sorted((f for f in fields(cls) if f.init), key=lambda f: bool(f.kw_only))
    values = [
        f"{f'{f.name}=' if f.kw_only else ''}self.{f.name} if {f.name} is _missing else {f.name}"
        for f in given
    ]
    parameters = ", ".join(
        ["self", "/", *["*"][: len(given)], *(f"{f.name}=_missing" for f in given)]
    )
    known = {"_missing": MISSING, "_class": cls}
    exec(f"def _replaced({parameters}):\n    return _class({', '.join(values)})", known)
    return _REPLACING.setdefault(cls, known["_replaced"])


class Hashed:
    """What is made of others of its kind, and looked up at every level that it is nested in: its
    hash is computed once."""

    __slots__ = ("_hash",)


class _LazyMethod:
    """A method that is compiled when it is first asked for, and then stands in its own place."""

    def __init__(self, cls: Any, name: str, frozen: bool) -> None:
        self.cls, self.name, self.frozen = cls, name, frozen

    def __get__(self, instance: object, owner: type) -> Any:
        cls, name = self.cls, self.name
        known = {"_set": object.__setattr__, "_missing": MISSING}
        text = (
            _init_text(cls, self.frozen, known) if name == "__init__" else _method_text(cls, name)
        )
        exec(text, known)
        function: Any = known[name]
        function.__qualname__ = f"{cls.__qualname__}.{name}"
        function.__module__ = cls.__module__
        setattr(cls, name, function)
        return function.__get__(instance, owner)


def _init_text(cls: Any, frozen: bool, known: dict[str, Any]) -> str:
    parameters, by_name, body = ["self"], ["*"], []
    for f in fields(cls):
        value, parameter, given = f.name, f.name, f"_{f.name}"
        if f.default_factory is not MISSING:
            known[given] = f.default_factory
            value = f"{given}() if {f.name} is _missing else {f.name}" if f.init else f"{given}()"
            parameter += "=_missing"
        elif f.default is not MISSING:
            known[given] = f.default
            value = f.name if f.init else given
            parameter += f"={given}"
        elif not f.init:  # __post_init__ sets it
            continue
        if f.init:
            (by_name if f.kw_only else parameters).append(parameter)
        if not frozen:
            body.append(f"self.{f.name} = {value}")
        elif isinstance(slot := getattr(cls, f.name, None), MemberDescriptorType):
            known[f"_set_{f.name}"] = slot.__set__  # without a search for the name
            body.append(f"_set_{f.name}(self, {value})")
        else:
            body.append(f"_set(self, {f.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    inside = "\n    ".join(body or ["pass"])
    header = ", ".join(parameters + (by_name if len(by_name) > 1 else []))
    return f"def __init__({header}):\n    {inside}"


def _method_text(cls: Any, name: str) -> str:
    """Of ``__eq__`` or ``__hash__``."""
    compared = [f.name for f in fields(cls) if f.compare]
    mine, other = (f"({''.join(f'{who}.{n}, ' for n in compared)})" for who in ("self", "other"))
    if name == "__eq__":
        return f"""def __eq__(self, other):
    return {mine} == {other} if other.__class__ is self.__class__ else NotImplemented"""
    if not hasattr(cls, "_hash"):
        return f"def __hash__(self):\n    return hash({mine})"
    return f"""def __hash__(self):
    try:
        return self._hash
    except AttributeError:
        _set(self, "_hash", hash({mine}))
        return self._hash"""


@recursive_repr()
def _repr(self: Any) -> str:
    values = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(values)})"


def _refuse_change(self: Any, name: str, *_: Any) -> None:
    raise FrozenInstanceError(f"{type(self).__qualname__} is frozen: {name!r} stays as it is")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)
