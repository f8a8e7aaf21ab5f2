"""Instructions that multiply narrow numbers and add up the products, as loops that only do that.

What a machine does per second of a type's multiply-adds is the rate of the best such instruction
that it has; where it has none, numbers are made wider first, and the rate is float32's.
Instructions that add up with saturation, or in the narrow type itself, are left out: long sums
would be wrong.

Each has a loop of independent sums, enough to hide its latency. Every step depends on the one
before, so that no step can be left out or moved out of the loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.devices.fragments import Form, Fragment, fragments
from tcl.grammar.syntax.types import BFLOAT16, FLOAT32, INT8, INT32

CHAINS = 12
"""Independent sums: enough to hide a latency of six cycles on two units."""
_TWO_BY_TWO = (
    Fragment(
        "smmla", (INT8, INT8), 8, INT32,
        (Form(128, "llvm.aarch64.neon.smmla.v4i32.v16i8", frozenset({"i8mm"})),),
        rows=2, columns=2,
    ),
    Fragment(
        "bfmmla", (BFLOAT16, BFLOAT16), 4, FLOAT32,
        (Form(128, "llvm.aarch64.neon.bfmmla", frozenset({"bf16"})),),
        rows=2, columns=2,
    ),
)  # fmt: skip
"""Products of two rows by two columns, which no kernel of ours uses and peers may."""


@dataclass(frozen=True, slots=True)
class DotInstruction:
    """An instruction that adds products of narrow numbers to the lanes of a wider vector."""

    fragment: Fragment
    form: Form

    @property
    def name(self) -> str:
        """LLVM's."""
        return self.form.intrinsic

    @property
    def type(self) -> str:
        """Of the numbers, one of ``tcl.codegen.loopir.cost.NARROW``."""
        factor = self.fragment.factors[0]
        return f"int{factor.bits}" if factor.is_integral else factor.name

    @property
    def total(self) -> str:
        """LLVM's type of the sums."""
        return f"<{self.form.lanes} x {'float' if self.fragment.sums.is_float else 'i32'}>"

    @property
    def operand_types(self) -> str:
        """LLVM's type of the vectors of narrow numbers."""
        factor = self.fragment.factors[0]
        number = "bfloat" if factor == BFLOAT16 else f"i{factor.bits}"
        return f"<{self.form.bits // factor.bits} x {number}>"

    @property
    def tiles(self) -> bool:
        """Whether it is one of a matrix unit, with registers of its own."""
        return self.fragment.words > 1

    @property
    def operations(self) -> int:
        """Of one instruction; a multiply-add is two."""
        each = self.fragment
        sums = each.rows * (each.columns or 0) if self.tiles else self.form.lanes
        return 2 * sums * each.words * each.depth

    @property
    def declaration(self) -> str:
        """LLVM IR."""
        if self.tiles:
            return f"declare void @{self.name}(i8 immarg, i8 immarg, i8 immarg)"
        total = f"{self.total}, " if self.fragment.adds else ""
        return (
            f"declare {self.total} @{self.name}({total}{self.operand_types}, {self.operand_types})"
        )

    def step(self, k: int) -> list[str]:
        """LLVM IR of ``%n{k}``, which is ``%s{k}`` and products more; ``%x`` are numbers."""
        total, numbers = self.total, f"{self.operand_types} %y{k}, {self.operand_types} %x"
        lines = [f"%y{k} = bitcast {total} %s{k} to {self.operand_types}"]
        if self.fragment.adds:
            return [*lines, f"%n{k} = call {total} @{self.name}({total} %s{k}, {numbers})"]
        return [
            *lines,
            f"%m{k} = call {total} @{self.name}({numbers})",
            f"%n{k} = add {total} %s{k}, %m{k}",
        ]


def dots(device: CpuProfile) -> list[DotInstruction]:
    """The instructions that a machine has, in its longest vectors."""
    own = _TWO_BY_TWO if device.architecture == "aarch64" else ()
    every = (*fragments(device), *fragments(device, matrix=True), *own)
    found = [(each, each.forms_of(device)) for each in every]
    return [DotInstruction(fragment, forms[0]) for fragment, forms in found if forms]
