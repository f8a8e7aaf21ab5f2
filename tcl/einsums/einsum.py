"""``tcl.einsum``, and ``tcl.from_einsum``, which shows the text that it runs."""

from __future__ import annotations

import math
import operator
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from tcl.api import Definitions, define
from tcl.arrays.tracing import check_traced, opaque
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.common.errors import ArgumentError
from tcl.common.forks import free_lock
from tcl.common.number_format import plural
from tcl.common.shown import kind_of, shown
from tcl.einsums.notation import (
    ELLIPSIS,
    Shape,
    read_letters,
    read_numbers,
    with_ranks,
    with_shapes,
)
from tcl.einsums.order import explicit_path, steps_of
from tcl.einsums.text import (
    NAME,
    RESULT,
    Casting,
    checked_casting,
    common_type,
    def_text,
    element_type,
)
from tcl.executors.calls import Calls
from tcl.grammar.syntax.types import FLOAT32, SCALAR_TYPES, ScalarType


@opaque
def einsum(
    *arguments: Any,
    out: Any = None,
    dtype: Any = None,
    order: str | None = "K",
    casting: Casting = "safe",
    optimize: Any = True,
) -> Any:
    """``numpy.einsum`` for arrays of any supported library: ``einsum("bik,kj->bij", A, B)``.

    NumPy's whole syntax is supported: implicit outputs, ``...``, repeated indices, broadcasting of
    extents of 1, ``einsum(A, [0, 1], B, [1, 2], [0, 2])``. Operands are arrays of one library,
    numbers and lists of numbers. The expression becomes a def (``from_einsum`` returns it), which
    is compiled for the shapes of the operands. A limited number of kernels is kept.

    The result is a new array that shares no memory with an operand; NumPy returns views of
    transposes and diagonals. For NumPy operands, a result without dimensions is a number.

    - ``out``: an array for the result, which is returned. It must share no memory with an operand.
    - ``dtype``: the type to compute in. Default: the type to which NumPy promotes the operands and
      ``out``.
    - ``casting``: the allowed casts to these types, as in ``numpy.can_cast``.
    - ``order``: ``"C"``, ``"F"``, ``"A"`` (F if all operands are F) or ``"K"``, which here means C.
    - ``optimize``: True, ``"greedy"`` or ``"optimal"``: use the order of operands with the shortest
      estimated time, with intermediate results if they pay. ``("greedy", most)``: the same, with at
      most ``most`` elements in each intermediate result. A path, as from ``numpy.einsum_path``:
      exactly this path. False: one statement.

    Raises ``ArgumentError`` for invalid expressions, operands and options, and for complex numbers.
    """
    expression, operands = _expression_and_operands(arguments)
    plain = optimize is True and dtype is None and order == "K" and casting == "safe"
    if plain:
        latest = _kept.latest.get(expression)
        if latest is not None:
            found = latest.repeated(operands, out)
            if found is not None:
                return found
    layout = _checked_order(order)
    operands = tuple(_operand(each, number) for number, each in enumerate(operands))
    if out is not None and not (hasattr(out, "dtype") and hasattr(out, "shape")):
        raise ArgumentError(f"einsum: out= has to be an array, not {kind_of(out)}")
    path = explicit_path(optimize)
    if path is None and isinstance(optimize, list):
        optimize = tuple(optimize)
    call = _kept.compiled(
        expression,
        tuple([element_type(each, f"operand {n}").name for n, each in enumerate(operands)]),
        tuple([tuple(np.shape(each)) for each in operands]),
        None if dtype is None else element_type(dtype, "dtype=").name,
        None if out is None else element_type(out, "out=").name,
        checked_casting(casting),
        optimize if path is None else path,
    )
    if out is None and layout in "FA":
        out = call.in_columns(operands, layout)
    result = call(operands, out)
    if plain and call.plain:
        _kept.latest[expression] = call
    return result


