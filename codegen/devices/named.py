"""Devices by name: processors that need not be here, and this machine's GPUs."""

from __future__ import annotations

import shlex

from tcl.codegen.devices import gpu, known_cpus
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.devices.gpu import GpuProfile
from tcl.common.closest import closest
from tcl.common.errors import ArgumentError


def device_named(name: str) -> CpuProfile | GpuProfile:
    """The CPU here (``cpu``), one that is known (``zen 3``, ``graviton3``), or a GPU as
    ``gpu.find`` finds it. Raises ``ArgumentError``."""
    found = host_cpu() if name == "cpu" else known_cpus.find(name) or gpu.find(name)
    if found is not None:
        return found
    titles = {p.name: p.title for p in known_cpus.PROFILES}
    for title in (*titles.values(), *(p.name for p in gpu.PROFILES)):
        titles[title.lower()] = title
    near = closest(name.lower(), titles)
    hint = f"did you mean {titles[near]}? " if near else ""
    raise ArgumentError(
        f"there is no device profile {shlex.quote(name)}; {hint}known are cpu and cuda:0 of "
        "this machine, the architectures of GPUs, such as sm_90, and the CPUs and GPUs that "
        "tcl devices lists"
    )
