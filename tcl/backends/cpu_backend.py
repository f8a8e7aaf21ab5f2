"""The CPU backend as the tuner sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcl.arrays.arguments import Array
from tcl.backends.program_backend import ProgramBackend
from tcl.backends.sent import CpuRunner
from tcl.codegen.common.envelope import seal
from tcl.codegen.compiler import CpuCompiler
from tcl.codegen.cpu.emit.emit import emit_program
from tcl.codegen.cpu.object_code.compile import compile_object
from tcl.codegen.cpu.run.kernel import kernel_code
from tcl.codegen.devices.cpu import CpuProfile, host_cpu
from tcl.codegen.loopir import ir
from tcl.codegen.options.options import MappingOptions
from tcl.codegen.schedule.plan import Plan
from tcl.tuner.measure.backend import CompiledKernel
from tcl.tuner.measure.harness import Bench


@dataclass(frozen=True, slots=True)
class CpuBackend(ProgramBackend):
    """One def on one set of inputs, on this CPU."""

    threads: int = 1
    """That kernels run on, at most."""

    @classmethod
    def create(
        cls, source: str, entry: str, arrays: Sequence[Array], folder: str, threads: int = 1
    ) -> CpuBackend:
        """A backend for these inputs, whose values are saved in ``folder``."""
        return cls.described(source, entry, arrays, threads).holding(arrays, folder)

    def bench(self) -> Bench:
        return Bench(one_thread=self.threads == 1)

    @property
    def device(self) -> CpuProfile:
        """This CPU, with that many threads."""
        return replace(host_cpu(), threads=self.threads)

    @property
    def compiler(self) -> CpuCompiler:
        return CpuCompiler(self.device, asked=False)

    def compile(self, options: MappingOptions) -> bytes:
        """Object code and what else a run needs."""

        def code(plan: Plan[CpuProfile], program: ir.Built) -> bytes:
            source = emit_program(program, plan.target)
            compiled = compile_object(source.text, plan.target)
            return seal(kernel_code(program, source, compiled, plan.target))

        return self.built(options, code)

    def load(self, code: bytes) -> CompiledKernel:
        """The kernel in this process."""
        return self.runner().load(code)

    def runner(self) -> CpuRunner:
        """See ``tcl.tuner.measure.backend.BriefBackend``."""
        checked = self.sized.checked
        sizes = tuple((name, self.sized.sizes[name]) for name, _ in self.classes)
        names = tuple(t.name for t in checked.inputs + checked.outputs)
        return CpuRunner(self.sent(), names, self.source, self.entry, self.bench(), sizes)