class _Call:
    """An expression for operands of given types and shapes, and options."""

    def __init__(
        self, text: str, shape: Shape, result: ScalarType, *, scratch: int, plain: bool
    ) -> None:
        """``scratch``: bytes of intermediate results, which are kept from call to call.
        ``plain``: a call without options would do the same."""
        self.scratch = scratch
        self.plain = plain
        self._definitions: Definitions = define(text)
        self._shape = shape
        self._result = result
        self._executor: Calls[Any] | None = None

    def repeated(self, operands: tuple[Any, ...], out: Any) -> Any:
        """The result, if operands and ``out`` are like those of the last call; None if not."""
        if self._executor is None:
            return None
        found = self._executor.again(operands, None if out is None else (out,))
        return found if out is not None else self._as_number(found)

    def __call__(self, operands: tuple[Any, ...], out: Any) -> Any:
        found = self.repeated(operands, out)
        if found is not None:
            return found
        executor, given = self._definitions.executor(NAME, operands, (RESULT,))
        result = executor.run(given, None if out is None else (out,))
        self._executor = executor
        return result if out is not None else self._as_number(result)

    def _as_number(self, result: Any) -> Any:
        """What NumPy gives for an array of its own without dimensions."""
        return result if self._shape or type(result) is not np.ndarray else result[()]

    def in_columns(self, operands: Sequence[Any], layout: str) -> Any:
        """An array for the result whose first index runs quickest, if the layout is such a one.
        Raises ``ArgumentError`` for arrays of a kind that have no layouts."""
        if not all(isinstance(each, np.ndarray | np.generic | int | float) for each in operands):
            raise ArgumentError(
                f"einsum: order={layout!r} is for NumPy arrays; results of other libraries are 'C'"
            )
        if layout == "A" and not all(np.asarray(each).flags.f_contiguous for each in operands):
            return None
        return np.empty(self._shape, numpy_dtype(self._result), order="F")


_MOST_CALLS = 512
_MOST_SCRATCH = 1 << 28
"""Bytes of intermediate results."""


class _Kept:
    """The calls that came last: no more than ``_MOST_CALLS``, and, but for the last one, none with
    which their intermediate results would be more than ``_MOST_SCRATCH``."""

    def __init__(self) -> None:
        self.latest: dict[str, _Call] = {}
        """The last call of an expression without options."""
        self._calls: OrderedDict[tuple[Any, ...], _Call] = OrderedDict()
        self._lock = free_lock()

    def __len__(self) -> int:
        return len(self._calls)

    def compiled(self, *key: Any) -> _Call:
        """That of ``_call`` for these arguments."""
        with self._lock:
            found = self._calls.get(key)
            if found is not None:
                self._calls.move_to_end(key)
                return found
        made = _compiled_call(*key)
        with self._lock:
            self._calls[key] = made
            scratch = sum(call.scratch for call in self._calls.values())
            while len(self._calls) > _MOST_CALLS or (
                scratch > _MOST_SCRATCH and len(self._calls) > 1
            ):
                (expression, *_), gone = self._calls.popitem(last=False)
                scratch -= gone.scratch
                if self.latest.get(expression) is gone:
                    del self.latest[expression]
        return made


_kept = _Kept()


def _compiled_call(
    expression: str,
    types: tuple[str, ...],
    shapes: tuple[Shape, ...],
    dtype: str | None,
    out: str | None,
    casting: Casting,
    optimize: Any,
) -> _Call:
    """Types are given by their names, which take less time to look up."""
    indexed = with_shapes(read_letters(expression), shapes)
    given = [SCALAR_TYPES[name] for name in types]
    written = None if out is None else SCALAR_TYPES[out]
    computed = common_type(given, None if dtype is None else SCALAR_TYPES[dtype], written, casting)
    result = written or computed
    steps = steps_of(indexed, optimize)
    on_the_way = [math.prod(indexed.sizes[label] for label in step.gives) for step in steps[:-1]]
    return _Call(
        def_text(indexed, steps, given, computed, result),
        tuple(indexed.sizes[label] for label in indexed.output),
        result,
        scratch=sum(on_the_way) * computed.compute.itemsize,
        plain=dtype is None and result == common_type(given, None, None, "safe"),
    )


