"""Races that are reported are races, and none is missed: against all pairs of accesses."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import dataclass, replace
from typing import Any

import emulator_kernels as k
import numpy as np
import pytest

from tcl.codegen.cuda.emit.module import CudaModule
from tcl.codegen.cuda.emulator import ORDERS, EmulationError, compile_modules, why_not
from tcl.codegen.cuda.prelude.prelude import HELPERS

if why_not():
    pytest.skip(str(why_not()), allow_module_level=True)

LAST = (
    HELPERS["last_of"]
    + """
extern "C" __global__ void kernel(float* P, float* O, int* arrived) {
  P[blockIdx.x * 64 + threadIdx.x] = blockIdx.x;
  if (last_of(4, arrived + 0)) {
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += P[i * 64 + (threadIdx.x + 1) % 64];
    O[threadIdx.x] = sum;
  }
}"""
)
FENCE, BARRIER = "        __threadfence();\n", "    __syncthreads();\n"
INCOMPLETE = {
    "no barrier before": LAST.replace(BARRIER, ""),
    "no fence before": LAST.replace(FENCE, "", 1),
    "no fence after": FENCE.join(LAST.rsplit(FENCE, 1)[:1]) + LAST.rsplit(FENCE, 1)[1],
    "no barrier after": LAST.replace("return __syncthreads_or(last)", "return last || blockIdx.x"),
    "the first block": LAST.replace("== count - 1;", "== 0;"),
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_last_block_sees_what_the_others_wrote(order: Any) -> None:
    """Every step of it is needed."""
    tensors = (
        *(k.tensor("P", k.OUTPUT, (256,)), k.tensor("O", k.OUTPUT, (64,))),
        replace(k.tensor("arrived", k.SCRATCH, (1,), "int32"), zeroed=True),
    )
    sources = [LAST, *INCOMPLETE.values()]
    whole, *broken = compile_modules([k.module(s, tensors, blocks=4, threads=64) for s in sources])
    arrays = {"P": np.zeros(256, np.float32), "O": np.zeros(64, np.float32)}
    for _ in range(2):  # the count is zero again
        whole.run(arrays, order)
        assert (arrays["O"] == 6).all()
    for one in broken:
        with pytest.raises(EmulationError, match="race"):
            one.run(arrays, order)


def test_a_count_that_is_not_zero_again_is_reported() -> None:
    tensors = (replace(k.tensor("arrived", k.SCRATCH, (1,), "int32"), zeroed=True),)
    source = HELPERS["last_of"] + (
        'extern "C" __global__ void kernel(int* arrived) { last_of(4, arrived); }'
    )
    (one,) = compile_modules([k.module(source, tensors, blocks=3)])
    with pytest.raises(EmulationError, match="arrived does not hold zeros"):
        one.run({})


BLOCKS, THREADS, BYTES = 2, 70, 16
TYPES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}


@dataclass(frozen=True)
class Access:
    block: int
    threads: tuple[int, ...]
    kind: str
    """``read``, ``write`` or ``atomic``."""
    shared: bool
    offset: int
    size: int
    barriers: int
    """How many came before."""

    def text(self) -> str:
        threads = " || ".join(f"threadIdx.x == {t}" for t in self.threads)
        base = "shared" if self.shared else "X"
        type_ = TYPES[self.size]
        place = f"({type_}*)({base} + {self.offset})"
        access = {
            "read": f"sum += *(volatile {type_}*){place}",
            "write": f"*(volatile {type_}*){place} = 0",
            "atomic": f"atomicAdd({place}, 1)",
        }[self.kind]
        return f"if (blockIdx.x == {self.block} && ({threads})) {access};"

    def races(self, other: Access) -> bool:
        kinds = {self.kind, other.kind}
        if kinds in ({"read"}, {"atomic"}) or self.shared != other.shared:
            return False
        if not (self.offset < other.offset + other.size and other.offset < self.offset + self.size):
            return False
        if self.block != other.block:
            return not self.shared
        if self.barriers != other.barriers:
            return False
        return any(one != two for one in self.threads for two in other.threads)


def program(chance: random.Random) -> tuple[CudaModule, dict[int, Access]]:
    """A random kernel, and its accesses by line."""
    lines = [
        'extern "C" __global__ void kernel(unsigned char* X, unsigned* Y) {',
        k.SHARED + " unsigned sum = 0;",
    ]
    accesses = {}
    barriers = 0
    alike = chance.random() < 0.5
    size = chance.choice([1, 2, 4, 8])
    for _ in range(chance.randint(2, 9)):
        if chance.random() < 0.25:
            lines.append("__syncthreads();")
            barriers += 1
        else:
            kind = chance.choice(["read", "read", "write", "atomic"])
            size = size if alike else chance.choice([4, 8] if kind == "atomic" else [1, 2, 4, 8])
            size = max(size, 4) if kind == "atomic" else size
            near = chance.choice([[0, 1, 2], [0, 33, 66], list(range(THREADS))])
            access = Access(
                chance.randrange(BLOCKS) if chance.random() < 0.3 else 0,
                tuple(chance.sample(near, chance.choice([1, 1, 2, 3]))),
                kind,
                chance.random() < 0.5,
                chance.randrange(BYTES // size // 2) * size,
                size,
                barriers,
            )
            lines.append(access.text())
            accesses[len(lines)] = access
    lines.append("Y[blockIdx.x * blockDim.x + threadIdx.x] = sum; }")
    tensors = (
        k.tensor("X", k.OUTPUT, (BYTES,), "uint8"),
        k.tensor("Y", k.OUTPUT, (BLOCKS * THREADS,), "uint32"),
    )
    source = "\n".join(lines)
    return k.module(source, tensors, blocks=BLOCKS, threads=THREADS, shared=BYTES), accesses


def reported(emulated: Any, order: Any, seed: int) -> set[tuple[int, int]]:
    """The pairs of lines that are said to race."""
    arrays = {"X": np.zeros(BYTES, np.uint8), "Y": np.zeros(BLOCKS * THREADS, np.uint32)}
    try:
        emulated.run(arrays, order, seed=seed)
    except EmulationError as error:
        pairs = set()
        for part in str(error).split("kernel: ")[1:]:
            assert part.startswith("race: "), part
            found = [int(n) for n in re.findall(r"line (\d+)", part)]
            pairs.add((min(found), max(found)))
        return pairs
    return set()


def test_races_are_those_of_the_programming_model() -> None:
    chance = random.Random(11)
    made = [program(chance) for _ in range(120)]
    clean = 0
    for seed, ((_, accesses), emulated) in enumerate(
        zip(made, compile_modules([module for module, _ in made]), strict=True)
    ):
        races = {
            (a, b)
            for a, b in itertools.combinations_with_replacement(accesses, 2)
            if accesses[a].races(accesses[b])
        }
        clean += not races
        for order in ORDERS:
            found = reported(emulated, order, seed)
            text = emulated.module.source
            # Where several threads came before, the one that is named may be another.
            assert bool(found) == bool(found & races) == bool(races), (
                f"{order}: {found} for {races}\n{text}"
            )
    assert 20 < clean < 100
