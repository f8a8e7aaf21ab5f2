"""Gradients of an operator by a def that its author wrote, recorded outside the operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tcl.codegen.common.errors import ArgumentError
from tcl.common.gradients import takes_outputs
from tcl.torch.registration import Registered


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
    saves = takes_outputs(checked, forward.returned, backward.checked)
    # The compiler looks at what a function refers to: it knows lists of texts, and no defs.
    floats = [t.type.is_float for t in forward.returned]
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
