"""What choosing by a model takes: candidates are drawn, described, and ranked by the trees.

    tcl model train --cache model.db --out model.json
    python -m benchmarks.model_selection --model model.json --out FILE

Of each def at its first sizes in ``model_problems``, on one thread: milliseconds of the first time
and the median of more. ``drawn``: so many candidates, about half of which heuristics leave;
``described`` and ``ranked``: so many that are left. Planning the default comes before, compiling
after.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.model_data import Task
from benchmarks.model_problems import PROBLEMS
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir.layouts import cpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.options.options import DEFAULT
from tcl.executors.call_kernels import size
from tcl.tuner.model.candidates import candidates
from tcl.tuner.model.cpu_subject import CpuSubject
from tcl.tuner.model.file import read
from tcl.tuner.model.model import Model

PARTS = ("drawn", "described", "ranked")
_DRAWN = 3
"""Times as many, so that as many are left as are ranked."""


def timed(
    name: str, model: Model, device: CpuProfile, count: int, calls: int
) -> dict[str, object] | None:
    """Milliseconds of each part; None where there is nothing to choose."""
    task = Task(name, PROBLEMS[name][0], device.threads)
    sized = size(task.checked, task.inputs)
    program = lower(sized, cpu_layouts(sized))
    subject = CpuSubject.read(program, device)
    space = subject.space(program, subject.device)
    centre = space.from_options(DEFAULT)
    if centre is None or not subject.covered_by(space):
        return None
    times: list[list[float]] = []
    ranked = 0
    for _ in range(calls):
        begun = time.perf_counter()
        candidates(space.space, centre, count)
        after = time.perf_counter()
        drawn = candidates(space.space, centre, _DRAWN * count)
        rows = drawn.part(np.arange(min(count, len(drawn.places))))
        ranked, ready = len(rows.places), time.perf_counter()
        _, features = subject.extract_rows(space, rows)
        described = time.perf_counter()
        model.predict_rows(features).cautious.argsort(kind="stable")
        done = time.perf_counter()
        times.append([after - begun, described - ready, done - described])
    later = [median(part) for part in zip(*times[1:], strict=True)]
    return {
        **{"def": name, "knobs": len(space.space.knobs), "nests": len(subject.nests)},
        "candidates": ranked,
        **{part: round(1e3 * seconds, 2) for part, seconds in zip(PARTS, later, strict=True)},
        **{f"first_{p}": round(1e3 * s, 2) for p, s in zip(PARTS, times[0], strict=True)},
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_selection")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1000, help="candidates to rank")
    parser.add_argument("--calls", type=int, default=15)
    parser.add_argument("--defs", default=",".join(PROBLEMS), help="names, by commas")
    parser.add_argument("--out", type=Path, help="also as JSON")
    given = parser.parse_args()
    model, device = read(given.model, "cpu"), replace(host_cpu(), threads=1)
    rows = []
    for name in given.defs.split(","):
        found = timed(name, model, device, given.count, given.calls)
        if found is not None:
            rows.append(found)
            print(*(f"{key} {value}" for key, value in found.items()), sep="  ", flush=True)
    middle = {part: round(median(float(str(row[part])) for row in rows), 2) for part in PARTS}
    print("median of all defs:", middle)
    if given.out:
        about = {"machine": host_cpu().title, "threads": 1, "trees": sum(model.forest.members)}
        data = {**about, "milliseconds_in_the_median": middle, "rows": rows}
        given.out.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
