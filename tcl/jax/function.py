"""``call``: a def as a function of JAX's arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import numpy as np

from tcl.arrays.arguments import Wanted, check_count, input_array
from tcl.arrays.user_input import SourceLike, check_flag, in_order
from tcl.codegen.common.dtypes import numpy_dtype
from tcl.common.errors import ArgumentError
from tcl.common.shown import kind_of
from tcl.executors.calls import results_class
from tcl.executors.dispatch import Kernels, OptionsLike, Origin, Settings, settled_options
from tcl.executors.gradients import derived_gradient, given_gradient, refused
from tcl.gradients.grad import NoGradientError, NotSmoothError
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
    """A def as a function of JAX arrays on a CPU; it returns new arrays.

    It works by itself, in ``jax.jit``, ``jax.vmap`` (one call per element of the batch),
    ``jax.eval_shape``, ``jax.lax.scan``, ``cond`` and similar functions, and in ``jax.grad`` and
    ``jax.vjp``. Gradients are derived as by ``tcl.grad``. A kernel is compiled when JAX compiles a
    program, for its sizes.

    - ``options``, ``threads``, ``nearest``, ``strict``, ``relax``: as for ``tcl.define``. A factory
      that is a function is refused, because a call never tunes.
    - ``backward``: the name of a def of the same text that computes the gradients (default:
      a derived def); ``tcl docs jax`` describes its arguments.
    - ``wanted``: names of the outputs that are returned, in this order. The memory of the other
      outputs is reused from call to call.
    - ``unchecked``: if True, no run-time checks of data-dependent subscripts.
    - ``varying``: names of sizes that vary. JAX traces and compiles a program for each size; the
      programs of one class of sizes then share a kernel.

    Raises what ``tcl.define`` raises, and ``ArgumentError`` for a def that cannot be a function of
    arrays.
    """
    check_flag("unchecked", unchecked)
    settings = Settings(options, threads, nearest, strict, relax, None, varying)
    return Function(source, entry_point, settings, backward, wanted, unchecked)


class Function:
    """A def as a function of JAX arrays. Calls from several threads are safe."""

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
        origin = Origin(kernels, settings, unchecked)
        forward = Operation(origin, checked, wanted)
        function = _differentiable(origin, forward, backward)

        def run(*inputs: Any) -> Any:
            return function(*as_declared(forward, inputs))

        run.__name__ = run.__qualname__ = checked.name
        self._run = jax.jit(run, inline=True)
        names = ", ".join(t.name for t in checked.inputs)
        results = ", ".join(t.name for t in forward.returned)
        self.__name__ = self.__qualname__ = checked.name
        self.__doc__ = f"{checked.name}({names}) -> ({results})"

    def __call__(self, /, *inputs: Any, **named: Any) -> Any:
        """Run the def. Inputs are arrays of JAX or NumPy, in the order of the def or by name; an
        input of rank 0 may be a number. Returns a JAX array, or a named tuple of JAX arrays: the
        wanted outputs, or all outputs.

        Raises ``ArgumentError`` and ``RangeInferenceError`` for inputs that do not fit; in a traced
        program, they are raised during tracing. If a data-dependent subscript is out of range, JAX
        raises ``jax.errors.JaxRuntimeError`` when the program reads the outputs.
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
                f"'{tensor.name}' of {checked.name} is {tensor.type}; JAX has such arrays only "
                "after jax.config.update('jax_enable_x64', True)"
            )


def _function(forward: Operation) -> Any:
    names = tuple(t.name for t in forward.returned)
    results = results_class(forward.checked.name, names)

    def run(*inputs: Any) -> Any:
        _check_types(forward.checked)
        outputs = primitive.bind(*inputs, operation=forward)
        return outputs[0] if len(names) == 1 else results(*outputs)

    return run


