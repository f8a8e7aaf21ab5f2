"""Compares ``tcl.einsum`` with ``numpy.einsum(optimize=True)`` and ``torch.einsum``.

    OMP_NUM_THREADS=1 TCL_NUM_THREADS=1 python -m benchmarks.einsum --out FILE
    OMP_NUM_THREADS=2 TCL_NUM_THREADS=2 python -m benchmarks.einsum --rows Tucker MTTKRP

The expressions and their sizes were chosen before the first measurement. ``benchmarks/README.md``
describes the measurement.
"""

from __future__ import annotations

import os
import time
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import opt_einsum
import torch

import tcl
from benchmarks.common import Call, command, samples, write
from tcl.codegen.cpu.thread_count import thread_count
from tcl.common.number_format import plural


class Row(NamedTuple):
    """An expression, as people write it, with sizes that they write it for."""

    name: str
    expression: str
    shapes: tuple[tuple[int, ...], ...]


ROWS = (
    Row("attention scores", "bhqd,bhkd->bhqk", ((4, 8, 128, 64), (4, 8, 128, 64))),
    Row("attention scores, heads inside", "bqhd,bkhd->bhqk", ((2, 256, 8, 64), (2, 256, 8, 64))),
    Row("attention output", "bhqk,bhkd->bhqd", ((4, 8, 128, 128), (4, 8, 128, 64))),
    Row("projection into heads", "bsd,dhk->bshk", ((4, 128, 512), (512, 8, 64))),
    Row("batched products, small", "bij,bjk->bik", ((1000, 8, 8), (1000, 8, 8))),
    Row("batched products, ellipsis", "...ij,...jk->...ik", ((16, 4, 32, 32), (16, 4, 32, 32))),
    Row("linear layer, ellipsis", "...i,ij->...j", ((32, 100, 64), (64, 64))),
    Row("matrix product, tiny", "ij,jk->ik", ((4, 4), (4, 4))),
    Row("rotating points", "ij,nj->ni", ((3, 3), (1000, 3))),
    Row("bilinear layer", "bi,oij,bj->bo", ((128, 64), (32, 64, 64), (128, 64))),
    Row("quadratic form", "ni,ij,nj->n", ((2000, 64), (64, 64), (2000, 64))),
    Row("dot products of rows", "ij,ij->i", ((10000, 64), (10000, 64))),
    Row("outer products, batched", "bi,bj->bij", ((256, 64), (256, 64))),
    Row("trace of a product", "ij,ji->", ((512, 512), (512, 512))),
    Row("traces, batched", "bii->b", ((1000, 32, 32),)),
    Row("chain of matrices", "ij,jk,kl->il", ((256, 256), (256, 256), (256, 16))),
    Row("matrix product state", "ab,apc,bpd->cd", ((64, 64), (64, 2, 64), (64, 2, 64))),
    Row("Tucker", "abc,ia,jb,kc->ijk", ((16, 16, 16), (64, 16), (64, 16), (64, 16))),
    Row("MTTKRP", "ijk,jr,kr->ir", ((128, 128, 128), (128, 16), (128, 16))),
    Row("Khatri-Rao", "ir,jr->ijr", ((200, 32), (200, 32))),
)


ROUNDS = 11
SAMPLE = 0.01
"""Seconds that a sample lasts at least, where a call is shorter."""
PAUSE = 0.02
"""Seconds between contenders, in which threads of the last one stop waiting for work."""
ALONE = os.environ.get("TCL_NUM_THREADS") == "1"
CLOCK = time.process_time if ALONE else time.perf_counter
"""With one thread the processor's time, so that what else runs on the machine counts for little."""
TOLERANCE = 1e-3
"""Of float32 sums of up to a million terms, relative to the largest."""


def contenders(row: Row) -> dict[str, Call]:
    """A call of each, on the same memory."""
    random = np.random.default_rng(0)
    arrays = [random.random(shape, dtype=np.float32) for shape in row.shapes]
    tensors = [torch.from_numpy(array) for array in arrays]
    return {
        "tcl": lambda: tcl.einsum(row.expression, *arrays),
        "numpy": lambda: np.einsum(row.expression, *arrays, optimize=True),
        "torch": lambda: torch.einsum(row.expression, *tensors),
    }


def measured(row: Row) -> dict[str, list[float]]:
    """Seconds per call of each contender, in turns."""
    runs = contenders(row)
    expected = np.asarray(runs["numpy"]())
    for name, run in runs.items():  # compiled here, and compared
        worst = np.max(np.abs(np.asarray(run()) - expected), initial=0)
        if worst > TOLERANCE * np.max(np.abs(expected)):
            raise SystemExit(f"{name} is wrong by {worst:g} on {row.name}")
    return samples(runs, ROUNDS, least=SAMPLE, pause=PAUSE, clock=CLOCK)


def main() -> None:
    """Measure, print, and write what ``--out`` says."""
    parser = command("einsum", __doc__)
    names = [row.name for row in ROWS]
    parser.add_argument("--rows", nargs="+", choices=names, default=names)
    given = parser.parse_args()
    print(
        f"{plural(thread_count(None), 'thread')}: microseconds of a call (medians), and the better"
    )
    print("peer's over ours, of the medians and of the least samples")
    found: list[dict[str, Any]] = []
    for row in (row for row in ROWS if row.name in given.rows):
        taken = measured(row)
        times = {name: median(each) for name, each in taken.items()}
        least = {name: min(each) for name, each in taken.items()}
        ratio, ratio_least = (min(t["numpy"], t["torch"]) / t["tcl"] for t in (times, least))
        shown = "".join(f"{name} {1e6 * t:9.1f}  " for name, t in times.items())
        print(f"{row.name:34}{shown}{ratio:6.2f}{ratio_least:8.2f}", flush=True)
        ratios = {"ratio": round(ratio, 3), "ratio_of_least": round(ratio_least, 3)}
        found.append({**row._asdict(), **ratios, "seconds": times, "samples": taken})
    for name, words in (("ratio", "medians"), ("ratio_of_least", "least samples")):
        won = sum(each[name] > 1 for each in found)
        print(f"quicker than both on {won} of {len(found)}, by {words}")
    versions = {each.__name__: each.__version__ for each in (np, torch, opt_einsum)}
    write(given.out, {**versions, "threads": thread_count(None), "rows": found})


if __name__ == "__main__":
    main()
