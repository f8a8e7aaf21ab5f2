"""Which options a kind of device has nothing for."""

from __future__ import annotations

from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import OPTIONS, Device, NestOptions
from tcl.codegen.passes.base import refuse
from tcl.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Has:
    """Refuses what a preset has chosen and this kind of device has nothing for."""

    nest: str
    options: NestOptions
    device: Device

    def __call__(self, program: ir.Program) -> ir.Program:
        for key, option in OPTIONS.items():
            if self.device in option.refused and option.kind.asks(getattr(self.options, key)):
                refuse(key, self.nest, option.refused[self.device])
        return program
