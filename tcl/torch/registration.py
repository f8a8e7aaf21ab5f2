"""A def as an operator of torch's dispatcher: its name, its schema, and what runs where.

The operator is functional: it makes its outputs, in row-major order, and changes nothing. What is
registered, by torch's dispatch keys:

- ``CPU``, ``CUDA``: kernels for the sizes and strides at hand, compiled when these come up first;
- fake tensors (``register_fake``): the outputs' sizes, strides and types, with all checks of a
  call, so that what is wrong is said when a program is traced;
- ``AutocastCPU``, ``AutocastCUDA``: inputs become the element types that the def declares;
- ``torch.vmap``: a call for each element of the batch.

Gradients are ``tcl.torch.gradients``' part, outside the operator.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tcl.arrays.arguments import Wanted, wanted_places
from tcl.codegen.options.options import MappingOptions
from tcl.common.errors import ArgumentError
from tcl.common.forks import free_lock
from tcl.executors.dispatch import Kernels, Origin, check_functional, settled_options
from tcl.grammar.tree.canonical import canonical_text
from tcl.grammar.tree.checked import CheckedDef
from tcl.torch.kernels import CpuKernels, CudaKernels, new_outputs, sized_for, torch_dtype
from tcl.torch.stub import implement, made_stub

NAMESPACE = "tcl"
"""Operators are ``torch.ops.tcl.NAME``."""

VERSION = 1
"""Of what compiled and exported programs may rely on. Counted up when an operator with the same
inputs would make other outputs, so that a program that was kept finds no operator rather than a
different one."""

_DIGITS = 16
"""Of the hash in a name: of a thousand defs, two share one with a probability below 1e-13."""


class Registered:
    """One operator. There is one of each name in a process."""

    def __init__(
        self,
        name: str,
        kernels: Kernels,
        checked: CheckedDef,
        places: Sequence[int] | None = None,
        *,
        unchecked: bool = False,
        native: bool = True,
    ) -> None:
        """``places``: of the outputs that are returned, among the def's; all unless it is given.
        ``native``: on the CPU without Python, where that is possible."""
        self.name = name
        self.checked = checked
        places = range(len(checked.outputs)) if places is None else places
        self.returned = tuple(checked.outputs[place] for place in places)
        """Its outputs."""
        cpu = CpuKernels(kernels, checked, places, unchecked=unchecked)
        library = torch.library.Library(NAMESPACE, "FRAGMENT")
        self._library = library  # what is registered goes with it
        count = len(places)
        arguments = ", ".join(f"Tensor x{k}" for k in range(len(checked.inputs)))
        results = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
        library.define(f"{name}({arguments}) -> {results}", tags=(torch.Tag.pt2_compliant_tag,))
        self.overload = getattr(getattr(torch.ops, NAMESPACE), name).default
        self._stub = made_stub(cpu, checked) if native else None
        if self._stub is None:
            library.impl(name, cpu, "CPU")
        else:
            implement(self._stub, NAMESPACE, name)
        names = [t.name for t in self.returned]
        library.impl(name, CudaKernels(kernels, checked, names, unchecked=unchecked), "CUDA")
        for device in ("cpu", "cuda"):
            library.impl(name, self._autocast(device), f"Autocast{device.upper()}")
        torch.library.register_fake(f"{NAMESPACE}::{name}", self._fake, lib=library)
        torch.library.register_vmap(f"{NAMESPACE}::{name}", self._vmap, lib=library)

    def _results(self, outputs: tuple[Any, ...]) -> Any:
        return outputs[0] if len(self.returned) == 1 else outputs

    def _fake(self, *inputs: Any) -> Any:
        sized = sized_for(self.checked, inputs)
        return self._results(new_outputs(sized, self.returned, inputs[0]))

    def as_declared(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Inputs of a floating-point type as tensors of the one that the def declares."""
        return tuple(
            a.to(torch_dtype(t.type)) if t.type.is_float and a.is_floating_point() else a
            for t, a in zip(self.checked.inputs, inputs, strict=True)
        )

    def _autocast(self, device: str) -> Callable[..., Any]:
        def run(*inputs: Any) -> Any:
            with torch.autocast(device, enabled=False):
                return self.overload(*self.as_declared(inputs))

        return run

    def _vmap(self, info: Any, dims: tuple[int | None, ...], *inputs: Any) -> Any:
        moved = [a if d is None else a.movedim(d, 0) for a, d in zip(inputs, dims, strict=True)]

        def element(k: int) -> tuple[Any, ...]:
            each = zip(moved, dims, strict=True)
            found = self.overload(*(a if d is None else a[k] for a, d in each))
            return (found,) if len(self.returned) == 1 else found

        if info.batch_size:
            elements = zip(*map(element, range(info.batch_size)), strict=True)
            outputs = tuple(torch.stack(each) for each in elements)
        else:
            like = [
                a if d is None else a.new_empty(a.shape[1:])
                for a, d in zip(moved, dims, strict=True)
            ]
            sized = sized_for(self.checked, like)
            empty = new_outputs(sized, self.returned, inputs[0])
            outputs = tuple(each.new_empty((0, *each.shape)) for each in empty)
        return self._results(outputs), self._results((0,) * len(outputs))


_registered: dict[str, Registered] = {}
_lock = free_lock()


def registered(origin: Origin, entry_point: str, wanted: Wanted) -> Registered:
    """The operator of a def, registered if there is none of its name yet. Raises ``ArgumentError``
    for a def that is no function of tensors, and ``OptionsError`` for an options factory."""
    checked = origin.kernels.definition(entry_point)
    everything = range(len(checked.outputs))
    places = everything if wanted is None else wanted_places(checked, wanted)
    name = _name(checked, places, origin)
    with _lock:
        found = _registered.get(name)
        if found is None:
            if not checked.inputs:
                raise ArgumentError(
                    f"{checked.name} has no inputs, but an operator runs on the device of its "
                    "inputs; use tcl.define"
                )
            check_functional(checked, "an operator")
            found = _registered[name] = Registered(
                name, origin.kernels, checked, places, unchecked=origin.unchecked
            )
    return found


def _name(checked: CheckedDef, places: Sequence[int], origin: Origin) -> str:
    """The def's name and a hash of all that the operator's outputs and kernels depend on."""
    kernels, settings = origin.kernels, origin.settings
    options = settled_options(kernels)
    policy = options.to_json() if isinstance(options, MappingOptions) else repr(options)
    tensors = [t.name for t in (*checked.inputs, *checked.outputs)]
    parts = [VERSION, checked.name, canonical_text(checked), tensors, policy]
    everything = list(places) == list(range(len(checked.outputs)))
    some = [] if everything else [list(places)]
    others = {"strict": settings.strict, "relax": settings.relax, "varying": settings.varying}
    # Those that are left as they are do not change a name.
    given = {name: value for name, value in others.items() if value}
    also = [given] if given else []
    text = json.dumps([*parts, kernels.nearest, settings.threads, origin.unchecked, *some, *also])
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{checked.name[:_LONGEST]}_{digest}"


_LONGEST = 64
"""Characters of a def's name that an operator's begins with."""
