"""How a def is mapped to a machine: data, checked when it is made.

``MappingOptions`` holds a preset's name, choices for all nests (``default``) and choices for
single nests (``nests``, by position). A choice that is None is left to ``default``, then to the
preset. Options are honoured or refused when a schedule is made, before anything is compiled.

``NestOptions`` is the table of options: an option is a field there and a method in
``OptionMethods``. What is checked, read and written, refused on a device that has nothing for it,
left off where a nest cannot have it, and explained on a search's page follows from these.
"""

from __future__ import annotations

import functools
import json
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from tcl.codegen.common.errors import OptionsError, UnknownPresetError
from tcl.codegen.options.kinds import (
    MAX_RANK,
    Count,
    Dimensions,
    Flag,
    Kind,
    Lanes,
    Permutation,
    Sizes,
    integer,
)
from tcl.grammar.shown import kind_of, shown
from tcl.html import notebook
from tcl.html.tables import row, table

PRESETS = ("naive", "pointwise", "mlp", "conv")
"""Names that ``MappingOptions`` takes. ``naive`` is the plain loop nest."""

MAX_NESTS = 10_000
_MAX_SIZE = 2**31 - 1

Device = Literal["CPU", "GPU"]
_NOT_ON_A_CPU: dict[Device, str] = {"CPU": "only a GPU has a use for it, this is a CPU"}


@dataclass(frozen=True, slots=True)
class Option:
    """What there is to know of an option, beside its name, type and meaning."""

    kind: Kind
    """Its values."""
    by_dimension: bool
    """Whether a value means other points where dimensions are merged."""
    followed: bool
    """Whether a nest that runs in the loops of another one has the same there."""
    refused: Mapping[Device, str]
    """Why a device has nothing for it, where that is so."""
    knobs: Mapping[str, str]
    """What a search's knobs for it decide: by the last part of their names, in a sentence. Without
    any, neither searches nor presets choose it."""


def _option(
    kind: Kind,
    *,
    by_dimension: bool = True,
    followed: bool = False,
    refused: Mapping[Device, str] | None = None,
    **knobs: str,
) -> Any:
    """A field for an option that is left open."""
    row = Option(kind, by_dimension, followed, refused or {}, knobs)
    return field(default=None, metadata={"option": row})


