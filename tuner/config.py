"""How to search: ``TunerSettings`` holds the values, ``TunerConfig`` is how users write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypedDict, TypeVar, Unpack, cast

from tcl.common.closest import did_you_mean
from tcl.common.errors import OptionsError
from tcl.common.shown import shown
from tcl.tuner.strategies import STRATEGIES
from tcl.tuner.strategies.strategy import SELECTIONS, SearchSettings

_Value = TypeVar("_Value")


class SettingError(OptionsError):
    """A setting has an invalid value. ``named`` gives the message with the name that the command
    line uses."""

    def __init__(self, name: str, sentence: str) -> None:
        """``sentence`` has ``{}`` where the name belongs."""
        super().__init__(sentence.replace("{}", name, 1))
        self.name = name
        self.sentence = sentence

    def __reduce__(self) -> tuple[type[SettingError], tuple[str, str]]:
        return type(self), (self.name, self.sentence)

    def named(self, name: str) -> str:
        """The message with another name for the setting."""
        return self.sentence.replace("{}", name, 1)


def _setting(
    default: Any,
    rule: str,
    fits: Callable[[Any], bool],
    *,
    free: bool = False,
    absent: bool = False,
) -> Any:
    """A field. ``free``: it may change when a search goes on; ``absent``: it may be None."""
    return field(
        default=default, metadata={"rule": rule, "fits": fits, "free": free, "none": absent}
    )


def _whole(default: int | None, low: int, high: int = 1_000_000, **more: bool) -> Any:
    return _setting(
        default,
        f"a whole number from {low} to {high}",
        lambda value: type(value) is int and low <= value <= high,
        **more,
    )


def _duration(default: float | None) -> Any:
    return _setting(
        default,
        "a number of seconds above 0",
        lambda value: type(value) in (int, float) and value > 0,
        free=True,
        absent=default is None,
    )


def _one_of(default: str, rule: str, names: object) -> Any:
    return _setting(default, rule, lambda value: isinstance(value, str) and value in names)  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class TunerSettings:
    """Validated settings of a search. Raises ``OptionsError`` for an invalid value."""

    generations: int = _whole(25, 1, free=True)
    """The maximum number of generations."""
    population: int = _whole(20, 2)
    """The number of candidates in the first generation. As many of the best are parents of later
    generations."""
    elites: int | None = _whole(None, 0, absent=True)
    """The number of best candidates that keep their times, and are not measured again, in later
    generations (for strategies that breed). None: half the population, at most 10."""
    crossover_rate: int = _whole(80, 0, 100)
    """Percentage of the children that mix parents. The other children are a parent with one knob
    changed."""
    mutation_rate: int = _whole(10, 0, 100)
    """Percentage of the knobs of a mixed child that mutate."""
    selection: str = _one_of("rank", "rank or roulette", SELECTIONS)
    """How parents are drawn: by ``rank``, or by ``roulette``, in proportion to 1 / time."""
    parents: int = _whole(3, 2, 3)
    """The number of parents of a mixed child: two or three."""
    threads: int = _whole(0, 0, 4096, free=True)
    """The number of processes that compile; 0: one per core. On measuring cores, compiling and
    measuring take turns. This is not the number of threads of the kernels: see ``autotune(...,
    threads=2)``."""
    seed: int | None = _setting(
        None, "a whole number or None", lambda value: type(value) is int, absent=True
    )
    """Seed of the random numbers; None: a different seed each time."""
    time_limit: float | None = _duration(None)
    """Seconds after which the search ends, as after one Ctrl+C, but not before one candidate has a
    time. None: no limit."""
    strategy: str = _one_of("screened", f"one of {', '.join(sorted(STRATEGIES))}", STRATEGIES)
    """``screened``: a genetic search in which a model chooses the children to measure; ``genetic``,
    ``random``, ``exhaustive``."""
    compile_timeout: float = _duration(60.0)
    """Time limit for compiling one candidate, in seconds."""
    run_timeout: float | None = _duration(None)
    """Time limit for checking and timing one candidate, in seconds. None: ten times the reference's
    time plus ten seconds, at most 610."""
    cached_seeds: int = _whole(10, 0)
    """The number of best cached options in the first generation."""
    model: bool = _setting(True, "True or False", lambda value: isinstance(value, bool))
    """Whether a ``screened`` search starts from the learned model, if there is one."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value, rule = getattr(self, each.name), each.metadata
            if not rule["fits"](value) and not (value is None and rule["none"]):
                raise SettingError(each.name, f"{{}} must be {rule['rule']}, not {shown(value)}")

    @property
    def search(self) -> SearchSettings:
        """The settings that the strategy needs. Raises ``OptionsError`` if they contradict each
        other."""
        most = self.population // 2
        elites = min(10, most) if self.elites is None else self.elites
        if elites > most:
            raise SettingError(
                "elites",
                f"{{}} must be at most half of the population of {self.population}, not "
                f"{elites}: the search needs the other members",
            )
        return SearchSettings(
            self.population,
            elites,
            self.crossover_rate / 100,
            self.mutation_rate / 100,
            self.selection,
            self.parents,
        )

    def check(self) -> None:
        """Raises ``OptionsError`` if the settings of the strategy contradict each other."""
        _ = self.search

    def as_dict(self) -> dict[str, object]:
        """The settings as JSON data."""
        return asdict(self)


