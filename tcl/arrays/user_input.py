"""What callers give besides arrays, checked where it comes in: texts, files, flags, names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tcl.common.closest import closest
from tcl.common.errors import ArgumentError
from tcl.common.files import read_text, with_newlines
from tcl.common.number_format import plural
from tcl.common.shown import kind_of, shown
from tcl.grammar.tree.checked import CheckedDef

SourceLike: TypeAlias = str | os.PathLike[str]
"""The text of a TC, or the path of a file that holds one. A string is always a text: a path that
is mistyped would otherwise be parsed, and a text that is mistyped looked for."""

CALL_OPTIONS = ("outputs", "unchecked", "wanted")
"""What a call takes by name besides its inputs."""


def text_of(source: SourceLike) -> tuple[str, str]:
    """The text, and the name that messages give it. Raises ``ArgumentError``."""
    if isinstance(source, os.PathLike):
        path = Path(source)
        return read_text(path), str(path)
    if not isinstance(source, str):
        raise ArgumentError(
            f"a TC is a string with its text, or a pathlib.Path of its file, not {kind_of(source)}"
        )
    one_line = source and "\n" not in source and "{" not in source
    if one_line and (source.endswith(".tc") or os.path.exists(source)):
        raise ArgumentError(
            f"{source!r} is the name of a file, but a string must be the text itself; pass "
            f"pathlib.Path({source!r})"
        )
    return with_newlines(source), "<string>"


def check_flag(name: str, value: object) -> None:
    """Raise ``ArgumentError`` unless it is True or False."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} has to be True or False, not {shown(value)}")


def file_named(name: str, value: object) -> Path:
    """The path that an argument is; ``ArgumentError`` for what is none."""
    if isinstance(value, Path):
        return value
    if not isinstance(value, str) or not value:
        raise ArgumentError(f"{name} has to be the path of a file, not {shown(value)}")
    return Path(value)


def check_sequence(checked: CheckedDef, inputs: object) -> None:
    """Raise ``ArgumentError`` unless inputs that are given as one argument are a tuple or list."""
    if not isinstance(inputs, tuple | list):
        names = [t.name for t in checked.inputs]
        raise ArgumentError(
            f"the inputs of {checked.name} have to be a tuple of arrays, here "
            f"({', '.join(names)}{',' * (len(names) == 1)}), not {kind_of(inputs)}"
        )


def in_order(
    checked: CheckedDef,
    positional: Sequence[Any],
    named: Mapping[str, Any],
    options: Sequence[str] = CALL_OPTIONS,
) -> tuple[Any, ...]:
    """The inputs of a call in the order of the def, as Python binds the arguments of a function.

    ``options``: what the call takes by name besides. Raises ``ArgumentError`` for a name that is
    no input's, an input that is given twice, and one that is missing.
    """
    names = [t.name for t in checked.inputs]
    for name in named:
        if name not in names:
            raise ArgumentError(_no_input(checked, name, options))
    for name in names[: len(positional)]:
        if name in named:
            raise ArgumentError(
                f"{checked.name} got its input '{name}' twice, by position and as {name}=; "
                "leave one of them out"
            )
    missing = [n for n in names[len(positional) :] if n not in named]
    if missing:
        several = len(missing) > 1
        raise ArgumentError(
            f"{checked.name} takes {plural(len(names), 'input')} ({', '.join(names)}), but "
            f"{' and '.join(missing)} {'are' if several else 'is'} missing"
        )
    return (*positional, *(named[n] for n in names[len(positional) :]))


def _no_input(checked: CheckedDef, name: str, options: Sequence[str]) -> str:
    """What is wrong with an input's name."""
    sentence = f"{checked.name} has no input '{name}'"
    if name in (t.name for t in checked.outputs):
        return f"{sentence}: that is an output; to write into an array, pass outputs=(...)"
    if name in checked.sizes:
        return f"{sentence}: that is a size, which follows from the shapes of the inputs"
    names = [t.name for t in checked.inputs]
    near = closest(name, (*names, *options))
    return f"{sentence}; " + (
        f"did you mean {near}=?" if near else f"its inputs are {', '.join(names)}"
    )