@dataclass(frozen=True, slots=True)
class NestOptions:
    """Choices for one nest. Dimensions are counted output indices first, then reduction
    indices in their order of appearance.

    Raises ``OptionsError`` for values that no nest could honour.
    """

    tile: tuple[int, ...] | None = _option(
        Sizes(0, _MAX_SIZE, "sizes must be from 0 (untiled) to {}"),
        followed=True,
        tile="points of this dimension in a tile, the part of it that is worked on at a time",
    )
    """Points per tile, one size per leading dimension; 0 or a missing size leaves it untiled."""
    order: tuple[int, ...] | None = _option(
        Permutation(),
        followed=True,
        order="order of the loops over tiles, outermost first; 0 is the first dimension of the "
        "nest",
    )
    """Loop order over tiles: a permutation of the dimensions; () is the natural order."""
    inner_order: tuple[int, ...] | None = _option(
        Permutation(), followed=True, inner_order="order of the loops inside a tile, likewise"
    )
    """Loop order inside a tile, likewise."""
    vectorize: tuple[int, int] | None = _option(
        Lanes(),
        followed=True,
        vector="the dimension along which vectors run",
        lanes="points that one vector instruction computes; 1 is scalar code",
    )
    """(dimension, lanes); dimension -1 is the last output dimension; 1 lane is scalar code."""
    register: tuple[int, ...] | None = _option(
        Sizes(0, 64, "sizes must be from 0 (a loop) to {}", nothing=1),
        followed=True,
        register="points of each dimension whose results stay in registers; on a GPU, of this one",
        row="dimensions of the register tile: the one for its rows, then the one for its columns",
        unroll="turns of the reduction that are written out one after the other",
    )
    """Points that are written out, one size per leading dimension, so that each has a register:
    vectors of the vectorised dimension, points of another, an unroll factor of a reduction.
    0, 1 or a missing size leaves a dimension a loop."""
    stage: tuple[int, ...] | None = _option(
        Sizes(-1, MAX_RANK, "levels must be from -1 to {}", per="operand", nothing=-1),
        stage="loops outside of which this operand (counted from 0) is copied to where it is read "
        "fast: packed in the caches, or in a GPU's shared memory; 0 does not copy it",
    )
    """Per operand, in order of appearance: how many loops are outside of its being copied to where
    the inner loops read it in order, those over chunks counting as one; -1 or a missing level
    does not copy it."""
    chunk: tuple[int, ...] | None = _option(
        Sizes(0, _MAX_SIZE, "sizes must be from 0 (whole) to {}", per="result"),
        chunk="points of this dimension in a chunk; threads share chunks among themselves",
        steps="GPU: turns of a loop along this dimension that one block takes",
    )
    """Points per chunk that threads share among themselves, one size per leading output
    dimension; 0 or a missing size leaves it whole."""
    fuse: bool | None = _option(
        Flag(),
        by_dimension=False,
        fuse="1: the nest shares its chunks with the one before, and runs chunk by chunk after it",
    )
    """Whether the nest shares its chunks with the nest before it: chunk by chunk, one nest runs
    after the other."""
    stream: bool | None = _option(
        Flag(),
        by_dimension=False,
        refused={"GPU": "a GPU has no stores past its caches here"},
        stream="1: results are written past the caches",
    )
    """Whether results are written past the caches, which pays where they do not fit there and are
    not read again soon."""
    prefetch: tuple[int, ...] | None = _option(
        Sizes(0, 1 << 30, "distances must be from 0 (none) to {} bytes", per="operand"),
        by_dimension=False,
        refused={"GPU": "threads of a GPU fetch nothing ahead"},
        prefetch="bytes ahead of this operand (counted from 0) that memory is asked for; 0: none",
    )
    """Per operand, in order of appearance: every vector that is read asks memory for what lies so
    many bytes after it; 0 or a missing distance asks for nothing."""
    threads: tuple[int, ...] | None = _option(
        Sizes(0, 1024, "sizes must be from 0 (none of its own) to {}", nothing=1),
        refused=_NOT_ON_A_CPU,
        threads="GPU: threads of a block along this dimension",
        block="GPU: threads of a block",
    )
    """GPU: threads of a block, one size per leading dimension; 0, 1 or a missing size gives a
    dimension none of its own."""
    split: tuple[int, ...] | None = _option(
        Sizes(0, _MAX_SIZE, "parts must be from 0 (not split) to {}", nothing=1),
        refused=_NOT_ON_A_CPU,
        split="GPU: parts of a reduction that blocks share among themselves",
    )
    """GPU: parts of a reduction that blocks share among themselves, one number per leading
    dimension, combined by a nest of their own; 0, 1 or a missing number does not split."""
    buffers: int | None = _option(
        Count(8),
        by_dimension=False,
        refused=_NOT_ON_A_CPU,
        buffers="GPU: copies of each panel, so that one is filled while another one is read",
    )
    """GPU: copies of each panel that is filled in a loop, so that one can be filled while another
    one is read. Without such a panel there is nothing to copy."""
    mma: tuple[int, ...] | None = _option(
        Dimensions(),
        followed=True,
        mma="GPU: 1: tensor cores multiply; CPU: dimensions of the rows, columns and the reduction "
        "that the matrix unit multiplies along",
        fragments="CPU: rows and columns of a register tile, in fragments of the matrix unit",
    )
    """The dimensions that a GPU's tensor cores, or a CPU's matrix unit, multiply along: rows,
    columns, and, where there is a reduction, that; () uses none. On a GPU, factors of float32 are
    rounded to tf32."""
    chunk_order: tuple[int, ...] | None = _option(Permutation())
    """Order of the loops over chunks, and so which chunks are worked on one after the other: a
    permutation of the dimensions; () is the natural order. Nests that share chunks have one."""
    dot: tuple[int, ...] | None = _option(
        Sizes(0, 4, "points must be from 0 (one by one) to {}", nothing=1),
        followed=True,
        refused={"GPU": "a GPU multiplies so by its tensor cores: use mma"},
        dot="CPU: points of this reduction that one instruction multiplies and adds up",
    )
    """CPU: points of a reduction that one instruction multiplies and adds up, one number per
    leading dimension: four of 8-bit integers, two of 16-bit numbers, where the processor has such
    an instruction; 0, 1 or a missing number adds up one after the other."""
    peel: bool | None = _option(
        Flag(),
        by_dimension=False,
        refused={"GPU": "a GPU writes what its threads have as it lies"},
        peel="1: vectors begin where what is written lies on a boundary of a vector, or of a line "
        "of the cache; points before and behind these are done apart",
    )
    """Whether the loop along the lanes begins where what is written lies on a boundary, so that no
    vector that is written lies in two lines of the cache, wherever the array begins: of a vector,
    or, with ``stream``, of a line. Points before and behind these are done apart."""

    skip: bool | None = _option(
        Flag(),
        by_dimension=False,
        refused={"GPU": "threads of a GPU run side by side, and wait for each other"},
        skip="1: a reduction goes through the points alone at which its condition holds, of which "
        "lists are made before",
    )
    """Whether a reduction of what is under a condition leaves out the points at which that does not
    hold: lists of the others are made first, once for all that reads them."""

    def __post_init__(self) -> None:
        for key, value in self.made().items():
            object.__setattr__(self, key, OPTIONS[key].kind.checked(key, value))

    def made(self) -> dict[str, Any]:
        """The choices made, by name."""
        pairs = ((key, getattr(self, key)) for key in OPTIONS)
        return {key: value for key, value in pairs if value is not None}

    def complete_on(self, device: Device) -> bool:
        """Whether every choice is made that a preset makes for such a device."""
        return None not in _preset_choices(device)(self)

    @property
    def beyond_knobs(self) -> bool:
        """Whether something is asked for that no search has a knob for."""
        made = self.made().items()
        return any(OPTIONS[key].kind.asks(value) for key, value in made if not OPTIONS[key].knobs)

    def over(self, other: NestOptions) -> NestOptions:
        """These choices, with ``other``'s where this one has none."""
        return replace(other, **self.made())

    def check_on(self, device: Device, where: str) -> None:
        """``OptionsError`` if something is asked for that such a device has nothing for.
        ``where``: what the choices are for, as ``nest s0``."""
        for key, value in self.made().items():
            option = OPTIONS[key]
            if device in option.refused and option.kind.asks(value):
                raise OptionsError(f"{key}: {where}: {option.refused[device]}")

    def with_leading(self) -> NestOptions:
        """The same choices for a nest that has one more dimension before its others, about which
        they say nothing."""
        made = self.made().items()
        return NestOptions(**{key: OPTIONS[key].kind.with_leading(value) for key, value in made})

    def without_leading(self) -> NestOptions:
        """The inverse of ``with_leading``, whatever is said about the first dimension."""
        made = self.made().items()
        return NestOptions(**{key: OPTIONS[key].kind.without_leading(value) for key, value in made})

    def of_first(self, count: int) -> NestOptions:
        """The same choices for a nest that has the first so many of the dimensions alone, as one
        has that goes along with another one's results."""
        made = self.made().items()
        return NestOptions(**{key: OPTIONS[key].kind.of_first(value, count) for key, value in made})

    def as_dict(self) -> dict[str, Any]:
        """The choices made, as JSON data."""
        made = self.made().items()
        return {key: list(value) if isinstance(value, tuple) else value for key, value in made}

    @staticmethod
    def from_dict(data: object, where: str = "nest") -> NestOptions:
        """The inverse of ``as_dict``; ``OptionsError`` for anything else."""
        if not isinstance(data, Mapping):
            raise OptionsError(f"{where}: must be an object with keys {', '.join(OPTIONS)}")
        _known(data, tuple(OPTIONS), where)
        return NestOptions(
            **{key: OPTIONS[key].kind.from_json(f"{where}.{key}", data[key]) for key in data}
        )


