"""Gradients of an operator by a def of their own, recorded outside the operator.

That def is another operator, and its gradients are derived when somebody differentiates twice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from tcl.common.errors import ArgumentError
from tcl.executors.dispatch import Origin
from tcl.executors.gradients import Gradient, derived_gradient, given_gradient, refused
from tcl.gradients.grad import NoGradientError, NotSmoothError
from tcl.torch.registration import Registered, registered


def recorded(
    origin: Origin, forward: Registered, backward: str | None, *, derived: bool = False
) -> Callable[..., Any]:
    """The operator as a function of which torch records gradients: by the def ``backward`` of the
    same text, else by the one that is derived. Where there is none, asking for gradients is an
    error; but one that is ``derived`` itself has a gradient of zero where it depends on something
    through conditions alone. Raises ``ArgumentError`` for a def ``backward`` that does not fit."""
    make = functools.partial(_recorded, origin, forward, backward)
    whole = make(None, derived=derived)
    if backward is not None or derived:
        return whole
    names = [t.name for t in forward.checked.inputs]
    some: dict[tuple[str, ...], Callable[..., Any]] = {}

    def apply(*inputs: Any) -> Any:
        # Nothing can be made while a program is traced, and a transform hides who needs gradients.
        if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
            return whole(*inputs)
        pairs = zip(names, inputs, strict=True)
        wrt = tuple([n for n, a in pairs if a.requires_grad and a.is_floating_point()])
        if len(wrt) in (0, len(names)):
            return whole(*inputs)
        if wrt not in some:
            some[wrt] = make(wrt, derived=False)
        return some[wrt](*inputs)

    return apply


def _recorded(
    origin: Origin,
    forward: Registered,
    backward: str | None,
    wrt: Sequence[str] | None,
    *,
    derived: bool,
) -> Callable[..., Any]:
    """As ``recorded``; ``wrt``: the inputs that need gradients, all that have one if it is None."""
    checked, returned = forward.checked, forward.returned
    if backward is not None:
        gradient = given_gradient(origin, checked, returned, backward)
    else:
        try:
            gradient = derived_gradient(origin, checked, returned, wrt)
        except NoGradientError as error:
            none = (None,) * len(checked.inputs)
            zero = _with_gradient(forward, lambda ctx, grads: none, "")
            return zero.apply if derived else _refusing(forward, f"{error}; {_REMEDY}")
        except NotSmoothError as error:
            missing = str(NotSmoothError(checked.name, error.tensor, _detached(error.tensor)))
            return _refusing(forward, missing)
        except ArgumentError as error:
            missing = f"{checked.name} has no gradient that can be derived: {error}; {_REMEDY}"
            return _refusing(forward, missing)
    fit, names = gradient.roles, [t.name for t in returned]
    saving = forward
    if fit.also:
        saving = registered(origin, checked.name, [*names, *fit.also])
    # One that is derived can be differentiated again, which may take every input.
    every = range(len(checked.inputs)) if backward is None and fit.also else ()
    kept = sorted({*every, *fit.kept})

    def of_all() -> _Backwards:
        """By the gradients of what the backward def took and a call does not return, too: these
        come where it is differentiated again."""
        tensors = [*checked.inputs, *saving.returned]
        held = [tensors[place].name for place in kept]
        whole = derived_gradient(origin, checked, saving.returned, wrt, held)
        for place in whole.roles.kept:
            if place not in kept:
                raise ArgumentError(
                    f"the second derivatives of {checked.name} need '{tensors[place].name}', "
                    f"which {gradient.backward.name} does not take, so it is not saved"
                )
        return _backwards(whole, saving, len(saving.returned), kept, derived=derived)

    backwards = _backwards(gradient, saving, len(names), kept, derived=derived)
    function = _with_gradient(saving, backwards, "", kept, len(fit.also), _once(of_all))
    count, also = len(names), len(fit.also)

    def apply(*inputs: Any) -> Any:
        found = function.apply(*inputs)
        if not also:
            return found
        return found[0] if count == 1 else found[:count]

    return apply


_REMEDY = (
    "name a def that computes the gradient, tcl.torch.op(..., backward=NAME), or call it under "
    "torch.no_grad()"
)

_Made = TypeVar("_Made")

_Backwards = Callable[[Any, Sequence[Any]], tuple[Any, ...]]
"""Of what torch knows of the call, and the outputs' gradients."""


