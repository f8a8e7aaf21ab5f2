"""``Module``: a def as a layer with parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from tcl.arrays.arguments import Wanted
from tcl.arrays.user_input import SourceLike
from tcl.common.closest import closest
from tcl.common.errors import ArgumentError
from tcl.common.plural import plural
from tcl.common.shown import kind_of
from tcl.executors.dispatch import OptionsLike
from tcl.torch.operator import op
from tcl.torch.tensors import check_input


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
            near = closest(name, names)
            hint = f"did you mean '{near}'?" if near else f"its inputs are {', '.join(names)}"
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
