"""What stores cost on the machine at hand, where that was measured: no data sheet tells it, and
processors with the same instructions differ. ``tcl devices --measure`` measures and keeps it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from tcl.common.dataclass import dataclass
from tcl.common.files import write_whole
from tcl.common.folder import cache_folder

if TYPE_CHECKING:
    from tcl.codegen.devices.cpu_profile import CpuProfile

_FILE = "stores.json"
NEVER = 1 << 62
"""More bytes than any result has."""


@dataclass(frozen=True, slots=True)
class MeasuredStores:
    """How results are best written."""

    streamed_from: int
    """Bytes of results from which on stores past the caches were quicker; ``NEVER`` if none."""
    boundary_gain: float
    """How many times as fast short rows in the second cache were written whose vectors, as long as
    cache lines, begin on boundaries."""


def kept_stores(device: CpuProfile, folder: Path | None = None) -> MeasuredStores | None:
    """What was measured of this processor with these instructions; None if nothing was."""
    found = _read_file(folder or cache_folder()).get(_identity(device))
    try:
        stores = MeasuredStores(int(found["streamed_from"]), float(found["boundary_gain"]))  # type: ignore[index]
    except (TypeError, KeyError, ValueError, OverflowError):
        return None
    return stores if stores.streamed_from > 0 and 0.1 < stores.boundary_gain < 10 else None


def keep_stores(device: CpuProfile, stores: MeasuredStores, folder: Path | None = None) -> None:
    """Keep what was measured, where there is a place for it."""
    folder = folder or cache_folder()
    if folder is None:
        return
    found = {"streamed_from": stores.streamed_from, "boundary_gain": stores.boundary_gain}
    content = json.dumps({**_read_file(folder), _identity(device): found}, indent=1)
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / _FILE, content)


def _identity(device: CpuProfile) -> str:
    return f"{device.identity}; L2 {device.l2_bytes >> 10} KiB; L3 {device.l3_bytes >> 10} KiB"


def _read_file(folder: Path | None) -> dict[str, object]:
    """What is kept, by processor; nothing if the file is not there, or not ours."""
    if folder is None:
        return {}
    try:
        data = json.loads((folder / _FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
