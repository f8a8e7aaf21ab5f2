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
from tcl.tensor_comprehensions.switches import note_once, on, text
from tcl.tuner.config import SettingError
from tcl.tuner.run.result import TuningResult

_T = TypeVar("_T")

_FUSION = {"Max": True, "Min": False, "Preserve3Coincident": None}
"""What a fusion strategy says about sharing chunks with the nest before; None: the preset's."""

_GPU_OWN = "how a kernel uses a GPU's memory follows from the options stage and register"
_MAPPING = "blocks and threads follow from the options chunk and threads"


class MappingOptions:
    """Options in the original's terms.

    ``options`` is what they come to: ``tcl.MappingOptions``. The name is a preset's; the original
    has ``naive`` alone. Setters that have no meaning here check their values and are noted once in
    a process. Raises ``OptionsError``.
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
        """Both of the following."""
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

    def intraTileScheduleFusionStrategy(self, strategy: str) -> MappingOptions:
        """Checked and noted."""
        name = "intraTileScheduleFusionStrategy"
        _strategy(name, strategy)
        return self._noted(name, "statements that share their outer loops run one after the other")

    def mapToBlocks(self, sizes: Sequence[int]) -> MappingOptions:
        """Checked and noted."""
        _grid("mapToBlocks", sizes)
        return self._noted("mapToBlocks", _MAPPING)

    def mapToThreads(self, sizes: Sequence[int]) -> MappingOptions:
        """Checked and noted."""
        _grid("mapToThreads", sizes)
        return self._noted("mapToThreads", _MAPPING)

    def unroll(self, factor: int) -> MappingOptions:
        """Checked and noted."""
        _count("unroll", factor)
        return self._noted("unroll", "what is written out follows from the option register")

    def maxSharedMemory(self, size: int) -> MappingOptions:
        """Checked and noted."""
        _count("maxSharedMemory", size)
        return self._noted("maxSharedMemory", _GPU_OWN)

    def useSharedMemory(self, use: bool) -> MappingOptions:
        """Checked and noted."""
        return self._flag("useSharedMemory", use, _GPU_OWN)

    def usePrivateMemory(self, use: bool) -> MappingOptions:
        """Checked and noted."""
        return self._flag("usePrivateMemory", use, _GPU_OWN)

    def unrollCopyShared(self, unroll: bool) -> MappingOptions:
        """Checked and noted."""
        return self._flag("unrollCopyShared", unroll, _GPU_OWN)

    def useReadOnlyCache(self, use: bool) -> MappingOptions:
        """Checked and noted."""
        return self._flag("useReadOnlyCache", use, "the compiler sees which tensors are read alone")

    def fixParametersBeforeScheduling(self, fix: bool) -> MappingOptions:
        """Checked and noted."""
        why = "kernels are always made for their sizes"
        return self._flag("fixParametersBeforeScheduling", fix, why)

    def matchLibraryCalls(self, match: bool) -> MappingOptions:
        """Checked and noted."""
        return self._flag("matchLibraryCalls", match, "kernels call no libraries")

    def _flag(self, name: str, value: object, why: str) -> MappingOptions:
        on(name, value)
        return self._noted(name, why)

    def _noted(self, name: str, why: str) -> MappingOptions:
        note_once(f"MappingOptions.{name}", why)
        return self


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


class TunerConfig:
    """Settings of a search in the original's terms, as setters or as keywords:
    ``TunerConfig().generations(3).threads(4)``, ``TunerConfig(generations=3, threads=4)``.

    Those left alone are ``tcl.TunerConfig``'s. Raises ``OptionsError``.
    """

    def __init__(self, **settings: Any) -> None:
        self._values: dict[str, int] = {}
        self._level: int | None = None
        for name, value in settings.items():
            if name not in _SETTERS:
                raise OptionsError(f"there is no setting {name!r}; there are {', '.join(_SETTERS)}")
            getattr(self, name)(value)

    def __repr__(self) -> str:
        return f"TunerConfig({', '.join(f'{n}={v}' for n, v in self._values.items())})"

    @property
    def config(self) -> tcl.TunerConfig:
        """The settings of ``tcl.autotune``. Elites are at most half of the population there."""
        values = dict(self._values)
        made = tcl.TunerConfig(**values)
        half = made.settings.population // 2
        if values.get("elites", 0) > half:
            made = made.elites(half)
        return made

    @property
    def level(self) -> int | None:
        """From which level on what is logged goes to standard error during the search; None: as
        before it."""
        return self._level

    def generations(self, count: int) -> TunerConfig:
        """Generations to search for, at most."""
        return self._set("generations", "generations", count)

    def pop_size(self, count: int) -> TunerConfig:
        """Candidates of the first generation."""
        return self._set("pop_size", "population", count)

    def crossover_rate(self, percent: int) -> TunerConfig:
        """Share of the children that mix parents, in percent."""
        return self._set("crossover_rate", "crossover_rate", percent)

    def mutation_rate(self, percent: int) -> TunerConfig:
        """Share of a child's choices that mutate, in percent."""
        return self._set("mutation_rate", "mutation_rate", percent)

    def number_elites(self, count: int) -> TunerConfig:
        """The best that stay from one generation to the next: half of the population at most."""
        return self._set("number_elites", "elites", count)

    def threads(self, count: int) -> TunerConfig:
        """Processes that compile."""
        return self._set("threads", "threads", count)

    def devices(self, devices: str) -> TunerConfig:
        """Checked and noted: numbers of GPUs, as ``"0,1"``."""
        if not all(part.strip().isdigit() for part in text("devices", devices).split(",")):
            raise OptionsError(f"devices are numbers, as in '0,1', not {shown(devices)}")
        note_once("TunerConfig.devices", "a search is for the device that its inputs lie on")
        return self

    def tuner_min_launch_total_threads(self, count: int) -> TunerConfig:
        """Checked and noted."""
        _count("tuner_min_launch_total_threads", count)
        why = "the space that is searched has no launches of too few threads"
        note_once("TunerConfig.tuner_min_launch_total_threads", why)
        return self

    def logtostderr(self, value: bool) -> TunerConfig:
        """Write what is logged during the search to standard error."""
        self._level = logging.INFO if on("logtostderr", value) else None
        return self

    def stderrthreshold(self, level: int) -> TunerConfig:
        """From which level on that is so: 0 information, 1 warnings, 2 errors, 3 none."""
        if _count("stderrthreshold", level) > 3:
            raise OptionsError(f"stderrthreshold has to be from 0 to 3, not {shown(level)}")
        self._level = (logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)[level]
        return self

    def _set(self, name: str, own: str, value: object) -> TunerConfig:
        try:
            tcl.TunerConfig(**{own: value})
        except SettingError as error:
            raise OptionsError(error.named(name)) from None
        self._values[own] = value  # type: ignore[assignment]
        return self


_SETTERS = tuple(
    name
    for name, member in vars(TunerConfig).items()
    if callable(member) and not name.startswith("_")
)
