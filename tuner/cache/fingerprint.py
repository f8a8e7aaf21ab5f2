"""What a device is called in keys, field by field, and which fields a look-up may pass over.

Measured times belong to the device that they were measured on, so that keys hold its name, and
results are used where all of it is the same. A fleet of machines that differ in little, such as
the clock or the number of cores, may share results none the less where a user says so: what is
chosen may then be slower than what a search here would find, and is never wrong, as options are
applied to the machine at hand, and checked, like any others.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tcl.common.closest import closest
from tcl.common.errors import UnknownNameError
from tcl.common.shown import kind_of, shown

if TYPE_CHECKING:
    from tcl.codegen.devices.cpu import CpuProfile
    from tcl.codegen.devices.gpu import GpuProfile

VARIABLE = "TCL_RELAX"
"""The environment variable that says for the whole process which fields look-ups pass over."""

FIELDS: Mapping[str, str] = {
    "model": "the name of the processor or GPU, without its clock",
    "architecture": "of a GPU, such as sm_90",
    "vectors": "bits of the longest vectors that kernels use",
    "matrix-unit": "whether there is a matrix unit that kernels may use",
    "narrowing": "the features that TCL_CPU_FEATURES turns off",
    "multiprocessors": "of a GPU",
    "cores": "of the whole machine",
    "l2": "the size of the second-level cache",
    "clock": "the clock in the name of the processor, if it is there",
    "threads": "that a kernel may use",
}
"""Name and meaning of each field. What is named first sets devices further apart."""

NONE = "none"
"""The value of a field that a device has not."""

_CPU = re.compile(
    r"(?P<model>.*?)(\s*@ (?P<clock>\d+(\.\d+)?\s?[MG]Hz))?(, narrowed to (?P<narrowing>.*?))?; "
    r"(?P<vectors>\d+-bit) vectors; (?P<cores>\d+) cores; "
    r"L2 (?P<l2>\d+ KiB)(?P<matrix>; matrix unit)?",
    re.DOTALL,
)
_GPU = re.compile(
    r"(?P<model>.*); (?P<architecture>sm_\w+); (?P<multiprocessors>\d+) multiprocessors"
    r"(?P<emulated>, emulated)?",
    re.DOTALL,
)
_THREADS = re.compile(r"^(.*); (\d+) threads$", re.DOTALL)


def device_identity(device: CpuProfile | GpuProfile) -> str:
    """What measured times depend on. Of a CPU: model and how it was narrowed, vector width, cores,
    caches, whether there is a matrix unit that may be used, and threads if there are several; of a
    GPU: model, architecture, multiprocessors. ``fields`` reads it."""
    if device.backend == "cpu":
        matrix = "; matrix unit" if device.has("amx-tile") else ""
        return with_threads(
            f"{device.title}; {device.vector_bits}-bit vectors; {device.cores} cores; "
            f"L2 {device.l2_bytes >> 10} KiB{matrix}",
            device.threads,
        )
    return f"{device.name}; {device.architecture}; {device.multiprocessors} multiprocessors"


def with_threads(device: str, threads: int) -> str:
    """A device that kernels use with so many threads."""
    return device if threads == 1 else f"{device}; {threads} threads"


def split_threads(device: str) -> tuple[str, int]:
    """The inverse of ``with_threads``."""
    found = _THREADS.match(device)
    return (found[1], int(found[2])) if found else (device, 1)


def fields(device: str) -> dict[str, str]:
    """The value of each field of a device, by the identity that keys hold. One that we did not
    write, as another version may have, is a model and nothing else."""
    name, threads = split_threads(device)
    found = {**dict.fromkeys(FIELDS, NONE), "model": name, "threads": str(threads)}
    if match := _CPU.fullmatch(name) or _GPU.fullmatch(name):
        parts = match.groupdict("")
        found["model"] = parts.pop("model") + parts.pop("emulated", "")
        if parts.pop("matrix", ""):
            found["matrix-unit"] = "yes"
        found |= {field: value for field, value in parts.items() if value}
    return found


def known_gpu(device: str) -> GpuProfile | None:
    """The profile of the data sheet of a GPU, by its identity; None for others."""
    from tcl.codegen.devices.gpu import known

    gpu = _GPU.fullmatch(device)
    if gpu is None or gpu["emulated"]:
        return None
    return known(gpu["model"], gpu["architecture"], int(gpu["multiprocessors"]))


def differing(device: str, other: str) -> tuple[str, ...]:
    """The fields in which two devices differ, in the order of ``FIELDS``."""
    here, there = fields(device), fields(other)
    return tuple(name for name in FIELDS if here[name] != there[name])


def remoteness(device: str, other: str) -> tuple[int, tuple[bool, ...], float]:
    """How far two devices are apart, in an order that sorts: by how many fields differ, then by
    which, then by how many times a number is twice the other."""
    here, there = fields(device), fields(other)
    apart = tuple(here[name] != there[name] for name in FIELDS)
    doublings = sum(_doublings(here[name], there[name]) for name in FIELDS)
    return sum(apart), apart, doublings


def _doublings(here: str, there: str) -> float:
    """Between two values that begin with a number; 0 between others."""
    numbers = [re.match(r"\d+(\.\d+)?", value) for value in (here, there)]
    if numbers[0] is None or numbers[1] is None:
        return 0.0
    one, other = float(numbers[0][0]), float(numbers[1][0])
    return abs(math.log2(max(one, 1e-9) / max(other, 1e-9)))


def relaxed_fields(given: str | Iterable[str] | None, where: str = "relax=") -> frozenset[str]:
    """The fields that look-ups may pass over: those that are given, by commas or as names, else
    those that ``TCL_RELAX`` names. ``where``: what they are given to, for messages.

    Raises ``UnknownNameError``, a ``ValueError``, for a name that no field has.
    """
    if given is None:
        where, given = VARIABLE, os.environ.get(VARIABLE, "")
    if isinstance(given, str):
        names = [name.strip() for name in given.split(",")] if given.strip() else []
    elif isinstance(given, Iterable) and not isinstance(given, bytes | Mapping):
        names = list(given)
    else:
        raise UnknownNameError(
            f"{where} takes names of fields, as in ('clock', 'cores'), not {kind_of(given)}"
        )
    for name in names:
        if not isinstance(name, str) or name not in FIELDS:
            near = closest(name, FIELDS) if isinstance(name, str) else None
            hint = f"did you mean {near}? " if near else ""
            raise UnknownNameError(
                f"{where}: a device has no field {shown(name)}; {hint}"
                f"there are: {', '.join(FIELDS)}"
            )
    return frozenset(names)
