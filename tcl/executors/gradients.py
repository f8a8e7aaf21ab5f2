"""A def that computes the gradients of another one, as its author wrote it or as it is derived.

By names it takes what it likes of the forward def's inputs, of its outputs, also those that are not
returned, and ``d_C`` for each output ``C`` that is returned and holds floating-point numbers. It
makes ``d_A`` for each floating-point input ``A``; what else it makes is only needed on the way.
(In a def that has such names itself, these are ``dd_C`` and ``dd_A``.) ::

    def softmax(float(N, D) I) -> (O, most, total) {
        most(n) max=! I(n, d)
        total(n) +=! exp(I(n, d) - most(n))
        O(n, d) = exp(I(n, d) - most(n)) / total(n)
    }
    def softmax_grad(float(N, D) O, float(N, D) d_O) -> (dot, d_I) {
        dot(n) +=! O(n, d) * d_O(n, d)
        d_I(n, d) = O(n, d) * (d_O(n, d) - dot(n))
    }

A def with other names is understood by their places, as in Tensor Comprehensions'
``make_autograd``: it takes the inputs in order, then, if it has room for them, the outputs that are
returned, then the gradients of those that are floating-point numbers; and it returns the gradients
of the floating-point inputs in order, and nothing else.

One that is derived leaves out the inputs that the outputs do not depend on smoothly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcl.codegen.options.options import MappingOptions
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.common.number_format import plural
from tcl.executors.dispatch import Kernels, Origin
from tcl.gradients.grad import gradient_text, prefix_of
from tcl.grammar.tree.checked import CheckedDef, Tensor


@dataclass(frozen=True, slots=True)
class Roles:
    """What the tensors of a gradient's def stand for."""

    also: tuple[str, ...]
    """Outputs of the forward def that it takes, and that calls do not return."""
    kept: tuple[int, ...]
    """What it takes of the forward def's tensors: places among its inputs, followed by the outputs
    that are returned, followed by ``also``."""
    takes: tuple[int, ...]
    """What each of its inputs is: a place among those that are kept, followed by the gradients of
    the outputs that are returned and hold floating-point numbers."""
    makes: tuple[str, ...]
    """Its outputs that are gradients, in the order of the inputs that have one."""
    has: tuple[bool, ...]
    """Whether it makes the gradient of each input: of all that are floating-point numbers, unless
    it was derived."""


@dataclass(frozen=True, slots=True)
class Gradient:
    """The def of a def's gradients, with what its kernels are made of."""

    origin: Origin
    backward: CheckedDef
    roles: Roles


def given_gradient(
    origin: Origin, forward: CheckedDef, returned: Sequence[Tensor], backward: str
) -> Gradient:
    """The def of that name of the same text. Raises ``ArgumentError`` if it does not fit."""
    its = origin.kernels.definition(backward)
    return Gradient(origin, its, roles(forward, returned, its))


def derived_gradient(
    origin: Origin,
    forward: CheckedDef,
    returned: Sequence[Tensor],
    wrt: Sequence[str] | None = None,
    save: Sequence[str] | None = None,
) -> Gradient:
    """The def that ``tcl.grad`` derives. Options that were given are the forward def's alone;
    ``wrt``: the inputs that need gradients, ``save``: tensors that it may take; with none, all.
    Raises ``ArgumentError`` for what has no gradient, or none that can be derived."""
    results = [t.name for t in returned if t.type.is_float]
    if not results:
        raise ArgumentError(f"{forward.name} has no floating-point outputs, so it has no gradient")
    kept = None if save is None else [t.name for t in forward.outputs if t.name in save]
    text = gradient_text(forward, wrt, wanted=results, save=kept)
    kernels = origin.kernels
    options = None if isinstance(kernels.options, MappingOptions) else kernels.options
    settings = replace(origin.settings, options=options, strict=False, varying=())
    plain = Kernels(text, settings)
    (its,) = plain.defs.values()
    varying = tuple(size for size in kernels.varying if size in its.sizes)
    own = replace(settings, varying=varying)
    made = replace(origin, kernels=Kernels(text, own) if varying else plain, settings=own)
    return Gradient(made, its, roles(forward, returned, its, True))


def roles(
    forward: CheckedDef, returned: Sequence[Tensor], backward: CheckedDef, derived: bool = False
) -> Roles:
    """How the backward def fits the forward def, of whose outputs ``returned`` are. Raises
    ``ArgumentError`` if it does not. ``derived``: whether it may leave out gradients."""
    results = [t for t in returned if t.type.is_float]
    prefix = prefix_of(forward)
    has = [t.type.is_float for t in forward.inputs]
    if derived:
        made_names = [t.name for t in backward.outputs]
        has = [prefix + t.name in made_names for t in forward.inputs]
    wanted = [t for t, it_has in zip(forward.inputs, has, strict=True) if it_has]
    if not wanted or not results:
        which = "inputs" if not wanted else "outputs"
        raise ArgumentError(f"{forward.name} has no floating-point {which}, so it has no gradient")
    names = [t.name for t in returned]
    others = [t for t in forward.outputs if t.name not in names]
    tensors = [*forward.inputs, *returned, *others]
    known = [t.name for t in tensors] + [prefix + t.name for t in results]
    taken = _taken(forward, returned, backward, known)
    for own, place in zip(backward.inputs, taken, strict=True):
        _check_alike(forward, backward, own, [*tensors, *results][place])
    made = _gradient_outputs(forward, backward, wanted, prefix)
    for own, tensor in zip(made, wanted, strict=True):
        _check_alike(forward, backward, own, tensor)
    first = len(tensors) - len(others)
    also = [place for place in range(first, len(tensors)) if place in taken]
    held = [*range(first), *also]
    kept = [place for place in held if place in taken]
    places = [*kept, *range(len(tensors), len(known))]
    return Roles(
        also=tuple(tensors[place].name for place in also),
        kept=tuple(map(held.index, kept)),
        takes=tuple(map(places.index, taken)),
        makes=tuple(t.name for t in made),
        has=tuple(has),
    )


