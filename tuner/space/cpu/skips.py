"""Whether a reduction leaves out the points at which its condition does not hold, as a knob."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcl.codegen.loopir import ir
from tcl.codegen.passes.cpu.skip import why_not_skipped
from tcl.tuner.space.knobs import Knob, Value


@dataclass(frozen=True, slots=True)
class SkipKnobs:
    """One knob for a nest that could leave out points; else none."""

    knobs: tuple[Knob, ...]

    @staticmethod
    def of(nest: ir.Nest) -> SkipKnobs:
        """The knob of an untiled nest, off by default."""
        if why_not_skipped(nest, set()) is not None:
            return SkipKnobs(())
        return SkipKnobs((Knob(f"{nest.name}.skip", (0, 1), 0, ordered=False),))

    def chosen(self, values: Mapping[str, Value]) -> bool:
        """The option."""
        return any(values[k.name] == 1 for k in self.knobs)

    def values(self, skip: bool) -> dict[str, Value] | None:
        """Knob values for the option; None if the knob cannot say it."""
        if skip and not self.knobs:
            return None
        return {k.name: int(skip) for k in self.knobs}
