"""How to search: ``TunerSettings`` holds the values, ``TunerConfig`` is how users write them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import TypedDict, Unpack

from tcl.common.closest import closest
from tcl.common.errors import OptionsError
from tcl.common.shown import shown
from tcl.tuner.strategies import STRATEGIES
from tcl.tuner.strategies.strategy import SELECTIONS, SearchSettings


class SettingError(OptionsError):
    """A setting that makes no sense, which the command line knows by another name."""

    def __init__(self, name: str, sentence: str) -> None:
        """``sentence`` has ``{}`` where the name belongs."""
        super().__init__(sentence.replace("{}", name, 1))
        self.name = name
        self.sentence = sentence

    def __reduce__(self) -> tuple[type[SettingError], tuple[str, str]]:
        return type(self), (self.name, self.sentence)

    def named(self, name: str) -> str:
        """The sentence with another name."""
        return self.sentence.replace("{}", name, 1)


@dataclass(frozen=True, slots=True)
class TunerSettings:
    """Validated settings of a tuner run; ``OptionsError`` for a value that makes no sense."""

    generations: int = 25
    population: int = 20
    """Configurations of the first generation; as many of the best are parents of later ones."""
    elites: int | None = None
    """How many fewer are measured in later generations, of strategies that breed: the best so far
    count as members, and keep their times. None: half the population, at most 10."""
    crossover_rate: int = 80
    """Percent of the children that mix parents, without those that are a parent with one knob
    changed."""
    mutation_rate: int = 10
    """Percent of the knobs of such a child that mutate."""
    selection: str = "rank"
    """How parents are drawn: by ``rank``, or by ``roulette``, in proportion to 1 / time."""
    parents: int = 3
    """Of a child that mixes them: two or three."""
    threads: int = 0
    """Processes that compile; 0: one per core. On cores that measure they take turns with that."""
    seed: int | None = None
    """Of the random numbers; None: a different one each time."""
    time_limit: float | None = None
    """Seconds after which the search ends as if interrupted once, but not before one candidate
    has a time; None: no limit."""
    strategy: str = "screened"
    """``screened``: genetic, with a model that chooses the children worth measuring; ``genetic``,
    ``random``, ``exhaustive``."""
    compile_timeout: float = 60.0
    """Seconds for compiling one candidate."""
    run_timeout: float | None = None
    """Seconds for verifying and timing one candidate; None: ten times as long as the reference
    takes and ten more, 610 at most."""
    cached_seeds: int = 10
    """Best options of the cache that the first generation starts from."""
    model: bool = True
    """Whether a ``screened`` search starts from the learned model, where there is one."""

    def __post_init__(self) -> None:
        for name, low, high in _INTEGERS:
            value = getattr(self, name)
            if value is None and name == "elites":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise SettingError(
                    name, f"{{}} must be a whole number from {low} to {high}, not {shown(value)}"
                )
        if self.seed is not None and (isinstance(self.seed, bool) or type(self.seed) is not int):
            raise SettingError(
                "seed", f"{{}} must be a whole number or None, not {shown(self.seed)}"
            )
        for name in ("time_limit", "compile_timeout", "run_timeout"):
            value = getattr(self, name)
            absent = value is None and name != "compile_timeout"
            if not absent and (
                isinstance(value, bool) or not isinstance(value, int | float) or not value > 0
            ):
                raise SettingError(
                    name, f"{{}} must be a number of seconds above 0, not {shown(value)}"
                )
        if not isinstance(self.model, bool):
            raise SettingError("model", f"{{}} must be True or False, not {shown(self.model)}")
        if not isinstance(self.strategy, str) or self.strategy not in STRATEGIES:
            known = ", ".join(sorted(STRATEGIES))
            raise SettingError(
                "strategy", f"{{}} must be one of {known}, not {shown(self.strategy)}"
            )
        if not isinstance(self.selection, str) or self.selection not in SELECTIONS:
            raise SettingError(
                "selection", f"{{}} must be rank or roulette, not {shown(self.selection)}"
            )

    @property
    def search(self) -> SearchSettings:
        """What the strategy needs of it; ``OptionsError`` if these do not fit each other."""
        most = self.population // 2
        elites = min(10, most) if self.elites is None else self.elites
        if elites > most:
            raise SettingError(
                "elites",
                f"{{}} must be at most half of the population of {self.population}, "
                f"not {elites}: the other members are what is searched",
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
        """``OptionsError`` if the settings of the strategy do not fit each other."""
        _ = self.search

    def as_dict(self) -> dict[str, object]:
        """The settings as JSON data."""
        return asdict(self)


_FREE = frozenset(("generations", "time_limit", "threads", "compile_timeout", "run_timeout"))
"""Settings that may change when a search goes on: for how long, and with how much."""
_MANY = 1_000_000
_INTEGERS = (
    ("generations", 1, _MANY),
    ("population", 2, _MANY),
    ("elites", 0, _MANY),
    ("crossover_rate", 0, 100),
    ("mutation_rate", 0, 100),
    ("parents", 2, 3),
    ("threads", 0, 4096),
    ("cached_seeds", 0, _MANY),
)


class SettingValues(TypedDict, total=False):
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


@dataclass(frozen=True, slots=True, init=False)
class TunerConfig:
    """Settings in either style, ``TunerConfig(generations=5)`` or
    ``TunerConfig().generations(5).threads(2)``; every method returns a new configuration.

    The values are those of ``TunerSettings``, and found under ``settings``. ``OptionsError`` for
    a value that makes no sense.
    """

    settings: TunerSettings
    chosen: frozenset[str] = field(compare=False)
    """The names of those that were given: the others are a search's own if that is resumed."""

    def __init__(self, **settings: Unpack[SettingValues]) -> None:
        known = [f.name for f in fields(TunerSettings)]
        for name in settings:
            if name not in known:
                near = closest(name, known)
                hint = f"did you mean {near}?" if near else f"settings are {', '.join(known)}"
                raise OptionsError(f"there is no setting {name!r}; {hint}")
        object.__setattr__(self, "settings", TunerSettings(**settings))
        object.__setattr__(self, "chosen", frozenset(settings))

    def __repr__(self) -> str:
        usual = TunerSettings().as_dict()
        pairs = self.settings.as_dict().items()
        own = (f"{n}={v!r}" for n, v in pairs if n in self.chosen or v != usual[n])
        return f"TunerConfig({', '.join(own)})"

    def _with(self, **changes: Unpack[SettingValues]) -> TunerConfig:
        return self._changed(replace(self.settings, **changes), self.chosen | changes.keys())

    def _changed(self, settings: TunerSettings, chosen: frozenset[str]) -> TunerConfig:
        changed = TunerConfig()
        object.__setattr__(changed, "settings", settings)
        object.__setattr__(changed, "chosen", chosen)
        return changed

    def with_defaults(self, **defaults: Unpack[SettingValues]) -> TunerConfig:
        """The same with these values for what was not chosen."""
        left = {n: v for n, v in defaults.items() if n not in self.chosen}
        settings = TunerSettings(**{**self.settings.as_dict(), **left})  # type: ignore[arg-type]
        return self._changed(settings, self.chosen)

    def going_on(self, saved: TunerSettings) -> TunerConfig:
        """What was chosen, and the rest as in the settings of a search that is resumed: all of it
        is chosen then.

        ``OptionsError`` for a choice that would make it another search.
        """
        for name in sorted(self.chosen - _FREE):
            own, value = getattr(saved, name), getattr(self.settings, name)
            if value != own:
                raise SettingError(
                    name,
                    f"the search to be resumed was begun with {{}} {shown(own)}, not "
                    f"{shown(value)}; leave that out, or begin a new search",
                )
        values = {n: v for n, v in self.settings.as_dict().items() if n in self.chosen}
        settings = TunerSettings(**{**saved.as_dict(), **values})  # type: ignore[arg-type]
        return self._changed(settings, frozenset(saved.as_dict()))

    def generations(self, count: int) -> TunerConfig:
        """Generations to search for, at most."""
        return self._with(generations=count)

    def population(self, count: int) -> TunerConfig:
        """Configurations of the first generation, and parents of later ones."""
        return self._with(population=count)

    def pop_size(self, count: int) -> TunerConfig:
        """``population``, by its name in Tensor Comprehensions."""
        return self.population(count)

    def elites(self, count: int) -> TunerConfig:
        """How many fewer are measured in later generations; at most half of the population."""
        return self._with(elites=count)

    def number_elites(self, count: int) -> TunerConfig:
        """``elites``, by its name in Tensor Comprehensions."""
        return self.elites(count)

    def crossover_rate(self, percent: int) -> TunerConfig:
        """Share of the children that mix parents, in percent."""
        return self._with(crossover_rate=percent)

    def mutation_rate(self, percent: int) -> TunerConfig:
        """Share of a child's knobs that mutate, in percent."""
        return self._with(mutation_rate=percent)

    def threads(self, count: int) -> TunerConfig:
        """Processes that compile; 0: one per core.

        How many threads kernels have is said where their def is: ``autotune(..., threads=2)``."""
        return self._with(threads=count)

    def seed(self, number: int | None) -> TunerConfig:
        """Of the random numbers; None: a different one each time."""
        return self._with(seed=number)

    def time_limit(self, seconds: float | None) -> TunerConfig:
        """Seconds after which the search ends as if interrupted once, but not before one candidate
        has a time."""
        return self._with(time_limit=seconds)

    def selection(self, name: str) -> TunerConfig:
        """How parents are drawn: ``rank`` or ``roulette``."""
        return self._with(selection=name)

    def parents(self, count: int) -> TunerConfig:
        """Of a child that mixes them: two or three."""
        return self._with(parents=count)

    def strategy(self, name: str) -> TunerConfig:
        """Search strategy: ``screened``, ``genetic``, ``random`` or ``exhaustive``."""
        return self._with(strategy=name)

    def model(self, wanted: bool) -> TunerConfig:
        """Whether a ``screened`` search starts from the learned model, where there is one."""
        return self._with(model=wanted)
