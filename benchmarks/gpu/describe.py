"""What a machine has: its device, and the packages that the command needs. In a process of its own
for the device, as a context of CUDA is never given back."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

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
    return {**found, **more, "system": platform.platform()}


def describe_host() -> dict[str, Any]:
    """What takes the device's place in a rehearsal."""
    return {
        "name": f"rehearsal on {platform.machine()}",
        "l2_bytes": 1 << 16,
        "bus": "",
        "highest_mhz": None,
        "system": platform.platform(),
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
