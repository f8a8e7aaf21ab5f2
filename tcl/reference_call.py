"""``reference``: the result of a def by the reference backend, which is slow and defines what is
right."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcl.api import define
from tcl.api import sized as sizes_of
from tcl.arrays.arguments import base_outputs, check_initialised, new_output, output_arrays
from tcl.arrays.user_input import SourceLike, in_order
from tcl.codegen.reference import compile_reference
from tcl.executors.call_inputs import inputs_of
from tcl.executors.calls import results_class


def reference(
    source: SourceLike, entry_point: str, *inputs: Any, outputs: Any = None, **named: Any
) -> Any:
    """The outputs of a def by the reference: plain loops over all points, in the order of the text,
    on one thread. It is slow, and shares no code with the kernels.

    ``tcl.reference(text, "mm", A, B)`` takes what ``tcl.define(text).mm(A, B)`` takes, and returns
    the same outputs, as NumPy arrays. The two agree, except that floats may be rounded differently.

    - ``source``: the text, or a ``pathlib.Path`` of a file with the text.
    - ``outputs``: NumPy arrays to write to, such as those that a def adds to. Default: new ones.
    - ``named``: inputs by name.

    Raises as a call does: ``ArgumentError`` for arrays and ``RangeInferenceError`` for sizes that
    do not fit, ``IndexError`` where data select an element that does not exist.
    """
    definitions = define(source)
    checked = definitions.definition(entry_point)
    if named:
        inputs = in_order(checked, inputs, named, ("outputs",))
    arrays = inputs_of(checked, inputs).values()
    sized = sizes_of(definitions, checked, arrays)
    if outputs is None:
        check_initialised(checked)
        made = tuple(new_output(sized, tensor, np.empty) for tensor in checked.outputs)
    else:
        made = output_arrays(sized, arrays, base_outputs(outputs), checked.outputs)
    compile_reference(sized)(arrays, made)
    if len(made) == 1:
        return made[0]
    return results_class(checked.name, tuple(t.name for t in checked.outputs))(*made)
