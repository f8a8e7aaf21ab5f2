"""A def that computes the gradients of another one, as its author wrote it.

It takes the forward def's inputs in order, then, if it wants them, the forward def's outputs, then
the gradients of those outputs that are floating-point numbers. It returns the gradients of the
forward def's floating-point inputs, in order::

    def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }
    def mm_grad(float(M, K) A, float(K, N) B, float(M, N) d_C) -> (d_A, d_B) {
        d_A(m, k) +=! d_C(m, n) * B(k, n)
        d_B(k, n) +=! A(m, k) * d_C(m, n)
    }

This is the convention of Tensor Comprehensions' ``make_autograd``. Names mean nothing in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcl.grammar.checked import CheckedDef, Tensor
from tcl.grammar.errors import ArgumentError
from tcl.grammar.plural import plural


def takes_outputs(forward: CheckedDef, returned: Sequence[Tensor], backward: CheckedDef) -> bool:
    """Whether the backward def takes the forward def's outputs, of which these are ``returned``.
    Raises ``ArgumentError`` if the two do not fit each other."""
    results = [t for t in returned if t.type.is_float]
    wanted = [t for t in forward.inputs if t.type.is_float]
    if not wanted or not results:
        which = "inputs" if not wanted else "outputs"
        raise ArgumentError(f"{forward.name} has no floating-point {which}, so it has no gradient")
    short, long = (*forward.inputs, *results), (*forward.inputs, *returned, *results)
    given = backward.inputs
    if len(given) not in (len(short), len(long)):
        raise ArgumentError(
            f"{backward.name} has to take the inputs of {forward.name} and the gradients of its "
            f"outputs ({plural(len(short), 'input')}), or its inputs, its outputs and their "
            f"gradients ({len(long)}), but takes {len(given)}"
        )
    saves = len(given) == len(long)
    for own, tensor in zip(given, long if saves else short, strict=True):
        _check_alike(forward, backward, own, tensor)
    if len(backward.outputs) != len(wanted):
        names = ", ".join(f"'{t.name}'" for t in wanted)
        raise ArgumentError(
            f"{backward.name} has to return one gradient for each floating-point input of "
            f"{forward.name} ({names}), but returns {len(backward.outputs)}"
        )
    for own, tensor in zip(backward.outputs, wanted, strict=True):
        _check_alike(forward, backward, own, tensor)
    return saves


def _check_alike(forward: CheckedDef, backward: CheckedDef, own: Tensor, tensor: Tensor) -> None:
    """Raises ``ArgumentError`` unless a tensor of the backward def may be one of the forward def's,
    or its gradient."""
    if (own.type, own.rank) != (tensor.type, tensor.rank):
        raise ArgumentError(
            f"'{own.name}' of {backward.name} is {own.type} with {plural(own.rank, 'dimension')}, "
            f"but '{tensor.name}' of {forward.name}, which it belongs to, is {tensor.type} with "
            f"{tensor.rank}"
        )
