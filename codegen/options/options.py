"""How a def is mapped to a machine: data, checked when it is made.

``MappingOptions`` holds a preset's name, choices for all nests (``default``) and choices for
single nests (``nests``, by position). A choice that is None is left to ``default``, then to the
preset. Options are honoured or refused when a schedule is made, before anything is compiled.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

from tcl.codegen.common.errors import OptionsError
from tcl.grammar.shown import kind_of, shown

PRESETS = ("naive", "pointwise", "mlp", "conv")
"""Names that ``MappingOptions`` takes. ``naive`` is the plain loop nest."""

MAX_TILE = 2**31 - 1
MAX_REGISTER = 64
WIDTHS = (1, 2, 4, 8, 16, 32, 64)
"""Lanes a loop may be vectorised to; 1 says not to."""
MAX_NESTS = 10_000
MAX_RANK = 64
MAX_AHEAD = 1 << 30
MAX_THREADS = 1024
MAX_BUFFERS = 8


@dataclass(frozen=True, slots=True)
class NestOptions:
    """Choices for one nest. Dimensions are counted output indices first, then reduction
    indices in their order of appearance.

    Raises ``OptionsError`` for values that no nest could honour.
    """

    tile: tuple[int, ...] | None = None
    """Points per tile, one size per leading dimension; 0 or a missing size leaves it untiled."""
    order: tuple[int, ...] | None = None
    """Loop order over tiles: a permutation of the dimensions; () is the natural order."""
    inner_order: tuple[int, ...] | None = None
    """Loop order inside a tile, likewise."""
    vectorize: tuple[int, int] | None = None
    """(dimension, lanes); dimension -1 is the last output dimension; 1 lane is scalar code."""
    register: tuple[int, ...] | None = None
    """Points that are written out, one size per leading dimension, so that each has a register:
    vectors of the vectorised dimension, points of another, an unroll factor of a reduction.
    0, 1 or a missing size leaves a dimension a loop."""
    stage: tuple[int, ...] | None = None
    """Per operand, in order of appearance: how many loops are outside of its being copied to where
    the inner loops read it in order, those over chunks counting as one; -1 or a missing level
    does not copy it."""
    chunk: tuple[int, ...] | None = None
    """Points per chunk that threads share among themselves, one size per leading output
    dimension; 0 or a missing size leaves it whole."""
    fuse: bool | None = None
    """Whether the nest shares its chunks with the nest before it: chunk by chunk, one nest runs
    after the other."""
    stream: bool | None = None
    """Whether results are written past the caches, which pays where they do not fit there and are
    not read again soon."""
    prefetch: tuple[int, ...] | None = None
    """Per operand, in order of appearance: every vector that is read asks memory for what lies so
    many bytes after it; 0 or a missing distance asks for nothing."""
    threads: tuple[int, ...] | None = None
    """GPU: threads of a block, one size per leading dimension; 0, 1 or a missing size gives a
    dimension none of its own."""
    split: tuple[int, ...] | None = None
    """GPU: parts of a reduction that blocks share among themselves, one number per leading
    dimension, combined by a nest of their own; 0, 1 or a missing number does not split."""
    buffers: int | None = None
    """GPU: copies of each panel that is filled in a loop, so that one can be filled while another
    one is read. Without such a panel there is nothing to copy."""
    mma: tuple[int, ...] | None = None
    """GPU: the dimensions that tensor cores multiply along: rows, columns, and, where there is a
    reduction, that; () uses none. Factors of float32 are rounded to tf32."""

    def __post_init__(self) -> None:
        for key, (least, most, words) in _SIZES.items():
            value = getattr(self, key)
            if value is not None:
                sizes = _ints(key, value)
                if any(not least <= size <= most for size in sizes):
                    raise OptionsError(f"{key}: {words.format(most)}: {shown(sizes)}")
                object.__setattr__(self, key, sizes)
        if self.mma and (len(self.mma) not in (2, 3) or len(set(self.mma)) != len(self.mma)):
            raise OptionsError(f"mma: must be two or three different dimensions: {shown(self.mma)}")
        if self.buffers is not None:
            buffers = _int(self.buffers)
            if buffers is None or not 1 <= buffers <= MAX_BUFFERS:
                raise OptionsError(
                    f"buffers: must be from 1 to {MAX_BUFFERS}: {shown(self.buffers)}"
                )
            object.__setattr__(self, "buffers", buffers)
        for key in _FLAGS:
            flag = getattr(self, key)
            if flag is not None and not isinstance(flag, bool):
                raise OptionsError(f"{key}: must be true or false: {shown(flag)}")
        for key in ("order", "inner_order"):
            value = getattr(self, key)
            if value is not None:
                permutation = _ints(key, value)
                if sorted(permutation) != list(range(len(permutation))):
                    raise OptionsError(
                        f"{key}: must name each dimension from 0 to {len(permutation) - 1} once, "
                        f"or be empty: {shown(permutation)}"
                    )
                object.__setattr__(self, key, permutation)
        if self.vectorize is not None:
            object.__setattr__(self, "vectorize", _vectorize(self.vectorize))

    @property
    def complete(self) -> bool:
        """Whether every choice is made that a CPU has."""
        return all(getattr(self, key) is not None for key in _NEST_KEYS if key not in GPU_KEYS)

    def over(self, other: NestOptions) -> NestOptions:
        """These choices, with ``other``'s where this one has none."""
        made = {key: getattr(self, key) for key in _NEST_KEYS if getattr(self, key) is not None}
        return replace(other, **made)

    def as_dict(self) -> dict[str, Any]:
        """The choices made, as JSON data."""
        pairs = ((key, getattr(self, key)) for key in _NEST_KEYS)
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in pairs
            if value is not None
        }

    @staticmethod
    def from_dict(data: object, where: str = "nest") -> NestOptions:
        """The inverse of ``as_dict``; ``OptionsError`` for anything else."""
        if not isinstance(data, Mapping):
            raise OptionsError(f"{where}: must be an object with keys {', '.join(_NEST_KEYS)}")
        _known(data, _NEST_KEYS, where)
        return NestOptions(**{key: _json(key, data[key], f"{where}.{key}") for key in data})


