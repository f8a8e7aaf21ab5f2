"""Which outputs a backward def is given, where nobody said.

All that callers have anyway; of the others those that take longer to compute again than to read,
unless they are larger than everything that is there anyway.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tcl.gradients.ranges import Formulas
from tcl.gradients.versions import Step
from tcl.grammar.tree import checked as c
from tcl.grammar.tree.traverse import reads


def worth_saving(
    checked: c.CheckedDef, formulas: Formulas, steps: Sequence[Step], wanted: Sequence[str] | None
) -> list[str]:
    """The names of these outputs; ``wanted``: the outputs that callers have, all if it is None."""
    outputs = [t.name for t in checked.outputs]
    if wanted is None:
        return outputs
    rough = [t.name for t in checked.outputs if not t.type.is_float]
    there = [t.name for t in checked.inputs] + [*wanted]
    largest = max((_elements(formulas, name) or 0 for name in there), default=0)
    found = {*wanted, *rough}
    for name in outputs:
        elements = _elements(formulas, name)
        small = elements is None or not largest or elements <= largest
        if small and not _is_quick([s for s in steps if s.statement.target == name], checked):
            found.add(name)
    return [name for name in outputs if name in found]


def _elements(formulas: Formulas, name: str) -> int | None:
    """Of a tensor, where sizes are known."""
    extents = [(stop - first).constant for first, stop in formulas.boxes[name]]
    return None if None in extents else math.prod(e for e in extents if e is not None)


def _is_quick(its: Sequence[Step], checked: c.CheckedDef) -> bool:
    """Whether a tensor is computed from inputs alone, element by element."""
    if len(its) != 1 or its[0].statement.op != "=" or its[0].statement.reduction:
        return False
    return all(checked.tensors[r.tensor].is_input for r in reads(its[0].statement))
