"""Transposes with nothing tuned, beside NumPy's and torch's, on one thread.

    python -m benchmarks.transposes --out FILE

Every contender writes into memory that is there already; they are timed in turns, in one process,
and compared by their medians.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tcl
from benchmarks.turns import medians
from tcl.codegen.devices.cpu import host_cpu

TEXT = "def permuted(float({sizes}) I) -> (O) {{ O({outside}) = I({inside}) }}"
ROWS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("m,n", "n,m", (100, 100)),
    ("m,n", "n,m", (1000, 1000)),
    ("m,n", "n,m", (4000, 4000)),
    ("c,h,w", "h,w,c", (3, 224, 224)),
    ("h,w,c", "c,h,w", (224, 224, 3)),
    ("c,h,w", "h,w,c", (64, 56, 56)),
    ("h,w,c", "c,h,w", (56, 56, 64)),
    ("n,c,h,w", "n,h,w,c", (8, 64, 28, 28)),
    ("n,c,h,w", "c,n,w,h", (32, 64, 56, 56)),
)
"""Indices of the input, of the output, and the input's shape."""
SAMPLES = 31
"""Of each contender."""


def contenders(
    inside: str, outside: str, given: NDArray[np.float32]
) -> dict[str, Callable[[], object]]:
    """By name: ours, NumPy and, where it is installed, torch."""
    order = [inside.split(",").index(name) for name in outside.split(",")]
    text = TEXT.format(sizes=inside.upper(), inside=inside, outside=outside)
    kernel = tcl.define(text, threads=1).permuted
    expected = given.transpose(order)
    ours, numpys = (np.empty(expected.shape, np.float32) for _ in range(2))
    found: dict[str, Callable[[], object]] = {
        "ours": lambda: kernel(given, outputs=(ours,)),
        "numpy": lambda: np.copyto(numpys, expected),
    }
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)
        source, result = torch.from_numpy(given).permute(order), torch.empty(expected.shape)
        found["torch"] = lambda: result.copy_(source)
    found["ours"]()
    if not np.array_equal(ours, expected):
        raise AssertionError(f"O({outside}) = I({inside}) of {given.shape} is wrong")
    return found


def seconds_of(call: Callable[[], object]) -> float:
    """That one call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transposes", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--out", type=Path, help="write everything here, as JSON")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for inside, outside, shape in ROWS:
        values = np.random.default_rng(0).random(shape, np.float32)
        seconds = medians(contenders(inside, outside, values), seconds_of, SAMPLES)
        best = min(s for name, s in seconds.items() if name != "ours") / seconds["ours"]
        rate = 8 * math.prod(shape) / seconds["ours"] / 1e9
        rows.append({"row": f"O({outside}) = I({inside})", "shape": shape, "seconds": seconds})
        rows[-1] |= {"best peer / ours": best, "GB/s": rate}
        times = "  ".join(f"{name} {s * 1e6:8.1f} us" for name, s in seconds.items())
        print(f"{rows[-1]['row']:24} {shape!s:18} {times}  {best:.2f} x  {rate:.1f} GB/s")
    mean = geometric_mean(row["best peer / ours"] for row in rows)
    print(f"best peer / ours: {mean:.2f} in the geometric mean")
    if given.out is not None:
        about = {"date": time.strftime("%Y-%m-%d"), "machine": host_cpu().title, "threads": 1}
        data = {**about, "best peer / ours": mean, "rows": rows}
        given.out.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
