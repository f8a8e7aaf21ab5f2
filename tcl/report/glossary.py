"""What knobs decide, in a sentence each: the page's glossary."""

from __future__ import annotations

import re

KNOBS = {
    "tile": "points of this dimension in a tile, the part of it that is worked on at a time",
    "order": "order of the loops over tiles, outermost first; 0 is the first dimension of the nest",
    "inner_order": "order of the loops inside a tile, likewise",
    "vector": "the dimension along which vectors run",
    "lanes": "points that one vector instruction computes; 1 is scalar code",
    "register": "points of each dimension whose results stay in registers; on a GPU, of this one",
    "row": "dimensions of the register tile: the one for its rows, then the one for its columns",
    "unroll": "turns of the reduction that are written out one after the other",
    "stage": "loops outside of which this operand (counted from 0) is copied to where it is read "
    "fast: packed in the caches, or in a GPU's shared memory; 0 does not copy it",
    "chunk": "points of this dimension in a chunk; threads share chunks among themselves",
    "fuse": "1: the nest shares its chunks with the one before, and runs chunk by chunk after it",
    "stream": "1: results are written past the caches",
    "prefetch": "bytes ahead of this operand (counted from 0) that memory is asked for; 0: none",
    "threads": "GPU: threads of a block along this dimension",
    "steps": "GPU: turns of a loop along this dimension that one block takes",
    "block": "GPU: threads of a block",
    "split": "GPU: parts of a reduction that blocks share among themselves",
    "mma": "GPU: 1: tensor cores multiply",
    "buffers": "GPU: copies of each panel, so that one is filled while another one is read",
}
"""By the last part of a knob's name, without the number of an operand."""


def kind_of(knob: str) -> str:
    """The entry that a knob has: ``stage`` for ``s0.stage1``."""
    return re.sub(r"\d+$", "", knob.rpartition(".")[2])
