"""The options of a nest: a table of what there is, and choices, checked when they are made.

``NestOptions`` is that table: an option is a field there, and a method in ``OptionMethods``. What
is checked, read and written, refused on a device that has nothing for it, left off where a nest
cannot have it, described to a model and explained on a search's page follows from its row.
"""

from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, Literal

from tcl.codegen.options import kinds
from tcl.common.dataclass import dataclass, replace
from tcl.common.errors import OptionsError

if TYPE_CHECKING:
    from tcl.codegen.options.options import MappingOptions

_MAX_SIZE = 2**31 - 1

Device = Literal["CPU", "GPU"]
_NOT_ON_A_CPU: dict[Device, str] = {"CPU": "only a GPU can use it, and this is a CPU"}


@dataclass(frozen=True, slots=True)
class Option:
    """What there is to know of an option, beside its name, type and meaning."""

    kind: kinds.OptionKind
    """Its values."""
    by_dimension: bool
    """Whether a value means other points where dimensions are merged."""
    followed: bool
    """Whether a nest that runs in the loops of another one has the same there."""
    refused: Mapping[Device, str]
    """Why a device has nothing for it, where that is so."""
    feature: str
    """What its value tells a model of candidates for a CPU, as one number; "" where it tells more,
    see ``tcl.tuner.model.cpu_features``."""
    scaled: bool
    """Whether it is a size of a part of the program, which other sizes of tensors change."""
    knobs: Mapping[str, str]
    """What a search's knobs for it decide: by the last part of their names, in a sentence. Without
    any, neither searches nor presets choose it."""
    gains: Mapping[str, tuple[float, ...]]
    """What a change of one of them has gained alone: the share of the default's time that one to a
    smaller value saves, and one to a larger value, or any one where values have no order; in the
    mean over problems, where one that is no faster saves nothing. The mean of 8,621 changes of 146
    problems on one thread of a Zen 3 core, and of 10,488 changes of 548 on one of a Zen 4 core
    (``benchmarks.alternatives changes``).

    On Zen 4, the best of the first 10 takes 0.966 of the default's time in the mean over problems,
    ordered by what other problems gained there and on Zen 3; by Zen 3 alone 0.967, at random
    0.968."""


def _option(
    kind: kinds.OptionKind,
    *,
    by_dimension: bool = True,
    followed: bool = False,
    refused: Mapping[Device, str] | None = None,
    feature: str = "",
    scaled: bool = False,
    gains: Mapping[str, tuple[float, ...]] | None = None,
    **knobs: str,
) -> Any:
    """A field for an option that is left open."""
    more = feature, scaled, knobs, gains or {}
    row = Option(kind, by_dimension, followed, refused or {}, *more)
    return field(default=None, metadata={"option": row})


