"""``MappingOptions`` and ``TunerConfig`` as the original has them: every setter changes the object
and returns it, so that both ``o.tile([8, 8])`` as a statement and chains of setters work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import tcl
from tcl.codegen.options.kinds import integer
from tcl.common.errors import NoNestError, OptionsError
from tcl.common.shown import kind_of, shown
from tcl.tensor_comprehensions.switches import note_once, text, true_or_false
from tcl.tuner.config import SettingError
from tcl.tuner.run.result import TuningResult

_T = TypeVar("_T")

_FUSION = {"Max": True, "Min": False, "Preserve3Coincident": None}
"""What a fusion strategy says about sharing chunks with the nest before; None: the preset's."""

_GPU_OWN = "the options stage and register decide how a kernel uses GPU memory"
_MAPPING = "the options chunk and threads decide blocks and threads"


def _strategy(name: str, value: object) -> str:
    if text(name, value) not in _FUSION:
        raise OptionsError(f"{name} has to be one of {', '.join(_FUSION)}, not {shown(value)}")
    return str(value)


def _count(name: str, value: object) -> int:
    count = integer(value)
    if count is None or count < 0:
        raise OptionsError(f"{name} has to be a whole number from 0, not {shown(value)}")
    return count


def _grid(name: str, sizes: object) -> None:
    if not isinstance(sizes, list | tuple) or not 1 <= len(sizes) <= 3:
        raise OptionsError(f"{name} has to be a list of one to three sizes, not {shown(sizes)}")
    for size in sizes:
        _count(f"each size of {name}", size)


def _noted(
    name: str, check: Callable[[str, Any], object], why: str
) -> Callable[[Any, Any], MappingOptions]:
    """A setter that checks its value, and is noted once in a process."""

    def setter(self: MappingOptions, value: Any) -> MappingOptions:
        check(name, value)
        note_once(f"MappingOptions.{name}", why)
        return self

    setter.__name__, setter.__doc__ = name, "Checked, and ignored with a note."
    return setter


class MappingOptions:
    """Options with the names of the original.

    ``options`` is the resulting ``tcl.MappingOptions``. The name is a preset; the original has only
    ``naive``. Setters without a meaning here check their values, and a note says so once per
    process. Raises ``OptionsError``.
    """

    def __init__(self, name: str | tcl.MappingOptions = "naive") -> None:
        self.options = name if isinstance(name, tcl.MappingOptions) else tcl.MappingOptions(name)

    def __str__(self) -> str:
        return str(self.options)

    def __repr__(self) -> str:
        return f"<MappingOptions {self}>"

    def serialize(self) -> bytes:
        """The options as bytes: JSON, which ``tcl.MappingOptions.from_json`` reads."""
        return self.options.to_json().encode()

    def tile(self, *sizes: int | Sequence[int]) -> MappingOptions:
        """Points of each dimension in a tile, outermost first: ``tile([8, 32])``; 0: untiled."""
        self.options = self.options.tile(*sizes)
        return self

    def scheduleFusionStrategy(self, strategy: str) -> MappingOptions:
        """Sets ``outerScheduleFusionStrategy`` and ``intraTileScheduleFusionStrategy``."""
        _strategy("scheduleFusionStrategy", strategy)
        self.outerScheduleFusionStrategy(strategy)
        return self.intraTileScheduleFusionStrategy(strategy)

    def outerScheduleFusionStrategy(self, strategy: str) -> MappingOptions:
        """``Max``: statements share their outer loops where they can; ``Min``: none do;
        ``Preserve3Coincident``: as the preset has it."""
        fuse = _FUSION[_strategy("outerScheduleFusionStrategy", strategy)]
        default = replace(self.options.default, fuse=fuse)
        self.options = replace(self.options, default=default)
        return self

    intraTileScheduleFusionStrategy = _noted(
        "intraTileScheduleFusionStrategy",
        _strategy,
        "statements that share their outer loops run one after the other",
    )
    mapToBlocks = _noted("mapToBlocks", _grid, _MAPPING)
    mapToThreads = _noted("mapToThreads", _grid, _MAPPING)
    unroll = _noted("unroll", _count, "the option register decides what is unrolled")
    maxSharedMemory = _noted("maxSharedMemory", _count, _GPU_OWN)
    useSharedMemory = _noted("useSharedMemory", true_or_false, _GPU_OWN)
    usePrivateMemory = _noted("usePrivateMemory", true_or_false, _GPU_OWN)
    unrollCopyShared = _noted("unrollCopyShared", true_or_false, _GPU_OWN)
    useReadOnlyCache = _noted(
        "useReadOnlyCache", true_or_false, "the compiler finds the tensors that are only read"
    )
    fixParametersBeforeScheduling = _noted(
        "fixParametersBeforeScheduling",
        true_or_false,
        "kernels are always compiled for their sizes",
    )
    matchLibraryCalls = _noted("matchLibraryCalls", true_or_false, "kernels call no libraries")


OptionsLike: TypeAlias = "MappingOptions | tcl.MappingOptions | TuningResult[Any] | str"
"""What can be given where the original wants its options."""


