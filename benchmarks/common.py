"""What the benchmarks here share: forms of a call that take turns, a command line, a file."""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from tcl.codegen.devices.cpu import host_cpu

Call = Callable[[], object]
Clock = Callable[[], float]


def seconds(call: Call, calls: int = 1, clock: Clock = time.perf_counter) -> float:
    """Of a call, on average."""
    begun = clock()
    for _ in range(calls):
        call()
    return (clock() - begun) / calls


def samples(
    forms: Mapping[str, Call],
    rounds: int,
    *,
    calls: int = 0,
    least: float = 0.0,
    pause: float = 0.0,
    clock: Clock = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of a call: so many samples of each form, by its name. A sample is ``calls`` calls, or
    as many as take ``least`` seconds, after one that is not counted.

    The forms take turns, in an order that changes, so that what else the machine does meets all of
    them. ``pause``: seconds between them, in which threads of the last one stop waiting for work.
    """
    counts = {
        name: calls or math.ceil(least / min(seconds(call, 1, clock) for _ in range(3)) or 1)
        for name, call in forms.items()
    }
    found: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(rounds):
        for name in random.sample([*forms], len(forms)):
            time.sleep(pause)
            forms[name]()
            found[name].append(seconds(forms[name], counts[name], clock))
    return found


def medians(forms: Mapping[str, Call], rounds: int, **how: Any) -> dict[str, float]:
    """The median of each form's ``samples``."""
    return {name: median(times) for name, times in samples(forms, rounds, **how).items()}


def beside_peers(
    row: str, threads: int, forms: Mapping[str, Call], rounds: int
) -> dict[str, str | int | float]:
    """Medians of a row of a table, which is printed: ours, called ``tcl``, and the fastest peer."""
    times = medians(forms, rounds, least=0.02)
    ours = times.pop("tcl")
    name, peer = min(times.items(), key=lambda item: item[1])
    print(
        f"{threads} threads  {row:22}  {ours * 1e3:8.3f} ms  {name} {peer * 1e3:8.3f} ms  "
        f"{peer / ours:5.2f}",
        flush=True,
    )
    return {"row": row, "threads": threads, "tcl": ours, **times}


def command(
    benchmark: str, description: str | None, out: str = "write everything here, as JSON"
) -> argparse.ArgumentParser:
    """The command line of ``python -m benchmarks.BENCHMARK``, with ``--out``, of which ``out`` says
    what it is."""
    parser = argparse.ArgumentParser(f"python -m benchmarks.{benchmark}", description=description)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--out", type=Path, help=out)
    return parser


def write(path: Path | None, data: Mapping[str, Any]) -> None:
    """Write what was found, with where and when, to a file, if there is to be one."""
    if path is not None:
        about = {
            "date": time.strftime("%Y-%m-%d"),
            "machine": host_cpu().title,
            "cores": os.cpu_count(),
            "python": sys.version.split()[0],
            "load": [round(x, 2) for x in os.getloadavg()],
        }
        path.write_text(json.dumps({**about, **data}, indent=1) + "\n", "utf-8")
