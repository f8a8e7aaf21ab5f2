"""What the machine could do, as small kernels measure it."""

from __future__ import annotations

import os
from dataclasses import replace

import llvmlite.binding as llvm
import numpy as np
import pytest
from nests import WIDE

from tcl.bench.ceilings import Ceilings, Meter, core_to_core
from tcl.codegen.cpu.emit.peaks import CHAINS, STREAMS, DotInstruction, dots, products_loop
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir.cost import Cost

# Ceilings.


def test_ceilings_are_sane() -> None:
    meter = Meter((next(iter(os.sched_getaffinity(0))),), buffer=8 << 20)
    try:
        source, target = meter._parts[0]
        source[...] = np.arange(source.size, dtype=np.uint32).astype(np.uint8)
        found = meter.sample()
        for name, times in meter._times.items():
            assert meter._run(name, times) > 0.0002  # long enough for the clock
        np.testing.assert_array_equal(target, source)
        addresses = source.ctypes.data, target.ctypes.data
        ones = source.view(np.float32)
        ones.fill(1)
        total = meter._functions["read"](*addresses, source.size // STREAMS)
        assert total == ones.size
    finally:
        meter.close()
    assert 0 < found.read < 1e13
    assert 0 < found.copy < 1e13
    assert 0 < found.flops < 1e13
    assert set(found.products) == {dot.type for dot in dots(host_cpu())}
    assert all(0 < rate < 1e15 for rate in found.products.values())


def test_from_core_to_core() -> None:
    cores = sorted(os.sched_getaffinity(0))
    assert core_to_core(cores[:1]) == 0.0
    if len(cores) > 1:
        found = core_to_core(cores)
        assert found > 1e-9, "light goes no further than a foot in that"
        samples = [Ceilings(1.0, 1.0, 1.0, core_to_core=s) for s in (0.0, found, 2 * found)]
        assert Ceilings.best(samples).core_to_core == found


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


def having(features: str) -> str:
    return ",".join(f"+{feature}" for feature in features.split())


X86 = (
    "sse2 avx avx2 avx512f avx512bw avx512vl avx512vnni avx512bf16 avxvnniint8 amx-tile amx-int8 "
    "amx-bf16"
)
WIDEST = replace(WIDE, features=having(X86), vector_bits=512)
ARM = replace(
    WIDE, features=having("dotprod i8mm bf16"), vector_bits=128, triple="aarch64-unknown-linux-gnu"
)


@pytest.mark.parametrize(
    ("device", "dot"),
    [pytest.param(d, dot, id=dot.fragment.instruction) for d in (WIDEST, ARM) for dot in dots(d)],
)
def test_instructions_are_in_the_loop_once_for_each_sum(
    device: CpuProfile, dot: DotInstruction
) -> None:
    """Compiled for a machine that has them; this one may not."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    features = having(" ".join(dot.form.needs | (set() if device is ARM else {"avx512vl"})))
    target = llvm.Target.from_triple(device.triple)
    machine = target.create_target_machine(features=features, opt=2)
    module = llvm.parse_assembly(products_loop(dot))
    module.triple = device.triple
    written = machine.emit_assembly(module).splitlines()
    assert sum(dot.fragment.instruction in line for line in written) == CHAINS


def test_operations_of_instructions() -> None:
    """Of each: lanes, times the neighbours that it adds up, times two."""
    found = {d.fragment.instruction: d.operations for d in (*dots(WIDEST), *dots(ARM))}
    assert found["vpdpbusd"] == 128
    assert found["vpmaddwd"] == found["vdpbf16ps"] == 64
    assert (found["tdpbssd"], found["tdpbf16ps"]) == (32768, 16384)
    assert (found["sdot"], found["smmla"]) == (32, 64)
    assert (found["bfdot"], found["bfmmla"]) == (16, 32)


def test_a_machine_has_the_instructions_of_its_features() -> None:
    assert [d.type for d in dots(replace(WIDE, features="+sse2"))] == ["int16"]
    assert {d.type for d in dots(WIDEST)} == {"int8", "int16", "bfloat16"}
    assert {d.type for d in dots(ARM)} == {"int8", "bfloat16"}
