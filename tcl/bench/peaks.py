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

CHAINS = 12
"""Independent sums: enough to hide a latency of six cycles on two units."""


@dataclass(frozen=True, slots=True)
class Dot:
    """An instruction that adds products of narrow numbers to the lanes of a wider vector."""

    name: str
    type: str
    """Of the numbers, one of ``tcl.codegen.loopir.cost.NARROW``."""
    features: tuple[str, ...]
    """LLVM's names of the features that it needs."""
    total: str
    """LLVM's type of the sums."""
    numbers: str
    """LLVM's type of the vectors of narrow numbers."""
    operations: int
    """Of one instruction; a multiply-add is two."""
    adds: bool = True
    """Whether it adds to the sums itself; else another instruction does."""

    def there(self, device: CpuProfile) -> bool:
        """Whether a machine has it."""
        return all(map(device.has, self.features))

    @property
    def declaration(self) -> str:
        """LLVM IR."""
        total = f"{self.total}, " if self.adds else ""
        return f"declare {self.total} @{self.name}({total}{self.numbers}, {self.numbers})"

    def step(self, k: int) -> list[str]:
        """LLVM IR of ``%n{k}``, which is ``%s{k}`` and products more; ``%x`` are numbers."""
        numbers = f"{self.numbers} %y{k}, {self.numbers} %x"
        lines = [f"%y{k} = bitcast {self.total} %s{k} to {self.numbers}"]
        if self.adds:
            return [
                *lines,
                f"%n{k} = call {self.total} @{self.name}({self.total} %s{k}, {numbers})",
            ]
        return [
            *lines,
            f"%m{k} = call {self.total} @{self.name}({numbers})",
            f"%n{k} = add {self.total} %s{k}, %m{k}",
        ]


def _x86(name: str, type_: str, features: tuple[str, ...], bits: int, adds: bool = True) -> Dot:
    width = 8 if type_ == "int8" else 16
    number, total = ("bfloat", "float") if type_ == "bfloat16" else (f"i{width}", "i32")
    lanes, count = bits // 32, bits // width
    return Dot(
        f"llvm.x86.{name}", type_, features, f"<{lanes} x {total}>", f"<{count} x {number}>",
        2 * count, adds,
    )  # fmt: skip


def _arm(name: str, type_: str, feature: str, total: str, numbers: str, operations: int) -> Dot:
    return Dot(f"llvm.aarch64.neon.{name}", type_, (feature,), total, numbers, operations)


DOTS: tuple[Dot, ...] = (
    _x86("avx512.vpdpbusd.512", "int8", ("avx512vnni",), 512),
    _x86("avx512.vpdpbusd.256", "int8", ("avxvnni",), 256),
    _x86("avx512.vpdpwssd.512", "int16", ("avx512vnni",), 512),
    _x86("avx512.vpdpwssd.256", "int16", ("avxvnni",), 256),
    _x86("avx512.pmaddw.d.512", "int16", ("avx512bw",), 512, adds=False),
    _x86("avx2.pmadd.wd", "int16", ("avx2",), 256, adds=False),
    _x86("sse2.pmadd.wd", "int16", ("sse2",), 128, adds=False),
    _x86("avx512bf16.dpbf16ps.512", "bfloat16", ("avx512bf16",), 512),
    _arm("sdot.v4i32.v16i8", "int8", "dotprod", "<4 x i32>", "<16 x i8>", 32),
    _arm("smmla.v4i32.v16i8", "int8", "i8mm", "<4 x i32>", "<16 x i8>", 64),
    _arm("bfdot.v4f32.v8bf16", "bfloat16", "bf16", "<4 x float>", "<8 x bfloat>", 16),
    _arm("bfmmla", "bfloat16", "bf16", "<4 x float>", "<8 x bfloat>", 32),
)


def dots(device: CpuProfile) -> list[Dot]:
    """The instructions that a machine has. Numbers of 8 bits can be made ones of 16 bits."""
    return [dot for dot in DOTS if dot.there(device)]
