"""Compares kernels of known defs in time: defaults of two checkouts, or options with the default.

    python -m benchmarks.race differ /work/other --out differ.json   # whose default is other code
    python -m benchmarks.race trees /work/other --rows "softmax*,lut sum"
    python -m benchmarks.race trees /work/other --differing differ.json
    python -m benchmarks.race threads --threads 2 --rows "gray*"  # one thread beside all
    python -m benchmarks.race options --rows matvec_int8 '{"nests":[{"tile":[0,8]}]}' '0.fuse=false'

Times are those of the other checkout, or of the options, over ours: below 1 they are faster. The
other checkout has a virtual environment ``.venv`` of its own, or shares that of ``--python``. Rows
are those of the CPU benchmark and the strangers. ``--scale 1.37`` multiplies all sizes from 8 on,
where the def still fits.

Beside other work the kernel that is timed needs the core for itself. Nice values do not do where
each shell is a scheduling group, so as root races run at a real-time priority, after
``sysctl kernel.sched_autogroup_enabled=0 kernel.sched_rt_runtime_us=-1``, on the core ``--core``,
which one race at a time locks.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pickle
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from benchmarks.common import command, write
from benchmarks.tuned import PARTS, strangers
from tcl.arrays.random_inputs import input_shape, random_inputs
from tcl.backends.program_backend import CpuBackend
from tcl.bench.rows import SUITE, Row
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.cpu import plan
from tcl.codegen.schedule.parts import unsplit
from tcl.common.errors import TclError
from tcl.grammar.ranges.inference import infer
from tcl.selection.best_options import DEFAULT
from tcl.tuner.measure.evaluate import Evaluator
from tcl.tuner.measure.timing import MeasureSettings

HERE = Path(__file__).parents[1]
_SMALL = 8
"""Sizes below are of filters, channels and colours: ``--scale`` leaves them."""


@dataclass(frozen=True)
class Settings:
    """Which kernels."""

    threads: int
    scale: float

    def sizes(self, row: Row) -> dict[str, int]:
        """Of a row, scaled."""
        return {
            name: round(size * self.scale) if size >= _SMALL else size
            for name, size in row.values.items()
        }


@cache
def known() -> dict[str, Row]:
    """All rows by name; of the strangers those that are given for several parts only once."""
    rows = [*SUITE, *(row for part in PARTS for row in strangers(part))]
    return {row.name: row for row in reversed(rows)}


def chosen(given: Namespace) -> list[str]:
    """Names of the rows that a command line asks for."""
    names = [*known()]
    if given.differing:
        names = json.loads(given.differing.read_text())["differing"]
    patterns = given.rows.split(",") if given.rows else ["*"]
    return [n for n in names if any(fnmatchcase(n, p) for p in patterns)]


def hashed(name: str, settings: Settings) -> str:
    """Of the code of a row's default."""
    row = known()[name]
    try:
        shapes = {t.name: input_shape(t, settings.sizes(row)) for t in row.checked.inputs}
        device = replace(host_cpu(), threads=settings.threads)
        made = plan(infer(row.checked, shapes), DEFAULT, device)
        text = emit_program(made.scheduled(), made.target).text
    except TclError as error:
        return f"refused: {error}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def hashes(settings: Settings) -> dict[str, str]:
    """Of all rows."""
    names = [*known()]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(hashed, names, [settings] * len(names), chunksize=4)
        return dict(zip(names, found, strict=True))


def backend(name: str, settings: Settings, folder: str = "") -> CpuBackend:
    """Of a row, with inputs in ``folder``, or without."""
    row = known()[name]
    inputs = list(random_inputs(row.checked, settings.sizes(row), 0))
    described = CpuBackend.described(row.text, row.entry, inputs, settings.threads)
    return described.holding(inputs, folder) if folder else described


def completed(made: CpuBackend) -> MappingOptions:
    """The default's options, with nothing left open."""
    program = merged(made.program())
    nests = made.built(DEFAULT, lambda plan, _: unsplit(program, plan))
    return replace(DEFAULT, merge=True, nests=tuple(nests.values()))


def changed(default: MappingOptions, changes: str) -> MappingOptions:
    """Options as JSON; or the default with ``NEST.FIELD=JSON`` changed, separated by semicolons."""
    if changes.startswith("{"):
        return MappingOptions.from_json(changes)
    data = json.loads(default.to_json())
    for change in changes.split(";"):
        place, _, value = change.partition("=")
        nest, _, field = place.strip().partition(".")
        data["nests"][int(nest)][field] = json.loads(value)
    return MappingOptions.from_json(json.dumps(data))


def in_tree(given: Namespace, what: str, *args: str) -> Any:
    """What this module's ``what`` says, run in the other checkout."""
    python = given.python or f"{given.other}/.venv/bin/python"
    with tempfile.NamedTemporaryFile() as out:
        flags = ["--threads", str(given.threads), "--scale", str(given.scale)]
        # The other checkout's packages, and this file, which it may lack.
        paths = {"PYTHONPATH": f"{given.other}"}
        subprocess.run(
            [python, str(Path(__file__)), what, *args, "--pickled", out.name, *flags],
            cwd=given.other, env={**os.environ, **paths}, check=True,
        )  # fmt: skip
        return pickle.loads(Path(out.name).read_bytes())


