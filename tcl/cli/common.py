"""What the commands share: options, reading a file, choosing a def, errors, JSON."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TextIO, TypeVar

import click

from tcl.codegen.cpu.thread_count import MOST
from tcl.common.closest import did_you_mean
from tcl.common.errors import ArgumentError, TclError, TclWarning
from tcl.common.files import MOST_TEXT, check_whole, decoded, read_most, read_text
from tcl.grammar.check.one_def import check_for
from tcl.grammar.syntax.errors import Diagnostic
from tcl.grammar.tree.checked import CheckedDef

_F = TypeVar("_F", bound=Callable[..., Any])

file_argument = click.argument("file", type=click.Path(path_type=Path))
entry_option = click.option("--entry", "-e", help="The def to use; needed if the file has several.")


def _comma_separated(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> str | None:
    return ",".join(given) if given else None


def sizes_given(help_: str) -> Callable[[_F], _F]:
    """The option ``--sizes``. Given several times, all that is given counts: ``M=64,N=64`` for
    ``-s M=64 -s N=64``; None if it is not given."""
    return click.option(
        *("--sizes", "-s"),
        multiple=True,
        callback=_comma_separated,
        help=f"{help_} May be given several times.",
    )


sizes_option = sizes_given(
    "Sizes, such as M=128,N=64, or a label of the def's '# sizes' comments. Default: the first "
    "of these comments."
)


def _names(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    names = [name.strip() for each in given for name in each.split(",")]
    if not all(names):
        raise click.UsageError("--varying needs names of sizes, as in --varying M,N", context)
    return tuple(dict.fromkeys(names))


varying_option = click.option(
    "--varying",
    multiple=True,
    metavar="SIZE,...",
    callback=_names,
    help="Sizes that vary. Kernels and options are then for a whole class of sizes: the same "
    "order of magnitude, and either all multiples of 16 or none. May be given several "
    "times.",
)


def check_varying(checked: CheckedDef, names: Iterable[str], where: str = "--varying") -> None:
    """Refuse names that no size of the def has; ``where`` they were given."""
    for name in names:
        if name not in checked.sizes:
            there = f"its sizes are {', '.join(checked.sizes)}" if checked.sizes else "it has none"
            there = did_you_mean(name, checked.sizes, there)
            raise ArgumentError(
                f"{where} names {name}, which is not a size of {checked.name}; {there}"
            )


class Amount(click.FloatRange):
    """A number in a range: NaN, which compares with nothing, is in none."""

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        """As ``FloatRange`` does."""
        with suppress(ValueError, TypeError):
            if not math.isnan(float(value)):
                return super().convert(value, parameter, context)
        self.fail(f"'{value}' is not a number.", parameter, context)
        return None


class _Threads(click.IntRange):
    """A number of threads, which is refused in one sentence."""

    def __init__(self) -> None:
        super().__init__(1, MOST)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            raise click.UsageError(
                f"--threads needs a whole number from 1 to {MOST}, not {value!r}; "
                "leave it out for all cores",
                ctx,
            ) from None


threads_option = click.option(
    "--threads",
    "-t",
    type=_Threads(),
    help="Threads that a kernel may use. Default: TCL_NUM_THREADS, else all cores.",
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random inputs.",
)
cache_option = click.option(
    "--cache",
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The tuning cache. Default: tuning.db in TCL_CACHE_DIR, else in your cache folder.",
)
"""Every command that reads or writes a cache takes it so."""


def without_threads(device: str, threads: int | None) -> None:
    """Refuse a number of threads for kernels that a CPU does not run."""
    if threads is not None:
        raise click.UsageError(f"--threads is for a CPU; leave it out with --device {device}")


def was_given(parameter: str) -> bool:
    """Whether the command line says this, rather than a default."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is click.core.ParameterSource.COMMANDLINE


_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def numpy_threads(count: int | None = None) -> str:
    """How many threads NumPy has, in words. It gets ``count``, before it is imported, unless the
    user says otherwise."""
    if count is not None and not any(name in os.environ for name in _THREADS):
        os.environ.update(dict.fromkeys(_THREADS, str(count)))
    found = min((os.environ[name] for name in _THREADS if name in os.environ), default="all")
    return f"{found} thread{'' if found == '1' else 's'}"


@contextmanager
def reporting() -> Iterator[None]:
    """A command that runs within ends with exit code 1 and the message when the input is wrong."""
    warnings.showwarning = _show_warning  # for good: the process is the command's
    try:
        yield
    except (TclError, IndexError) as error:
        fail("\n".join([str(error), *getattr(error, "__notes__", ())]))
    except MemoryError as error:
        fail(str(error) or "there is not enough memory for this; `ulimit -v` may limit it")


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if str(message).removeprefix("<string>") in _told:  # the library's own, of the same text
        return
    if not issubclass(category, TclWarning):
        where = f"{filename}:{lineno}: {category.__name__}: "
    else:
        where = "" if "warning:" in str(message) else "warning: "
    click.echo(f"{where}{message}", err=True)


def fail(message: str) -> NoReturn:
    """Print a message and exit with 1."""
    report(message)
    sys.exit(1)


def report(message: str, severity: str = "error") -> None:
    """Print what is wrong."""
    prefix = "" if f"{severity}:" in message else f"{severity}: "
    click.echo(prefix + message, err=True)


