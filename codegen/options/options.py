"""How a def is mapped to a machine: data, checked when it is made.

``MappingOptions`` holds a preset's name, choices for all nests (``default``) and choices for
single nests (``nests``, by position). A choice that is None is left to ``default``, then to the
preset. Options are honoured or refused when a schedule is made, before anything is compiled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcl.codegen.options.kinds import integer
from tcl.codegen.options.nest_options import OPTIONS, NestOptions, OptionMethods, check_keys
from tcl.common.dataclass import dataclass
from tcl.common.errors import OptionsError, UnknownPresetError
from tcl.common.lazy import Lazy
from tcl.common.shown import kind_of, shown

if TYPE_CHECKING:
    from tcl.html import markup
else:
    markup = Lazy("tcl.html.markup")

PRESETS = ("naive", "pointwise", "mlp", "conv")
"""Names that ``MappingOptions`` takes. ``naive`` is the plain loop nest."""

MAX_NESTS = 10_000
_OPEN = NestOptions()
"""Nothing is chosen for a nest."""


@dataclass(frozen=True, slots=True)
class MappingOptions(OptionMethods):
    """How to map a def to a machine: ``MappingOptions("mlp")``, refined by methods such as
    ``.tile(64, 64, 32)``.

    Every method returns new options. The methods of ``OptionMethods`` apply to every nest that can
    have the option. Raises ``OptionsError`` for unknown presets and invalid values.
    """

    preset: str = "naive"
    default: NestOptions = _OPEN
    """Choices for every nest. A nest takes the tile sizes of its dimensions. It leaves off an order
    of another rank and a vectorisation that it cannot have. A choice that no nest can have is
    refused."""
    nests: tuple[NestOptions, ...] = ()
    """Choices for single nests, by position. Each must fit its nest."""
    merge: bool | None = None
    """Whether dimensions that are adjacent in memory in every tensor of the def run as one. The
    last of them gets all points, the others one point. None: yes in ``mlp`` and ``conv``, unless an
    option refers to a dimension by its position."""

    def __post_init__(self) -> None:
        if not isinstance(self.preset, str):
            names = ", ".join(PRESETS)
            raise OptionsError(f"a preset must be one of {names}, not {kind_of(self.preset)}")
        if self.preset not in PRESETS:
            known = ", ".join(PRESETS)
            hint = ", or MappingOptions.from_json for JSON" if "{" in self.preset else ""
            raise UnknownPresetError(f"unknown preset {self.preset!r}: use one of {known}{hint}")
        if not isinstance(self.default, NestOptions):
            raise OptionsError("default: must be NestOptions")
        if self.merge is not None and not isinstance(self.merge, bool):
            raise OptionsError(f"merge: must be true or false: {shown(self.merge)}")
        nests = self.nests
        if (
            not isinstance(nests, (tuple, list))
            or len(nests) > MAX_NESTS
            or not all(isinstance(n, NestOptions) for n in nests)
        ):
            raise OptionsError(f"nests: must be up to {MAX_NESTS} NestOptions")
        nests = tuple(nests)
        while nests and nests[-1] == _OPEN:  # so that equal options compare equal
            nests = nests[:-1]
        object.__setattr__(self, "nests", nests)

    @classmethod
    def naive(cls) -> MappingOptions:
        """The plain loop nest."""
        return cls("naive")

    @property
    def merges(self) -> bool:
        """Whether dimensions are merged."""
        if self.merge is not None:
            return self.merge
        made = (pair for n in (self.default, *self.nests) for pair in n.made().items())
        said = any(value and OPTIONS[key].by_dimension for key, value in made)
        return self.preset in ("mlp", "conv") and not said

    def own(self, position: int) -> NestOptions:
        """The choices for the nest at this position only."""
        index = _position(position)
        return self.nests[index] if index < len(self.nests) else _OPEN

    def no_nest(self, name: str, count: int) -> str:
        """The message about choices for a nest that the def does not have."""
        has = "only nest 0" if count == 1 else f"nests 0 to {count - 1}"
        return f"there is no nest {len(self.nests) - 1}: {name} has {has if count else 'none'}"

    def with_nest(self, position: int, options: NestOptions) -> MappingOptions:
        """These options with the choices of one nest replaced."""
        _position(position)
        if not isinstance(options, NestOptions):
            raise OptionsError(f"nest: must be NestOptions, not {kind_of(options)}")
        nests = list(self.nests) + [_OPEN] * (position + 1 - len(self.nests))
        nests[position] = options
        return replace(self, nests=tuple(nests))

    def nest(self, position: int) -> NestSelection:
        """One nest, to refine it: ``options.nest(1).tile(32, 32)`` returns new options."""
        return NestSelection(self, _position(position))

    def merged(self, merge: bool = True) -> MappingOptions:
        """Run dimensions that are adjacent in memory as one."""
        return replace(self, merge=merge)

    def _with(self, **choices: Any) -> MappingOptions:
        return replace(self, default=replace(self.default, **choices))

    def as_dict(self) -> dict[str, Any]:
        """The options as JSON data, without choices that were not made."""
        data: dict[str, Any] = {"preset": self.preset}
        if self.merge is not None:
            data["merge"] = self.merge
        if self.default != _OPEN:
            data["default"] = self.default.as_dict()
        if self.nests:
            data["nests"] = [n.as_dict() for n in self.nests]
        return data

    def to_json(self) -> str:
        """Canonical JSON: equal options give equal text."""
        return json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_dict(cls, data: object) -> MappingOptions:
        """The inverse of ``as_dict``. Raises ``OptionsError`` for any other data."""
        if not isinstance(data, Mapping):
            raise OptionsError(f"options: must be an object with keys {', '.join(_KEYS)}")
        check_keys(data, _KEYS, "options")
        preset = data.get("preset", "naive")
        if not isinstance(preset, str):
            raise OptionsError(f"preset: must be one of {', '.join(PRESETS)}: {preset!r}")
        nests = data.get("nests", [])
        if not isinstance(nests, list):
            raise OptionsError("nests: must be a list of objects")
        return cls(
            preset,
            NestOptions.from_dict(data.get("default", {}), "default"),
            tuple(NestOptions.from_dict(n, f"nests[{i}]") for i, n in enumerate(nests)),
            data.get("merge"),
        )

    @classmethod
    def from_json(cls, text: str) -> MappingOptions:
        """The inverse of ``to_json``. Raises ``OptionsError`` for any other text."""
        try:
            data = json.loads(text, object_pairs_hook=_once)
        except (ValueError, RecursionError, TypeError) as error:
            raise OptionsError(f"options: not valid JSON: {error}") from None
        return cls.from_dict(data)

    def __str__(self) -> str:
        return self.to_json()

    def __repr__(self) -> str:
        """The calls that make them."""
        calls = [f"MappingOptions({self.preset!r})", *self.default.calls()]
        if self.merge is not None:
            calls.append(f"merged({self.merge})")
        for position, own in enumerate(self.nests):
            calls += [f"nest({position}).{call}" for call in own.calls()]
        return ".".join(calls)

    def _repr_html_(self) -> str:
        return markup.shown(self._html_table_())

    def _html_table_(self) -> markup.Markup:
        """The choices made, as a table. Those of a nest to do without something share a row."""
        rows = [("preset", self.preset, "")]
        if self.merge is not None:
            rows.append(("merge", str(self.merge), ""))
        for k, options in enumerate((self.default, *self.nests)):
            nest, made = f"nest {k - 1}" if k else "every nest", options.made()
            rows += [(name, str(value), nest) for name, value in made.items() if value]
            without = [name for name, value in made.items() if not value]
            if without:
                rows.append(("no", ", ".join(without), nest))
        return markup.table(("option", "value", "of"), (markup.table_row(*row) for row in rows))


DEFAULT = MappingOptions("mlp")
"""What is used when nothing is known: tiles and vectors where they apply."""
_KEYS = ("preset", "default", "nests", "merge")


@dataclass(frozen=True, slots=True)
class NestSelection(OptionMethods):
    """One nest of some options; every method gives the options with that nest refined."""

    options: MappingOptions
    position: int

    def _with(self, **choices: Any) -> MappingOptions:
        own = NestOptions(**choices).over(self.options.own(self.position))
        return self.options.with_nest(self.position, own)


def _position(value: object) -> int:
    index = integer(value)
    if index is None or not 0 <= index < MAX_NESTS:
        raise OptionsError(f"nest: position must be from 0 to {MAX_NESTS - 1}: {shown(value)}")
    return index


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, in which each key stands once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise OptionsError(f"options: the key {twice!r} appears twice in one object")
    return found