_SIZES = {
    "tile": (0, MAX_TILE, "sizes must be from 0 (untiled) to {}"),
    "chunk": (0, MAX_TILE, "sizes must be from 0 (whole) to {}"),
    "register": (0, MAX_REGISTER, "sizes must be from 0 (a loop) to {}"),
    "stage": (-1, MAX_RANK, "levels must be from -1 to {}"),
    "prefetch": (0, MAX_AHEAD, "distances must be from 0 (none) to {} bytes"),
    "threads": (0, MAX_THREADS, "sizes must be from 0 (none of its own) to {}"),
    "split": (0, MAX_TILE, "parts must be from 0 (not split) to {}"),
    "mma": (0, MAX_RANK - 1, "positions must be from 0 to {}"),
}
"""The least and the most, and what is said of others, of what is a list of integers."""
_FLAGS = ("fuse", "stream")
GPU_KEYS = ("threads", "split", "buffers", "mma")
"""Choices that only a GPU has."""
_BY_DIMENSION = (
    *("tile", "order", "inner_order", "vectorize", "register", "stage", "chunk"),
    *("threads", "split", "mma"),
)
"""Choices that mean other points where dimensions are merged."""
_NEST_KEYS = (*_BY_DIMENSION, "prefetch", *_FLAGS, "buffers")


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """How to map a def: ``MappingOptions("mlp")``, refined by ``.tile(64, 64, 32)`` and the like.

    Every method returns new options. Raises ``OptionsError`` for unknown presets and bad values.
    """

    preset: str = "naive"
    default: NestOptions = NestOptions()
    """Choices for every nest. A nest takes the leading tile sizes that it has dimensions for,
    and leaves off an order of another rank or a vectorisation that it cannot have."""
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
            raise OptionsError(f"unknown preset {self.preset!r}: use one of {', '.join(PRESETS)}")
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
        said = any(getattr(n, key) for n in (self.default, *self.nests) for key in _BY_DIMENSION)
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

    def chunk(self, *sizes: int) -> MappingOptions:
        """Divide every nest into chunks for threads; 0 leaves a dimension whole."""
        return replace(self, default=replace(self.default, chunk=sizes))

    def fuse(self, fuse: bool = True) -> MappingOptions:
        """Join every nest that can be to the one before it."""
        return replace(self, default=replace(self.default, fuse=fuse))

    def tile(self, *sizes: int) -> MappingOptions:
        """Tile every nest; 0 leaves a dimension untiled."""
        return replace(self, default=replace(self.default, tile=sizes))

    def order(self, *positions: int) -> MappingOptions:
        """Order the loops over tiles, in every nest of this rank."""
        return replace(self, default=replace(self.default, order=positions))

    def inner_order(self, *positions: int) -> MappingOptions:
        """Order the loops inside a tile, in every nest of this rank."""
        return replace(self, default=replace(self.default, inner_order=positions))

    def vectorize(self, width: int, dimension: int = -1) -> MappingOptions:
        """Run ``width`` points of a dimension at once, in every nest that allows it."""
        return replace(self, default=replace(self.default, vectorize=(dimension, width)))

    def register(self, *sizes: int) -> MappingOptions:
        """Keep this many points of each dimension in registers, in every nest that allows it."""
        return replace(self, default=replace(self.default, register=sizes))

    def stage(self, *levels: int) -> MappingOptions:
        """Copy operands inside of this many loops over tiles, in every nest that allows it."""
        return replace(self, default=replace(self.default, stage=levels))

    def stream(self, stream: bool = True) -> MappingOptions:
        """Write results past the caches, in every nest that can."""
        return replace(self, default=replace(self.default, stream=stream))

    def merged(self, merge: bool = True) -> MappingOptions:
        """Run dimensions that lie together in memory as one."""
        return replace(self, merge=merge)

    def prefetch(self, *ahead: int) -> MappingOptions:
        """Ask for operands this many bytes ahead, in every nest that allows it."""
        return replace(self, default=replace(self.default, prefetch=ahead))

    def threads(self, *sizes: int) -> MappingOptions:
        """Give dimensions so many threads of a block, in every nest."""
        return replace(self, default=replace(self.default, threads=sizes))

    def split(self, *parts: int) -> MappingOptions:
        """Share reductions among so many blocks, in every nest that has them."""
        return replace(self, default=replace(self.default, split=parts))

    def buffers(self, count: int) -> MappingOptions:
        """Keep so many copies of each panel, in every nest."""
        return replace(self, default=replace(self.default, buffers=count))

    def mma(self, *dimensions: int) -> MappingOptions:
        """Multiply on tensor cores along these dimensions, in every nest that can."""
        return replace(self, default=replace(self.default, mma=dimensions))

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


