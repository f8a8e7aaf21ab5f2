"""What the machine could do, as small kernels measure it."""

from __future__ import annotations

import os
from dataclasses import replace

import llvmlite.binding as llvm
import numpy as np
import pytest
from nests import WIDE

from tcl.bench.ceilings import Ceilings, Meter, products_loop
from tcl.bench.peaks import CHAINS, DOTS, Dot, dots
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.loopir.cost import Cost

# Ceilings.


def test_ceilings_are_sane() -> None:
    meter = Meter((next(iter(os.sched_getaffinity(0))),), buffer=8 << 20)
    try:
        source, target = meter._parts[0]
        source[...] = np.arange(source.size, dtype=np.uint32).astype(np.uint8)
        found = meter.sample()
        for name, times in meter._times.items():
            assert meter._run(name, times) > 0.002  # long enough to start a thread unnoticed
        np.testing.assert_array_equal(target, source)
        ones = source.view(np.float32)
        ones.fill(1)
        total = meter._functions["read"](source.ctypes.data, target.ctypes.data, source.size)
        assert total == ones.size
    finally:
        meter.close()
    assert 1e8 < found.read < 1e13
    assert 1e8 < found.copy < 1e13
    assert 1e8 < found.flops < 1e13
    assert set(found.products) == {dot.type for dot in dots(host_cpu())}
    assert all(1e8 < rate < 1e15 for rate in found.products.values())


def test_least_time() -> None:
    ceilings = Ceilings(read=10.0, copy=16.0, flops=100.0)
    assert ceilings.seconds(Cost(500, 500.0, 10, 0)) == 5.0  # arithmetic
    assert ceilings.seconds(Cost(1, 1.0, 20, 0)) == 2.0  # reading
    assert ceilings.seconds(Cost(1, 1.0, 80, 80)) == pytest.approx(10.0)  # at the copy's rate


def test_least_time_of_narrow_products() -> None:
    ceilings = Ceilings(10.0, 16.0, 100.0, {"int16": 200.0, "bfloat16": 50.0})

    def seconds(kind: str) -> float:
        return ceilings.seconds(Cost(1000, 0.0, 0, 0, {kind: 1000}))

    assert seconds("int16") == 5.0
    assert seconds("int8") == 5.0  # made wider
    assert seconds("float16") == 10.0  # as float32
    assert seconds("bfloat16") == 10.0  # likewise, where the instruction is slower than that
    assert ceilings.seconds(Cost(1100, 100.0, 0, 0, {"int16": 1000})) == 6.0


def test_the_best_of_each_rate_counts() -> None:
    one = Ceilings(1.0, 5.0, 3.0, {"int8": 4.0})
    two = Ceilings(2.0, 4.0, 3.5, {"int8": 3.0, "int16": 1.0})
    assert Ceilings.best([one, two]) == Ceilings(2.0, 5.0, 3.5, {"int8": 4.0, "int16": 1.0})


MNEMONICS = ("vpdpbusd", "vpdpwssd", "pmaddwd", "dpbf16ps", "sdot", "smmla", "bfdot", "bfmmla")
TRIPLES = {"x86": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}


@pytest.mark.parametrize("dot", DOTS, ids=lambda d: d.name.removeprefix("llvm."))
def test_instructions_are_in_the_loop_once_for_each_sum(dot: Dot) -> None:
    """Compiled for a machine that has them; this one may not."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = TRIPLES[dot.name.split(".")[1]]
    features = {*dot.features, *(("avx512vl", "avx512f") if "512.512" in dot.name else ())}
    target = llvm.Target.from_triple(triple)
    machine = target.create_target_machine(features=",".join(f"+{f}" for f in features), opt=2)
    module = llvm.parse_assembly(products_loop(dot))
    module.triple = triple
    written = machine.emit_assembly(module)
    assert sum(any(name in line for name in MNEMONICS) for line in written.splitlines()) == CHAINS


def test_a_machine_has_the_instructions_of_its_features() -> None:
    old = replace(WIDE, features="+sse2")
    assert [d.name for d in dots(old)] == ["llvm.x86.sse2.pmadd.wd"]
    new = replace(WIDE, features="+dotprod,+bf16")
    assert {d.type for d in dots(new)} == {"int8", "bfloat16"}
