"""The options of one nest on a CPU as knobs.

Each option is a function: from the nest to its knobs, a decoder of their values, and an encoder of
a given option. What values fit together is not decoded here: the passes are tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcl.codegen.choose.cpu.prefetch_distances import next_block
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.fragments import fragments
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.walk import operands
from tcl.codegen.options.kinds import WIDTHS
from tcl.codegen.options.knobs import Knob, Value, first_equivalent, loop_orders, tile_sizes
from tcl.codegen.options.nest_options import PLAIN, NestOptions
from tcl.codegen.passes.base import Trials
from tcl.codegen.passes.cpu.dot import depths
from tcl.codegen.passes.cpu.matrix import matrix_dots, matrix_fragment, multiplied_along
from tcl.codegen.passes.cpu.stage import dims_of, natural_level, why_not_copied
from tcl.codegen.passes.tile import points_inside
from tcl.codegen.passes.vectorize import outputs
from tcl.common.errors import OptionsError
from tcl.tuner.space.cpu.registers import RegisterKnobs

_NONE = "none"
_OPERANDS = 3
"""Operands that get a knob of an option: the first ones that can have it."""
_DISTANCES = (0, 1024, 2048, 4096, 16384)
"""Bytes of prefetches; besides, those to the next block that a loop reads."""

Values = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class KnobSubject:
    """What knobs are made for."""

    program: ir.Program
    nest: ir.Nest
    """Without any loops but those over its points."""
    device: CpuProfile
    default: NestOptions
    """What the knobs have to be able to encode."""
    trials: Trials[CpuProfile]

    @property
    def movable(self) -> tuple[int, ...]:
        """Positions of the dimensions with more than one point: others have no loops to order."""
        return tuple(k for k, d in enumerate(self.nest.dims) if d.extent > 1)

    @property
    def lane_choices(self) -> tuple[int, ...]:
        """Lanes that a vector may have."""
        longest = max((d.extent for d in self.nest.dims), default=0)
        most = min(self.device.lanes(self.nest.point.type), longest)
        own = (self.default.vectorize or (-1, 1))[1]
        return tuple(w for w in WIDTHS if w == 1 or w <= most or w == own)

    @property
    def last_result(self) -> int:
        """The position of the last dimension that is no reduction; -1 if there is none."""
        return len(outputs(self.nest)) - 1

    @property
    def last_output(self) -> int:
        """The last movable dimension that is no reduction, else the last movable one."""
        return max((k for k in self.movable if k <= self.last_result), default=self.movable[-1])

    def may_have(self, **options: Any) -> bool:
        """Whether the passes let the nest have options, with some lanes or without."""
        pairs = [(-1, 1), *((k, w) for k in self.movable for w in self.lane_choices if w > 1)]
        return any(
            not isinstance(
                self.trials.through(
                    "stream", self.nest.name, replace(PLAIN, vectorize=pair, **options)
                ),
                OptionsError,
            )
            for pair in pairs
        )

    def past_second_cache(self, tensor: str) -> bool:
        """Whether a tensor does not fit the second cache."""
        layout = self.program.tensor(tensor).layout
        return math.prod(layout.extents) * layout.itemsize > self.device.l2_bytes


@dataclass(frozen=True, slots=True)
class OptionKnobs:
    """The knobs of an option, or of a few that are decided together."""

    option: str
    knobs: tuple[Knob, ...]
    decode: Callable[[Values, Decoded], Any]
    """The option for values of the knobs."""
    encode: Callable[[NestOptions, Values], Mapping[str, Value]]
    """The inverse, where chunks are known; values that are no choices of the knobs stand for what
    these cannot encode."""
    canonical: Callable[[Values, Decoded], Mapping[str, Value]] = lambda *_: {}
    """Of values that mean the same, the canonical ones, as far as they differ."""
    redundant: Callable[[Values, Decoded], str | None] = lambda *_: None
    """Why values are no others than those of another configuration, where ``canonical`` does
    not say which. What it reads of them by ``[]`` is drawn again then."""
    exact: bool = True
    """Whether the knobs may not be able to encode a value, nor the passes to honour it. Tiles and
    orders are always possible, and those that no knob has mean the same as some that one has."""


class Decoded:
    """The options of a nest that knob values encode, each decoded when it is asked for."""

    def __init__(self, decoders: Mapping[str, Callable[[Values, Decoded], Any]], values: Values):
        self._decoders, self._values = decoders, values

    def __getattr__(self, option: str) -> Any:
        value = self._decoders[option](self._values, self)
        setattr(self, option, value)
        return value


def tile(on: KnobSubject) -> OptionKnobs:
    """A size for each dimension; its extent leaves it untiled."""
    dims, own = on.nest.dims, _padded(on.default.tile, len(on.nest.dims))
    knobs = {
        k: Knob(
            f"{dims[k].name}.tile",
            _and(tile_sizes(dims[k].extent), own[k]),
            dims[k].extent,
            ordered=True,
        )
        for k in on.movable
    }

    def decode(values: Values, _: Decoded) -> tuple[int, ...]:
        sizes = [0] * len(dims)
        for k, knob in knobs.items():
            size = int(values[knob.name])
            sizes[k] = size if size < dims[k].extent else 0
        return tuple(sizes) if any(sizes) else ()

    def encode(o: NestOptions, _: Values) -> dict[str, Value]:
        sizes = _padded(o.tile, len(dims))
        inside = points_inside(on.nest, o.chunk or (), ())
        return {
            knob.name: sizes[k] if 0 < sizes[k] < inside[k] else dims[k].extent
            for k, knob in knobs.items()
        }

    def canonical(values: Values, decoded: Decoded) -> dict[str, Value]:
        """A tile that is no smaller than the chunk is none."""
        inside = points_inside(on.nest, decoded.chunk, ())
        whole = {knob.name: dims[k].extent for k, knob in knobs.items()}
        return {
            knob.name: values[knob.name] if int(values[knob.name]) < inside[k] else whole[knob.name]
            for k, knob in knobs.items()
        }

    return OptionKnobs("tile", tuple(knobs.values()), decode, encode, canonical, exact=False)


def order(on: KnobSubject, option: str) -> OptionKnobs:
    """The order of the loops over tiles, or of those inside: a permutation of the movable
    dimensions."""
    movable, dims = on.movable, on.nest.dims
    texts = tuple(_joined_numbers(*o) for o in loop_orders([dims[k].reduction for k in movable]))

    def text(permutation: Sequence[int] | None) -> str:
        return _joined_numbers(*(movable.index(k) for k in permutation or () if k in movable))

    own = text(getattr(on.default, option))
    knob = Knob(f"{on.nest.name}.{option}", _and(texts, own), texts[0], ordered=False)
    knobs = (knob,) if len(texts) > 1 else ()

    def decode(values: Values, _: Decoded) -> tuple[int, ...]:
        places = _numbers(values[knob.name]) if knobs else ()
        if places == tuple(sorted(places)):  # as written: plans say that by no order at all
            return ()
        permutation = list(range(len(dims)))
        for slot, place in zip(movable, places, strict=True):
            permutation[slot] = movable[place]
        return tuple(permutation)

    def encode(o: NestOptions, _: Values) -> dict[str, Value]:
        return {k.name: text(getattr(o, option)) or k.default for k in knobs}

    def canonical(values: Values, decoded: Decoded) -> dict[str, Value]:
        """Where dimensions are not tiled, no loops over tiles of theirs have an order."""
        tiles = _padded(decoded.tile, len(dims))
        inside = points_inside(on.nest, decoded.chunk, ())
        tiled = (place for place, k in enumerate(movable) if 0 < tiles[k] < inside[k])
        return {knob.name: first_equivalent(knob, values[knob.name], tiled)}

    if option == "inner_order":
        return OptionKnobs(option, knobs, decode, encode, exact=False)
    return OptionKnobs(option, knobs, decode, encode, canonical, exact=False)


def mma(on: KnobSubject) -> OptionKnobs:
    """The dimensions of rows, columns and the reduction that a matrix unit multiplies along. Lanes
    and dot products follow from them."""
    fragment = matrix_fragment(on.nest, on.device)
    able = multiplied_along(on.nest, fragment, on.device) if fragment else ()
    texts = [_joined_numbers(*along) for along in able if on.nest.dims[along[2]].extent > 1]
    texts += [_joined_numbers(*on.default.mma)] if on.default.mma else []
    knob = Knob(f"{on.nest.name}.mma", tuple(dict.fromkeys((_NONE, *texts))), _NONE, ordered=False)
    knobs = (knob,) if texts else ()

    def decode(values: Values, _: Decoded) -> tuple[int, ...]:
        return () if not knobs or values[knob.name] == _NONE else _numbers(values[knob.name])

    def encode(o: NestOptions, _: Values) -> dict[str, Value]:
        return {knob.name: _joined_numbers(*o.mma) if o.mma else _NONE}

    return OptionKnobs("mma", knobs, decode, encode)


def vectorize(on: KnobSubject) -> OptionKnobs:
    """A dimension, and how many of its points are lanes."""
    knobs: tuple[Knob, ...] = ()
    if on.movable and len(on.lane_choices) > 1:
        knobs = (
            Knob(f"{on.nest.name}.vector", on.movable, on.last_output, ordered=False),
            Knob(f"{on.nest.name}.lanes", on.lane_choices, 1, ordered=True),
        )
    unit = next(fragments(on.device, matrix=True), None)

    def decode(values: Values, decoded: Decoded) -> tuple[int, int]:
        if decoded.mma and unit is not None:
            return decoded.mma[1], unit.columns or 1
        target, lanes = (int(values[k.name]) for k in knobs) if knobs else (-1, 1)
        return (target, lanes) if lanes > 1 else (-1, 1)

    def encode(o: NestOptions, _: Values) -> dict[str, Value]:
        target, lanes = o.vectorize or (-1, 1)
        if lanes == 1 or o.mma:
            return {k.name: k.default for k in knobs}
        return dict(
            zip(
                (k.name for k in knobs),
                (on.last_result if target < 0 else target, lanes),
                strict=False,
            )
        )

    def canonical(values: Values, decoded: Decoded) -> dict[str, Value]:
        return {k.name: k.default for k in knobs} if decoded.mma else {}

    def redundant(values: Values, decoded: Decoded) -> str | None:
        if not knobs or decoded.mma:
            return None
        target, lanes = (values[k.name] for k in knobs)
        if lanes == 1 and target != knobs[0].default:
            return "without lanes the vectorised dimension is no choice"
        return None

    return OptionKnobs("vectorize", knobs, decode, encode, canonical, redundant)


def dot(on: KnobSubject) -> OptionKnobs:
    """A reduction, and how many of its points an instruction adds up."""
    dims = on.nest.dims
    texts = [
        _joined_numbers(k, depth)
        for k in on.movable
        if dims[k].reduction
        for depth in depths(on.nest, on.device)
    ]
    own = () if on.default.mma else _padded(on.default.dot, len(dims))
    texts += [_joined_numbers(k, size) for k, size in enumerate(own) if size > 1]
    knob = Knob(f"{on.nest.name}.dot", tuple(dict.fromkeys((_NONE, *texts))), _NONE, ordered=False)
    knobs = (knob,) if texts else ()
    unit = matrix_fragment(on.nest, on.device) or next(fragments(on.device, matrix=True), None)

    def decode(values: Values, decoded: Decoded) -> tuple[int, ...]:
        if decoded.mma and unit is not None:
            return matrix_dots(unit, decoded.mma, len(dims))
        if not knobs or values[knob.name] == _NONE:
            return ()
        position, depth = _numbers(values[knob.name])
        return tuple(depth if k == position else 0 for k in range(len(dims)))

    def encode(o: NestOptions, _: Values) -> dict[str, Value]:
        texts = (
            []
            if o.mma
            else [_joined_numbers(k, size) for k, size in enumerate(o.dot or ()) if size > 1]
        )
        return {knob.name: " ".join(texts) or _NONE}

    def canonical(values: Values, decoded: Decoded) -> dict[str, Value]:
        return {knob.name: _NONE} if decoded.mma and knobs else {}

    return OptionKnobs("dot", knobs, decode, encode, canonical)


def register(on: KnobSubject) -> OptionKnobs:
    """The register tile: see ``RegisterKnobs``. In a matrix unit its rows and vectors are of
    fragments."""
    dims, default = on.nest.dims, on.default
    results = tuple(k for k in on.movable if not dims[k].reduction)
    mma, own = default.mma or (), _padded(default.register, len(dims))
    target, width = default.vectorize or (-1, 1)
    fragments = _joined_numbers(*(own[mma[0]] or 1, 1, own[mma[1]] or 1)) if mma else ""
    of = RegisterKnobs.from_nest(
        on.nest, results, on.device, tuple(own), target if width > 1 else -1, fragments
    )

    def lanes_of(vectorize: tuple[int, int]) -> int:
        """The dimension that is counted in vectors, or would be if there were lanes."""
        if vectorize[1] > 1:
            return vectorize[0] if vectorize[0] >= 0 else on.last_result
        return on.last_output if on.movable else -1

    def decode(values: Values, decoded: Decoded) -> tuple[int, ...]:
        if not decoded.mma:
            return of.sizes(values, lanes_of(decoded.vectorize))
        sizes = [0] * len(dims)
        rows, _, vectors = _numbers(values[of.tile[0].name]) if of.tile else (1, 1, 1)
        sizes[decoded.mma[0]], sizes[decoded.mma[1]] = rows, vectors
        return tuple(sizes)

    def encode(o: NestOptions, _: Values) -> Mapping[str, Value]:
        sizes = tuple(_padded(o.register, len(dims)))
        if not o.mma:
            return of.encode(sizes, lanes_of(o.vectorize or (-1, 1)))
        rows, vectors = (max(1, sizes[k]) for k in o.mma[:2])
        return {k.name: k.default for k in of.knobs} | {
            k.name: _joined_numbers(rows, 1, vectors) for k in of.tile
        }

    def canonical(values: Values, decoded: Decoded) -> Mapping[str, Value]:
        if decoded.mma:
            alone: dict[str, Value] = {k.name: k.default for k in (*of.row, *of.unroll)}
            rows, _, vectors = _numbers(values[of.tile[0].name]) if of.tile else (1, 1, 1)
            return alone | {k.name: _joined_numbers(rows, 1, vectors) for k in of.tile}
        counts = list(points_inside(on.nest, decoded.chunk, decoded.tile))
        lanes, width = decoded.vectorize
        if width > 1:
            counts[lanes] = -(-counts[lanes] // width)
        return of.first_equivalent(values, lanes_of(decoded.vectorize), dict(enumerate(counts)))

    def redundant(values: Values, decoded: Decoded) -> str | None:
        return None if decoded.mma else of.redundant(values, lanes_of(decoded.vectorize))

    return OptionKnobs("register", of.knobs, decode, encode, canonical, redundant)


def stage(on: KnobSubject) -> OptionKnobs:
    """For each operand: 0 leaves it; 1 copies it inside of all loops over chunks and tiles that
    move it (further out a panel would be larger, further in it would be copied more often); 2
    copies all of it once, before the loops over chunks."""
    reads, dims = operands(on.nest.point), on.nest.dims

    def read_again(load: ir.Load) -> bool:
        return math.prod(on.nest.dim(d).extent for d in dims_of(load.ref)) < on.nest.points

    able = [
        k
        for k, load in enumerate(reads)
        if why_not_copied(on.nest, load) is None and read_again(load)
    ]
    knobs = {
        k: Knob(f"{on.nest.name}.stage{k}", (0, 1, 2), 0, ordered=True) for k in able[:_OPERANDS]
    }

    def inside(k: int, tile: Sequence[int], order: Sequence[int], chunk: Sequence[int]) -> int:
        """The level of an operand inside of all loops that move it."""
        points, sizes = points_inside(on.nest, tuple(chunk), ()), _padded(tile, len(dims))
        tiled = [dims[d].name for d in order or range(len(dims)) if 0 < sizes[d] < points[d]]
        return natural_level(tiled, reads[k].ref) + any(chunk)

    def decode(values: Values, decoded: Decoded) -> tuple[int, ...]:
        chosen = {k: int(values[knob.name]) for k, knob in knobs.items()}
        if not any(chosen.values()):
            return ()
        levels = [-1] * len(reads)
        for k, choice in chosen.items():
            if choice:
                levels[k] = (
                    inside(k, decoded.tile, decoded.order, decoded.chunk) if choice == 1 else 0
                )
        return tuple(levels)

    def encode(o: NestOptions, _: Values) -> dict[str, Value]:
        levels = [*(o.stage or ()), *[-1] * len(reads)]
        natural = {k: inside(k, o.tile or (), o.order or (), o.chunk or ()) for k in knobs}
        return {
            knob.name: 0 if levels[k] < 0 else 1 if levels[k] == natural[k] else 2
            for k, knob in knobs.items()
        }

    def redundant(values: Values, decoded: Decoded) -> str | None:
        if any(values[knob.name] == 2 for knob in knobs.values()) and not decoded.chunk:
            return "there are no chunks before which operands are copied"
        return None

    return OptionKnobs("stage", tuple(knobs.values()), decode, encode, redundant=redundant)


def prefetch(on: KnobSubject) -> OptionKnobs:
    """Bytes for each operand that the second cache does not hold; 0 asks for nothing."""
    own = _padded(on.default.prefetch, len(operands(on.nest.point)))
    knobs: dict[int, Knob] = {}
    seen: set[str] = set()
    for k, load in enumerate(operands(on.nest.point)):
        first = load.ref.tensor not in seen and len(knobs) < _OPERANDS
        worth = own[k] or (first and on.past_second_cache(load.ref.tensor))
        if worth and on.may_have(prefetch=(*[0] * k, 1)):
            seen.add(load.ref.tensor)
            layout = on.program.tensor(load.ref.tensor).layout
            block = next_block(on.nest, layout, load.ref, on.device)
            distances = tuple(sorted({*_DISTANCES, own[k], block}))
            knobs[k] = Knob(f"{on.nest.name}.prefetch{k}", distances, 0, ordered=True)

    def decode(values: Values, _: Decoded) -> tuple[int, ...]:
        found = [0] * (max(knobs, default=-1) + 1)
        for k, knob in knobs.items():
            found[k] = int(values[knob.name])
        return tuple(found) if any(found) else ()

    def encode(o: NestOptions, _: Values) -> dict[str, Value]:
        ahead = [*(o.prefetch or ()), *[0] * len(own)]
        return {knob.name: ahead[k] for k, knob in knobs.items()}

    return OptionKnobs("prefetch", tuple(knobs.values()), decode, encode)


def flag(on: KnobSubject, option: str) -> OptionKnobs:
    """An option that is on or off."""
    able = option == "skip" or on.past_second_cache(on.nest.point.target.tensor)
    also = {"peel": True} if option == "stream" and on.may_have(peel=True) else {}
    able = able and (on.may_have(**{option: True}) or on.may_have(**{option: True}, **also))
    knob = Knob(f"{on.nest.name}.{option}", (0, 1), 0, ordered=False)

    def decode(values: Values, _: Decoded) -> bool:
        return able and values[knob.name] == 1

    def encode(o: NestOptions, _: Values) -> dict[str, Value]:
        return {knob.name: int(bool(getattr(o, option)))}

    return OptionKnobs(option, (knob,) if able else (), decode, encode)


def options_of(on: KnobSubject) -> Iterator[OptionKnobs]:
    """All options of a nest but its chunks, each after those that its knobs look at."""
    # What presets split has no knobs at all: see ``MappingSpace``.
    yield OptionKnobs("split", (), lambda values, _: (), lambda o, values: {})
    yield tile(on)
    yield order(on, "order")
    yield order(on, "inner_order")
    yield mma(on)
    yield vectorize(on)
    yield dot(on)
    yield register(on)
    yield stage(on)
    for option in ("skip", "stream", "peel"):
        yield flag(on, option)
    yield prefetch(on)


def _padded(sizes: Sequence[int] | None, count: int) -> list[int]:
    return [*(sizes or ()), *[0] * count][:count]


def _and(choices: tuple[Value, ...], one: Value) -> tuple[Value, ...]:
    """The choices with one more, numbers in order; 0 and no text stand for none."""
    if not one or one in choices:
        return choices
    more = (*choices, one)
    return tuple(sorted(more, key=int)) if isinstance(one, int) else more


def _joined_numbers(*numbers: int) -> str:
    return " ".join(map(str, numbers))


def _numbers(text: Value) -> tuple[int, ...]:
    return tuple(map(int, str(text).split()))
