"""What every stage of a schedule means, by the interpreter of the loop IR, beside the reference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import mpmath as mp
import numpy as np
import oracles
from cpu_kernels import poisoned
from loopir_interpreter import interpret
from program_builder import Program

from tcl.codegen.compiler import Device
from tcl.codegen.devices.gpu import GpuProfile
from tcl.codegen.loopir import ir
from tcl.codegen.loopir.collapse import merged
from tcl.codegen.loopir.layouts import cpu_layouts, gpu_layouts
from tcl.codegen.loopir.lower import lower
from tcl.codegen.loopir.printer import show
from tcl.codegen.loopir.verify import verify
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.reference import compile_reference
from tcl.codegen.schedule.cpu import plan as plan_for_cpu
from tcl.codegen.schedule.gpu import plan as plan_for_gpu
from tcl.codegen.schedule.plan import Plan
from tcl.grammar.ranges.sized import SizedDef


def stages(
    sized: SizedDef, options: MappingOptions, device: Device, *, all_threads: bool = True
) -> Iterator[tuple[str, ir.Program | ir.Built]]:
    """(name, program) after lowering, merging, splitting on a GPU, and each of the passes, and as
    kernels, each verified."""
    gpu = isinstance(device, GpuProfile)
    program = lower(sized, gpu_layouts(sized) if gpu else cpu_layouts(sized))
    yield from _verified("lower", program)
    if isinstance(device, GpuProfile):
        yield from _verified("merge", merged(program) if options.merges else program)
        made: Plan[Any] = plan_for_gpu(sized, options, device)
        yield from _verified("split", made.program)
    else:
        made = plan_for_cpu(sized, options, device, all_threads=all_threads)
        yield from _verified("merge", made.program)
    for name, program in made.applied():
        yield from _verified(name, program)
    yield from _verified("build", made.build(program))


def _verified(
    name: str, program: ir.Program | ir.Built
) -> Iterator[tuple[str, ir.Program | ir.Built]]:
    verify(program)
    yield name, program


def check_stages(
    program: Program,
    sized: SizedDef,
    seed: int,
    stages: Iterable[tuple[str, ir.Program | ir.Built]],
    options: object,
) -> None:
    """Every stage gives what the reference does, as exactly as the program's outputs are known."""
    arrays = program.inputs(seed)
    inputs = [arrays[t.name] for t in sized.checked.inputs]
    expected = poisoned(sized)
    compile_reference(sized)(inputs, expected)
    functions = {name: _plain(oracle) for name, oracle in oracles.ORACLES.items()}
    for stage, each in stages:
        outputs = dict(zip((t.name for t in sized.checked.outputs), poisoned(sized), strict=True))
        interpret(each, {**arrays, **outputs}, functions)
        for tensor, want in zip(sized.checked.outputs, expected, strict=True):
            eps = {"float16": 1e-2, "bfloat16": 8e-2}.get(tensor.type.name, 1e-3)
            known = program.outputs[tensor.name]
            size = max(1.0, abs(known.low), abs(known.high))
            np.testing.assert_allclose(
                outputs[tensor.name].astype(np.float64),
                want.astype(np.float64),
                rtol=0 if known.exact else eps,
                atol=0 if known.exact else eps * size,
                err_msg=f"{stage}: {tensor.name}\n{program.source}\n{options}\n{show(each)}",
            )


def _plain(oracle: oracles.Oracle) -> Any:
    return lambda *xs: float(mp.re(oracle.exact(*map(mp.mpf, xs))))
