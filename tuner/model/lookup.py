"""Which model is asked: the device's own, else its architecture's, else one for any device."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from tcl.codegen.devices.cpu import CpuProfile
from tcl.tuner.errors import ModelError
from tcl.tuner.model.file import read
from tcl.tuner.model.model import Model

SCOPES = ("device", "architecture", "generic")
SHIPPED = Path(__file__).parent / "shipped"
"""Models that come with tcl."""


def file_name(scope: str, device: CpuProfile) -> str:
    """Of a model for this device, for all with its architecture and vectors, or for any CPU."""
    if scope == "device":
        about = f"{device.title or device.name}; {device.vector_bits}; {device.cores}"
        return f"cpu-{hashlib.sha256(about.encode()).hexdigest()[:10]}.json"
    if scope == "architecture":
        return f"cpu-{device.architecture}-{device.vector_bits}.json"
    return "cpu.json"


def files(device: CpuProfile, folder: Path | None) -> Iterator[Path]:
    """The models that there are for a device, best first; ``folder`` are the user's own."""
    for scope in SCOPES:
        for place in (folder, SHIPPED):
            if place is not None and (path := place / file_name(scope, device)).exists():
                yield path


def lookup(device: CpuProfile, folder: Path | None) -> tuple[Model, Path, list[str]] | None:
    """The first model that can be read, where it lies, and why those before it cannot be; None if
    there is none and nothing is wrong. Raises ``ModelError`` if none of several can be read."""
    wrong: list[str] = []
    for path in files(device, folder):
        try:
            return read(path), path, wrong
        except ModelError as error:
            wrong.append(str(error))
    if wrong:
        raise ModelError("; ".join(wrong))
    return None
