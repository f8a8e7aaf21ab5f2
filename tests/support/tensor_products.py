"""Products of two factors, in all orders of their dimensions, for tests of tensor cores."""

from __future__ import annotations

import numpy as np
from cuda_checks import Array, Work, work_of_text
from program_builder import numpy_type

from tcl.codegen.devices.gpu import H200
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.gpu import schedule
from tcl.common.errors import OptionsError

RNG = np.random.default_rng(17)
FORMS = {
    "plain": ("M, K", "K, N"),
    "first turned": ("K, M", "K, N"),
    "second turned": ("M, K", "N, K"),
    "both turned": ("K, M", "N, K"),
}


def work(form: str, type_: str, sizes: tuple[int, int, int], *, epilogue: bool = False) -> Work:
    """A product of small integers, whose sums are exact: with the first factor on the left if its
    rows are even in number, so that both orders are taken."""
    extents = dict(zip("MNK", sizes, strict=True))
    factors = []
    for name, dims in zip("AB", FORMS[form], strict=True):
        read = f"{name}({dims.lower()})"
        factors.append(read if type_ == "float32" else f"float32({read})")
    text = " * ".join(factors if sizes[0] % 2 == 0 else factors[::-1])
    after = "D(m, n) = fmax(C(m, n), 0.0) + 1" if epilogue else ""
    a, b = FORMS[form]
    source = (
        f"def f({type_}({a}) A, {type_}({b}) B) -> (C{', D' if epilogue else ''}) {{\n"
        f"    C(m, n) +=! {text}\n    {after}\n}}"
    )
    shapes = ([extents[d] for d in dims.split(", ")] for dims in FORMS[form])
    return work_of_text(source, *(numbers(type_, *shape) for shape in shapes))


def numbers(type_: str, *shape: int) -> Array:
    return np.asarray(RNG.integers(-4, 5, shape)).astype(numpy_type(type_))


def accepted(one: Work, options: MappingOptions) -> bool:
    """Whether the panels and registers fit."""
    try:
        schedule(one.sized, options, H200)
    except OptionsError:
        return False
    return True