def _backwards(
    gradient: Gradient,
    forward: Registered,
    count: int,
    kept: Sequence[int],
    *,
    derived: bool,
) -> _Backwards:
    """The gradients of the inputs by those of the first ``count`` outputs; ``kept``: the places
    of tensors that are. ``derived``: whether the forward def is."""
    fit, its, checked = gradient.roles, gradient.backward, forward.checked
    operator = registered(gradient.origin, its.name, fit.makes)
    overload = operator.overload
    once = _refusing(
        operator,
        f"the gradient of {checked.name} is differentiated again in a program that torch "
        "compiles, where only first derivatives are possible; do it outside torch.compile",
    )

    again = _once(lambda: recorded(gradient.origin, operator, None, derived=True))
    # The compiler looks at what a function refers to: it knows lists of texts, and no defs.
    floats = [t.type.is_float for t in forward.returned[:count]]
    names = [t.name for t in checked.inputs]
    has, takes, single = list(fit.has), list(fit.takes), len(fit.makes) == 1
    rough = refused(checked, has, derived=derived)
    name, its_name, its_kept = checked.name, its.name, [kept.index(place) for place in fit.kept]

    def backwards(ctx: Any, grads: Sequence[Any]) -> tuple[Any, ...]:
        saved = ctx.saved_tensors
        known = [saved[place] for place in its_kept]
        for grad, is_float in zip(grads, floats, strict=False):
            if is_float:
                known.append(grad)
        given = [known[place] for place in takes]
        if not torch.is_grad_enabled():
            found = overload(*given)
        elif torch.compiler.is_compiling():
            found = once(*given)
        else:
            found = again()(*given)
        rest = [found] if single else list(found)
        results: list[Any] = []
        for place, shape in enumerate(ctx.shapes):
            results.append(rest.pop(0) if has[place] else None)
            if has[place] and results[-1].shape != shape:
                raise ArgumentError(
                    f"{its_name} returns a gradient of shape {tuple(results[-1].shape)} for "
                    f"'{names[place]}' of {name}, whose shape is {tuple(shape)}"
                )
            if rough[place] and ctx.needs_input_grad[place]:
                raise NotSmoothError(name, names[place], _detached(names[place]))
        return tuple(results)

    return backwards


def _detached(tensor: str) -> str:
    return f"give it {tensor}.detach()"


def _refusing(operator: Registered, missing: str) -> Callable[..., Any]:
    """The operator, which ``missing`` says has no gradient."""
    function = _with_gradient(operator, None, missing)

    def apply(*inputs: Any) -> Any:
        return function.apply(*inputs)

    return apply


def _once(make: Callable[[], _Made]) -> Callable[[], _Made]:
    """What ``make`` returns, made when it is needed. The compiler knows no caches."""
    made = functools.cache(make)
    return lambda: made()


def _with_gradient(
    operator: Registered,
    backwards: _Backwards | None,
    missing: str,
    kept: Sequence[int] = (),
    also: int = 0,
    of_all: Callable[[], _Backwards] | None = None,
) -> Any:
    """An operator with its gradient; ``missing`` says why there is none. ``kept``: the places of
    tensors that ``backwards`` takes, ``also``: how many outputs a call does not return, ``of_all``:
    a gradient by these, too."""

    run, places = operator.overload, list(kept)

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
                ctx.save_for_backward(*[tensors[place] for place in places])
                ctx.shapes = [each.shape for each in inputs]
                if also and torch.compiler.is_compiling():
                    ctx.mark_non_differentiable(*outputs[-also:])
                elif also:
                    ctx.set_materialize_grads(False)
                    ctx.made = [(each.shape, each.dtype, each.device) for each in outputs]

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if backwards is None:
                raise ArgumentError(missing)
            if not also or torch.compiler.is_compiling():
                return backwards(ctx, grads)
            chosen = backwards
            if of_all is not None and any(grad is not None for grad in grads[-also:]):
                chosen = of_all()
            whole = [
                torch.zeros(shape, dtype=dtype, device=device) if grad is None else grad
                for grad, (shape, dtype, device) in zip(grads, ctx.made, strict=True)
            ]
            return chosen(ctx, whole)

    Function.__name__ = Function.__qualname__ = operator.checked.name
    return Function