@dataclass(frozen=True, slots=True)
class NestOptions:
    """Choices for one nest. Dimensions are counted from 0: first the indices of the output, then
    the reduced indices in order of appearance.

    Raises ``OptionsError`` for values that no nest can have.
    """

    tile: tuple[int, ...] | None = _option(
        kinds.Sizes(0, _MAX_SIZE, "sizes must be from 0 (untiled) to {}"),
        followed=True,
        scaled=True,
        gains={"tile": (0.0046, 0.0062)},
        tile="points of this dimension in a tile",
    )
    """Points per tile, one size per leading dimension; 0 or a missing size: untiled."""
    order: tuple[int, ...] | None = _option(
        kinds.Permutation(),
        followed=True,
        scaled=True,
        gains={"order": (0.008,)},
        order="order of the loops over tiles, outermost first; 0 is the first dimension of the "
        "nest",
    )
    """Order of the loops over tiles: a permutation of the dimensions; (): the natural order."""
    inner_order: tuple[int, ...] | None = _option(
        kinds.Permutation(),
        followed=True,
        scaled=True,
        gains={"inner_order": (0.0041,)},
        inner_order="order of the loops inside a tile, outermost first",
    )
    """Order of the loops inside a tile, in the same way."""
    vectorize: tuple[int, int] | None = _option(
        kinds.VectorLanes(),
        followed=True,
        gains={"vector": (0.0019,), "lanes": (0.003, 0.0085)},
        vector="the dimension of the vector lanes",
        lanes="points that one vector instruction computes; 1 is scalar code",
    )
    """(dimension, lanes). Dimension -1 is the last dimension of the output; 1 lane is scalar
    code."""
    register: tuple[int, ...] | None = _option(
        kinds.Sizes(0, 64, "sizes must be from 0 (a loop) to {}", nothing=1),
        followed=True,
        gains={"register": (0.0036, 0.0134), "row": (0.0016,), "unroll": (0.0083, 0.0099)},
        register="points of each dimension whose results stay in registers; on a GPU, of this one",
        row="dimensions of the register tile: the one for its rows, then the one for its columns",
        unroll="unroll factor of the reduction",
    )
    """Unrolled points whose results stay in registers, one size per leading dimension: vectors of
    the vectorised dimension, points of another, an unroll factor of a reduction. 0, 1 or a missing
    size: not unrolled."""
    stage: tuple[int, ...] | None = _option(
        kinds.Sizes(-1, kinds.MAX_RANK, "levels must be from -1 to {}", per="operand", nothing=-1),
        scaled=True,
        gains={"stage": (0.0044, 0.0046)},
        stage="number of loops outside the copy of this operand (counted from 0): a packed copy "
        "in the caches, or in a GPU's shared memory; 0: no copy",
    )
    """Per operand, in order of appearance: the number of loops outside its copy, which has the
    order in which inner loops read. The loops over chunks count as one. -1 or a missing level: no
    copy."""
    chunk: tuple[int, ...] | None = _option(
        kinds.Sizes(0, _MAX_SIZE, "sizes must be from 0 (whole) to {}", per="result"),
        scaled=True,
        gains={"chunk": (0.0049, 0.004)},
        chunk="points of this dimension in a chunk, the work that a thread takes at a time",
        steps="GPU: iterations of a loop along this dimension in one block",
    )
    """Points per chunk, the work that a thread takes at a time, one size per leading dimension of
    the output; 0 or a missing size: not divided."""
    fuse: bool | None = _option(
        kinds.Flag(),
        by_dimension=False,
        feature="shares chunks with the nest before",
        gains={"fuse": (0.0048,)},
        fuse="1: the nest shares its chunks with the nest before: for each chunk, it runs after "
        "that nest",
    )
    """Whether the nest shares its chunks with the nest before it: for each chunk, one nest runs
    after the other."""
    stream: bool | None = _option(
        kinds.Flag(),
        by_dimension=False,
        refused={"GPU": "stores that bypass the caches are not available on a GPU"},
        feature="results go past the caches",
        gains={"stream": (0.0085,)},
        stream="1: stores bypass the caches",
    )
    """Whether stores bypass the caches. This pays if the results do not fit there and are not read
    again soon."""
    prefetch: tuple[int, ...] | None = _option(
        kinds.Sizes(0, 1 << 30, "distances must be from 0 (none) to {} bytes", per="operand"),
        by_dimension=False,
        refused={"GPU": "prefetch is not available on a GPU"},
        scaled=True,
        gains={"prefetch": (0.0097, 0.0067)},
        prefetch="prefetch distance in bytes for this operand (counted from 0); 0: none",
    )
    """Per operand, in order of appearance: each vector that is read also requests the memory so
    many bytes after it; 0 or a missing distance: no request."""
    threads: tuple[int, ...] | None = _option(
        kinds.Sizes(0, 1024, "sizes must be from 0 (one thread) to {}", nothing=1),
        refused=_NOT_ON_A_CPU,
        threads="GPU: threads of a block along this dimension",
        block="GPU: threads of a block",
    )
    """GPU: threads of a block, one size per leading dimension; 0, 1 or a missing size: one
    thread."""
    split: tuple[int, ...] | None = _option(
        kinds.Sizes(0, _MAX_SIZE, "parts must be from 0 (not split) to {}", nothing=1),
        split="parts of a reduction, for several threads or blocks of a GPU",
    )
    """Parts of a reduction for several threads, or blocks of a GPU, one number per leading
    dimension. Another nest combines them. 0, 1 or a missing number: no split."""
    buffers: int | None = _option(
        kinds.Count(8),
        by_dimension=False,
        refused=_NOT_ON_A_CPU,
        scaled=True,
        buffers="GPU: buffers of each panel, so that one is filled while another is read",
    )
    """GPU: buffers of each panel that is filled in a loop, so that one can be filled while another
    is read. Without such a panel, this has no effect."""
    mma: tuple[int, ...] | None = _option(
        kinds.Dimensions(),
        followed=True,
        feature="the matrix unit computes it",
        mma="GPU: 1: use tensor cores; CPU: the dimensions of the rows, the columns and the "
        "reduction for the matrix unit",
    )
    """The dimensions along which a GPU's tensor cores, or a CPU's matrix unit, multiply: rows,
    columns and, if there is one, the reduction; (): none. On a GPU, float32 factors are rounded to
    tf32."""
    chunk_order: tuple[int, ...] | None = _option(kinds.Permutation(), scaled=True)
    """Order of the loops over chunks: a permutation of the dimensions; (): the natural order. Nests
    that share chunks have one order."""
    dot: tuple[int, ...] | None = _option(
        kinds.Sizes(0, 4, "points must be from 0 (one by one) to {}", nothing=1),
        followed=True,
        refused={"GPU": "a GPU uses its tensor cores for this: use mma"},
        feature="steps in an instruction",
        dot="CPU: points of this reduction that one instruction multiplies and adds",
    )
    """CPU: points of a reduction that one instruction multiplies and adds, one number per leading
    dimension: four for 8-bit integers, two for 16-bit numbers, if the processor has such an
    instruction. 0, 1 or a missing number: one point at a time."""
    peel: bool | None = _option(
        kinds.Flag(),
        by_dimension=False,
        refused={"GPU": "a GPU cannot align stores in this way"},
        feature="loops begin on boundaries",
        scaled=True,
        gains={"peel": (0.0106,)},
        peel="1: vectors begin at addresses of the output that are aligned to a vector or a "
        "cache line; separate code handles the points before and after",
    )
    """Whether the loop along the lanes begins at an aligned address of the output, wherever the
    array begins: aligned to a vector, or with ``stream`` to a cache line. So no stored vector
    crosses a cache line. Separate code handles the points before and after."""

    skip: bool | None = _option(
        kinds.Flag(),
        by_dimension=False,
        refused={"GPU": "threads of a GPU run in step and would wait for each other"},
        feature="goes through listed points",
        gains={"skip": (0.0001,)},
        skip="1: a reduction runs only over the points where its condition holds, from lists "
        "that are made first",
    )
    """Whether a reduction under a condition runs only over the points where the condition holds.
    Lists of these points are made first, once for all results with that condition."""

    def __post_init__(self) -> None:
        for key, value in self.made().items():
            kind = OPTIONS[key].kind
            if value is not kind.neutral:
                object.__setattr__(self, key, kind.checked(key, value))

    def made(self) -> dict[str, Any]:
        """The choices made, by name."""
        pairs = zip(OPTIONS, _CHOICES(self), strict=True)
        return {key: value for key, value in pairs if value is not None}

    def calls(self) -> list[str]:
        """Of the methods of ``OptionMethods`` that make these choices."""
        calls = []
        for key, value in self.made().items():
            values = value if isinstance(value, tuple) else (value,)
            given = reversed(values) if key == "vectorize" else values  # which has a default last
            calls.append(f"{key}({', '.join(map(repr, given))})")
        return calls

    def __repr__(self) -> str:
        made = (f"{key}={value!r}" for key, value in self.made().items())
        return f"NestOptions({', '.join(made)})"

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
        has that is fused with another one's results."""
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
        check_keys(data, tuple(OPTIONS), where)
        return NestOptions(
            **{key: OPTIONS[key].kind.from_json(f"{where}.{key}", data[key]) for key in data}
        )


