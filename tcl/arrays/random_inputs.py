"""Random inputs of a def for given sizes: of index tensors, values that lead to no element that is
not there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from tcl.arrays.annotations import read_annotations
from tcl.arrays.arguments import Array, allocated
from tcl.common.errors import ArgumentError
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.linear import NO_FACTS, Analysis, Linear, accesses
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.types import FLOAT64
from tcl.grammar.tree.checked import Binary, CheckedDef, Expr, LetRef, Read, Tensor, Unary
from tcl.grammar.tree.traverse import computed, evaluated, reads, walk


def random_inputs(
    checked: CheckedDef, sizes: Mapping[str, int], seed: int = 0
) -> tuple[Array, ...]:
    """One array per input: floats from the standard normal distribution, integers from 0 to 7
    (those of them that fit, of an index tensor), bools by coin, or what the def's ``# values``
    comments say. Equal seeds give equal arrays. Raises ``ArgumentError`` for comments that cannot
    be read, or hold no value for these sizes."""
    rng = np.random.default_rng(seed)
    said = read_annotations(checked)
    for fault in said.faults:
        raise ArgumentError(fault)
    values = dict(said.values)
    if any(t.type.is_integral and t.name not in values for t in checked.inputs):
        fit = fitting(checked, {t.name: input_shape(t, sizes) for t in checked.inputs})
        for name, (low, high) in fit.items():
            if low <= 7 and high >= 0:
                values.setdefault(name, (str(max(low, 0)), str(min(high, 7) + 1)))

    def fill_one(tensor: Tensor) -> Array:
        what, limits = f"input '{tensor.name}' of {checked.name}", values.get(tensor.name)
        shape = input_shape(tensor, sizes)
        fill = partial(_array, rng, tensor, limits, sizes)
        return allocated(what, tensor, shape, sizes, fill)

    return tuple(map(fill_one, checked.inputs))


def input_shape(tensor: Tensor, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sizes[d] if isinstance(d, str) else d for d in tensor.dims or ())


def _array(
    rng: np.random.Generator,
    tensor: Tensor,
    limits: tuple[str, str] | None,
    sizes: Mapping[str, int],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Array:
    if tensor.type.is_float:
        return _floats(rng, tensor, limits, sizes, shape, dtype).astype(dtype, copy=False)
    if tensor.type.is_bool and limits is None:
        return rng.integers(0, 2, shape, dtype=np.uint8).astype(np.bool_)
    low, high = (0, 8)
    if limits is not None:
        low, high = (int(_limit(text, sizes)) for text in limits)
        least, most = tensor.type.limits
        if low < least or high - 1 > most:
            raise ArgumentError(
                f"the comment '# values {tensor.name}' goes from {low} to {high - 1}, but "
                f"{tensor.type.name} from {least} to {most}; choose other values or sizes"
            )
    if high <= low:
        raise ArgumentError(
            f"there is no value for '{tensor.name}' from {low} up to, and not including, "
            f"{high}; choose other sizes, or correct its comment '# values {tensor.name}: ...'"
        )
    drawn = np.int64 if high <= 2**63 else np.uint64
    return rng.integers(low, high, shape, dtype=drawn).astype(dtype)


def _floats(
    rng: np.random.Generator,
    tensor: Tensor,
    limits: tuple[str, str] | None,
    sizes: Mapping[str, int],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Array:
    drawn: type[np.float32] | type[np.float64]
    drawn = np.float64 if tensor.type == FLOAT64 else np.float32
    if limits is None:
        return np.asarray(rng.standard_normal(shape, drawn))
    low, high = (_limit(text, sizes) for text in limits)
    with np.errstate(over="ignore"):
        fit = np.isfinite(np.array([low, high]).astype(dtype)).all()
    if not fit:
        raise ArgumentError(
            f"the comment '# values {tensor.name}' goes from {low:g} to {high:g}, which "
            f"{tensor.type.name} cannot hold; choose other values or sizes"
        )
    return np.asarray(low + (high - low) * rng.random(shape, drawn), drawn)


def _limit(text: str, sizes: Mapping[str, int]) -> float:
    return sizes[text] if text in sizes else float(text)


# --- index tensors ---


class _Small(Analysis):
    """Linear forms of arithmetic on values that are too small to wrap."""

    def _unless_it_wraps(self, expr: Unary | Binary, form: Linear) -> Linear:
        return form


def index_tensors(checked: CheckedDef) -> tuple[str, ...]:
    """The inputs that are read inside subscripts, the integer ones if there are any; else all
    integer ones, or all."""
    whole = [t.name for t in checked.inputs if t.type.is_integral]
    subscripts = [
        subscript
        for statement in checked.statements
        for expr in evaluated(statement)
        for read in walk(expr)
        if isinstance(read, Read)
        for subscript in read.subscripts
    ]
    subscripts += [s for statement in checked.statements for s in computed(statement)]
    found = {n.tensor for s in subscripts for n in walk(s) if isinstance(n, Read)}
    read = [t.name for t in checked.inputs if t.name in found]
    return tuple(
        [n for n in read if n in whole] or read or whole or [t.name for t in checked.inputs]
    )


def subscripts_meant(sized: SizedDef, message: str) -> tuple[list[Expr], bool]:
    """The subscripts that may have left their tensor, as the ``message`` of a kernel says, and
    whether an input's value decides one of them: if none does, the sizes do not fit."""
    data = {t.name for t in sized.checked.inputs}
    found: list[Expr] = []
    decided = False
    for each in sized.statements:
        statement = each.statement
        lets: set[str] = set()

        def of_data(*exprs: Expr, lets: set[str] = lets) -> bool:
            return any(
                (isinstance(n, Read) and n.tensor in data)
                or (isinstance(n, LetRef) and n.name in lets)
                for expr in exprs
                for n in walk(expr)
            )

        for let in statement.lets:
            if of_data(let.value):
                lets.add(let.name)
        place = () if statement.place is None else (statement.place,)
        for read in (*reads(statement), *place):
            for axis, subscript in enumerate(read.subscripts):
                here = f" dimension {axis} of tensor {read.tensor}, " in message
                if here and each.needs_check(read, axis):
                    decided = decided or of_data(subscript)
                    found.append(subscript)
        if of_data(*evaluated(statement)):
            data.add(statement.target)
    return found, decided