OPTIONS: dict[str, Option] = {f.name: f.metadata["option"] for f in fields(NestOptions)}
"""By name, in the order in which they stand above."""


@functools.cache
def _preset_choices(device: Device) -> Callable[[NestOptions], tuple[Any, ...]]:
    """What gives the choices that a preset makes for such a device."""
    names = (k for k, option in OPTIONS.items() if option.knobs and device not in option.refused)
    return operator.attrgetter(*names)


PLAIN = NestOptions(**{key: option.kind.neutral for key, option in OPTIONS.items() if option.knobs})
"""Every choice that a preset makes, and none that asks for anything."""


class OptionMethods(ABC):
    """A method for each option of a nest. Every one returns new options. Several values are given
    one by one, ``tile(64, 64, 32)``, or as one list, ``tile([64, 64, 32])``."""

    __slots__ = ()

    @abstractmethod
    def _with(self, **choices: Any) -> MappingOptions:
        """The options, with these choices made."""

    def chunk(self, *sizes: int | Sequence[int]) -> MappingOptions:
        """Divide the results into chunks of so many points for threads, or for the blocks of a
        GPU; 0 leaves a dimension whole."""
        return self._with(chunk=sizes)

    def chunk_order(self, *positions: int | Sequence[int]) -> MappingOptions:
        """Order the loops over chunks, outermost first."""
        return self._with(chunk_order=positions)

    def fuse(self, fuse: bool = True) -> MappingOptions:
        """Share chunks with the nest before, and run chunk by chunk after it."""
        return self._with(fuse=fuse)

    def tile(self, *sizes: int | Sequence[int]) -> MappingOptions:
        """Work on tiles of so many points of each dimension; 0 leaves a dimension untiled."""
        return self._with(tile=sizes)

    def order(self, *positions: int | Sequence[int]) -> MappingOptions:
        """Order the loops over tiles, outermost first."""
        return self._with(order=positions)

    def inner_order(self, *positions: int | Sequence[int]) -> MappingOptions:
        """Order the loops inside a tile, outermost first."""
        return self._with(inner_order=positions)

    def vectorize(self, width: int, dimension: int = -1) -> MappingOptions:
        """Run ``width`` points of a dimension at once; dimension -1 is the last output's."""
        return self._with(vectorize=(dimension, width))

    def register(self, *sizes: int | Sequence[int]) -> MappingOptions:
        """Keep so many points of each dimension in registers; a reduction is unrolled."""
        return self._with(register=sizes)

    def stage(self, *levels: int | Sequence[int]) -> MappingOptions:
        """Copy each operand inside of so many loops to where it is read in order; -1 does not."""
        return self._with(stage=levels)

    def stream(self, stream: bool = True) -> MappingOptions:
        """Write results past the caches."""
        return self._with(stream=stream)

    def peel(self, peel: bool = True) -> MappingOptions:
        """Begin vectors where what is written lies on a boundary."""
        return self._with(peel=peel)

    def skip(self, skip: bool = True) -> MappingOptions:
        """Go through the points alone at which the condition of a reduction holds."""
        return self._with(skip=skip)

    def prefetch(self, *ahead: int | Sequence[int]) -> MappingOptions:
        """Ask for each operand so many bytes ahead; 0 asks for nothing."""
        return self._with(prefetch=ahead)

    def threads(self, *sizes: int | Sequence[int]) -> MappingOptions:
        """Give dimensions so many threads of a GPU's block."""
        return self._with(threads=sizes)

    def split(self, *parts: int | Sequence[int]) -> MappingOptions:
        """Share reductions among so many blocks of a GPU."""
        return self._with(split=parts)

    def buffers(self, count: int) -> MappingOptions:
        """Keep so many copies of each panel in a GPU's shared memory."""
        return self._with(buffers=count)

    def dot(self, *points: int | Sequence[int]) -> MappingOptions:
        """Multiply and add up so many points of a reduction by one instruction of a CPU."""
        return self._with(dot=points)

    def mma(self, *dimensions: int | Sequence[int]) -> MappingOptions:
        """Multiply on a GPU's tensor cores, or a CPU's matrix unit, along these dimensions."""
        return self._with(mma=dimensions)