class OptionMethods(ABC):
    """A method for each option of a nest. Every one returns new options. Several values are given
    one by one, ``tile(64, 64, 32)``, or as one list, ``tile([64, 64, 32])``."""

    __slots__ = ()

    @abstractmethod
    def _with(self, **choices: Any) -> MappingOptions:
        """The options, with these choices made."""

    def chunk(self, *sizes: int | Sequence[int]) -> MappingOptions:
        """Divide the results into chunks of so many points, for threads or for the blocks of a GPU;
        0 leaves a dimension whole."""
        return self._with(chunk=sizes)

    def chunk_order(self, *positions: int | Sequence[int]) -> MappingOptions:
        """Order the loops over chunks, outermost first."""
        return self._with(chunk_order=positions)

    def fuse(self, fuse: bool = True) -> MappingOptions:
        """Share chunks with the nest before: for each chunk, run one nest after the other."""
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
        """Compute ``width`` points of a dimension at once; dimension -1 is the last one of the
        output."""
        return self._with(vectorize=(dimension, width))

    def register(self, *sizes: int | Sequence[int]) -> MappingOptions:
        """Keep so many points of each dimension in registers; for a reduction, an unroll factor."""
        return self._with(register=sizes)

    def stage(self, *levels: int | Sequence[int]) -> MappingOptions:
        """Copy each operand, inside so many loops, into the order in which it is read; -1: no
        copy."""
        return self._with(stage=levels)

    def stream(self, stream: bool = True) -> MappingOptions:
        """Store results with instructions that bypass the caches."""
        return self._with(stream=stream)

    def peel(self, peel: bool = True) -> MappingOptions:
        """Begin vectors at aligned addresses of the output."""
        return self._with(peel=peel)

    def skip(self, skip: bool = True) -> MappingOptions:
        """Run a reduction only over the points where its condition holds."""
        return self._with(skip=skip)

    def prefetch(self, *ahead: int | Sequence[int]) -> MappingOptions:
        """Request each operand so many bytes in advance; 0: no request."""
        return self._with(prefetch=ahead)

    def threads(self, *sizes: int | Sequence[int]) -> MappingOptions:
        """Use so many threads of a GPU's block along each dimension."""
        return self._with(threads=sizes)

    def split(self, *parts: int | Sequence[int]) -> MappingOptions:
        """Split reductions into so many parts, for threads or for blocks of a GPU."""
        return self._with(split=parts)

    def buffers(self, count: int) -> MappingOptions:
        """Use so many buffers per panel in a GPU's shared memory."""
        return self._with(buffers=count)

    def dot(self, *points: int | Sequence[int]) -> MappingOptions:
        """Multiply and add so many points of a reduction with one instruction of a CPU."""
        return self._with(dot=points)

    def mma(self, *dimensions: int | Sequence[int]) -> MappingOptions:
        """Multiply with a GPU's tensor cores, or a CPU's matrix unit, along these dimensions."""
        return self._with(mma=dimensions)


OPTIONS: dict[str, Option] = {f.name: f.metadata["option"] for f in fields(NestOptions)}
"""By name, in the order in which they stand above."""
_CHOICES = operator.attrgetter(*OPTIONS)


@functools.cache
def _preset_choices(device: Device) -> Callable[[NestOptions], tuple[Any, ...]]:
    """What gives the choices that a preset makes for such a device."""
    names = (k for k, option in OPTIONS.items() if option.knobs and device not in option.refused)
    return operator.attrgetter(*names)


PLAIN = NestOptions(**{key: option.kind.neutral for key, option in OPTIONS.items() if option.knobs})
"""Every choice that a preset makes, and none that asks for anything."""


def check_keys(data: Mapping[Any, Any], keys: tuple[str, ...], where: str) -> None:
    """``OptionsError`` for an object with a key that is none of these."""
    for key in data:
        if key not in keys:
            raise OptionsError(f"{where}: unknown key {key!r}: use {', '.join(keys)}")