class SettingValues(TypedDict, total=False):
    """``TunerSettings`` as keywords, for who checks types."""

    generations: int
    population: int
    elites: int | None
    crossover_rate: int
    mutation_rate: int
    selection: str
    parents: int
    threads: int
    seed: int | None
    time_limit: float | None
    strategy: str
    compile_timeout: float
    run_timeout: float | None
    cached_seeds: int
    model: bool


_FREE = frozenset(each.name for each in fields(TunerSettings) if each.metadata["free"])
"""Settings that may change when a search goes on: for how long, and with how much."""


def _setter(name: str, kind: type[_Value]) -> Callable[[TunerConfig, _Value], TunerConfig]:
    """A method that takes values of a ``kind``, for who checks types."""

    def change(self: TunerConfig, value: _Value) -> TunerConfig:
        changes: dict[str, Any] = {name: value}
        settings = replace(self.settings, **changes)
        return TunerConfig._made(settings, self.chosen | {name})

    change.__doc__ = f"A copy with another value of ``TunerSettings.{name}``."
    return change


@dataclass(frozen=True, slots=True, init=False)
class TunerConfig:
    """Settings of a search, in either style: ``TunerConfig(generations=5)`` or
    ``TunerConfig().generations(5).threads(2)``. Every method returns a new configuration.

    ``TunerSettings`` describes the values; ``settings`` holds them. Raises ``OptionsError`` for an
    invalid value.
    """

    settings: TunerSettings
    chosen: frozenset[str] = field(compare=False)
    """Names of the settings that were given. If a search is resumed, it keeps its own values for
    the others."""

    def __init__(self, **settings: Unpack[SettingValues]) -> None:
        known = [f.name for f in fields(TunerSettings)]
        for name in settings:
            if name not in known:
                hint = did_you_mean(name, known, f"settings are {', '.join(known)}")
                raise OptionsError(f"there is no setting {name!r}; {hint}")
        object.__setattr__(self, "settings", TunerSettings(**settings))
        object.__setattr__(self, "chosen", frozenset(settings))

    def __repr__(self) -> str:
        usual = TunerSettings().as_dict()
        pairs = self.settings.as_dict().items()
        own = (f"{n}={v!r}" for n, v in pairs if n in self.chosen or v != usual[n])
        return f"TunerConfig({', '.join(own)})"

    @classmethod
    def _made(cls, settings: TunerSettings, chosen: frozenset[str]) -> TunerConfig:
        made = cls()
        object.__setattr__(made, "settings", settings)
        object.__setattr__(made, "chosen", chosen)
        return made

    def with_defaults(self, **defaults: Unpack[SettingValues]) -> TunerConfig:
        """A copy with these values for the settings that were not given."""
        left: Any = {n: v for n, v in defaults.items() if n not in self.chosen}
        return self._made(replace(self.settings, **left), self.chosen)

    def going_on(self, saved: TunerSettings) -> TunerConfig:
        """The settings of a resumed search: the given values, and the saved values of the others.

        Raises ``OptionsError`` for a value that would make it a different search.
        """
        for name in sorted(self.chosen - _FREE):
            own, value = getattr(saved, name), getattr(self.settings, name)
            if value != own:
                raise SettingError(
                    name,
                    f"the search to resume started with {{}} {shown(own)}, not {shown(value)}; "
                    "leave it out, or start a new search",
                )
        values = {name: getattr(self.settings, name) for name in self.chosen}
        return self._made(replace(saved, **values), frozenset(saved.as_dict()))

    generations = _setter("generations", int)
    population = pop_size = _setter("population", int)
    elites = number_elites = _setter("elites", int)
    crossover_rate = _setter("crossover_rate", int)
    mutation_rate = _setter("mutation_rate", int)
    threads = _setter("threads", int)
    seed = _setter("seed", cast("type[int | None]", int))
    time_limit = _setter("time_limit", cast("type[float | None]", float))
    selection = _setter("selection", str)
    parents = _setter("parents", int)
    strategy = _setter("strategy", str)
    model = _setter("model", bool)