@dataclass(frozen=True, slots=True)
class MappingOptions(OptionMethods):
    """How to map a def: ``MappingOptions("mlp")``, refined by ``.tile(64, 64, 32)`` and the like.

    Every method returns new options; those of ``OptionMethods`` are about every nest, as far as it
    can. Raises ``OptionsError`` for unknown presets and bad values.
    """

    preset: str = "naive"
    default: NestOptions = NestOptions()
    """Choices for every nest. A nest takes the leading tile sizes that it has dimensions for,
    and leaves off an order of another rank or a vectorisation that it cannot have. What no nest
    can have is refused."""
    nests: tuple[NestOptions, ...] = ()
    """Choices for single nests, by position. They have to fit the nest."""
    merge: bool | None = None
    """Whether dimensions that lie together in memory in all that a def does run as one: the last
    of them has all points, those before it one. None: in ``mlp`` and ``conv``, where nothing is
    said about a dimension by its position."""

    def __post_init__(self) -> None:
        if not isinstance(self.preset, str):
            names = ", ".join(PRESETS)
            raise OptionsError(f"a preset is one of the names {names}, not {kind_of(self.preset)}")
        if self.preset not in PRESETS:
            known = ", ".join(PRESETS)
            raise UnknownPresetError(f"unknown preset {self.preset!r}: use one of {known}")
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
        while nests and nests[-1] == NestOptions():  # so that equal options compare equal
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
        """The choices made for the nest at this position alone."""
        index = _position(position)
        return self.nests[index] if index < len(self.nests) else NestOptions()

    def no_nest(self, name: str, count: int) -> str:
        """What is wrong with choices for a nest that a def of so many has not."""
        has = "only nest 0" if count == 1 else f"nests 0 to {count - 1}"
        return f"there is no nest {len(self.nests) - 1}: {name} has {has if count else 'none'}"

    def with_nest(self, position: int, options: NestOptions) -> MappingOptions:
        """These options with the choices of one nest replaced."""
        _position(position)
        if not isinstance(options, NestOptions):
            raise OptionsError(f"nest: must be NestOptions, not {kind_of(options)}")
        nests = list(self.nests) + [NestOptions()] * (position + 1 - len(self.nests))
        nests[position] = options
        return replace(self, nests=tuple(nests))

    def nest(self, position: int) -> NestSelection:
        """One nest, to be refined: ``options.nest(1).tile(32, 32)`` gives new options."""
        return NestSelection(self, _position(position))

    def merged(self, merge: bool = True) -> MappingOptions:
        """Run dimensions that lie together in memory as one."""
        return replace(self, merge=merge)

    def _with(self, **choices: Any) -> MappingOptions:
        return replace(self, default=replace(self.default, **choices))

    def as_dict(self) -> dict[str, Any]:
        """The options as JSON data, without what was left open."""
        data: dict[str, Any] = {"preset": self.preset}
        if self.merge is not None:
            data["merge"] = self.merge
        if self.default != NestOptions():
            data["default"] = self.default.as_dict()
        if self.nests:
            data["nests"] = [n.as_dict() for n in self.nests]
        return data

    def to_json(self) -> str:
        """Canonical JSON: equal options give equal text."""
        return json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_dict(cls, data: object) -> MappingOptions:
        """The inverse of ``as_dict``; ``OptionsError`` for anything else."""
        if not isinstance(data, Mapping):
            raise OptionsError(f"options: must be an object with keys {', '.join(_KEYS)}")
        _known(data, _KEYS, "options")
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
        """The inverse of ``to_json``; ``OptionsError`` for anything else."""
        try:
            data = json.loads(text, object_pairs_hook=_once)
        except (ValueError, RecursionError, TypeError) as error:
            raise OptionsError(f"options: not valid JSON: {error}") from None
        return cls.from_dict(data)

    def __str__(self) -> str:
        return self.to_json()

    def _repr_html_(self) -> str:
        made = [("preset", self.preset, "")]
        if self.merge is not None:
            made.append(("merge", str(self.merge), ""))
        for k, options in enumerate((self.default, *self.nests)):
            nest = f"nest {k - 1}" if k else "every nest"
            made += [(name, str(value), nest) for name, value in options.made().items()]
        return notebook.shown(table(("option", "value", "of"), (row(*each) for each in made)))


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
    """The position of a nest."""
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
        raise OptionsError(f"options: the key {twice!r} stands twice in one object")
    return found


def _known(data: Mapping[Any, Any], keys: tuple[str, ...], where: str) -> None:
    for key in data:
        if key not in keys:
            raise OptionsError(f"{where}: unknown key {key!r}: use {', '.join(keys)}")
