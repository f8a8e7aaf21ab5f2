"""Which launch shapes are tried: blocks or chunks, and what the source's macros are defined as."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tcl.codegen.options.knobs import Knob, Value
from tcl.common.errors import ArgumentError, OptionsError
from tcl.common.shown import shown
from tcl.tuner.space.search_space import Config, SearchSpace

Block: TypeAlias = tuple[int, ...]
"""Threads of a CUDA block along x, y, z; on a CPU how many numbers a chunk of the range has."""
Defines: TypeAlias = tuple[tuple[str, Value], ...]
"""Macros of the source and what they stand for."""


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """One way to launch a kernel."""

    block: Block
    defines: Defines = ()

    def __str__(self) -> str:
        block = str(self.block[0]) if len(self.block) == 1 else str(self.block)
        return " ".join((block, *(f"{name}={value}" for name, value in self.defines)))


_BLOCK = "block"


def sizes_of(name: str, value: object, *, most: int = 3) -> Block:
    """Whole numbers above 0, as a tuple or as one of them. Raises ``ArgumentError``."""
    numbers = tuple(value) if isinstance(value, tuple | list) else (value,)
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in numbers)
    if not whole or not 1 <= len(numbers) <= most:
        what = "a whole number above 0" if most == 1 else f"1 to {most} whole numbers above 0"
        raise ArgumentError(f"{name} has to be {what}, not {shown(value)}")
    return tuple(int(n) for n in numbers if isinstance(n, int))


def blocks_of(candidates: object, rank: int) -> tuple[Block, ...]:
    """The blocks that a user names, without repetition. Raises ``ArgumentError``."""
    if not isinstance(candidates, tuple | list) or not candidates:
        raise ArgumentError(
            "candidates has to be a list of blocks, such as [64, 128, 256], not "
            f"{shown(candidates)}"
        )
    blocks = [sizes_of("a block", each) for each in candidates]
    for block in blocks:
        if len(block) != rank:
            raise ArgumentError(
                f"a block must have as many sizes as the global size ({rank}), not {len(block)} "
                f"as in {block}"
            )
    return tuple(dict.fromkeys(blocks))


def choices_of(defines: object) -> dict[str, tuple[Value, ...]]:
    """What each macro is to be tried as. Raises ``ArgumentError``."""
    if not isinstance(defines, Mapping):
        raise ArgumentError(
            f'defines has to be a dict such as {{"TILE": [1, 2, 4]}}, not {shown(defines)}'
        )
    found: dict[str, tuple[Value, ...]] = {}
    for name, values in defines.items():
        if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
            raise ArgumentError(f"a macro needs a valid C++ name, not {shown(name)}")
        if not isinstance(values, tuple | list) or not values:
            raise ArgumentError(
                f"defines: {name} has to have a list of values to try, not {shown(values)}"
            )
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
                raise ArgumentError(
                    f"defines: {name} can be whole numbers and strings, not {shown(value)}"
                )
        found[name] = tuple(dict.fromkeys(values))
    return found


def powers(most: int, least: int = 1) -> tuple[int, ...]:
    """Powers of two from ``least`` up to ``most``, both included."""
    return tuple(1 << p for p in range(most.bit_length()) if least <= 1 << p <= most)


def default_blocks(sizes: Block, limits: Block, threads: int, warp: int) -> tuple[Block, ...]:
    """Powers of two along each of the grid's dimensions: no block of more than ``threads``, none
    that is longer along a dimension than its ``limits`` or than the first power that holds all of
    it, and, as a part of a warp takes as long as a whole one, none smaller than a ``warp`` if the
    grid has room for one."""
    holding = [1 << (size - 1).bit_length() for size in sizes]
    along = [powers(min(most, hold)) for most, hold in zip(limits, holding, strict=False)]
    least = min(warp, math.prod(holding))
    return tuple(
        block for block in itertools.product(*along) if least <= math.prod(block) <= threads
    )


_FEWEST_NUMBERS = 16
"""Of a chunk: fewer share lines of memory with the next one, and cost more to hand out than to
compute."""
_MOST_CHUNKS = 1 << 16


def default_chunks(total: int, threads: int) -> tuple[Block, ...]:
    """Powers of two, and what divides the range evenly among the threads: into 1 to 16 chunks for
    each. The first is 4 chunks for each: some balance, and little to hand out."""
    least = max(_FEWEST_NUMBERS, -(-total // _MOST_CHUNKS))
    even = [-(-total // (threads * each)) for each in (4, 1, 2, 8, 16)]
    return tuple((chunk,) for chunk in dict.fromkeys((*even, *powers(total, least), total)))


def space_of(
    blocks: Sequence[Block],
    defines: Mapping[str, Sequence[Value]],
    why_not: Callable[[LaunchShape], str | None],
) -> SearchSpace:
    """All blocks with all definitions, of which nothing is proposed that cannot be launched. A
    block is one knob for each dimension: a search may change them one by one."""
    along = [tuple(sorted(set(sizes))) for sizes in zip(*blocks, strict=True)]
    knobs = [
        Knob(f"{_BLOCK}.{axis}", sizes, blocks[0][axis], ordered=True)
        for axis, sizes in enumerate(along)
    ]
    for name, values in defines.items():
        numbers = all(isinstance(value, int) for value in values)
        ordered = tuple(sorted(values)) if numbers else tuple(values)
        knobs.append(Knob(name, ordered, values[0], ordered=numbers))
    known = frozenset(blocks)

    def refused(values: Mapping[str, Value]) -> str | None:
        candidate = candidate_of(tuple(values[knob.name] for knob in knobs), len(along), defines)
        return why_not(candidate) if candidate.block in known else "it was not requested"

    return SearchSpace(tuple(knobs), (refused,))


def candidate_of(config: Config, rank: int, defines: Mapping[str, object]) -> LaunchShape:
    """What a configuration of such a space means."""
    block = tuple(int(size) for size in config[:rank])
    return LaunchShape(block, tuple(zip(defines, config[rank:], strict=True)))


def config_of(candidate: LaunchShape) -> Config:
    """The inverse of ``candidate_of``."""
    return (*candidate.block, *(value for _, value in candidate.defines))


def none_left(reasons: Mapping[LaunchShape, str]) -> OptionsError:
    """What to say where no candidate can be launched."""
    candidate, reason = next(iter(reasons.items()))
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return OptionsError(f"no candidate can be launched: {candidate}: {reason}{more}")
