"""Which model is asked: the device's own, else its architecture's, else one for any device, else
the one that comes with tcl."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tcl.common.errors import ModelError
from tcl.common.files import open_plain
from tcl.common.interrupts import of_system

if TYPE_CHECKING:
    from tcl.codegen.devices.cpu import CpuProfile
    from tcl.codegen.devices.gpu import GpuProfile
    from tcl.tuner.model.model import Model

SCOPES = ("device", "architecture", "generic")
SHIPPED = Path(__file__).parent / "shipped"
"""Models that come with tcl."""


def file_name(scope: str, device: CpuProfile | GpuProfile) -> str:
    """Of a model for this device, for all with its architecture, of CPUs with its vectors too, or
    for any CPU, or GPU."""
    if scope == "generic":
        return f"{device.backend}.json"
    if scope == "architecture":
        return f"{device.backend}-{device.family}.json"
    digits = hashlib.sha256(device.identity.encode()).hexdigest()[:10]
    return f"{device.backend}-{digits}.json"


def files(device: CpuProfile | GpuProfile, folder: Path | None) -> Iterator[Path]:
    """The models that there are for a device, best first; ``folder`` are the user's own."""
    for scope in SCOPES:
        for place in (folder, SHIPPED):
            if place is not None and (path := place / file_name(scope, device)).exists():
                yield path


def contents_identity(paths: Sequence[Path]) -> str:
    """What stands for the contents of these files: other models, or other files in their places,
    have another one."""
    return hashlib.sha256(" ".join(map(_digest, paths)).encode()).hexdigest()[:16]


def lookup(
    device: CpuProfile | GpuProfile, folder: Path | None
) -> tuple[Model, Path, list[str]] | None:
    """The first model that can be read, where it lies, and why those before it cannot be; None if
    there is none and nothing is wrong. Raises ``ModelError`` if none of several can be read."""
    wrong: list[str] = []
    for path in files(device, folder):
        try:
            return _read_model(path, _digest(path), device.backend), path, wrong
        except ModelError as error:
            wrong.append(str(error))
    if wrong:
        raise ModelError("; ".join(wrong))
    return None


def _digest(path: Path) -> str:
    try:
        about = path.stat()
        return _digest_of(path, about.st_mtime_ns, about.st_size, about.st_ino)
    except OSError as error:  # it cannot be read, or is gone since
        if not of_system(error):
            raise
        return f"errno {error.errno}"


@lru_cache(maxsize=64)
def _digest_of(path: Path, *_: int) -> str:
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=8)
def _read_model(path: Path, digest: str, backend: str) -> Model:
    """Once for each contents."""
    # Only here: most first calls learn that there is no model.
    from tcl.tuner.model.file import read

    return read(path, backend)
