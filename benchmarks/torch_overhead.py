"""What a call of an operator costs in torch, beside operators that are registered otherwise.

    python -m benchmarks.torch_overhead --out overhead.json

All multiply two arrays of the same size into a new one (but ``torch.mul(out=)``): a def as an
operator, by code without Python (what ``tcl.torch.op`` registers) and by its fall-back in Python;
``torch.mul`` as an operator by ``Library.define`` and ``impl``, and by ``torch.library.custom_op``.
A sample is a loop of calls. All take turns, in an order that changes, so that what else the machine
does meets all of them; the medians are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

import tcl.torch
from benchmarks.turns import command, medians
from tcl.executors.dispatch import Kernels
from tcl.executors.settings import Settings
from tcl.torch.registration import Registered

SOURCE = "def multiply(float(N) A, float(N) B) -> (C) { C(n) = A(n) * B(n) }"

LIBRARY = torch.library.Library("tcl_benchmark", "FRAGMENT")
LIBRARY.define("multiply(Tensor a, Tensor b) -> Tensor")
LIBRARY.impl("multiply", torch.mul, "CPU")


def custom(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """torch's product, as an operator."""
    return torch.mul(a, b)


CUSTOM: Any = torch.library.custom_op("tcl_benchmark::custom", custom, mutates_args=())
KERNELS = Kernels(SOURCE, Settings())
PYTHON = Registered(
    "benchmark_multiply_python", KERNELS, KERNELS.definition("multiply"), native=False
)


def sample(call: Callable[[Any, Any], Any], a: Any, b: Any, calls: int) -> float:
    """Microseconds of one call."""
    begun = time.perf_counter()
    for _ in range(calls):
        call(a, b)
    return (time.perf_counter() - begun) / calls * 1e6


def compared(size: int, samples: int, calls: int) -> dict[str, float]:
    """Medians of samples that took turns, in microseconds, and ratios."""
    a, b, c = torch.rand(size), torch.rand(size), torch.empty(size)
    ours = tcl.torch.op(SOURCE, "multiply")
    forms: dict[str, Callable[[Any, Any], Any]] = {
        "ours: tcl.torch.op(...)(a, b)": ours,
        "ours: its overload, without Python": ours.overload,
        "ours: its overload, by Python": PYTHON.overload,
        "torch.mul as define + impl": torch.ops.tcl_benchmark.multiply.default,
        "torch.mul as custom_op": CUSTOM,
        "torch.mul": torch.mul,
        "torch.mul(out=)": lambda a, b: torch.mul(a, b, out=c),
    }
    for call in forms.values():
        torch.testing.assert_close(call(a, b), a * b)
    result = medians(forms, lambda call: sample(call, a, b, calls), samples)
    equal = result["torch.mul as define + impl"]
    result["ratio, overload to overload"] = result["ours: its overload, without Python"] / equal
    result["ratio, tcl.torch.op to overload"] = result["ours: tcl.torch.op(...)(a, b)"] / equal
    return result


if __name__ == "__main__":
    command("torch_overhead", torch, 50, compared, __doc__)
