"""Who takes part, what they are asked to do, and the forms in which they can do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol, TypeAlias

from tcl.arrays.arguments import Array as Array

DEFAULT = "tcl default"
TUNED = "tcl tuned"
OURS = (DEFAULT, TUNED)
"""Our own kernels: with the untuned default options, and with the tuning cache's best."""
DEFAULT_FORM = "default"
TUNED_FORM = "tuned"
"""Likewise, as forms of one contender."""


@dataclass(frozen=True, slots=True)
class Task:
    """A def with sizes, as data that travels to other processes."""

    text: str
    """Of the file with the def."""
    entry: str
    sizes: Mapping[str, int]
    inputs: tuple[str, ...]
    """Names, in the order of the def."""
    results: tuple[str, ...]
    """The outputs to compute."""
    tuned: str = ""
    """Tuned mapping options of ours, as JSON, if any are known."""
    past: int = 0
    """Bytes past the beginning of a cache line at which arrays begin, where a contender can choose:
    see ``tcl.tuner.measure.placement``."""


@dataclass(frozen=True, slots=True)
class PeerForm:
    run: Callable[[], object]
    """Do it once, to the end."""
    results: Callable[[], Sequence[Array]]
    """Do it once and return the task's results."""
    threads: int


class Peer(Protocol):
    """A contender, in a process of its own."""

    def versions(self) -> dict[str, str]:
        """Of what it is made of."""

    def forms(
        self, task: Task, inputs: Mapping[str, Array]
    ) -> Iterator[tuple[str, Callable[[], PeerForm]]]:
        """Names and makers of the forms it has; none for tasks that it leaves out."""

    def facts(self, task: Task) -> dict[str, Any]:
        """What else there is to report, as JSON data."""


Values: TypeAlias = Any
"""The peer's own arrays by input name, as attributes; sizes under ``sizes``; and ``empty(*shape,
dtype=None)``, which makes an output: of the type of the inputs, or of another one by name."""
Builder: TypeAlias = Callable[[Values], Callable[[], Any]]
"""Allocates outputs, and returns a function that computes one result or a tuple of them."""
Form: TypeAlias = Callable[[Values], Callable[[], Any] | Iterator[Any]]
"""A builder, or a generator, which allocates outputs and then yields what it computes, again for
each time that it is asked."""


class Registry:
    """The forms of one peer by def."""

    def __init__(self) -> None:
        self._forms: dict[str, list[tuple[str, Builder, tuple[str, ...]]]] = {}

    def form(
        self, *entries: str, name: str = "", types: tuple[str, ...] = ()
    ) -> Callable[[Form], Form]:
        """Register a form of these defs; only where the first input is of one of ``types``, if
        there are any."""

        def register(form: Form) -> Form:
            def build(x: Values) -> Callable[[], Any]:
                made = form(x)
                return made.__next__ if isinstance(made, Iterator) else made

            for entry in entries:
                found = self._forms.setdefault(entry, [])
                found.append((name or form.__name__, build, types))
            return form

        return register

    def formula(
        self, *entries: str, name: str, types: tuple[str, ...] = ()
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a function of the def's inputs, by their names, that needs no sizes."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self.form(*entries, name=name, types=types)(lambda x: function)
            return function

        return register

    def include(self, other: Registry) -> None:
        """Add the forms of another registry."""
        for entry, found in other._forms.items():
            self._forms.setdefault(entry, []).extend(found)

    def builders(self, entry: str, type_: str = "") -> list[tuple[str, Builder]]:
        """The forms for a def whose first input is of this type, in order of registration; those
        for all types without one."""
        found = self._forms.get(entry, [])
        return [(name, b) for name, b, types in found if not types or type_ in types]


def values(
    arrays: Mapping[str, Any], sizes: Mapping[str, int], empty: Callable[..., Any] | None = None
) -> Values:
    """Arrays, sizes, and what makes outputs, as builders take them."""
    return SimpleNamespace(**arrays, sizes=SimpleNamespace(**sizes), empty=empty)


def as_tuple(found: Any) -> tuple[Any, ...]:
    """One result, or several, as several."""
    return tuple(found) if isinstance(found, tuple | list) else (found,)
