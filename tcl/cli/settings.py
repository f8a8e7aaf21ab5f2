"""The settings of a search by the names that ``tcl tune`` has for them, and a grid's file, too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tcl.common.errors import ArgumentError
from tcl.common.lazy import Lazy

if TYPE_CHECKING:
    from tcl import cluster
    from tcl.tuner import config
else:  # they import NumPy, which `tcl tune` tells before how many threads to have
    cluster, config = Lazy("tcl.cluster"), Lazy("tcl.tuner.config")


class Setting(NamedTuple):
    """What a file may say of one."""

    kind: str
    types: tuple[type, ...]
    in_config: str = ""
    """What ``TunerConfig`` calls it, if it is of the search."""


_WHOLE = Setting("a whole number", (int,))
_TEXT = Setting("a text in quotes", (str,))
SETTINGS: Mapping[str, Setting] = {
    **{n: _WHOLE._replace(in_config=n) for n in ("generations", "population", "elites", "seed")},
    "crossover": _WHOLE._replace(in_config="crossover_rate"),
    "mutation": _WHOLE._replace(in_config="mutation_rate"),
    "jobs": _WHOLE._replace(in_config="threads"),
    "threads": _WHOLE,
    "strategy": _TEXT._replace(in_config="strategy"),
    "options": _TEXT,
    "device": _TEXT,
    "time_limit": Setting("a number of seconds", (int, float), "time_limit"),
    "model": Setting("true or false", (bool,), "model"),
}


def check_type(name: str, value: object) -> None:
    """Raise ``ArgumentError`` unless a file's value of a setting is of its kind."""
    kind, types, _ = SETTINGS[name]
    right = isinstance(value, types) and isinstance(value, bool) == (types == (bool,))
    if not right or (isinstance(value, float) and not math.isfinite(value)):
        raise ArgumentError(f"{name} must be {kind}, not {value!r}")
    if name == "seed" and isinstance(value, int) and value < 0:
        raise ArgumentError(f"seed must be 0 or more, not {value}")


def search_config(given: Mapping[str, Any]) -> config.TunerConfig:
    """The settings of the search among those that were given; None stands for what was not.

    ``SettingError`` for a value that makes no sense; ``own_names`` gives it the name it has here.
    """
    own = {n: each.in_config for n, each in SETTINGS.items() if each.in_config}
    return config.TunerConfig(
        **{own[n]: value for n, value in given.items() if n in own and value is not None}
    )


@contextmanager
def own_names(*, usage: bool = False, options: bool = False) -> Iterator[None]:
    """What is said of a setting in here names it as a grid's file does, or, with ``options``, as
    the command line. ``usage``: it is the command line itself that is wrong."""

    try:
        yield
    except config.SettingError as error:
        ours = (name for name, each in SETTINGS.items() if each.in_config == error.name)
        name = next(ours, error.name)
        sentence = error.named(f"--{name.replace('_', '-')}" if usage or options else name)
        raise (click.UsageError(sentence) if usage else ArgumentError(sentence)) from None


def check_executor(name: str) -> None:
    """Refuse what cannot be the name of a place to work at."""

    try:
        cluster.check_name(name)
    except ArgumentError as error:
        raise click.BadParameter(str(error), param_hint="--executor") from None
