"""The def of an expression, and the types that it is computed in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from tcl.codegen.common.dtypes import numpy_dtype
from tcl.common.errors import ArgumentError
from tcl.common.shown import kind_of, shown
from tcl.einsums.notation import Indexed, Term
from tcl.einsums.order import ContractionStep
from tcl.grammar.syntax.types import SCALAR_TYPES, ScalarType

NAME = "einsum"
"""Of the def."""
RESULT = "Out"
"""Of its last output, the others being on the way to it."""
_LONGEST = 88
"""Columns that the parameters may take on one line."""


def def_text(
    indexed: Indexed,
    steps: Sequence[ContractionStep],
    types: Sequence[ScalarType],
    computed: ScalarType,
    result: ScalarType,
) -> str:
    """The text whose last output is the value of the expression.

    ``types`` are those of the operands. All is ``computed`` in one type, to which operands are cast
    before anything is done with them, as NumPy does; the ``result`` is cast to another at the end.
    Intermediate results of 16-bit floats are kept in ``float32``. Sums of bools are "or", products
    "and".
    """
    if len(steps) > 1:
        computed = computed.compute
    names = _index_names(indexed)
    sizes = {label: name.upper() for label, name in names.items()}
    inputs = _input_names(len(indexed.terms), set(sizes.values()))
    cast_at_end = result != computed
    tensors = [*inputs, *(f"Part{n + 1}" for n in range(len(steps) - (not cast_at_end)))]
    if not cast_at_end:
        tensors.append(RESULT)
    terms: list[Term] = [*indexed.terms, *(step.gives for step in steps)]

    def element_text(number: int) -> str:
        read = _element(tensors[number], terms[number], names)
        return read if number >= len(inputs) else _cast(read, types[number], computed)

    statements = []
    for number, step in enumerate(steps, start=len(inputs)):
        product = (" && " if computed.is_bool else " * ").join(map(element_text, step.takes))
        read = {label for taken in step.takes for label in terms[taken]} - {None}
        reduces = bool(read - set(step.gives))
        sign = ("max=!" if computed.is_bool else "+=!") if reduces else "="
        statements.append(f"{_element(tensors[number], step.gives, names)} {sign} {product}")
    if cast_at_end:
        value = _cast(element_text(len(tensors) - 1), computed, result)
        statements.append(f"{_element(RESULT, indexed.output, names)} = {value}")
        tensors.append(RESULT)
    parameters = [
        f"{type_} {name}"
        if not term
        else f"{type_}({', '.join('1' if x is None else sizes[x] for x in term)}) {name}"
        for type_, name, term in zip(types, inputs, indexed.terms, strict=True)
    ]
    return _assembled(str(indexed.notation), parameters, tensors[len(inputs) :], statements)


def _assembled(
    comment: str, parameters: Sequence[str], outputs: Sequence[str], statements: Sequence[str]
) -> str:
    head = f"def {NAME}("
    between = ", " if sum(map(len, parameters)) <= _LONGEST else ",\n" + " " * len(head)
    lines = [
        f"# {comment}",
        f"{head}{between.join(parameters)}) -> ({', '.join(outputs)}) {{",
        *(f"    {statement}" for statement in statements),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _index_names(indexed: Indexed) -> dict[str, str]:
    """The letters themselves, in lower case; ``x0``, ``x1`` for an ellipsis. Sizes are the same in
    upper case, so that the two are never confused."""
    labels = {label for term in indexed.terms for label in term if label is not None}
    labels.update(indexed.output)
    names = {}
    for label in sorted(labels):
        both = label.isupper() and label.lower() in labels
        names[label] = f"x{label}" if label.isdigit() else label.lower() + "_" * both
    return names


def _input_names(count: int, taken: set[str]) -> list[str]:
    """A, B, C, or others where sizes are called so."""
    for letters in ("ABCDEFGH", "XYZ", "UVW"):
        names = list(letters[:count])
        if len(names) == count and taken.isdisjoint(names):
            return names
    return [f"In{number + 1}" for number in range(count)]


def _element(tensor: str, term: Term, names: dict[str, str]) -> str:
    subscripts = ("0" if label is None else names[label] for label in term)
    return f"{tensor}({', '.join(subscripts)})" if term else tensor


def _cast(value: str, given: ScalarType, wanted: ScalarType) -> str:
    """A value as another type. Floats become narrow integers by way of ``int64``, so that they wrap
    as NumPy's do."""
    if given == wanted:
        return value
    if given.is_float and wanted.is_integral and wanted.bits < 64:
        value = f"int64({value})"
    return f"{wanted}({value})"


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
            f"einsum: {whose} is {name}; complex numbers are not supported: compute with real "
            "and imaginary parts"
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
                f"einsum: {what}, which casting={casting!r} does not allow to cast to {wanted}; "
                "cast it first, or pass another casting="
            )
    return found


def _promoted(types: Sequence[ScalarType]) -> ScalarType:
    try:
        return SCALAR_TYPES[np.result_type(*map(numpy_dtype, types)).name]
    except (TypeError, KeyError):
        names = " and ".join(dict.fromkeys(map(str, types)))
        raise ArgumentError(
            f"einsum: {names} have no common type; pass dtype= and casting='unsafe'"
        ) from None
