"""The defs of ``examples/``, checked once."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache

from places import EXAMPLES

from tcl.arrays.random_inputs import input_shape
from tcl.grammar.check.definitions import check
from tcl.grammar.ranges.inference import infer
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.tree.checked import CheckedDef

FILES = tuple(sorted(EXAMPLES.glob("*.tc")))
NAMES = tuple(path.stem for path in FILES)


@cache
def definitions(file: str) -> Mapping[str, CheckedDef]:
    """The defs of ``examples/<file>.tc`` by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check((EXAMPLES / f"{file}.tc").read_text("utf-8"), f"{file}.tc")


DEFS = tuple((file, name) for file in NAMES for name in definitions(file))
"""(stem of the file, name of the def), of all of them."""


def sized_for(checked: CheckedDef, sizes: Mapping[str, int]) -> SizedDef:
    """The def for these sizes of its symbols."""
    return infer(checked, {t.name: input_shape(t, sizes) for t in checked.inputs})
