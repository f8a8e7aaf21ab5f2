"""``op``: a def as an operator of torch; ``Module``: as a layer with parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from tcl.arrays.arguments import Wanted, check_count, input_array
from tcl.arrays.user_input import SourceLike, check_flag, in_order
from tcl.common.closest import did_you_mean
from tcl.common.errors import ArgumentError
from tcl.common.number_format import plural
from tcl.common.shown import kind_of
from tcl.executors.dispatch import Kernels, OptionsLike, Origin, Settings
from tcl.torch.gradients import recorded
from tcl.torch.kernels import check_input, check_inputs, number_as_tensor
from tcl.torch.registration import NAMESPACE, registered
from tcl.torch.stub import failures


def op(
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
) -> Operator:
    """A def as an operator of torch: a function of tensors that returns new ones.

    It works with ``torch.compile(fullgraph=True)``, ``torch.export``, ``torch.autocast``
    (floating-point inputs are converted to the declared types), ``torch.vmap`` (one call per
    element of the batch) and CUDA graphs. Gradients are derived as by ``tcl.grad``.

    - ``options``, ``threads``, ``nearest``, ``strict``, ``relax``: as for ``tcl.define``. A factory
      that is a function is refused, because an operator never tunes.
    - ``backward``: the name of a def of the same text that computes the gradients (default:
      a derived def); ``tcl docs torch`` describes its arguments.
    - ``wanted``: names of the outputs that are returned, in this order. The memory of the other
      outputs is reused from call to call.
    - ``unchecked``: if True, no run-time checks of data-dependent subscripts.
    - ``varying``: names of sizes that vary; tensors of one class of sizes then share a kernel.
      Sizes may be dynamic in compiled programs (``dynamic=True``, ``mark_dynamic``) and exported
      programs, with or without ``varying``.

    The same text, def and options give the same operator, with the same name, in every process.
    Call ``op`` before you load an exported program. Raises what ``tcl.define`` raises, and
    ``ArgumentError`` for a def that cannot be an operator.
    """
    if torch.compiler.is_compiling():
        raise ArgumentError(
            "an operator cannot be created while a program is traced; call tcl.torch.op first"
        )
    check_flag("unchecked", unchecked)
    settings = Settings(options, threads, nearest, strict, relax, None, varying)
    return Operator(source, entry_point, settings, backward, wanted, unchecked)


class Operator:
    """A def as an operator of torch: a function that takes tensors on one device and returns new
    ones."""

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
        relax = None if settings.relax is None else tuple(sorted(kernels.relax))
        settings = replace(settings, options=kernels.options, relax=relax, varying=kernels.varying)
        self._given = (kernels.source, entry_point, settings, backward, wanted, unchecked)
        origin = Origin(kernels, settings, unchecked)
        forward = registered(origin, entry_point, wanted)
        self.overload = forward.overload
        """The operator itself, ``torch.ops.tcl.NAME.default``. It knows of no gradients."""
        self.checked = forward.checked
        """The def."""
        self._function = recorded(origin, forward, backward)
        self._numbers = any(t.rank == 0 for t in self.checked.inputs)
        self._forward = forward
        names = ", ".join(t.name for t in self.checked.inputs)
        results = ", ".join(t.name for t in forward.returned)
        self.__name__ = self.__qualname__ = self.checked.name
        self.__doc__ = f"{self.checked.name}({names}) -> ({results})"

    @property
    def name(self) -> str:
        """The name in torch, ``tcl::NAME``: the def's name and a hash of the def and options."""
        return f"{NAMESPACE}::{self._forward.name}"

    def __call__(self, /, *inputs: Any, **named: Any) -> Any:
        """Run the operator. Inputs are tensors in the order of the def or by name; an input of rank
        0 may be a number. Returns a tensor or a tuple of tensors: the wanted outputs, or all.

        Raises ``ArgumentError`` and ``RangeInferenceError`` for inputs that do not fit, and
        ``IndexError`` for a data-dependent subscript out of range.
        """
        if named:
            inputs = in_order(self.checked, inputs, named, ())
        if self._numbers:
            inputs = self._as_tensors(inputs)
        try:
            if forward_ad._current_level >= 0:
                return self._recorded(inputs)  # which refuses: tangents would be lost
            if torch.is_grad_enabled():
                for each in inputs:
                    if each.requires_grad:
                        return self._recorded(inputs)
            return self.overload(*inputs)
        except (AttributeError, RuntimeError, TypeError) as error:
            known = failures.take(error)
            if known is not None:
                raise known from None
            check_inputs(self.checked, inputs)  # which says it better, where these are wrong
            raise

    def _recorded(self, inputs: tuple[Any, ...]) -> Any:
        """A call of which gradients are recorded."""
        check_count(self.checked, inputs)
        if torch.is_autocast_enabled(inputs[0].device.type):  # what is recorded is the conversion
            inputs = self._forward.as_declared(inputs)
        return self._function(*inputs)

    def _as_tensors(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Numbers for inputs of rank 0 as tensors, on the device of the first tensor."""
        check_count(self.checked, inputs)
        device = next((a.device for a in inputs if isinstance(a, torch.Tensor)), None)
        found = []
        for tensor, given in zip(self.checked.inputs, inputs, strict=True):
            if tensor.rank == 0 and isinstance(given, np.generic):
                given = input_array(self.checked.name, tensor, given).item()
            if tensor.rank == 0 and isinstance(given, bool | int | float):
                given = number_as_tensor(self.checked.name, tensor, given, device)
            found.append(given)
        return tuple(found)

    def __repr__(self) -> str:
        return f"<tcl operator {self.name}: {self.__doc__}>"

    def __reduce__(self) -> tuple[object, ...]:
        return Operator, self._given


class Module(torch.nn.Module):  # type: ignore[misc]
    """A layer: an operator, some of whose inputs belong to the layer.

        layer = tcl.torch.Module(source, "fc", parameters={"W": torch.randn(10, 20)},
                                 backward="fc_grad")
        Y = layer(X)

    ``parameters`` maps names of inputs to tensors of the declared types. A floating-point tensor
    becomes a parameter with that name, any other tensor a buffer. A call takes the other inputs, in
    the order of the def. ``options``, ``backward``, ``wanted``, ``threads``, ``nearest``,
    ``unchecked``, ``strict``, ``relax`` and ``varying`` are as for ``tcl.torch.op``. Raises the
    errors of ``tcl.torch.op``.
    """

    def __init__(
        self,
        source: SourceLike,
        entry_point: str,
        options: OptionsLike = None,
        *,
        parameters: Mapping[str, Any],
        backward: str | None = None,
        wanted: Wanted = None,
        threads: int | None = None,
        nearest: bool = False,
        unchecked: bool = False,
        strict: bool = False,
        relax: str | Iterable[str] | None = None,
        varying: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.op = op(
            source,
            entry_point,
            options,
            backward=backward,
            wanted=wanted,
            threads=threads,
            nearest=nearest,
            unchecked=unchecked,
            strict=strict,
            relax=relax,
            varying=varying,
        )
        """The operator."""
        if not isinstance(parameters, Mapping):
            raise ArgumentError(
                "parameters= has to be a dict of tensors by the names of inputs, "
                f"not {kind_of(parameters)}"
            )
        names = [t.name for t in self.op.checked.inputs]
        for name, value in parameters.items():
            self._keep(names, name, value)
        self._own = [name if name in parameters else "" for name in names]
        self._rest = [name for name in names if name not in parameters]

    def _keep(self, names: list[str], name: str, value: Any) -> None:
        """Make a tensor the layer's. Raises ``ArgumentError``."""
        entry = self.op.checked.name
        if name not in names:
            hint = did_you_mean(name, names, f"its inputs are {', '.join(names)}", "'")
            raise ArgumentError(f"{entry} has no input '{name}'; {hint}")
        if not isinstance(value, torch.Tensor):
            raise ArgumentError(
                f"parameter '{name}' of {entry} has to be a torch tensor, not {kind_of(value)}"
            )
        check_input(self.op.checked, self.op.checked.inputs[names.index(name)], value)
        try:
            if value.is_floating_point():
                kept = value if isinstance(value, torch.nn.Parameter) else torch.nn.Parameter(value)
                self.register_parameter(name, kept)
            else:
                self.register_buffer(name, value)
        except KeyError:
            raise ArgumentError(
                f"torch modules already have an attribute '{name}'; rename this input of {entry}"
            ) from None

    def forward(self, *inputs: Any) -> Any:
        """The outputs of the operator, for the layer's own tensors and these inputs."""
        if len(inputs) != len(self._rest):
            raise ArgumentError(
                f"this layer of {self.op.checked.name} takes "
                f"{plural(len(self._rest), 'input')} ({', '.join(self._rest)}), "
                f"but {len(inputs)} {'was' if len(inputs) == 1 else 'were'} given"
            )
        rest = iter(inputs)
        return self.op(*[getattr(self, name) if name else next(rest) for name in self._own])

    def extra_repr(self) -> str:
        return self.op.__doc__ or ""
