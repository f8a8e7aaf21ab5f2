"""``call``: a def as a function of JAX's arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from tcl.arrays.arguments import Wanted, check_count, input_array
from tcl.arrays.user_input import SourceLike, check_flag, in_order
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.common.errors import ArgumentError
from tcl.common.shown import kind_of
from tcl.executors.calls import results_class
from tcl.executors.dispatch import Kernels, OptionsLike, Settings, settled_options
from tcl.executors.gradients import Roles, roles
from tcl.grammar.tree.checked import CheckedDef
from tcl.jax.primitive import Operation, as_declared, primitive


def call(
    source: SourceLike,
    entry_point: str,
    options: OptionsLike = None,
    *,
    backward: str | None = None,
    wanted: Wanted = None,
    threads: int | None = None,
    nearest: bool = False,
    unchecked: bool = False,
    strict: bool = False,
    relax: str | Iterable[str] | None = None,
    varying: Sequence[str] = (),
) -> Function:
    """A def as a function of JAX's arrays on a CPU, which returns new ones.

    It works as it is, under ``jax.jit``, ``jax.vmap`` (a call for each element of the batch),
    ``jax.eval_shape``, ``jax.lax.scan``, ``cond`` and the like, and, where ``backward`` names the
    def of the same text that computes gradients, under ``jax.grad`` and ``jax.vjp``; ``tcl docs
    jax`` says what that def takes. A kernel is compiled when a program is, for its sizes.
    ``wanted`` names the outputs that are returned, in its order; memory for the others, needed only
    on the way, is kept.

    ``options``, ``threads``, ``nearest``, ``strict``, ``relax`` and ``varying`` are as for
    ``tcl.define``, without factories that are functions; nothing is ever tuned. JAX traces and
    compiles a program for each size; with ``varying`` the programs of a class of sizes share a
    kernel. ``unchecked`` leaves off the run-time checks of
    data-dependent subscripts. Raises what ``tcl.define`` raises, and ``ArgumentError`` for a def
    that is no function of arrays.
    """
    check_flag("unchecked", unchecked)
    settings = Settings(options, threads, nearest, strict, relax, None, varying)
    return Function(source, entry_point, settings, backward, wanted, unchecked)


class Function:
    """A def as a function of JAX's arrays. Safe to call from several threads at once."""

    def __init__(
        self,
        source: SourceLike,
        entry_point: str,
        settings: Settings,
        backward: str | None,
        wanted: Wanted,
        unchecked: bool,
    ) -> None:
        kernels = Kernels(source, settings)
        settled_options(kernels)
        settings = replace(kernels.settings, threads=settings.threads)
        self._given = kernels.source, entry_point, settings, backward, wanted, unchecked
        self._checked = checked = kernels.definition(entry_point)
        missing = (
            f"{checked.name} has no gradient; name a def that computes it, "
            "tcl.jax.call(..., backward=NAME)"
        )
        its = None if backward is None else kernels.definition(backward)
        if its is not None:
            missing = (
                f"the gradient of {checked.name} is {its.name}, which has no gradient of its own: "
                "such a function can be differentiated once"
            )
        operation = partial(Operation, kernels, missing=missing, unchecked=unchecked)
        forward = operation(checked, wanted)
        function = _function(forward)
        if its is not None:
            fit = roles(checked, forward.returned, its)
            saving = operation(checked, [t.name for t in forward.returned] + [*fit.also])
            function = _differentiable(function, saving, operation(its, fit.makes), fit)

        def run(*inputs: Any) -> Any:
            return function(*as_declared(forward, inputs))

        run.__name__ = run.__qualname__ = checked.name
        self._run = jax.jit(run, inline=True)
        names = ", ".join(t.name for t in checked.inputs)
        results = ", ".join(t.name for t in forward.returned)
        self.__name__ = self.__qualname__ = checked.name
        self.__doc__ = f"{checked.name}({names}) -> ({results})"

    def __call__(self, /, *inputs: Any, **named: Any) -> Any:
        """Run it, on inputs in the order of the def or by their names: arrays of JAX or NumPy; for
        one of rank 0 also a number. Returns an array of JAX, or a tuple of them with their names:
        of the wanted outputs, or of all.

        Raises ``ArgumentError`` and ``RangeInferenceError`` for inputs that do not fit, when a
        program that is traced is; JAX raises its own ``jax.errors.JaxRuntimeError`` for a
        data-dependent subscript out of range, with the sentence of an ``IndexError``, when the
        outputs are looked at.
        """
        if named:
            inputs = in_order(self._checked, inputs, named, ())
        for each in inputs:
            if not isinstance(each, jax.Array):
                inputs = self._arrays(inputs)
                break
        return self._run(*inputs)

    def _arrays(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The inputs as arrays. Looked at before JAX does, which converts silently."""
        check_count(self._checked, inputs)
        found = []
        for tensor, given in zip(self._checked.inputs, inputs, strict=True):
            if not isinstance(given, jax.Array):
                if not isinstance(given, np.ndarray | np.generic | bool | int | float):
                    raise ArgumentError(
                        f"input '{tensor.name}' of {self._checked.name} has to be an array of JAX "
                        f"or NumPy, not {kind_of(given)}"
                    )
                given = input_array(self._checked.name, tensor, given)
            found.append(given)
        return tuple(found)

    def __repr__(self) -> str:
        return f"<tcl function of JAX's arrays: {self.__doc__}>"

    def __reduce__(self) -> tuple[object, ...]:
        return Function, self._given


def _check_types(checked: CheckedDef) -> None:
    """Raises ``ArgumentError`` if JAX has no arrays of the def's types as it is set."""
    for tensor in (*checked.inputs, *checked.outputs):
        dtype = numpy_dtype(tensor.type)
        if jax.dtypes.canonicalize_dtype(dtype) != dtype:
            raise ArgumentError(
                f"'{tensor.name}' of {checked.name} is {tensor.type}, which JAX has no arrays of "
                "until jax.config.update('jax_enable_x64', True)"
            )


def _function(forward: Operation) -> Any:
    """The operation as a function of arrays."""
    names = tuple(t.name for t in forward.returned)
    results = results_class(forward.checked.name, names)

    def run(*inputs: Any) -> Any:
        _check_types(forward.checked)
        outputs = primitive.bind(*inputs, operation=forward)
        return outputs[0] if len(names) == 1 else results(*outputs)

    return run


def _differentiable(run: Any, saving: Operation, gradient: Operation, fit: Roles) -> Any:
    """The function with its gradient. ``saving`` returns what the gradient takes and a call does
    not return, ``fit.also``, behind the outputs."""
    declared = saving.checked.inputs
    returned = saving.returned[: len(saving.returned) - len(fit.also)]
    single = len(returned) == 1
    results = results_class(saving.checked.name, tuple(t.name for t in returned))

    def taken(kept: Sequence[Any], like_outputs: Sequence[Any]) -> list[Any]:
        """What the gradient takes, of gradients of the outputs, or of types of these."""
        pairs = zip(returned, like_outputs, strict=True)
        known = [*kept, *(each for t, each in pairs if t.type.is_float)]
        return [known[place] for place in fit.takes]

    def forwards(*inputs: Any) -> tuple[Any, list[Any]]:
        _check_types(saving.checked)
        tensors = (*inputs, *primitive.bind(*inputs, operation=saving))
        outputs = tensors[len(inputs) :][: len(returned)]
        kept = [tensors[place] for place in fit.kept]
        types = [[jax.typeof(each) for each in side] for side in (kept, outputs)]
        pairs = zip(declared, inputs, strict=True)
        floats = [(t.name, np.shape(each)) for t, each in pairs if t.type.is_float]
        for made, (name, shape) in zip(gradient.outputs(taken(*types)), floats, strict=True):
            if made.shape != shape:
                raise ArgumentError(
                    f"{gradient} returns a gradient of shape {made.shape} for '{name}' of "
                    f"{saving}, whose shape is {shape}"
                )
        return outputs[0] if single else results(*outputs), kept

    def backwards(kept: list[Any], cotangents: Any) -> tuple[Any, ...]:
        given = taken(kept, (cotangents,) if single else cotangents)
        rest = iter(primitive.bind(*given, operation=gradient))
        return tuple(next(rest) if t.type.is_float else None for t in declared)

    differentiable = jax.custom_vjp(run)
    differentiable.defvjp(forwards, backwards)
    return differentiable