_KEYS = ("preset", "default", "nests", "merge")


@dataclass(frozen=True, slots=True)
class NestSelection:
    """One nest of some options; every method gives the options with that nest refined."""

    options: MappingOptions
    position: int

    def chunk(self, *sizes: int) -> MappingOptions:
        """As ``MappingOptions.chunk``, for this nest."""
        return self._with(chunk=sizes)

    def fuse(self, fuse: bool = True) -> MappingOptions:
        """As ``MappingOptions.fuse``, for this nest."""
        return self._with(fuse=fuse)

    def tile(self, *sizes: int) -> MappingOptions:
        """As ``MappingOptions.tile``, for this nest."""
        return self._with(tile=sizes)

    def order(self, *positions: int) -> MappingOptions:
        """As ``MappingOptions.order``, for this nest."""
        return self._with(order=positions)

    def inner_order(self, *positions: int) -> MappingOptions:
        """As ``MappingOptions.inner_order``, for this nest."""
        return self._with(inner_order=positions)

    def vectorize(self, width: int, dimension: int = -1) -> MappingOptions:
        """As ``MappingOptions.vectorize``, for this nest."""
        return self._with(vectorize=(dimension, width))

    def register(self, *sizes: int) -> MappingOptions:
        """As ``MappingOptions.register``, for this nest."""
        return self._with(register=sizes)

    def stage(self, *levels: int) -> MappingOptions:
        """As ``MappingOptions.stage``, for this nest."""
        return self._with(stage=levels)

    def stream(self, stream: bool = True) -> MappingOptions:
        """As ``MappingOptions.stream``, for this nest."""
        return self._with(stream=stream)

    def prefetch(self, *ahead: int) -> MappingOptions:
        """As ``MappingOptions.prefetch``, for this nest."""
        return self._with(prefetch=ahead)

    def threads(self, *sizes: int) -> MappingOptions:
        """As ``MappingOptions.threads``, for this nest."""
        return self._with(threads=sizes)

    def split(self, *parts: int) -> MappingOptions:
        """As ``MappingOptions.split``, for this nest."""
        return self._with(split=parts)

    def buffers(self, count: int) -> MappingOptions:
        """As ``MappingOptions.buffers``, for this nest."""
        return self._with(buffers=count)

    def mma(self, *dimensions: int) -> MappingOptions:
        """As ``MappingOptions.mma``, for this nest."""
        return self._with(mma=dimensions)

    def _with(self, **choices: tuple[int, ...] | int) -> MappingOptions:
        own = NestOptions(**choices).over(self.options.own(self.position))  # type: ignore[arg-type]
        return self.options.with_nest(self.position, own)


