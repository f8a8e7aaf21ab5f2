"""What is known of a machine that a C compiler makes code for: next to nothing."""

from __future__ import annotations

from typing import ClassVar, Literal

from tcl.codegen.devices.cpu_profile import CpuProfile
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CProfile(CpuProfile):
    """A CPU of which schedules suppose caches and vectors, and no instruction."""

    backend: ClassVar[Literal["c"]] = "c"
    kind: ClassVar[Literal["C"]] = "C"


PLAIN_C = CProfile("c", "", "generic", 128, 1, 32 << 10, 512 << 10, 8 << 20)
