"""Programs that torch traces: what becomes of calls in which it sees no operator.

``torch.compile`` looks into the Python that it runs. A function that is ``opaque`` it calls as it
is, with tensors that hold values, between two programs; where there may be but one
(``fullgraph=True``, ``torch.export``), it refuses with ``REMEDY``. Tracers that run a program once
and note the operators that it calls would keep a result of ours as a constant: ``recorder`` says
which is at work, so that such a call is refused.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

from tcl.common.errors import ArgumentError

REMEDY = "register the def as an operator with tcl.torch.op"

_F = TypeVar("_F", bound=Callable[..., Any])

_new: deque[CodeType] = deque()
"""Of opaque functions that torch was not told of yet."""


def opaque(function: _F) -> _F:
    """A function that ``torch.compile`` does not look into, nor into what it calls."""
    said: dict[str, Any] = function.__dict__
    said["_torchdynamo_disable"] = True
    said["_torchdynamo_disable_msg"] = _Reason(f"calls of tcl cannot be traced; {REMEDY}")
    _new.append(function.__code__)
    tell_torch()
    return function


class _Reason(str):
    """Why a function is not traced. Torch writes it down when it meets the function first, before
    it calls it: late enough where torch was imported after everything here."""

    def __format__(self, how: str) -> str:
        tell_torch()
        return super().__format__(how)


def tell_torch() -> None:
    """Tell torch of all opaque functions, if it is there."""
    if not _new or "torch" not in sys.modules:
        return
    # Until torch is wholly imported it has none of this; at the end nothing is left to be told.
    with contextlib.suppress(ImportError, AttributeError, IndexError):
        from torch._C._dynamo import eval_frame

        tell, skip = eval_frame.set_code_exec_strategy, eval_frame._FrameAction.SKIP
        strategy = eval_frame._FrameExecStrategy(skip, skip)
        while True:
            tell(_new.popleft(), strategy)


def check_traced(what: str, argument: Any) -> None:
    """Raises ``ArgumentError``, about ``what``, for a tensor in a program that torch traces."""
    fx, torch = sys.modules.get("torch.fx"), sys.modules.get("torch")
    if isinstance(argument, getattr(fx, "Proxy", ())):
        raise ArgumentError(f"{what} is a placeholder of torch.fx; {REMEDY}")
    if not isinstance(argument, getattr(torch, "Tensor", ())):
        return
    if (found := recorder()) is not None:
        raise ArgumentError(
            f"{what} is passed while {found}, which records only operators; {REMEDY}"
        )


def recorder() -> str | None:
    """What of torch, which is imported, notes which operators this thread calls, in place of what
    they compute, as the end of a sentence; None if nothing does."""
    own: Any = sys.modules["torch"]._C
    if own._is_tracing():
        return "torch.jit.trace records calls"
    if not (own._len_torch_dispatch_stack() or own._len_torch_function_stack()):
        return None  # as most often; to ask for single modes takes longer
    if own._get_dispatch_mode(own._TorchDispatchModeKey.FAKE) is not None:
        return "FakeTensorMode is on"
    proxies: Any = sys.modules.get("torch.fx.experimental.proxy_tensor")
    if proxies is not None and proxies.get_proxy_mode() is not None:
        return "make_fx records calls"
    return None