def fitting(
    checked: CheckedDef, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, int]]:
    """Input → the least and the largest of its values with which no subscript leaves its tensor,
    for those that subscripts use affinely (``5 * Column(r, s) + k``) and under no condition, and
    where there is such a value. For these shapes of the inputs; raises what ``infer`` raises."""
    found: dict[str, tuple[int, int]] = {}
    inputs = {t.name for t in checked.inputs}
    for name, low, high in _uses(checked, shapes):
        if name in inputs:
            least, most = found.get(name, (low, high))
            found[name] = max(least, low), min(most, high)
    return {name: (low, high) for name, (low, high) in found.items() if low <= high}


def _uses(
    checked: CheckedDef, shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[str, int, int]]:
    """Tensor, and the values that one subscript allows it."""
    sized = infer(checked, shapes)
    for each in sized.statements:
        lets = {let.name: let.value for let in each.statement.lets}
        analysis = _Small(sized.sizes, sized.shapes, lets)
        for index, (first, stop) in each.ranges.items():
            analysis.resolve(index, (first, stop - 1))
        for access in accesses(each.statement, analysis):
            reads = [a for a in access.form.terms if isinstance(a, Read)]
            if len(reads) != 1 or access.facts is not NO_FACTS or not access.evaluated:
                continue
            (read,) = reads
            factor = access.form.terms[read]
            rest = access.form.plus(Linear({read: factor}), -1)
            low, high = analysis.bounds(rest)
            if not rest.is_affine or not (math.isfinite(low) and math.isfinite(high)):
                continue
            first = sized.origins[access.read.tensor][access.axis]
            last = first + sized.shapes[access.read.tensor][access.axis] - 1
            ends = (first - int(low), last - int(high))
            least, most = ends if factor > 0 else (-ends[1], -ends[0])
            yield read.tensor, -(-least // abs(factor)), most // abs(factor)