@contextmanager
def undisturbed(core: int, threads: int) -> Iterator[None]:
    """A block that runs on one core, or with several threads on as many from that one on, at a
    real-time priority where the system allows."""
    with open(f"/tmp/race-core-{core}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, range(core, core + threads))
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        try:
            yield
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            os.sched_setaffinity(0, cores)


def raced(
    name: str, codes: Sequence[bytes], settings: Settings, core: int, budget: float
) -> list[list[float]]:
    """Seconds of each kernel on each placement."""
    with tempfile.TemporaryDirectory() as folder:
        made = backend(name, settings, folder)
        evaluator = Evaluator(made.runner(), None, MeasureSettings())
        with undisturbed(core, settings.threads):
            placed = evaluator.race(codes, budget=budget)
    return [[median(times) for _, times in each] for each in placed]


def compare(
    name: str, codes: Sequence[bytes], labels: Sequence[str], given: Namespace
) -> list[float]:
    """Prints and returns the ratios of each kernel to the first, as means over the placements and
    over processes."""
    settings = Settings(given.threads, given.scale)
    sessions = []
    for _ in range(given.processes):
        # Where a process has its code and its stack matters, and what is forked has the parent's.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            ask = pool.submit(raced, name, codes, settings, given.core, given.budget)
            sessions.append(ask.result())
    ratios = [
        [
            geometric_mean([a / b for a, b in zip(times[k], times[0], strict=True)])
            for times in sessions
        ]
        for k in range(1, len(codes))
    ]
    best = 1e3 * min(geometric_mean(times[0]) for times in sessions)
    for label, found in zip(labels, ratios, strict=True):
        apart = f"{min(found):.3f} to {max(found):.3f}"
        print(f"{name:32} {best:9.4f} ms  {median(found):6.3f} ({apart})  {label}", flush=True)
    return [median(found) for found in ratios]


def differ(given: Namespace) -> dict[str, Any]:
    """Which rows have other code."""
    ours = hashes(Settings(given.threads, given.scale))
    theirs = in_tree(given, "hashes")
    differing = [name for name in ours if theirs.get(name) not in (ours[name], None)]
    print(f"{len(differing)} of {len(ours)} differ:", " ".join(differing))
    return {"differing": differing}


def trees(given: Namespace) -> dict[str, Any]:
    """Times of the other checkout's defaults over ours."""
    settings = Settings(given.threads, given.scale)
    found = {}
    names = chosen(given)
    theirs = in_tree(given, "codes", json.dumps(names))
    for name in names:
        try:
            ours = backend(name, settings).compile(DEFAULT)
        except TclError as error:
            print(f"{name:32} {error}")
            continue
        if isinstance(theirs[name], bytes):
            (found[name],) = compare(name, [ours, theirs[name]], [""], given)
    if found:
        print(f"geometric mean of {len(found)}: {geometric_mean(found.values()):.3f}")
    return found


def threads(given: Namespace) -> dict[str, Any]:
    """Times on one thread over those on all of them."""
    found, names = {}, chosen(given)
    one, several = (codes(names, Settings(n, given.scale)) for n in (1, given.threads))
    for name in names:
        alone, shared = one[name], several[name]
        if alone is not None and shared is not None:
            (found[name],) = compare(name, [shared, alone], ["one thread"], given)
    return found


def options(given: Namespace) -> dict[str, Any]:
    """Times of other options over the default's."""
    settings, found = Settings(given.threads, given.scale), {}
    for name in chosen(given):
        made = backend(name, settings)
        default = completed(made)
        print(name, default.to_json())
        codes = [made.compile(DEFAULT)]
        codes += [made.compile(changed(default, each)) for each in given.changes]
        found[name] = dict(
            zip(given.changes, compare(name, codes, given.changes, given), strict=True)
        )
    return found


def codes(names: Sequence[str], settings: Settings) -> dict[str, bytes | None]:
    """The kernels of rows' defaults; None for what is refused or not known here."""
    found: dict[str, bytes | None] = {}
    for name in names:
        with suppress(TclError, KeyError):
            found[name] = backend(name, settings).compile(DEFAULT)
    return {name: found.get(name) for name in names}


def main() -> None:
    """The command line."""
    parser = command("race", __doc__)
    parser.add_argument(
        "what", choices=["differ", "trees", "threads", "options", "hashes", "codes"]
    )
    parser.add_argument("changes", nargs="*", help="the other checkout, or options")
    parser.add_argument("--rows", help="patterns of names")
    parser.add_argument("--differing", type=Path, help="the rows that `differ` found")
    parser.add_argument("--python", help="of the other checkout")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--budget", type=float, default=0.6, help="seconds of a process")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--pickled", type=Path, help="write here what the other checkout found")
    given = parser.parse_intermixed_args()
    settings = Settings(given.threads, given.scale)
    if given.what in ("hashes", "codes"):
        wanted = json.loads(given.changes[0]) if given.what == "codes" else []
        found = codes(wanted, settings) if wanted else hashes(settings)
        given.pickled.write_bytes(pickle.dumps(found))
        return
    if given.what in ("differ", "trees"):
        (given.other,) = given.changes
    races = {"differ": differ, "trees": trees, "threads": threads, "options": options}
    write(given.out, races[given.what](given))


if __name__ == "__main__":
    main()
