"""Defs as operators and layers of torch.

    mm = tcl.torch.op(source, "mm", backward="mm_grad")
    C = torch.compile(lambda A, B: mm(A, B).relu(), fullgraph=True)(A, B)

Inside this package ``import torch`` is torch itself.
"""

from __future__ import annotations

from tcl.common.errors import ArgumentError
from tcl.common.extras import installing

try:
    import torch as _torch  # noqa: F401
except ImportError:
    raise ArgumentError(
        f"tcl.torch needs the package torch; install it with {installing('torch')}"
    ) from None

from tcl.torch.operator import Module as Module
from tcl.torch.operator import Operator as Operator
from tcl.torch.operator import op as op

__all__ = ["Module", "Operator", "op"]
