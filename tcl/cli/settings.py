"""The settings of a search by the names that ``tcl tune`` has for them, and a grid's file, too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tcl.common.errors import ArgumentError
from tcl.common.lazy import Lazy

if TYPE_CHECKING:
    from tcl import cluster
    from tcl.tuner import config
else:  # they import NumPy, which `tcl tune` tells before how many threads to have
    cluster, config = Lazy("tcl.cluster"), Lazy("tcl.tuner.config")

_WHOLE = "a whole number"
_TEXT = "a text in quotes"
_SECONDS = "a number of seconds"
_FLAG = "true or false"
KINDS: Mapping[str, str] = {
    "generations": _WHOLE,
    "population": _WHOLE,
    "elites": _WHOLE,
    "crossover": _WHOLE,
    "mutation": _WHOLE,
    "strategy": _TEXT,
    "seed": _WHOLE,
    "threads": _WHOLE,
    "jobs": _WHOLE,
    "time_limit": _SECONDS,
    "options": _TEXT,
    "device": _TEXT,
    "model": _FLAG,
}
"""Name → what its value has to be."""
_TYPES: Mapping[str, tuple[type, ...]] = {
    _WHOLE: (int,),
    _TEXT: (str,),
    _SECONDS: (int, float),
    _FLAG: (bool,),
}
_OF_THE_SEARCH = {
    **{n: n for n in ("generations", "population", "elites", "strategy", "seed", "time_limit")},
    "model": "model",
    "crossover": "crossover_rate",
    "mutation": "mutation_rate",
    "jobs": "threads",
}
"""Name → what ``TunerConfig`` calls it."""


def check_type(name: str, value: object) -> None:
    """Raise ``ArgumentError`` unless a file's value of a setting is of its kind."""
    kind = KINDS[name]
    right = isinstance(value, _TYPES[kind]) and isinstance(value, bool) == (kind == _FLAG)
    if not right or (isinstance(value, float) and not math.isfinite(value)):
        raise ArgumentError(f"{name} must be {kind}, not {value!r}")
    if name == "seed" and isinstance(value, int) and value < 0:
        raise ArgumentError(f"seed must be 0 or more, not {value}")


def search_config(given: Mapping[str, Any]) -> config.TunerConfig:
    """The settings of the search among those that were given; None stands for what was not.

    ``SettingError`` for a value that makes no sense; ``own_names`` gives it the name it has here.
    """

    names = _OF_THE_SEARCH
    return config.TunerConfig(
        **{names[n]: v for n, v in given.items() if n in names and v is not None}
    )


@contextmanager
def own_names(*, usage: bool = False, options: bool = False) -> Iterator[None]:
    """What is said of a setting in here names it as a grid's file does, or, with ``options``, as
    the command line. ``usage``: it is the command line itself that is wrong."""

    try:
        yield
    except config.SettingError as error:
        known = {theirs: ours for ours, theirs in _OF_THE_SEARCH.items()}
        name = known.get(error.name, error.name)
        sentence = error.named(f"--{name.replace('_', '-')}" if usage or options else name)
        raise (click.UsageError(sentence) if usage else ArgumentError(sentence)) from None


def check_executor(name: str) -> None:
    """Refuse what cannot be the name of a place to work at."""

    try:
        cluster.check_name(name)
    except ArgumentError as error:
        raise click.BadParameter(str(error), param_hint="--executor") from None
