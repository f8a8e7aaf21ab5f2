"""Dataclasses as bytes: compiled code, kept in files and sent between processes, with what a run
needs besides.

A line with the checksum of all that follows, a line of JSON, and the fields that are ``bytes`` one
after the other.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from tcl.grammar.syntax.types import SCALAR_TYPES, ScalarType

MAGIC = b"tcl envelope 1 "

_T = TypeVar("_T")


def seal(value: Any, name: str = "") -> bytes:
    """A dataclass under a name. Its fields are numbers, strings, bytes, enumerations, scalar types,
    dataclasses, and tuples of these."""
    blobs: list[bytes] = []
    header = {"name": name, "class": type(value).__name__, "value": _as_json(value, blobs)}
    rest = b"\n".join((json.dumps(header, separators=(",", ":")).encode(), b"".join(blobs)))
    return MAGIC + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def unseal(class_: type[_T], content: bytes, name: str = "") -> _T | None:
    """What ``seal`` made of an instance of this class under this name; None for anything else."""
    first, _, rest = content.partition(b"\n")
    if first != MAGIC + hashlib.sha256(rest).hexdigest().encode():
        return None
    line, _, blobs = rest.partition(b"\n")
    try:
        header = json.loads(line)
        if (header["name"], header["class"]) != (name, class_.__name__):
            return None
        found: _T = _of_json(class_, header["value"], io.BytesIO(blobs))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return found


def _as_json(value: Any, blobs: list[bytes]) -> Any:
    match value:
        case bytes():
            blobs.append(value)
            return len(value)
        case int() | str():
            return value
        case ScalarType() | Enum():
            return value.name
        case tuple():
            return [_as_json(each, blobs) for each in value]
        case _:
            return {f.name: _as_json(getattr(value, f.name), blobs) for f in fields(value)}


def _of_json(type_: Any, data: Any, blobs: io.BytesIO) -> Any:
    """The inverse of ``_as_json``, for a value of this type. Raises ``ValueError``, ``TypeError``
    or ``KeyError`` for data of another form."""
    if type_ is bytes:
        blob = blobs.read(data)
        if len(blob) != data:
            raise ValueError
        return blob
    if type_ in (int, bool, str):
        if type(data) is not type_:
            raise TypeError
        return data
    if type_ is ScalarType:
        return SCALAR_TYPES[data]
    if get_origin(type_) is tuple:
        types = get_args(type_)
        if types[-1] is Ellipsis:
            types = types[:1] * len(data)
        return tuple(_of_json(t, each, blobs) for t, each in zip(types, data, strict=True))
    if issubclass(type_, Enum):
        return type_[data]
    declared = _field_types(type_)
    if dict(data).keys() != declared.keys():
        raise KeyError
    return type_(**{name: _of_json(t, data[name], blobs) for name, t in declared.items()})


@functools.cache
def _field_types(class_: Any) -> Mapping[str, Any]:
    """The types of a dataclass's fields, in order."""
    hints = get_type_hints(class_)
    return {f.name: hints[f.name] for f in fields(class_)}
