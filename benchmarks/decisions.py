"""How often the finals of a search find the best kernel, through noise.

    python -m benchmarks.decisions [--decisions 1000] [--out FILE]
    python -m benchmarks.decisions --record FILE

Kernels have known times, and finals read them through noise that is made up, or was recorded: see
``tests/support/decisions.py``.
``--record`` times the default of some rows and what is near it in turns, in eight processes, once
as the machine is (leave it alone meanwhile), once beside two busy processes a core.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common import command, write
from benchmarks.tuned import in_fresh_process
from tcl.arrays.random_inputs import random_inputs
from tcl.backends.program_backend import CpuBackend
from tcl.backends.targets import CpuTarget
from tcl.bench.rows import select
from tcl.selection.best_options import DEFAULT
from tcl.tuner.measure.cores import available_cores
from tcl.tuner.measure.evaluate import compile_candidate
from tcl.tuner.measure.timing import Placed
from tcl.tuner.space.around import around

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from decisions import decided, recorded, rough, summary

ROWS = "softmax 4096x1024,matmul 512,layernorm 4096x1024,grouped conv C8@28"
KERNELS = 12
SESSIONS = 8


def recording() -> list[Any]:
    """Of each process, kernel and placement the samples, over their median of all processes of the
    row."""
    found = []
    for row in select(ROWS):
        inputs = list(random_inputs(row.checked, row.values, 0))
        with tempfile.TemporaryDirectory() as folder:
            backend = CpuBackend.create(row.text, row.entry, inputs, folder)
            codes = list(islice(_codes(backend), KERNELS))
            sessions = [in_fresh_process(backend, codes, 1) for _ in range(SESSIONS)]
        print(f"{row.name}: {len(codes)} kernels", flush=True)
        for session in sessions:
            found.append([_relative(k, session, sessions) for k in range(len(session))])
    return found


def _codes(backend: CpuBackend) -> Iterator[bytes]:
    """The default, and what is near it."""
    options = CpuTarget(1).space(backend)
    config = options.from_options(DEFAULT)
    assert config is not None
    seen = set()
    for near in (DEFAULT, *map(options.to_options, around(options.space, config))):
        code = compile_candidate(backend, near)
        if isinstance(code, bytes) and code not in seen:
            seen.add(code)
            yield code


def _relative(
    kernel: int, session: Sequence[Placed], sessions: Sequence[Sequence[Placed]]
) -> list[list[float]]:
    found = []
    for place, (_, times) in enumerate(session[kernel]):
        middle = median(t for each in sessions for t in each[kernel][place][1])
        found.append([round(t / middle, 4) for t in times])
    return found


@contextmanager
def busy() -> Iterator[None]:
    """Two processes a core that count."""
    command = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(command) for _ in range(2 * len(available_cores()))]
    try:
        yield
    finally:
        for each in others:
            each.kill()
            each.wait()


def main() -> None:
    parser = command("decisions", __doc__)
    parser.add_argument("--decisions", type=int, default=1000)
    parser.add_argument("--record", type=Path)
    given = parser.parse_args()
    if given.record is not None:
        quiet = recording()
        with busy():
            loaded = recording()
        text = json.dumps({"quiet": quiet, "loaded": loaded}, separators=(",", ":"))
        given.record.write_bytes(gzip.compress(text.encode(), mtime=0))
        return
    noises = {"made up": rough, "quiet": recorded("quiet"), "loaded": recorded("loaded")}
    found = {
        name: summary([decided(seed, noise) for seed in range(given.decisions)])
        for name, noise in noises.items()
    }
    for name, values in found.items():
        print(f"{name}: " + ", ".join(f"{k} {v:.4g}" for k, v in values.items()))
    write(given.out, found)


if __name__ == "__main__":
    main()
