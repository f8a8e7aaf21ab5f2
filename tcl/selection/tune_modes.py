"""How much is measured for a def whose options nobody gave, as ``TCL_TUNE_MODE`` and ``tune_mode``
say it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from tcl.codegen.options.options import PRESETS
from tcl.common.closest import closest, did_you_mean
from tcl.common.dataclass import dataclass
from tcl.common.errors import ArgumentError
from tcl.common.shown import shown
from tcl.common.warn import warn_once

VARIABLE = "TCL_TUNE_MODE"
"""The environment variable that says it for the whole process."""
ARGUMENT = "tune_mode"

SEARCHES = ("auto", "trimmed", "all")
"""Modes that search, each better and longer than the one before."""
MODES = ("off", "predict", *SEARCHES)

ModeLike: TypeAlias = "str | Sequence[str] | Mapping[str, str | Sequence[str]]"
"""A mode, presets' names, or either of them by the names of defs."""


class TuneModeError(ArgumentError, ValueError):
    """A mode that there is not."""


@dataclass(frozen=True, slots=True)
class TuneMode:
    """What is done where a def comes up for sizes whose options nobody gave."""

    name: str = "predict"
    """One of ``MODES``; ``""`` for presets."""
    presets: tuple[str, ...] = ()
    """Of which the fastest is used; a single one is not measured."""
    asked: bool = field(default=True, compare=False)
    """Whether somebody said so."""

    def __str__(self) -> str:
        return self.name or ",".join(self.presets)

    @property
    def searches(self) -> bool:
        """Whether all options are searched."""
        return self.name in SEARCHES

    def satisfied_by(self, other: str) -> bool:
        """Whether what that mode did need not be done again."""
        if not self.searches:
            return other == str(self)
        return other in SEARCHES[SEARCHES.index(self.name) :]


@dataclass(frozen=True, slots=True)
class TuneModes:
    of_all: TuneMode = TuneMode(asked=False)
    by_def: Mapping[str, TuneMode] = field(default_factory=dict)

    def mode_of(self, name: str) -> TuneMode:
        return self.by_def.get(name, self.of_all)


def tune_modes(given: ModeLike | None, defs: Iterable[str]) -> TuneModes:
    """What the argument says, else the environment, else ``predict`` for all. Raises
    ``TuneModeError``, a ``ValueError``, for a mode that there is not, ``ArgumentError`` for a def
    that is not among ``defs``."""
    if given is None:
        found = _of_environment(os.environ.get(VARIABLE, ""))
        _tell_of_typos(found.by_def, list(defs))
        return found
    if not isinstance(given, Mapping):
        return TuneModes(_mode(given, ARGUMENT))
    known = list(defs)
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known, f"there are: {', '.join(known)}", "'")
            raise ArgumentError(f"{ARGUMENT} names the unknown def {shown(name)}; {hint}")
    by_def = {name: _mode(value, ARGUMENT, name) for name, value in given.items()}
    return TuneModes(by_def=by_def)


def _tell_of_typos(named: Iterable[str], defs: Sequence[str]) -> None:
    """Warn of names that look like one of these defs: the environment is for all texts of a
    program, so that any other name may belong to another text."""
    for name in named:
        near = None if name in defs else closest(name, defs)
        if near is not None:
            warn_once(
                (VARIABLE, name, near),
                f"{VARIABLE} names {name}, but this text has no such def; did you mean '{near}'?",
            )


def _of_environment(text: str) -> TuneModes:
    """``MODE`` for all defs and ``DEF=MODE`` for one, with semicolons between."""
    of_all, by_def = None, dict[str, TuneMode]()
    for part in text.split(";") if text.strip() else ():
        name, equals, value = part.partition("=")
        name = name.strip()
        if not equals:
            mode = _mode(part, VARIABLE)
            if of_all is not None:
                raise TuneModeError(f"{VARIABLE} gives two modes for all defs: {text.strip()!r}")
            of_all = mode
        elif not name.isidentifier():
            raise TuneModeError(
                f"{VARIABLE}: {name!r} is not the name of a def; write MODE, or DEF=MODE, "
                "separated by semicolons"
            )
        elif name in by_def:
            raise TuneModeError(f"{VARIABLE} gives two modes for {name}: {text.strip()!r}")
        else:
            by_def[name] = _mode(value, VARIABLE, name)
    return TuneModes(of_all or TuneMode(asked=False), by_def)


def _mode(given: object, where: str, name: str = "") -> TuneMode:
    """One mode, or presets: as a list, or as text, ``[mlp, conv]``. ``where`` it was found, and for
    which def, if for one."""
    if isinstance(given, str):
        text = given.strip()
        listed = text.startswith("[") and text.endswith("]")
        names: Sequence[object] = (text[1:-1] if listed else text).split(",")
        names = [str(name).strip() for name in names]
    elif isinstance(given, list | tuple):
        names, listed = given, True
    else:
        raise TuneModeError(_unknown(given, where, name))
    if len(names) == 1 and not listed and names[0] in MODES:
        return TuneMode(str(names[0]))
    for each in names:
        if each in MODES:
            raise TuneModeError(
                f"'{each}' in the list that {where} gives{_for(name)} is not a preset; {_CHOICES}"
            )
        if each not in PRESETS:
            raise TuneModeError(_unknown(each, where, name))
    if not names:
        raise TuneModeError(f"{where} gives an empty list{_for(name)}; {_CHOICES}")
    return TuneMode("", tuple(dict.fromkeys(map(str, names))))


_CHOICES = (
    f"a mode is one of {', '.join(MODES)}, a preset ({', '.join(PRESETS)}), or a list of presets"
)


def _unknown(given: object, where: str, name: str) -> str:
    near = closest(given, (*MODES, *PRESETS)) if isinstance(given, str) else None
    hint = f"did you mean {near}? " if near else ""
    return f"{where} names the unknown tune mode {shown(given)}{_for(name)}; {hint}{_CHOICES}"


def _for(name: str) -> str:
    return f" for {name}" if name else ""