def _expression_and_operands(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The expression in letters and the operands, of a call in either form."""
    if arguments and isinstance(arguments[0], str):
        return arguments[0], arguments[1:]
    if len(arguments) < 2:
        raise ArgumentError(
            "einsum takes its subscripts as a string and then the operands, as in "
            "einsum('ij,jk->ik', A, B), or each operand with a list of numbers, as in "
            "einsum(A, [0, 1], B, [1, 2], [0, 2])"
        )
    explicit = len(arguments) % 2 == 1
    lists = [*arguments[1::2], *([arguments[-1]] if explicit else [])]
    return str(read_numbers(lists, explicit)), arguments[0 : len(arguments) - explicit : 2]


def _operand(given: Any, number: int) -> Any:
    """An operand that has a type and a shape, or is a number."""
    if isinstance(given, bool | int | float):
        return given
    if hasattr(given, "dtype") and hasattr(given, "shape"):
        check_traced(f"operand {number} of einsum", given)
        return given
    if isinstance(given, list | tuple):
        try:
            return np.asarray(given)
        except ValueError:
            raise ArgumentError(
                f"einsum: operand {number} is a list whose parts have different lengths"
            ) from None
    raise ArgumentError(
        f"einsum: operand {number} has to be an array or a number, not {kind_of(given)}"
    )


def _checked_order(order: Any) -> str:
    found = "K" if order is None else order.upper() if isinstance(order, str) else ""
    if found not in ("C", "F", "A", "K"):
        raise ArgumentError(f"einsum: order has to be 'C', 'F', 'A' or 'K', not {shown(order)}")
    return found


def from_einsum(
    expression: str,
    *operands: Any,
    shapes: Sequence[Sequence[int]] | None = None,
    optimize: Any = True,
) -> str:
    """The text of the def that ``einsum`` runs: ``print(from_einsum("bik,kj->bij", "float32"))``.

    ``operands``: the operands of the call, or element types (``"float32"``, ``numpy.int8``), one
    per operand or one for all. Default: ``float32``. With operands, or with types and ``shapes``,
    the text is exactly the text of ``einsum(expression, *operands, optimize=optimize)``. Without
    shapes, the text has one statement, does not broadcast extents of 1, and ``...`` is refused.
    Raises ``ArgumentError``.
    """
    if not isinstance(expression, str):
        raise ArgumentError(
            f"from_einsum takes the expression as a string, not {kind_of(expression)}"
        )
    notation = read_letters(expression)
    count = len(notation.terms)
    given = [
        each if _is_type(each) else _operand(each, number) for number, each in enumerate(operands)
    ]
    types = [element_type(each, f"operand {number}") for number, each in enumerate(given)]
    types = types or [FLOAT32]
    types = types * count if len(types) == 1 else types
    if shapes is None and given and not any(map(_is_type, given)):
        shapes = [np.shape(each) for each in given]
    if shapes is not None:
        indexed = with_shapes(notation, [tuple(shape) for shape in shapes])
    elif any(ELLIPSIS in term for term in notation.terms):
        raise notation.refused("pass operands or shapes=, to define '...'")
    else:
        indexed = with_ranks(notation, [len(term) for term in notation.terms])
    if len(types) != count:
        raise notation.refused(
            f"there are {plural(count, 'operand')}, but {plural(len(types), 'type')} of elements"
        )
    computed = common_type(types, None, None, "safe")
    return def_text(indexed, steps_of(indexed, optimize), types, computed, computed)


def _is_type(given: Any) -> bool:
    """Whether it is a type of elements, and not an array or a number."""
    return isinstance(given, str | type | np.dtype) or not (
        isinstance(given, bool | int | float | list | tuple) or hasattr(given, "shape")
    )


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """``numpy.tensordot``, computed by ``einsum``: the sum of products over some dimensions of both
    arrays.

    ``axes``: a number N, for the last N dimensions of ``a`` and the first N of ``b``; or the
    dimensions of ``a`` and those of ``b``, each a number or a list, paired in their order. The
    result has the other dimensions of ``a``, then those of ``b``. Raises ``ArgumentError``.
    """
    left, right = np.ndim(a), np.ndim(b)
    of_a, of_b = _axes(axes, left, right)
    first = list(range(left))
    second = list(range(left, left + right))
    for one, other in zip(of_a, of_b, strict=True):
        second[other] = one
    result = [n for n in first if n not in of_a] + [n for n in second if n >= left]
    return einsum(a, first, b, second, result)


def _axes(axes: Any, left: int, right: int) -> tuple[list[int], list[int]]:
    """The dimensions of both that are summed over, counted from the first."""
    refused = ArgumentError(
        f"tensordot: axes={shown(axes)} must be the number of dimensions to sum over, or two lists "
        f"of equal length: dimensions of a, which has {left}, and of b, which has {right}"
    )
    try:
        if isinstance(axes, Sequence):
            one, other = (_axis_list(each) for each in axes)
        else:
            count = operator.index(axes)
            if not 0 <= count <= min(left, right):
                raise refused
            one, other = list(range(left - count, left)), list(range(count))
    except (TypeError, ValueError):
        raise refused from None
    for found, rank in ((one, left), (other, right)):
        if not all(-rank <= axis < rank for axis in found):
            raise refused
        found[:] = [axis % rank for axis in found]
        if len(set(found)) < len(found) or len(one) != len(other):
            raise refused
    return one, other


def _axis_list(axes: Any) -> list[int]:
    return [operator.index(axis) for axis in axes] if hasattr(axes, "__iter__") else [int(axes)]


def transpose(a: Any, axes: Sequence[int]) -> Any:
    """The array with its dimensions in this order, transposed by its own library."""
    return (a.permute if hasattr(a, "permute") else a.transpose)(tuple(axes))
