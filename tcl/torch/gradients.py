"""Gradients of an operator by a def that its author wrote, recorded outside the operator.

The backward def takes the forward def's inputs in order, then, if it wants them, the forward def's
outputs, then the gradients of those outputs that are floating-point numbers. It returns the
gradients of the forward def's floating-point inputs, in order::

    def mm(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }
    def mm_grad(float(M, K) A, float(K, N) B, float(M, N) d_C) -> (d_A, d_B) {
        d_A(m, k) +=! d_C(m, n) * B(k, n)
        d_B(k, n) +=! A(m, k) * d_C(m, n)
    }

This is the convention of Tensor Comprehensions' ``make_autograd``. Names mean nothing in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tcl.codegen.common.errors import ArgumentError
from tcl.grammar.checked import CheckedDef, Tensor
from tcl.grammar.plural import plural
from tcl.torch.registration import Registered


def takes_outputs(forward: CheckedDef, backward: CheckedDef) -> bool:
    """Whether the backward def takes the forward def's outputs. Raises ``ArgumentError`` if the
    two do not fit each other."""
    results = [t for t in forward.outputs if t.type.is_float]
    wanted = [t for t in forward.inputs if t.type.is_float]
    if not wanted or not results:
        which = "inputs" if not wanted else "outputs"
        raise ArgumentError(f"{forward.name} has no floating-point {which}, so it has no gradient")
    short, long = (*forward.inputs, *results), (*forward.inputs, *forward.outputs, *results)
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


def recorded(forward: Registered, backward: Registered | None) -> Any:
    """The operator as a ``torch.autograd.Function``: asking for gradients is an error without a
    backward def, and so is differentiating that one."""
    checked = forward.checked
    if backward is None:
        return _function(forward, None, f"{checked.name} has no gradient; {_REMEDY}")
    missing = (
        f"the gradient of {checked.name} is {backward.checked.name}, which has no gradient of its "
        "own: an operator can be differentiated once"
    )
    unknown = _function(backward, None, missing)
    gradient = backward.overload
    saves = takes_outputs(checked, backward.checked)
    # The compiler looks at what a function refers to: it knows lists of texts, and no defs.
    floats = [t.type.is_float for t in checked.outputs]
    wanted = [t.name if t.type.is_float else "" for t in checked.inputs]
    single = len(backward.checked.outputs) == 1
    name, its_name = checked.name, backward.checked.name

    def backwards(saved: Sequence[Any], grads: Sequence[Any]) -> tuple[Any, ...]:
        given = [g for g, is_float in zip(grads, floats, strict=True) if is_float]
        if torch.is_grad_enabled():
            found = unknown.apply(*saved, *given)
        else:
            found = gradient(*saved, *given)
        rest = [found] if single else list(found)
        results: list[Any] = []
        for own, tensor in zip(wanted, saved, strict=False):
            results.append(rest.pop(0) if own else None)
            if own and results[-1].shape != tensor.shape:
                raise ArgumentError(
                    f"{its_name} returns a gradient of shape {tuple(results[-1].shape)} for "
                    f"'{own}' of {name}, whose shape is {tuple(tensor.shape)}"
                )
        return tuple(results)

    return _function(forward, backwards, "", saves)


_REMEDY = (
    "name a def that computes it, tcl.torch.op(..., backward=NAME), or call it under "
    "torch.no_grad()"
)


def _function(
    operator: Registered,
    backwards: Callable[[Sequence[Any], Sequence[Any]], tuple[Any, ...]] | None,
    missing: str,
    saves: bool = False,
) -> Any:
    """An operator with its gradient, a function of the saved tensors and the outputs' gradients;
    ``missing`` says why there is none. ``saves``: outputs are saved after the inputs."""

    run = operator.overload

    class Function(torch.autograd.Function):  # type: ignore[misc]
        generate_vmap_rule = True

        @staticmethod
        def forward(*inputs: Any) -> Any:
            return run(*inputs)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            if backwards is not None:
                outputs = output if isinstance(output, tuple) else (output,)
                ctx.save_for_backward(*inputs, *(outputs if saves else ()))

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if backwards is None:
                raise ArgumentError(missing)
            return backwards(ctx.saved_tensors, grads)

    Function.__name__ = Function.__qualname__ = operator.checked.name
    return Function