def own_options(options: OptionsLike) -> tcl.MappingOptions:
    """What options come to. Raises ``OptionsError`` for what are none."""
    if isinstance(options, MappingOptions):
        return options.options
    if isinstance(options, TuningResult) and options.options is not None:
        options = options.options
    if isinstance(options, tcl.MappingOptions):
        return options
    if isinstance(options, str):
        return tcl.MappingOptions(options)
    raise OptionsError(f"options have to be MappingOptions or 'naive', not {kind_of(options)}")


_SETTERS_OF = {"fuse": "outerScheduleFusionStrategy", "tile": "tile"}
"""By option: the setter above that asks for it."""


def where_possible(options: OptionsLike, make: Callable[[tcl.MappingOptions], _T]) -> _T:
    """What is made of options. As in the original, what its setters ask for is done where it can
    be: what no statement can have is noted once in a process, and left off. Raises ``OptionsError``
    for what are no options, and what ``make`` raises."""
    chosen = own_options(options)
    while True:
        try:
            return make(chosen)
        except NoNestError as error:
            if not isinstance(options, MappingOptions) or error.option not in _SETTERS_OF:
                raise
            note_once(f"MappingOptions.{_SETTERS_OF[error.option]}", str(error))
            chosen = replace(chosen, default=replace(chosen.default, **{error.option: None}))


def _setting(name: str, own: str, about: str) -> Callable[[Any, Any], TunerConfig]:
    """A setter of what ``tcl.TunerConfig`` calls ``own``."""

    def setter(self: TunerConfig, value: Any) -> TunerConfig:
        try:
            tcl.TunerConfig(**{own: value})
        except SettingError as error:
            raise OptionsError(error.named(name)) from None
        self._values[own] = value
        return self

    setter.__name__, setter.__doc__ = name, about
    return setter


class TunerConfig:
    """Settings of a search in the original's terms, as setters or as keywords:
    ``TunerConfig().generations(3).threads(4)``, ``TunerConfig(generations=3, threads=4)``.

    Settings that are not given have the defaults of ``tcl.TunerConfig``. Raises ``OptionsError``.
    """

    def __init__(self, **settings: Any) -> None:
        self._values: dict[str, int] = {}
        self.level: int | None = None
        """From which level on what is logged goes to standard error during the search; None: as
        before it."""
        for name, value in settings.items():
            if name not in _SETTERS:
                raise OptionsError(f"there is no setting {name!r}; there are {', '.join(_SETTERS)}")
            getattr(self, name)(value)

    def __repr__(self) -> str:
        return f"TunerConfig({', '.join(f'{n}={v}' for n, v in self._values.items())})"

    @property
    def config(self) -> tcl.TunerConfig:
        """The settings of ``tcl.autotune``. Elites are at most half of the population there."""
        values: dict[str, Any] = dict(self._values)
        made = tcl.TunerConfig(**values)
        half = made.settings.population // 2
        if values.get("elites", 0) > half:
            made = made.elites(half)
        return made

    generations = _setting("generations", "generations", "Maximum number of generations.")
    pop_size = _setting("pop_size", "population", "Number of candidates in the first generation.")
    crossover_rate = _setting(
        "crossover_rate", "crossover_rate", "Share of the children that mix parents, in percent."
    )
    mutation_rate = _setting(
        "mutation_rate", "mutation_rate", "Share of a child's choices that mutate, in percent."
    )
    number_elites = _setting(
        "number_elites",
        "elites",
        "Number of best candidates that stay; at most half of the population.",
    )
    threads = _setting("threads", "threads", "Number of processes that compile.")

    def devices(self, devices: str) -> TunerConfig:
        """Numbers of GPUs, as in ``"0,1"``. The value is checked, and ignored with a note."""
        if not all(part.strip().isdigit() for part in text("devices", devices).split(",")):
            raise OptionsError(f"devices are numbers, as in '0,1', not {shown(devices)}")
        note_once("TunerConfig.devices", "a search uses the device of its inputs")
        return self

    def tuner_min_launch_total_threads(self, count: int) -> TunerConfig:
        """Checked, and ignored with a note."""
        _count("tuner_min_launch_total_threads", count)
        why = "the search space has no launches with too few threads"
        note_once("TunerConfig.tuner_min_launch_total_threads", why)
        return self

    def logtostderr(self, value: bool) -> TunerConfig:
        """Write log messages of the search to standard error."""
        self.level = logging.INFO if true_or_false("logtostderr", value) else None
        return self

    def stderrthreshold(self, level: int) -> TunerConfig:
        """The lowest level that ``logtostderr`` writes: 0 info, 1 warnings, 2 errors, 3 none."""
        if _count("stderrthreshold", level) > 3:
            raise OptionsError(f"stderrthreshold has to be from 0 to 3, not {shown(level)}")
        self.level = (logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)[level]
        return self


_SETTERS = tuple(
    name
    for name, member in vars(TunerConfig).items()
    if callable(member) and not name.startswith("_")
)