def _differentiable(
    origin: Origin, forward: Operation, backward: str | None, *, derived: bool = False
) -> Any:
    """The operation as a function with a gradient: by the def ``backward`` of the same text, else
    by the one that is derived. One that is ``derived`` itself has a gradient of zero where it
    depends on something through conditions alone. Raises ``ArgumentError`` for a def ``backward``
    that does not fit."""
    checked, returned = forward.checked, forward.returned
    given = None
    if backward is not None:
        given = given_gradient(origin, checked, returned, backward)
    names, single = [t.name for t in returned], len(returned) == 1
    results = results_class(checked.name, tuple(names))

    try:
        gradient = given or derived_gradient(origin, checked, returned)
    except ArgumentError as error:
        if derived and isinstance(error, NoGradientError):
            run = _function(forward)
            return lambda *inputs: run(*map(jax.lax.stop_gradient, inputs))
        missing = (
            f"{checked.name} has no gradient that can be derived: {error}; name a def that "
            "computes the gradient, tcl.jax.call(..., backward=NAME)"
        )
        every = refused(checked, [False] * len(checked.inputs), derived=False)
        return _refusing(checked, _function(forward), lambda _: missing, every)
    fit = gradient.roles

    @cache
    def saving() -> Any:
        """What makes all that the gradient takes. A second derivative goes through it, too."""
        if not fit.also:
            return differentiable
        operation = Operation(origin, checked, [*names, *fit.also])
        return _differentiable(origin, operation, None, derived=derived)

    @cache
    def made() -> tuple[Operation, Any]:
        """The gradient, which can be differentiated in its turn."""
        operation = Operation(gradient.origin, gradient.backward, fit.makes)
        return operation, _differentiable(gradient.origin, operation, None, derived=True)

    def taken(kept: Sequence[Any], like_outputs: Sequence[Any]) -> list[Any]:
        """What the gradient takes, of gradients of the outputs, or of types of these."""
        pairs = zip(returned, like_outputs, strict=True)
        known = [*kept, *(each for t, each in pairs if t.type.is_float)]
        return [known[place] for place in fit.takes]

    def forwards(*inputs: Any) -> tuple[Any, list[Any]]:
        _check_types(checked)
        tensors = (*inputs, *_as_tuple(saving()(*inputs)))
        outputs = tensors[len(inputs) :][: len(returned)]
        kept = [tensors[place] for place in fit.kept]
        types = [[jax.typeof(each) for each in side] for side in (kept, outputs)]
        triples = zip(checked.inputs, inputs, fit.has, strict=True)
        wanted = [(t.name, np.shape(each)) for t, each, has in triples if has]
        operation, _ = made()
        for each, (name, shape) in zip(operation.outputs(taken(*types)), wanted, strict=True):
            if each.shape != shape:
                raise ArgumentError(
                    f"{operation} returns a gradient of shape {each.shape} for '{name}' of "
                    f"{forward}, whose shape is {shape}"
                )
        return outputs[0] if single else results(*outputs), kept

    def backwards(kept: list[Any], cotangents: Any) -> tuple[Any, ...]:
        rest = iter(_as_tuple(made()[1](*taken(kept, _as_tuple(cotangents)))))
        return tuple(next(rest) if has else None for has in fit.has)

    def rough(tensor: str) -> str:
        remedy = f"give it jax.lax.stop_gradient({tensor})"
        return str(NotSmoothError(checked.name, tensor, remedy))

    differentiable = jax.custom_vjp(_function(forward))
    differentiable.defvjp(forwards, backwards)
    return _refusing(checked, differentiable, rough, refused(checked, fit.has, derived=derived))


def _refusing(
    checked: CheckedDef, run: Any, missing: Callable[[str], str], which: Sequence[bool]
) -> Any:
    """The function, which refuses to be differentiated by these inputs: ``missing`` says why, by
    their names."""
    refusals = {
        place: _without_gradient(missing(tensor.name))
        for place, (tensor, it) in enumerate(zip(checked.inputs, which, strict=True))
        if it
    }
    if not refusals:
        return run

    def same(x: Any) -> Any:
        return x

    def guarded(*inputs: Any) -> Any:
        return run(*(refusals.get(place, same)(each) for place, each in enumerate(inputs)))

    return guarded


def _without_gradient(missing: str) -> Any:
    """The identity, which refuses to be differentiated."""

    @jax.custom_jvp  # type: ignore[untyped-decorator]
    def same(x: Any) -> Any:
        return x

    @same.defjvp  # type: ignore[untyped-decorator]
    def refuse_derivative(*_: Any) -> Any:
        raise ArgumentError(missing)

    return same


def _as_tuple(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)
