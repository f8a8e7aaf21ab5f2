"""``make_autograd``: a backward function, written by somebody or derived, as torch's autograd calls
it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable

from tcl.common.errors import ArgumentError
from tcl.common.number_format import plural
from tcl.gradients.grad import NoGradientError, gradient_text, prefix_of
from tcl.grammar.check.definitions import check

if TYPE_CHECKING:
    from tcl.tensor_comprehensions import TC


def differentiable(
    forward_fun: Callable[..., Any], backward_fun: Callable[..., Any] | None
) -> Callable[..., Any]:
    """See ``tcl.tensor_comprehensions.make_autograd``."""
    if backward_fun is None:
        origin = getattr(forward_fun, "origin", None)
        if origin is None:
            raise ArgumentError(
                "make_autograd got no backward function, and can derive one only for a def: "
                "make_autograd(T.f), where T = define(...)"
            )
        return _derived(*origin)
    return _differentiable_by(forward_fun, backward_fun)


def _differentiable_by(
    forward_fun: Callable[..., Any], backward_fun: Callable[..., Any]
) -> Callable[..., Any]:
    class Function(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            ctx.save_for_backward(*inputs)
            return forward_fun(*inputs)

        @staticmethod
        @once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, *gradients: Any) -> Any:
            inputs = ctx.saved_tensors
            found = backward_fun(*inputs, *(g.contiguous() for g in gradients))
            found = found if isinstance(found, tuple | list) else (found,)
            if len(found) != len(inputs):
                raise ArgumentError(
                    "the backward function must return a gradient for each of "
                    f"{plural(len(inputs), 'input')}, but returned {len(found)}; return None "
                    "for an input without a gradient"
                )
            return tuple(found)

    def apply(*inputs: Any) -> Any:
        return Function.apply(*inputs)

    return apply


def _derived(defs: TC, name: str, *, again: bool = False) -> Callable[..., Any]:
    """A def with the gradients that are derived for it, which have gradients themselves. ``again``:
    whether it was derived: where it depends on something through conditions alone, that gradient
    is zero."""
    checked = check(defs.tc)[name]
    names = [t.name for t in (*checked.inputs, *checked.outputs)]
    prefix = prefix_of(checked)

    @cache
    def gradient(wrt: tuple[str, ...]) -> tuple[list[str], list[str], Callable[..., Any]]:
        """What the backward def takes and makes, and itself."""
        text = gradient_text(checked, None if again else wrt)
        ((its_name, its),) = check(text).items()
        made = type(defs)(text, defs.mapping_options_factory)
        run = _derived(made, its_name, again=True)
        return [t.name for t in its.inputs], [t.name for t in its.outputs], run

    class Function(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            found = defs(name, *inputs)
            outputs = found if isinstance(found, tuple | list) else (found,)
            ctx.save_for_backward(*inputs, *outputs)
            return found

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            pairs = zip(checked.inputs, ctx.needs_input_grad, strict=True)
            wrt = tuple(t.name for t, needs in pairs if needs and t.type.is_float)
            try:
                takes, makes, run = gradient(wrt)
            except NoGradientError:
                if not again:
                    raise
                return (None,) * len(checked.inputs)
            known = dict(zip(names, ctx.saved_tensors, strict=True))
            for tensor, each in zip(checked.outputs, gradients, strict=True):
                known[prefix + tensor.name] = each.contiguous()
            found = run(*(known[n] for n in takes))
            each = found if isinstance(found, tuple | list) else (found,)
            made = dict(zip(makes, each, strict=True))
            return tuple(made.get(prefix + t.name) for t in checked.inputs)

    def apply(*inputs: Any) -> Any:
        return Function.apply(*inputs)

    return apply
