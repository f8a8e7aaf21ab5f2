"""What knobs decide, in a sentence each: the page's glossary."""

from __future__ import annotations

import re

from tcl.codegen.options.options import OPTIONS

KNOBS = {name: words for option in OPTIONS.values() for name, words in option.knobs.items()}
"""By the last part of a knob's name, without the number of an operand."""


def kind_of(knob: str) -> str:
    """The entry that a knob has: ``stage`` for ``s0.stage1``."""
    return re.sub(r"\d+$", "", knob.rpartition(".")[2])
