"""Options that a tuning cache suggests: tried in turn, so that none of them ever fails a call.

What is in a cache was measured with new outputs, by some version, on some day. It need not apply
to the arrays at hand, nor be options at all. Options that a user gives are honoured or refused.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tcl.codegen.options.options import DEFAULT as DEFAULT
from tcl.codegen.options.options import MappingOptions
from tcl.common.dataclass import dataclass
from tcl.common.errors import CompileError, OptionsError
from tcl.common.warn import warn_once, warn_user, was_told

if TYPE_CHECKING:
    from tcl.grammar.sizes.size_classes import SizeClass

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Suggested:
    """An entry of a cache."""

    options: str
    """As JSON."""
    key: str
    """The first digits of the key's digest, by which ``tcl cache show`` finds it."""
    sizes: str
    rank: int
    """Among the key's options, from 1."""
    apart: str = ""
    """In what the device differs that it was measured on; empty if it was this one."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Entries of a cache for one def, best first. The default follows the last of them."""

    name: str
    """The def's."""
    cache: str
    """The cache's file."""
    entries: tuple[Suggested, ...]
    nothing: str = ""
    """What is missing, and what to do, if the default is used because there are no entries and
    somebody asked for this cache."""

    def options(self) -> Iterator[MappingOptions]:
        """Those entries that are options."""
        for entry in self.entries:
            with contextlib.suppress(OptionsError):
                yield MappingOptions.from_json(entry.options)

    @property
    def preferred(self) -> MappingOptions | None:
        """The first that are options; whether they apply is seen when a kernel is made."""
        return next(self.options(), None)

    def applied(self, make: Callable[[MappingOptions], _T]) -> tuple[MappingOptions, _T]:
        """The first options of which something can be made, and what that is. Entries that were
        passed over are warned about, each once in a process."""
        refused: list[tuple[Suggested, str]] = []
        for entry in self.entries:
            try:
                options = MappingOptions.from_json(entry.options)
                made = make(options)
            except (OptionsError, CompileError) as error:
                refused.append((entry, str(error)))
                continue
            self.note(refused, entry)
            return options, made
        self.note(refused, None)
        return applied(self.otherwise(), make)

    def otherwise(self) -> Chosen:
        """What is used where no entry applies."""
        if self.nothing and not self.entries:
            warn_once((self.cache, self.name, self.nothing), self.nothing)
        return DEFAULT

    def note(self, refused: list[tuple[Suggested, str]], used: Suggested | None) -> None:
        """Called with what was passed over, and why, and with what is used instead."""
        new = {(self.cache, r[0].key, r[0].options): r for r in refused}
        new = {about: r for about, r in new.items() if not was_told(about)}
        if not new:
            return
        (entry, reason), *more = new.values()
        besides = f" (and {len(more)} more)" if more else ""
        if used is None:
            instead = "the default is used"
        elif used.key == entry.key:
            instead = f"rank {used.rank} is used"
        else:
            elsewhere = f", measured on another device ({used.apart})," * bool(used.apart)
            instead = f"rank {used.rank} for {used.sizes}{elsewhere} is used"
        warn_user(
            f"cached options do not apply: rank {entry.rank} for {self.name} on {entry.sizes} "
            f"(key {entry.key} in {self.cache}): {reason}{besides}; {instead}",
            *new,
        )


Chosen: TypeAlias = MappingOptions | Choices
"""Options that have to apply, or what a cache suggests."""


def applied(chosen: Chosen, make: Callable[[MappingOptions], _T]) -> tuple[MappingOptions, _T]:
    """What is made of options, and of which. Raises what ``make`` raises, but never for options
    that a cache suggests."""
    if isinstance(chosen, Choices):
        return chosen.applied(make)
    return chosen, make(chosen)


def origin(chosen: Chosen, used: MappingOptions) -> str:
    """In which cache options were found, behind them in a log; empty if in none."""
    found = isinstance(chosen, Choices) and bool(chosen.cache) and used in chosen.options()
    return f" (from {chosen.cache})" if isinstance(chosen, Choices) and found else ""


class ThreadedFactory(ABC):
    """An options factory whose options are for a number of threads."""

    @abstractmethod
    def for_threads(self, threads: int) -> ThreadedFactory:
        """The same for calls with so many threads, unless it was made for another number."""

    @abstractmethod
    def __call__(self, source: str, entry_point: str, /, *inputs: Any) -> MappingOptions | None:
        """Options for these inputs."""


class CacheFactory(ThreadedFactory):
    """An options factory that knows more than one way."""

    @abstractmethod
    def choices(
        self,
        source: str,
        entry_point: str,
        inputs: tuple[Any, ...],
        classes: Mapping[str, SizeClass],
    ) -> Choices:
        """What its cache suggests; if that is nothing, what is missing. ``classes``: of the sizes
        that vary, by their names."""

    def __call__(self, source: str, entry_point: str, /, *inputs: Any) -> MappingOptions | None:
        return self.choices(source, entry_point, inputs, {}).preferred
