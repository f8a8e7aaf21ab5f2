"""``make_autograd``: a backward function that somebody wrote, as torch's autograd calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from tcl.common.errors import ArgumentError
from tcl.common.plural import plural


def differentiable(
    forward_fun: Callable[..., Any], backward_fun: Callable[..., Any] | None
) -> Callable[..., Any]:
    """See ``tcl.tensor_comprehensions.make_autograd``."""

    class Function(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.save_for_backward(*inputs)
            return forward_fun(*inputs)

        @staticmethod
        @once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, *gradients: Any) -> Any:
            if backward_fun is None:
                raise ArgumentError("make_autograd was given no backward function")
            inputs = ctx.saved_tensors
            found = backward_fun(*inputs, *(g.contiguous() for g in gradients))
            found = found if isinstance(found, tuple | list) else (found,)
            if len(found) != len(inputs):
                raise ArgumentError(
                    f"the backward function has to return a gradient for each of "
                    f"{plural(len(inputs), 'input')}, and returned {len(found)}; "
                    "None stands for an input that has none"
                )
            return tuple(found)

    def apply(*inputs: Any) -> Any:
        return Function.apply(*inputs)

    return apply
