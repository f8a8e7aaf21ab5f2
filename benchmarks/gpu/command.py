"""The GPU benchmark: correctness first, then times beside torch, torch.compile, CuPy and Triton.

    python -m benchmarks.gpu --out FOLDER             # everything
    python -m benchmarks.gpu --out FOLDER --quick     # under 8 minutes
    python -m benchmarks.gpu --out FOLDER --rows 'matmul*,softmax'
    python -m benchmarks.gpu --out FOLDER --rehearse  # on the CPU, on tiny sizes

``benchmarks/README.md`` says how it measures and how to run it on a bare machine.
"""

# Nothing that has to be installed is imported before it is known to be there.

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

_PATIENCE = 120.0
NEEDED = ("numpy", "numba", "llvmlite")
_CARRY = (
    "download the wheel where there is a network (python -m pip download --no-deps -d wheels "
    "{name}), install it on this machine (python -m pip install --no-index --no-deps --target "
    "site wheels/*.whl), and run again with PYTHONPATH=site"
)


def missing(names: tuple[str, ...]) -> str | None:
    """A sentence about packages that are not there, and how to bring them; None if all are."""
    absent = [name for name in names if importlib.util.find_spec(name) is None]
    if not absent:
        return None
    listed = ", ".join(absent)
    return f"{listed} {'is' if len(absent) == 1 else 'are'} not installed: " + _CARRY.format(
        name=" ".join("cupy-cuda13x" if name == "cupy" else name for name in absent)
    )


def select_device(number: int, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Environment variables with which processes see one device alone, as their first."""
    seen = [d.strip() for d in environment.get("CUDA_VISIBLE_DEVICES", "").split(",") if d.strip()]
    chosen = seen[number] if number < len(seen) else str(number)
    if seen and number >= len(seen):
        raise ValueError(f"CUDA_VISIBLE_DEVICES names {len(seen)} devices; there is no {number}")
    return {"CUDA_VISIBLE_DEVICES": chosen, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


_PROBE = """
import json, cupy
device = cupy.cuda.Device(0)
properties = cupy.cuda.runtime.getDeviceProperties(0)
name = properties["name"]
print(json.dumps({
    "name": name.decode() if isinstance(name, bytes) else str(name),
    "capability": str(device.compute_capability),
    "multiprocessors": int(properties["multiProcessorCount"]),
    "memory_bytes": int(properties["totalGlobalMem"]),
    "l2_bytes": int(properties["l2CacheSize"]),
    "bus": device.pci_bus_id,
}))
"""
_MORE = """
import json, sys, pynvml
pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByPciBusId(sys.argv[1])
driver = pynvml.nvmlSystemGetDriverVersion()
print(json.dumps({
    "driver": driver.decode() if isinstance(driver, bytes) else driver,
    "highest_mhz": int(pynvml.nvmlDeviceGetMaxClockInfo(device, pynvml.NVML_CLOCK_SM)),
}))
"""


def describe_gpu(environment: Mapping[str, str]) -> dict[str, Any]:
    """The device that processes with this environment see; ``RuntimeError`` if there is none."""
    found = _ask(environment, _PROBE)
    try:
        more = _ask(environment, _MORE, found["bus"])
    except RuntimeError:  # its library is not there; only the clock rate is lost
        more = {"driver": "", "highest_mhz": None}
    return {**found, **more, "system": f"{platform.system()} {platform.machine()}"}


def describe_host() -> dict[str, Any]:
    """What takes the device's place in a rehearsal."""
    return {
        "name": f"rehearsal on {platform.machine()}",
        "profile": "H200",  # of which predictions are
        "l2_bytes": 1 << 16,
        "bus": "",
        "highest_mhz": None,
        "system": f"{platform.system()} {platform.machine()}",
    }


def _ask(environment: Mapping[str, str], code: str, *arguments: str) -> dict[str, Any]:
    paths = os.pathsep.join(p for p in sys.path if p)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, **environment, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"it did not answer in {_PATIENCE:.0f} s") from None
    if done.returncode:
        words = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(words[-1][:300])
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


if TYPE_CHECKING:
    from benchmarks.gpu.report import GpuReport
    from tcl.bench.contender import Spec

