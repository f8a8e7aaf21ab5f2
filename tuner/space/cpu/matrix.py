"""The matrix unit of a CPU as a knob of a nest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.fragments import Fragment, fragments
from tcl.codegen.loopir import ir
from tcl.codegen.options.nest_options import NestOptions
from tcl.codegen.passes.cpu.matrix import matrix_dots, matrix_fragment, multiplied_along
from tcl.tuner.space.knobs import Knob, Value

_NONE = "none"
_SIDES = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1), (1, 4), (4, 1))
"""Rows and columns of a register tile, in fragments."""


@dataclass(frozen=True, slots=True)
class MatrixKnobs:
    """Two knobs where the matrix unit can compute the nest: the dimensions of rows, columns and the
    reduction, as ``0 1 2``, and the fragments of a register tile along the first two, as ``2 2``.
    Lanes, dot products and the register tile follow from them."""

    rank: int
    fragment: Fragment | None
    knobs: tuple[Knob, ...]

    @staticmethod
    def of(nest: ir.Nest, device: CpuProfile, default: NestOptions) -> MatrixKnobs:
        """The knobs of an untiled nest, which can say what ``default`` says."""
        own = matrix_fragment(nest, device)
        fragment = own or next(fragments(device, matrix=True), None)
        if fragment is None:
            return MatrixKnobs(len(nest.dims), None, ())
        made = MatrixKnobs(len(nest.dims), fragment, ())
        able = multiplied_along(nest, own, device) if own else ()
        dims = [_text(*mma) for mma in able if nest.dims[mma[2]].extent > 1]
        sides = [_text(*each) for each in _SIDES]
        if default.mma:
            dims, sides = [*dims, _text(*default.mma)], [*sides, _sides(default)]
        if not dims:
            return made
        choices = (tuple(dict.fromkeys(each)) for each in ((_NONE, *dims), sides))
        names = (f"{nest.name}.mma", f"{nest.name}.fragments")
        both = (
            Knob(name, each, each[0], ordered=False)
            for name, each in zip(names, choices, strict=True)
        )
        return MatrixKnobs(len(nest.dims), fragment, tuple(both))

    def mma(self, values: Mapping[str, Value]) -> tuple[int, ...]:
        """The option."""
        chosen = str(values[self.knobs[0].name]) if self.knobs else _NONE
        return () if chosen == _NONE else tuple(map(int, chosen.split()))

    def implied(self, values: Mapping[str, Value]) -> NestOptions | None:
        """Lanes, dot products and register tile; None without a matrix unit."""
        mma = self.mma(values)
        if not mma:
            return None
        assert self.fragment is not None
        register = [0] * self.rank
        register[mma[0]], register[mma[1]] = map(int, str(values[self.knobs[1].name]).split())
        return NestOptions(
            vectorize=(mma[1], self.fragment.columns or 1),
            dot=matrix_dots(self.fragment, mma, self.rank),
            register=tuple(register),
            mma=mma,
        )

    def values(self, options: NestOptions) -> dict[str, Value] | None:
        """Knob values for options; None if the knobs cannot say them."""
        if not options.mma:
            return {k.name: k.default for k in self.knobs}
        said = _text(*options.mma), _sides(options)
        found: dict[str, Value] = {k.name: v for k, v in zip(self.knobs, said, strict=False)}
        if any(found[k.name] not in k.choices for k in self.knobs):
            return None
        own = self.implied(found) if found else None
        sizes = [*(options.register or ()), *[0] * self.rank][: self.rank]
        if own is None or own.register != tuple(sizes):
            return None
        same = own.vectorize == options.vectorize and own.dot == (options.dot or ())
        return found if same else None


def _sides(options: NestOptions) -> str:
    mma = options.mma or ()
    register = (*(options.register or ()), *[0] * (max(mma, default=0) + 1))
    return _text(*(max(1, register[k]) for k in mma[:2]))


def _text(*numbers: int) -> str:
    return " ".join(map(str, numbers))
