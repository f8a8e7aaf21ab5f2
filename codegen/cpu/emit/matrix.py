"""The matrix unit (AMX): registers for sums and factors of fragments, and what is done with them.

Its eight registers are *tiles* to Intel: 16 rows of 64 bytes each here. Sums have theirs from where
they are cleared or taken to where they are given back; what is left is for the factors, of which
the one that was not needed for longest makes room. A thread configures its unit when it begins with
a kernel that uses it, and releases it at the end: then nobody has to save what is in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from tcl.codegen.cpu.emit.across import Pointers
from tcl.codegen.cpu.emit.scope import AccumulatorRegisters, At, Scope, affine, number
from tcl.codegen.cpu.llvm.builder import Builder, Val
from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.fragments import MATRIX_REGISTERS, fragments
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.terms import dot_factors
from tcl.codegen.loopir.walk import statements
from tcl.common.dataclass import dataclass

_ROWS, _ROW = 16, 64
"""Rows of a register, and bytes of a row."""
_RELEASE = "llvm.x86.tilerelease"


@dataclass(slots=True)
class MatrixUnit:
    b: Builder
    device: CpuProfile
    program: ir.Built
    dims: dict[str, ir.Dim]
    pointers: Pointers
    held: list[tuple[tuple[str, str], int]] = field(default_factory=list)
    """What registers have of factors in this block of code: where it lies, and the register; what
    was used last stands last."""
    free: list[int] = field(default_factory=list)
    """Registers for factors."""

    @contextmanager
    def configured(self, body: ir.Statement) -> Iterator[None]:
        """For the code of a kernel with this body: registers are there if it needs them."""
        loops = (s.loop for s in statements(body) if isinstance(s, ir.For))
        if not any(x.kind is ir.Kind.MMA and self.dims[x.fold.dim].reduction for x in loops):
            yield
            return
        b = self.b
        b.defined["tcl_tiles"] = CONFIGURATION
        b.do(b.call_text("llvm.x86.ldtilecfg", "void", Val("@tcl_tiles", "ptr")))
        release = b.call_text(_RELEASE, "void")
        b.leaving.append(release)
        yield
        b.leaving.remove(release)
        b.do(release)

    def declare(self, own: AccumulatorRegisters, keys: list[tuple[int, ...]]) -> None:
        """Gives a matrix of accumulators its registers, one for each of the unrolled iterations."""
        own.registers.update({key: k for k, key in enumerate(keys)})
        self.free = list(range(len(keys), MATRIX_REGISTERS))
        self.held.clear()

    def move(self, matrix: ir.Matrix, own: AccumulatorRegisters, scope: Scope, slot: str) -> None:
        """Sums at this place: cleared, or between their register and memory. ``slot``: where they
        can be used one by one."""
        register = _register(own.registers[tuple(scope.folds[f.name].constant for f in own.over)])
        if matrix.action is ir.Action.CLEAR:
            self._do("tilezero", register)
            return
        pointer, stride = Val(slot, "ptr"), _ROW
        if matrix.at is not None:
            assert own.rows is not None
            at_once = matrix.at.names - self.dims.keys() - scope.folds.keys()
            first = scope.moved({}, {name: At() for name in at_once})
            pointer = self._pointer(matrix.at, first)
            stride = self._stride(matrix.at, own.rows)
        name = "tileloadd64" if matrix.action is ir.Action.TAKE else "tilestored64"
        self._do(name, register, pointer, number(stride))

    def multiply(self, folds: tuple[ir.Fold, ...], to: ir.Accumulate, scope: Scope) -> None:
        """Adds the product of two fragments to sums. ``folds``: all that is done at once."""
        own = scope.accumulators[to.name]
        assert own.rows is not None
        depth = next(f for f in folds if f.level == "dot")
        words = next(f for f in folds if f.level == "mma" and f.dim == depth.dim)
        inner = scope.moved({}, {f.name: At() for f in folds})
        sums = own.registers[tuple(scope.folds[f.name].constant for f in own.over)]
        sides = dot_factors(to.value)
        if not self._moves(sides[0], own.rows):
            sides = sides[::-1]
        types = sides[0].type, sides[1].type
        fragment = next(f for f in fragments(self.device, matrix=True) if f.factors == types)
        rows = (own.rows, words)
        operands = [
            self._operand(side, fold, inner) for side, fold in zip(sides, rows, strict=True)
        ]
        name = fragment.forms[0].intrinsic
        self._do(name.removeprefix("llvm.x86."), *map(_register, (sums, *operands)))

    def _moves(self, side: ir.Value, rows: ir.Fold) -> bool:
        """Whether a factor depends on the rows."""
        return self._stride(_side_load(side).ref, rows) != 0

    def _pointer(self, ref: ir.TensorRef, scope: Scope) -> Val:
        """The address of an element."""
        place = self.program.tensor(ref.tensor).layout.place(ref)
        at, _ = affine(self.b, place, self.dims, scope)
        return self.pointers.at(ref.tensor, at)

    def _stride(self, ref: ir.TensorRef, fold: ir.Fold) -> int:
        """Bytes from one iteration to the next."""
        place = self.program.tensor(ref.tensor).layout.place(ref)
        return (place.coefficient(fold.name) + place.coefficient(fold.dim)) * fold.step

    def _operand(self, side: ir.Value, rows: ir.Fold, scope: Scope) -> int:
        """The register that has a factor, whose rows these are."""
        b, load = self.b, _side_load(side)
        pointer = self._pointer(load.ref, scope)
        key = b.block, pointer.text
        for entry in self.held:
            if entry[0] == key:
                self.held.remove(entry)
                self.held.append(entry)
                return entry[1]
        self.held = [entry for entry in self.held if entry[0][0] == b.block]
        taken = {register for _, register in self.held}
        register = next((r for r in self.free if r not in taken), None)
        if register is None:
            register = self.held.pop(0)[1]
        self.held.append((key, register))
        stride = self._stride(load.ref, rows)
        self._do("tileloadd64", _register(register), pointer, number(stride))
        return register

    def _do(self, name: str, *arguments: Val) -> None:
        self.b.known.change(None)
        self.b.do(self.b.call_text(f"llvm.x86.{name}", "void", *arguments))


def _side_load(side: ir.Value) -> ir.Load:
    if not isinstance(side, ir.Load):
        raise ir.IRError("a matrix unit multiplies what lies in panels")
    return side


def _register(number_: int) -> Val:
    return Val(str(number_), "i8")


def _configuration() -> str:
    """The first palette; of each register the bytes of a row, from byte 16 on, and the number of
    rows, from byte 48 on."""
    data = bytearray(_ROW)
    data[0] = 1
    for register in range(MATRIX_REGISTERS):
        data[16 + 2 * register], data[48 + register] = _ROW, _ROWS
    text = "".join(f"\\{byte:02X}" for byte in data)
    return f'@tcl_tiles = private unnamed_addr constant [{_ROW} x i8] c"{text}", align {_ROW}\n'


CONFIGURATION = _configuration()
"""What ``ldtilecfg`` loads, as LLVM IR: ``@tcl_tiles``."""