_QUICK = 450.0
"""Seconds of a quick run; the rest of the 8 minutes is for what comes before and after."""
_FILE = "gpu.json"


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, help=f"a folder for {_FILE}")
    parser.add_argument(
        "--quick", action="store_true", help="fewer forms; leave out the largest rows"
    )
    parser.add_argument("--rows", metavar="PATTERN", help="name, def or kind; comma-separated")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="number of the GPU")
    parser.add_argument(
        "--budget", type=float, metavar="SECONDS", help="time limit of the whole run"
    )
    parser.add_argument(
        "--tune", type=float, default=0.0, metavar="SECONDS", help="time of a search for each row"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the random inputs")
    parser.add_argument(
        "--peers", help="comma-separated, may be empty; default: all that are installed"
    )
    parser.add_argument("--rehearse", action="store_true", help="run on the CPU with tiny sizes")
    return parser


def main(words: list[str] | None = None) -> None:
    """Run the command; exits with 1 if ours are wrong or missing, with 2 if nothing can be run."""
    given = arguments().parse_args(words)
    if given.tune < 0 or (given.budget is not None and given.budget <= 0):
        _refuse("seconds have to be positive")
    problem = missing(NEEDED if given.rehearse else (*NEEDED, "cupy"))
    if problem is not None:
        _refuse(problem)
    with tempfile.TemporaryDirectory(prefix="tcl-gpu-cache-") as folder:
        # Grammar tables, kernels and tuned options of this run alone; nobody has to say where
        # caches are.
        os.environ["TCL_CACHE_DIR"] = os.environ.get("TCL_CACHE_DIR") or folder
        _measure(given)


def _measure(given: argparse.Namespace) -> None:
    from benchmarks.gpu.report import lines
    from benchmarks.gpu.rows import gpu_rows, rehearsed
    from benchmarks.gpu.run import OWN, PEERS, Settings, run
    from tcl.bench.task import OURS
    from tcl.common.errors import ArgumentError

    kind = "cpu" if given.rehearse else "cuda"
    try:
        rows = gpu_rows(given.rows, given.quick)
    except ArgumentError as error:
        _refuse(str(error))
    peers = _peers(given.peers, PEERS)
    if given.rehearse:
        device, rows = describe_host(), [rehearsed(row) for row in rows]
    else:
        try:
            environment = select_device(given.device)
            device = describe_gpu(environment)
        except (ValueError, RuntimeError) as error:
            _refuse(f"device {given.device} cannot be used: {error}")
        os.environ.update(environment)
    budget = given.budget or (_QUICK if given.quick else None)
    settings = Settings(kind, given.quick, budget, given.tune, given.seed)
    given.out.mkdir(parents=True, exist_ok=True)

    def write(report: GpuReport) -> None:
        partial = given.out / f".{_FILE}"
        partial.write_text(report.text(), "utf-8")
        partial.replace(given.out / _FILE)

    cache, specs = Path(os.environ["TCL_CACHE_DIR"]) / "tuning.db", (*OWN, *peers)
    report = run(rows, settings, device, _say, specs=specs, cache=cache, finished=write)
    print("\n".join(lines(report)))
    print(f"written: {given.out / _FILE}")
    if any(r.entries[n].error for r in report.results for n in OURS if n in r.entries) or not any(
        r.ours for r in report.results
    ):
        _fail("some results of tcl are missing or wrong, see above", 1)


def _peers(text: str | None, specs: tuple[Spec, ...]) -> tuple[Spec, ...]:
    """Those that are named, or all."""
    if text is None:
        return specs
    wanted = {name for part in text.split(",") if (name := part.strip().lower())}
    unknown = wanted - {spec.name.lower() for spec in specs}
    if unknown:
        names = ", ".join(spec.name for spec in specs)
        _refuse(f"there is no peer {', '.join(sorted(unknown))}; there are: {names}")
    return tuple(spec for spec in specs if spec.name.lower() in wanted)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _refuse(text: str) -> NoReturn:
    _fail(text, 2)


def _fail(text: str, code: int) -> NoReturn:
    print(f"error: {text}", file=sys.stderr)
    sys.exit(code)
