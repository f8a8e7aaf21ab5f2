"""Options factories that look nothing up, with the original's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcl import tuning
from tcl.api import OptionsFactory
from tcl.codegen.options.options import MappingOptions
from tcl.common.closest import did_you_mean
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.selection.suggested_options import ThreadedFactory
from tcl.tuning import SETTINGS, check_no_device


def make_naive_options_factory() -> OptionsFactory:
    """A factory that always returns the naive options."""

    def generate(source: str, entry_point: str, /, *inputs: Any) -> MappingOptions:
        return MappingOptions("naive")

    return generate


def make_autotuned_options_factory(**settings: Any) -> OptionsFactory:
    """A factory that tunes in each call, with the settings of ``autotune``. By default, it tunes
    for the number of threads of the requested kernel. It tunes for the device of the inputs, so
    ``device`` is not accepted."""
    check_no_device(settings)
    for name in settings:
        if name not in SETTINGS:
            hint = did_you_mean(name, SETTINGS, f"there are: {', '.join(SETTINGS)}")
            raise ArgumentError(f"autotune has no setting '{name}'; {hint}")
    return _Autotuned(settings)


@dataclass(frozen=True, slots=True, eq=False)
class _Autotuned(ThreadedFactory):
    settings: Mapping[str, Any]

    def for_threads(self, threads: int) -> _Autotuned:
        if self.settings.get("threads") is not None:
            return self
        return _Autotuned({**self.settings, "threads": threads})

    def __call__(self, source: str, entry_point: str, /, *inputs: Any) -> MappingOptions | None:
        return tuning.autotune(source, entry_point, *inputs, **self.settings)