def refused(forward: CheckedDef, has: Sequence[bool], *, derived: bool) -> list[bool]:
    """The inputs whose gradients are an error: those of floating-point numbers that have none
    (``has``). By one that a def which is ``derived`` takes for conditions or sizes, it is zero."""
    pairs = zip(forward.inputs, has, strict=True)
    return [t.type.is_float and not it and not derived for t, it in pairs]


def _taken(
    forward: CheckedDef, returned: Sequence[Tensor], backward: CheckedDef, known: Sequence[str]
) -> list[int]:
    """The places, in ``known``, of what the inputs of the backward def are."""
    own = [t.name for t in backward.inputs]
    results = range(len(forward.inputs) + len(forward.outputs), len(known))
    strange = [name for name in own if known.count(name) != 1]
    if not strange:
        found = [known.index(name) for name in own]
        if lost := [known[place] for place in results if place not in found]:
            name = lost[0].removeprefix(prefix_of(forward))
            other = f", or do not return '{name}', by wanted=" if len(results) > 1 else ""
            raise ArgumentError(
                f"{backward.name} has to take {lost[0]}, else the gradient through '{name}' of "
                f"{forward.name} is lost{other}"
            )
        return found
    inputs, outputs = range(len(forward.inputs)), range(len(forward.inputs) + len(returned))
    short, long = [*inputs, *results], [*outputs, *results]
    if len(own) not in (len(short), len(long)):
        raise ArgumentError(
            f"{backward.name} has to take the inputs of {forward.name} and the gradients of its "
            f"outputs ({plural(len(short), 'input')}), or its inputs, its outputs and their "
            f"gradients ({len(long)}), but takes {len(own)}; or any of these by name, but "
            f"'{strange[0]}' is not one of them: {', '.join(known)}"
        )
    found = long if len(own) == len(long) else short
    _check_places(forward, backward, own, [known[place] for place in found], known)
    return found


def _gradient_outputs(
    forward: CheckedDef, backward: CheckedDef, wanted: Sequence[Tensor], prefix: str
) -> list[Tensor]:
    """The outputs of the backward def that are the gradients of these inputs."""
    own = {t.name: t for t in backward.outputs}
    names = [prefix + t.name for t in wanted]
    for tensor in forward.inputs:
        if not tensor.type.is_float and prefix + tensor.name in own:
            raise ArgumentError(
                f"{backward.name} returns {prefix}{tensor.name}, but '{tensor.name}' of "
                f"{forward.name} is {tensor.type} and has no gradient; leave it out"
            )
    if all(name in own for name in names):
        return [own[name] for name in names]
    if len(own) > len(names):
        raise ArgumentError(
            f"{backward.name} returns {plural(len(own), 'tensor')}, of which {', '.join(names)} "
            f"would be the gradients of {forward.name}, but none is named "
            f"{next(name for name in names if name not in own)}; give the gradients these "
            "names, and intermediate results other names"
        )
    if len(own) < len(names):
        inputs = ", ".join(f"'{t.name}'" for t in wanted)
        raise ArgumentError(
            f"{backward.name} has to return one gradient for each floating-point input of "
            f"{forward.name} ({inputs}), but returns {len(own)}"
        )
    _check_places(forward, backward, list(own), names, names)
    return list(backward.outputs)


def _check_places(
    forward: CheckedDef,
    backward: CheckedDef,
    own: Sequence[str],
    meant: Sequence[str],
    known: Sequence[str],
) -> None:
    """Raises ``ArgumentError`` if a tensor that is understood by its place has the name of one that
    belongs to another place."""
    for name, there in zip(own, meant, strict=True):
        if name != there and name in known:
            raise ArgumentError(
                f"'{name}' of {backward.name} is at the position of {there} of {forward.name}; "
                f"use the names {', '.join(meant)}, or that order"
            )


def _check_alike(forward: CheckedDef, backward: CheckedDef, own: Tensor, tensor: Tensor) -> None:
    """Raises ``ArgumentError`` unless a tensor of the backward def may be one of the forward def's,
    or its gradient."""
    if (own.type, own.rank) != (tensor.type, tensor.rank):
        raise ArgumentError(
            f"'{own.name}' of {backward.name} is {own.type} with "
            f"{plural(own.rank, 'dimension')}, but '{tensor.name}' of {forward.name}, its "
            f"counterpart, is {tensor.type} with {tensor.rank}"
        )
