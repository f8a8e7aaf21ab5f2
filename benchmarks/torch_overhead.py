"""What a call of an operator costs in torch, beside operators that are registered otherwise.

    python -m benchmarks.torch_overhead --out overhead.json

All multiply two arrays of the same size into a new one (but ``torch.mul(out=)``): a def as an
operator, by code without Python (what ``tcl.torch.op`` registers) and by its fall-back in Python;
``torch.mul`` as an operator by ``Library.define`` and ``impl``, and by ``torch.library.custom_op``.
A sample is a loop of calls. All take turns, in an order that changes, so that what else the machine
does meets all of them; the medians are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import tcl.torch
from tcl.executors.dispatch import Kernels
from tcl.torch.registration import Registered

SOURCE = "def multiply(float(N) A, float(N) B) -> (C) { C(n) = A(n) * B(n) }"
SIZES = (1, 16, 1024)

LIBRARY = torch.library.Library("tcl_benchmark", "FRAGMENT")
LIBRARY.define("multiply(Tensor a, Tensor b) -> Tensor")
LIBRARY.impl("multiply", torch.mul, "CPU")


def custom(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """torch's product, as an operator."""
    return torch.mul(a, b)


CUSTOM: Any = torch.library.custom_op("tcl_benchmark::custom", custom, mutates_args=())
KERNELS = Kernels(SOURCE, None, None, False)
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
    found: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(samples + 1):
        for name in random.sample(list(forms), len(forms)):
            found[name].append(sample(forms[name], a, b, calls))
    result = {name: statistics.median(times[1:]) for name, times in found.items()}
    equal = result["torch.mul as define + impl"]
    result["ratio, overload to overload"] = result["ours: its overload, without Python"] / equal
    result["ratio, tcl.torch.op to overload"] = result["ours: tcl.torch.op(...)(a, b)"] / equal
    return {name: round(value, 3) for name, value in result.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--samples", type=int, default=501)
    parser.add_argument("--calls", type=int, default=50, help="of a sample")
    parser.add_argument("--out", type=Path, help="also as JSON")
    given = parser.parse_args()
    results = {}
    for size in SIZES:
        results[str(size)] = found = compared(size, given.samples, given.calls)
        print(f"{size} elements")
        for name, value in found.items():
            print(f"  {value:8.2f} {'  ' if 'ratio' in name else 'µs'}  {name}")
    if given.out:
        about = {
            "what": "microseconds of a call: medians of samples that took turns",
            "date": datetime.now(UTC).date().isoformat(),
            "command": f"python -m benchmarks.torch_overhead --samples {given.samples} "
            f"--calls {given.calls}",
            "torch": torch.__version__,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "load": [round(x, 2) for x in os.getloadavg()],
        }
        given.out.write_text(json.dumps({**about, "elements": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
