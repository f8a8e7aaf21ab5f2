"""What benchmarks of a call's overhead share: forms of the call that take turns, and their command.

What else the machine does meets all forms, as they come in an order that changes; the medians are
compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import TypeVar

Form = TypeVar("Form")

SIZES = (1, 16, 1024)
"""Elements of the arrays that ``command`` has calls compared on."""


def medians(
    forms: Mapping[str, Form], sample: Callable[[Form], float], samples: int
) -> dict[str, float]:
    """The median of so many samples of each form, by its name. One more comes before them, which
    warms up and is not counted."""
    found: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(samples + 1):
        for name in random.sample(list(forms), len(forms)):
            found[name].append(sample(forms[name]))
    return {name: statistics.median(times[1:]) for name, times in found.items()}


def command(
    benchmark: str,
    framework: ModuleType,
    calls: int,
    compared: Callable[[int, int, int], dict[str, float]],
    description: str | None,
) -> None:
    """The command ``python -m benchmarks.BENCHMARK``: measures, prints, writes what ``--out`` says.

    ``compared`` takes an array's size, the number of samples and the calls of a sample, and returns
    microseconds and ratios (what has the word in its name) by what they are of. ``calls``: those of
    a sample, if the user does not say.
    """
    parser = argparse.ArgumentParser(description=description and description.splitlines()[0])
    parser.add_argument("--samples", type=int, default=501)
    parser.add_argument("--calls", type=int, default=calls, help="of a sample")
    parser.add_argument("--out", type=Path, help="also as JSON")
    given = parser.parse_args()
    results = {}
    for size in SIZES:
        found = compared(size, given.samples, given.calls)
        results[str(size)] = {name: round(value, 3) for name, value in found.items()}
        print(f"{size} elements")
        for name, value in found.items():
            print(f"  {value:8.2f} {'  ' if 'ratio' in name else 'µs'}  {name}")
    if given.out:
        about = {
            "what": "microseconds of a call: medians of samples that took turns",
            "date": datetime.now(UTC).date().isoformat(),
            "command": f"python -m benchmarks.{benchmark} --samples {given.samples} "
            f"--calls {given.calls}",
            framework.__name__: framework.__version__,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "load": [round(x, 2) for x in os.getloadavg()],
        }
        given.out.write_text(json.dumps({**about, "elements": results}, indent=2) + "\n")
