"""The types of an expression's operands, and the one that it is computed in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.common.errors import ArgumentError
from tcl.common.shown import kind_of, shown
from tcl.grammar.syntax.types import SCALAR_TYPES, ScalarType

Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]


def checked_casting(casting: Any) -> Casting:
    """One of NumPy's rules. Raises ``ArgumentError``."""
    if casting in get_args(Casting):
        found: Casting = casting
        return found
    known = ", ".join(map(repr, get_args(Casting)))
    raise ArgumentError(f"einsum: casting has to be one of {known}, not {shown(casting)}")


def element_type(given: Any, whose: str) -> ScalarType:
    """The type of an array's elements, of a number, or what a dtype stands for, of any library.
    Raises ``ArgumentError``."""
    if isinstance(given, bool | int | float):
        given = np.asarray(given)
    dtype = given if isinstance(given, type | np.dtype | str) else getattr(given, "dtype", given)
    try:
        return _type_of_dtype(dtype)
    except TypeError:
        given = shown(dtype) if isinstance(dtype, str) else kind_of(dtype)
        raise ArgumentError(f"einsum: {whose} has to be a type of elements, not {given}") from None
    except KeyError as error:
        name = error.args[0]
    if "complex" in name:
        raise ArgumentError(
            f"einsum: {whose} is {name}, and there are no complex numbers; "
            "compute with real and imaginary parts"
        )
    raise ArgumentError(
        f"einsum: {whose} is {name}, which is not supported; "
        f"convert to one of {', '.join(SCALAR_TYPES)}"
    )


@lru_cache(64)
def _type_of_dtype(dtype: Any) -> ScalarType:
    """What a dtype stands for. Raises ``KeyError`` with the name of a type that defs do not have,
    and ``TypeError`` for what is no dtype."""
    name = str(dtype)
    if name.startswith("torch.") or name in SCALAR_TYPES:  # NumPy may not know of bfloat16
        return SCALAR_TYPES[name.removeprefix("torch.")]
    return SCALAR_TYPES[np.dtype(dtype).name]


def common_type(
    types: Sequence[ScalarType],
    dtype: ScalarType | None,
    out: ScalarType | None,
    casting: Casting,
) -> ScalarType:
    """The type to compute in: ``dtype``, or what NumPy promotes the operands and ``out`` to. Raises
    ``ArgumentError`` if there is none, or if ``casting`` forbids what has to be cast."""
    found = dtype or _promoted([*types, *([] if out is None else [out])])
    steps = [(f"operand {n} is {given}", given, found) for n, given in enumerate(types)]
    if out is not None:
        steps.append((f"the result is {found}", found, out))
    for what, given, wanted in steps:
        if not np.can_cast(numpy_dtype(given), numpy_dtype(wanted), casting):
            raise ArgumentError(
                f"einsum: {what}, which casting={casting!r} does not let become {wanted}; "
                "cast it before, or pass another casting="
            )
    return found


def _promoted(types: Sequence[ScalarType]) -> ScalarType:
    try:
        return SCALAR_TYPES[np.result_type(*map(numpy_dtype, types)).name]
    except (TypeError, KeyError):
        names = " and ".join(dict.fromkeys(map(str, types)))
        raise ArgumentError(
            f"einsum: there is no type that {names} are promoted to; "
            "pass dtype= and casting='unsafe'"
        ) from None