def _ints(key: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)) or len(value) > MAX_RANK:
        raise OptionsError(f"{key}: must be a list of up to {MAX_RANK} integers: {shown(value)}")
    found = tuple(map(_int, value))
    if len(value) == 1 and isinstance(value[0], tuple | list):
        inside = ", ".join(map(shown, value[0]))
        raise OptionsError(f"{key}: integers, not a list of them: write .{key}({inside})")
    if None in found:
        raise OptionsError(f"{key}: must be integers: {shown(value)}")
    return tuple(x for x in found if x is not None)


def _int(value: object) -> int | None:
    """The value of an integer of any class, NumPy's too; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # a NumPy array has the method, but refuses
        return None


def _position(value: object) -> int:
    """The position of a nest."""
    index = _int(value)
    if index is None or not 0 <= index < MAX_NESTS:
        raise OptionsError(f"nest: position must be from 0 to {MAX_NESTS - 1}: {shown(value)}")
    return index


def _vectorize(value: object) -> tuple[int, int]:
    pair = _ints("vectorize", value)
    if len(pair) != 2:
        raise OptionsError(f"vectorize: must be (dimension, lanes): {shown(value)}")
    if not -1 <= pair[0] < MAX_RANK:
        raise OptionsError(f"vectorize: dimension must be -1 or a position: {shown(pair[0])}")
    if pair[1] not in WIDTHS:
        allowed = ", ".join(map(str, WIDTHS))
        raise OptionsError(f"vectorize: lanes must be one of {allowed}: {shown(pair[1])}")
    return pair[0], pair[1]


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


def _json(key: str, value: object, where: str) -> Any:
    if key in _FLAGS:
        if not isinstance(value, bool):
            raise OptionsError(f"{where}: must be true or false: {shown(value)}")
        return value
    if key == "buffers":
        if value is None:
            raise OptionsError(f"{where}: must be from 1 to {MAX_BUFFERS}: {shown(value)}")
        return value
    if not isinstance(value, list):
        raise OptionsError(f"{where}: must be a list of integers: {shown(value)}")
    return tuple(value)