def read(file: Path, most: int = MOST_TEXT) -> str:
    """The text of a file of so many bytes at most; ``-`` is standard input."""
    if str(file) == "-":
        if sys.stdin is None:  # as python makes it where it was closed
            raise ArgumentError("standard input is closed; name a file")
        try:
            return decoded(read_most(sys.stdin.buffer, most), "standard input")
        except OSError as error:
            raise ArgumentError(f"standard input cannot be read: {error.strerror}") from None
    return read_text(file, most)


def check_writable(file: Path) -> None:
    """Refuse a file that cannot be written now, rather than after an hour."""
    if file.is_dir():
        raise ArgumentError(f"{file} is a folder; name a file in it")
    if not file.parent.is_dir():
        raise ArgumentError(f"{file} cannot be written: there is no folder {file.parent}")
    try:
        check_whole(file)
    except OSError as error:
        raise ArgumentError(f"{file} cannot be written: {error.strerror}") from None


def make_folder(folder: Path) -> None:
    """Make a folder, and see that files can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_whole(folder / "file")
    except OSError as error:
        raise ArgumentError(f"the folder {folder} cannot be used: {error.strerror}") from None


def choose(file: Path, entry: str | None) -> tuple[str, CheckedDef]:
    """The text of a file and the def to use."""
    text, defs = load(file, entry)
    return text, pick(defs, file, entry)


def load(file: Path, entry: str | None = None) -> tuple[str, dict[str, CheckedDef]]:
    """The text of a file and its defs, whose warnings are printed; of those that do not concern
    ``entry``, if that is given, without these, and without what has errors."""
    if file.suffix == ".py":
        raise ArgumentError(
            f"{file} is Python, and FILE is a text of defs, such as `def f(float(N) X) -> (Y) "
            "{ Y(i) = 2 * X(i) }`; run the program with python, or write its defs to a .tc file"
        )
    text, defs, left_out = check_for(read(file), str(file), entry)
    if left_out:
        report(what_is_left_out(file, left_out), "warning")
    concerned = {definition.name for definition in concerning(defs, entry)}
    for definition in defs.values():
        tell(definition, definition.warnings, shown=definition.name in concerned)
    return text, defs


def concerning(defs: Mapping[str, CheckedDef], entry: str | None) -> list[CheckedDef]:
    """A def and those that it calls; all of a file's without ``entry``."""
    if entry is None:
        return list(defs.values())
    names = re.findall(r"\bdef\s+(\w+)", defs[entry].text) if entry in defs else ()
    return [defs[name] for name in names if name in defs]


def what_is_left_out(file: Path, names: Mapping[str, int]) -> str:
    """What is said of the defs of a file that have errors, where another def is asked for.
    ``names``: each with its line."""
    listed = ", ".join(f"'{name}' (line {line})" for name, line in names.items())
    why = "is left out, because it has errors"
    if len(names) > 1:
        why = "are left out, because they, or defs that they call, have errors"
    shown = "" if str(file) == "-" else f"; tcl check {file} shows them"
    return f"{file}: {listed} {why}{shown}"


_told: set[str] = set()
"""Warnings that were shown, or of defs that were not asked for, without the name of the text."""


def tell(definition: CheckedDef, found: Iterable[Diagnostic], *, shown: bool = True) -> None:
    """Show warnings about a def; or else keep the library from showing them."""
    for finding in found:
        text = finding.render(definition.source, "warning")
        _told.add(text.removeprefix(definition.source.name))
        if shown:
            click.echo(text, err=True)


def pick(defs: Mapping[str, CheckedDef], file: Path, entry: str | None) -> CheckedDef:
    if entry is None:
        if len(defs) > 1:
            raise ArgumentError(
                f"{file} has {len(defs)} defs; choose one with --entry {'|'.join(defs)}"
            )
        entry = next(iter(defs))
    if entry not in defs:
        hint = did_you_mean(entry, defs, f"it has {', '.join(defs)}")
        raise ArgumentError(f"{file} has no def {entry}; {hint}")
    return defs[entry]


def title_of(checked: CheckedDef, sizes: Mapping[str, int], varying: Sequence[str]) -> str:
    words = [checked.name, *(f"{name}={value}" for name, value in sizes.items())]
    return " ".join([*words, *([f"varying {','.join(varying)}"] if varying else [])])


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON document, for programs; see tcl docs json.",
)


def print_json(data: object) -> None:
    """Print a document. What is no number, as a file of others may have it, is null."""
    click.echo(json.dumps(_finite(data), indent=1, allow_nan=False))


def _finite(data: Any) -> Any:
    match data:
        case float():
            return data if math.isfinite(data) else None
        case dict():
            return {name: _finite(value) for name, value in data.items()}
        case list() | tuple():
            return [_finite(value) for value in data]
        case _:
            return data


@dataclass(slots=True)
class Said:
    """What a command has said so far; a document is printed at the end, as a whole."""

    as_json: bool
    data: dict[str, Any] = field(default_factory=dict)

    def say(self, *lines: str, **data: object) -> None:
        """Say something: to people in lines, to programs in values by name."""
        self.data |= data
        if not self.as_json:
            for line in lines:
                click.echo(line)

    def end(self) -> None:
        if self.as_json:
            print_json(self.data)
