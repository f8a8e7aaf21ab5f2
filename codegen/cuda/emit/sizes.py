"""Numbers that depend on sizes which are known when a kernel is launched: it is given them."""

from __future__ import annotations

from collections.abc import Iterator

from tcl.codegen.cuda.cpp.pieces import Piece, converted
from tcl.codegen.cuda.emit.names import Names
from tcl.codegen.loopir import ir
from tcl.grammar.sizes.polynomials import Terms
from tcl.grammar.sizes.varying import Size, Undecided, limits, symbols_of

_MOST = 2**31 - 1
"""The largest ``int``."""


class SizeParameters:
    """Writes numbers. One that is known only at the launch becomes a parameter of the kernel, of
    type ``index``, that of index expressions, or ``long long``."""

    def __init__(self, names: Names, index: str) -> None:
        self._names, self._index = names, index
        self._known: dict[tuple[Terms, str], tuple[str, Size]] = {}

    def index_number(self, number: int) -> str:
        """A number in index expressions. Raises ``Undecided`` if it may not fit their type."""
        return self._written(number, self._index)

    def wide(self, number: int) -> str:
        """A number of 64 bits, without the suffix that a literal has."""
        return self._written(number, "long long")

    def value(self, number: Size, type_: str) -> Piece:
        if type_ == "int" and _small(number):
            return Piece(self._written(number, type_))
        return converted(type_, Piece(self.wide(number)))

    def _written(self, number: int, type_: str) -> str:
        if not isinstance(number, Size):
            return str(number)
        if type_ == "int" and not _small(number):
            raise Undecided(f"whether {number} has 31 bits is known only when the kernel runs")
        key = (number.terms, type_)
        if key not in self._known:
            self._known[key] = self._names.new(f"size_{number}"), number
        return self._known[key][0]

    @property
    def parameters(self) -> list[str]:
        return [f"const {type_} {name}" for (_, type_), (name, _) in self._known.items()]

    @property
    def values(self) -> tuple[int, ...]:
        """What is given for them, in order."""
        return tuple(number for _, number in self._known.values())


def _small(number: int) -> bool:
    return all(-_MOST <= end <= _MOST for end in limits(number))


def symbols(program: ir.Built) -> set[str]:
    """The names of the sizes that a program's kernels depend on."""

    def symbolic_numbers() -> Iterator[int]:
        for t in program.tensors:
            yield from (*t.layout.extents, *t.layout.strides, *t.layout.origin)
        for space in program.spaces:
            yield from (n for d in space.dims for n in (d.first, d.extent))

    return set(symbols_of(symbolic_numbers()))
