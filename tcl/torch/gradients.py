"""Gradients of an operator by a def that its author wrote, recorded outside the operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tcl.common.errors import ArgumentError
from tcl.executors.gradients import Roles
from tcl.torch.registration import Registered


def recorded(forward: Registered, backward: Registered | None, roles: Roles | None) -> Any:
    """The operator as a ``torch.autograd.Function``: asking for gradients is an error without a
    backward def, and so is differentiating that one. ``forward`` returns what the backward def
    takes and a call does not return, ``roles.also``, behind the outputs."""
    checked = forward.checked
    if backward is None or roles is None:
        return _with_gradient(forward, None, f"{checked.name} has no gradient; {_REMEDY}")
    missing = (
        f"the gradient of {checked.name} is {backward.checked.name}, which has no gradient of its "
        "own: an operator can be differentiated once"
    )
    unknown = _with_gradient(backward, None, missing)
    gradient = backward.overload
    # The compiler looks at what a function refers to: it knows lists of texts, and no defs.
    returned = forward.returned[: len(forward.returned) - len(roles.also)]
    floats = [t.type.is_float for t in returned]
    wanted = [t.name if t.type.is_float else "" for t in checked.inputs]
    takes, single = list(roles.takes), len(roles.makes) == 1
    name, its_name = checked.name, backward.checked.name

    def backwards(saved: Sequence[Any], shapes: Sequence[Any], grads: Sequence[Any]) -> Any:
        known = [*saved]
        for grad, is_float in zip(grads, floats, strict=False):
            if is_float:
                known.append(grad)
        given = [known[place] for place in takes]
        found = unknown.apply(*given) if torch.is_grad_enabled() else gradient(*given)
        rest = [found] if single else list(found)
        results: list[Any] = []
        for own, shape in zip(wanted, shapes, strict=True):
            results.append(rest.pop(0) if own else None)
            if own and results[-1].shape != shape:
                raise ArgumentError(
                    f"{its_name} returns a gradient of shape {tuple(results[-1].shape)} for "
                    f"'{own}' of {name}, whose shape is {tuple(shape)}"
                )
        return tuple(results)

    return _with_gradient(forward, backwards, "", roles)


_REMEDY = (
    "name a def that computes it, tcl.torch.op(..., backward=NAME), or call it under "
    "torch.no_grad()"
)


def _with_gradient(
    operator: Registered,
    backwards: Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Any] | None,
    missing: str,
    roles: Roles | None = None,
) -> Any:
    """An operator with its gradient, a function of the tensors that are kept, the inputs' shapes
    and the outputs' gradients; ``missing`` says why there is none."""

    run = operator.overload
    kept = list(roles.kept) if roles is not None else []
    also = len(roles.also) if roles is not None else 0

    class Function(torch.autograd.Function):  # type: ignore[misc]
        generate_vmap_rule = True

        @staticmethod
        def forward(*inputs: Any) -> Any:
            return run(*inputs)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            if backwards is not None:
                outputs = output if isinstance(output, tuple) else (output,)
                tensors = (*inputs, *outputs)
                ctx.save_for_backward(*[tensors[place] for place in kept])
                ctx.shapes = [each.shape for each in inputs]
                if also:
                    ctx.mark_non_differentiable(*outputs[-also:])

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if backwards is None:
                raise ArgumentError(missing)
            return backwards(ctx.saved_tensors, ctx.shapes, grads)

    Function.__name__ = Function.__qualname__ = operator.checked.name
    return Function
