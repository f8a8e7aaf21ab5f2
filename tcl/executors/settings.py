"""What ``define`` takes besides a text, checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tcl.arrays.user_input import check_flag
from tcl.codegen.options.options import MappingOptions
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError, OptionsError
from tcl.common.shown import kind_of
from tcl.selection.tune_modes import ModeLike

if TYPE_CHECKING:
    from tcl.tuner.run.result import TuningResult


class OptionsFactory(Protocol):
    """Makes options for inputs that are about to be run on."""

    def __call__(self, source: str, entry_point: str, /, *inputs: Any) -> MappingOptions | None: ...


OptionsLike: TypeAlias = (
    "MappingOptions | str | OptionsFactory | TuningResult[MappingOptions] | None"
)
"""Options, a preset's name, ``predict`` (``PREDICT``), a factory, what a search found, or None for
the best way that is known."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the defs of a text are to run; ``define`` says what each of these means.

    Raises ``ArgumentError`` for settings of which one leaves another without a meaning.
    """

    options: OptionsLike = None
    threads: int | None = None
    nearest: bool = False
    strict: bool = False
    relax: str | Iterable[str] | None = None
    tune_mode: ModeLike | None = None
    varying: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_flag("nearest", self.nearest)
        check_flag("strict", self.strict)
        given = self.options is not None
        if self.tune_mode is not None and (self.nearest or given):
            raise ArgumentError(
                "tune_mode says what is done where no options were given and none are known; leave "
                f"out tune_mode or {'nearest' if self.nearest else 'options'}"
            )
        if self.nearest and given:
            raise ArgumentError(
                "nearest=True is for the user's own tuning cache, and options were given; for "
                'a cache of yours: tcl.make_load_from_cache_options_factory("my.db", nearest=True)'
            )
        if self.relax is not None and given:
            raise ArgumentError(
                "relax= is for the user's own tuning cache, and options were given; for a cache "
                'of yours: tcl.make_load_from_cache_options_factory("my.db", relax=...)'
            )


PREDICT = "predict"
"""What is given for options to have them chosen by a model, as ``tune_mode="predict"`` does."""


def as_options(options: OptionsLike) -> MappingOptions | OptionsFactory | None:
    """What a caller gave for options; None where the best that are known, or what a model chooses,
    are to be used. ``OptionsError`` for what is none."""
    if isinstance(options, str):
        return None if options == PREDICT else MappingOptions(options)
    if options is None or isinstance(options, MappingOptions):
        return options
    if callable(options) and not isinstance(options, type):
        return options
    from tcl.tuner.run.result import TuningResult  # loaded already if there is one

    if isinstance(options, TuningResult):
        if options.options is None:
            raise OptionsError("that search found nothing that works; give other options")
        return as_options(options.options)
    raise OptionsError(
        f"options have to be MappingOptions, a preset's name or a factory, not {kind_of(options)}"
        + "; make them with tcl.MappingOptions.from_dict(...)" * isinstance(options, dict)
    )
